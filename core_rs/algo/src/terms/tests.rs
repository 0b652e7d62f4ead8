use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    Analyzer::new().analyze(text, &mut |term| terms.push(term.to_owned()));
    terms
}

/// Asserts that all of these have the same terms, and at least one.
fn assert_same(texts: &[&str]) {
    for text in texts {
        assert_eq!(terms(text), terms(texts[0]), "{text} and {}", texts[0]);
        assert!(!terms(text).is_empty(), "{text}");
    }
}

/// Asserts that a query finds a document by at least one of these terms.
fn assert_shares(query: &str, document: &str, term: &str) {
    for text in [query, document] {
        assert!(
            terms(text).iter().any(|found| found == term),
            "{text}: {:?}",
            terms(text)
        );
    }
}

#[test]
fn words_are_folded_and_stemmed() {
    assert_same(&["cafe", "café", "cafe\u{301}", "CAFÉ", "cafés", "caf\u{ad}é"]);
    assert_same(&["strasse", "Straße", "STRASSE"]);
    assert_same(&["елка", "Ёлка"]);
    assert_same(&["οδοσ", "ΟΔΟΣ", "οδός"]);
    assert_same(&["run", "running", "runs"]);
    assert_same(&["Full width", "Ｆｕｌｌ　ｗｉｄｔｈ"]);
    assert_eq!(terms("हिन्दी"), ["हिन्दी"]);
    assert_eq!(terms("Müller"), ["muller", "mueller"]);
    assert_shares("Mueller-Lüdenscheidt", "Müller-Lüdenscheidt", "mueller");
}

#[test]
fn arabic_and_hebrew_are_compared_by_their_letters() {
    assert_same(&["كتاب", "كِتَابٌ", "كـتـاب", "الكتاب", "والكتاب"]);
    assert_same(&["احمد", "أحمد", "إحمد"]);
    assert_same(&["مكتبه", "مكتبة"]);
    assert_same(&["على", "علی"]);
    assert_same(&["שלום", "שָׁלוֹם"]);
    assert_eq!(terms("الله"), ["الله"], "too short to lose an article");
    assert_same(&["12345", "١٢٣٤٥", "۱۲۳۴۵", "१२३४५", "１２３４５"]);
}

#[test]
fn contractions_lose_what_they_add() {
    assert_same(&["Ann", "Ann's", "Ann’s", "ANN'S"]);
    assert_eq!(
        terms("They're here and I don't, can't, won’t see Bob's dog"),
        ["see", "bob", "dog"]
    );
    assert_eq!(terms("O'Brien"), ["o", "brien", "obrien", "obrien"]);
    assert_shares("OBrien", "Mr. O’Brien", "obrien");
}

#[test]
fn stop_words_count_only_where_there_is_nothing_else() {
    assert_eq!(terms("the cat is on the mat"), ["cat", "mat"]);
    assert_eq!(
        terms("To be, or not to be"),
        ["to", "be", "or", "not", "to", "be"]
    );
    assert_same(&["don't", "dont"]);
    assert_eq!(
        terms("the US and the IT team asked us"),
        ["us", "it", "team", "ask"]
    );
    assert_eq!(
        terms("I am A to you too, e.g. a.m."),
        terms("i am a to you too eg am")
    );
}

#[test]
fn numbers_are_whole() {
    assert_same(&["1000", "1,000", "1'000", "１，０００"]);
    assert_eq!(
        terms("3.14 1,000,000.50 12, 34"),
        ["3.14", "1000000.50", "12", "34"]
    );
    assert_eq!(terms("2.5kg"), ["2.5", "kg", "2.5kg"]);
    assert_shares("5 kg", "a 5kg bag", "kg");
    assert_shares("10am", "at 10 am sharp", "10");
    assert_same(&["1200.50", "1,200.50", "1.200,50", "1'200.50"]);
    assert_eq!(terms("12,50"), ["12", "50", "12.50"]);
    assert_eq!(terms("1.200"), ["1200", "1.200"]);
    assert_eq!(terms("0.125"), ["0.125"]);
    assert_eq!(terms("1,200.00"), ["1200.00", "1200"]);
    assert_eq!(terms("3.10"), ["3.10"], "not the version 3.1");
    assert_eq!(terms("1,2,3"), ["1", "2", "3"]);
    assert_eq!(terms("3rd 13th"), ["3", "third", "13", "13th"]);
    assert_shares("12th", "the twelfth", "twelfth");
}

#[test]
fn numbers_in_groups_are_found_by_their_digits() {
    for phone in [
        "+1 555 123 4567",
        "(555) 123-4567",
        "555-123-4567",
        "555.123.4567",
        "5551234567",
        "+1 (555) 123-4567",
    ] {
        assert_shares("555 123 4567", phone, "tel:51234567");
    }
    assert_shares("089 12345678", "+49 (0)89 1234-5678", "tel:12345678");
    assert_shares(
        "4111111111111111",
        "4111 1111-1111 1111",
        "4111111111111111",
    );
    for text in [
        "192.168.100.200",
        "2024-05-17 10:30",
        "in 2023 2024",
        "12 34 567",
    ] {
        assert!(
            !terms(text).iter().any(|term| term.starts_with("tel:")),
            "{text}"
        );
    }
}

#[test]
fn dates_are_found_whole_and_by_their_parts() {
    for date in [
        "2024-05-17",
        "2024/05/17",
        "2024.5.17",
        "2024-05-17T10:30:00Z",
        "[2024-05-17]",
    ] {
        assert_shares("2024-05-17", date, "2024-05-17");
        assert_shares("2024", date, "2024");
    }
    assert_shares("10:30:00z", "2024-05-17T10:30:00Z", "10:30:00z");
    assert!(!terms("2024.5-17").contains(&"2024-05-17".to_owned()));
    assert_eq!(
        terms("2024-05-17"),
        ["2024-05", "2024-05-17", "--05-17", "2024", "05", "17"]
    );
    assert_eq!(terms("2024-05"), ["2024-05", "2024", "05"]);
}

#[test]
fn what_is_no_date_is_none() {
    for text in [
        "Mayor 17",
        "may",
        "17",
        "13/13/2024",
        "0/1/2024",
        "2024-13-01",
        "May 32",
        "May 2.5",
        "May 17:30",
        "mayflower 1620",
        "marching 5",
        "99999999",
        "1.2.24",
        "9月",
        "decent 5",
        "7 days",
        "3 2024",
    ] {
        assert!(
            !terms(text)
                .iter()
                .any(|term| term.starts_with("--")
                    || (term.len() == 7 && term.as_bytes()[4] == b'-')),
            "{text}: {:?}",
            terms(text)
        );
    }
}

#[test]
fn ambiguous_dates_give_both_readings() {
    let found = terms("5/6/2024");
    for term in [
        "2024-05-06",
        "2024-06-05",
        "2024-05",
        "2024-06",
        "--05-06",
        "--06-05",
    ] {
        assert_eq!(
            found.iter().filter(|found| *found == term).count(),
            1,
            "{term}"
        );
    }
    assert!(!terms("5.6.2024").contains(&"2024-05-06".to_owned()));
    assert_eq!(
        terms("5/5/2024")
            .iter()
            .filter(|term| *term == "2024-05-05")
            .count(),
        1
    );
}

#[test]
fn months_and_days_are_found_alone() {
    for text in [
        "May 2024",
        "May of 2024",
        "May, 2024",
        "2024-05",
        "05/2024",
        "2024年5月",
        "2024년 5월",
        "may 2024",
        "May 17, 2024",
        "20240517",
    ] {
        assert_shares("2024-05", text, "2024-05");
    }
    for text in [
        "May 17",
        "17 May",
        "the 17th of May",
        "May the 17th",
        "5月17日",
        "2024-05-17",
        "Mai, no: May 17.",
    ] {
        assert_shares("May 17th", text, "--05-17");
    }
}

#[test]
fn times_have_one_form() {
    for text in [
        "14:30",
        "2:30 pm",
        "2:30pm",
        "2:30 P.M.",
        "14h30",
        "14:30:00",
        "2024-05-17T14:30:00Z",
        "14点30分",
        "下午2点30分",
        "午後2時半",
        "오후 2시 30분",
    ] {
        assert_shares("14:30", text, "14:30");
    }
    assert_shares("12 am", "0:00", "0:00");
    assert_shares("12 pm", "12:00", "12:00");
    assert_shares("9:05", "09:05", "9:05");
    for text in ["3時間", "3 시간", "25:00:00", "14:75:00", "13 pm", "5 amps"] {
        assert!(
            !terms(text)
                .iter()
                .any(|term| term.len() <= 5 && term.contains(':')),
            "{text}"
        );
    }
}

#[test]
fn identifiers_are_found_whole_and_by_their_parts() {
    for (query, document, term) in [
        ("ORD-2024-00017", "order ord_2024-00017.", "ord2024-00017"),
        ("00017", "ORD-2024-00017", "00017"),
        ("e1042", "error E1042!", "e1042"),
        ("1042", "error E1042!", "1042"),
        ("2.3.1", "version v2.3.1", "2.3.1"),
        ("foo.rs", "/usr/src/foo.rs", "foo"),
        (
            "/usr/src/foo.rs",
            "see (/usr/src/foo.rs).",
            "usr/src/foo.rs",
        ),
        ("C:\\Temp\\x.txt", "c:\\temp\\X.TXT", "c:\\temp\\x.txt"),
        ("get_user_name", "getUserName()", "getusernam"),
        ("user", "getUserName()", "user"),
        ("server", "HTTPServer", "server"),
        ("oauth", "OAuth2", "oauth"),
        ("url", "the URLs", "url"),
        (
            "a.lee@example.com",
            "mail A.Lee@Example.com",
            "a.lee@example.com",
        ),
        ("example", "a.lee@example.com", "exampl"),
        (
            "https://example.com/a",
            "<https://example.com/a?b=c>",
            "https://example.com/a",
        ),
        (
            "DE89370400440532013000",
            "DE89 3704 0044 0532 0130 00.",
            "de89370400440532013000",
        ),
        (
            "GB29NWBK60161331926819",
            "GB29 NWBK 6016 1331 9268 19",
            "gb29nwbk60161331926819",
        ),
        ("e-mail", "email", "email"),
        ("C++", "I like C++.", "c++"),
        ("c#", "C# and F#", "c#"),
        ("R&D", "the R&D team", "r&d"),
        ("U.S.", "US visa", "us"),
        ("10:30", "at 10:30.", "10:30"),
        ("nginx.conf", "/etc/nginx/nginx.conf", "nginx.conf"),
        ("app/main.py", "src/app/main.py", "app/main.py"),
        ("report.docx", "C:\\Users\\ann\\report.docx", "report.docx"),
        (
            "docs.example.com",
            "https://docs.example.com/guide",
            "docs.example.com",
        ),
        ("example.com", "a.lee@example.com", "example.com"),
        ("getUserName", "lib/get_user_name.py", "getusernam"),
        (
            "ab123456",
            "ab123456-e29b-41d4-a716-446655440000",
            "ab123456",
        ),
        (
            "9f86d08",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "9f86d08",
        ),
        (
            "9f86d08188",
            "commit/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "9f86d08",
        ),
        ("2.3", "v2.3.1", "2.3"),
        ("192.168.1.17", "at 192.168.1.17:9100", "192.168.1.17"),
        ("2024-05-17", "backup-20240517.tar.gz", "2024-05-17"),
        ("2024-05-17", "log-2024-05-17.txt", "2024-05-17"),
    ] {
        assert_shares(query, document, term);
    }
    assert!(
        !terms("BA12 cannot DATE")
            .iter()
            .any(|term| term.starts_with("ba12cannot"))
    );
    assert_eq!(
        terms("v2.3.1 v23.1")
            .iter()
            .filter(|term| *term == "2.3.1")
            .count(),
        2,
        "twice of the one, not of the other"
    );
    assert_eq!(terms("v2.3.1"), ["2.3", "2.3.1", "2.3.1"]);
    assert_eq!(
        terms("ORD-2024-00017"),
        ["ord", "2024", "00017", "ord2024-00017", "ord2024-00017"]
    );
    assert_eq!(
        terms("3f2a9c aGVsbG8gd29ybGQ"),
        ["3f2a9c", "agvsbg8gd29ybgq"],
        "no parts that say nothing"
    );
}

#[test]
fn cjk_gives_characters_and_pairs() {
    assert_eq!(terms("吃苹果。"), ["吃", "吃苹", "苹", "苹果", "果"]);
    assert_eq!(terms("コーヒーを"), ["こー", "ーひ", "ひー", "ーを"]);
    assert_same(&["アイス", "ｱｲｽ", "あいす"]);
    assert_same(&["臺灣頭髮", "台湾头发"]);
    assert_same(&["\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}", "한글"]);
    assert_shares("申込み", "申し込み", "申込");
    assert_shares("引越し", "引っ越し", "引越");
    assert!(
        !terms("私の本").contains(&"私本".to_owned()),
        "の is a particle"
    );
    assert_eq!(terms("あ"), ["あ"]);
    assert_eq!(terms("집에"), ["집", "집에", "에"]);
    assert_eq!(terms("ไทย"), ["ไท", "ทย"]);
    assert_eq!(
        terms("第3章iPhone手机"),
        ["第", "3", "章", "iphon", "手", "手机", "机"]
    );
}

#[test]
fn emoji_are_terms_and_punctuation_is_none() {
    assert_eq!(terms("😀 👍🏽 ❤\u{fe0f} 🇫🇷🇩🇪"), ["😀", "👍", "❤", "🇫🇷", "🇩🇪"]);
    assert_eq!(terms("⭐⏰ 1\u{fe0f}\u{20e3}"), ["⭐", "⏰", "1"]);
    let (scotland, england) = (
        "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    );
    assert_eq!(terms(&format!("{scotland}{england}")), [scotland, england]);
    assert_eq!(terms("?! ... — «»「」\u{301}\u{200d}"), [""; 0]);
    assert_eq!(terms(""), [""; 0]);
}

#[test]
fn long_terms_become_hashes() {
    let long = "x".repeat(MAX_TERM_BYTES + 1);
    assert_eq!(terms(&long), ["#7d70a52549704607"]);
    assert_same(&[&long, &long.to_uppercase()]);
    assert_ne!(terms(&long), terms(&format!("{long}x")));
    assert_eq!(
        terms(&"x".repeat(MAX_TERM_BYTES)),
        ["x".repeat(MAX_TERM_BYTES)]
    );
}

#[test]
fn hostile_texts_give_few_terms_in_one_pass() {
    const MEBIBYTE: usize = 1 << 20;
    for (unit, expected) in [
        ("q", 1),
        ("q\u{301}", 1),
        ("\u{301}", 0),
        (".", 0),
        ("'", 0),
        ("q.", MEBIBYTE / 2 + 1),
    ] {
        let mut count = 0;
        Analyzer::new().analyze(&unit.repeat(MEBIBYTE / unit.len()), &mut |_| count += 1);
        // A dotted acronym is one term.
        let expected = if unit == "q." { 1 } else { expected };
        assert_eq!(count, expected, "{unit}");
    }
}

#[test]
fn hostile_compounds_give_terms_in_proportion() {
    const LENGTH: usize = 1 << 18;
    for unit in [
        "ü",
        "ü.",
        "ü-",
        "/a",
        "a.b/",
        "1-",
        "1 ",
        "12 ",
        "1.111.",
        "1,1 ",
        "May ",
        "5月",
        "9f86d081-",
        "::a",
        "aB",
        "申し",
        "\u{200b}",
        "2024-05-17-",
        "1:11 ",
    ] {
        let mut count = 0;
        let text = unit.repeat(LENGTH / unit.len());
        Analyzer::new().analyze(&text, &mut |_| count += 1);
        assert!(count <= 4 * text.chars().count(), "{unit}: {count}");
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

proptest! {
    #[test]
    fn a_date_is_one_term_however_it_is_written(year in 1900_u32..2200, month in 1_u32..=12, day in 1_u32..=31) {
        let name = MONTHS[month as usize - 1];
        // A full stop after a whole name ends a sentence.
        let short = if month == 5 { name.to_owned() } else { format!("{}.", &name[..3]) };
        let ordinal = match day { 1 | 21 | 31 => "st", 2 | 22 => "nd", 3 | 23 => "rd", _ => "th" };
        let whole = format!("{year}-{month:02}-{day:02}");
        for written in [
            whole.clone(),
            format!("{year}/{month}/{day}"),
            format!("{year}.{month:02}.{day:02}"),
            format!("{year}{month:02}{day:02}"),
            format!("{day}/{month}/{year}"),
            format!("{month}/{day}/{year}"),
            format!("{day:02}.{month:02}.{year}"),
            format!("{day} {name} {year}"),
            format!("{day}{ordinal} of {name}, {year}"),
            format!("{name} {day}, {year}"),
            format!("{short} {day}{ordinal} {year}"),
            format!("{day}-{}-{year}", &name[..3]),
            format!("{} {day} {year}", name.to_uppercase()),
            format!("{year}年{month}月{day}日"),
            format!("{year}年{month:02}月{day:02}号"),
            format!("{year}년 {month}월 {day}일"),
        ] {
            let found = terms(&format!("on {written}, we met"));
            for term in [&whole, &whole[..7], &format!("-{}", &whole[4..])] {
                prop_assert!(found.iter().any(|found| found == term), "{}: {:?}", written, found);
            }
        }
    }

    #[test]
    fn what_does_not_show_does_not_count(text in "([a-zé0-9]{1,5}|[-_./@ ]|中文|カナ|한|👍|🇫🇷){0,12}", at in any::<prop::sample::Index>(), hidden in "[\u{ad}\u{200b}-\u{200f}\u{202a}-\u{202e}\u{2060}\u{2066}-\u{2069}\u{feff}]") {
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).chain([text.len()]).collect();
        let place = places[at.index(places.len())];
        let with = format!("{}{hidden}{}", &text[..place], &text[place..]);
        prop_assert_eq!(terms(&with), terms(&text));
    }

    #[test]
    fn scripts_of_chinese_do_not_matter(text in "[一-龥]{1,12}") {
        let simple: String = text.chars().map(han::simplified).collect();
        prop_assert_eq!(terms(&simple), terms(&text));
    }

    #[test]
    fn counts_are_the_sorted_counts_of_the_terms(text in "([a-zA-Z]{1,9}|[0-9]{1,4}|\\PC|中文|ñ|[-_'./:@& ]|n't|'s| ){0,40}") {
        let mut expected: BTreeMap<String, u32> = BTreeMap::new();
        for term in terms(&text) {
            prop_assert!(!term.is_empty() && term.len() <= MAX_TERM_BYTES);
            *expected.entry(term).or_default() += 1;
        }
        let expected: Vec<(Box<str>, u32)> = expected.into_iter().map(|(term, count)| (term.into(), count)).collect();
        let mut analyzer = Analyzer::new();
        prop_assert_eq!(&analyzer.counts(&text), &expected);
        // What the analyzer keeps from one text does not change the next.
        prop_assert_eq!(&analyzer.counts(&text), &expected);
    }

    #[test]
    fn spelling_by_case_and_normal_form_does_not_matter_for_a_word(word in "[a-zà-öα-ωа-я]{1,12}") {
        prop_assert_eq!(terms(&word.nfd().collect::<String>()), terms(&word));
        // Not so for stop words: in capitals they are taken for acronyms.
        let mut bare = String::new();
        word.chars().for_each(|character| fold::fold_into(character, &mut bare));
        if !is_stop_word(&bare) {
            prop_assert_eq!(terms(&word.to_uppercase()), terms(&word));
        }
    }
}

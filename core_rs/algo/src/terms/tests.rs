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
}

#[test]
fn contractions_lose_what_they_add() {
    assert_same(&["Ann", "Ann's", "Ann’s", "ANN'S"]);
    assert_eq!(
        terms("They're here and I don't, can't, won’t see Bob's dog"),
        ["see", "bob", "dog"]
    );
    assert_eq!(terms("O'Brien"), ["o", "brien", "obrien"]);
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
        terms("3.14 1,000,000.50 12,34"),
        ["3.14", "1000000.50", "12", "34"]
    );
    assert_eq!(terms("2.5kg"), ["2.5", "kg", "2.5kg"]);
    assert_shares("5 kg", "a 5kg bag", "kg");
    assert_shares("10am", "at 10 am sharp", "10");
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
        1
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
    assert_eq!(terms("コーヒーを"), ["コー", "ーヒ", "ヒー", "ーを"]);
    assert_same(&["アイス", "ｱｲｽ"]);
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

proptest! {
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
        if terms(&format!("{word} zebra")).len() == 2 {
            prop_assert_eq!(terms(&word.to_uppercase()), terms(&word));
        }
    }
}

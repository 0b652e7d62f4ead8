//! What the wording of a query tells before anything is searched: whom or what it names, whether it asks about the
//! past, and how much of it is written in Han, kana or Hangul.
//!
//! These are rules about writing and grammar, the same for every namespace; they look at nothing but the text.

/// Words and phrases that ask about what was, and not about what is: such a question wants no newer value.
/// With the spaces around them, as they are looked for.
const PAST: &[&str] = &[
    " ago ",
    " before ",
    " did ",
    " earlier ",
    " first ",
    " formerly ",
    " had ",
    " initially ",
    " originally ",
    " previous ",
    " previously ",
    " used to ",
    " was ",
    " were ",
    " yesterday ",
];

/// The same in scripts that put no spaces between words.
const PAST_UNSPACED: &[&str] = &[
    "之前",
    "以前",
    "从前",
    "從前",
    "原来",
    "原來",
    "原先",
    "最初",
    "当初",
    "當初",
    "当时",
    "當時",
    "曾经",
    "曾經",
    "昨天",
    "上次",
    "第一次",
    "前に",
    "最初",
    "以前",
    "昔",
    "だった",
    "でした",
    "전에",
    "예전",
    "처음",
    "원래",
    "했던",
];

/// Whether a question is about the past.
#[must_use]
pub fn asks_about_the_past(query: &str) -> bool {
    let mut spaced = " ".to_owned();
    for (_, word) in words(query) {
        spaced.extend(word.chars().flat_map(char::to_lowercase));
        spaced.push(' ');
    }
    PAST.iter().any(|past| spaced.contains(past))
        || PAST_UNSPACED.iter().any(|past| query.contains(past))
}

/// The words of a query that name something: those with a digit, those with a capital inside (`iPad`, `NASA`), and those
/// with a capital in front that do not begin a sentence. A query in which every word has a capital names nothing by it.
pub fn names(query: &str) -> impl Iterator<Item = &str> {
    let cased = || words(query).filter(|(_, word)| word.chars().any(char::is_alphabetic));
    let titled = cased().count() > 1
        && cased().all(|(_, word)| word.chars().next().is_some_and(char::is_uppercase));
    words(query)
        .filter(move |(start, word)| {
            let mut characters = word.chars();
            let first = characters.next().is_some_and(char::is_uppercase);
            let inside = characters.clone().any(char::is_uppercase);
            word.chars().any(char::is_numeric)
                || (!titled && inside)
                || (!titled && first && *word != "I" && !begins_sentence(&query[..*start]))
        })
        .map(|(_, word)| word)
}

/// The words of a query that are written like identifiers: parts joined by `_`, `-`, `.`, `/`, `:`, `@` or `\\`, or with a
/// capital after a small letter.
pub fn identifiers(query: &str) -> impl Iterator<Item = &str> {
    query
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .map(|word| word.split(['\'', '’']).next().unwrap_or_default())
        .filter(|word| {
            let joined = word.contains(['_', '-', '.', '/', ':', '@', '\\']);
            let humped = word
                .chars()
                .zip(word.chars().skip(1))
                .any(|(a, b)| a.is_alphabetic() && b.is_uppercase());
            joined || (humped && word.chars().any(char::is_lowercase))
        })
}

/// The share of the letters and digits of a query that are Han, kana or Hangul, 0..1.
#[must_use]
pub fn cjk_share(query: &str) -> f32 {
    if query.is_ascii() {
        return 0.0;
    }
    let (mut all, mut cjk) = (0u32, 0u32);
    for character in query.chars().filter(|c| c.is_alphanumeric()) {
        all += 1;
        cjk += u32::from(matches!(
            character,
            '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{3ffff}'
        ));
    }
    cjk as f32 / all.max(1) as f32
}

/// Runs of letters, digits and marks between them, with where they start.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.char_indices()
        .filter(move |(at, c)| is_part(*c) && !text[..*at].chars().next_back().is_some_and(is_part))
        .map(move |(at, _)| {
            let rest = &text[at..];
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            (at, &rest[..end])
        })
}

fn begins_sentence(before: &str) -> bool {
    let before = before.trim_end_matches(|c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '“' | '‘' | '(' | '[' | '*' | '-')
    });
    before
        .chars()
        .next_back()
        .is_none_or(|c| matches!(c, '.' | '!' | '?' | '…' | ':' | '。' | '！' | '？'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(query: &str) -> Vec<&str> {
        names(query).collect()
    }

    #[test]
    fn names_are_capitals_inside_a_sentence_and_words_with_digits() {
        assert_eq!(
            named("What did Karen and McDonald buy for the iPad in 2023?"),
            ["Karen", "McDonald", "iPad", "2023"]
        );
        assert_eq!(named("Where does she live? In Paris, I think."), ["Paris"]);
        assert_eq!(named("what is E1042"), ["E1042"]);
        assert_eq!(named("which NASA probe"), ["NASA"]);
        assert_eq!(named("王芳喜欢吃什么？"), [""; 0]);
    }

    #[test]
    fn a_title_names_nothing_by_its_capitals() {
        assert_eq!(named("Best Aisle Seats On Trains"), [""; 0]);
        assert_eq!(named("WHERE IS MY HAT"), [""; 0]);
        assert_eq!(named("ORDER 17 IS LATE"), ["17"]);
    }

    #[test]
    fn identifiers_have_parts() {
        let query = "Why does get_user_name fail in src/app.py (HTTPServer v2.3.1), not in NASA's well-known?";
        assert_eq!(
            identifiers(query).collect::<Vec<_>>(),
            [
                "get_user_name",
                "src/app.py",
                "HTTPServer",
                "v2.3.1",
                "well-known"
            ]
        );
    }

    #[test]
    fn the_past_is_asked_for_by_its_words() {
        for past in [
            "Where did I live?",
            "What was it, originally?",
            "where I used to live",
            "我之前住在哪里？",
            "最初の住所",
        ] {
            assert!(asks_about_the_past(past), "{past}");
        }
        for present in [
            "Where do I live?",
            "What is the address?",
            "a wash of colour",
            "我住在哪里？",
            "",
        ] {
            assert!(!asks_about_the_past(present), "{present}");
        }
    }

    #[test]
    fn the_share_of_a_script_is_of_letters() {
        assert!((cjk_share("用Python写, 脚本!") - 0.4).abs() < 1e-6);
        assert_eq!(cjk_share("?!").to_bits(), 0f32.to_bits());
        assert_eq!(cjk_share("東京").to_bits(), 1f32.to_bits());
    }

    proptest! {
        #[test]
        fn any_text_has_an_answer(query in "\\PC{0,80}") {
            for name in names(&query) {
                prop_assert!(query.contains(name) && !name.is_empty());
            }
            let _ = asks_about_the_past(&query);
            prop_assert!((0.0..=1.0).contains(&cjk_share(&query)));
        }
    }
}

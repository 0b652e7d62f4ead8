//! Whether two texts state the same.

use unicode_normalization::UnicodeNormalization;

/// Words without which a statement is the same.
const ARTICLES: [&str; 3] = ["a", "an", "the"];

/// Whether two texts have the same words in the same order, but for case, width, articles, white space, and punctuation
/// at the ends of words.
///
/// Nothing that could change the meaning is passed over: numbers and identifiers to the last digit, signs, symbols of
/// currencies, negations and the order of words.
#[must_use]
pub fn same_statement(a: &str, b: &str) -> bool {
    a == b || words(a).eq(words(b))
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let folded: String = text.nfkc().flat_map(char::to_lowercase).collect();
    let words: Vec<String> = folded
        .split(|c: char| c.is_whitespace() || is_wide_punctuation(c))
        .map(|word| word.trim_matches(is_punctuation))
        .filter(|word| !word.is_empty() && !ARTICLES.contains(word))
        .map(str::to_owned)
        .collect();
    words.into_iter()
}

fn is_punctuation(c: char) -> bool {
    matches!(
        c,
        '.' | ','
            | ';'
            | ':'
            | '!'
            | '?'
            | '"'
            | '\''
            | '('
            | ')'
            | '['
            | ']'
            | '…'
            | '“'
            | '”'
            | '‘'
            | '’'
            | '`'
    )
}

/// Stands between words that have no spaces.
fn is_wide_punctuation(c: char) -> bool {
    matches!(
        c,
        '。' | '、' | '「' | '」' | '『' | '』' | '《' | '》' | '·'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn writing_makes_no_difference() {
        for (a, b) in [
            ("The seat is 12A.", "the seat is 12a!"),
            ("I like  tea", "I like tea."),
            (
                "She lives in the \"White House\"",
                "she lives in a White House",
            ),
            ("ＡＢＣ　１２３", "abc 123"),
            ("我喜欢喝茶。", "我喜欢喝茶"),
            ("", " . "),
        ] {
            assert!(same_statement(a, b), "{a} / {b}");
        }
    }

    #[test]
    fn meaning_does() {
        for (a, b) in [
            (
                "Order ORD-2024-00017 is late",
                "Order ORD-2024-00018 is late",
            ),
            ("I like tea", "I do not like tea"),
            ("Ann paid Bob", "Bob paid Ann"),
            ("turn the light on", "turn the light off"),
            ("it is -5 degrees", "it is 5 degrees"),
            ("pay $5", "pay €5"),
            ("version 3.5", "version 35"),
            ("我喜欢喝茶", "我不喜欢喝茶"),
            ("tea", "tea and coffee"),
        ] {
            assert!(!same_statement(a, b), "{a} / {b}");
        }
    }

    proptest! {
        #[test]
        fn is_an_equivalence(a in "[a-c .,!A-C]{0,12}", b in "[a-c .,!A-C]{0,12}", c in "[a-c .,!A-C]{0,12}") {
            prop_assert!(same_statement(&a, &a));
            prop_assert_eq!(same_statement(&a, &b), same_statement(&b, &a));
            if same_statement(&a, &b) && same_statement(&b, &c) {
                prop_assert!(same_statement(&a, &c));
            }
        }
    }
}

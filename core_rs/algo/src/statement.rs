//! What a text states, by which texts that state the same are known.

use unicode_normalization::UnicodeNormalization;

/// Words without which a statement is the same.
const ARTICLES: [&str; 3] = ["a", "an", "the"];

/// What a text states: its words in their order, without what makes no difference to it: case, width, articles, white
/// space, and punctuation at the ends of words. Two texts state the same when these are equal.
///
/// Nothing that could change the meaning is passed over: numbers and identifiers to the last digit, signs, symbols of
/// currencies, negations and the order of words. A text without a word states itself.
#[must_use]
pub fn statement(text: &str) -> String {
    let folded: String = text.nfkc().flat_map(char::to_lowercase).collect();
    let mut statement = String::with_capacity(folded.len());
    let words = folded
        .split(|c: char| c.is_whitespace() || is_wide_punctuation(c))
        .map(|word| word.trim_matches(is_punctuation))
        .filter(|word| !word.is_empty() && !ARTICLES.contains(word));
    for word in words {
        if !statement.is_empty() {
            statement.push(' ');
        }
        statement.push_str(word);
    }
    if statement.is_empty() {
        folded
    } else {
        statement
    }
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

    fn same_statement(a: &str, b: &str) -> bool {
        statement(a) == statement(b)
    }

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
            ("?!", "..."),
        ] {
            assert!(!same_statement(a, b), "{a} / {b}");
        }
    }

    proptest! {
        #[test]
        fn stating_it_again_changes_nothing(text in "\\PC{0,40}") {
            let once = statement(&text);
            // Not for what has no word, nor where folding makes new characters to fold (a dotted capital I).
            if once.split(' ').all(|word| word.chars().any(char::is_alphanumeric)) && once.is_ascii() {
                prop_assert_eq!(statement(&once), once);
            }
        }

        #[test]
        fn words_and_their_order_are_what_counts(
            words in proptest::collection::vec("[b-z0-9$-]{1,6}", 1..8), marks in "[.,!?;:]{1,3}",
        ) {
            let plain = words.join(" ");
            let written = words.join(&format!("{marks} The  ")).to_uppercase();
            prop_assert!(same_statement(&plain, &written), "{} / {}", plain, written);
            let mut other = words.clone();
            other.rotate_left(1);
            prop_assert_eq!(same_statement(&plain, &other.join(" ")), other == words);
        }
    }
}

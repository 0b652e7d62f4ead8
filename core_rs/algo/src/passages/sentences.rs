//! Finding the ends of sentences in English and CJK text, lists, code and JSON.
//!
//! The rules follow UAX #29 where it decides well by characters alone, and add what it lacks: abbreviations, initials
//! and numbers of list items. Every new line ends a sentence, which keeps list items and lines of code apart.

use super::Span;
use crate::protect::is_wide;

/// Abbreviations after which a sentence goes on.
const OPEN_ABBREVIATIONS: [&str; 24] = [
    "mr", "mrs", "ms", "dr", "prof", "st", "mt", "gen", "col", "capt", "lt", "sgt", "rev", "hon",
    "gov", "sen", "vs", "cf", "al", "approx", "eg", "ie", "viz", "messrs",
];

/// Abbreviations after which a sentence goes on if a number follows.
const NUMBER_ABBREVIATIONS: [&str; 27] = [
    "no", "nos", "fig", "figs", "eq", "vol", "pp", "p", "sec", "ch", "art", "tel", "ext", "jan",
    "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "ver", "approx",
];

/// The sentences of `text` in order, without white space at their ends. What lies between them is white space.
pub(crate) fn sentences(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut start = 0;
    let mut position = 0;
    let mut close = |end: usize, next: usize| {
        let span = Span::trimmed(text, start, end);
        if span.start < span.end {
            spans.push(span);
        }
        start = next;
    };
    let mut line_start = 0;
    while let Some(character) = text[position..].chars().next() {
        let next = position + character.len_utf8();
        if is_line_end(character) {
            close(position, next);
            line_start = next;
            position = next;
        } else if is_wide_end(character) || matches!(character, '.' | '!' | '?' | '…') {
            let end = after_closers(text, next);
            let is_end = text[position..end].chars().any(is_wide_end)
                || ends_latin(
                    &text[line_start..position],
                    character,
                    &text[next..end],
                    &text[end..],
                );
            if is_end {
                close(end, end);
            }
            position = end;
        } else {
            position = next;
        }
    }
    close(text.len(), text.len());
    spans
}

pub(crate) fn is_line_end(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// A mark that ends a sentence without a space after it.
fn is_wide_end(character: char) -> bool {
    matches!(character, '。' | '！' | '？' | '｡')
}

/// The position after more end marks and closing quotes and brackets.
fn after_closers(text: &str, from: usize) -> usize {
    let is_closer = |c: char| {
        is_wide_end(c)
            || matches!(
                c,
                '.' | '!'
                    | '?'
                    | '…'
                    | '"'
                    | '\''
                    | ')'
                    | ']'
                    | '}'
                    | '”'
                    | '’'
                    | '»'
                    | '」'
                    | '』'
                    | '）'
                    | '】'
                    | '》'
            )
    };
    let mut characters = text[from..].char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        // As of `.5`.
        let begins_number = character == '.'
            && characters
                .peek()
                .is_some_and(|(_, next)| next.is_ascii_digit());
        if begins_number || !is_closer(character) {
            return from + at;
        }
    }
    text.len()
}

/// Whether the end mark after `before` (the line up to it), followed by `closers`, ends a sentence.
fn ends_latin(before: &str, mark: char, closers: &str, after: &str) -> bool {
    let Some(first) = after.chars().next() else {
        return true;
    };
    if !first.is_whitespace() {
        return false;
    }
    // A mark before a new line ends the sentence at the line.
    let following = after
        .trim_start_matches(|c: char| c.is_whitespace() && !is_line_end(c))
        .chars()
        .next();
    if following.is_some_and(char::is_lowercase) {
        return false;
    }
    mark != '.' || !closers.is_empty() || !is_open(before, following)
}

/// Whether a full stop after `before` belongs to its last word.
fn is_open(before: &str, following: Option<char>) -> bool {
    let word_start = before
        .rfind(|c: char| (!c.is_alphanumeric() && c != '.') || is_wide(c))
        .map_or(0, |at| {
            at + before[at..].chars().next().map_or(1, char::len_utf8)
        });
    let word = &before[word_start..];
    if word.is_empty() || word.len() > 12 {
        return false;
    }
    // The number of a list item.
    if word.len() <= 3
        && before[..word_start].trim_end().is_empty()
        && word.bytes().all(|byte| byte.is_ascii_digit())
    {
        return true;
    }
    // Initials, and abbreviations such as `e.g.` and `U.S.`
    let is_initials = word
        .split('.')
        .all(|part| part.len() == 1 && part.bytes().all(|byte| byte.is_ascii_alphabetic()));
    if is_initials && word != "I" {
        return true;
    }
    let lower = word.to_ascii_lowercase();
    OPEN_ABBREVIATIONS.contains(&lower.as_str())
        || (NUMBER_ABBREVIATIONS.contains(&lower.as_str())
            && following.is_some_and(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        sentences(text)
            .into_iter()
            .map(|span| span.of(text))
            .collect()
    }

    #[test]
    fn marks_end_sentences() {
        assert_eq!(
            split("One. Two! Three? Four… Five"),
            ["One.", "Two!", "Three?", "Four…", "Five"]
        );
        assert_eq!(
            split("He said \"Stop.\" Then he left."),
            ["He said \"Stop.\"", "Then he left."]
        );
        assert_eq!(
            split("(It was late.) We left."),
            ["(It was late.)", "We left."]
        );
        assert_eq!(
            split("你好。今天（星期五）很好！”他说。"),
            ["你好。", "今天（星期五）很好！”", "他说。"]
        );
    }

    #[test]
    fn marks_inside_numbers_names_and_abbreviations_do_not() {
        for whole in [
            "It costs 3.14 or v2.3.1 from https://example.com/a.b?c now",
            // No space stands before it in Chinese.
            "请问Dr. Jones在吗？",
            "Dr. Smith met J. R. Jones and Mrs. Lee vs. Co.",
            "See e.g. Figure 2, i.e. No. 5 of Fig. 7",
            "We met Jan. 5 in the U.S. Senate",
            "\"What?\" he said",
            "1. First item",
            "wait... what",
        ] {
            assert_eq!(split(whole), [whole]);
        }
        assert_eq!(split("I said no. You left."), ["I said no.", "You left."]);
        assert_eq!(split("一半。.5不"), ["一半。", ".5不"]);
        assert_eq!(split("It was I. Now go."), ["It was I.", "Now go."]);
    }

    #[test]
    fn new_lines_end_sentences() {
        assert_eq!(
            split("- first item\n- second item\r\n\n```\nlet x = 1;\n```"),
            ["- first item", "- second item", "```", "let x = 1;", "```"]
        );
        assert_eq!(
            split("{\n  \"a\": 1.5,\n  \"b\": [\n"),
            ["{", "\"a\": 1.5,", "\"b\": ["]
        );
    }

    #[test]
    fn nothing_but_white_space_has_no_sentence() {
        assert!(split(" \n \u{3000}").is_empty());
        assert_eq!(split("..."), ["..."]);
    }
}

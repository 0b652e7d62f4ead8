//! Cutting a line to a number of tokens at a place where it does no harm.

use std::ops::Range;

use super::ENCODING;
use crate::passages::{is_clause_end, joins};
use crate::protect::{Kind, MAX_PROTECTED_BYTES, Protected, protected};

const ELLIPSIS: &str = "…";
/// No token of the vocabulary is longer, in bytes.
const MAX_TOKEN_BYTES: usize = 128;
/// A stretch of this many bytes without a place to cut may be cut anywhere.
const LONG_WORD: usize = 40;

/// `text` with each run of white space and control characters as one space, and none at its ends.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
    {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// The start of `line` in at most `max_tokens` tokens, with an ellipsis for what is left out.
///
/// The cut is after a sentence or a clause if one ends in the second half of what fits, else between words, and only
/// within a word if that is very long. It is never inside a protected part, nor right after a negation or a condition,
/// whose meaning lies in what follows. A protected part at the start that does not fit is left out as a whole. If nothing
/// can be kept by these rules, the ellipsis is all there is.
pub(super) fn cut(line: &str, max_tokens: u32) -> String {
    if ENCODING.count_within(line, max_tokens).is_some() {
        return line.to_owned();
    }
    // All that can fit, and enough after it to see the whole of a protected part at its end.
    let reach = max_tokens as usize * MAX_TOKEN_BYTES + 2 * MAX_PROTECTED_BYTES;
    let whole_length = line.len();
    let line = &line[..floor_char_boundary(line, reach)];
    let spans = protected(line);
    let mut start = 0;
    let mut room = max_tokens;
    // Each round gives up a token or leaves out a protected part, of which only so many can be tried.
    while room > 0 {
        let end = start + ENCODING.prefix(&line[start..], room).len();
        // All the rest fits after a part that was left out, if only with the mark for that.
        let place = if end == whole_length {
            Some(end)
        } else {
            place(line, start, end, &spans)
        };
        match place {
            Some(end) => {
                let result = finished(&line[start..end], start > 0, end < whole_length);
                if ENCODING.count_within(&result, max_tokens).is_some() {
                    return result;
                }
                room -= 1;
            }
            None => match spans.iter().find(|part| part.span.end as usize > start) {
                Some(part) if part.span.start as usize <= end && !is_operator(part) => {
                    start = part.span.end as usize;
                    start += line[start..].len()
                        - line[start..]
                            .trim_start_matches([' ', ',', ';', ':', '.'])
                            .len();
                }
                _ => break,
            },
        }
    }
    if max_tokens > 0 {
        ELLIPSIS.to_owned()
    } else {
        String::new()
    }
}

/// A line in parts of at most `max_tokens` tokens, cut by the same rule, in order. A protected part that is longer is in
/// none of them.
pub(super) fn parts(line: &str, max_tokens: u32) -> Vec<Range<usize>> {
    let spans = protected(line);
    let mut spans = spans.as_slice();
    let mut found = Vec::new();
    let mut start = 0;
    while start < line.len() {
        let passed = spans.partition_point(|part| part.span.end as usize <= start);
        spans = &spans[passed..];
        let end = start + ENCODING.prefix(&line[start..], max_tokens).len();
        let place = if end == line.len() {
            Some(end)
        } else {
            place(line, start, end, spans)
        };
        let next = match (place, spans.first()) {
            (Some(place), _) => {
                found.push(start..start + line[start..place].trim_end().len());
                place
            }
            (None, Some(part)) if part.span.start as usize <= end && !is_operator(part) => {
                part.span.end as usize
            }
            // What follows would say something else without what comes before it.
            _ => break,
        };
        start = next + line[next..].len() - line[next..].trim_start().len();
    }
    found
}

/// The kept part with marks where something was left out.
pub(super) fn finished(kept: &str, starts_late: bool, ends_early: bool) -> String {
    let kept = kept.trim_end();
    let is_sentence = kept.ends_with(['.', '!', '?', '。', '！', '？']) && !ends_in_ordinal(kept);
    let (kept, after) = if is_sentence || !ends_early {
        (kept, "")
    } else {
        let bare = kept.trim_end_matches([
            ' ', ',', ';', ':', '-', '–', '—', '(', '，', '；', '：', '、', '（',
        ]);
        (bare, ELLIPSIS)
    };
    let (before, space) = if starts_late {
        (ELLIPSIS, " ")
    } else {
        ("", "")
    };
    format!("{before}{space}{kept}{after}")
}

/// Whether a full stop after a digit ends the text, which may be the number of a list item.
fn ends_in_ordinal(text: &str) -> bool {
    text.strip_suffix('.')
        .is_some_and(|text| text.ends_with(|c: char| c.is_ascii_digit()))
}

/// The best place to cut `line[start..]` at or before `end`, if there is any after `start`.
fn place(line: &str, start: usize, end: usize, spans: &[Protected]) -> Option<usize> {
    let (mut clause, mut word, mut hard) = (None, None, None);
    let mut parts = spans
        .iter()
        .skip_while(|part| part.span.end as usize <= start)
        .peekable();
    let mut previous: Option<char> = None;
    // The end of a negation or a condition with only spaces after it so far.
    let mut dangling = false;
    for (offset, character) in line[start..].char_indices() {
        let at = start + offset;
        if at > end {
            break;
        }
        while let Some(part) = parts.next_if(|part| part.span.end as usize <= at) {
            dangling = is_operator(part);
        }
        let is_inside = parts
            .peek()
            .is_some_and(|part| (part.span.start as usize) < at);
        if let Some(before) = previous
            && !is_inside
            && !dangling
        {
            if is_clause_end(before, character) && !ends_in_ordinal(&line[start..at]) {
                clause = Some(at);
            }
            if character.is_whitespace() || is_wide(before) || is_wide(character) {
                word = Some(at);
            }
            if !joins(before, character) {
                hard = Some(at);
            }
        }
        if !character.is_whitespace() && !is_inside {
            dangling = false;
        }
        previous = Some(character);
    }
    let first_after =
        |position: Option<usize>, least: usize| position.filter(|&at| at > start + least);
    first_after(clause, (end - start) / 2)
        .or(word)
        .or_else(|| first_after(hard, LONG_WORD.min(end - start) / 2))
}

/// The last position at or before `at` that is between two characters of `text`.
fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

/// Whether the meaning of the part lies in what follows it.
fn is_operator(part: &Protected) -> bool {
    matches!(part.kind, Kind::Negation | Kind::Condition)
}

/// Characters between which a line may be broken.
fn is_wide(character: char) -> bool {
    matches!(character, '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

//! Cutting long texts into passages of a few sentences, which are indexed, ranked and quoted one by one.
//!
//! A long memory says many things; one vector and one set of postings for all of it drown each of them. Passages must
//! lose nothing: every character that is not white space belongs to exactly one.

mod sentences;

use unicode_normalization::char::is_combining_mark;

pub(crate) use sentences::sentences;

/// The size of passages in characters that the index uses.
pub const PASSAGE_CHARS: usize = 250;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    /// The part of `text`, which must be the text that the span was made from.
    pub fn of(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }

    /// `start..end` of `text` without white space at its ends.
    pub(crate) fn trimmed(text: &str, start: usize, end: usize) -> Self {
        let part = &text[start..end];
        let trimmed = part.trim_start();
        let start = start + part.len() - trimmed.len();
        Self::new(start, start + trimmed.trim_end().len())
    }
}

/// The passages of `text`: whole sentences, packed to about `target_chars` characters.
///
/// There is at least one. A text of at most one and a half times the target is one passage, and no passage is longer
/// than that; a sentence that is gets split after a clause, at a space, or else between two characters. Passages are in
/// text order, do not overlap, have no white space at their ends, and leave out nothing but white space. A text of white
/// space has one empty passage.
pub fn passages(text: &str, target_chars: usize) -> Vec<Span> {
    let target = target_chars.max(1);
    let limit = target + target / 2;
    let whole = Span::trimmed(text, 0, text.len());
    if whole.of(text).chars().nth(limit).is_none() {
        return vec![whole];
    }
    let mut units = Vec::new();
    for sentence in sentences(text) {
        split_long(text, sentence, target, limit, &mut units);
    }
    let mut packed: Vec<Passage> = Vec::new();
    for unit in units {
        let chars = unit.of(text).chars().count();
        if let Some(last) = packed.last_mut() {
            let joined = last.chars
                + text[last.span.end as usize..unit.start as usize]
                    .chars()
                    .count()
                + chars;
            let is_fragment = last.chars < target / 4;
            if joined <= target || (is_fragment && joined <= limit) {
                *last = Passage {
                    span: Span {
                        start: last.span.start,
                        end: unit.end,
                    },
                    chars: joined,
                };
                continue;
            }
        }
        packed.push(Passage { span: unit, chars });
    }
    // A fragment at the end joins what stands before it.
    if let [.., before, last] = packed.as_mut_slice() {
        let joined = before.chars
            + text[before.span.end as usize..last.span.start as usize]
                .chars()
                .count()
            + last.chars;
        if last.chars < target / 4 && joined <= limit {
            before.span.end = last.span.end;
            packed.pop();
        }
    }
    packed.into_iter().map(|passage| passage.span).collect()
}

struct Passage {
    span: Span,
    chars: usize,
}

/// Appends `sentence` to `units`, in parts of at most `target` characters if it is longer than `limit`.
fn split_long(text: &str, sentence: Span, target: usize, limit: usize, units: &mut Vec<Span>) {
    let mut rest = sentence;
    while rest.of(text).chars().nth(limit).is_some() {
        let cut = rest.start as usize + cut_position(rest.of(text), target);
        units.push(Span::trimmed(text, rest.start as usize, cut));
        rest = Span::trimmed(text, cut, rest.end as usize);
    }
    if rest.start < rest.end {
        units.push(rest);
    }
}

/// Where to cut a text that is longer than `target` characters: after the last clause in the second half of them, else at
/// a space in the last three quarters, else between two characters that are not shown as one.
fn cut_position(text: &str, target: usize) -> usize {
    let (mut clause, mut space, mut cluster, mut hard) = (None, None, None, text.len());
    for (index, ((_, character), (next_at, next))) in text
        .char_indices()
        .zip(text.char_indices().skip(1))
        .enumerate()
    {
        let taken = index + 1;
        if 2 * taken >= target && is_clause_end(character, next) {
            clause = Some(next_at);
        }
        if 4 * taken >= target && character.is_whitespace() {
            space = Some(next_at);
        }
        if taken + MAX_CLUSTER > target && !joins(character, next) {
            cluster = Some(next_at);
        }
        if taken == target {
            hard = next_at;
            break;
        }
    }
    clause.or(space).or(cluster).unwrap_or(hard)
}

/// Longer runs of combining characters are split like any others.
const MAX_CLUSTER: usize = 16;

/// Whether a clause ends between the two characters.
pub(crate) fn is_clause_end(character: char, next: char) -> bool {
    matches!(character, '，' | '；' | '：' | '、' | '。' | '！' | '？')
        || (matches!(character, ',' | ';' | ':' | '.' | '!' | '?' | '…') && next.is_whitespace())
}

/// Whether two characters are shown as one, as far as that is cheap to tell.
pub(crate) fn joins(character: char, next: char) -> bool {
    const JOINER: char = '\u{200d}';
    let is_flag_letter = |c: char| matches!(c, '\u{1f1e6}'..='\u{1f1ff}');
    character == JOINER
        || next == JOINER
        || matches!(next, '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}')
        || (is_flag_letter(character) && is_flag_letter(next))
        || is_combining_mark(next)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str, target: usize) -> Vec<&str> {
        passages(text, target)
            .into_iter()
            .map(|span| span.of(text))
            .collect()
    }

    #[test]
    fn short_texts_stay_whole() {
        assert_eq!(texts("", 10), [""]);
        assert_eq!(texts(" \n\t ", 10), [""]);
        assert_eq!(texts("  One. Two. Three. ", 20), ["One. Two. Three."]);
        assert_eq!(texts(&"a".repeat(375), PASSAGE_CHARS).len(), 1);
        assert_eq!(texts(&"a".repeat(376), PASSAGE_CHARS).len(), 2);
    }

    #[test]
    fn sentences_are_packed_up_to_the_target() {
        let text = "The first is here. The second is here. The third is here. The fourth is here.";
        assert_eq!(
            texts(text, 40),
            [
                "The first is here. The second is here.",
                "The third is here. The fourth is here."
            ]
        );
        assert_eq!(
            texts("我今天去了北京。天气很好！你呢？我们明天见。", 10),
            ["我今天去了北京。", "天气很好！你呢？", "我们明天见。"]
        );
    }

    #[test]
    fn long_sentences_are_cut_after_a_clause_then_at_a_space_then_anywhere() {
        assert_eq!(
            texts("one two three, four five six seven eight", 20),
            ["one two three,", "four five six seven eight"]
        );
        assert_eq!(
            texts("one two three four five six seven eight", 16),
            ["one two three", "four five six", "seven eight"]
        );
        assert_eq!(texts(&"x".repeat(30), 12), ["x".repeat(12), "x".repeat(18)]);
    }

    #[test]
    fn hard_cuts_do_not_split_what_is_shown_as_one_character() {
        let family = "👩\u{200d}👩\u{200d}👧";
        assert_eq!(
            texts(&family.repeat(4), 7),
            [family, family, &family.repeat(2)]
        );
        let accents = "e\u{301}".repeat(20);
        assert!(texts(&accents, 7).iter().all(|part| part.starts_with('e')));
        assert!(
            texts(&"\u{301}".repeat(100), 20).len() > 2,
            "a run of marks alone is cut all the same"
        );
    }

    #[test]
    fn a_short_end_joins_the_passage_before() {
        let text = format!("{}. {}. Yes.", "a".repeat(30), "b".repeat(30));
        assert_eq!(
            texts(&text, 32),
            [
                format!("{}.", "a".repeat(30)),
                format!("{}. Yes.", "b".repeat(30))
            ]
        );
    }

    proptest! {
        #[test]
        fn passages_cover_the_text_in_order(text in "([a-zA-Z]{1,12}|中文|。|[.!?,;:] |\n| |\u{301}|👩\u{200d}👧|\u{3000}|1\\.5){0,120}", target in 0_usize..60) {
            let spans = passages(&text, target);
            prop_assert!(!spans.is_empty());
            let limit = target.max(1) + target.max(1) / 2;
            let mut end = 0;
            for span in &spans {
                let part = span.of(&text);
                prop_assert_eq!(part, part.trim());
                prop_assert!(part.chars().count() <= limit);
                prop_assert!(text[end..span.start as usize].trim().is_empty());
                prop_assert!(spans.len() == 1 || !part.is_empty());
                end = span.end as usize;
            }
            prop_assert!(text[end..].trim().is_empty());
        }
    }
}

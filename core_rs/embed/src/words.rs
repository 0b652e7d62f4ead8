//! Words to rows by `WordPiece`: the longest known prefix, then the longest known continuations.
//!
//! Wu et al. (2016), "Google's Neural Machine Translation System", section 4.1; the greedy longest-match
//! decoding as in BERT. A word that cannot be split completely gives nothing: half a word misleads.

use crate::trie::Trie;

/// Longest word, in characters. Longer ones are hashes, base64 or keys, whose pieces would say nothing and
/// outweigh the words around them.
pub(crate) const MAX_WORD: usize = 100;

/// Starts a vocabulary entry that continues a word.
const CONTINUES: &str = "##";

/// The `WordPiece` vocabulary.
#[derive(Default)]
pub(crate) struct Words {
    heads: Trie,
    continuations: Trie,
}

impl Words {
    /// Adds an entry that is not empty. False if it is there already.
    pub fn insert(&mut self, entry: &str, row: u32) -> bool {
        // "##" alone is an ordinary entry: there is no empty continuation.
        match entry.strip_prefix(CONTINUES) {
            Some(rest) if !rest.is_empty() => self.continuations.insert(rest, row),
            _ => self.heads.insert(entry, row),
        }
    }

    /// Appends the rows of one word, or nothing if it is too long or not in the vocabulary.
    pub fn split(&self, word: &[char], rows: &mut Vec<u32>) {
        if word.len() > MAX_WORD {
            return;
        }
        let before = rows.len();
        let mut rest = word;
        let mut trie = &self.heads;
        while !rest.is_empty() {
            let Some((length, row)) = trie.matches(rest).last() else {
                rows.truncate(before);
                return;
            };
            rows.push(row);
            rest = &rest[length..];
            trie = &self.continuations;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::*;

    const NO_ROWS: [u32; 0] = [];

    fn rows(words: &Words, word: &str) -> Vec<u32> {
        let mut rows = vec![7];
        words.split(&word.chars().collect::<Vec<_>>(), &mut rows);
        assert_eq!(rows.remove(0), 7, "rows before the word are kept");
        rows
    }

    fn vocabulary(entries: &[&str]) -> Words {
        let mut words = Words::default();
        for (row, entry) in (0..).zip(entries) {
            assert!(words.insert(entry, row), "{entry} is new");
        }
        words
    }

    #[test]
    fn the_longest_prefix_wins() {
        let words = vocabulary(&["un", "unaff", "##aff", "##able", "##a", "#", "##"]);
        assert_eq!(rows(&words, "unaffable"), [1, 3]);
        assert_eq!(rows(&words, "unaa"), [0, 4, 4]);
        assert_eq!(rows(&words, "#"), [5]);
    }

    #[test]
    fn a_word_with_an_unknown_part_gives_nothing() {
        let words = vocabulary(&["un", "##able"]);
        assert_eq!(rows(&words, "unable"), [0, 1]);
        assert_eq!(rows(&words, "unabled"), NO_ROWS);
        assert_eq!(
            rows(&words, "able"),
            NO_ROWS,
            "a continuation does not start a word"
        );
        assert_eq!(rows(&words, ""), NO_ROWS);
    }

    #[test]
    fn words_over_the_limit_are_dropped() {
        let words = vocabulary(&["\u{e9}", "##\u{e9}"]);
        assert_eq!(rows(&words, &"\u{e9}".repeat(MAX_WORD)).len(), MAX_WORD);
        assert_eq!(rows(&words, &"\u{e9}".repeat(MAX_WORD + 1)), NO_ROWS);
    }

    /// The definition, written down: from the longest candidate to the shortest, at each place.
    fn naive(vocabulary: &BTreeMap<String, u32>, word: &str) -> Vec<u32> {
        let chars: Vec<char> = word.chars().collect();
        let (mut rows, mut at) = (Vec::new(), 0);
        while at < chars.len() {
            let found = (at + 1..=chars.len()).rev().find_map(|end| {
                let mut candidate: String = chars[at..end].iter().collect();
                if at > 0 {
                    candidate.insert_str(0, CONTINUES);
                }
                Some((end, *vocabulary.get(&candidate)?))
            });
            let Some((end, row)) = found else {
                return Vec::new();
            };
            rows.push(row);
            at = end;
        }
        rows
    }

    proptest! {
        #[test]
        fn splits_as_defined(
            entries in btree_set("(##)?[ab\u{e9}]{1,4}", 0..24),
            word in "[ab\u{e9}]{0,10}",
        ) {
            let vocabulary: BTreeMap<String, u32> = entries.into_iter().zip(0..).collect();
            let mut words = Words::default();
            for (entry, &row) in &vocabulary {
                prop_assert!(words.insert(entry, row));
            }
            prop_assert_eq!(rows(&words, &word), naive(&vocabulary, &word));
        }
    }
}

//! Runs of Han, kana and hangul to rows by a unigram language model: the most probable split.
//!
//! Kudo (2018), "Subword Regularization", section 3.2: a split's probability is the product of its pieces';
//! Viterbi finds the best one in a single pass. The pass is linear because no piece is longer than the
//! vocabulary's longest. Sums are f64, as in the reference: in f32 a long run's score drowns the difference
//! between two pieces.

use crate::trie::Trie;

/// Stands at the start of a run, as in the vocabulary's pieces that start a word.
pub(crate) const BOUNDARY: char = '\u{2581}';

/// What an unknown character costs more than the least probable piece, in log-probability: always worse
/// than any split into known pieces, never impossible.
const UNKNOWN_COST: f64 = 10.0;

/// The best way to reach a place of the run: its last piece.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// Length of the piece in characters.
    length: usize,
    /// Index of the piece; none for an unknown character.
    piece: Option<u32>,
}

/// Buffers of one pass, kept between calls.
#[derive(Default)]
pub(crate) struct Lattice {
    scores: Vec<f64>,
    steps: Vec<Step>,
}

/// The unigram vocabulary.
#[derive(Default)]
pub(crate) struct Unigram {
    pieces: Trie,
    /// Row of the first piece; the others follow.
    first_row: u32,
    /// Log-probability of each piece.
    scores: Vec<f64>,
    /// Log-probability of the least probable piece, zero or less.
    lowest: f64,
    /// Index of the piece that is [`BOUNDARY`] alone. It says nothing, so it gives no row.
    boundary: Option<u32>,
}

impl Unigram {
    /// A vocabulary without pieces, whose first will be `first_row`.
    pub fn starting_at(first_row: u32) -> Self {
        Self {
            first_row,
            ..Self::default()
        }
    }

    /// Adds a piece that is not empty, with its log-probability. False if it is there already.
    pub fn insert(&mut self, piece: &str, score: f64) -> bool {
        let index = self.scores.len() as u32;
        if !self.pieces.insert(piece, index) {
            return false;
        }
        if piece.chars().eq([BOUNDARY]) {
            self.boundary = Some(index);
        }
        self.lowest = self.lowest.min(score);
        self.scores.push(score);
        true
    }

    /// Appends the rows of the best split of `run`, which starts with [`BOUNDARY`]. Unknown characters give
    /// none. Of two equal splits the one found first stays, as in the reference.
    pub fn split(&self, run: &[char], lattice: &mut Lattice, rows: &mut Vec<u32>) {
        let Lattice { scores, steps } = lattice;
        let unreached = Step {
            length: 1,
            piece: None,
        };
        scores.clear();
        scores.resize(run.len() + 1, f64::NEG_INFINITY);
        scores[0] = 0.0;
        steps.clear();
        steps.resize(run.len() + 1, unreached);

        let unknown = self.lowest - UNKNOWN_COST;
        for start in 0..run.len() {
            let score = scores[start];
            let mut offer = |length: usize, piece: Option<u32>, cost: f64| {
                if score + cost > scores[start + length] {
                    scores[start + length] = score + cost;
                    steps[start + length] = Step { length, piece };
                }
            };
            for (length, piece) in self.pieces.matches(&run[start..]) {
                offer(length, Some(piece), self.scores[piece as usize]);
            }
            offer(1, None, unknown);
        }

        let before = rows.len();
        let mut end = run.len();
        while end > 0 {
            let Step { length, piece } = steps[end];
            rows.extend(
                piece
                    .filter(|_| piece != self.boundary)
                    .map(|index| self.first_row + index),
            );
            end -= length;
        }
        rows[before..].reverse();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may stop at the first surprise")]

    use std::collections::BTreeMap;

    use proptest::collection::btree_map;
    use proptest::prelude::*;

    use super::*;

    const NO_ROWS: [u32; 0] = [];

    fn vocabulary<'a>(pieces: impl IntoIterator<Item = (&'a str, f64)>) -> Unigram {
        let mut unigram = Unigram::starting_at(100);
        for (piece, score) in pieces {
            assert!(unigram.insert(piece, score), "{piece} is new");
        }
        unigram
    }

    fn rows(unigram: &Unigram, run: &str) -> Vec<u32> {
        let run: Vec<char> = run.chars().collect();
        let mut rows = vec![7];
        unigram.split(&run, &mut Lattice::default(), &mut rows);
        assert_eq!(rows.remove(0), 7, "rows before the run are kept");
        rows
    }

    #[test]
    fn the_most_probable_split_wins() {
        let unigram = vocabulary([
            ("\u{2581}", -2.0),
            ("天", -5.0),
            ("天天", -6.0),
            ("\u{2581}天", -6.0),
        ]);
        assert_eq!(rows(&unigram, "\u{2581}天"), [103]);
        assert_eq!(
            rows(&unigram, "\u{2581}天天"),
            [102],
            "the boundary alone gives no row"
        );
        assert_eq!(rows(&unigram, "\u{2581}天天天"), [103, 102]);
    }

    #[test]
    fn unknown_characters_are_dropped() {
        let unigram = vocabulary([("天", -5.0)]);
        assert_eq!(rows(&unigram, "\u{2581}龘天龘"), [100]);
        assert_eq!(rows(&unigram, "\u{2581}龘"), NO_ROWS);
        assert_eq!(rows(&Unigram::default(), "\u{2581}天"), NO_ROWS);
    }

    /// The best score over every split, by trying all of them.
    fn best(pieces: &BTreeMap<String, f64>, unknown: f64, run: &str) -> f64 {
        let Some(first) = run.chars().next() else {
            return 0.0;
        };
        let known = pieces
            .iter()
            .filter_map(|(piece, score)| Some((score, run.strip_prefix(piece.as_str())?)))
            .map(|(score, rest)| score + best(pieces, unknown, rest));
        let skipped = unknown + best(pieces, unknown, &run[first.len_utf8()..]);
        known.fold(skipped, f64::max)
    }

    proptest! {
        /// The rows, with what was dropped counted as unknown, score as well as the best of all splits.
        /// Scores are whole numbers, so that sums in another order are equal.
        #[test]
        fn no_split_is_better(
            pieces in btree_map("[天地人]{1,3}", (-40_i32..0).prop_map(f64::from), 1..12),
            run in "[天地人龘]{0,9}",
        ) {
            let unigram = vocabulary(pieces.iter().map(|(piece, &score)| (piece.as_str(), score)));
            let strings: Vec<&String> = pieces.keys().collect();
            let unknown = unigram.lowest - UNKNOWN_COST;
            let (mut score, mut rest) = (0.0, run.as_str());
            for row in rows(&unigram, &run) {
                let piece = strings[row as usize - 100];
                let at = rest.find(piece.as_str()).expect("pieces come in the order of the text");
                score += unknown * rest[..at].chars().count() as f64 + pieces[piece];
                rest = &rest[at + piece.len()..];
            }
            score += unknown * rest.chars().count() as f64;
            prop_assert!((score - best(&pieces, unknown, &run)).abs() < 1e-9);
        }
    }
}

//! Text to rows: normalisation, then a tokenizer for each kind of script.
//!
//! 1. Characters that show nothing are dropped; then NFKC, then lower case, over the whole text.
//! 2. A text in traditional Chinese is read in simplified form, which the model knows best. What could be Japanese
//!    stays as it is: a text with kana, or without a character that Japanese has given up.
//! 3. Han, kana and hangul, in runs, go to the unigram model: they are written without spaces.
//! 4. Everything else is decomposed (NFD) and loses its nonspacing marks (accents). Letters and numbers
//!    (general categories L and N) form words; any other character stands alone. Words go to `WordPiece`.
//!
//! The reference implementation has everything but the dropping and the simplifying.
//!
//! What is not in the vocabulary gives no row. The memory used is proportional to the text; words are cut
//! off as soon as they are too long to count.

use recalld_algo::terms::{han, is_invisible};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::decompose_canonical;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::error::EmbedError;
use crate::unigram::{BOUNDARY, Lattice, Unigram};
use crate::words::{MAX_WORD, Words};

/// Raised with every change of the rows that a text gives, so that vectors of two versions are not compared.
pub(crate) const TOKENIZER_VERSION: u32 = 2;

/// Buffers of one embedding, reused by the next. It holds no result that a caller could see.
#[derive(Default)]
pub struct Scratch {
    /// The text after NFKC.
    normal: String,
    /// The word being read, at most one character longer than words may be.
    word: Vec<char>,
    /// The run being read, with its boundary mark.
    run: Vec<char>,
    lattice: Lattice,
    /// Rows found so far.
    pub(crate) rows: Vec<u32>,
    /// Whether one of them is more than a sign of punctuation.
    pub(crate) has_words: bool,
}

/// Both vocabularies; see the module.
pub(crate) struct Tokenizer {
    words: Words,
    pieces: Unigram,
}

impl Tokenizer {
    /// Reads a vocabulary: one entry a line, in the order of the rows, first `words` entries of `WordPiece`,
    /// then `pieces` lines of a piece, a tab and its log-probability. The last line ends with a line feed.
    pub fn new(vocabulary: &str, words: usize, pieces: usize) -> Result<Self, EmbedError> {
        let found = vocabulary.split_terminator('\n').count();
        if found != words + pieces {
            return Err(EmbedError::VocabularyLength {
                expected: words + pieces,
                found,
            });
        }
        let mut tokenizer = Self {
            words: Words::default(),
            pieces: Unigram::starting_at(words as u32),
        };
        for (row, line) in vocabulary.split_terminator('\n').enumerate() {
            tokenizer.insert(line, row, row < words).map_err(|reason| {
                EmbedError::VocabularyLine {
                    line: row + 1,
                    reason,
                }
            })?;
        }
        Ok(tokenizer)
    }

    fn insert(&mut self, line: &str, row: usize, is_word: bool) -> Result<(), &'static str> {
        let new = if is_word {
            if line.is_empty() {
                return Err("is empty");
            }
            self.words.insert(line, row as u32)
        } else {
            let (piece, score) = line
                .split_once('\t')
                .ok_or("has no tab and log-probability")?;
            if piece.is_empty() {
                return Err("has no piece before the tab");
            }
            let score: f64 = score
                .parse()
                .ok()
                .filter(|score| (-1e3..=0.0).contains(score))
                .ok_or("has no log-probability after the tab")?;
            self.pieces.insert(piece, score)
        };
        if new {
            Ok(())
        } else {
            Err("repeats an earlier one")
        }
    }

    /// Leaves the rows of `text`, in its order, in `scratch.rows`.
    pub fn rows(&self, text: &str, scratch: &mut Scratch) {
        scratch.rows.clear();
        scratch.has_words = false;
        scratch.word.clear();
        scratch.run.clear();
        if text.is_ascii() {
            for byte in text.bytes() {
                self.ascii(char::from(byte.to_ascii_lowercase()), scratch);
            }
        } else {
            scratch.normal.clear();
            let visible = text.chars().filter(|&c| !is_invisible(c));
            scratch.normal.extend(visible.nfkc());
            let has = |is: fn(char) -> bool| scratch.normal.chars().any(is);
            let is_traditional = has(han::is_traditional) && !has(is_kana);
            // Lower case is asked of the whole text: a final sigma depends on its neighbours.
            for c in scratch.normal.to_lowercase().chars() {
                if c.is_ascii() {
                    self.end_run(scratch);
                    self.ascii(c, scratch);
                } else if is_unspaced(c) {
                    self.end_word(scratch);
                    if scratch.run.is_empty() {
                        scratch.run.push(BOUNDARY);
                    }
                    scratch.run.push(if is_traditional {
                        han::simplified(c)
                    } else {
                        c
                    });
                } else {
                    self.end_run(scratch);
                    decompose_canonical(c, |part| self.spaced(part, scratch));
                }
            }
        }
        self.end_word(scratch);
        self.end_run(scratch);
    }

    fn ascii(&self, c: char, scratch: &mut Scratch) {
        if c.is_ascii_alphanumeric() {
            extend_word(c, scratch);
        } else {
            self.end_word(scratch);
            if !c.is_ascii_whitespace() {
                self.words.split(&[c], &mut scratch.rows);
            }
        }
    }

    /// One character of a script that is written with spaces, after decomposition.
    fn spaced(&self, c: char, scratch: &mut Scratch) {
        match c.general_category_group() {
            GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number => extend_word(c, scratch),
            GeneralCategoryGroup::Mark
                if c.general_category() == GeneralCategory::NonspacingMark => {}
            _ => {
                self.end_word(scratch);
                self.words.split(&[c], &mut scratch.rows);
            }
        }
    }

    fn end_word(&self, scratch: &mut Scratch) {
        if !scratch.word.is_empty() {
            let before = scratch.rows.len();
            self.words.split(&scratch.word, &mut scratch.rows);
            scratch.has_words |= scratch.rows.len() > before;
            scratch.word.clear();
        }
    }

    fn end_run(&self, scratch: &mut Scratch) {
        if !scratch.run.is_empty() {
            let before = scratch.rows.len();
            self.pieces
                .split(&scratch.run, &mut scratch.lattice, &mut scratch.rows);
            scratch.has_words |= scratch.rows.len() > before;
            scratch.run.clear();
        }
    }
}

/// Kana, but not the middle dot, which Chinese has in foreign names.
fn is_kana(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}')
}

/// Adds to the word, up to one character more than a word may have: enough to see that it is too long.
fn extend_word(c: char, scratch: &mut Scratch) {
    if scratch.word.len() <= MAX_WORD {
        scratch.word.push(c);
    }
}

/// Whether the unigram model knows the character's script: Han, kana, hangul and their iteration marks, in
/// the blocks that the vocabulary covers.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{3005}' | '\u{3006}' // iteration and closing mark
        | '\u{3040}'..='\u{30ff}' // hiragana, katakana
        | '\u{3400}'..='\u{9fff}' // Han
        | '\u{ac00}'..='\u{d7af}' // hangul syllables
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    /// Rows 0 to 8 are words, 9 to 12 pieces.
    const VOCABULARY: &str = "cafe\nnaive\n##ly\n!\n#\n2\ni\n\u{3c3}\u{3bf}\u{3c2}\n\u{93e}\n\
        \u{2581}\t-1\n\u{2581}\u{5929}\t-4\n\u{5929}\t-5\n\u{304c}\t-5\n";

    fn rows(text: &str) -> Vec<u32> {
        let tokenizer = Tokenizer::new(VOCABULARY, 9, 4).unwrap();
        let mut scratch = Scratch::default();
        tokenizer.rows(text, &mut scratch);
        scratch.rows
    }

    #[test]
    fn accents_case_and_width_make_no_difference() {
        for text in [
            "cafe",
            "CAFE",
            "Café",
            "Cafe\u{301}",
            "ＣＡＦÉ",
            "c\u{323}a\u{308}fe",
        ] {
            assert_eq!(rows(text), [0], "{text}");
        }
        assert_eq!(rows("naïvely ²"), [1, 2, 5]);
        assert_eq!(
            rows("\u{130}"),
            [6],
            "the dot of a lower-cased İ is an accent"
        );
        assert_eq!(rows("ΣΟΣ"), [7], "a last sigma is a final one");
    }

    #[test]
    fn what_is_no_letter_or_number_stands_alone() {
        assert_eq!(rows("cafe!!#cafe"), [0, 3, 3, 4, 0]);
        assert_eq!(rows("##ly"), [4, 4], "a text cannot spell a continuation");
        assert_eq!(
            rows("cafe\u{93e}cafe"),
            [0, 8, 0],
            "a spacing mark ends a word"
        );
        assert_eq!(rows("ca\u{200d}fe\u{feff}"), [0], "a joiner is not there");
    }

    #[test]
    fn runs_are_cut_out_of_words() {
        assert_eq!(rows("cafe\u{5929}\u{5929}2"), [0, 10, 11, 5]);
        assert_eq!(
            rows("\u{5929} \u{5929}"),
            [10, 10],
            "a space starts a run anew"
        );
        assert_eq!(
            rows("\u{ff76}\u{ff9e}\u{304b}\u{3099}"),
            [12],
            "marks of voice are composed"
        );
    }

    #[test]
    fn a_word_without_end_takes_no_memory() {
        let tokenizer = Tokenizer::new(VOCABULARY, 9, 4).unwrap();
        let mut scratch = Scratch::default();
        for letter in ["c", "é"] {
            tokenizer.rows(&letter.repeat(1 << 16), &mut scratch);
            assert!(scratch.rows.is_empty());
            assert!(scratch.word.capacity() <= 4 * MAX_WORD);
        }
    }
}

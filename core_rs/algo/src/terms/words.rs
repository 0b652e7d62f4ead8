//! The terms of English words: stop words and stems, with a memory of the words seen last.
//!
//! Looking up stop words and stems takes longer than all the rest of the analysis, and the words of texts repeat.

use rust_stemmers::{Algorithm, Stemmer};

use super::fnv1a;
use super::stop::is_stop_word;

/// A power of two; with [`LONGEST`] a table takes 64 KiB.
const SLOTS: usize = 2048;
/// Longer words and stems are not remembered.
const LONGEST: usize = 15;

/// What an ASCII word in lower case gives.
pub(super) struct Words {
    stemmer: Stemmer,
    /// Words at the slot of their hash.
    remembered: Box<[Entry]>,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    word: Short,
    stem: Short,
    is_stop_word: bool,
}

#[derive(Clone, Copy, Default)]
struct Short {
    bytes: [u8; LONGEST],
    length: u8,
}

impl Short {
    fn new(text: &str) -> Option<Self> {
        let mut bytes = [0; LONGEST];
        bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        Some(Self {
            bytes,
            length: text.len() as u8,
        })
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl Words {
    pub(super) fn new() -> Self {
        Self {
            stemmer: Stemmer::create(Algorithm::English),
            remembered: vec![Entry::default(); SLOTS].into(),
        }
    }

    /// Passes the stem of `word` to `sink`, unless it is a stop word and those are not kept.
    pub(super) fn emit(&mut self, word: &str, keep_stop_words: bool, sink: &mut impl FnMut(&str)) {
        let entry = &mut self.remembered[fnv1a(word) as usize % SLOTS];
        if entry.word.as_bytes() != word.as_bytes() {
            let is_stop_word = is_stop_word(word);
            let stem = self.stemmer.stem(word);
            let (Some(word), Some(short)) = (Short::new(word), Short::new(&stem)) else {
                if keep_stop_words || !is_stop_word {
                    sink(&stem);
                }
                return;
            };
            *entry = Entry {
                word,
                stem: short,
                is_stop_word,
            };
        }
        if keep_stop_words || !entry.is_stop_word {
            // Always valid: it was a `str`.
            sink(str::from_utf8(entry.stem.as_bytes()).unwrap_or_default());
        }
    }
}

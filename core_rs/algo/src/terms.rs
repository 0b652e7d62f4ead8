//! Lexical analysis: the terms by which BM25 finds a memory.
//!
//! Documents and queries go through the same analysis, and a query finds a document by the terms they share, so every
//! rule here must map the spellings that mean the same to one term. The analysis must never depend on anything but the
//! text: its terms are stored, and [`ANALYZER_VERSION`] is raised with every change of what it emits.
//!
//! # Rules
//!
//! The text is normalised to NFKC (half and full width, ligatures and circled numbers become plain characters) and cut
//! into compounds, CJK runs and emoji. Everything else separates.
//!
//! * **Words** are lower-cased and stripped of accents on Latin, Greek and Cyrillic letters (`café` is `cafe`, `ß` is
//!   `ss`). Words of ASCII letters are stemmed by the Snowball English stemmer, whatever their language.
//! * **Contractions** lose their clitic: `Ann's` is `ann`, `they're` is `they` (a stop word), `don't` is a stop word.
//! * **Stop words** of English give no term, unless they are written as an acronym (`US`, `IT`) or the text has no other
//!   term: so "to be or not to be" is a query that finds a text with the same words and nothing else, while a sentence
//!   that has content is indexed by its content. The rule looks at one text alone, so it is the same on both sides.
//! * **Compounds** are words and numbers joined without a space by one of `- _ ' . : / \ @ & +`, `://`, `::` or `:\`,
//!   or a word with a change of case or from letters to digits inside (`camelCase`, `E1042`). They give one term for the
//!   whole and the terms of their parts. In the whole, `-`, `_` and `'` are left out unless they stand between digits, so
//!   that `get_user`, `get-user` and `getUser` are one term, as are `e-mail` and `email`. A `v` before a dotted version
//!   is left out too. Acronyms with dots are one term: `U.S.` is `us`.
//! * **Numbers** are one term without parts: `3.14`. Separators of thousands are left out: `1,000` is `1000`. A unit
//!   joined to a number is a part: `2.5kg` gives `2.5`, `kg` and `2.5kg`.
//! * **Dates** of the form year, month, day (`2024-05-17`, `2024/5/17`, `2024.05.17`) give `2024-05-17` and their parts.
//!   A time joined to one by `T` is apart.
//! * **IBANs** written in groups of four also give the term of the compact form.
//! * **CJK runs** (Han, kana, Hangul) give each pair of adjacent characters, and each single Han or Hangul character;
//!   a single kana only if it stands alone. Scripts without spaces between words (Thai, Lao, Khmer, Burmese) give pairs.
//! * **Emoji** are terms of their own, without their skin tone; a flag is one term. Punctuation gives nothing.
//!
//! A term is at most [`MAX_TERM_BYTES`] long: a longer one is replaced by `#` and the 16 hexadecimal digits of its
//! 64-bit FNV-1a hash, so that it is still found by its exact form. No other term starts with `#`.

mod compound;
mod fold;
mod iban;
mod stop;
mod words;

use std::ops::Range;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use compound::Compound;
use fold::{Class, class};
pub(crate) use stop::is_stop_word;
use words::Words;

/// The version of the rules above. An index built with another version has to be built again.
pub const ANALYZER_VERSION: u32 = 1;

/// The longest term in bytes.
pub const MAX_TERM_BYTES: usize = 64;

/// Scratch space above this many bytes is given back after a text.
const KEPT_SCRATCH_BYTES: usize = 64 * 1024;

/// Analyses texts, one at a time, with scratch space that is reused between them.
pub struct Analyzer {
    words: Words,
    normalized: String,
    compound: Compound,
    pair: String,
}

impl Default for Analyzer {
    fn default() -> Self {
        Self::new()
    }
}

impl Analyzer {
    /// An analyzer with empty scratch space.
    pub fn new() -> Self {
        Self {
            words: Words::new(),
            normalized: String::new(),
            compound: Compound::default(),
            pair: String::new(),
        }
    }

    /// Passes each term of `text` to `sink`, in text order, as often as it occurs.
    ///
    /// Takes time linear in the length of the text, but for sorting runs of combining marks.
    pub fn analyze(&mut self, text: &str, sink: &mut impl FnMut(&str)) {
        if text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes {
            self.analyze_normalized(text, sink);
        } else {
            let mut normalized = std::mem::take(&mut self.normalized);
            normalized.clear();
            normalized.extend(text.nfkc());
            self.analyze_normalized(&normalized, sink);
            normalized.clear();
            normalized.shrink_to(KEPT_SCRATCH_BYTES);
            self.normalized = normalized;
        }
        self.compound.shrink_to(KEPT_SCRATCH_BYTES);
    }

    /// The distinct terms of `text` with the number of times each occurs, sorted by term.
    pub fn counts(&mut self, text: &str) -> Vec<(Box<str>, u32)> {
        let mut arena = String::with_capacity(text.len());
        let mut ranges: Vec<Range<usize>> = Vec::new();
        self.analyze(text, &mut |term| {
            let start = arena.len();
            arena.push_str(term);
            ranges.push(start..arena.len());
        });
        ranges.sort_unstable_by(|a, b| arena[a.clone()].cmp(&arena[b.clone()]));
        ranges
            .chunk_by(|a, b| arena[a.clone()] == arena[b.clone()])
            .map(|same| (arena[same[0].clone()].into(), same.len() as u32))
            .collect()
    }

    fn analyze_normalized(&mut self, text: &str, sink: &mut impl FnMut(&str)) {
        if !self.scan(text, false, sink) {
            self.scan(text, true, sink);
        }
    }

    /// Passes the terms of a text in NFKC to `sink`, with or without the stop words. Returns whether there was any.
    fn scan(&mut self, text: &str, keep_stop_words: bool, sink: &mut impl FnMut(&str)) -> bool {
        let mut found = false;
        let mut sink = |term: &str| {
            found = true;
            sink(term);
        };
        let mut position = 0;
        let mut last_flag_letter = None;
        while let Some(character) = text[position..].chars().next() {
            let next = position + character.len_utf8();
            let flag_letter = last_flag_letter.take();
            position = match class(character) {
                Class::Upper | Class::Letter | Class::Digit => {
                    let end = self.compound.read(text, position);
                    self.compound
                        .emit(&mut self.words, keep_stop_words, &mut sink);
                    if let Some(iban) = iban::grouped_iban(&text[position..]) {
                        sink(&iban);
                    }
                    end
                }
                Class::Cjk | Class::Unspaced => self.read_run(text, position, &mut sink),
                Class::Emoji => {
                    sink(&text[position..next]);
                    next
                }
                Class::FlagLetter => {
                    if let Some(start) = flag_letter {
                        sink(&text[start..next]);
                    } else {
                        last_flag_letter = Some(position);
                    }
                    next
                }
                Class::Ignored | Class::Other => next,
            };
        }
        found
    }

    /// Emits the pairs and single characters of the run of CJK or unspaced script that starts at `start`. Returns its end.
    fn read_run(&mut self, text: &str, start: usize, sink: &mut impl FnMut(&str)) -> usize {
        let run_class = class_at(text, start);
        let mut previous: Option<char> = None;
        let mut length = 0;
        let mut end = start;
        for character in text[start..].chars() {
            match class(character) {
                Class::Ignored => {}
                found if found == run_class => {
                    let mut buffer = [0; 4];
                    if let Some(previous) = previous {
                        self.pair.clear();
                        self.pair.push(previous);
                        self.pair.push(character);
                        sink(&self.pair);
                    }
                    if fold::is_meaningful_alone(character) {
                        sink(character.encode_utf8(&mut buffer));
                    }
                    previous = Some(character);
                    length += 1;
                }
                _ => break,
            }
            end += character.len_utf8();
        }
        if let Some(only) = previous.filter(|&only| length == 1 && !fold::is_meaningful_alone(only))
        {
            sink(only.encode_utf8(&mut [0; 4]));
        }
        end
    }
}

fn class_at(text: &str, position: usize) -> Class {
    text[position..].chars().next().map_or(Class::Other, class)
}

/// The 64-bit FNV-1a hash.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;

//! Lexical analysis: the terms by which BM25 finds a memory.
//!
//! Documents and queries go through the same analysis, and a query finds a document by the terms they share, so every
//! rule here must map the spellings that mean the same to one term. The analysis must never depend on anything but the
//! text: its terms are stored, and [`ANALYZER_VERSION`] is raised with every change of what it emits.
//!
//! # Rules
//!
//! Characters that show nothing (joiners, soft hyphens, zero-width spaces, directional marks) are dropped, the text is
//! normalised to NFKC (half and full width, ligatures and circled numbers become plain characters) and cut into compounds,
//! CJK runs and emoji. Everything else separates.
//!
//! * **Words** are lower-cased and stripped of accents on Latin, Greek and Cyrillic letters (`café` is `cafe`, `ß` is
//!   `ss`), of the vowel points of Hebrew and Arabic and of tatweel. `ä`, `ö` and `ü` also give `ae`, `oe` and `ue`. The
//!   alefs of Arabic are one letter, and its article is left out. Words of ASCII letters are stemmed by the Snowball
//!   English stemmer, whatever their language. Decimal digits of any script are those of ASCII.
//! * **Contractions** lose their clitic: `Ann's` is `ann`, `they're` is `they` (a stop word), `don't` is a stop word.
//! * **Stop words** of English give no term, unless they are written as an acronym (`US`, `IT`) or the text has no other
//!   term: so "to be or not to be" is a query that finds a text with the same words and nothing else, while a sentence
//!   that has content is indexed by its content. The rule looks at one text alone, so it is the same on both sides.
//! * **Compounds** are words and numbers joined without a space by one of `- _ ' . : / \ @ & +`, `://`, `::` or `:\`,
//!   or a word with a change of case or from letters to digits inside (`camelCase`, `E1042`). They give the terms of their
//!   parts; of what stands between the joints of a path or an address (`nginx.conf`, `example.com`), between dots and
//!   between any joints; of each two steps of a path; and, twice, of the whole. In these, `-`, `_` and `'` are left out
//!   unless they stand between digits, so that `get_user`, `get-user` and `getUser` are one term, as are `e-mail` and
//!   `email`. Versions and addresses of three numbers or more with dots have no parts but one: `2.3.1`, with a `v` before
//!   it or not, gives `2.3` and, twice, `2.3.1`. Acronyms with dots are one term: `U.S.` is `us`.
//! * **Hashes** (8 to 64 hexadecimal digits, letters among them) also give their first seven digits.
//! * **Numbers** are one term without parts: `3.14`. Separators of thousands are left out: `1,000` and `1.200,50` are
//!   `1000` and `1200.50`. What can be read in two ways gives both: `1.200` and `1200`, `12` and `50` and `12.50`. An
//!   amount in hundredths that has none is also a whole number: `12.00`. A unit joined to a number is a part: `2.5kg` gives
//!   `2.5`, `kg` and `2.5kg`. The first twelve ordinals are words: `3rd` gives `3` and `third`.
//! * **Dates** in digits (also day or month first, also eight digits), in English words and in Chinese, Japanese and Korean
//!   give `2024-05-17`, their month `2024-05`, their day of any year `--05-17`, and the terms of their parts. A month with
//!   a year gives the second, a day without one the third. A time joined to a date by `T` is apart. **Times** give their
//!   24-hour form without a leading zero: `2:30 pm`, `14h30` and `14:30:00` give `14:30`.
//! * **Numbers in groups** of at least eight digits (telephones, cards) also give their compact form, and those of at most
//!   fifteen `tel:` and their last eight digits, which do not depend on the code of the country.
//! * **IBANs** written in groups of four also give the term of the compact form.
//! * **CJK runs** (Han, kana, Hangul) give each pair of adjacent characters, and each single Han or Hangul character;
//!   a single kana only if it stands alone. Han characters are taken in their simplified form ([`han`]), katakana as
//!   hiragana. Two Han characters with an ending of one or two kana between them are a pair as well, so that `申し込み` is
//!   found by `申込み`. Scripts without spaces between words (Thai, Lao, Khmer, Burmese) give pairs.
//! * **Emoji** are terms of their own, without their skin tone; a flag is one term. Punctuation gives nothing.
//!
//! A term is at most [`MAX_TERM_BYTES`] long: a longer one is replaced by `#` and the 16 hexadecimal digits of its
//! 64-bit FNV-1a hash, so that it is still found by its exact form. No other term starts with `#`.

mod compound;
mod dates;
mod fold;
pub mod han;
mod iban;
mod phone;
mod stop;
mod words;

use std::ops::Range;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use compound::Compound;
pub use fold::is_invisible;
use fold::{Class, class};
pub(crate) use stop::is_stop_word;
use words::Words;

/// The version of the rules above. An index built with another version has to be built again.
pub const ANALYZER_VERSION: u32 = 2;

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
        let is_plain = || {
            is_nfkc_quick(text.chars()) == IsNormalized::Yes
                && !text.chars().any(fold::is_invisible)
        };
        if text.is_ascii() || is_plain() {
            self.analyze_normalized(text, sink);
        } else {
            let mut normalized = std::mem::take(&mut self.normalized);
            normalized.clear();
            normalized.extend(text.chars().filter(|&c| !fold::is_invisible(c)).nfkc());
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
        // Up to here dates and grouped numbers were read; parts of one are not read as another.
        let (mut dates_end, mut groups_end) = (0, 0);
        let mut last_flag_letter = None;
        while let Some(character) = text[position..].chars().next() {
            let next = position + character.len_utf8();
            let flag_letter = last_flag_letter.take();
            position = match class(character) {
                Class::Upper | Class::Letter | Class::Digit => {
                    let end = self.compound.read(text, position);
                    self.compound
                        .emit(&mut self.words, keep_stop_words, &mut sink);
                    if position >= dates_end && dates::may_start(text.as_bytes()[position]) {
                        dates_end = position + dates::read(text, position, &mut sink);
                    }
                    if character.is_ascii_digit() && position >= groups_end {
                        groups_end = position + phone::read(&text[position..], &mut sink);
                    }
                    if let Some(iban) = iban::grouped_iban(&text[position..]) {
                        sink(&iban);
                    }
                    end
                }
                Class::Cjk | Class::Unspaced => self.read_run(text, position, &mut sink),
                Class::Emoji => {
                    // The flags of England, Scotland and Wales are a black flag and its letters, which do not show.
                    let tags = text[next..]
                        .find(|c: char| !matches!(c, '\u{e0020}'..='\u{e007f}'))
                        .unwrap_or(text.len() - next);
                    sink(&text[position..next + tags]);
                    next + tags
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
        // The last Han character and the number of kana since, if those can be the ending of a word.
        let mut stem: Option<(char, usize)> = None;
        let mut length = 0;
        let mut end = start;
        for written in text[start..].chars() {
            match class(written) {
                Class::Ignored => {}
                found if found == run_class => {
                    let character = fold::fold_cjk(written);
                    if let Some(previous) = previous {
                        sink(self.pair(previous, character));
                    }
                    if fold::is_meaningful_alone(character) {
                        sink(character.encode_utf8(&mut [0; 4]));
                    }
                    stem = match stem {
                        Some((han, kana)) if fold::is_okurigana(character) && kana < 2 => {
                            Some((han, kana + 1))
                        }
                        _ if !fold::is_han(character) => None,
                        last => {
                            if let Some((han, 1..)) = last {
                                sink(self.pair(han, character));
                            }
                            Some((character, 0))
                        }
                    };
                    previous = Some(character);
                    length += 1;
                }
                _ => break,
            }
            end += written.len_utf8();
        }
        if let Some(only) = previous.filter(|&only| length == 1 && !fold::is_meaningful_alone(only))
        {
            sink(only.encode_utf8(&mut [0; 4]));
        }
        end
    }

    fn pair(&mut self, first: char, second: char) -> &str {
        self.pair.clear();
        self.pair.push(first);
        self.pair.push(second);
        &self.pair
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

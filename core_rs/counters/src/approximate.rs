//! The approximation: what a text costs by its characters, for models whose vocabulary is not at hand.
//!
//! Each character has a cost that depends on its kind and on the characters before it. A word costs the more, the more
//! of its pairs of letters are rare in English, since the vocabularies in use are mostly learnt from English; a digit is
//! a token, as it is for half of them; a character of a script that they hardly know is as many as it has bytes, which is
//! the most that a vocabulary of bytes makes of it.
//!
//! The costs are fitted so that nearly all texts cost at least the largest of their counts by ten vocabularies of
//! 100,000 tokens and more. `docs/guide.md` has the error by script; `docs/decisions/0009-token-counters.md` says how it
//! was measured. A cost never depends on what follows, so a count never falls as a text grows.

/// Costs are in hundredths of a token.
const TOKEN: u64 = 100;

/// The first letter of a word.
const WORD: u64 = 55;
/// As in a hash, where hardly any two characters are one token.
const WORD_AFTER_DIGIT: u64 = 95;
/// A letter after the fourth of its word.
const LATE_LETTER: u64 = 9;
const LETTERS_OF_SHORT_WORD: u32 = 4;
const CAPITAL: u64 = 25;
const CAPITAL_AFTER_CAPITAL: u64 = 16;
const ACCENTED_LETTER: u64 = 185;
/// A letter behind another, by the rarity of the pair.
const PAIR: [u64; 4] = [0, 22, 48, 135];

const DIGIT: u64 = 100;
/// Where each digit is a token, the space before the first one is another.
const SPACE_BEFORE_DIGIT: u64 = 100;

const MARK: u64 = 100;
const MARK_AFTER_ANOTHER: u64 = 80;
const MARK_REPEATED: u64 = 15;

const LINE_END: u64 = 100;
const LINE_END_AFTER_MARK: u64 = 50;
const LINE_END_REPEATED: u64 = 20;
/// Costs nothing elsewhere: one space belongs to the word that follows it.
const SPACE_AT_START: u64 = 100;
const SECOND_SPACE: u64 = 80;
const FURTHER_SPACE: u64 = 4;

/// How rare each pair of letters is in English: row by the first letter, column by the second. Of all pairs, `0` makes
/// up six in a thousand or more, `1` one and a half, `2` a fifth, `3` less.
const RARITY: [[u8; 26]; 26] = [
    *b"31113213131010313000212213", // a
    *b"13331333133133133223133323", // b
    *b"13231331131133033121133323", // c
    *b"13320323133223133213223323", // d
    *b"02101123233110212001212123", // e
    *b"13331233133233133132233323", // f
    *b"23331321133232233123233323", // g
    *b"03330333133322133231233323", // h
    *b"12011113332110022100313232", // i
    *b"23332333333333233333233333", // j
    *b"23331333233332333323333333", // k
    *b"13210233033033123312123313", // l
    *b"12320323133223113323233323", // m
    *b"13100203132222133300223323", // n
    *b"22112123222100113011011323", // o
    *b"13321332233133113112233323", // p
    *b"33333333333333333333133333", // q
    *b"02210223032222023211123313", // r
    *b"13230331132223113310132323", // s
    *b"03220230033223023111132313", // t
    *b"22121323233121313001333333", // u
    *b"13330333133333233333333333", // v
    *b"13331331133332133223333333", // w
    *b"23232333233333323332333333", // x
    *b"33332333233232123322333333", // y
    *b"23332333233333333333333333", // z
];

/// The tokens of `text`.
pub(crate) fn count(text: &str) -> u32 {
    let cost: u64 = costs(text).map(|(_, cost)| cost).sum();
    u32::try_from(cost.div_ceil(TOKEN)).unwrap_or(u32::MAX)
}

/// The tokens of `text` if there are at most `limit`.
pub(crate) fn count_within(text: &str, limit: u32) -> Option<u32> {
    (prefix(text, limit).len() == text.len()).then(|| count(text))
}

/// The longest start of `text` that counts at most `max_tokens`.
pub(crate) fn prefix(text: &str, max_tokens: u32) -> &str {
    let most = u64::from(max_tokens) * TOKEN;
    let mut spent = 0;
    let over = costs(text).find(|(_, cost)| {
        spent += cost;
        spent > most
    });
    over.map_or(text, |(at, _)| &text[..at])
}

/// Each character's place and cost.
fn costs(text: &str) -> impl Iterator<Item = (usize, u64)> {
    text.char_indices()
        .scan(Before::Nothing, |before, (at, c)| {
            let (cost, next) = step(*before, c);
            *before = next;
            Some((at, cost))
        })
}

/// What stands before a character, as far as its cost depends on it.
#[derive(Clone, Copy)]
enum Before {
    Nothing,
    Word { letters: u32, last: char },
    Digit,
    Mark(char),
    LineEnd,
    Space { run: bool },
    Other,
}

/// The cost of a character, and what stands before the next one.
fn step(before: Before, c: char) -> (u64, Before) {
    match c {
        '\n' | '\r' => {
            let cost = match before {
                Before::LineEnd => LINE_END_REPEATED,
                Before::Mark(_) => LINE_END_AFTER_MARK,
                _ => LINE_END,
            };
            (cost, Before::LineEnd)
        }
        ' ' | '\t' => match before {
            Before::Nothing => (SPACE_AT_START, Before::Space { run: false }),
            Before::Space { run: false } => (SECOND_SPACE, Before::Space { run: true }),
            Before::Space { run: true } => (FURTHER_SPACE, Before::Space { run: true }),
            _ => (0, Before::Space { run: false }),
        },
        '0'..='9' => {
            let space = match before {
                Before::Space { .. } => SPACE_BEFORE_DIGIT,
                _ => 0,
            };
            (space + DIGIT, Before::Digit)
        }
        _ if c.is_ascii_punctuation() => {
            let cost = match before {
                Before::Mark(last) if last == c => MARK_REPEATED,
                Before::Mark(_) => MARK_AFTER_ANOTHER,
                _ => MARK,
            };
            (cost, Before::Mark(c))
        }
        _ if is_latin(c) => {
            let (letters, cost) = match before {
                Before::Word { letters, last } => (letters, behind_letter(letters, last, c)),
                Before::Digit => (0, WORD_AFTER_DIGIT + capital(c)),
                _ => (0, WORD + capital(c)),
            };
            let accent = if c.is_ascii() { 0 } else { ACCENTED_LETTER };
            let next = Before::Word {
                letters: letters.saturating_add(1),
                last: c,
            };
            (cost + accent, next)
        }
        _ => (of_script(c), Before::Other),
    }
}

fn is_latin(c: char) -> bool {
    match c {
        'a'..='z' | 'A'..='Z' | '\u{1e00}'..='\u{1eff}' => true,
        '\u{aa}'..='\u{24f}' => c.is_alphabetic(),
        _ => false,
    }
}

fn capital(c: char) -> u64 {
    if c.is_uppercase() { CAPITAL } else { 0 }
}

/// The cost of a letter that is the last of `letters` and one more.
fn behind_letter(letters: u32, last: char, c: char) -> u64 {
    let place = if c.is_ascii() && letters >= LETTERS_OF_SHORT_WORD {
        LATE_LETTER
    } else {
        0
    };
    place
        + match (last.is_uppercase(), c.is_uppercase()) {
            // Another word begins.
            (false, true) => CAPITAL,
            (true, true) => CAPITAL_AFTER_CAPITAL + PAIR[rarity(last, c)],
            (_, false) => PAIR[rarity(last, c)],
        }
}

/// The rarity of a pair; 0 unless both are ASCII letters.
fn rarity(first: char, second: char) -> usize {
    let place = |c: char| {
        let letter = c.to_ascii_lowercase();
        letter.is_ascii().then(|| letter as usize - 'a' as usize)
    };
    match (place(first), place(second)) {
        (Some(row), Some(column)) => usize::from(RARITY[row][column] - b'0'),
        _ => 0,
    }
}

/// The cost of a character that is neither ASCII nor a Latin letter.
fn of_script(c: char) -> u64 {
    match c {
        // Cyrillic as the Slavic languages have it.
        '\u{400}'..='\u{45f}' => 70,
        // Punctuation of Chinese and Japanese, kana, full-width forms.
        '\u{3000}'..='\u{30ff}' | '\u{ff00}'..='\u{ff60}' => 100,
        // Greek; Thai.
        '\u{370}'..='\u{3ff}' | '\u{e00}'..='\u{e7f}' => 110,
        // Arabic, also as Persian and Urdu have it.
        '\u{600}'..='\u{77f}' => 115,
        // Signs of Latin-1, dashes, quotation marks, joiners.
        '\u{80}'..='\u{24f}' | '\u{2000}'..='\u{206f}' => 120,
        // Hebrew.
        '\u{590}'..='\u{5ff}' => 125,
        // Devanagari.
        '\u{900}'..='\u{97f}' => 135,
        // Han; Hangul.
        '\u{4e00}'..='\u{9fff}'
        | '\u{1100}'..='\u{11ff}'
        | '\u{3130}'..='\u{318f}'
        | '\u{ac00}'..='\u{d7af}' => 145,
        // Arrows, box drawing and other symbols.
        '\u{2070}'..='\u{2bff}' => 200,
        // Armenian; Bengali to Sinhala; Georgian.
        '\u{530}'..='\u{58f}' | '\u{980}'..='\u{dff}' | '\u{10a0}'..='\u{10ff}' => 220,
        // Cyrillic of other languages, which have it beside the letters above.
        '\u{460}'..='\u{52f}' => 300,
        _ => TOKEN * c.len_utf8() as u64,
    }
}

#[cfg(test)]
mod tests;

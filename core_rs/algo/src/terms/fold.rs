//! Character classes and the folding of case and accents.

use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// What a character of a text in NFKC is to the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A capital letter of a script with spaces between words.
    Upper,
    /// Any other letter of such a script, or a mark on one.
    Letter,
    /// A decimal digit or another numeric character.
    Digit,
    /// Han, kana or Hangul.
    Cjk,
    /// A letter or mark of another script without spaces between words.
    Unspaced,
    /// A pictograph.
    Emoji,
    /// One half of a flag.
    FlagLetter,
    /// Invisible inside a word: joiners, soft hyphens, variation selectors and accents that fold away.
    Ignored,
    /// Everything else.
    Other,
}

/// The class of a character.
pub(super) fn class(character: char) -> Class {
    match character {
        'a'..='z' => Class::Letter,
        'A'..='Z' => Class::Upper,
        '0'..='9' => Class::Digit,
        '\0'..='\x7f' => Class::Other,
        // Soft hyphen, joiners, directional marks, variation selectors, skin tones and common accents.
        '\u{ad}'
        | '\u{200c}'..='\u{200f}'
        | '\u{2060}'
        | '\u{feff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{1f3fb}'..='\u{1f3ff}'
        | '\u{300}'..='\u{36f}'
        | '\u{e0100}'..='\u{e01ef}' => Class::Ignored,
        '\u{1f1e6}'..='\u{1f1ff}' => Class::FlagLetter,
        '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}' => Class::Emoji,
        _ if is_cjk(character) => Class::Cjk,
        // Thai and Lao, Burmese, Khmer.
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => {
            if character.is_numeric() {
                Class::Digit
            } else if character.is_alphanumeric() || is_combining_mark(character) {
                Class::Unspaced
            } else {
                Class::Other
            }
        }
        _ if character.is_numeric() => Class::Digit,
        _ if character.is_uppercase() => Class::Upper,
        _ if character.is_alphabetic() || is_combining_mark(character) => Class::Letter,
        _ => Class::Other,
    }
}

/// Han, kana with its marks, and Hangul; without punctuation.
fn is_cjk(character: char) -> bool {
    matches!(character,
        '\u{3005}'..='\u{3007}'      // iteration mark, closing mark, zero
        | '\u{3031}'..='\u{3035}'    // kana repeat marks
        | '\u{303b}'..='\u{303c}'
        | '\u{3041}'..='\u{309f}'    // Hiragana
        | '\u{30a1}'..='\u{30fa}'    // Katakana
        | '\u{30fc}'..='\u{30ff}'
        | '\u{3105}'..='\u{312f}'    // Bopomofo
        | '\u{31a0}'..='\u{31bf}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{1100}'..='\u{11ff}'    // Hangul letters
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7ff}')
        || is_han(character)
}

fn is_han(character: char) -> bool {
    matches!(character,
        '\u{3007}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Whether a character of a CJK run says something by itself: a Han character is a morpheme and a Hangul syllable is often
/// one, a kana is only a sound.
pub(super) fn is_meaningful_alone(character: char) -> bool {
    is_han(character) || matches!(character, '\u{ac00}'..='\u{d7ff}')
}

/// Appends `character` in lower case and without accents.
pub(super) fn fold_into(character: char, out: &mut String) {
    if character.is_ascii() {
        out.push(character.to_ascii_lowercase());
        return;
    }
    for lower in character.to_lowercase() {
        match lower {
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'þ' => out.push_str("th"),
            'ø' => out.push('o'),
            'ł' => out.push('l'),
            'đ' | 'ð' => out.push('d'),
            'ı' => out.push('i'),
            'ς' => out.push('σ'),
            // Latin, Greek and Cyrillic, where an accent is often left out in writing.
            '\u{c0}'..='\u{52f}' | '\u{1e00}'..='\u{1fff}' => decompose_canonical(lower, |part| {
                if class(part) != Class::Ignored {
                    out.push(part);
                }
            }),
            _ if class(lower) == Class::Ignored => {}
            _ => out.push(lower),
        }
    }
}

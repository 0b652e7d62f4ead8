//! Character classes and the folding of case and accents.

use unicode_normalization::char::{decompose_canonical, is_combining_mark};

use super::han;

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
    /// Nothing of its own inside a word: accents, vowel points and selectors that fold away.
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
        // Most of what is not ASCII; the rest of these scripts is told apart below.
        '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' => Class::Cjk,
        // Accents, the box of a keycap, variation selectors, skin tones; vowel points of Hebrew and Arabic and the
        // stroke that lengthens Arabic words.
        '\u{300}'..='\u{36f}'
        | '\u{20e3}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{1f3fb}'..='\u{1f3ff}'
        | '\u{e0100}'..='\u{e01ef}'
        | '\u{591}'..='\u{5bd}'
        | '\u{5bf}'
        | '\u{5c1}'..='\u{5c2}'
        | '\u{5c4}'..='\u{5c5}'
        | '\u{5c7}'
        | '\u{640}'
        | '\u{64b}'..='\u{65f}'
        | '\u{670}'
        | '\u{6d6}'..='\u{6dc}'
        | '\u{6df}'..='\u{6e4}'
        | '\u{6e7}'..='\u{6e8}'
        | '\u{6ea}'..='\u{6ed}' => Class::Ignored,
        '\u{1f1e6}'..='\u{1f1ff}' => Class::FlagLetter,
        // Symbols, and those of the technical and arrow blocks that are drawn as pictures.
        '\u{2600}'..='\u{27bf}'
        | '\u{1f000}'..='\u{1faff}'
        | '\u{231a}'..='\u{231b}'
        | '\u{23cf}'
        | '\u{23e9}'..='\u{23f3}'
        | '\u{23f8}'..='\u{23fa}'
        | '\u{25b6}'
        | '\u{25c0}'
        | '\u{2b05}'..='\u{2b07}'
        | '\u{2b1b}'..='\u{2b1c}'
        | '\u{2b50}'
        | '\u{2b55}' => Class::Emoji,
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

/// Whether a character shows nothing and parts nothing: soft hyphens, joiners, zero-width spaces, byte order marks and
/// the marks that direct text to the left or right.
pub fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}')
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

pub(super) fn is_han(character: char) -> bool {
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

/// Whether a hiragana can end the part of a word that Han characters write, and is not a particle: some write it and some
/// do not, `申し込み` and `申込み`.
pub(super) fn is_okurigana(character: char) -> bool {
    matches!(character, '\u{3041}'..='\u{3096}')
        && !matches!(
            character,
            'は' | 'が' | 'を' | 'に' | 'で' | 'と' | 'の' | 'も' | 'へ' | 'や' | 'か'
        )
}

/// The form in which a character of a CJK run is compared: simplified Han, and hiragana for katakana.
pub(super) fn fold_cjk(character: char) -> char {
    match character {
        '\u{30a1}'..='\u{30f6}' | '\u{30fd}'..='\u{30fe}' => {
            char::from_u32(character as u32 - 0x60).unwrap_or(character)
        }
        _ => han::simplified(character),
    }
}

/// Appends `character` in lower case and without accents; digits of any script as those of ASCII.
pub(super) fn fold_into(character: char, out: &mut String) {
    if character.is_ascii() {
        out.push(character.to_ascii_lowercase());
        return;
    }
    if let Some(digit) = digit(character) {
        out.push(char::from(b'0' + digit));
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
            // Alefs with their hamza or wasla; the letters that only some keyboards tell apart.
            'أ' | 'إ' | 'آ' | 'ٱ' => out.push('ا'),
            'ى' | 'ی' => out.push('ي'),
            'ک' => out.push('ك'),
            'ة' => out.push('ه'),
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

/// The value of a decimal digit of a script that has its own.
fn digit(character: char) -> Option<u8> {
    /// Zeros of Arabic, Persian, Devanagari, Bengali, Gurmukhi, Gujarati, Odia, Tamil, Telugu, Kannada, Malayalam, Thai,
    /// Lao, Tibetan, Burmese and Khmer.
    const ZEROS: [u16; 16] = [
        0x660, 0x6f0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xed0,
        0xf20, 0x1040, 0x17e0,
    ];
    let code = u16::try_from(character as u32).ok()?;
    ZEROS
        .into_iter()
        .find(|zero| (*zero..zero + 10).contains(&code))
        .map(|zero| (code - zero) as u8)
}

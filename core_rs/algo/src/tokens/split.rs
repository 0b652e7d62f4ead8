//! Cutting a text into the pieces that are encoded one by one.
//!
//! The rules are regular expressions, given with each encoding. Most text is ASCII, where a few loops over bytes do the
//! same in a fraction of the time; a piece that holds or touches any other character is left to the expressions.

use bpe_openai::Tokenizer;

use super::Encoding;

/// The pieces of a text, in order and without gaps.
pub(super) struct Pieces<'text> {
    encoding: Encoding,
    tokenizer: &'static Tokenizer,
    rest: &'text str,
    /// The number of bytes of white space at the end of the text.
    tail: usize,
}

impl<'text> Pieces<'text> {
    pub(super) fn new(encoding: Encoding, tokenizer: &'static Tokenizer, text: &'text str) -> Self {
        let tail = text.len() - text.trim_end().len();
        Self {
            encoding,
            tokenizer,
            rest: text,
            tail,
        }
    }
}

impl<'text> Iterator for Pieces<'text> {
    type Item = &'text str;

    fn next(&mut self) -> Option<&'text str> {
        let length = match ascii_piece(self.encoding, self.rest.as_bytes()) {
            Some(length) => length,
            // `tiktoken` takes white space up to the end of the text as one piece in cl100k_base; bpe-openai would
            // split it after its last newline.
            None if self.encoding == Encoding::Cl100kBase && self.rest.len() <= self.tail => {
                self.rest.len()
            }
            None => self.tokenizer.split(self.rest).next()?.len(),
        };
        let (piece, rest) = self.rest.split_at(length);
        self.rest = rest;
        (length > 0).then_some(piece)
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

fn is_mark(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric() && !is_space(byte)
}

/// The first position from `from` on whose byte is not `accepted`.
fn skip(text: &[u8], from: usize, accepted: impl Fn(u8) -> bool) -> usize {
    text[from..]
        .iter()
        .position(|&byte| !accepted(byte))
        .map_or(text.len(), |length| from + length)
}

/// The length of the first piece, or `None` if that depends on a character outside ASCII.
fn ascii_piece(encoding: Encoding, text: &[u8]) -> Option<usize> {
    let end = match *text.first()? {
        b'\'' if encoding == Encoding::Cl100kBase && contraction(text, 0)? > 0 => {
            return contraction(text, 0);
        }
        b'0'..=b'9' => skip(&text[..text.len().min(3)], 1, |byte| byte.is_ascii_digit()),
        byte => {
            let letters = usize::from(!byte.is_ascii_alphabetic());
            let has_prefix = letters == 0 || !matches!(byte, b'\r' | b'\n');
            if has_prefix && text.get(letters).is_some_and(u8::is_ascii_alphabetic) {
                return word(encoding, text, letters);
            }
            let marks = usize::from(byte == b' ');
            let end = skip(text, marks, is_mark);
            if end > marks {
                skip(text, end, |byte| {
                    matches!(byte, b'\r' | b'\n')
                        || (byte == b'/' && encoding == Encoding::O200kBase)
                })
            } else {
                return white_space(encoding, text);
            }
        }
    };
    // Three digits are a piece whatever follows; all else might go on with another character.
    let complete = end == 3 && text[0].is_ascii_digit();
    (complete || is_ascii_or_end(text, end)).then_some(end)
}

/// A word whose first letter is at `start`.
fn word(encoding: Encoding, text: &[u8], start: usize) -> Option<usize> {
    let end = match encoding {
        Encoding::O200kBase => {
            let capitals = skip(text, start, |byte| byte.is_ascii_uppercase());
            skip(text, capitals, |byte| byte.is_ascii_lowercase())
        }
        Encoding::Cl100kBase => skip(text, start, |byte| byte.is_ascii_alphabetic()),
    };
    if !is_ascii_or_end(text, end) {
        return None;
    }
    match encoding {
        Encoding::O200kBase => Some(end + contraction(text, end)?),
        Encoding::Cl100kBase => Some(end),
    }
}

/// The length of the contraction (`'s`, `'re`) at `at`, or 0.
fn contraction(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'\'') || !is_ascii_or_end(text, at + 1) {
        // The long s counts as an s.
        return is_ascii_or_end(text, at + 1).then_some(0);
    }
    let lower = |index: usize| text.get(index).map(u8::to_ascii_lowercase);
    Some(match (lower(at + 1), lower(at + 2)) {
        (Some(b's' | b't' | b'm' | b'd'), _) => 2,
        (Some(b'r' | b'v'), Some(b'e')) | (Some(b'l'), Some(b'l')) => 3,
        _ => 0,
    })
}

fn white_space(encoding: Encoding, text: &[u8]) -> Option<usize> {
    let end = skip(text, 0, is_space);
    if end == 0 || !is_ascii_or_end(text, end) {
        return None;
    }
    let at_end = end == text.len();
    let newline = text[..end]
        .iter()
        .rposition(|&byte| matches!(byte, b'\r' | b'\n'));
    Some(match newline {
        Some(_) if at_end && encoding == Encoding::Cl100kBase => end,
        Some(newline) => newline + 1,
        None if at_end || end == 1 => end,
        // The last one belongs to what follows.
        None => end - 1,
    })
}

fn is_ascii_or_end(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(u8::is_ascii)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use proptest::prelude::*;

    use super::*;

    /// The pieces by the regular expressions alone.
    fn reference(encoding: Encoding, text: &str) -> Vec<&str> {
        let mut start = 0;
        let tail = match encoding {
            Encoding::O200kBase => text.len(),
            Encoding::Cl100kBase => text.trim_end().len(),
        };
        let mut pieces = Vec::new();
        while start < text.len() {
            let piece = if start >= tail {
                &text[start..]
            } else {
                encoding.tokenizer().split(&text[start..]).next().unwrap()
            };
            start += piece.len();
            pieces.push(piece);
        }
        pieces
    }

    proptest! {
        #[test]
        fn pieces_are_those_of_the_expressions(text in "([a-cA-C]|'|s|S|ll|RE|ve|ſ|é|\u{301}|中| |\u{a0}|\u{85}|\n|\r|\t|\u{b}|/|\\.|!|\0|[0-9]|٣){0,24}") {
            for encoding in Encoding::ALL {
                let pieces: Vec<&str> = Pieces::new(encoding, encoding.tokenizer(), &text).collect();
                prop_assert_eq!(pieces, reference(encoding, &text));
            }
        }
    }
}

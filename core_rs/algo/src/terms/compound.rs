//! Words, numbers and what is made of them without a space: identifiers, versions, dates, paths, addresses. Here they are
//! read from a text; `spell` says which terms they have.

mod spell;

use std::ops::{Range, RangeInclusive};

use super::fold::{Class, class, fold_into};

/// What may join two parts of a compound; the longer first where one starts with the other.
const JOINTS: [&str; 15] = [
    "://", "::", ":\\", "-", "\u{2010}", "_", "'", "\u{2019}", ".", ":", "/", "\\", "@", "&", "+",
];

/// Separators of groups of three digits.
const GROUP_JOINTS: [&str; 3] = [",", "'", "\u{2019}"];

/// What follows an apostrophe in a contraction or a possessive.
const CLITICS: [&str; 7] = ["s", "t", "re", "ve", "ll", "d", "m"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Digits,
    Letters,
    Mixed,
}

/// A stretch of a segment without a change of case or between letters and digits.
#[derive(Clone, Debug)]
struct Piece {
    /// Bytes of `Compound::folded`.
    range: Range<usize>,
    characters: usize,
    kind: Kind,
    /// Only capitals so far.
    upper: bool,
}

/// What stands between two joints.
#[derive(Clone, Debug)]
struct Segment {
    /// The joint before it; empty for the first.
    joint: &'static str,
    strength: Strength,
    /// Indexes of `Compound::pieces`.
    pieces: Range<usize>,
}

/// One compound, read into buffers that are kept for the next.
#[derive(Debug, Default)]
pub(super) struct Compound {
    folded: String,
    /// Ends of the vowels of `folded` that had an umlaut, which is often written as an `e` after the vowel.
    umlauts: Vec<usize>,
    pieces: Vec<Piece>,
    segments: Vec<Segment>,
    /// Whether a comma stands right before it, as before the later numbers of `1,2,3`.
    in_list: bool,
    /// `++` or `#` at the end, as in the names of programming languages.
    suffix: &'static str,
    whole: String,
}

impl Compound {
    /// Reads the compound of `text` whose first letter or digit is at `start`, and returns its end.
    pub(super) fn read(&mut self, text: &str, start: usize) -> usize {
        self.folded.clear();
        self.umlauts.clear();
        self.pieces.clear();
        self.segments.clear();
        self.in_list = text[..start].ends_with(',');
        self.suffix = "";
        let mut position = start;
        let mut joint = "";
        loop {
            let first_piece = self.pieces.len();
            let (end, is_date) = self.read_segment(text, position);
            self.limit_pieces(first_piece);
            self.segments.push(Segment {
                joint,
                strength: strength(joint),
                pieces: first_piece..self.pieces.len(),
            });
            position = end;
            if is_date {
                return position;
            }
            let rest = &text[position..];
            if let Some(found) = self.joint(rest) {
                joint = found;
                position += found.len();
            } else {
                let letters = self.pieces.iter().all(|piece| piece.kind == Kind::Letters);
                if letters && rest.starts_with("++") {
                    self.suffix = "++";
                } else if letters && rest.starts_with('#') && !starts_with_word(&rest[1..]) {
                    self.suffix = "#";
                }
                return position + self.suffix.len();
            }
        }
    }

    fn text_of(&self, segment: &Segment) -> &str {
        &self.folded[range_of(&self.pieces[segment.pieces.clone()])]
    }

    /// Gives back what the buffers hold above `bytes`.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        self.folded.clear();
        self.folded.shrink_to(bytes);
        self.whole.clear();
        self.whole.shrink_to(bytes);
        self.umlauts.clear();
        self.umlauts.shrink_to(bytes / size_of::<usize>());
        self.pieces.clear();
        self.pieces.shrink_to(bytes / size_of::<Piece>());
        self.segments.clear();
        self.segments.shrink_to(bytes / size_of::<Segment>());
    }

    /// Reads letters and digits from `start` on. Returns the end, and whether a date ends there that a time follows.
    fn read_segment(&mut self, text: &str, start: usize) -> (usize, bool) {
        let first_piece = self.pieces.len();
        let mut last_start = self.folded.len();
        let mut end = start;
        while let Some(character) = text[end..].chars().next() {
            let found = class(character);
            let digit = found == Class::Digit;
            let after = end + character.len_utf8();
            match found {
                Class::Ignored => {
                    end = after;
                    continue;
                }
                Class::Upper | Class::Letter | Class::Digit => {}
                _ => break,
            }
            let next = || text[after..].chars().next().map_or(Class::Other, class);
            end = after;
            if character == 'T' && next() == Class::Digit && self.is_date_up_to(first_piece) {
                return (end, true);
            }
            let is_first = self.pieces.len() == first_piece;
            let split = match self.pieces.last() {
                Some(piece) if !is_first => {
                    let piece_is_digits = piece.kind == Kind::Digits;
                    if digit != piece_is_digits {
                        true
                    } else if digit || piece.characters < 2 {
                        false
                    } else {
                        found == Class::Upper && !piece.upper
                    }
                }
                _ => true,
            };
            let folded_start = self.folded.len();
            fold_into(character, &mut self.folded);
            if !character.is_ascii() && matches!(character, 'ä' | 'ö' | 'ü' | 'Ä' | 'Ö' | 'Ü')
            {
                self.umlauts.push(self.folded.len());
            }
            if split {
                self.pieces.push(Piece {
                    range: folded_start..self.folded.len(),
                    characters: 1,
                    kind: if digit { Kind::Digits } else { Kind::Letters },
                    upper: found == Class::Upper,
                });
            } else if let Some(piece) = self.pieces.last_mut() {
                piece.range.end = self.folded.len();
                piece.characters += 1;
                if piece.upper && found == Class::Letter {
                    piece.upper = false;
                    // `HTTPServer`: the last capital starts the next word. Not so in `OAuth` or in the plural `URLs`.
                    if piece.characters > 3 && next() == Class::Letter {
                        piece.range.end = last_start;
                        piece.characters -= 2;
                        piece.upper = true;
                        let range = last_start..self.folded.len();
                        self.pieces.push(Piece {
                            range,
                            characters: 2,
                            kind: Kind::Letters,
                            upper: false,
                        });
                    }
                }
            }
            last_start = folded_start;
            // The rest of a word in lower case at once.
            if let Some(piece) = self.pieces.last_mut()
                && piece.kind == Kind::Letters
                && !piece.upper
            {
                let rest = text.as_bytes()[end..].iter();
                let length = rest.take_while(|byte| byte.is_ascii_lowercase()).count();
                self.folded.push_str(&text[end..end + length]);
                piece.range.end += length;
                piece.characters += length;
                end += length;
            }
        }
        (end, false)
    }

    /// Takes the pieces from `first` on as one if they are so short that they say nothing: `3f2a9c`, `aGVsbG8`.
    fn limit_pieces(&mut self, first: usize) {
        let pieces = &self.pieces[first..];
        let characters: usize = pieces.iter().map(|piece| piece.characters).sum();
        if pieces.len() > 2.max(characters / 3) {
            let range = pieces[0].range.start..self.folded.len();
            self.pieces.truncate(first);
            self.pieces.push(Piece {
                range,
                characters,
                kind: Kind::Mixed,
                upper: false,
            });
        }
    }

    /// The joint at the start of `rest`, if something that it can join follows.
    fn joint(&self, rest: &str) -> Option<&'static str> {
        let ends_in_group = || {
            self.pieces.last().is_some_and(|piece| {
                let grouped = self
                    .segments
                    .last()
                    .is_some_and(|segment| GROUP_JOINTS.contains(&segment.joint));
                piece.kind == Kind::Digits
                    && if grouped {
                        piece.characters == 3
                    } else {
                        piece.characters <= 3
                    }
            })
        };
        // Most words end with a space, or with a sign and a space.
        if let [first, second @ ..] = rest.as_bytes()
            && first.is_ascii()
            && (!b",-_'.:/\\@&+".contains(first) || second.first().is_none_or(|&next| next == b' '))
        {
            return None;
        }
        if let Some(group) = rest.strip_prefix(',') {
            return ((starts_with_group(group) && ends_in_group())
                || (starts_with_decimals(group) && self.may_have_decimals()))
            .then_some(",");
        }
        JOINTS
            .into_iter()
            .find(|joint| rest.strip_prefix(joint).is_some_and(starts_with_word))
    }

    /// Whether what was read are digits, in groups with dots or not, which a decimal comma may follow.
    fn may_have_decimals(&self) -> bool {
        !self.in_list
            && self.segments.iter().enumerate().all(|(index, segment)| {
                matches!(&self.pieces[segment.pieces.clone()], [piece] if piece.kind == Kind::Digits
                && (index == 0 || (segment.joint == "." && piece.characters == 3)))
            })
    }

    /// Whether the segments before and the pieces from `first_piece` on are a year, a month and a day.
    fn is_date_up_to(&self, first_piece: usize) -> bool {
        let [year, month] = self.segments.as_slice() else {
            return false;
        };
        month.joint == "-"
            && self.pieces.len() == first_piece + 1
            && self.is_digits(year, 4..=4)
            && self.is_digits(month, 2..=2)
            && self.pieces[first_piece].kind == Kind::Digits
            && self.pieces[first_piece].characters == 2
    }

    fn is_digits(&self, segment: &Segment, characters: RangeInclusive<usize>) -> bool {
        match &self.pieces[segment.pieces.clone()] {
            [piece] => piece.kind == Kind::Digits && characters.contains(&piece.characters),
            _ => false,
        }
    }

    /// Removes what a contraction adds to a word: `'s`, `'re`; and the whole of `don't` but for its letters.
    fn drop_clitic(&mut self) {
        let [.., host, last] = self.segments.as_slice() else {
            return;
        };
        let clitic = &self.folded[self.pieces[last.pieces.start].range.clone()];
        if !matches!(last.joint, "'" | "\u{2019}")
            || last.pieces.len() != 1
            || !CLITICS.contains(&clitic)
        {
            return;
        }
        if clitic == "t" {
            // One word of letters, which is in the list of stop words without its apostrophe.
            let (host, last) = (host.pieces.end - 1, last.pieces.start);
            self.pieces[host].range.end = self.pieces[last].range.end;
            self.pieces[host].characters += 1;
            self.pieces[host].upper = false;
        }
        self.pieces.pop();
        self.segments.pop();
    }
}

/// How far apart a joint keeps what it joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    /// The steps of a path, the sides of an address.
    Strong,
    Dot,
    /// The words of a name.
    Weak,
}

fn strength(joint: &str) -> Strength {
    match joint {
        "." => Strength::Dot,
        "-" | "\u{2010}" | "_" | "'" | "\u{2019}" => Strength::Weak,
        _ => Strength::Strong,
    }
}

/// Bytes of `Compound::folded` from the first to the last of these pieces.
fn range_of(pieces: &[Piece]) -> Range<usize> {
    match pieces {
        [first, .., last] => first.range.start..last.range.end,
        [only] => only.range.clone(),
        [] => 0..0,
    }
}

fn starts_with_word(text: &str) -> bool {
    matches!(
        text.chars().next().map(class),
        Some(Class::Upper | Class::Letter | Class::Digit)
    )
}

/// Whether `text` starts with exactly three digits.
fn starts_with_group(text: &str) -> bool {
    let digits = text.bytes().take(4).take_while(u8::is_ascii_digit).count();
    digits == 3
}

/// Whether `text` starts with one or two digits that end a number.
fn starts_with_decimals(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = text[digits..].bytes();
    (1..=2).contains(&digits)
        && match (rest.next(), rest.next()) {
            (Some(b',' | b'.' | b'-' | b'/' | b':'), Some(next)) => !next.is_ascii_digit(),
            _ => true,
        }
}

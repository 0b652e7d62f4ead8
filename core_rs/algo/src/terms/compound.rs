//! Words, numbers and what is made of them without a space: identifiers, versions, dates, paths, addresses.

use std::ops::Range;

use super::fold::{Class, class, fold_into};
use super::words::Words;
use super::{MAX_TERM_BYTES, fnv1a};

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
    /// Indexes of `Compound::pieces`.
    pieces: Range<usize>,
}

/// One compound, read into buffers that are kept for the next.
#[derive(Debug, Default)]
pub(super) struct Compound {
    folded: String,
    pieces: Vec<Piece>,
    segments: Vec<Segment>,
    /// `++` or `#` at the end, as in the names of programming languages.
    suffix: &'static str,
    whole: String,
}

impl Compound {
    /// Reads the compound of `text` whose first letter or digit is at `start`, and returns its end.
    pub(super) fn read(&mut self, text: &str, start: usize) -> usize {
        self.folded.clear();
        self.pieces.clear();
        self.segments.clear();
        self.suffix = "";
        let mut position = start;
        let mut joint = "";
        loop {
            let first_piece = self.pieces.len();
            let (end, is_date) = self.read_segment(text, position);
            self.limit_pieces(first_piece);
            self.segments.push(Segment {
                joint,
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

    /// Passes the terms of the compound to `sink`.
    pub(super) fn emit(
        &mut self,
        words: &mut Words,
        keep_stop_words: bool,
        sink: &mut impl FnMut(&str),
    ) {
        let mut terms = Terms {
            words,
            keep_stop_words,
            sink,
        };
        self.drop_clitic();
        self.whole.clear();
        if let ([piece], "") = (self.pieces.as_slice(), self.suffix) {
            terms.emit(
                &self.folded[piece.range.clone()],
                piece.kind,
                piece.upper && piece.characters > 1,
            );
        } else if self.is_dotted_acronym() {
            self.folded_pieces_into_whole();
            terms.emit(
                &self.whole,
                Kind::Letters,
                self.pieces.iter().all(|piece| piece.upper),
            );
        } else if self.is_number() {
            for segment in &self.segments {
                if segment.joint == "." {
                    self.whole.push('.');
                }
                self.whole
                    .push_str(&self.folded[self.pieces[segment.pieces.start].range.clone()]);
            }
            terms.emit(&self.whole, Kind::Digits, false);
            if let Some(unit) = self
                .pieces
                .last()
                .filter(|piece| piece.kind == Kind::Letters)
            {
                let unit_text = &self.folded[unit.range.clone()];
                terms.emit(unit_text, unit.kind, unit.upper);
                self.whole.push_str(unit_text);
                terms.emit(&self.whole, Kind::Mixed, false);
            }
        } else {
            for piece in &self.pieces {
                terms.emit(
                    &self.folded[piece.range.clone()],
                    piece.kind,
                    piece.upper && piece.characters > 1,
                );
            }
            let kind = self.join_whole();
            terms.emit(&self.whole, kind, true);
        }
    }

    /// Gives back what the buffers hold above `bytes`.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        self.folded.clear();
        self.folded.shrink_to(bytes);
        self.whole.clear();
        self.whole.shrink_to(bytes);
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
        let mut characters = text[start..].char_indices().peekable();
        while let Some((offset, character)) = characters.next() {
            let found = class(character);
            let digit = found == Class::Digit;
            match found {
                Class::Ignored => {
                    end = start + offset + character.len_utf8();
                    continue;
                }
                Class::Upper | Class::Letter | Class::Digit => {}
                _ => break,
            }
            let next = characters
                .peek()
                .map_or(Class::Other, |&(_, next)| class(next));
            if character == 'T' && next == Class::Digit && self.is_date_up_to(first_piece) {
                return (start + offset + 1, true);
            }
            end = start + offset + character.len_utf8();
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
                    if piece.characters > 3 && next == Class::Letter {
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
        if rest.starts_with(' ') {
            return None;
        }
        if let Some(group) = rest.strip_prefix(',') {
            return (ends_in_group() && starts_with_group(group)).then_some(",");
        }
        JOINTS
            .into_iter()
            .find(|joint| rest.strip_prefix(joint).is_some_and(starts_with_word))
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

    fn is_digits(&self, segment: &Segment, characters: std::ops::RangeInclusive<usize>) -> bool {
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

    fn is_dotted_acronym(&self) -> bool {
        self.segments.len() > 1
            && self.segments.len() == self.pieces.len()
            && self.segments[1..]
                .iter()
                .all(|segment| segment.joint == ".")
            && self
                .pieces
                .iter()
                .all(|piece| piece.kind == Kind::Letters && piece.characters == 1)
    }

    /// Whether the compound is digits, in groups or not, with at most one decimal point, and possibly a unit.
    fn is_number(&self) -> bool {
        let last = self.segments.len() - 1;
        let grouped = self
            .segments
            .iter()
            .skip(1)
            .take_while(|segment| self.is_group(segment))
            .count();
        self.segments.iter().enumerate().all(|(index, segment)| {
            let pieces = &self.pieces[segment.pieces.clone()];
            let joint_fits = index <= grouped || (index == last && segment.joint == ".");
            let unit_fits = match pieces {
                [_] => true,
                [_, unit] => index == last && unit.kind == Kind::Letters,
                _ => false,
            };
            joint_fits && unit_fits && pieces[0].kind == Kind::Digits
        })
    }

    fn is_group(&self, segment: &Segment) -> bool {
        GROUP_JOINTS.contains(&segment.joint) && self.pieces[segment.pieces.start].characters == 3
    }

    /// Whether the compound is a year, a month and a day with the same joints.
    fn is_date(&self) -> bool {
        match self.segments.as_slice() {
            [year, month, day] => {
                month.joint == day.joint
                    && matches!(month.joint, "-" | "/" | ".")
                    && self.is_digits(year, 4..=4)
                    && self.is_digits(month, 1..=2)
                    && self.is_digits(day, 1..=2)
            }
            _ => false,
        }
    }

    fn folded_pieces_into_whole(&mut self) {
        for piece in &self.pieces {
            self.whole.push_str(&self.folded[piece.range.clone()]);
        }
    }

    /// Writes the term of the whole into `self.whole` and returns its kind.
    fn join_whole(&mut self) -> Kind {
        let is_date = self.is_date();
        for (index, segment) in self.segments.iter().enumerate() {
            let pieces = &self.pieces[segment.pieces.clone()];
            let text = &self.folded[pieces[0].range.start..pieces[pieces.len() - 1].range.end];
            let after_digit = self.whole.ends_with(|c: char| c.is_ascii_digit());
            let before_digit = text.starts_with(|c: char| c.is_ascii_digit());
            if is_date && index > 0 {
                self.whole.push('-');
                if text.len() == 1 {
                    self.whole.push('0');
                }
            } else if !matches!(segment.joint, "-" | "\u{2010}" | "_" | "'" | "\u{2019}") {
                self.whole.push_str(segment.joint);
            } else if after_digit && before_digit {
                self.whole.push('-');
            }
            let is_version = index == 0
                && matches!(pieces, [_, number] if number.kind == Kind::Digits)
                && self.segments.get(1).is_some_and(|next| next.joint == ".");
            self.whole.push_str(
                text.strip_prefix('v')
                    .filter(|_| is_version)
                    .unwrap_or(text),
            );
        }
        self.whole.push_str(self.suffix);
        if self.whole.bytes().all(|byte| byte.is_ascii_lowercase()) {
            Kind::Letters
        } else {
            Kind::Mixed
        }
    }
}

/// Turns folded words into terms.
struct Terms<'a, Sink> {
    words: &'a mut Words,
    keep_stop_words: bool,
    sink: &'a mut Sink,
}

impl<Sink: FnMut(&str)> Terms<'_, Sink> {
    /// Passes the term of `word` to the sink; a stop word only if stop words are kept or `keep` says so.
    fn emit(&mut self, word: &str, kind: Kind, keep: bool) {
        if word.len() > MAX_TERM_BYTES {
            (self.sink)(&hashed(word));
        } else if kind == Kind::Letters && word.is_ascii() {
            self.words
                .emit(word, keep || self.keep_stop_words, self.sink);
        } else if !word.is_empty() {
            (self.sink)(word);
        }
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

/// What replaces a term that is too long.
fn hashed(term: &str) -> String {
    format!("#{:016x}", fnv1a(term))
}

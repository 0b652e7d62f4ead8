//! The terms of a compound: itself, its parts, and what else it may be written as.

use std::ops::{Range, RangeInclusive};

use super::{Compound, GROUP_JOINTS, Kind, Segment, Strength, range_of};
use crate::terms::words::Words;
use crate::terms::{MAX_TERM_BYTES, dates, fnv1a};

/// Digits of the shortest name that tools give to a hash.
const SHORT_HASH: usize = 7;
/// Digits of a hash that has a shorter name.
const HASH: RangeInclusive<usize> = 8..=64;

/// The first ordinals as words; a later one is rarely written out.
const ORDINALS: [&str; 12] = [
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth",
];

/// How a compound reads as one number.
enum Number {
    /// With a decimal point, or none.
    Point,
    /// With a decimal comma: `1.200,50`, or `12,50`, which may also be two numbers.
    Comma,
    /// With points between groups of three: `1.200.000`, or `1.200`, which may also be a fraction.
    PointGroups,
}

impl Compound {
    /// Passes the terms of the compound to `sink`.
    pub(in crate::terms) fn emit(
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
        if let ([piece], "") = (self.pieces.as_slice(), self.suffix) {
            terms.emit(
                &self.folded[piece.range.clone()],
                piece.kind,
                piece.upper && piece.characters > 1,
            );
            if piece.kind != Kind::Letters || !self.umlauts.is_empty() {
                self.emit_spellings(&mut terms);
            }
        } else if self.is_dotted_acronym() {
            self.whole.clear();
            self.whole.extend(
                self.pieces
                    .iter()
                    .map(|piece| &self.folded[piece.range.clone()]),
            );
            terms.emit(
                &self.whole,
                Kind::Letters,
                self.pieces.iter().all(|piece| piece.upper),
            );
        } else if let Some(number) = self.number() {
            self.emit_number(&number, &mut terms);
        } else {
            let is_date = self.emit_dates(terms.sink);
            if !is_date && self.is_dotted_numbers() {
                let count = self.segments.len();
                for end in [count - 1, count, count] {
                    let kind = self.join(0..end);
                    terms.emit(&self.whole, kind, true);
                }
                return;
            }
            for piece in &self.pieces {
                terms.emit(
                    &self.folded[piece.range.clone()],
                    piece.kind,
                    piece.upper && piece.characters > 1,
                );
            }
            self.emit_spellings(&mut terms);
            if !is_date {
                self.emit_groups(&mut terms);
            }
        }
    }

    /// Passes what else the pieces and segments may be written as: a word with its umlauts written out, a hash by its first
    /// digits, eight digits as a date.
    fn emit_spellings<Sink: FnMut(&str)>(&mut self, terms: &mut Terms<'_, Sink>) {
        let mut umlauts = self.umlauts.as_slice();
        for piece in &self.pieces {
            let inside = umlauts.partition_point(|&end| end <= piece.range.end);
            let (here, later) = umlauts.split_at(inside);
            umlauts = later;
            if here.is_empty() {
                continue;
            }
            self.whole.clear();
            let mut from = piece.range.start;
            for &vowel_end in here {
                self.whole.push_str(&self.folded[from..vowel_end]);
                self.whole.push('e');
                from = vowel_end;
            }
            self.whole.push_str(&self.folded[from..piece.range.end]);
            terms.emit(&self.whole, piece.kind, false);
        }
        for (index, segment) in self.segments.iter().enumerate() {
            let text = self.text_of(segment);
            let [piece, ..] = &self.pieces[segment.pieces.clone()] else {
                continue;
            };
            if text.len() < *HASH.start() {
                continue;
            }
            if segment.pieces.len() == 1 && piece.kind == Kind::Digits {
                if piece.characters == 8 {
                    dates::compact(text, terms.sink);
                }
                continue;
            }
            let stands_alone = segment.strength == Strength::Strong
                && self
                    .segments
                    .get(index + 1)
                    .is_none_or(|next| next.strength == Strength::Strong);
            if stands_alone && is_hash(text) {
                (terms.sink)(&text[..SHORT_HASH]);
            }
        }
    }

    fn emit_number<Sink: FnMut(&str)>(&mut self, number: &Number, terms: &mut Terms<'_, Sink>) {
        let last = self.segments.len() - 1;
        if matches!(number, Number::Comma) && last == 1 {
            for segment in &self.segments {
                let digits = &self.pieces[segment.pieces.start];
                terms.emit(&self.folded[digits.range.clone()], Kind::Digits, false);
            }
        }
        self.whole.clear();
        for (index, segment) in self.segments.iter().enumerate() {
            let is_point = match number {
                Number::Comma => index == last && last > 0,
                Number::Point => segment.joint == ".",
                Number::PointGroups => false,
            };
            if is_point {
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
            let ordinal = dates::is_ordinal(unit_text);
            let word = self
                .whole
                .parse()
                .ok()
                .and_then(|value: usize| ORDINALS.get(value.wrapping_sub(1)))
                .filter(|_| ordinal);
            if let Some(word) = word {
                terms.emit(word, Kind::Letters, true);
            } else {
                if !ordinal {
                    terms.emit(unit_text, unit.kind, unit.upper);
                }
                self.whole.push_str(unit_text);
                terms.emit(&self.whole, Kind::Mixed, false);
                self.whole.truncate(self.whole.len() - unit_text.len());
            }
        }
        if matches!(number, Number::PointGroups) {
            // The other reading: a fraction, a version.
            self.join(0..self.segments.len());
            terms.emit(&self.whole, Kind::Digits, false);
        } else if let Some(amount) = self.whole.strip_suffix(".00") {
            terms.emit(amount, Kind::Digits, false);
        }
    }

    /// Passes the terms of the dates that three segments of digits make. Returns whether the whole compound is one.
    fn emit_dates(&self, sink: &mut impl FnMut(&str)) -> bool {
        let digits = |index: usize| {
            let segment = &self.segments[index];
            (segment.pieces.len() == 1 && self.pieces[segment.pieces.start].kind == Kind::Digits)
                .then(|| self.text_of(segment))
        };
        let count = self.segments.len();
        if let [_, second] = self.segments.as_slice()
            && matches!(second.joint, "-" | "/")
            && let (Some(first), Some(second)) = (digits(0), digits(1))
        {
            return dates::numeric_month([first, second], sink);
        }
        let mut start = 0;
        while start + 3 <= count {
            let [second, third] = [1, 2].map(|offset| self.segments[start + offset].joint);
            if second == third
                && matches!(second, "-" | "/" | ".")
                && let (Some(a), Some(b), Some(c)) =
                    (digits(start), digits(start + 1), digits(start + 2))
                && dates::numeric([a, b, c], second, sink)
            {
                if count == 3 {
                    return true;
                }
                start += 3;
            } else {
                start += 1;
            }
        }
        false
    }

    /// Passes the terms of the whole and of its groups: what stands between the joints of a path or an address, between
    /// dots, and between any joints; and of each two steps of a path. A group that is one piece has been passed already.
    /// The whole counts twice, so that it weighs as much as parts that are found apart from each other.
    fn emit_groups<Sink: FnMut(&str)>(&mut self, terms: &mut Terms<'_, Sink>) {
        let count = self.segments.len();
        let splits = [Strength::Strong, Strength::Dot, Strength::Weak];
        for split in splits.into_iter().filter(|_| count > 1) {
            let (mut before, mut start) = (0, 0);
            for end in 1..=count {
                if end < count && self.segments[end].strength > split {
                    continue;
                }
                // A group with stronger joints, or none, on both sides was one before.
                let is_new = (start > 0 && self.segments[start].strength == split)
                    || (end < count && self.segments[end].strength == split);
                let pieces = self.segments[start].pieces.start..self.segments[end - 1].pieces.end;
                if is_new && pieces.len() > 1 {
                    let kind = self.join(start..end);
                    terms.emit(&self.whole, kind, true);
                }
                let is_step = matches!(self.segments[start].joint, "/" | "\\");
                if split == Strength::Strong && is_step && (before > 0 || end < count) {
                    let kind = self.join(before..end);
                    terms.emit(&self.whole, kind, true);
                }
                (before, start) = (start, end);
            }
        }
        let kind = self.join(0..count);
        self.whole.push_str(self.suffix);
        let kind = if self.suffix.is_empty() {
            kind
        } else {
            Kind::Mixed
        };
        terms.emit(&self.whole, kind, true);
        terms.emit(&self.whole, kind, true);
    }

    /// Whether the compound is three numbers or more with dots, possibly after a `v`: a version or an address, of which
    /// one number says nothing.
    fn is_dotted_numbers(&self) -> bool {
        self.segments.len() > 2
            && self.segments.iter().enumerate().all(|(index, segment)| {
                let [.., digits] = &self.pieces[segment.pieces.clone()] else {
                    return false;
                };
                let is_v = index == 0 && self.text_of(segment).starts_with('v');
                digits.kind == Kind::Digits
                    && segment.pieces.len() == if is_v { 2 } else { 1 }
                    && (index == 0 || segment.joint == ".")
            })
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

    /// How the compound reads as one number, possibly with a unit.
    fn number(&self) -> Option<Number> {
        let last = self.segments.len() - 1;
        let all_digits = self.segments.iter().enumerate().all(|(index, segment)| {
            match &self.pieces[segment.pieces.clone()] {
                [digits] => digits.kind == Kind::Digits,
                [digits, unit] => {
                    index == last && digits.kind == Kind::Digits && unit.kind == Kind::Letters
                }
                _ => false,
            }
        });
        if !all_digits {
            return None;
        }
        let characters = |segment: &Segment| self.pieces[segment.pieces.start].characters;
        let joints = |joints: &[&str], segments: &[Segment]| {
            segments
                .iter()
                .all(|segment| joints.contains(&segment.joint) && characters(segment) == 3)
        };
        let first = characters(&self.segments[0]);
        let rest = &self.segments[1..];
        match rest {
            [groups @ .., decimals]
                if decimals.joint == ","
                    && characters(decimals) < 3
                    && (groups.is_empty() || first <= 3)
                    && joints(&["."], groups) =>
            {
                Some(Number::Comma)
            }
            [_, ..] if first <= 3 && joints(&["."], rest) && !self.folded.starts_with('0') => {
                Some(Number::PointGroups)
            }
            [groups @ .., decimals] if decimals.joint == "." && joints(&GROUP_JOINTS, groups) => {
                Some(Number::Point)
            }
            _ if joints(&GROUP_JOINTS, rest) => Some(Number::Point),
            _ => None,
        }
    }

    /// Writes the term of these segments into `self.whole` and returns its kind.
    fn join(&mut self, segments: Range<usize>) -> Kind {
        self.whole.clear();
        for (index, segment) in self.segments[segments.clone()].iter().enumerate() {
            let pieces = &self.pieces[segment.pieces.clone()];
            let text = &self.folded[range_of(pieces)];
            if index > 0 && segment.strength < Strength::Weak {
                self.whole.push_str(segment.joint);
            } else if self.whole.ends_with(|c: char| c.is_ascii_digit())
                && text.starts_with(|c: char| c.is_ascii_digit())
            {
                self.whole.push('-');
            }
            let is_version = index == 0
                && segments.len() > 1
                && matches!(pieces, [_, number] if number.kind == Kind::Digits)
                && self.segments[segments.start + 1].joint == ".";
            self.whole.push_str(
                text.strip_prefix('v')
                    .filter(|_| is_version)
                    .unwrap_or(text),
            );
        }
        if self.whole.bytes().all(|byte| byte.is_ascii_lowercase()) {
            Kind::Letters
        } else {
            Kind::Mixed
        }
    }
}

/// Whether these are hexadecimal digits, letters among them.
fn is_hash(text: &str) -> bool {
    HASH.contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
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
            (self.sink)(without_article(word));
        }
    }
}

/// An Arabic word without its article, also after the prepositions and the `and` that are written with it.
fn without_article(word: &str) -> &str {
    ["ال", "وال", "بال", "كال", "فال"]
        .into_iter()
        .find_map(|article| word.strip_prefix(article))
        .filter(|rest| rest.len() >= 6)
        .unwrap_or(word)
}

/// What replaces a term that is too long.
fn hashed(term: &str) -> String {
    format!("#{:016x}", fnv1a(term))
}

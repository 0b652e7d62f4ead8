//! JSON as text: its leaves as `key: value`.

use super::cut::{cut, one_line};
use super::{Candidate, ENCODING, SUMMARY_TOKENS, joined};

/// Deeper values make the text no JSON for us.
const MAX_DEPTH: usize = 128;
/// A value in a summary is cut to this while others are to be taken.
const VALUE_TOKENS: u32 = 20;
/// As many leaves as are measured for a summary.
const MAX_COMPARED: usize = 64;

/// Keys whose values say most about an object, by the last word of the key.
const TELLING_KEYS: [&str; 24] = [
    "error",
    "status",
    "message",
    "title",
    "name",
    "summary",
    "description",
    "result",
    "reason",
    "total",
    "count",
    "price",
    "amount",
    "date",
    "id",
    "type",
    "code",
    "state",
    "answer",
    "text",
    "content",
    "time",
    "subject",
    "email",
];

/// A value that is no object and no array, or the scalars of one array.
pub(super) struct Leaf {
    /// The last two keys on the way to it.
    path: String,
    pub(super) value: String,
    is_text: bool,
    depth: usize,
    /// Its place in the arrays around it, added up.
    place: usize,
    /// Leaves of different elements of an array are on different lines.
    pub(super) line: usize,
}

impl Leaf {
    /// What stands before the value.
    pub(super) fn key(&self) -> String {
        if self.path.is_empty() {
            String::new()
        } else {
            format!("{}: ", self.path)
        }
    }

    /// How much it says by itself: a field of an element of a list says nothing without the others.
    pub(super) fn telling(&self) -> f64 {
        if self.depth <= 1 { weight(self) } else { 0.0 }
    }

    /// The leaf with its value cut to `value_tokens`.
    fn text(&self, value_tokens: u32) -> String {
        let mut text = String::new();
        self.push_to(&mut text, &cut(&self.value, value_tokens));
        text
    }

    fn push_to(&self, out: &mut String, value: &str) {
        if !self.path.is_empty() {
            out.push_str(&self.path);
            out.push_str(": ");
        }
        out.push_str(value);
    }
}

/// The leaves of a JSON object or array as text, for indexing: `user.name: Ann; user.tags: a, b`.
///
/// Each leaf has its last two keys. Strings are without quotes and on one line, numbers as they were written; what is
/// null or empty is left out. The elements of an array of objects are on lines of their own. `None` if the text is not
/// exactly one JSON object or array, is nested deeper than 128 levels, or has no leaf.
pub fn flatten_json(text: &str) -> Option<String> {
    let mut flat = String::with_capacity(text.len());
    let mut line = 0;
    for leaf in leaves(text)? {
        if !flat.is_empty() {
            flat.push_str(if leaf.line == line { "; " } else { "\n" });
        }
        line = leaf.line;
        leaf.push_to(&mut flat, &leaf.value);
    }
    Some(flat)
}

/// A summary of a JSON object or array: all leaves if they fit, else the most telling.
pub(super) fn summary(text: &str) -> Option<String> {
    let leaves = leaves(text)?;
    let mut by_weight: Vec<usize> = (0..leaves.len()).collect();
    by_weight.sort_by(|&a, &b| {
        weight(&leaves[b])
            .total_cmp(&weight(&leaves[a]))
            .then(a.cmp(&b))
    });
    let mut chosen: Vec<Candidate> = Vec::new();
    let mut room = SUMMARY_TOKENS;
    let mut longest = None;
    for order in by_weight.into_iter().take(MAX_COMPARED) {
        let text = leaves[order].text(VALUE_TOKENS);
        let tokens = ENCODING.count(&text) + 1;
        if tokens <= room {
            room -= tokens;
            if longest.is_none()
                && ENCODING
                    .count_within(&leaves[order].value, VALUE_TOKENS)
                    .is_none()
            {
                longest = Some(chosen.len());
            }
            chosen.push(Candidate { order, text });
        }
    }
    // The room that is left goes to the most telling of the values that were cut.
    if let Some(index) = longest {
        chosen[index].text = leaves[chosen[index].order].text(VALUE_TOKENS + room);
    }
    joined(chosen, |_| "; ")
}

/// How much a leaf says about the whole: shallow and early ones, text and telling keys most.
fn weight(leaf: &Leaf) -> f64 {
    let key = leaf
        .path
        .rsplit(['.', '_', '-', ' '])
        .next()
        .unwrap_or_default()
        .to_lowercase();
    let telling = if TELLING_KEYS.contains(&key.as_str()) {
        3.0
    } else {
        1.0
    };
    let kind = if leaf.is_text && leaf.value.len() <= 200 {
        1.0
    } else {
        0.7
    };
    // An object under its own id says nothing new with its id.
    let news = if leaf.path.contains(leaf.value.as_str()) {
        0.3
    } else {
        1.0
    };
    telling * kind * news / ((1.0 + 0.4 * leaf.depth as f64) * (1.0 + leaf.place as f64))
}

pub(super) fn leaves(text: &str) -> Option<Vec<Leaf>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let mut parser = Parser {
        text,
        position: 0,
        keys: Vec::new(),
        place: 0,
        line: 0,
        leaves: Vec::new(),
    };
    parser.value(0)?;
    parser.skip_space();
    (parser.position == text.len() && !parser.leaves.is_empty()).then_some(parser.leaves)
}

/// A reader of the grammar of RFC 8259 that keeps numbers as they are written and keys in their order, neither of which
/// a tree of values does.
struct Parser<'text> {
    text: &'text str,
    position: usize,
    keys: Vec<String>,
    place: usize,
    line: usize,
    leaves: Vec<Leaf>,
}

impl Parser<'_> {
    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.skip_space();
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => {
                let string = self.string()?;
                self.push_leaf(one_line(&string), true, depth, false);
                Some(())
            }
            _ => {
                let scalar = self.scalar()?;
                self.push_leaf(scalar, false, depth, false);
                Some(())
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.position += 1;
        self.skip_space();
        if self.take(b'}') {
            return Some(());
        }
        loop {
            self.skip_space();
            let key = self.string()?;
            self.keys.push(one_line(&key));
            self.skip_space();
            self.expect(b':')?;
            self.value(depth + 1)?;
            self.keys.pop();
            self.skip_space();
            if self.take(b'}') {
                return Some(());
            }
            self.expect(b',')?;
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.position += 1;
        self.skip_space();
        if self.take(b']') {
            return Some(());
        }
        let place = self.place;
        let mut follows_scalar = false;
        loop {
            self.skip_space();
            let is_nested = matches!(self.peek()?, b'{' | b'[');
            if is_nested {
                self.line += 1;
                self.value(depth + 1)?;
            } else {
                let is_text = self.peek()? == b'"';
                let scalar = if is_text {
                    one_line(&self.string()?)
                } else {
                    self.scalar()?
                };
                self.push_leaf(scalar, is_text, depth, follows_scalar);
            }
            follows_scalar = !is_nested;
            self.place += 1;
            self.skip_space();
            if self.take(b']') {
                self.place = place;
                // What follows the array is no part of its last element.
                self.line += usize::from(is_nested);
                return Some(());
            }
            self.expect(b',')?;
        }
    }

    /// Adds a leaf, or to the last one if this is the next scalar of its array.
    fn push_leaf(&mut self, value: String, is_text: bool, depth: usize, joins_list: bool) {
        if value.is_empty() {
            return;
        }
        let path = self.keys[self.keys.len().saturating_sub(2)..].join(".");
        if let Some(last) = self
            .leaves
            .last_mut()
            .filter(|last| joins_list && last.path == path)
        {
            last.value.push_str(", ");
            last.value.push_str(&value);
            return;
        }
        let (place, line) = (self.place, self.line);
        self.leaves.push(Leaf {
            path,
            value,
            is_text,
            depth,
            place,
            line,
        });
    }

    /// A string with its escapes resolved.
    fn string(&mut self) -> Option<String> {
        let start = self.position;
        self.expect(b'"')?;
        let bytes = self.text.as_bytes();
        let mut is_plain = true;
        loop {
            match *bytes.get(self.position)? {
                b'"' => break,
                b'\\' => {
                    is_plain = false;
                    self.position += 2;
                }
                0..=0x1f => return None,
                _ => self.position += 1,
            }
        }
        self.position += 1;
        if is_plain {
            return Some(self.text[start + 1..self.position - 1].to_owned());
        }
        serde_json::from_str(self.text.get(start..self.position)?).ok()
    }

    /// A number as it is written, `true` or `false`; empty for `null`.
    fn scalar(&mut self) -> Option<String> {
        let rest = &self.text[self.position..];
        let length = rest
            .bytes()
            .position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'+' | b'-' | b'.'))
            .unwrap_or(rest.len());
        let scalar = &rest[..length];
        let is_valid = matches!(scalar, "true" | "false" | "null") || is_number(scalar);
        self.position += length;
        is_valid.then(|| {
            if scalar == "null" {
                String::new()
            } else {
                scalar.to_owned()
            }
        })
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }
}

fn is_number(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(unsigned);
    if whole == 0 || (whole > 1 && unsigned.starts_with('0')) {
        return false;
    }
    let mut rest = &unsigned[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}

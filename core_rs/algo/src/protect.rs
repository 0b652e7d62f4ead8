//! Finds the parts of a text that a shortened form must keep word for word or leave out as a whole.
//!
//! A summary that turns "not before 9:30 on 17 May" into "before 9" is worse than none. The rules are plain character
//! tests for English and Chinese; they err on the side of protecting too much, which costs a cut point and nothing else.
//! They are no recogniser of entities: do not take a span of kind [`Kind::Name`] for a fact about the world.

mod words;

use crate::passages::Span;
use crate::terms::is_stop_word;
use words::Word;

/// Longer matches are blobs that no reader takes in as a whole, and are not protected.
pub const MAX_PROTECTED_BYTES: usize = 200;

/// What is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A number with its sign, currency, percent sign and unit.
    Number,
    /// A date, a time, a weekday or a month.
    Date,
    /// A code: letters with digits, `snake_case`, `camelCase`, a version.
    Identifier,
    /// A URL, an email address or a file path.
    Address,
    /// A quotation with its marks.
    Quote,
    /// Capitalised words in sequence, or an acronym.
    Name,
    /// A word that turns a statement into its opposite.
    Negation,
    /// A word that limits a statement.
    Condition,
}

/// A protected part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Protected {
    /// Where it is.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
}

/// The protected parts of `text`, in text order and without overlaps. Takes linear time.
pub fn protected(text: &str) -> Vec<Protected> {
    let mut found: Vec<Protected> = Vec::new();
    let mut position = 0;
    let mut previous = '\n';
    let mut starts_sentence = true;
    while let Some(character) = text[position..].chars().next() {
        let rest = &text[position..];
        let matched = if let Some(length) = quotation(rest, previous) {
            Match {
                skipped: 0,
                length,
                kind: Some(Kind::Quote),
            }
        } else if is_wide(character) {
            words::wide(rest, previous)
        } else if starts_chunk(rest, previous) {
            chunk(rest, starts_sentence)
        } else {
            Match {
                skipped: 0,
                length: character.len_utf8(),
                kind: None,
            }
        };
        let (start, end) = (
            position + matched.skipped,
            position + matched.skipped + matched.length,
        );
        if let Some(kind) = matched
            .kind
            .filter(|_| matched.length <= MAX_PROTECTED_BYTES)
        {
            found.push(Protected {
                span: Span::new(start, end),
                kind,
            });
        }
        // Quotes, brackets and the marks of list items leave it as it is.
        if matches!(character, '.' | '!' | '?' | '\n' | '。' | '！' | '？') {
            starts_sentence = true;
        } else if character.is_alphanumeric() {
            starts_sentence = false;
        }
        previous = text[..end].chars().next_back().unwrap_or(character);
        position = end;
    }
    found
}

/// How far the scan moves on, and what it found there.
struct Match {
    /// Bytes before the protected part.
    skipped: usize,
    /// Bytes of the protected part, or of what is not protected.
    length: usize,
    kind: Option<Kind>,
}

impl Match {
    fn new(length: usize, kind: Kind) -> Self {
        Self {
            skipped: 0,
            length,
            kind: Some(kind),
        }
    }
}

/// Han, kana and Hangul, and the punctuation written with them.
pub(crate) fn is_wide(character: char) -> bool {
    matches!(character, '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

/// The length of the quotation at the start of `text`, if it ends on the same line and is short.
fn quotation(text: &str, previous: char) -> Option<usize> {
    let open = text.chars().next()?;
    let close = match open {
        '"' | '`' | '\'' if !previous.is_alphanumeric() => open,
        '“' => '”',
        '‘' => '’',
        '«' => '»',
        '「' => '」',
        '『' => '』',
        '《' => '》',
        _ => return None,
    };
    let inside = &text[open.len_utf8()..];
    if inside.starts_with(|c: char| c.is_whitespace() || c == close) {
        return None;
    }
    let mut characters = inside
        .char_indices()
        .take_while(|&(at, c)| at < MAX_PROTECTED_BYTES && c != '\n')
        .peekable();
    while let Some((at, character)) = characters.next() {
        if character == close {
            // An apostrophe inside a word closes nothing.
            let closes = !matches!(close, '\'' | '’')
                || !characters
                    .peek()
                    .is_some_and(|&(_, next)| next.is_alphanumeric());
            if closes {
                return Some(open.len_utf8() + at + close.len_utf8());
            }
        }
    }
    None
}

fn starts_chunk(text: &str, previous: char) -> bool {
    let mut characters = text.chars();
    let first = characters.next().unwrap_or(' ');
    let second = characters.next().unwrap_or(' ');
    let after_word = previous.is_alphanumeric() && !is_wide(previous);
    if first.is_alphanumeric() {
        return !after_word;
    }
    !after_word
        && match first {
            '$' | '€' | '£' | '¥' | '₹' | '+' | '-' | '−' | '#' => {
                second.is_ascii_digit() || is_currency(second)
            }
            '.' => second.is_ascii_digit() || text.starts_with("./") || text.starts_with("../"),
            '/' | '~' | '@' | '_' => second.is_alphanumeric() || second == '/',
            _ => false,
        }
}

fn is_currency(character: char) -> bool {
    matches!(character, '$' | '€' | '£' | '¥' | '₹')
}

/// What is protected at the start of `text`, which starts with a word, a number or the like.
fn chunk(text: &str, starts_sentence: bool) -> Match {
    let chunk = take_chunk(text);
    let length = chunk.len();
    if is_address(chunk) {
        return Match::new(length, Kind::Address);
    }
    let digits_at = chunk
        .trim_start_matches(|c: char| is_currency(c) || matches!(c, '+' | '-' | '−' | '.' | '#'));
    if digits_at.starts_with(|c: char| c.is_ascii_digit()) {
        return number(text, chunk, digits_at);
    }
    let has_digit = chunk.chars().any(|c| c.is_ascii_digit());
    if has_digit || is_code(chunk) {
        return Match::new(length, Kind::Identifier);
    }
    word(text, chunk, starts_sentence)
}

/// The longest start of `text` without white space, brackets, quotes and CJK, and without punctuation at its end.
fn take_chunk(text: &str) -> &str {
    let mut end = text.len();
    let mut is_url = false;
    let mut previous = ' ';
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        is_url |= character == '/' && previous == '/';
        let next = characters.peek().map_or(' ', |&(_, next)| next);
        let stops = character.is_whitespace()
            || character.is_control()
            || is_wide(character)
            || matches!(
                character,
                '"' | '“' | '”' | '`' | '<' | '>' | '(' | ')' | '[' | ']' | '{' | '}' | '|'
            )
            || (matches!(character, ',' | ';' | '=')
                && !is_url
                && !(previous.is_ascii_digit() && next.is_ascii_digit()))
            || matches!(character, '—' | '–');
        if stops && at > 0 {
            end = at;
            break;
        }
        previous = character;
    }
    let chunk = &text[..end];
    let trimmed = chunk.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '’', '…', '-']);
    if trimmed.is_empty() { chunk } else { trimmed }
}

fn is_address(chunk: &str) -> bool {
    if chunk.contains("://") || chunk.starts_with("www.") {
        return true;
    }
    if let Some((user, host)) = chunk.split_once('@') {
        return !user.is_empty() && host.contains('.');
    }
    let separators = chunk
        .bytes()
        .filter(|byte| matches!(byte, b'/' | b'\\'))
        .count();
    let is_rooted = ["/", "./", "../", "~/"]
        .iter()
        .any(|root| chunk.starts_with(root))
        || chunk.contains(":\\");
    let has_letter = chunk.bytes().any(|byte| byte.is_ascii_alphabetic());
    has_letter && separators > 0 && (is_rooted || separators > 1 || has_extension(chunk))
}

/// Whether a file name with an extension ends the chunk.
fn has_extension(chunk: &str) -> bool {
    chunk.rsplit_once('.').is_some_and(|(name, extension)| {
        name.ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && (1..=5).contains(&extension.len())
            && extension
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}

/// Whether a chunk without digits is a name in a program: `snake_case`, `camelCase`, `a::b`, `file.txt`.
fn is_code(chunk: &str) -> bool {
    let changes_case = chunk
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    changes_case
        || chunk.contains('_')
        || chunk.contains("::")
        || (chunk.len() > 4 && has_extension(chunk))
}

/// A number, a date or a code that starts with a digit, with the unit or the month after it.
fn number(text: &str, chunk: &str, digits: &str) -> Match {
    let mut length = chunk.len();
    let numeric = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '\'' | '-' | '/' | ':');
    let tail = digits.trim_start_matches(numeric);
    let separators = digits
        .bytes()
        .filter(|byte| matches!(byte, b'-' | b'/'))
        .count();
    let is_time = digits.contains(':')
        && matches!(
            tail.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':'),
            "" | "Z" | "am" | "pm"
        );
    let is_stamp = digits.len() > 10 && digits.as_bytes()[10] == b'T' && separators >= 2;
    if is_stamp || is_time || (separators == 2 && tail.is_empty()) {
        let is_date = is_stamp
            || is_time
            || digits
                .split(['-', '/'])
                .all(|part| (1..=4).contains(&part.len()));
        let kind = if is_date {
            Kind::Date
        } else {
            Kind::Identifier
        };
        return Match::new(words::extended(text, length, words::is_half_day), kind);
    }
    let is_number = tail.len() <= 4
        && tail
            .chars()
            .all(|c| c.is_alphabetic() || matches!(c, '%' | '°' | '+' | '‰'));
    if !is_number {
        return Match::new(length, Kind::Identifier);
    }
    // A year, a unit or a scale in Chinese, which may go on with another number: 2024年5月17日.
    let wide = words::wide_number(&text[length..]);
    if wide > 0 {
        return Match::new(length + wide, Kind::Number);
    }
    let with_month = words::extended(text, length, words::is_month);
    if with_month > length {
        return Match::new(
            words::extended(text, with_month, words::is_year),
            Kind::Date,
        );
    }
    let kind = if words::is_half_day(tail) {
        Kind::Date
    } else {
        Kind::Number
    };
    let with_half_day = words::extended(text, length, words::is_half_day);
    if with_half_day > length {
        return Match::new(with_half_day, Kind::Date);
    }
    length = words::extended(text, length, words::is_scale);
    Match::new(words::extended(text, length, words::is_unit), kind)
}

/// A word, or the name that starts with it.
fn word(text: &str, chunk: &str, starts_sentence: bool) -> Match {
    let length = chunk.len();
    match words::classify(chunk) {
        Word::Negation => Match::new(length, Kind::Negation),
        Word::Condition => Match::new(length, Kind::Condition),
        Word::Number => Match::new(
            words::extended(
                text,
                words::extended(text, length, words::is_scale),
                words::is_unit,
            ),
            Kind::Number,
        ),
        Word::Weekday => Match::new(length, Kind::Date),
        Word::Month => {
            let with_day = words::extended(text, length, words::is_day_or_year);
            if with_day == length && matches!(chunk, "May" | "March" | "Mar") {
                return name(text, chunk, starts_sentence);
            }
            let with_year = text[with_day..]
                .strip_prefix(',')
                .map_or(with_day, |after_comma| {
                    let comma = text.len() - after_comma.len();
                    let end = words::extended(text, comma, words::is_year);
                    if end > comma { end } else { with_day }
                });
            Match::new(words::extended(text, with_year, words::is_year), Kind::Date)
        }
        Word::Plain => name(text, chunk, starts_sentence),
    }
}

/// The name that starts with `chunk`, if it is one.
fn name(text: &str, chunk: &str, starts_sentence: bool) -> Match {
    let plain = Match {
        skipped: 0,
        length: chunk.len(),
        kind: None,
    };
    if !words::is_capitalized(chunk) {
        return plain;
    }
    let is_acronym = words::is_acronym(chunk);
    let lower = chunk.to_lowercase();
    if !is_acronym && is_stop_word(&lower.replace(['\'', '’'], "")) {
        return plain;
    }
    let end = words::name_end(text, chunk);
    // A capital at the start of a sentence says nothing by itself.
    if starts_sentence && end == chunk.len() && !is_acronym {
        return plain;
    }
    Match::new(end, Kind::Name)
}

#[cfg(test)]
mod tests;

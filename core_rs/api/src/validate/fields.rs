//! Rules of single fields that several messages share.

use std::ops::RangeInclusive;
use std::time::Duration;

use prost::Message;
use recalld_counters::Counter;
use recalld_engine::kinds::DEFAULT_KIND;
use recalld_engine::token::Token;
use recalld_engine::types::Idempotency;
use recalld_store::ids::{MemoryId, Micros};
use recalld_vector::quantize;

use super::Context;
use super::report::{Path, Report, quoted};
use crate::canonical;
use crate::limits::{
    MAX_IDEMPOTENCY_KEY_BYTES, MAX_KEY_BYTES, MAX_KIND_BYTES, MAX_NAMED, MAX_TAG_BYTES,
};

/// Seconds of 0001-01-01T00:00:00Z, the first instant that a Timestamp can hold.
const FIRST_SECOND: i64 = -62_135_596_800;
/// Seconds of 9999-12-31T23:59:59Z, the last second that a Timestamp can hold.
const LAST_SECOND: i64 = 253_402_300_799;
/// The latest instant that a Timestamp can hold, in our precision.
pub(super) const LATEST: Micros = Micros(LAST_SECOND * 1_000_000 + 999_999);
/// Most seconds that a Duration can hold: about 10,000 years.
const MAX_DURATION_SECONDS: i64 = 315_576_000_000;

/// Characters that a text may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Characters {
    /// All but NUL.
    Any,
    /// All but control characters.
    Printable,
}

/// Checks the length and the characters of a text.
pub(super) fn text(
    report: &mut Report,
    at: &Path<'_>,
    value: &str,
    bytes: RangeInclusive<usize>,
    characters: Characters,
) {
    let (least, most) = (bytes.start(), bytes.end());
    match value.len() {
        0 if *least > 0 => report.wrong(at, "must not be empty"),
        length if length > *most => report.wrong(
            at,
            format_args!("must be at most {most} bytes, not {length}"),
        ),
        _ => {}
    }
    match characters {
        Characters::Any if value.contains('\0') => report.wrong(at, "must not contain NUL"),
        Characters::Printable if value.contains(char::is_control) => {
            report.wrong(at, "must not contain control characters");
        }
        _ => {}
    }
}

/// The value, or the default when it is unset.
pub(super) fn number(
    report: &mut Report,
    at: &Path<'_>,
    value: Option<u32>,
    default: u32,
    range: RangeInclusive<u32>,
) -> u32 {
    let value = value.unwrap_or(default);
    if !range.contains(&value) {
        report.wrong(
            at,
            format_args!("must be {} to {}, not {value}", range.start(), range.end()),
        );
    }
    value
}

/// The value, or the default when it is unset.
pub(super) fn real(
    report: &mut Report,
    at: &Path<'_>,
    value: Option<f64>,
    default: f64,
    range: RangeInclusive<f64>,
) -> f64 {
    let value = value.unwrap_or(default);
    // False for what is not a number.
    if !range.contains(&value) {
        report.wrong(
            at,
            format_args!("must be {} to {}, not {value}", range.start(), range.end()),
        );
    }
    value
}

/// An instant in microseconds; what is finer is cut, towards the past. None when it is wrong.
pub(super) fn instant(
    report: &mut Report,
    at: &Path<'_>,
    value: &prost_types::Timestamp,
) -> Option<Micros> {
    if !(FIRST_SECOND..=LAST_SECOND).contains(&value.seconds) {
        report.wrong(at, "must lie in the years 1 to 9999");
        return None;
    }
    nanoseconds(report, at, value.nanos)?;
    Some(Micros(
        value.seconds * 1_000_000 + i64::from(value.nanos / 1_000),
    ))
}

/// A length of time of at least a microsecond; what is finer is cut. None when it is wrong.
pub(super) fn span(
    report: &mut Report,
    at: &Path<'_>,
    value: &prost_types::Duration,
) -> Option<Duration> {
    let (seconds, nanos) = (value.seconds, value.nanos);
    if seconds < 0 || nanos < 0 || (seconds, nanos / 1_000) == (0, 0) {
        report.wrong(at, "must be greater than zero, by a microsecond at least");
        return None;
    }
    if seconds > MAX_DURATION_SECONDS {
        report.wrong(
            at,
            format_args!("must be at most {MAX_DURATION_SECONDS} seconds"),
        );
        return None;
    }
    nanoseconds(report, at, nanos)?;
    let micros = seconds * 1_000_000 + i64::from(nanos / 1_000);
    Some(Duration::from_micros(micros.unsigned_abs()))
}

fn nanoseconds(report: &mut Report, at: &Path<'_>, nanos: i32) -> Option<()> {
    if (0..1_000_000_000).contains(&nanos) {
        return Some(());
    }
    report.wrong(at, "must have nanoseconds of 0 to 999999999");
    None
}

/// A caller's own vector; None when there is none.
pub(super) fn vector(
    report: &mut Report,
    at: &Path<'_>,
    value: Vec<f32>,
    context: Context<'_>,
) -> Option<Vec<f32>> {
    if value.is_empty() {
        return None;
    }
    if let Err(error) = quantize::validate(&value, context.dimensions as usize) {
        report.wrong(at, error);
    }
    Some(value)
}

/// Name of a kind; empty means the default one.
pub(super) fn kind_or_default(report: &mut Report, at: &Path<'_>, value: String) -> String {
    if value.is_empty() {
        return DEFAULT_KIND.to_owned();
    }
    kind(report, at, &value);
    value
}

/// Name of a kind.
pub(super) fn kind(report: &mut Report, at: &Path<'_>, value: &str) {
    let valid = (1..=MAX_KIND_BYTES).contains(&value.len())
        && value
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.'));
    if !valid {
        report.wrong(
            at,
            format_args!(
                "must be 1 to {MAX_KIND_BYTES} of a-z, 0-9, `_`, `-` and `.`, not {}",
                quoted(value)
            ),
        );
    }
}

/// Tags, sorted, without repeats.
pub(super) fn tags(report: &mut Report, at: &Path<'_>, mut values: Vec<String>) -> Vec<String> {
    for (i, tag) in values.iter().enumerate() {
        text(
            report,
            &at.index(i),
            tag,
            1..=MAX_TAG_BYTES,
            Characters::Printable,
        );
    }
    values.sort_unstable();
    values.dedup();
    values
}

/// The field `encoding`: the name of a counter; empty means `o200k_base`.
pub(super) fn counter(report: &mut Report, value: &str, context: Context<'_>) -> Counter {
    if value.is_empty() {
        return Counter::default();
    }
    context.counters.get(value).unwrap_or_else(|| {
        let known: Vec<String> = context
            .counters
            .names()
            .into_iter()
            .map(|name| format!("`{name}`"))
            .collect();
        report.wrong(
            &Path::field("encoding"),
            format_args!("must be one of {}, not {}", known.join(", "), quoted(value)),
        );
        Counter::default()
    })
}

/// The field `at_least_as_fresh`; empty means none.
pub(super) fn token(report: &mut Report, value: &str) -> Option<Token> {
    if value.is_empty() {
        return None;
    }
    let token = value.parse();
    if let Err(error) = &token {
        report.wrong(
            &Path::field("at_least_as_fresh"),
            format_args!("is {error}"),
        );
    }
    token.ok()
}

/// The field `idempotency_key` of a request of which `rest` is all the rest; an empty key means none.
pub(super) fn idempotency(
    report: &mut Report,
    key: String,
    method: &str,
    rest: &impl Message,
) -> Option<Idempotency> {
    let at = Path::field("idempotency_key");
    text(
        report,
        &at,
        &key,
        0..=MAX_IDEMPOTENCY_KEY_BYTES,
        Characters::Any,
    );
    (!key.is_empty()).then(|| Idempotency {
        key,
        digest: canonical::request_digest(method, rest),
    })
}

/// The fields `ids` and `keys`: memories by name.
pub(super) fn named(report: &mut Report, ids: &[String], keys: &[String]) -> Vec<MemoryId> {
    let at = Path::field("ids");
    let named = ids.len() + keys.len();
    if named > MAX_NAMED {
        report.wrong(
            &at,
            format_args!("must be at most {MAX_NAMED} together with `keys`, not {named}"),
        );
    }
    let mut parsed = Vec::with_capacity(ids.len());
    for (i, id) in ids.iter().enumerate() {
        match id.parse() {
            Ok(id) => parsed.push(id),
            Err(error) => report.wrong(
                &at.index(i),
                format_args!("{error}; this is {}", quoted(id)),
            ),
        }
    }
    let at = Path::field("keys");
    for (i, key) in keys.iter().enumerate() {
        text(
            report,
            &at.index(i),
            key,
            1..=MAX_KEY_BYTES,
            Characters::Printable,
        );
    }
    parsed
}

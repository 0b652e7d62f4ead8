//! The words that gRPC says in HTTP headers: deadlines, encodings, request ids, statuses.
//!
//! Everything here is a function of a few bytes. What a caller sent is never echoed but for a request id that is safe
//! to log.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::handler::{Status, code};

/// Metadata that says to grpcio who asks. The front takes it from clients and sets it itself.
pub(crate) const IDENTITY: HeaderName = HeaderName::from_static("x-recalld-identity");

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const ENCODINGS: HeaderValue = HeaderValue::from_static("identity,deflate,gzip");
pub(crate) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

const MAX_REQUEST_ID_BYTES: usize = 128;
const MAX_TIMEOUT_DIGITS: usize = 8;

/// How the messages of a request may be compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
    Deflate,
}

/// What all metadata of a request counts for, as HTTP/2 counts it.
pub(crate) fn size(headers: &HeaderMap) -> usize {
    const OVERHEAD: usize = 32;
    let sizes = headers.iter();
    sizes
        .map(|(name, value)| name.as_str().len() + value.len() + OVERHEAD)
        .sum()
}

/// Whether a content type is that of gRPC, in any of its codecs.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    value
        .and_then(|value| value.strip_prefix(b"application/grpc"))
        .is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

/// The time that a caller gives a call; None for ever.
pub(crate) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get(GRPC_TIMEOUT) else {
        return Ok(None);
    };
    let malformed = || Status::of_protocol(code::INTERNAL, "grpc-timeout is malformed");
    parse_timeout(value.as_bytes())
        .map(Some)
        .ok_or_else(malformed)
}

/// One to eight digits and a unit.
fn parse_timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty()
        || digits.len() > MAX_TIMEOUT_DIGITS
        || !digits.iter().all(u8::is_ascii_digit)
    {
        return None;
    }
    let number = digits
        .iter()
        .fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// How the messages of a request are compressed.
pub(crate) fn encoding(headers: &HeaderMap) -> Result<Encoding, Status> {
    match headers.get(GRPC_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(Encoding::Identity),
        Some(b"gzip") => Ok(Encoding::Gzip),
        Some(b"deflate") => Ok(Encoding::Deflate),
        Some(_) => {
            let message = "grpc-encoding is not one of identity, deflate and gzip";
            Err(Status::of_protocol(code::UNIMPLEMENTED, message))
        }
    }
}

/// The id of a request: the caller's if it is safe to log, else a new one.
pub(crate) fn request_id(headers: &HeaderMap) -> HeaderValue {
    let given = headers.get_all(REQUEST_ID).into_iter();
    let mut safe = given.filter(|value| is_safe_to_log(value.as_bytes()));
    safe.next().cloned().unwrap_or_else(new_request_id)
}

fn is_safe_to_log(id: &[u8]) -> bool {
    (1..=MAX_REQUEST_ID_BYTES).contains(&id.len())
        && id
            .iter()
            .all(|c| c.is_ascii_alphanumeric() || b"._:/+=@-".contains(c))
}

fn new_request_id() -> HeaderValue {
    static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static MADE: AtomicU64 = AtomicU64::new(0);
    let id = SECRET.hash_one(MADE.fetch_add(1, Ordering::Relaxed));
    let id = format!("{id:016x}");
    HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("-"))
}

/// The trailers of a call that succeeded.
pub(crate) fn ok(request_id: HeaderValue) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(2);
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    trailers.insert(REQUEST_ID, request_id);
    trailers
}

/// The trailers of a call that failed.
pub(crate) fn failed(status: &Status, request_id: Option<HeaderValue>) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(5);
    trailers.insert(GRPC_STATUS, HeaderValue::from(status.code));
    if let Ok(message) = HeaderValue::try_from(percent_encode(&status.message)) {
        trailers.insert(GRPC_MESSAGE, message);
    }
    if !status.details.is_empty()
        && let Ok(details) = HeaderValue::try_from(STANDARD_NO_PAD.encode(&status.details))
    {
        trailers.insert(GRPC_STATUS_DETAILS, details);
    }
    if let Some(request_id) = request_id {
        trailers.insert(REQUEST_ID, request_id);
    }
    if status.code == code::UNIMPLEMENTED {
        trailers.insert(GRPC_ACCEPT_ENCODING, ENCODINGS);
    }
    trailers
}

/// Printable ASCII but for `%` as it is, every other byte as `%XX`.
fn percent_encode(message: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(message.len());
    for byte in message.bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            encoded.push(char::from(byte));
        } else {
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            encoded.push('%');
            encoded.extend(digits.map(char::from));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(name: &'static str, value: &[u8]) -> HeaderMap {
        let value = HeaderValue::from_bytes(value).unwrap();
        HeaderMap::from_iter([(HeaderName::from_static(name), value)])
    }

    #[test]
    fn units_of_timeouts() {
        let timeout = |text: &str| timeout(&headers("grpc-timeout", text.as_bytes()));
        for (text, expected) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("99999999S", Duration::from_secs(99_999_999)),
            ("5m", Duration::from_millis(5)),
            ("00000006u", Duration::from_micros(6)),
            ("0n", Duration::ZERO),
        ] {
            assert_eq!(timeout(text), Ok(Some(expected)), "{text}");
        }
        for text in [
            "",
            "S",
            "1",
            "1s",
            "-1S",
            "+1S",
            "1.5S",
            "1 S",
            " 1S",
            "123456789S",
            "1SS",
            "\u{661}S",
        ] {
            assert_eq!(timeout(text).unwrap_err().code, code::INTERNAL, "{text}");
        }
        assert_eq!(super::timeout(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn content_types() {
        for text in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc;x=y",
        ] {
            assert!(is_grpc(&headers("content-type", text.as_bytes())), "{text}");
        }
        for text in [
            "",
            "application/grpc-web",
            "application/grpcx",
            "text/plain",
        ] {
            assert!(
                !is_grpc(&headers("content-type", text.as_bytes())),
                "{text}"
            );
        }
        assert!(!is_grpc(&HeaderMap::new()));
    }

    #[test]
    fn the_first_safe_request_id_is_kept() {
        let mut given = headers("x-request-id", b"has space");
        given.append(REQUEST_ID, HeaderValue::from_static("a:b/1"));
        assert_eq!(request_id(&given), "a:b/1");
        let long = "f".repeat(129);
        let (first, second) = (
            request_id(&headers("x-request-id", long.as_bytes())),
            request_id(&HeaderMap::new()),
        );
        assert_ne!(first, second);
        assert_eq!((first.len(), second.len()), (16, 16));
    }

    fn percent_decode(text: &str) -> Vec<u8> {
        let mut rest = text.as_bytes();
        let mut decoded = Vec::new();
        while let Some((&first, tail)) = rest.split_first() {
            if first == b'%' {
                let digits = std::str::from_utf8(&tail[..2]).unwrap();
                decoded.push(u8::from_str_radix(digits, 16).unwrap());
                rest = &tail[2..];
            } else {
                decoded.push(first);
                rest = tail;
            }
        }
        decoded
    }

    proptest! {
        #[test]
        fn timeouts_round_trip(number in 0u64..100_000_000, unit in 0usize..6) {
            let units = ["H", "M", "S", "m", "u", "n"];
            let nanos = [3_600_000_000_000u128, 60_000_000_000, 1_000_000_000, 1_000_000, 1_000, 1];
            let text = format!("{number}{}", units[unit]);
            let parsed = parse_timeout(text.as_bytes()).unwrap();
            prop_assert_eq!(parsed.as_nanos(), u128::from(number) * nanos[unit]);
        }

        #[test]
        fn any_bytes_are_a_timeout_or_none(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            if parse_timeout(&bytes).is_some() {
                let text = std::str::from_utf8(&bytes).unwrap();
                prop_assert!(text.len() <= 9 && text[..text.len() - 1].parse::<u32>().is_ok());
            }
        }

        #[test]
        fn messages_survive_as_headers(message in any::<String>()) {
            let encoded = percent_encode(&message);
            prop_assert!(HeaderValue::try_from(encoded.as_str()).is_ok());
            prop_assert_eq!(percent_decode(&encoded), message.into_bytes());
        }

        #[test]
        fn kept_request_ids_are_safe(text in "[^\\x00-\\x1f\\x7f]{0,200}") {
            let kept = request_id(&headers("x-request-id", text.as_bytes()));
            prop_assert!(is_safe_to_log(kept.as_bytes()));
        }
    }
}

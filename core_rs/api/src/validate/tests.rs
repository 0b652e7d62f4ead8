//! Every rule, once broken and once just kept.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hostile;

use std::collections::BTreeMap;
use std::time::Duration;

use recalld_algo::tokens::Encoding;
use recalld_engine::filter::{Field, Filter, Scalar, Test};
use recalld_engine::types::Expiry;
use recalld_proto::v1::condition::Test as GivenTest;
use recalld_proto::v1::filter::Node;
use recalld_proto::v1::value::Kind;
use recalld_proto::v1::{self, WriteItem};

use super::*;
use crate::error::Failure;

/// 2024-05-17T12:00:00Z
const NOW: i64 = 1_715_947_200;
const CONTEXT: Context = Context {
    dimensions: 4,
    now: Micros(NOW * 1_000_000),
};
/// An id, as one is written.
const ID: &str = "01HY3N1J8Z0000000000000000";

fn timestamp(seconds: i64, nanos: i32) -> Option<prost_types::Timestamp> {
    Some(prost_types::Timestamp { seconds, nanos })
}

fn duration(seconds: i64, nanos: i32) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos }
}

fn value(kind: Kind) -> v1::Value {
    v1::Value { kind: Some(kind) }
}

fn text(text: &str) -> v1::Value {
    value(Kind::StringValue(text.to_owned()))
}

fn int(int: i64) -> v1::Value {
    value(Kind::IntValue(int))
}

fn list(values: Vec<v1::Value>) -> v1::Value {
    value(Kind::ListValue(v1::ValueList { values }))
}

fn map(fields: impl IntoIterator<Item = (&'static str, v1::Value)>) -> v1::Value {
    let fields = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    value(Kind::MapValue(v1::ValueMap { fields }))
}

/// A value of that many levels.
fn nested(depth: usize) -> v1::Value {
    (1..depth).fold(int(1), |inner, level| {
        if level % 2 == 0 {
            list(vec![inner])
        } else {
            map([("a", inner)])
        }
    })
}

fn node(node: Node) -> v1::Filter {
    v1::Filter { node: Some(node) }
}

fn condition(field: &str, test: GivenTest) -> v1::Filter {
    node(Node::Condition(v1::Condition {
        field: field.to_owned(),
        test: Some(test),
    }))
}

fn all(filters: Vec<v1::Filter>) -> v1::Filter {
    node(Node::All(v1::FilterList { filters }))
}

fn exists(field: &str) -> v1::Filter {
    condition(field, GivenTest::Exists(true))
}

/// A filter of that many levels.
fn deep_filter(depth: usize) -> v1::Filter {
    (1..depth).fold(exists("key"), |inner, level| {
        if level % 2 == 0 {
            node(Node::Not(Box::new(inner)))
        } else {
            all(vec![inner])
        }
    })
}

fn namespace() -> Option<v1::Namespace> {
    Some(v1::Namespace {
        segments: vec!["acme".to_owned(), "alice".to_owned()],
    })
}

fn write_request() -> v1::WriteRequest {
    let item = WriteItem {
        content: "Alice prefers aisle seats.".to_owned(),
        ..WriteItem::default()
    };
    v1::WriteRequest {
        namespace: namespace(),
        items: vec![item],
        ..Default::default()
    }
}

fn search_request() -> v1::SearchRequest {
    v1::SearchRequest {
        namespace: namespace(),
        query: "seats".to_owned(),
        ..Default::default()
    }
}

fn brief_request() -> v1::BriefRequest {
    v1::BriefRequest {
        namespace: namespace(),
        query: "seats".to_owned(),
        ..Default::default()
    }
}

fn get_request() -> v1::GetRequest {
    v1::GetRequest {
        namespace: namespace(),
        keys: vec!["seat".to_owned()],
        ..Default::default()
    }
}

fn delete_request() -> v1::DeleteRequest {
    v1::DeleteRequest {
        namespace: namespace(),
        keys: vec!["seat".to_owned()],
        ..Default::default()
    }
}

fn count_request() -> v1::CountTokensRequest {
    v1::CountTokensRequest {
        texts: vec!["seats".to_owned()],
        encoding: String::new(),
    }
}

/// `field: description` of each violation.
fn violations<T>(result: Result<T, Failure>) -> Vec<String> {
    let Err(failure) = result else {
        return Vec::new();
    };
    assert_eq!(failure.reason_name(), "INVALID_FIELD");
    failure
        .violations
        .iter()
        .map(|wrong| format!("{}: {}", wrong.field, wrong.description))
        .collect()
}

/// A change of a valid request, and the one violation it makes; empty when it makes none.
type Case<R> = (fn(&mut R), &'static str);

fn check<R: Clone, T>(valid: &R, validate: impl Fn(R) -> Result<T, Failure>, cases: &[Case<R>]) {
    assert_eq!(violations(validate(valid.clone())), [""; 0]);
    for (number, (change, expected)) in cases.iter().enumerate() {
        let mut request = valid.clone();
        change(&mut request);
        let expected: &[&str] = if expected.is_empty() {
            &[]
        } else {
            &[expected]
        };
        assert_eq!(violations(validate(request)), expected, "case {number}");
    }
}

fn check_item(cases: &[Case<WriteItem>]) {
    let validate = |item| {
        write(
            v1::WriteRequest {
                items: vec![item],
                ..write_request()
            },
            "",
            CONTEXT,
        )
    };
    check(&write_request().items[0], validate, cases);
}

fn check_search(cases: &[Case<v1::SearchRequest>]) {
    check(&search_request(), |request| search(request, CONTEXT), cases);
}

fn check_filter(cases: &[(v1::Filter, &str)]) {
    for (number, (filter, expected)) in cases.iter().enumerate() {
        let request = v1::SearchRequest {
            filter: Some(filter.clone()),
            ..search_request()
        };
        let expected: &[&str] = if expected.is_empty() {
            &[]
        } else {
            &[expected]
        };
        assert_eq!(
            violations(search(request, CONTEXT)),
            expected,
            "case {number}"
        );
    }
}

fn with<T: Clone>(n: usize, value: &T) -> Vec<T> {
    vec![value.clone(); n]
}

#[test]
fn namespaces() {
    type Request = v1::GetRequest;
    fn segments(request: &mut Request) -> &mut Vec<String> {
        &mut request.namespace.as_mut().unwrap().segments
    }
    check(
        &get_request(),
        get,
        &[
            (|r| r.namespace = None, "namespace: must be given"),
            (
                |r| segments(r).clear(),
                "namespace.segments: must be 1 to 8 segments, not 0",
            ),
            (|r| *segments(r) = with(8, &"a".to_owned()), ""),
            (
                |r| *segments(r) = with(9, &"a".to_owned()),
                "namespace.segments: must be 1 to 8 segments, not 9",
            ),
            (
                |r| segments(r)[1].clear(),
                "namespace.segments[1]: must not be empty",
            ),
            (|r| segments(r)[1] = "a".repeat(128), ""),
            (
                |r| segments(r)[1] = "é".repeat(65),
                "namespace.segments[1]: must be at most 128 bytes, not 130",
            ),
            (
                |r| segments(r)[0] = "a\u{85}b".to_owned(),
                "namespace.segments[0]: must not contain control characters",
            ),
        ],
    );
    assert_eq!(
        violations(only_namespace(Vec::new())),
        ["namespace.segments: must be 1 to 8 segments, not 0"]
    );
    assert_eq!(only_namespace(vec!["acme".to_owned()]).unwrap().0, ["acme"]);
}

#[test]
fn each_method_wants_a_namespace() {
    let missing = ["namespace: must be given"];
    assert_eq!(
        violations(write(
            v1::WriteRequest {
                namespace: None,
                ..write_request()
            },
            "",
            CONTEXT
        )),
        missing
    );
    assert_eq!(
        violations(search(
            v1::SearchRequest {
                namespace: None,
                ..search_request()
            },
            CONTEXT
        )),
        missing
    );
    assert_eq!(
        violations(brief(
            v1::BriefRequest {
                namespace: None,
                ..brief_request()
            },
            CONTEXT
        )),
        missing
    );
    assert_eq!(
        violations(get(v1::GetRequest {
            namespace: None,
            ..get_request()
        })),
        missing
    );
    assert_eq!(
        violations(delete(
            v1::DeleteRequest {
                namespace: None,
                ..delete_request()
            },
            ""
        )),
        missing
    );
}

#[test]
fn writes() {
    fn items(request: &mut v1::WriteRequest, n: usize, bytes: usize) {
        request.items = with(
            n,
            &WriteItem {
                content: "a".repeat(bytes),
                ..Default::default()
            },
        );
    }
    // An item of n bytes of content takes n + 4, or n + 5 from 2,097,152 bytes on.
    check(
        &write_request(),
        |request| write(request, "", CONTEXT),
        &[
            (|r| items(r, 0, 0), "items: must be 1 to 1000 items, not 0"),
            (|r| items(r, 1000, 1), ""),
            (
                |r| items(r, 1001, 1),
                "items: must be 1 to 1000 items, not 1001",
            ),
            (|r| items(r, 16, (1 << 20) - 4), ""),
            (
                |r| items(r, 16, (1 << 20) - 3),
                "items: must be at most 16777216 bytes in all, not 16777232",
            ),
            (|r| r.idempotency_key = "k".repeat(128), ""),
            (
                |r| r.idempotency_key = "k".repeat(129),
                "idempotency_key: must be at most 128 bytes, not 129",
            ),
            (
                |r| r.idempotency_key = "\0".to_owned(),
                "idempotency_key: must not contain NUL",
            ),
            (
                |r| {
                    items(r, 3, 1);
                    r.items[0].key = "k".to_owned();
                    r.items[2].key = "k".to_owned();
                },
                "items[2].key: stands in items[0] already",
            ),
        ],
    );
}

#[test]
fn contents() {
    check_item(&[
        (|i| i.content.clear(), "items[0].content: must not be empty"),
        (|i| i.content = "a".repeat(1 << 20), ""),
        (
            |i| i.content = "a".repeat((1 << 20) + 1),
            "items[0].content: must be at most 1048576 bytes, not 1048577",
        ),
        (
            |i| i.content = " \n\u{3000}".to_owned(),
            "items[0].content: must not be white space alone",
        ),
        (
            |i| i.content = "a\0".to_owned(),
            "items[0].content: must not contain NUL",
        ),
        (|i| i.content = "a\u{7}\r\n".to_owned(), ""),
        (|i| i.content_format = 1, ""),
        (
            |i| i.content_format = 3,
            "items[0].content_format: must be TEXT or JSON",
        ),
        (
            |i| {
                i.content_format = 2;
                i.content = "{\"a\": [1, 2.5e3, null, \"\\u00e9\"]} ".to_owned();
            },
            "",
        ),
        (
            |i| i.content_format = 2,
            "items[0].content: must be one JSON document: expected value at line 1 column 1",
        ),
        (
            |i| {
                i.content_format = 2;
                i.content = "1 2".to_owned();
            },
            "items[0].content: must be one JSON document: trailing characters at line 1 column 3",
        ),
        (
            |i| {
                i.content_format = 2;
                i.content = "[".repeat(1 << 20);
            },
            "items[0].content: must be one JSON document: EOF while parsing a list at line 1 column 1048576",
        ),
        (
            |i| {
                i.content_format = 2;
                i.content = "[".repeat(1 << 19) + &"]".repeat(1 << 19);
            },
            "",
        ),
    ]);
}

#[test]
fn items() {
    check_item(&[
        (|i| i.key = "k".repeat(256), ""),
        (
            |i| i.key = "k".repeat(257),
            "items[0].key: must be at most 256 bytes, not 257",
        ),
        (
            |i| i.key = "a\tb".to_owned(),
            "items[0].key: must not contain control characters",
        ),
        (|i| i.kind = "my-kind_2.0".to_owned(), ""),
        (|i| i.kind = "k".repeat(64), ""),
        (
            |i| i.kind = "Fact".to_owned(),
            "items[0].kind: must be 1 to 64 of a-z, 0-9, `_`, `-` and `.`, not \"Fact\"",
        ),
        (
            |i| i.kind = "k".repeat(65),
            "items[0].kind: must be 1 to 64 of a-z, 0-9, `_`, `-` and `.`, not \
             \"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\"...",
        ),
        (|i| i.summary = "s".repeat(2048), ""),
        (
            |i| i.summary = "s".repeat(2049),
            "items[0].summary: must be at most 2048 bytes, not 2049",
        ),
        (
            |i| i.summary = "\0".to_owned(),
            "items[0].summary: must not contain NUL",
        ),
        (|i| i.tags = (0..64).map(|n| n.to_string()).collect(), ""),
        (
            |i| i.tags = (0..65).map(|n| n.to_string()).collect(),
            "items[0].tags: must be at most 64 tags, not 65",
        ),
        (|i| i.tags = with(65, &"same".to_owned()), ""),
        (
            |i| i.tags = vec!["a".to_owned(), String::new()],
            "items[0].tags[1]: must not be empty",
        ),
        (
            |i| i.tags = vec!["t".repeat(129)],
            "items[0].tags[0]: must be at most 128 bytes, not 129",
        ),
        (
            |i| i.tags = vec!["a\n".to_owned()],
            "items[0].tags[0]: must not contain control characters",
        ),
        (|i| i.importance = Some(1.0), ""),
        (
            |i| i.importance = Some(1.01),
            "items[0].importance: must be 0 to 1, not 1.01",
        ),
        (
            |i| i.importance = Some(f64::NAN),
            "items[0].importance: must be 0 to 1, not NaN",
        ),
        (|i| i.confidence = Some(0.0), ""),
        (
            |i| i.confidence = Some(-0.5),
            "items[0].confidence: must be 0 to 1, not -0.5",
        ),
        (|i| i.origin = "o".repeat(128), ""),
        (
            |i| i.origin = "o".repeat(129),
            "items[0].origin: must be at most 128 bytes, not 129",
        ),
        (
            |i| i.origin = "\0".to_owned(),
            "items[0].origin: must not contain NUL",
        ),
        (
            |i| i.if_version = Some(0),
            "items[0].if_version: needs a key",
        ),
        (
            |i| {
                i.if_version = Some(3);
                i.key = "k".to_owned();
            },
            "",
        ),
        (|i| i.vector = vec![0.0, 0.0, -1.0, 0.0], ""),
        (
            |i| i.vector = vec![1.0; 3],
            "items[0].vector: the vector has 3 dimensions, expected 4",
        ),
        (
            |i| i.vector = vec![0.0; 4],
            "items[0].vector: the vector is all zeros",
        ),
        (
            |i| i.vector = vec![0.0, f32::NAN, 1.0, 0.0],
            "items[0].vector: element 1 of the vector is not finite",
        ),
    ]);
}

#[test]
fn sources() {
    fn source(item: &mut WriteItem, change: fn(&mut v1::Source)) {
        let mut source = v1::Source {
            uri: "u".to_owned(),
            session: "s".to_owned(),
            speaker: "p".to_owned(),
        };
        change(&mut source);
        item.sources = vec![source];
    }
    check_item(&[
        (
            |i| {
                i.sources = with(
                    16,
                    &v1::Source {
                        uri: "u".to_owned(),
                        ..Default::default()
                    },
                )
            },
            "",
        ),
        (
            |i| {
                i.sources = with(
                    17,
                    &v1::Source {
                        uri: "u".to_owned(),
                        ..Default::default()
                    },
                )
            },
            "items[0].sources: must be at most 16 sources, not 17",
        ),
        (
            |i| i.sources = vec![v1::Source::default()],
            "items[0].sources[0]: must have at least one field set",
        ),
        (
            |i| {
                i.sources = vec![v1::Source {
                    session: "s".to_owned(),
                    ..Default::default()
                }]
            },
            "",
        ),
        (
            |i| {
                i.sources = vec![v1::Source {
                    speaker: "s".to_owned(),
                    ..Default::default()
                }]
            },
            "",
        ),
        (|i| source(i, |s| s.uri = "u".repeat(1024)), ""),
        (
            |i| source(i, |s| s.uri = "u".repeat(1025)),
            "items[0].sources[0].uri: must be at most 1024 bytes, not 1025",
        ),
        (
            |i| source(i, |s| s.uri = "\0".to_owned()),
            "items[0].sources[0].uri: must not contain NUL",
        ),
        (|i| source(i, |s| s.session = "u".repeat(256)), ""),
        (
            |i| source(i, |s| s.session = "u".repeat(257)),
            "items[0].sources[0].session: must be at most 256 bytes, not 257",
        ),
        (
            |i| source(i, |s| s.session = "\0".to_owned()),
            "items[0].sources[0].session: must not contain NUL",
        ),
        (|i| source(i, |s| s.speaker = "u".repeat(256)), ""),
        (
            |i| source(i, |s| s.speaker = "u".repeat(257)),
            "items[0].sources[0].speaker: must be at most 256 bytes, not 257",
        ),
        (
            |i| source(i, |s| s.speaker = "\0".to_owned()),
            "items[0].sources[0].speaker: must not contain NUL",
        ),
    ]);
}

#[test]
fn times() {
    const LAST: i64 = 253_402_300_799;
    check_item(&[
        (|i| i.occurred_at = timestamp(-62_135_596_800, 0), ""),
        (
            |i| i.occurred_at = timestamp(-62_135_596_801, 0),
            "items[0].occurred_at: must lie in the years 1 to 9999",
        ),
        (|i| i.occurred_at = timestamp(LAST, 999_999_999), ""),
        (
            |i| i.occurred_at = timestamp(LAST + 1, 0),
            "items[0].occurred_at: must lie in the years 1 to 9999",
        ),
        (
            |i| i.occurred_at = timestamp(0, -1),
            "items[0].occurred_at: must have nanoseconds of 0 to 999999999",
        ),
        (
            |i| i.occurred_at = timestamp(0, 1_000_000_000),
            "items[0].occurred_at: must have nanoseconds of 0 to 999999999",
        ),
        (|i| i.ttl = Some(duration(0, 1_000)), ""),
        (
            |i| i.ttl = Some(duration(0, 999)),
            "items[0].ttl: must be greater than zero, by a microsecond at least",
        ),
        (
            |i| i.ttl = Some(duration(-1, 0)),
            "items[0].ttl: must be greater than zero, by a microsecond at least",
        ),
        (
            |i| i.ttl = Some(duration(1, -1)),
            "items[0].ttl: must be greater than zero, by a microsecond at least",
        ),
        (
            |i| i.ttl = Some(duration(1, 1_000_000_000)),
            "items[0].ttl: must have nanoseconds of 0 to 999999999",
        ),
        (|i| i.ttl = Some(duration(LAST - NOW, 0)), ""),
        (
            |i| i.ttl = Some(duration(LAST + 1 - NOW, 0)),
            "items[0].ttl: must end before the year 10000",
        ),
        (|i| i.expires_at = timestamp(NOW, 1_000), ""),
        (
            |i| i.expires_at = timestamp(NOW, 0),
            "items[0].expires_at: must be in the future",
        ),
        (
            |i| i.expires_at = timestamp(LAST + 1, 0),
            "items[0].expires_at: must lie in the years 1 to 9999",
        ),
        (
            |i| {
                i.ttl = Some(duration(1, 0));
                i.expires_at = timestamp(NOW + 1, 0);
            },
            "items[0].expires_at: must not be given together with `ttl`",
        ),
    ]);
}

#[test]
fn metadata() {
    fn set(item: &mut WriteItem, name: &str, value: v1::Value) {
        item.metadata.insert(name.to_owned(), value);
    }
    check_item(&[
        (
            |i| i.metadata = (0..64).map(|n| (n.to_string(), int(n))).collect(),
            "",
        ),
        (
            |i| i.metadata = (0..65).map(|n| (n.to_string(), int(n))).collect(),
            "items[0].metadata: must have at most 64 names, not 65",
        ),
        (|i| set(i, &"n".repeat(128), int(1)), ""),
        (
            |i| set(i, "", int(1)),
            "items[0].metadata[\"\"]: a name must be 1 to 128 bytes without control characters and dots",
        ),
        (
            |i| set(i, "a.b", int(1)),
            "items[0].metadata[\"a.b\"]: a name must be 1 to 128 bytes without control characters and dots",
        ),
        (
            |i| set(i, "a\n", int(1)),
            "items[0].metadata[\"a\\n\"]: a name must be 1 to 128 bytes without control characters and dots",
        ),
        (
            |i| set(i, &"n".repeat(129), int(1)),
            "items[0].metadata[\"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\"...]: \
             a name must be 1 to 128 bytes without control characters and dots",
        ),
        // Around the text: 3 bytes each of the text, the value and the entry, and 3 for the name.
        (|i| set(i, "a", text(&"x".repeat((16 << 10) - 12))), ""),
        (
            |i| set(i, "a", text(&"x".repeat((16 << 10) - 11))),
            "items[0].metadata: must be at most 16384 bytes in all, not 16385",
        ),
        (
            |i| set(i, "a", v1::Value { kind: None }),
            "items[0].metadata.a: must have a value",
        ),
        (|i| set(i, "a", value(Kind::BoolValue(false))), ""),
        (|i| set(i, "a", value(Kind::DoubleValue(1e300))), ""),
        (
            |i| set(i, "a", value(Kind::DoubleValue(f64::INFINITY))),
            "items[0].metadata.a: must be a finite number, not inf",
        ),
        (|i| set(i, "a", text("")), ""),
        (
            |i| set(i, "a", list(vec![text("x"), text("\0")])),
            "items[0].metadata.a[1]: must not contain NUL",
        ),
        (
            |i| set(i, "a", value(Kind::TimeValue(timestamp(0, -1).unwrap()))),
            "items[0].metadata.a: must have nanoseconds of 0 to 999999999",
        ),
        (
            |i| set(i, "order", map([("id", v1::Value { kind: None })])),
            "items[0].metadata.order.id: must have a value",
        ),
        (
            |i| {
                let fields = (0..65).map(|n| (n.to_string(), int(n))).collect();
                set(i, "a", value(Kind::MapValue(v1::ValueMap { fields })));
            },
            "items[0].metadata.a: must have at most 64 names, not 65",
        ),
        (|i| set(i, "a", nested(16)), ""),
        (
            |i| set(i, "z", nested(17)),
            "items[0].metadata.z[0].a[0].a[0].a[0].a[0].a[0].a[0].a[0].a: must nest at most 16 deep",
        ),
    ]);
}

#[test]
fn all_violations_are_named_at_once() {
    let mut request = write_request();
    request.namespace = None;
    request.idempotency_key = "k".repeat(129);
    request.items.push(WriteItem {
        kind: "A".to_owned(),
        origin: "\0".to_owned(),
        ..Default::default()
    });
    let fields: Vec<String> = write(request, "", CONTEXT)
        .unwrap_err()
        .violations
        .into_iter()
        .map(|violation| violation.field)
        .collect();
    assert_eq!(
        fields,
        [
            "idempotency_key",
            "namespace",
            "items[1].content",
            "items[1].kind",
            "items[1].origin"
        ]
    );
}

#[test]
fn an_item_gets_its_defaults() {
    let mut request = write_request();
    request.items[0].tags = ["b", "a", "b"].map(str::to_owned).to_vec();
    let write = write(request, "uid:7", CONTEXT).unwrap();
    let item = &write.items[0];
    assert_eq!(
        (item.kind.as_str(), item.json, item.vector.as_ref()),
        ("fact", false, None)
    );
    assert_eq!(
        (item.importance.to_bits(), item.confidence.to_bits()),
        (0.5f64.to_bits(), 1f64.to_bits())
    );
    assert_eq!(
        (item.occurred_at, item.expiry, item.if_version),
        (None, Expiry::ByKind, None)
    );
    assert_eq!(item.tags, ["a", "b"]);
    assert_eq!((write.actor.as_str(), write.idempotency), ("uid:7", None));
}

#[test]
fn an_item_keeps_what_it_was_given() {
    let mut request = write_request();
    request.items = vec![
        WriteItem {
            key: "k".to_owned(),
            content: "[]".to_owned(),
            content_format: 2,
            kind: "event".to_owned(),
            summary: "s".to_owned(),
            metadata: BTreeMap::from([("a".to_owned(), int(1))]),
            importance: Some(0.25),
            confidence: Some(0.75),
            occurred_at: timestamp(-1, 1_999),
            ttl: Some(duration(1, 2_999)),
            sources: vec![v1::Source {
                uri: "u".to_owned(),
                ..Default::default()
            }],
            vector: vec![1.0, 2.0, 3.0, 4.0],
            if_version: Some(7),
            origin: "o".to_owned(),
            ..Default::default()
        },
        WriteItem {
            content: "c".to_owned(),
            expires_at: timestamp(NOW + 1, 500),
            ..Default::default()
        },
    ];
    request.idempotency_key = "once".to_owned();
    let write = write(request, "", CONTEXT).unwrap();
    let item = &write.items[0];
    assert_eq!(
        (item.key.as_str(), item.content.as_str(), item.json),
        ("k", "[]", true)
    );
    assert_eq!(
        (
            item.kind.as_str(),
            item.summary.as_str(),
            item.origin.as_str()
        ),
        ("event", "s", "o")
    );
    assert_eq!(item.metadata["a"], int(1));
    assert_eq!(
        (item.importance.to_bits(), item.confidence.to_bits()),
        (0.25f64.to_bits(), 0.75f64.to_bits())
    );
    assert_eq!(item.occurred_at, Some(Micros(-999_999)));
    assert_eq!(item.expiry, Expiry::After(Duration::from_micros(1_000_002)));
    assert_eq!(item.sources[0].uri, "u");
    assert_eq!(
        (item.vector.clone(), item.if_version),
        (Some(vec![1.0, 2.0, 3.0, 4.0]), Some(7))
    );
    assert_eq!(
        write.items[1].expiry,
        Expiry::At(Micros((NOW + 1) * 1_000_000))
    );
    assert_eq!(write.idempotency.unwrap().key, "once");
}

fn digest_of(change: impl FnOnce(&mut WriteItem)) -> Option<[u8; 16]> {
    let mut request = write_request();
    change(&mut request.items[0]);
    write(request, "", CONTEXT).unwrap().items[0].digest
}

#[test]
fn a_digest_is_of_the_memory_and_not_of_how_it_was_said() {
    let plain = digest_of(|_| ());
    assert!(plain.is_some());
    let same: [fn(&mut WriteItem); 4] = [
        |i| i.kind = "fact".to_owned(),
        |i| i.content_format = 1,
        |i| i.importance = Some(0.5),
        |i| i.confidence = Some(1.0),
    ];
    for (number, change) in same.into_iter().enumerate() {
        assert_eq!(digest_of(change), plain, "case {number}");
    }
    let other: [fn(&mut WriteItem); 11] = [
        |i| i.key = "k".to_owned(),
        |i| i.content = "[]".to_owned(),
        |i| i.kind = "event".to_owned(),
        |i| i.summary = "s".to_owned(),
        |i| i.tags = vec!["t".to_owned()],
        |i| i.metadata = BTreeMap::from([("a".to_owned(), int(1))]),
        |i| i.importance = Some(0.6),
        |i| i.occurred_at = timestamp(1, 0),
        |i| i.expires_at = timestamp(NOW + 1, 0),
        |i| {
            i.sources = vec![v1::Source {
                uri: "u".to_owned(),
                ..Default::default()
            }]
        },
        |i| i.vector = vec![1.0; 4],
    ];
    for (number, change) in other.into_iter().enumerate() {
        assert_ne!(digest_of(change), plain, "case {number}");
    }
    assert_eq!(digest_of(|i| i.ttl = Some(duration(1, 0))), None);
    let tags = |tags: [&str; 3]| tags.map(str::to_owned).to_vec();
    assert_eq!(
        digest_of(|i| i.tags = tags(["a", "b", "a"])),
        digest_of(|i| i.tags = tags(["b", "a", "b"]))
    );
    let keyed = digest_of(|i| i.key = "k".to_owned());
    let guarded = digest_of(|i| {
        i.key = "k".to_owned();
        i.if_version = Some(1);
    });
    assert_eq!(guarded, keyed);
}

#[test]
fn a_request_is_known_by_all_of_it_but_its_key() {
    let digest = |key: &str, content: &str| {
        let mut request = write_request();
        request.items[0].content = content.to_owned();
        request.idempotency_key = key.to_owned();
        write(request, "", CONTEXT)
            .unwrap()
            .idempotency
            .unwrap()
            .digest
    };
    assert_eq!(digest("a", "x"), digest("b", "x"));
    assert_ne!(digest("a", "x"), digest("a", "y"));
    let delete = delete(
        v1::DeleteRequest {
            idempotency_key: "a".to_owned(),
            ..delete_request()
        },
        "",
    )
    .unwrap();
    let empty = crate::canonical::request_digest("Write", &v1::DeleteRequest::default());
    assert_ne!(
        crate::canonical::request_digest("Delete", &v1::DeleteRequest::default()),
        empty
    );
    assert_eq!(delete.idempotency.unwrap().key, "a");
}

#[test]
fn searches() {
    check_search(&[
        (
            |r| r.query.clear(),
            "query: must have text, unless `vector` is given",
        ),
        (
            |r| r.query = " \n".to_owned(),
            "query: must have text, unless `vector` is given",
        ),
        (
            |r| {
                r.query = " ".to_owned();
                r.vector = vec![1.0; 4];
            },
            "",
        ),
        (|r| r.query = "q".repeat(32 << 10), ""),
        (
            |r| r.query = "q".repeat((32 << 10) + 1),
            "query: must be at most 32768 bytes, not 32769",
        ),
        (
            |r| r.query = "a\0".to_owned(),
            "query: must not contain NUL",
        ),
        (
            |r| r.vector = vec![1.0; 5],
            "vector: the vector has 5 dimensions, expected 4",
        ),
        (
            |r| r.vector = vec![0.0; 4],
            "vector: the vector is all zeros",
        ),
        (
            |r| r.vector = vec![f32::INFINITY; 4],
            "vector: element 0 of the vector is not finite",
        ),
        (|r| r.limit = Some(1), ""),
        (|r| r.limit = Some(0), "limit: must be 1 to 1000, not 0"),
        (|r| r.limit = Some(1000), ""),
        (
            |r| r.limit = Some(1001),
            "limit: must be 1 to 1000, not 1001",
        ),
        (
            |r| r.kinds = vec!["fact".to_owned(), String::new()],
            "kinds[1]: must be 1 to 64 of a-z, 0-9, `_`, `-` and `.`, not \"\"",
        ),
        (
            |r| r.tags = vec![String::new()],
            "tags[0]: must not be empty",
        ),
        (|r| r.occurred = Some(v1::TimeRange::default()), ""),
        (
            |r| {
                r.occurred = Some(v1::TimeRange {
                    start: timestamp(5, 0),
                    end: timestamp(5, 1_000),
                })
            },
            "",
        ),
        (
            |r| {
                r.occurred = Some(v1::TimeRange {
                    start: timestamp(5, 0),
                    end: timestamp(5, 0),
                })
            },
            "occurred.end: must be after `start`",
        ),
        (
            |r| {
                r.occurred = Some(v1::TimeRange {
                    start: timestamp(0, -1),
                    end: None,
                })
            },
            "occurred.start: must have nanoseconds of 0 to 999999999",
        ),
        (
            |r| {
                r.occurred = Some(v1::TimeRange {
                    start: None,
                    end: timestamp(i64::MAX, 0),
                })
            },
            "occurred.end: must lie in the years 1 to 9999",
        ),
        (|r| r.min_score = Some(1.0), ""),
        (
            |r| r.min_score = Some(1.5),
            "min_score: must be 0 to 1, not 1.5",
        ),
        (
            |r| r.min_score = Some(f64::NAN),
            "min_score: must be 0 to 1, not NaN",
        ),
        (
            |r| r.at_least_as_fresh = "token".to_owned(),
            "at_least_as_fresh: is not a consistency token of recalld",
        ),
    ]);
}

#[test]
fn weights_and_half_lives() {
    fn weights(request: &mut v1::SearchRequest, relevance: f64, importance: f64, recency: f64) {
        request.weights = Some(v1::Weights {
            relevance: Some(relevance),
            importance: Some(importance),
            recency: Some(recency),
        });
    }
    fn half_life(request: &mut v1::SearchRequest, name: &str, seconds: i64, nanos: i32) {
        request
            .half_lives
            .insert(name.to_owned(), duration(seconds, nanos));
    }
    check_search(&[
        (|r| weights(r, 0.0, 1000.0, 0.0), ""),
        (
            |r| weights(r, -0.1, 1.0, 0.0),
            "weights.relevance: must be 0 to 1000, not -0.1",
        ),
        (
            |r| weights(r, 1.0, 1000.5, 0.0),
            "weights.importance: must be 0 to 1000, not 1000.5",
        ),
        (
            |r| weights(r, 1.0, 0.0, f64::NAN),
            "weights.recency: must be 0 to 1000, not NaN",
        ),
        (
            |r| weights(r, 0.0, 0.0, 0.0),
            "weights: at least one weight must be above 0",
        ),
        (|r| half_life(r, "turn", 1, 0), ""),
        (
            |r| half_life(r, "turn", 0, 0),
            "half_lives.turn: must be greater than zero, by a microsecond at least",
        ),
        (|r| half_life(r, "turn", 315_576_000_000, 0), ""),
        (
            |r| half_life(r, "my.kind", 315_576_000_001, 0),
            "half_lives[\"my.kind\"]: must be at most 315576000000 seconds",
        ),
        (
            |r| half_life(r, "A", 1, 0),
            "half_lives.A: must be 1 to 64 of a-z, 0-9, `_`, `-` and `.`, not \"A\"",
        ),
    ]);
}

#[test]
fn a_search_gets_its_defaults_and_keeps_what_it_was_given() {
    let (namespace, plain) = search(search_request(), CONTEXT).unwrap();
    assert_eq!(namespace.0, ["acme", "alice"]);
    assert_eq!(
        (plain.text.as_str(), plain.limit, plain.min_score.to_bits()),
        ("seats", 5, 0)
    );
    assert_eq!(plain.weights, recalld_algo::score::Weights::default());
    assert_eq!(
        (plain.vector, plain.at_least, plain.selection),
        (None, None, Default::default())
    );

    let token = recalld_engine::token::Token {
        store: [7; 16],
        epoch: 0,
        position: recalld_store::ids::Position(3),
    };
    let (_, given) = search(
        v1::SearchRequest {
            query: "\n".to_owned(),
            vector: vec![1.0, 0.0, 0.0, 0.0],
            limit: Some(9),
            kinds: vec!["turn".to_owned()],
            tags: vec!["b".to_owned(), "a".to_owned()],
            occurred: Some(v1::TimeRange {
                start: timestamp(1, 0),
                end: timestamp(2, 0),
            }),
            min_score: Some(0.5),
            weights: Some(v1::Weights {
                recency: Some(0.6),
                ..Default::default()
            }),
            half_lives: BTreeMap::from([("turn".to_owned(), duration(3, 5_000))]),
            at_least_as_fresh: token.to_string(),
            ..search_request()
        },
        CONTEXT,
    )
    .unwrap();
    assert_eq!(
        (given.text.as_str(), given.vector),
        ("", Some(vec![1.0, 0.0, 0.0, 0.0]))
    );
    assert_eq!(
        (given.limit, given.min_score.to_bits(), given.at_least),
        (9, 0.5f64.to_bits(), Some(token))
    );
    assert_eq!(
        (given.selection.kinds, given.selection.tags),
        (
            vec!["turn".to_owned()],
            vec!["a".to_owned(), "b".to_owned()]
        )
    );
    assert_eq!(given.selection.occurred_from, Some(Micros(1_000_000)));
    assert_eq!(given.selection.occurred_before, Some(Micros(2_000_000)));
    assert!((given.weights.recency() - 0.4).abs() < 1e-12);
    assert_eq!(given.half_lives["turn"], Duration::from_micros(3_000_005));
}

#[test]
fn briefs() {
    check(
        &brief_request(),
        |request| brief(request, CONTEXT),
        &[
            (
                |r| r.query.clear(),
                "query: must have text, unless `vector` is given",
            ),
            (|r| r.budget_tokens = Some(1), ""),
            (
                |r| r.budget_tokens = Some(0),
                "budget_tokens: must be 1 to 1000000, not 0",
            ),
            (|r| r.budget_tokens = Some(1_000_000), ""),
            (
                |r| r.budget_tokens = Some(1_000_001),
                "budget_tokens: must be 1 to 1000000, not 1000001",
            ),
            (|r| r.limit = Some(0), "limit: must be 1 to 256, not 0"),
            (|r| r.limit = Some(256), ""),
            (|r| r.limit = Some(257), "limit: must be 1 to 256, not 257"),
            (
                |r| r.encoding = "p50k_base".to_owned(),
                "encoding: must be `o200k_base` or `cl100k_base`, not \"p50k_base\"",
            ),
            (
                |r| r.filter = Some(v1::Filter::default()),
                "filter: must have one of `all`, `any`, `not` and `condition`",
            ),
            (|r| r.if_fingerprint = "anything".to_owned(), ""),
        ],
    );
    let plain = brief(brief_request(), CONTEXT).unwrap();
    assert_eq!(
        (plain.budget, plain.query.limit, plain.encoding),
        (1200, 64, Encoding::O200kBase)
    );
    let given = v1::BriefRequest {
        budget_tokens: Some(7),
        limit: Some(9),
        encoding: "cl100k_base".to_owned(),
        kinds: vec!["turn".to_owned()],
        tags: vec!["t".to_owned()],
        occurred: Some(v1::TimeRange {
            start: timestamp(1, 0),
            end: None,
        }),
        min_score: Some(0.5),
        weights: Some(v1::Weights {
            recency: Some(0.6),
            ..Default::default()
        }),
        half_lives: BTreeMap::from([("turn".to_owned(), duration(3, 0))]),
        filter: Some(exists("key")),
        vector: vec![1.0; 4],
        ..brief_request()
    };
    let given = brief(given, CONTEXT).unwrap();
    assert_eq!(
        (given.budget, given.query.limit, given.encoding),
        (7, 9, Encoding::Cl100kBase)
    );
    let selection = &given.query.selection;
    assert_eq!((selection.kinds.len(), selection.tags.len()), (1, 1));
    assert_eq!(
        (selection.occurred_from, selection.occurred_before),
        (Some(Micros(1_000_000)), None)
    );
    assert!(selection.filter.is_some() && given.query.vector.is_some());
    assert_eq!(
        (
            given.query.min_score.to_bits(),
            given.query.half_lives.len()
        ),
        (0.5f64.to_bits(), 1)
    );
    assert_ne!(given.query.weights, plain.query.weights);
}

#[test]
fn gets() {
    check(
        &get_request(),
        get,
        &[
            (
                |r| r.keys.clear(),
                "ids: must name a memory, unless `keys` does",
            ),
            (|r| r.ids = with(999, &ID.to_owned()), ""),
            (
                |r| r.ids = with(1000, &ID.to_owned()),
                "ids: must be at most 1000 together with `keys`, not 1001",
            ),
            (
                |r| r.ids = vec![ID.to_owned(), "seat".to_owned()],
                "ids[1]: an id is 26 characters of 0-9 and A-Z without I, L, O, U; this is \"seat\"",
            ),
            (|r| r.keys.push(String::new()), "keys[1]: must not be empty"),
            (
                |r| r.keys[0] = "k".repeat(257),
                "keys[0]: must be at most 256 bytes, not 257",
            ),
            (
                |r| r.keys[0] = "\u{1b}".to_owned(),
                "keys[0]: must not contain control characters",
            ),
            (|r| r.max_tokens = Some(0), "max_tokens: must be at least 1"),
            (|r| r.max_tokens = Some(1), ""),
            (
                |r| r.encoding = "?".to_owned(),
                "encoding: must be `o200k_base` or `cl100k_base`, not \"?\"",
            ),
            (|r| r.as_of_version = Some(1), ""),
            (
                |r| r.as_of_version = Some(0),
                "as_of_version: must be at least 1",
            ),
            (
                |r| {
                    r.as_of_version = Some(1);
                    r.keys.push("other".to_owned());
                },
                "as_of_version: needs exactly one id or key",
            ),
            (
                |r| r.at_least_as_fresh = "?".to_owned(),
                "at_least_as_fresh: is not a consistency token of recalld",
            ),
        ],
    );
    let request = v1::GetRequest {
        ids: vec![ID.to_owned()],
        keys: Vec::new(),
        max_tokens: Some(9),
        as_of_version: Some(2),
        encoding: "cl100k_base".to_owned(),
        ..get_request()
    };
    let get = get(request).unwrap();
    assert_eq!((get.ids[0].to_string().as_str(), get.keys.len()), (ID, 0));
    assert_eq!(
        (get.max_tokens, get.version, get.encoding),
        (Some(9), Some(2), Encoding::Cl100kBase)
    );
}

#[test]
fn deletes() {
    check(
        &delete_request(),
        |request| delete(request, ""),
        &[
            (
                |r| r.keys.clear(),
                "ids: must name a memory, unless `keys` or `filter` does",
            ),
            (
                |r| {
                    r.keys.clear();
                    r.filter = Some(exists("key"));
                },
                "",
            ),
            (
                |r| r.filter = Some(v1::Filter::default()),
                "filter: must have one of `all`, `any`, `not` and `condition`",
            ),
            (
                |r| r.ids = with(1000, &ID.to_owned()),
                "ids: must be at most 1000 together with `keys`, not 1001",
            ),
            (|r| r.if_version = Some(1), ""),
            (
                |r| {
                    r.if_version = Some(1);
                    r.ids = vec![ID.to_owned()];
                },
                "if_version: needs exactly one id or key, and no filter",
            ),
            (
                |r| {
                    r.if_version = Some(1);
                    r.filter = Some(exists("key"));
                },
                "if_version: needs exactly one id or key, and no filter",
            ),
            (
                |r| r.idempotency_key = "k".repeat(129),
                "idempotency_key: must be at most 128 bytes, not 129",
            ),
        ],
    );
    let request = v1::DeleteRequest {
        dry_run: true,
        if_version: Some(4),
        ..delete_request()
    };
    let delete = delete(request, "uid:7").unwrap();
    assert_eq!(
        (delete.dry_run, delete.if_version, delete.actor.as_str()),
        (true, Some(4), "uid:7")
    );
}

#[test]
fn counts() {
    check(
        &count_request(),
        count_tokens,
        &[
            (|r| r.texts.clear(), "texts: must be 1 to 1000 texts, not 0"),
            (|r| r.texts = with(1000, &String::new()), ""),
            (
                |r| r.texts = with(1001, &String::new()),
                "texts: must be 1 to 1000 texts, not 1001",
            ),
            (|r| r.texts = with(16, &"a".repeat(1 << 20)), ""),
            (
                |r| r.texts = with(17, &"a".repeat(1 << 20)),
                "texts: must be at most 16777216 bytes in all, not 17825792",
            ),
            (
                |r| r.encoding = "gpt2".to_owned(),
                "encoding: must be `o200k_base` or `cl100k_base`, not \"gpt2\"",
            ),
        ],
    );
}

fn equals(field: &str, value: v1::Value) -> v1::Filter {
    condition(field, GivenTest::Equals(value))
}

fn ranged(field: &str, range: v1::Range) -> v1::Filter {
    condition(field, GivenTest::Range(range))
}

#[test]
fn filters() {
    let wide = |n: usize| all(with(n, &exists("key")));
    let any = node(Node::Any(v1::FilterList {
        filters: vec![exists("key"), v1::Filter::default()],
    }));
    let path = |names: usize| format!("metadata.{}", with(names, &"a").join("."));
    let unknown = "must be one of kind, tags, key, origin, source.uri, source.session, source.speaker, importance, \
                   confidence, occurred_at, created_at, updated_at, expires_at and metadata.<path>, not";
    let unknown =
        |name: &str| format!("filter.condition.field: {unknown} {}", report::quoted(name));
    check_filter(&[
        (
            v1::Filter::default(),
            "filter: must have one of `all`, `any`, `not` and `condition`",
        ),
        (deep_filter(16), ""),
        (
            deep_filter(17),
            "filter.not.all[0].not.all[0].not.all[0].not.all[0].not.all[0].not.all[0].not.all[0].not.all[0]: must be at most 16 deep",
        ),
        (wide(255), ""),
        (wide(256), "filter: must have at most 256 nodes, not 257"),
        (all(Vec::new()), "filter.all: must have at least one filter"),
        (
            any,
            "filter.any[1]: must have one of `all`, `any`, `not` and `condition`",
        ),
        (
            node(Node::Any(v1::FilterList::default())),
            "filter.any: must have at least one filter",
        ),
        (
            node(Node::Condition(v1::Condition {
                field: "key".to_owned(),
                test: None,
            })),
            "filter.condition: must have one of `equals`, `in`, `range`, `exists` and `prefix`",
        ),
        (
            all(vec![exists("kind"), exists("colour")]),
            &unknown("colour").replace("filter.", "filter.all[1]."),
        ),
        (exists(""), &unknown("")),
        (exists("metadata"), &unknown("metadata")),
        (exists("metadata."), &unknown("metadata.")),
        (exists("metadata.a..b"), &unknown("metadata.a..b")),
        (exists("metadata.a\n"), &unknown("metadata.a\n")),
        (exists(&path(16)), ""),
        (exists(&path(17)), &unknown(&path(17))),
    ]);
    let many = |n: usize| {
        condition(
            "key",
            GivenTest::In(v1::ValueList {
                values: with(n, &text("x")),
            }),
        )
    };
    let prefix = |field: &str, prefix: &str| condition(field, GivenTest::Prefix(prefix.to_owned()));
    check_filter(&[
        (many(1), ""),
        (many(1000), ""),
        (
            many(0),
            "filter.condition.in: must be 1 to 1000 values, not 0",
        ),
        (
            many(1001),
            "filter.condition.in: must be 1 to 1000 values, not 1001",
        ),
        (
            condition(
                "key",
                GivenTest::In(v1::ValueList {
                    values: vec![text("x"), int(1)],
                }),
            ),
            "filter.condition.in[1]: must be text, as the field is",
        ),
        (
            condition(
                "metadata.a",
                GivenTest::In(v1::ValueList {
                    values: vec![text("x"), int(1)],
                }),
            ),
            "",
        ),
        (prefix("key", &"p".repeat(128)), ""),
        (prefix("metadata.a", ""), ""),
        (
            prefix("key", &"p".repeat(129)),
            "filter.condition.prefix: must be at most 128 bytes, not 129",
        ),
        (
            prefix("key", "\0"),
            "filter.condition.prefix: must not contain NUL",
        ),
        (
            prefix("importance", "0"),
            "filter.condition.prefix: must be on a field of text",
        ),
        (equals("importance", int(1)), ""),
        (equals("importance", value(Kind::DoubleValue(0.5))), ""),
        (
            equals("importance", text("1")),
            "filter.condition.equals: must be a number, as the field is",
        ),
        (
            equals("kind", value(Kind::BoolValue(true))),
            "filter.condition.equals: must be text, as the field is",
        ),
        (
            equals("created_at", int(5)),
            "filter.condition.equals: must be a time, as the field is",
        ),
        (
            equals(
                "created_at",
                value(Kind::TimeValue(timestamp(5, 0).unwrap())),
            ),
            "",
        ),
        (
            equals(
                "expires_at",
                value(Kind::TimeValue(timestamp(5, -1).unwrap())),
            ),
            "filter.condition.equals: must have nanoseconds of 0 to 999999999",
        ),
        (equals("metadata.a", value(Kind::BoolValue(true))), ""),
        (
            equals("metadata.a", value(Kind::DoubleValue(f64::NAN))),
            "filter.condition.equals: must be a finite number, not NaN",
        ),
        (
            equals("metadata.a", text("\0")),
            "filter.condition.equals: must not contain NUL",
        ),
        (
            equals("metadata.a", v1::Value { kind: None }),
            "filter.condition.equals: must have a value",
        ),
        (
            equals("metadata.a", list(vec![])),
            "filter.condition.equals: must be a single value, not a list or a map",
        ),
        (
            equals("metadata.a", map([])),
            "filter.condition.equals: must be a single value, not a list or a map",
        ),
    ]);
}

#[test]
fn ranges() {
    let range = v1::Range::default;
    let both = |gte, lt| v1::Range {
        gte: Some(gte),
        lt: Some(lt),
        ..range()
    };
    check_filter(&[
        (
            ranged("importance", range()),
            "filter.condition.range: must have at least one bound",
        ),
        (
            ranged("importance", both(int(0), value(Kind::DoubleValue(0.5)))),
            "",
        ),
        (ranged("key", both(text("a"), text("b"))), ""),
        (
            ranged(
                "metadata.a",
                v1::Range {
                    lte: Some(int(1)),
                    ..range()
                },
            ),
            "",
        ),
        (
            ranged("metadata.a", both(int(1), text("x"))),
            "filter.condition.range: must have bounds of one type",
        ),
        (
            ranged(
                "metadata.a",
                v1::Range {
                    gte: Some(int(1)),
                    gt: Some(int(1)),
                    ..range()
                },
            ),
            "filter.condition.range: must have one of `gte` and `gt`, not both",
        ),
        (
            ranged(
                "metadata.a",
                v1::Range {
                    lte: Some(int(1)),
                    lt: Some(int(1)),
                    ..range()
                },
            ),
            "filter.condition.range: must have one of `lte` and `lt`, not both",
        ),
        (
            ranged(
                "metadata.a",
                v1::Range {
                    gt: Some(value(Kind::BoolValue(true))),
                    ..range()
                },
            ),
            "filter.condition.range.gt: must be a number, a time or text",
        ),
        (
            ranged(
                "importance",
                v1::Range {
                    lte: Some(text("x")),
                    ..range()
                },
            ),
            "filter.condition.range.lte: must be a number, as the field is",
        ),
        (
            ranged(
                "metadata.a",
                v1::Range {
                    lt: Some(v1::Value { kind: None }),
                    ..range()
                },
            ),
            "filter.condition.range.lt: must have a value",
        ),
    ]);
}

#[test]
fn a_filter_keeps_its_meaning() {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let given = all(vec![
        equals("kind", text("turn")),
        node(Node::Not(Box::new(exists("expires_at")))),
        node(Node::Any(v1::FilterList {
            filters: vec![
                condition(
                    "tags",
                    GivenTest::In(v1::ValueList {
                        values: vec![text("a"), text("b")],
                    }),
                ),
                condition("source.uri", GivenTest::Prefix("https:".to_owned())),
            ],
        })),
        ranged(
            "metadata.order.id",
            v1::Range {
                gt: Some(int(1)),
                lte: Some(int(2)),
                ..Default::default()
            },
        ),
        ranged(
            "importance",
            v1::Range {
                gte: Some(int(1)),
                ..Default::default()
            },
        ),
        ranged(
            "importance",
            v1::Range {
                lt: Some(int(1)),
                ..Default::default()
            },
        ),
    ]);
    let request = v1::SearchRequest {
        filter: Some(given),
        ..search_request()
    };
    let (_, query) = search(request, CONTEXT).unwrap();
    let test = |field, test| Filter::Test { field, test };
    let words = |words: [&str; 2]| words.map(|word| Scalar::Text(word.to_owned())).to_vec();
    assert_eq!(
        query.selection.filter.unwrap(),
        Filter::All(vec![
            test(
                Field::Kind,
                Test::OneOf(vec![Scalar::Text("turn".to_owned())])
            ),
            Filter::Not(Box::new(test(Field::ExpiresAt, Test::Exists(true)))),
            Filter::Any(vec![
                test(Field::Tags, Test::OneOf(words(["a", "b"]))),
                test(Field::SourceUri, Test::Prefix("https:".to_owned())),
            ]),
            test(
                Field::Metadata("order.id".to_owned()),
                Test::Range(Excluded(Scalar::Int(1)), Included(Scalar::Int(2)))
            ),
            test(
                Field::Importance,
                Test::Range(Included(Scalar::Int(1)), Unbounded)
            ),
            test(
                Field::Importance,
                Test::Range(Unbounded, Excluded(Scalar::Int(1)))
            ),
        ])
    );
}

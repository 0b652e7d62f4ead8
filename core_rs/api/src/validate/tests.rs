//! Every rule, once broken and once just kept.
#![allow(
    clippy::unnecessary_wraps,
    reason = "helpers make values of optional fields"
)]

mod brief;
mod filter;
mod hostile;
mod named;
mod query;
mod write;

use std::collections::BTreeMap;
use std::time::Duration;

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
static COUNTERS: Counters = Counters::built_in();
const CONTEXT: Context<'static> = Context {
    counters: &COUNTERS,
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

/// A source by its URI.
fn uri(uri: &str) -> v1::Source {
    v1::Source {
        uri: uri.to_owned(),
        ..Default::default()
    }
}

fn texts(texts: &[&str]) -> v1::ValueList {
    v1::ValueList {
        values: texts.iter().map(|one| text(one)).collect(),
    }
}

fn with<T: Clone>(n: usize, value: &T) -> Vec<T> {
    vec![value.clone(); n]
}

fn equals(field: &str, value: v1::Value) -> v1::Filter {
    condition(field, GivenTest::Equals(value))
}

fn ranged(field: &str, range: v1::Range) -> v1::Filter {
    condition(field, GivenTest::Range(range))
}

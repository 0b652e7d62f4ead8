//! `Filter`.

use super::*;

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

#[test]
fn trees() {
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
}

#[test]
fn conditions() {
    let many = |n: usize| condition("key", GivenTest::In(texts(&with(n, &"x"))));
    let mixed = || v1::ValueList {
        values: vec![text("x"), int(1)],
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
            condition("key", GivenTest::In(mixed())),
            "filter.condition.in[1]: must be text, as the field is",
        ),
        (condition("metadata.a", GivenTest::In(mixed())), ""),
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
        (ranged("key", both(text("a"), text(&"b".repeat(128)))), ""),
        (
            ranged("key", both(text("a"), text(&"b".repeat(129)))),
            "filter.condition.range.lt: must be at most 128 bytes",
        ),
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
                condition("tags", GivenTest::In(texts(&["a", "b"]))),
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

//! Filters against brute force: the index gives exactly the memories that the conditions say, and a search with a
//! filter returns as many hits as there are.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use common::*;
use proptest::prelude::*;
use recalld_engine::filter::{Field, Filter, Scalar, Test};
use recalld_engine::ids::Micros;
use recalld_engine::types::{Delete, NewMemory, Query, Selection};
use recalld_proto::v1::value::Kind;
use recalld_proto::v1::{Source, Value, ValueList};

fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

fn metadata_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Kind::BoolValue),
        (-3..4i64).prop_map(Kind::IntValue),
        Just(Kind::IntValue(i64::MAX)),
        prop_oneof![
            Just(0.0),
            Just(1.0),
            Just(1.5),
            Just(-2.5),
            Just(9_223_372_036_854_775_807.0)
        ]
        .prop_map(Kind::DoubleValue),
        "[ab]{0,3}".prop_map(Kind::StringValue),
    ]
    .prop_map(value);
    prop_oneof![
        4 => leaf.clone(),
        1 => proptest::collection::vec(leaf, 0..3)
            .prop_map(|values| value(Kind::ListValue(ValueList { values }))),
    ]
}

fn item() -> impl Strategy<Value = NewMemory> {
    (
        prop_oneof![Just("fact"), Just("event"), Just("mine")],
        proptest::collection::btree_set("[xyz]", 0..3),
        proptest::collection::btree_map("[mn]", metadata_value(), 0..3),
        (0..5u8, 0..5u8),
        proptest::option::of(0..6i64),
        prop_oneof![Just(""), Just("s1"), Just("s12")],
    )
        .prop_map(
            |(kind, tags, metadata, (importance, confidence), day, session)| NewMemory {
                kind: kind.to_owned(),
                tags: tags.into_iter().collect(),
                metadata,
                importance: f64::from(importance) / 4.0,
                confidence: f64::from(confidence) / 4.0,
                occurred_at: day.map(|day| Micros(START + day * SECOND)),
                sources: if session.is_empty() {
                    Vec::new()
                } else {
                    vec![Source {
                        session: session.to_owned(),
                        ..Source::default()
                    }]
                },
                ..memory("", "A common sentence.")
            },
        )
}

fn scalar(field: &Field) -> BoxedStrategy<Scalar> {
    match field {
        Field::Importance | Field::Confidence => (0..5u8)
            .prop_map(|quarter| Scalar::Double(f64::from(quarter) / 4.0))
            .boxed(),
        Field::OccurredAt | Field::CreatedAt => (0..6i64)
            .prop_map(|day| Scalar::Time(Micros(START + day * SECOND)))
            .boxed(),
        Field::Metadata(_) => prop_oneof![
            any::<bool>().prop_map(Scalar::Bool),
            (-3..4i64).prop_map(Scalar::Int),
            prop_oneof![Just(1.0), Just(1.5), Just(9_223_372_036_854_775_807.0)]
                .prop_map(Scalar::Double),
            "[ab]{0,3}".prop_map(Scalar::Text),
        ]
        .boxed(),
        _ => prop_oneof![
            Just("fact"),
            Just("mine"),
            Just("x"),
            Just("y"),
            Just("s1"),
            Just("s12"),
            Just("k1")
        ]
        .prop_map(|text| Scalar::Text(text.to_owned()))
        .boxed(),
    }
}

fn field() -> impl Strategy<Value = Field> {
    prop_oneof![
        Just(Field::Kind),
        Just(Field::Tags),
        Just(Field::Key),
        Just(Field::SourceSession),
        Just(Field::Importance),
        Just(Field::Confidence),
        Just(Field::OccurredAt),
        Just(Field::Metadata("m".to_owned())),
        Just(Field::Metadata("n".to_owned())),
    ]
}

fn bounds(field: &Field) -> BoxedStrategy<Test> {
    let bound = |value: Scalar, open: bool| {
        if open {
            Bound::Excluded(value)
        } else {
            Bound::Included(value)
        }
    };
    (scalar(field), scalar(field), any::<[bool; 2]>(), 0..3u8)
        .prop_map(move |(a, b, open, sides)| match sides {
            0 => Test::Range(bound(a, open[0]), Bound::Unbounded),
            1 => Test::Range(Bound::Unbounded, bound(b, open[1])),
            _ if a.value_type() == b.value_type() => {
                Test::Range(bound(a, open[0]), bound(b, open[1]))
            }
            _ => Test::Range(bound(a, open[0]), Bound::Unbounded),
        })
        .boxed()
}

fn condition() -> impl Strategy<Value = Filter> {
    field().prop_flat_map(|field| {
        let test = prop_oneof![
            scalar(&field).prop_map(|value| Test::OneOf(vec![value])),
            proptest::collection::vec(scalar(&field), 1..3).prop_map(Test::OneOf),
            bounds(&field),
            any::<bool>().prop_map(Test::Exists),
            "[abxsk1]{0,2}".prop_map(Test::Prefix),
        ];
        test.prop_map(move |test| Filter::Test {
            field: field.clone(),
            test,
        })
    })
}

fn filter() -> impl Strategy<Value = Filter> {
    condition().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..3).prop_map(Filter::All),
            proptest::collection::vec(inner.clone(), 1..3).prop_map(Filter::Any),
            inner.prop_map(|filter| Filter::Not(Box::new(filter))),
        ]
    })
}

/// A number as an exact pair: whole part and fraction.
fn number(scalar: &Scalar) -> Option<(i128, f64)> {
    match scalar {
        Scalar::Int(value) => Some((i128::from(*value), 0.0)),
        Scalar::Double(value) => Some((value.floor() as i128, value - value.floor())),
        _ => None,
    }
}

fn compare(a: &Scalar, b: &Scalar) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (Scalar::Bool(a), Scalar::Bool(b)) => Some(a.cmp(b)),
        (Scalar::Text(a), Scalar::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Scalar::Time(a), Scalar::Time(b)) => Some(a.cmp(b)),
        _ => number(a)?.partial_cmp(&number(b)?),
    }
}

fn flatten(value: &Value, out: &mut Vec<Scalar>) {
    match value.kind.as_ref().unwrap() {
        Kind::BoolValue(value) => out.push(Scalar::Bool(*value)),
        Kind::IntValue(value) => out.push(Scalar::Int(*value)),
        Kind::DoubleValue(value) => out.push(Scalar::Double(*value)),
        Kind::StringValue(value) => out.push(Scalar::Text(value.clone())),
        Kind::ListValue(list) => list.values.iter().for_each(|value| flatten(value, out)),
        Kind::TimeValue(_) | Kind::MapValue(_) => unreachable!("not generated"),
    }
}

fn values(field: &Field, key: &str, item: &NewMemory) -> Vec<Scalar> {
    let text = |text: &str| Scalar::Text(text.to_owned());
    match field {
        Field::Kind => vec![text(&item.kind)],
        Field::Tags => item.tags.iter().map(|tag| text(tag)).collect(),
        Field::Key => vec![text(key)],
        Field::SourceSession => item
            .sources
            .iter()
            .map(|source| text(&source.session))
            .collect(),
        Field::Importance => vec![Scalar::Double(item.importance)],
        Field::Confidence => vec![Scalar::Double(item.confidence)],
        Field::OccurredAt => vec![Scalar::Time(item.occurred_at.unwrap_or(Micros(START)))],
        Field::Metadata(path) => {
            let mut out = Vec::new();
            if let Some(value) = item.metadata.get(path) {
                flatten(value, &mut out);
            }
            out
        }
        _ => unreachable!("not generated"),
    }
}

fn holds(filter: &Filter, key: &str, item: &NewMemory) -> bool {
    match filter {
        Filter::All(filters) => filters.iter().all(|filter| holds(filter, key, item)),
        Filter::Any(filters) => filters.iter().any(|filter| holds(filter, key, item)),
        Filter::Not(filter) => !holds(filter, key, item),
        Filter::Test { field, test } => {
            let values = values(field, key, item);
            let any = |test: &dyn Fn(&Scalar) -> bool| values.iter().any(test);
            match test {
                Test::OneOf(wanted) => any(&|value| {
                    wanted
                        .iter()
                        .any(|w| compare(value, w) == Some(std::cmp::Ordering::Equal))
                }),
                Test::Exists(wanted) => {
                    let present = match field {
                        Field::Metadata(path) => item.metadata.contains_key(path),
                        _ => !values.is_empty(),
                    };
                    present == *wanted
                }
                Test::Prefix(prefix) => any(
                    &|value| matches!(value, Scalar::Text(text) if text.starts_with(prefix.as_str())),
                ),
                Test::Range(lower, upper) => any(&|value| {
                    let above = match lower {
                        Bound::Included(bound) => {
                            compare(value, bound).is_some_and(std::cmp::Ordering::is_ge)
                        }
                        Bound::Excluded(bound) => {
                            compare(value, bound).is_some_and(std::cmp::Ordering::is_gt)
                        }
                        Bound::Unbounded => true,
                    };
                    let below = match upper {
                        Bound::Included(bound) => {
                            compare(value, bound).is_some_and(std::cmp::Ordering::is_le)
                        }
                        Bound::Excluded(bound) => {
                            compare(value, bound).is_some_and(std::cmp::Ordering::is_lt)
                        }
                        Bound::Unbounded => true,
                    };
                    above && below
                }),
            }
        }
    }
}

fn selecting(filter: &Filter) -> Query {
    Query {
        limit: 1000,
        selection: Selection {
            filter: Some(filter.clone()),
            ..Selection::default()
        },
        ..query("a common sentence")
    }
}

fn found(bench: &Bench, query: &Query) -> BTreeSet<String> {
    let found = bench.engine.search(&ns(&["f"]), query, None).unwrap();
    found.hits.into_iter().map(|hit| hit.key).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_filter_gives_exactly_what_it_says(
        items in proptest::collection::vec(item(), 1..40),
        filters in proptest::collection::vec(filter(), 24),
        drop_every in 2..6usize,
    ) {
        let bench = Bench::new();
        let mut model: BTreeMap<String, NewMemory> = items
            .into_iter()
            .enumerate()
            .map(|(i, item)| {
                // Equal contents would be folded into one hit.
                let content = format!("A common sentence, number {i}.");
                (format!("k{i}"), NewMemory { content, ..item })
            })
            .collect();
        let keyed = |model: &BTreeMap<String, NewMemory>| {
            model.iter().map(|(key, item)| NewMemory { key: key.clone(), ..item.clone() }).collect()
        };
        bench.put(&ns(&["f"]), keyed(&model));
        // Some change, some go: the index must follow.
        for (i, key) in model.keys().cloned().collect::<Vec<_>>().into_iter().enumerate() {
            if i % drop_every == 0 {
                model.remove(&key);
                bench.delete_keys(&ns(&["f"]), &[&key]).unwrap();
            } else if i % drop_every == 1 {
                let item = model.get_mut(&key).unwrap();
                item.tags = vec!["changed".to_owned()];
                item.metadata.remove("m");
                let item = NewMemory { key, ..item.clone() };
                bench.put(&ns(&["f"]), vec![item]);
            }
        }
        for filter in &filters {
            let expected: BTreeSet<String> =
                model.iter().filter(|(key, item)| holds(filter, key, item)).map(|(key, _)| key.clone()).collect();
            prop_assert_eq!(found(&bench, &selecting(filter)), expected.clone(), "{:?}", filter);
            let dry = Delete { filter: Some(filter.clone()), dry_run: true, ..delete(&ns(&["f"]), &[]) };
            prop_assert_eq!(bench.engine.delete(dry, None).unwrap().deleted, expected.len() as u64);
        }
        // Deleting by a filter deletes that and nothing else.
        let filter = &filters[0];
        let expected: BTreeSet<String> =
            model.iter().filter(|(key, item)| !holds(filter, key, item)).map(|(key, _)| key.clone()).collect();
        let gone = Delete { filter: Some(filter.clone()), ..delete(&ns(&["f"]), &[]) };
        prop_assert_eq!(bench.engine.delete(gone, None).unwrap().deleted, (model.len() - expected.len()) as u64);
        prop_assert_eq!(found(&bench, &Query { limit: 1000, ..query("a common sentence") }), expected);
    }
}

#[test]
fn kinds_tags_and_times_narrow_together() {
    let bench = Bench::new();
    let at = |second: i64| Some(Micros(START + second * SECOND));
    let items = [
        ("a", "fact", "x", 1),
        ("b", "event", "x", 1),
        ("c", "fact", "y", 1),
        ("d", "fact", "x", 5),
    ];
    bench.put(
        &ns(&["f"]),
        items
            .iter()
            .map(|(key, kind, tag, second)| NewMemory {
                kind: (*kind).to_owned(),
                tags: vec![(*tag).to_owned()],
                occurred_at: at(*second),
                ..memory(key, &format!("A common sentence about {key}."))
            })
            .collect(),
    );
    let selection = Selection {
        kinds: vec!["fact".to_owned()],
        tags: vec!["x".to_owned()],
        occurred_from: at(0),
        occurred_before: at(5),
        ..Selection::default()
    };
    let found = found(
        &bench,
        &Query {
            selection,
            ..query("common")
        },
    );
    assert_eq!(found, BTreeSet::from(["a".to_owned()]));
}

#[test]
fn lists_and_maps_are_present_even_when_empty() {
    let bench = Bench::new();
    let map = value(Kind::MapValue(recalld_proto::v1::ValueMap {
        fields: BTreeMap::from([("id".to_owned(), value(Kind::IntValue(1)))]),
    }));
    let with = |key: &str, metadata: Value| NewMemory {
        metadata: BTreeMap::from([("m".to_owned(), metadata)]),
        ..memory(key, &format!("A common sentence about {key}."))
    };
    let items = vec![
        with("map", map),
        with("empty", value(Kind::ListValue(ValueList::default()))),
        memory("none", "A common sentence about nothing."),
    ];
    bench.put(&ns(&["f"]), items);
    let exists = |path: &str, wanted: bool| {
        let field = Field::Metadata(path.to_owned());
        let filter = Filter::Test {
            field,
            test: Test::Exists(wanted),
        };
        found(&bench, &selecting(&filter))
            .into_iter()
            .collect::<Vec<_>>()
    };
    assert_eq!(exists("m", true), ["empty", "map"]);
    assert_eq!(exists("m", false), ["none"]);
    assert_eq!(exists("m.id", true), ["map"]);
}

#[test]
fn long_texts_are_equal_only_to_themselves() {
    let bench = Bench::new();
    let uri = |end: &str| format!("{}{end}", "u".repeat(128));
    let items = ["", "a", "b"].map(|end| NewMemory {
        sources: vec![Source {
            uri: uri(end),
            ..Source::default()
        }],
        ..memory(&format!("k{end}"), &format!("A common sentence, {end}."))
    });
    bench.put(&ns(&["f"]), items.to_vec());
    for end in ["", "a", "b"] {
        let test = Test::OneOf(vec![Scalar::Text(uri(end))]);
        let filter = Filter::Test {
            field: Field::SourceUri,
            test,
        };
        assert_eq!(
            found(&bench, &selecting(&filter)),
            BTreeSet::from([format!("k{end}")])
        );
    }
    let after = Test::Range(Bound::Excluded(Scalar::Text(uri(""))), Bound::Unbounded);
    let filter = Filter::Test {
        field: Field::SourceUri,
        test: after,
    };
    assert_eq!(found(&bench, &selecting(&filter)).len(), 2);
}

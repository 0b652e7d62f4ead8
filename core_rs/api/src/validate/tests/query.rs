//! `SearchRequest` and `BriefRequest`.

use recalld_engine::types::Selection;

use super::*;

fn check_search(cases: &[Case<v1::SearchRequest>]) {
    check(&search_request(), |request| search(request, CONTEXT), cases);
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
fn spans_of_time() {
    type Time = Option<prost_types::Timestamp>;
    fn span(request: &mut v1::SearchRequest, start: Time, end: Time) {
        request.occurred = Some(v1::TimeRange { start, end });
    }
    check_search(&[
        (|r| span(r, None, None), ""),
        (|r| span(r, timestamp(5, 0), timestamp(5, 1_000)), ""),
        (
            |r| span(r, timestamp(5, 0), timestamp(5, 999)),
            "occurred.end: must be after `start`",
        ),
        (
            |r| span(r, timestamp(0, -1), timestamp(0, 0)),
            "occurred.start: must have nanoseconds of 0 to 999999999",
        ),
        (
            |r| span(r, None, timestamp(i64::MAX, 0)),
            "occurred.end: must lie in the years 1 to 9999",
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
        (None, None, Selection::default())
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
                "encoding: must be one of `o200k_base`, `cl100k_base`, `approximate`, not \"p50k_base\"",
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
        (plain.budget, plain.query.limit, plain.counter.name()),
        (1200, 64, "o200k_base")
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
        (given.budget, given.query.limit, given.counter.name()),
        (7, 9, "cl100k_base")
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

//! Bytes of any kind: an answer or a failure with a reason, never a panic.

use proptest::prelude::*;
use prost::Message;

use super::*;

/// Every request with every field set.
fn full_requests() -> [Vec<u8>; 6] {
    let filter = Some(all(vec![
        equals("kind", text("turn")),
        node(Node::Not(Box::new(exists("metadata.a.b")))),
        condition(
            "tags",
            GivenTest::In(v1::ValueList {
                values: vec![text("a"), int(2)],
            }),
        ),
        ranged(
            "importance",
            v1::Range {
                gte: Some(int(1)),
                lt: Some(int(2)),
                ..Default::default()
            },
        ),
        condition("key", GivenTest::Prefix("p".to_owned())),
    ]));
    let occurred = Some(v1::TimeRange {
        start: timestamp(1, 0),
        end: timestamp(2, 0),
    });
    let weights = Some(v1::Weights {
        relevance: Some(1.0),
        importance: Some(1.0),
        recency: Some(1.0),
    });
    let half_lives = BTreeMap::from([("turn".to_owned(), duration(3, 5_000))]);
    let item = WriteItem {
        key: "k".to_owned(),
        content: "[1]".to_owned(),
        content_format: 2,
        tags: vec!["t".to_owned()],
        metadata: BTreeMap::from([("a".to_owned(), nested(5))]),
        importance: Some(0.25),
        occurred_at: timestamp(-1, 1_999),
        ttl: Some(duration(1, 2_999)),
        expires_at: timestamp(NOW + 1, 0),
        sources: vec![v1::Source {
            uri: "u".to_owned(),
            ..Default::default()
        }],
        vector: vec![1.0; 4],
        if_version: Some(7),
        ..Default::default()
    };
    let names = (vec![ID.to_owned()], vec!["k".to_owned()]);
    [
        v1::WriteRequest {
            items: vec![item],
            idempotency_key: "i".to_owned(),
            ..write_request()
        }
        .encode_to_vec(),
        v1::SearchRequest {
            filter: filter.clone(),
            occurred,
            weights,
            half_lives,
            limit: Some(5),
            vector: vec![1.0; 4],
            ..search_request()
        }
        .encode_to_vec(),
        v1::GetRequest {
            ids: names.0.clone(),
            keys: names.1.clone(),
            max_tokens: Some(5),
            as_of_version: Some(1),
            ..get_request()
        }
        .encode_to_vec(),
        v1::DeleteRequest {
            ids: names.0,
            keys: names.1,
            filter,
            if_version: Some(1),
            ..delete_request()
        }
        .encode_to_vec(),
        v1::BriefRequest {
            occurred,
            weights,
            budget_tokens: Some(7),
            format: 2,
            sections: vec![v1::BriefSection {
                title: "Facts".to_owned(),
                kinds: vec!["fact".to_owned()],
                max_tokens: Some(9),
            }],
            pinned_ids: vec![ID.to_owned()],
            pinned_keys: vec!["k".to_owned()],
            ..brief_request()
        }
        .encode_to_vec(),
        count_request().encode_to_vec(),
    ]
}

fn validated(method: usize, bytes: &[u8]) -> Option<Failure> {
    match method {
        0 => v1::WriteRequest::decode(bytes)
            .ok()
            .and_then(|request| write(request, "", CONTEXT).err()),
        1 => v1::SearchRequest::decode(bytes)
            .ok()
            .and_then(|request| search(request, CONTEXT).err()),
        2 => v1::GetRequest::decode(bytes)
            .ok()
            .and_then(|request| get(request, CONTEXT).err()),
        3 => v1::DeleteRequest::decode(bytes)
            .ok()
            .and_then(|request| delete(request, "").err()),
        4 => v1::BriefRequest::decode(bytes)
            .ok()
            .and_then(|request| brief(request, CONTEXT).err()),
        _ => v1::CountTokensRequest::decode(bytes)
            .ok()
            .and_then(|request| count_tokens(request, CONTEXT).err()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn changed_requests_are_taken_or_refused(
        method in 0..6usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        keep in prop::bool::weighted(0.8),
    ) {
        let mut bytes = full_requests()[method].clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if !keep {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Some(failure) = validated(method, &bytes) {
            prop_assert_eq!(failure.reason_name(), "INVALID_FIELD");
            prop_assert!(!failure.violations.is_empty() && !failure.message.is_empty());
            prop_assert!(!failure.status().is_empty());
        }
    }

    #[test]
    fn any_bytes_are_taken_or_refused(method in 0..6usize, bytes: Vec<u8>) {
        if let Some(failure) = validated(method, &bytes) {
            prop_assert_eq!(failure.reason_name(), "INVALID_FIELD");
        }
    }
}

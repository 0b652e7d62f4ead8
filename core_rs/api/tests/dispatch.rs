//! Calls as bytes, through a real engine in a folder of its own.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use common::{NOW, Server, TestClock, item, namespace, options};
use proptest::prelude::*;
use prost::Message;
use recalld_api::{Code, Method, Service, ServiceOptions};
use recalld_engine::token::Token;
use recalld_proto::v1::{self, BriefForm, WriteItem, WriteOutcome};
use recalld_store::ids::Position;

fn get(key: &str) -> v1::GetRequest {
    v1::GetRequest {
        namespace: namespace(),
        keys: vec![key.to_owned()],
        ..Default::default()
    }
}

/// A memory with most fields set.
fn seat() -> WriteItem {
    let class = v1::Value {
        kind: Some(v1::value::Kind::IntValue(2)),
    };
    WriteItem {
        kind: "preference".to_owned(),
        tags: vec!["travel".to_owned(), "flights".to_owned()],
        metadata: [("class".to_owned(), class)].into(),
        occurred_at: Some(prost_types::Timestamp {
            seconds: NOW - 60,
            nanos: 1_500,
        }),
        sources: vec![v1::Source {
            speaker: "Alice".to_owned(),
            ..Default::default()
        }],
        origin: "agent:planner".to_owned(),
        ..item("seat", "Alice prefers aisle seats on long flights.")
    }
}

#[test]
fn a_written_memory_is_found() {
    let server = Server::start();
    let written = server
        .write(vec![seat(), item("", "The invoice is due on Friday.")])
        .unwrap();
    assert!(
        written
            .receipts
            .iter()
            .all(|r| (r.outcome(), r.version) == (WriteOutcome::Stored, 1))
    );
    let receipt = &written.receipts[0];

    let found = server.search("which seat does Alice like?");
    let hit = &found.hits[0];
    assert_eq!((&hit.id, hit.key.as_str()), (&receipt.id, "seat"));
    assert_eq!((hit.kind.as_str(), hit.version), ("preference", 1));
    assert_eq!(hit.tags, ["flights", "travel"]);
    assert_eq!(hit.content_tokens, receipt.content_tokens);
    assert_eq!(
        hit.age.unwrap(),
        prost_types::Duration {
            seconds: 59,
            nanos: 999_999_000
        }
    );
    let occurred_at = hit.occurred_at.unwrap();
    assert_eq!((occurred_at.seconds, occurred_at.nanos), (NOW - 60, 1_000));
    assert!(
        found
            .arms
            .iter()
            .any(|arm| arm.name == "lexical" && arm.candidates > 0)
    );
    assert!(found.took.is_some() && !found.token.is_empty());
}

#[test]
fn a_written_memory_is_fetched() {
    let server = Server::start();
    let written = server.write(vec![seat()]).unwrap();
    let request = v1::GetRequest {
        ids: vec![written.receipts[0].id.clone()],
        keys: vec!["seat".to_owned(), "none".to_owned()],
        max_tokens: Some(3),
        at_least_as_fresh: written.token,
        ..get("")
    };
    let fetched: v1::GetResponse = server.call(Method::Get, &request).unwrap();
    assert_eq!(fetched.missing_keys, ["none"]);
    assert_eq!(fetched.memories.len(), 2);
    let memory = &fetched.memories[0];
    assert_eq!(
        (memory.content.as_str(), memory.truncated),
        ("Alice prefers aisle", true)
    );
    assert_eq!(memory.content_tokens, written.receipts[0].content_tokens);
    assert_eq!(memory.metadata, seat().metadata);
    assert_eq!(memory.sources, seat().sources);
    assert_eq!(memory.origin, "agent:planner");
    assert_eq!(
        memory.created_at.unwrap(),
        prost_types::Timestamp {
            seconds: NOW,
            nanos: 0
        }
    );
    assert_eq!(
        (memory.expires_at, memory.content_format()),
        (None, v1::ContentFormat::Text)
    );
}

#[test]
fn a_deleted_memory_is_gone() {
    let server = Server::start();
    server.write(vec![seat()]).unwrap();
    let delete = v1::DeleteRequest {
        namespace: namespace(),
        keys: vec!["seat".to_owned()],
        ..Default::default()
    };
    let deleted: v1::DeleteResponse = server.call(Method::Delete, &delete).unwrap();
    assert_eq!((deleted.deleted, deleted.deleted_versions), (1, 1));
    let fetched: v1::GetResponse = server.call(Method::Get, &get("seat")).unwrap();
    assert_eq!(
        (fetched.memories.len(), fetched.missing_keys),
        (0, vec!["seat".to_owned()])
    );
    assert_eq!(server.search("which seat does Alice like?").hits, []);
}

#[test]
fn a_repeat_is_a_duplicate_and_a_change_an_update() {
    let server = Server::start();
    let outcome = |item| {
        let receipt = server.write(vec![item]).unwrap().receipts.remove(0);
        (receipt.outcome(), receipt.version)
    };
    assert_eq!(outcome(item("seat", "aisle")), (WriteOutcome::Stored, 1));
    let said_otherwise = WriteItem {
        kind: "fact".to_owned(),
        importance: Some(0.5),
        ..item("seat", "aisle")
    };
    assert_eq!(outcome(said_otherwise), (WriteOutcome::Duplicate, 1));
    assert_eq!(outcome(item("seat", "window")), (WriteOutcome::Updated, 2));
}

#[test]
fn a_brief_stays_in_its_budget_and_is_not_sent_twice() {
    let server = Server::start();
    let contents = [
        "Alice prefers aisle seats.",
        "Alice flies to Oslo on Monday.",
        "Alice is allergic to nuts.",
    ];
    server
        .write(contents.map(|content| item("", content)).to_vec())
        .unwrap();
    let request = v1::BriefRequest {
        namespace: namespace(),
        query: "book a flight for Alice".to_owned(),
        budget_tokens: Some(300),
        ..Default::default()
    };
    let brief: v1::BriefResponse = server.call(Method::Brief, &request).unwrap();
    assert!(
        brief.text.contains("aisle") && !brief.not_modified,
        "{}",
        brief.text
    );
    assert_eq!(brief.encoding, "o200k_base");
    assert!(brief.tokens <= 300 && brief.tokens > 0);
    assert!(
        brief
            .included
            .iter()
            .all(|memory| memory.form() != BriefForm::Unspecified)
    );
    assert!(brief.took.is_some());

    let counted: v1::CountTokensResponse = server
        .call(
            Method::CountTokens,
            &v1::CountTokensRequest {
                texts: vec![brief.text],
                encoding: String::new(),
            },
        )
        .unwrap();
    assert_eq!(counted.total, u64::from(brief.tokens));

    let request = v1::BriefRequest {
        if_fingerprint: brief.fingerprint.clone(),
        ..request
    };
    let again: v1::BriefResponse = server.call(Method::Brief, &request).unwrap();
    assert_eq!((again.text.as_str(), again.not_modified), ("", true));
    assert_eq!(
        (again.tokens, again.fingerprint),
        (brief.tokens, brief.fingerprint)
    );
}

#[test]
fn tokens_are_counted_by_encoding() {
    let server = Server::start();
    let count = |encoding: &str| -> v1::CountTokensResponse {
        let texts = vec!["hello world".to_owned(), String::new(), "a\0b".to_owned()];
        let request = v1::CountTokensRequest {
            texts,
            encoding: encoding.to_owned(),
        };
        server.call(Method::CountTokens, &request).unwrap()
    };
    let counted = count("cl100k_base");
    assert_eq!(
        (&counted.counts[..2], counted.encoding.as_str()),
        (&[2, 0][..], "cl100k_base")
    );
    assert_eq!(
        counted.total,
        counted.counts.iter().map(|&n| u64::from(n)).sum::<u64>()
    );
    assert_eq!(count("").encoding, "o200k_base");
    let approximate = count("approximate");
    assert_eq!(approximate.encoding, "approximate");
    assert!(approximate.total >= counted.total);
}

#[test]
fn a_tokenizer_that_cannot_be_used_stops_the_opening() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokenizer.json");
    std::fs::write(&file, "{}").unwrap();
    let tokenizers = BTreeMap::from([("mine".to_owned(), file.clone())]);
    let options = ServiceOptions {
        tokenizers,
        ..options(folder.path(), 1)
    };
    let clock = Arc::new(TestClock(AtomicI64::new(NOW * 1_000_000)));
    let failure = Service::open(&options, clock).err().unwrap();
    assert_eq!(failure.reason_name(), "INVALID_FIELD");
    assert_eq!(failure.violations[0].field, "tokenizers.mine");
    let start = format!(
        "tokenizers.mine: {} is not a tokenizer.json",
        file.display()
    );
    assert!(failure.message.starts_with(&start), "{}", failure.message);
    assert!(!options.engine.data_dir.exists());
}

#[test]
fn an_idempotency_key_answers_the_same_or_refuses() {
    let server = Server::start();
    let request = |content: &str| v1::WriteRequest {
        namespace: namespace(),
        items: vec![WriteItem {
            ttl: Some(prost_types::Duration {
                seconds: 60,
                nanos: 0,
            }),
            ..item("", content)
        }],
        idempotency_key: "once".to_owned(),
    };
    let first: v1::WriteResponse = server.call(Method::Write, &request("a")).unwrap();
    server.clock.0.fetch_add(1_000_000, Ordering::SeqCst);
    let again: v1::WriteResponse = server.call(Method::Write, &request("a")).unwrap();
    assert_eq!(again.receipts, first.receipts);
    let refused = server
        .call::<v1::WriteResponse>(Method::Write, &request("b"))
        .unwrap_err();
    assert_eq!(
        (refused.code(), refused.reason_name()),
        (Code::AlreadyExists, "IDEMPOTENCY_KEY_REUSED")
    );
    assert_eq!(refused.metadata["idempotency_key"], "once");

    let mut delete = v1::DeleteRequest {
        namespace: namespace(),
        ids: vec![first.receipts[0].id.clone()],
        idempotency_key: "gone".to_owned(),
        ..Default::default()
    };
    let deleted: v1::DeleteResponse = server.call(Method::Delete, &delete).unwrap();
    let again: v1::DeleteResponse = server.call(Method::Delete, &delete).unwrap();
    assert_eq!(
        (deleted.deleted, again.deleted, again.missing_ids.len()),
        (1, 1, 0)
    );
    delete.keys = vec!["k".to_owned()];
    let refused = server
        .call::<v1::DeleteResponse>(Method::Delete, &delete)
        .unwrap_err();
    assert_eq!(refused.reason_name(), "IDEMPOTENCY_KEY_REUSED");
}

#[test]
fn a_lost_race_names_the_current_version_and_writes_nothing() {
    let server = Server::start();
    server.write(vec![item("seat", "aisle")]).unwrap();
    let guarded = WriteItem {
        if_version: Some(7),
        ..item("seat", "window")
    };
    let conflict = server.write(vec![item("other", "x"), guarded]).unwrap_err();
    assert_eq!(
        (conflict.code(), conflict.reason_name()),
        (Code::Aborted, "VERSION_CONFLICT")
    );
    assert_eq!(conflict.metadata["field"], "items[1].if_version");
    assert_eq!(conflict.metadata["current_version"], "1");
    let fetched: v1::GetResponse = server.call(Method::Get, &get("other")).unwrap();
    assert_eq!(fetched.missing_keys, ["other"]);

    let missing = server
        .write(vec![WriteItem {
            if_version: Some(1),
            ..item("none", "x")
        }])
        .unwrap_err();
    assert_eq!(missing.metadata["current_version"], "0");
    let delete = v1::DeleteRequest {
        namespace: namespace(),
        keys: vec!["seat".to_owned()],
        if_version: Some(2),
        ..Default::default()
    };
    let conflict = server
        .call::<v1::DeleteResponse>(Method::Delete, &delete)
        .unwrap_err();
    assert_eq!(
        (conflict.reason_name(), conflict.metadata["field"].as_str()),
        ("VERSION_CONFLICT", "if_version")
    );
}

#[test]
fn fields_are_checked_against_the_store_and_its_clock() {
    let server = Server::start();
    let now = Some(prost_types::Timestamp {
        seconds: NOW,
        nanos: 0,
    });
    let wrong = WriteItem {
        vector: vec![1.0; 3],
        expires_at: now,
        ..item("", "x")
    };
    let refused = server.write(vec![wrong]).unwrap_err();
    let fields: Vec<_> = refused
        .violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(
        (refused.code(), fields),
        (
            Code::InvalidArgument,
            vec!["items[0].expires_at", "items[0].vector"]
        )
    );
    let right = WriteItem {
        vector: vec![1.0; 256],
        ..item("", "x")
    };
    assert_eq!(server.write(vec![right]).unwrap().receipts.len(), 1);
    assert_eq!(server.calls_by_code(Method::Write), [(0, 1), (3, 1)]);
}

#[test]
fn tokens_bind_reads_to_a_state_of_this_store() {
    let server = Server::start();
    let token: Token = server
        .write(vec![item("seat", "aisle")])
        .unwrap()
        .token
        .parse()
        .unwrap();
    let read = |token: Token, deadline| {
        let request = v1::GetRequest {
            at_least_as_fresh: token.to_string(),
            ..get("seat")
        };
        server
            .call_until::<v1::GetResponse>(Method::Get, &request, deadline)
            .map(|answer| answer.memories.len())
    };
    assert_eq!(read(token, None).unwrap(), 1);
    let other = read(
        Token {
            store: [0; 16],
            ..token
        },
        None,
    )
    .unwrap_err();
    assert_eq!(
        (other.code(), other.reason_name()),
        (Code::FailedPrecondition, "TOKEN_OF_ANOTHER_STORE")
    );
    let soon = Some(Instant::now() + Duration::from_millis(30));
    let early = read(
        Token {
            position: Position(u64::MAX),
            ..token
        },
        soon,
    )
    .unwrap_err();
    assert_eq!(
        (early.code(), early.reason_name()),
        (Code::DeadlineExceeded, "TOKEN_NOT_REACHED")
    );
}

#[test]
fn what_cannot_be_answered_says_why() {
    let server = Server::start();
    let unknown = server
        .service
        .dispatch("/recalld.v1.MemoryService/Forget", "", &[], None)
        .unwrap_err();
    assert_eq!(
        (unknown.code(), unknown.reason_name()),
        (Code::Unimplemented, "UNKNOWN_METHOD")
    );

    let malformed = server
        .service
        .dispatch(Method::Search.name(), "", &[0xff], None)
        .unwrap_err();
    assert_eq!(
        (malformed.code(), malformed.reason_name()),
        (Code::InvalidArgument, "MALFORMED_REQUEST")
    );
    assert!(
        malformed
            .message
            .starts_with("the request is not a SearchRequest"),
        "{malformed}"
    );
    // Field 2, a string of one byte that is not UTF-8.
    let malformed = server
        .service
        .dispatch(Method::Search.name(), "", &[0x12, 1, 0xff], None)
        .unwrap_err();
    assert_eq!(malformed.reason_name(), "MALFORMED_REQUEST");

    let late = server
        .service
        .dispatch(Method::Search.name(), "", &[0xff], Some(Instant::now()))
        .unwrap_err();
    assert_eq!(
        (late.code(), late.reason_name()),
        (Code::DeadlineExceeded, "DEADLINE_EXCEEDED")
    );
    assert_eq!(server.calls_by_code(Method::Search), [(3, 2), (4, 1)]);
}

#[test]
fn requests_that_would_swell_are_refused_before_they_are_decoded() {
    let server = Server::start();
    let dispatch = |method: Method, request: &[u8]| {
        let failure = server
            .service
            .dispatch(method.name(), "test", request, None)
            .unwrap_err();
        (failure.reason, failure.violations.len())
    };
    // Two bytes an element: items of a write, filters of a filter.
    let items = [0x12, 0x00].repeat(4 << 20);
    assert_eq!(
        dispatch(Method::Write, &items),
        (v1::ErrorReason::InvalidField, 1)
    );
    let filters = [0x0a, 0x00].repeat(3 << 20);
    assert_eq!(
        dispatch(Method::Search, &filters),
        (v1::ErrorReason::MalformedRequest, 0)
    );
}

#[test]
fn an_overloaded_service_says_when_to_come_back() {
    let server = Server::admitting(0);
    let refused = server
        .call::<v1::GetResponse>(Method::Get, &get("seat"))
        .unwrap_err();
    assert_eq!(
        (refused.code(), refused.reason_name()),
        (Code::ResourceExhausted, "OVERLOADED")
    );
    assert_eq!(refused.retry_after, Some(Duration::from_millis(50)));
    assert_eq!(
        (
            server.service.in_flight(),
            server.calls_by_code(Method::Get)
        ),
        (0, vec![(8, 1)])
    );
}

#[test]
fn a_draining_service_refuses_and_a_closed_one_lets_go_of_its_directory() {
    let server = Server::start();
    server.write(vec![item("seat", "aisle")]).unwrap();
    server.service.refuse();
    let refused = server
        .call::<v1::GetResponse>(Method::Get, &get("seat"))
        .unwrap_err();
    assert_eq!(
        (refused.code(), refused.reason_name()),
        (Code::Unavailable, "NOT_SERVING")
    );
    assert_eq!(server.service.store_stats().unwrap().memories, 1);

    let open = |folder: &Path| Service::open(&options(folder, 1), server.clock.clone());
    let locked = open(server.folder.path()).map(|_| ()).unwrap_err();
    assert_eq!(locked.reason_name(), "STORE_UNAVAILABLE");
    assert!(
        locked.message.contains("in use by process") && locked.message.contains("at here"),
        "{locked}"
    );

    server.service.close();
    server.service.close();
    assert_eq!(
        server.service.store_stats().unwrap_err().reason_name(),
        "NOT_SERVING"
    );
    let reopened = open(server.folder.path()).unwrap();
    let answer = reopened
        .dispatch(Method::Get.name(), "", &get("seat").encode_to_vec(), None)
        .unwrap();
    assert_eq!(
        v1::GetResponse::decode(answer.as_slice()).unwrap().memories[0].content,
        "aisle"
    );
}

#[test]
fn counts_are_of_the_store_and_of_one_namespace() {
    let server = Server::start();
    server
        .write(vec![item("seat", "aisle"), item("", "Oslo")])
        .unwrap();
    let stats = server.service.store_stats().unwrap();
    assert_eq!(
        (stats.memories, stats.namespaces, stats.dimensions),
        (2, 1, 256)
    );
    let of = |segments: &[&str]| {
        server
            .service
            .namespace_stats(segments.iter().map(|&s| s.to_owned()).collect())
    };
    assert_eq!(of(&["acme", "alice"]).unwrap().memories, 2);
    assert_eq!(of(&["acme"]).unwrap().memories, 0);
    assert_eq!(of(&[]).unwrap_err().reason_name(), "INVALID_FIELD");
}

#[test]
fn any_bytes_get_an_answer_or_a_reason() {
    let server = Server::start();
    let namespace = v1::GetRequest {
        namespace: namespace(),
        ..Default::default()
    }
    .encode_to_vec();
    let reasons = ["INVALID_FIELD", "MALFORMED_REQUEST"];
    proptest!(ProptestConfig::with_cases(2048), |(method in 0..6usize, tail: Vec<u8>)| {
        let bytes = [namespace.as_slice(), &tail].concat();
        if let Err(failure) = server.service.dispatch(Method::ALL[method].name(), "", &bytes, None) {
            prop_assert!(reasons.contains(&failure.reason_name()), "{}", failure);
        }
    });
    assert_eq!(server.service.in_flight(), 0);
}

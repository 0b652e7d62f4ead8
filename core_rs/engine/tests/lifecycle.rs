//! What happens to a memory: written, versioned, repeated, expired, deleted, found again after a restart.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use recalld_engine::EngineError;
use recalld_engine::filter::{Field, Filter, Scalar, Test};
use recalld_engine::types::{Delete, Get, Idempotency, NewMemory, Outcome, Query, Write};

fn alice() -> recalld_engine::types::Namespace {
    ns(&["acme", "user", "alice"])
}

#[test]
fn a_write_is_found_by_the_next_search_and_survives_a_restart() {
    let bench = Bench::new();
    let receipts = bench.put(
        &alice(),
        vec![
            memory("seat", "Alice prefers aisle seats."),
            memory("meal", "She eats no meat and likes soup."),
        ],
    );
    assert_eq!(
        receipts.iter().map(|r| r.outcome).collect::<Vec<_>>(),
        [Outcome::Stored, Outcome::Stored]
    );
    assert_eq!(
        bench.find(&alice(), "which seat does she prefer?")[0],
        "seat"
    );
    let bench = bench.reopen();
    assert_eq!(
        bench.find(&alice(), "which seat does she prefer?")[0],
        "seat"
    );
    assert_eq!(
        bench.contents(&alice(), &["meal", "seat"]),
        [
            "She eats no meat and likes soup.",
            "Alice prefers aisle seats."
        ]
    );
}

#[test]
fn a_key_has_versions_and_only_the_newest_is_found() {
    let bench = Bench::new();
    let first = bench.put(&alice(), vec![memory("city", "Alice lives in Lisbon.")])[0];
    let second = bench.put(&alice(), vec![memory("city", "Alice lives in Oslo.")])[0];
    assert_eq!(
        (second.outcome, second.version, second.id),
        (Outcome::Updated, 2, first.id)
    );
    let found = bench
        .engine
        .search(&alice(), &query("Lisbon Oslo"), None)
        .unwrap();
    assert_eq!(found.hits.len(), 1);
    assert!(found.hits[0].summary.contains("Oslo"));
    let at = |version| Get {
        version: Some(version),
        ..get_keys(&alice(), &["city"])
    };
    let old = bench.engine.get(&at(1), None).unwrap();
    assert_eq!(old.found[0].content, "Alice lives in Lisbon.");
    assert_eq!(old.found[0].record.created_at_micros, START);
    assert_eq!(
        bench.engine.get(&at(3), None).unwrap().missing_keys,
        ["city"]
    );
    assert_eq!(bench.delete_keys(&alice(), &["city"]).unwrap(), 1);
    assert!(bench.engine.get(&at(1), None).unwrap().found.is_empty());
}

#[test]
fn the_same_memory_twice_is_kept_once() {
    let bench = Bench::new();
    let item = NewMemory {
        digest: Some([7; 16]),
        ..memory("", "Likes tea.")
    };
    let receipts = bench.put(&alice(), vec![item.clone(), item.clone()]);
    assert_eq!(receipts[1].outcome, Outcome::Duplicate);
    assert_eq!(receipts[1].id, receipts[0].id);
    assert_eq!(
        bench.put(&alice(), vec![item.clone()])[0].id,
        receipts[0].id
    );
    assert_eq!(bench.engine.namespace_stats(&alice()).unwrap().memories, 1);
    let ids = Delete {
        ids: vec![receipts[0].id],
        ..delete(&alice(), &[])
    };
    assert_eq!(bench.engine.delete(ids, None).unwrap().deleted, 1);
    assert_eq!(bench.put(&alice(), vec![item])[0].outcome, Outcome::Stored);
}

#[test]
fn what_has_expired_is_nowhere_though_nothing_swept_it() {
    let bench = Bench::new();
    bench.put(
        &alice(),
        vec![
            expiring("otp", "The one-time code is 4711.", Duration::from_secs(60)),
            memory("twin", "The one-time code is asked at each login."),
        ],
    );
    bench.clock.advance(60 * SECOND - 1);
    assert!(
        bench
            .find(&alice(), "one-time code")
            .contains(&"otp".to_owned())
    );
    bench.clock.advance(1);
    assert_eq!(bench.find(&alice(), "one-time code"), ["twin"]);
    assert_eq!(
        bench
            .engine
            .get(&get_keys(&alice(), &["otp"]), None)
            .unwrap()
            .missing_keys,
        ["otp"]
    );
    let brief = bench
        .engine
        .brief(&brief(&alice(), "one-time code", 500), None)
        .unwrap();
    assert!(!brief.text.contains("4711") && brief.text.contains("each login"));
    let by_kind = Filter::Test {
        field: Field::Key,
        test: Test::OneOf(vec![Scalar::Text("otp".to_owned())]),
    };
    let filtered = Query {
        selection: recalld_engine::types::Selection {
            filter: Some(by_kind.clone()),
            ..Default::default()
        },
        ..query("one-time code")
    };
    assert!(
        bench
            .engine
            .search(&alice(), &filtered, None)
            .unwrap()
            .hits
            .is_empty()
    );
    let filtered = Delete {
        filter: Some(by_kind),
        ..delete(&alice(), &["otp"])
    };
    let deleted = bench.engine.delete(filtered, None).unwrap();
    assert_eq!(
        (deleted.deleted, deleted.missing_keys),
        (0, vec!["otp".to_owned()])
    );
}

#[test]
fn a_key_that_expired_starts_anew() {
    let bench = Bench::new();
    let old = bench.put(
        &alice(),
        vec![expiring("otp", "The code is 4711.", Duration::from_secs(1))],
    )[0];
    bench.clock.advance(2 * SECOND);
    let item = NewMemory {
        if_version: Some(0),
        ..memory("otp", "The code is 1234.")
    };
    let new = bench.put(&alice(), vec![item])[0];
    assert_eq!((new.outcome, new.version), (Outcome::Stored, 1));
    assert_ne!(new.id, old.id);
    assert_eq!(bench.engine.namespace_stats(&alice()).unwrap().versions, 1);
}

#[test]
fn a_lost_race_changes_nothing() {
    let bench = Bench::new();
    bench.put(&alice(), vec![memory("city", "Lisbon")]);
    let items = vec![
        memory("food", "soup"),
        NewMemory {
            if_version: Some(3),
            ..memory("city", "Oslo")
        },
    ];
    match bench.engine.write(write(&alice(), items), None) {
        Err(EngineError::VersionConflict { field, current }) => {
            assert_eq!((field.as_str(), current), ("items[1].if_version", 1));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.contents(&alice(), &["city", "food"]), ["Lisbon"]);
    let stale = Delete {
        if_version: Some(2),
        ..delete(&alice(), &["city"])
    };
    for dry_run in [true, false] {
        let stale = Delete {
            dry_run,
            ..stale.clone()
        };
        assert!(matches!(
            bench.engine.delete(stale, None),
            Err(EngineError::VersionConflict { current: 1, .. })
        ));
    }
    let fresh = Delete {
        if_version: Some(1),
        ..delete(&alice(), &["city"])
    };
    assert_eq!(bench.engine.delete(fresh, None).unwrap().deleted, 1);
}

#[test]
fn a_repeat_by_idempotency_key_is_answered_and_not_done_again() {
    let bench = Bench::new();
    let request = |content: &str, digest: u8| Write {
        idempotency: Some(Idempotency {
            key: "k-1".to_owned(),
            digest: [digest; 32],
        }),
        ..write(&alice(), vec![memory("", content)])
    };
    let first = bench
        .engine
        .write(request("Paid 30 euros.", 1), None)
        .unwrap();
    let again = bench
        .engine
        .write(request("Paid 30 euros.", 1), None)
        .unwrap();
    assert_eq!(first, again);
    assert_eq!(bench.engine.namespace_stats(&alice()).unwrap().memories, 1);
    assert!(matches!(
        bench.engine.write(request("Paid 40 euros.", 2), None),
        Err(EngineError::IdempotencyKeyReused { .. })
    ));
    let bench = bench.reopen();
    assert_eq!(
        bench
            .engine
            .write(request("Paid 30 euros.", 1), None)
            .unwrap(),
        first
    );
    bench.clock.advance(24 * 3600 * SECOND);
    bench
        .engine
        .write(request("Paid 40 euros.", 2), None)
        .unwrap();
    assert_eq!(bench.engine.namespace_stats(&alice()).unwrap().memories, 2);
}

#[test]
fn deleting_takes_all_versions_and_leaves_the_twin() {
    let bench = Bench::new();
    bench.put(
        &alice(),
        vec![
            memory("a", "The red bicycle."),
            memory("b", "The red bicycle's bell."),
        ],
    );
    bench.put(&alice(), vec![memory("a", "The green bicycle.")]);
    let dry = Delete {
        dry_run: true,
        ..delete(&alice(), &["a", "zzz"])
    };
    let would = bench.engine.delete(dry, None).unwrap();
    assert_eq!((would.deleted, would.deleted_versions), (1, 2));
    let did = bench
        .engine
        .delete(delete(&alice(), &["a", "zzz"]), None)
        .unwrap();
    assert_eq!(
        (did.deleted, did.deleted_versions, did.missing_keys),
        (1, 2, vec!["zzz".to_owned()])
    );
    assert_eq!(bench.find(&alice(), "bicycle"), ["b"]);
    assert_eq!(
        bench
            .engine
            .delete(delete(&alice(), &["a"]), None)
            .unwrap()
            .deleted,
        0
    );
    let stats = bench.engine.namespace_stats(&alice()).unwrap();
    assert_eq!((stats.memories, stats.versions, stats.passages), (1, 1, 1));
}

#[test]
fn a_token_of_another_store_is_refused_and_a_future_one_is_waited_for() {
    let (bench, other) = (Bench::new(), Bench::new());
    let mut token = bench
        .engine
        .write(write(&alice(), vec![memory("", "x y z")]), None)
        .unwrap()
        .token;
    let at = |token| Query {
        at_least: Some(token),
        ..query("x")
    };
    assert_eq!(
        bench
            .engine
            .search(&alice(), &at(token), None)
            .unwrap()
            .token,
        token
    );
    assert!(matches!(
        other.engine.search(&alice(), &at(token), None),
        Err(EngineError::TokenOfAnotherStore)
    ));
    token.position.0 += 1;
    let soon = Some(std::time::Instant::now() + Duration::from_millis(20));
    assert!(matches!(
        bench.engine.search(&alice(), &at(token), soon),
        Err(EngineError::TokenNotReached)
    ));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| bench.engine.search(&alice(), &at(token), None));
        bench.put(&alice(), vec![memory("", "later")]);
        assert_eq!(waiting.join().unwrap().unwrap().token, token);
    });
    token.position.0 += 1;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| bench.engine.search(&alice(), &at(token), None));
        bench.engine.close();
        assert!(matches!(waiting.join().unwrap(), Err(EngineError::Closing)));
    });
}

#[test]
fn a_passed_deadline_writes_nothing() {
    let bench = Bench::new();
    let passed = Some(std::time::Instant::now());
    let result = bench
        .engine
        .write(write(&alice(), vec![memory("late", "too late")]), passed);
    assert!(matches!(result, Err(EngineError::DeadlineExceeded)));
    bench.put(&alice(), vec![memory("", "after")]);
    assert!(bench.contents(&alice(), &["late"]).is_empty());
    assert!(matches!(
        bench.engine.search(&alice(), &query("late"), passed),
        Err(EngineError::DeadlineExceeded)
    ));
}

#[test]
fn sweeping_removes_what_expired_and_nothing_else() {
    let bench = Bench::new();
    let items = (0..300).map(|i| expiring("", &format!("ticket {i}"), Duration::from_secs(10)));
    bench.put(&alice(), items.collect());
    bench.put(
        &alice(),
        vec![
            memory("kept", "ticket kept"),
            expiring("later", "ticket later", Duration::from_secs(99)),
        ],
    );
    bench.clock.advance(10 * SECOND);
    // The sweeper works when an engine starts.
    let bench = bench.reopen();
    let swept = || bench.engine.namespace_stats(&alice()).unwrap().memories == 2;
    let patience = std::time::Instant::now() + Duration::from_secs(60);
    while !swept() {
        assert!(std::time::Instant::now() < patience, "nothing was swept");
        std::thread::yield_now();
    }
    assert_eq!(bench.find(&alice(), "ticket").len(), 2);
    let Bench {
        directory,
        options,
        engine,
        ..
    } = bench;
    drop(engine);
    assert_eq!(recalld_engine::verify::verify(&options).unwrap(), []);
    drop(directory);
}

#[test]
fn a_namespace_of_the_longest_path_works() {
    let bench = Bench::new();
    let longest = |end: &str| {
        let mut segments = vec!["s".repeat(128); 7];
        segments.push(format!("{}{end}", "s".repeat(127)));
        recalld_engine::types::Namespace(segments)
    };
    bench.put(&longest("a"), vec![memory("k", "The heron of a.")]);
    bench.put(&longest("b"), vec![memory("k", "The heron of b.")]);
    let bench = bench.reopen();
    assert_eq!(bench.contents(&longest("a"), &["k"]), ["The heron of a."]);
    assert_eq!(bench.contents(&longest("b"), &["k"]), ["The heron of b."]);
}

#[test]
fn what_is_gone_leaves_no_trace_in_a_brief() {
    let bench = Bench::new();
    let event = |key: &str, days: i64| NewMemory {
        kind: "event".to_owned(),
        occurred_at: Some(recalld_engine::ids::Micros(START - days * 86_400 * SECOND)),
        ..memory(key, &format!("The violin lesson number {days} was moved."))
    };
    bench.put(
        &alice(),
        (0..6).map(|i| event(&format!("k{i}"), i * 20)).collect(),
    );
    let brief = || {
        bench
            .engine
            .brief(&brief(&alice(), "violin lesson", 90), None)
            .unwrap()
    };
    let before = brief();
    assert!(!before.text.is_empty() && !before.omitted.is_empty());
    // A slip of the pen that is mended must not age everything else.
    bench.put(&alice(), vec![event("slip", -365_000)]);
    bench.delete_keys(&alice(), &["slip"]).unwrap();
    let after = brief();
    assert_eq!(
        (after.text, after.fingerprint),
        (before.text, before.fingerprint)
    );
}

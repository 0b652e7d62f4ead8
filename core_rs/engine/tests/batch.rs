//! Batches: every search is answered as it would be alone, all on one snapshot.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{Bench, memory, ns, query};
use recalld_engine::EngineError;
use recalld_engine::token::Token;
use recalld_engine::types::{Namespace, Query};

fn ask(namespace: &Namespace, text: &str) -> (Namespace, Query) {
    (namespace.clone(), query(text))
}

#[test]
fn every_search_is_answered_as_it_would_be_alone() {
    let bench = Bench::new();
    let spaces = [ns(&["a"]), ns(&["b"]), ns(&["never written to"])];
    for space in &spaces[..2] {
        let items = (0..60).map(|i| {
            let content = format!("{}: the {} heron of pond {i}", space.0[0], i % 7);
            memory(&format!("k{i}"), &content)
        });
        bench.put(space, items.collect());
    }
    let searches: Vec<_> = (0..60)
        .map(|i| ask(&spaces[i % 3], &format!("heron of pond {i}")))
        .collect();
    let batch = bench.engine.batch_search(&searches, None).unwrap();
    assert_eq!(batch.results.len(), searches.len());
    for ((namespace, query), found) in searches.iter().zip(&batch.results) {
        let alone = bench.engine.search(namespace, query, None).unwrap();
        assert_eq!(found.as_ref().unwrap(), &alone);
        assert_eq!(batch.token, alone.token);
    }
    let hits = |index: usize| batch.results[index].as_ref().unwrap().hits.len();
    assert_eq!([hits(0), hits(1), hits(2)], [5, 5, 0]);
}

#[test]
fn a_search_that_fails_leaves_the_others_be() {
    let bench = Bench::new();
    let space = ns(&["s"]);
    bench.put(&space, vec![memory("k", "a heron")]);
    let mut searches = vec![ask(&space, "heron"); 3];
    searches[1].1.at_least = Some(Token {
        store: [9; 16],
        ..bench
            .engine
            .search(&space, &query("heron"), None)
            .unwrap()
            .token
    });
    let batch = bench.engine.batch_search(&searches, None).unwrap();
    assert!(matches!(
        batch.results[1],
        Err(EngineError::TokenOfAnotherStore)
    ));
    for index in [0, 2] {
        assert_eq!(batch.results[index].as_ref().unwrap().hits.len(), 1);
    }
}

#[test]
fn all_searches_see_one_snapshot() {
    let bench = Bench::new();
    let space = ns(&["s"]);
    bench.put(&space, vec![memory("k", "heron 0")]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 1..200 {
                bench.put(&space, vec![memory("k", &format!("heron {i}"))]);
            }
            done.store(true, Ordering::Relaxed);
        });
        let searches = vec![ask(&space, "heron"); 16];
        let mut batches = 0;
        while batches < 5 || !done.load(Ordering::Relaxed) {
            let batch = bench.engine.batch_search(&searches, None).unwrap();
            let mut seen: Vec<_> = batch
                .results
                .into_iter()
                .map(|found| found.unwrap())
                .map(|found| (found.hits[0].version, found.token))
                .collect();
            seen.dedup();
            assert_eq!(seen.len(), 1, "{seen:?}");
            assert_eq!(seen[0].1, batch.token);
            batches += 1;
        }
    });
}

//! How the dense arm looks: whatever costs least by count, and a filter never starves an answer.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{Bench, memory, ns, query};
use recalld_engine::types::{Found, Namespace, NewMemory, Query, Selection};

const MEMORIES: usize = 1_200;
const INDEX_AFTER: u32 = 400;

fn space() -> Namespace {
    ns(&["s"])
}

/// Memory `i` has the kind `rare` in one of sixty cases and `common` else.
fn item(i: usize) -> NewMemory {
    let place = ["river", "garden", "harbour", "station", "market"][i % 5];
    let what = ["heron", "bicycle", "letter", "lantern", "violin", "ticket"][i / 5 % 6];
    let kind = if i % 60 == 7 { "rare" } else { "common" };
    NewMemory {
        kind: kind.to_owned(),
        ..memory(
            &format!("k{i}"),
            &format!("The {what} at the {place}, number {i}."),
        )
    }
}

fn filled(index_after: u32) -> Bench {
    let bench = Bench::with(|options| options.index_after = index_after);
    for start in (0..MEMORIES).step_by(400) {
        bench.put(&space(), (start..start + 400).map(item).collect());
    }
    let patience = Instant::now() + Duration::from_secs(120);
    let indexed = |bench: &Bench| {
        let stats = bench.engine.namespace_stats(&space()).unwrap();
        stats.indexed_passages == stats.passages
    };
    while index_after < MEMORIES as u32 && !indexed(&bench) {
        assert!(Instant::now() < patience, "no index was built");
        std::thread::yield_now();
    }
    bench
}

fn search(bench: &Bench, text: &str, kinds: &[&str]) -> Found {
    let query = Query {
        limit: 10,
        explain: true,
        selection: Selection {
            kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
            ..Selection::default()
        },
        ..query(text)
    };
    bench.engine.search(&space(), &query, None).unwrap()
}

fn plan(found: &Found) -> (&'static str, Vec<(&'static str, u64)>) {
    let dense = found.arms.iter().find(|arm| arm.name == "dense").unwrap();
    let plan = dense.plan.iter();
    (
        dense.method,
        plan.map(|planned| (planned.method, planned.cost)).collect(),
    )
}

#[test]
fn the_cheapest_way_is_taken_and_explained() {
    let indexed = filled(INDEX_AFTER);
    let all = MEMORIES as u64;
    assert_eq!(
        plan(&search(&indexed, "heron", &[])),
        ("hnsw", vec![("hnsw", 400), ("scan", all)])
    );
    // Twenty memories: cheaper to look at than to search the graph for.
    assert_eq!(
        plan(&search(&indexed, "heron", &["rare"])),
        (
            "filtered_scan",
            vec![("filtered_scan", 40), ("hnsw", 24_000), ("scan", all)]
        )
    );
    // Nearly all: the graph meets enough of them.
    assert_eq!(
        plan(&search(&indexed, "heron", &["common"])),
        (
            "hnsw",
            vec![("filtered_scan", 2_360), ("hnsw", 406), ("scan", all)]
        )
    );
    // Every written row that is not in the index yet is scanned, and counts.
    indexed.put(&space(), vec![item(MEMORIES)]);
    assert_eq!(
        plan(&search(&indexed, "heron", &[])),
        ("hnsw", vec![("hnsw", 401), ("scan", all + 1)])
    );
}

#[test]
fn a_filter_never_starves_an_answer_of_the_index() {
    let (indexed, exact) = (filled(INDEX_AFTER), filled(u32::MAX));
    let (mut found, mut wanted) = (0, 0);
    for i in 0..80 {
        let asked = format!("number {} heron market violin {i}", i * 11);
        for kinds in [&["common"][..], &["rare"], &["rare", "common"]] {
            let got = search(&indexed, &asked, kinds);
            let brute = search(&exact, &asked, kinds);
            assert_eq!(got.hits.len(), 10);
            let allowed = |kind: &String| kinds.contains(&kind.as_str());
            assert!(got.hits.iter().all(|hit| allowed(&hit.kind)));
            if plan(&got).0 == "filtered_scan" {
                // Of equal ones either may come first: ids differ from store to store.
                let scores = |found: &Found| -> Vec<f64> {
                    found.hits.iter().map(|hit| hit.score).collect()
                };
                assert_eq!(scores(&got), scores(&brute));
            }
            let last = brute.hits.last().unwrap().score;
            found += got.hits.iter().filter(|hit| hit.score >= last).count();
            wanted += brute.hits.len();
        }
    }
    assert!(found * 100 >= wanted * 98, "{found} of {wanted}");
}

#[test]
fn a_namespace_whose_index_has_no_room_is_scanned() {
    // Both indexes are loaded at the start or wanted by a search, and each fits, but only one at a time.
    let bench = Bench::with(|options| {
        options.index_after = INDEX_AFTER;
        options.max_index_bytes = 1_000_000;
    });
    let spaces = [space(), ns(&["t"])];
    for space in &spaces {
        bench.put(space, (0..MEMORIES).map(item).collect());
    }
    let indexed = || {
        let stats = spaces
            .iter()
            .map(|space| bench.engine.namespace_stats(space).unwrap());
        stats
            .map(|stats| stats.indexed_passages)
            .collect::<Vec<_>>()
    };
    let patience = Instant::now() + Duration::from_secs(120);
    while indexed().iter().all(|passages| *passages == 0) {
        assert!(Instant::now() < patience, "no index was built");
        std::thread::yield_now();
    }
    let query = Query {
        explain: true,
        ..query("the heron at the river")
    };
    let found = spaces
        .each_ref()
        .map(|space| bench.engine.search(space, &query, None).unwrap());
    let best = found.each_ref().map(|found| found.hits[0].score.to_bits());
    assert_eq!(best[0], best[1]);
    let mut methods = found.each_ref().map(|found| plan(found).0);
    methods.sort_unstable();
    assert_eq!(methods, ["hnsw", "scan"]);
    // Another search wants the index that is missing. It is looked at again, and the one in use stays.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(
        indexed().iter().filter(|passages| **passages > 0).count(),
        1
    );
}

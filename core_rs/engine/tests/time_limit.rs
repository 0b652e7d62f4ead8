//! Latency budgets: a slow arm is left out and named, and the answer still comes. Time is a clock of the test's, which
//! moves on with every look at it, so that nothing here waits.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{START, brief, memory, ns, options, query, write};
use recalld_engine::clock::Clock;
use recalld_engine::ids::Micros;
use recalld_engine::types::{Found, Namespace, Query};
use recalld_engine::{Engine, EngineError};

/// Each look takes a time of the test's choice.
struct SlowClock {
    started: Instant,
    looks: AtomicU64,
    /// By look; later ones take no time.
    takes: Vec<Duration>,
}

impl SlowClock {
    fn new(takes: &[u64]) -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            looks: AtomicU64::new(0),
            takes: takes.iter().copied().map(Duration::from_millis).collect(),
        })
    }

    fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }
}

impl Clock for SlowClock {
    fn now(&self) -> Micros {
        Micros(START)
    }

    fn instant(&self) -> Instant {
        let look = self.looks.fetch_add(1, Ordering::Relaxed) as usize;
        let passed: Duration = self.takes.iter().take(look + 1).sum();
        self.started + passed
    }
}

fn space() -> Namespace {
    ns(&["s"])
}

fn engine(clock: Arc<SlowClock>) -> (tempfile::TempDir, Engine) {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(&options(directory.path()), clock).unwrap();
    let items = (0..40).map(|i| {
        let content = format!("Note {i}: the heron stood in the reeds by the river.");
        memory(&format!("k{i}"), &content)
    });
    engine
        .write(write(&space(), items.collect()), None)
        .unwrap();
    (directory, engine)
}

fn within(budget: u64) -> Query {
    Query {
        latency_budget: Some(Duration::from_millis(budget)),
        ..query("heron in the reeds of note 7")
    }
}

fn degraded(found: &Found) -> Vec<(&'static str, &'static str)> {
    let degraded = found.degraded.iter();
    degraded.map(|one| (one.arm, one.reason)).collect()
}

fn arms(found: &Found) -> Vec<&'static str> {
    found.arms.iter().map(|arm| arm.name).collect()
}

#[test]
fn without_a_budget_nobody_looks_at_the_clock() {
    let clock = SlowClock::new(&[]);
    let (_directory, engine) = engine(clock.clone());
    let found = engine
        .search(&space(), &query("heron in the reeds"), None)
        .unwrap();
    assert_eq!((degraded(&found), clock.looks()), (vec![], 0));
    assert_eq!(arms(&found), ["dense", "lexical"]);
}

#[test]
fn a_budget_that_is_enough_changes_nothing() {
    let (_directory, engine) = engine(SlowClock::new(&[]));
    let all = engine
        .search(&space(), &query("heron in the reeds of note 7"), None)
        .unwrap();
    let found = engine.search(&space(), &within(50), None).unwrap();
    assert_eq!(found, all);
    assert_eq!(found.hits[0].key, "k7");
}

#[test]
fn a_slow_lexical_arm_is_left_out_and_leaves_the_dense_arm_its_time() {
    // The budget of 10 ms begins, half of it is for the words, and the first look while words are read comes after 6.
    let (_directory, engine) = engine(SlowClock::new(&[0, 0, 6]));
    let found = engine.search(&space(), &within(10), None).unwrap();
    assert_eq!(degraded(&found), [("lexical", "deadline")]);
    assert_eq!(arms(&found), ["dense"]);
    assert_eq!(found.hits.len(), 5);
}

#[test]
fn whatever_is_slow_is_what_is_left_out() {
    let mut outcomes = Vec::new();
    // Time stands still but for one look, later and later, at which the whole budget passes.
    for slow_look in 0.. {
        let mut takes = vec![0; slow_look];
        takes.push(20);
        let (_directory, engine) = engine(SlowClock::new(&takes));
        let outcome = match engine.search(&space(), &within(10), None) {
            Ok(found) => {
                assert_eq!(found.hits.len(), 5);
                degraded(&found)
            }
            Err(EngineError::DeadlineExceeded) => vec![("all", "deadline")],
            Err(error) => panic!("{error}"),
        };
        if outcomes.last() != Some(&outcome) {
            outcomes.push(outcome.clone());
        }
        if outcome.is_empty() && slow_look > 0 {
            break;
        }
    }
    assert_eq!(
        outcomes,
        [
            // The look at which the budget begins is before it.
            vec![],
            vec![("all", "deadline")],
            vec![("dense", "deadline"), ("words", "deadline")],
            vec![("words", "deadline")],
            vec![],
        ]
    );
}

#[test]
fn a_brief_is_made_of_what_was_found_in_time() {
    let (_directory, engine) = engine(SlowClock::new(&[0, 0, 6]));
    let mut ask = brief(&space(), "heron in the reeds of note 7", 300);
    ask.query.latency_budget = Some(Duration::from_millis(10));
    let briefed = engine.brief(&ask, None).unwrap();
    let degraded: Vec<_> = briefed.degraded.iter().map(|one| one.arm).collect();
    assert_eq!(degraded, ["lexical"]);
    assert!(!briefed.included.is_empty());
}

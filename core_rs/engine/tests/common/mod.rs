#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test fails by panicking; helpers are named for what they do"
)]
//! What the engine's tests share: an engine in a temporary directory with a clock that the test sets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use recalld_algo::score::Weights;
use recalld_counters::Counter;
use recalld_engine::clock::Clock;
use recalld_engine::ids::Micros;
use recalld_engine::types::{
    Brief, BriefFormat, Delete, Expiry, Get, Namespace, NewMemory, Query, Receipt, Selection, Write,
};
use recalld_engine::{Engine, EngineError, EngineOptions};

/// 2026-03-02T09:00Z.
pub const START: i64 = 1_772_442_000_000_000;
pub const SECOND: i64 = 1_000_000;

pub struct TestClock(AtomicI64);

impl TestClock {
    pub fn advance(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Micros {
        Micros(self.0.load(Ordering::Relaxed))
    }
}

pub fn options(directory: &Path) -> EngineOptions {
    EngineOptions {
        data_dir: directory.to_owned(),
        model_dir: model_dir(),
        address: String::new(),
        max_store_bytes: 1 << 34,
        max_queued_writes: 1024,
        index_after: 1_000_000,
        max_index_bytes: 1 << 32,
        tuning: recalld_engine::Tuning::default(),
        slo: Duration::from_millis(50),
    }
}

pub fn model_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sidecar/recalld_sidecar/data/static-256")
}

/// An engine that can be closed and opened again.
pub struct Bench {
    pub directory: tempfile::TempDir,
    pub clock: Arc<TestClock>,
    pub options: EngineOptions,
    pub engine: Engine,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut EngineOptions)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock(AtomicI64::new(START)));
        let mut options = options(directory.path());
        change(&mut options);
        let engine = Engine::open(&options, clock.clone()).unwrap();
        Self {
            directory,
            clock,
            options,
            engine,
        }
    }

    pub fn reopen(self) -> Self {
        self.reopen_after(&|| {})
    }

    /// Closes, does something to the directory, and opens again.
    pub fn reopen_after(self, between: &dyn Fn()) -> Self {
        let Self {
            directory,
            clock,
            options,
            engine,
        } = self;
        drop(engine);
        between();
        let engine = Engine::open(&options, clock.clone()).unwrap();
        Self {
            directory,
            clock,
            options,
            engine,
        }
    }

    pub fn put(&self, namespace: &Namespace, items: Vec<NewMemory>) -> Vec<Receipt> {
        self.engine
            .write(write(namespace, items), None)
            .unwrap()
            .receipts
    }

    /// Keys, or contents where there is none, of what a search finds, best first.
    pub fn find(&self, namespace: &Namespace, text: &str) -> Vec<String> {
        let found = self.engine.search(namespace, &query(text), None).unwrap();
        found
            .hits
            .into_iter()
            .map(|hit| {
                if hit.key.is_empty() {
                    hit.summary
                } else {
                    hit.key
                }
            })
            .collect()
    }

    pub fn contents(&self, namespace: &Namespace, keys: &[&str]) -> Vec<String> {
        let details = self.engine.get(&get_keys(namespace, keys), None).unwrap();
        details
            .found
            .into_iter()
            .map(|detail| detail.content)
            .collect()
    }

    pub fn delete_keys(&self, namespace: &Namespace, keys: &[&str]) -> Result<u64, EngineError> {
        self.engine
            .delete(delete(namespace, keys), None)
            .map(|deleted| deleted.deleted)
    }
}

pub fn ns(segments: &[&str]) -> Namespace {
    Namespace(segments.iter().map(|&segment| segment.to_owned()).collect())
}

pub fn memory(key: &str, content: &str) -> NewMemory {
    NewMemory {
        key: key.to_owned(),
        content: content.to_owned(),
        json: false,
        kind: "fact".to_owned(),
        summary: String::new(),
        tags: Vec::new(),
        metadata: BTreeMap::new(),
        importance: 0.5,
        confidence: 1.0,
        occurred_at: None,
        expiry: Expiry::ByKind,
        sources: Vec::new(),
        vector: None,
        if_version: None,
        origin: String::new(),
        digest: None,
    }
}

pub fn expiring(key: &str, content: &str, after: Duration) -> NewMemory {
    NewMemory {
        expiry: Expiry::After(after),
        ..memory(key, content)
    }
}

pub fn write(namespace: &Namespace, items: Vec<NewMemory>) -> Write {
    Write {
        namespace: namespace.clone(),
        items,
        idempotency: None,
        actor: "test".to_owned(),
    }
}

pub fn query(text: &str) -> Query {
    Query {
        text: text.to_owned(),
        vector: None,
        limit: 5,
        selection: Selection::default(),
        min_score: 0.0,
        min_relevance: 0.0,
        weights: Weights::default(),
        half_lives: BTreeMap::new(),
        explain: false,
        latency_budget: None,
        at_least: None,
    }
}

pub fn get_keys(namespace: &Namespace, keys: &[&str]) -> Get {
    Get {
        namespace: namespace.clone(),
        ids: Vec::new(),
        keys: keys.iter().map(|&key| key.to_owned()).collect(),
        max_tokens: None,
        counter: Counter::default(),
        version: None,
        at_least: None,
    }
}

pub fn delete(namespace: &Namespace, keys: &[&str]) -> Delete {
    Delete {
        namespace: namespace.clone(),
        ids: Vec::new(),
        keys: keys.iter().map(|&key| key.to_owned()).collect(),
        filter: None,
        if_version: None,
        dry_run: false,
        idempotency: None,
        actor: "test".to_owned(),
    }
}

pub fn brief(namespace: &Namespace, text: &str, budget: u32) -> Brief {
    Brief {
        namespace: namespace.clone(),
        query: Query {
            limit: 64,
            ..query(text)
        },
        budget,
        counter: Counter::default(),
        format: BriefFormat::Markdown,
        sections: Vec::new(),
        pinned_ids: Vec::new(),
        pinned_keys: Vec::new(),
    }
}

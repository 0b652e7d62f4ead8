//! The service: an open engine behind the contract.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{MappedRwLockReadGuard, RwLock, RwLockReadGuard};
use recalld_counters::Counters;
use recalld_engine::clock::Clock;
use recalld_engine::histogram::Latencies;
use recalld_engine::timings::Part;
use recalld_engine::types::{NamespaceStats, StoreStats};
use recalld_engine::{Engine, EngineOptions};

use crate::admission::Admission;
use crate::error::Failure;
use crate::metrics::{MethodMetrics, Metrics};
use crate::validate;

/// How to open a service.
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// The engine's part.
    pub engine: EngineOptions,
    /// Most calls answered at a time.
    pub max_in_flight: usize,
    /// Tokenizers to count with besides the built-in counters: files by name.
    pub tokenizers: BTreeMap<String, PathBuf>,
}

/// Answers calls until it is closed.
pub struct Service {
    /// None once closed. Each call holds it for reading, so that closing waits for the calls in hand.
    engine: RwLock<Option<Engine>>,
    pub(crate) counters: Counters,
    pub(crate) admission: Admission,
    pub(crate) metrics: Metrics,
}

impl Service {
    /// Opens or creates the data directory.
    pub fn open(options: &ServiceOptions, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        // First, so that a mistake in the configuration leaves no new directory behind.
        let counters =
            Counters::load(&options.tokenizers).map_err(|error| Failure::of_tokenizer(&error))?;
        let engine = Engine::open(&options.engine, clock).map_err(Failure::of_opening)?;
        Ok(Self {
            engine: RwLock::new(Some(engine)),
            counters,
            admission: Admission::new(options.max_in_flight),
            metrics: Metrics::new(options.engine.slo),
        })
    }

    /// The engine for the time of a call.
    pub(crate) fn engine(&self) -> Result<MappedRwLockReadGuard<'_, Engine>, Failure> {
        RwLockReadGuard::try_map(self.engine.read(), Option::as_ref)
            .map_err(|_| Failure::not_serving())
    }

    /// Counts of the store.
    pub fn store_stats(&self) -> Result<StoreStats, Failure> {
        Ok(self.engine()?.store_stats()?)
    }

    /// Counts of a namespace, all zero when it does not exist.
    pub fn namespace_stats(&self, segments: Vec<String>) -> Result<NamespaceStats, Failure> {
        let namespace = validate::only_namespace(segments)?;
        Ok(self.engine()?.namespace_stats(&namespace)?)
    }

    /// What each method did since the start.
    pub fn metrics(&self) -> Vec<MethodMetrics> {
        self.metrics.snapshot()
    }

    /// How long the parts of calls took since the start.
    pub fn timings(&self) -> Result<Vec<(Part, Latencies)>, Failure> {
        Ok(self.engine()?.timings())
    }

    /// Calls being answered now.
    pub fn in_flight(&self) -> usize {
        self.admission.in_flight()
    }

    /// Answers every later call with `NOT_SERVING`; calls in hand go on.
    pub fn refuse(&self) {
        self.admission.refuse();
    }

    /// Refuses later calls, finishes acknowledged work, waits for the calls in hand and releases the directory. Once
    /// is enough; again does nothing.
    pub fn close(&self) {
        self.refuse();
        if let Some(engine) = self.engine.read().as_ref() {
            // Calls in hand may be waiting for their writes.
            engine.close();
        }
        let engine = self.engine.write().take();
        drop(engine);
    }
}

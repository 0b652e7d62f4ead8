//! `Core`: an open data directory, and the counts that it answers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use recalld_api::{Method, Service, ServiceOptions};
use recalld_engine::clock::SystemClock;
use recalld_engine::histogram::{Histogram, Latencies};
use recalld_engine::timings::Part;
use recalld_engine::{EngineOptions, Tuning};

use crate::gate::gate;

/// An open data directory and the calls that are answered in Rust. One process a directory.
#[pyclass(frozen, module = "recalld_sidecar._core")]
pub(crate) struct Core {
    service: Service,
}

#[pymethods]
impl Core {
    #[new]
    #[pyo3(signature = (
        data_dir,
        model_dir,
        *,
        address = "",
        max_store_bytes = 1_099_511_627_776,
        max_in_flight = 128,
        max_queued_writes = 4096,
        index_after = 20_000,
        max_index_bytes = 4_294_967_296,
        slo_seconds = 0.05,
        tokenizers = BTreeMap::new(),
        ranking = BTreeMap::new(),
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        py: Python<'_>,
        data_dir: String,
        model_dir: String,
        address: &str,
        max_store_bytes: u64,
        max_in_flight: usize,
        max_queued_writes: usize,
        index_after: u32,
        max_index_bytes: u64,
        slo_seconds: f64,
        tokenizers: BTreeMap<String, PathBuf>,
        ranking: BTreeMap<String, f32>,
    ) -> PyResult<Self> {
        let engine = EngineOptions {
            data_dir: data_dir.into(),
            model_dir: model_dir.into(),
            address: address.to_owned(),
            max_store_bytes,
            max_queued_writes,
            index_after,
            max_index_bytes,
            tuning: tuning(ranking)?,
            slo: slo(slo_seconds)?,
        };
        let options = ServiceOptions {
            engine,
            max_in_flight,
            tokenizers,
        };
        let service = gate(py, || Service::open(&options, Arc::new(SystemClock)))?;
        Ok(Self { service })
    }

    /// Full names of the unary methods that `dispatch` answers.
    #[staticmethod]
    fn methods() -> Vec<&'static str> {
        let unary = Method::ALL.into_iter().filter(|method| !method.is_stream());
        unary.map(Method::name).collect()
    }

    /// Full names of the methods that are streams both ways: `dispatch` answers each message of the caller's with one.
    #[staticmethod]
    fn stream_methods() -> Vec<&'static str> {
        let streams = Method::ALL.into_iter().filter(|method| method.is_stream());
        streams.map(Method::name).collect()
    }

    /// Answer one call: serialised request in, serialised response out; `timeout` in seconds. Raises `CoreError`.
    fn dispatch<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        identity: &str,
        request: &[u8],
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let deadline = timeout.and_then(deadline);
        let answer = gate(py, || {
            self.service.dispatch(method, identity, request, deadline)
        })?;
        Ok(PyBytes::new(py, &answer))
    }

    /// Counts of the store.
    fn store_stats(&self, py: Python<'_>) -> PyResult<StoreStats> {
        gate(py, || self.service.store_stats()).map(StoreStats::from)
    }

    /// Counts of a namespace, all zero when it does not exist. Raises `CoreError` for an invalid namespace.
    fn namespace_stats(&self, py: Python<'_>, namespace: Vec<String>) -> PyResult<NamespaceStats> {
        gate(py, || self.service.namespace_stats(namespace)).map(NamespaceStats::from)
    }

    /// What each method did since the start.
    fn metrics(&self) -> Vec<MethodMetrics> {
        self.service
            .metrics()
            .into_iter()
            .map(MethodMetrics::from)
            .collect()
    }

    /// How long the parts of calls took since the start.
    fn timings(&self, py: Python<'_>) -> PyResult<Vec<PartTimings>> {
        let timings = gate(py, || self.service.timings())?;
        Ok(timings.into_iter().map(PartTimings::from).collect())
    }

    /// Calls being answered now.
    fn in_flight(&self) -> usize {
        self.service.in_flight()
    }

    /// Answer every later call with UNAVAILABLE (`NOT_SERVING`); calls in hand go on.
    fn refuse(&self) {
        self.service.refuse();
    }

    /// Finish acknowledged work, stop the background threads and release the directory.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        gate(py, || {
            self.service.close();
            Ok(())
        })
    }
}

impl Core {
    /// What answers its calls.
    pub(crate) fn service(&self) -> &Service {
        &self.service
    }
}

/// The instant so many seconds from now; None when no clock reaches it, which is no deadline.
fn deadline(timeout: f64) -> Option<Instant> {
    let now = Instant::now();
    if timeout > 0.0 {
        Duration::try_from_secs_f64(timeout)
            .ok()
            .and_then(|timeout| now.checked_add(timeout))
    } else {
        Some(now)
    }
}

/// Counts of a store.
#[pyclass(frozen, get_all, module = "recalld_sidecar._core")]
pub(crate) struct StoreStats {
    store_id: String,
    format_version: u32,
    embedder: String,
    embedder_fingerprint: String,
    dimensions: u32,
    position: u64,
    namespaces: u64,
    memories: u64,
    bytes_used: u64,
}

impl From<recalld_engine::types::StoreStats> for StoreStats {
    fn from(stats: recalld_engine::types::StoreStats) -> Self {
        Self {
            store_id: stats.store_id,
            format_version: stats.format_version,
            embedder: stats.embedder,
            embedder_fingerprint: stats.embedder_fingerprint,
            dimensions: stats.dimensions,
            position: stats.position,
            namespaces: stats.namespaces,
            memories: stats.memories,
            bytes_used: stats.bytes_used,
        }
    }
}

/// Counts of a namespace.
#[pyclass(frozen, get_all, module = "recalld_sidecar._core")]
pub(crate) struct NamespaceStats {
    memories: u64,
    versions: u64,
    passages: u64,
    content_tokens: u64,
    indexed_passages: u64,
}

impl From<recalld_engine::types::NamespaceStats> for NamespaceStats {
    fn from(stats: recalld_engine::types::NamespaceStats) -> Self {
        Self {
            memories: stats.memories,
            versions: stats.versions,
            passages: stats.passages,
            content_tokens: stats.content_tokens,
            indexed_passages: stats.indexed_passages,
        }
    }
}

/// What one method did since the start.
#[pyclass(frozen, get_all, module = "recalld_sidecar._core")]
pub(crate) struct MethodMetrics {
    method: &'static str,
    codes: BTreeMap<u8, u64>,
    buckets: Vec<(f64, u64)>,
    seconds: f64,
    slow: u64,
}

impl From<recalld_api::MethodMetrics> for MethodMetrics {
    fn from(metrics: recalld_api::MethodMetrics) -> Self {
        Self {
            method: metrics.method,
            codes: metrics.codes,
            buckets: metrics.latencies.buckets,
            seconds: metrics.latencies.seconds,
            slow: metrics.slow,
        }
    }
}

/// How long one part of calls took since the start.
#[pyclass(frozen, get_all, module = "recalld_sidecar._core")]
pub(crate) struct PartTimings {
    part: &'static str,
    buckets: Vec<(f64, u64)>,
    seconds: f64,
}

impl From<(Part, Latencies)> for PartTimings {
    fn from((part, latencies): (Part, Latencies)) -> Self {
        Self {
            part: part.name(),
            buckets: latencies.buckets,
            seconds: latencies.seconds,
        }
    }
}

/// Upper bounds of latency histograms in seconds, the last infinite, with one at `slo_seconds`. Raises `ValueError`.
#[pyfunction]
pub(crate) fn latency_bounds(slo_seconds: f64) -> PyResult<Vec<f64>> {
    let buckets = Histogram::with_edge(slo(slo_seconds)?).snapshot().buckets;
    Ok(buckets.into_iter().map(|(bound, _)| bound).collect())
}

fn slo(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyValueError::new_err(format!("slo_seconds: {error}")))
}

/// The default weights with some of them changed.
fn tuning(changes: BTreeMap<String, f32>) -> PyResult<Tuning> {
    let mut tuning = Tuning::default();
    for (name, value) in changes {
        if !(value.is_finite() && value >= 0.0) {
            let error = format!("ranking: {name} must be a finite number of at least 0");
            return Err(PyValueError::new_err(error));
        }
        let mut all = tuning.all();
        let Some((_, weight)) = all.iter_mut().find(|(known, _)| *known == name) else {
            let known = all.map(|(known, _)| known).join(", ");
            let error = format!("ranking: {name:?} is no weight; there are {known}");
            return Err(PyValueError::new_err(error));
        };
        **weight = value;
    }
    Ok(tuning)
}

/// The weights of the ranking by relevance, by name, as `Core` has them when nothing is said.
#[pyfunction]
pub(crate) fn ranking_defaults() -> BTreeMap<&'static str, f32> {
    let mut tuning = Tuning::default();
    tuning.all().map(|(name, weight)| (name, *weight)).into()
}

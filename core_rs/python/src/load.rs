//! The load generator: `load`, and the report that it gives.

use std::collections::BTreeMap;
use std::time::Duration;

use pyo3::exceptions::{PyConnectionError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use recalld_load::{Arrival, Call, LoadError, Plan, spawn};

/// Time after which Python's signals are looked at again.
const PATIENCE: Duration = Duration::from_millis(50);

/// Call a gRPC server as planned, and report what became of it. Exactly one of `rate` and `callers` is given.
///
/// Runs on a thread of its own, without the GIL. Raises `ValueError` for what cannot be planned, `ConnectionError` when
/// nobody answers at the address, and whatever a signal's handler raises.
#[pyfunction]
#[pyo3(signature = (
    address,
    calls,
    *,
    rate = None,
    callers = None,
    seconds,
    warmup = 0.0,
    connections = 1,
    timeout = 10.0,
    max_in_flight = 1_024,
    seed = 0,
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn load(
    py: Python<'_>,
    address: &str,
    calls: Vec<(String, Vec<PyBackedBytes>, f64)>,
    rate: Option<f64>,
    callers: Option<usize>,
    seconds: f64,
    warmup: f64,
    connections: usize,
    timeout: f64,
    max_in_flight: usize,
    seed: u64,
) -> PyResult<LoadReport> {
    let calls = calls
        .into_iter()
        .map(|(method, requests, weight)| Call::new(method, requests, weight));
    let plan = Plan {
        address: address.parse().map_err(|error| raised(&error))?,
        calls: calls.collect(),
        arrival: match (rate, callers) {
            (Some(rate), None) => Arrival::Rate(rate),
            (None, Some(callers)) => Arrival::Callers(callers),
            _ => return Err(PyValueError::new_err("give one of rate and callers")),
        },
        warmup: duration("warmup", warmup)?,
        duration: duration("seconds", seconds)?,
        connections,
        timeout: duration("timeout", timeout)?,
        max_in_flight,
        seed,
    };
    let mut running = spawn(plan).map_err(|error| raised(&error))?;
    loop {
        if let Some(report) = py.detach(|| running.wait(PATIENCE)) {
            return Ok(report.map_err(|error| raised(&error))?.into());
        }
        // Leaving drops the run, which ends it.
        py.check_signals()?;
    }
}

fn duration(name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

fn raised(error: &LoadError) -> PyErr {
    let message = error.to_string();
    match error {
        LoadError::Plan(_) => PyValueError::new_err(message),
        LoadError::Connect { .. } => PyConnectionError::new_err(message),
        LoadError::System(_) | LoadError::Cancelled => PyOSError::new_err(message),
    }
}

/// What became of the calls of a run, of one method or of all.
#[pyclass(frozen, module = "recalld_sidecar._core")]
pub(crate) struct LoadStats(recalld_load::Stats);

#[pymethods]
impl LoadStats {
    /// Calls that were planned.
    #[getter]
    fn calls(&self) -> u64 {
        self.0.calls
    }

    /// Calls that were answered with OK.
    #[getter]
    fn ok(&self) -> u64 {
        self.0.ok()
    }

    /// Calls that were not sent before their deadline.
    #[getter]
    fn unsent(&self) -> u64 {
        self.0.unsent
    }

    /// The others by gRPC status code.
    #[getter]
    fn codes(&self) -> BTreeMap<u16, u64> {
        self.0.codes.clone()
    }

    /// The first message of each code other than OK.
    #[getter]
    fn messages(&self) -> BTreeMap<u16, String> {
        self.0.messages.clone()
    }

    /// Mean latency of the calls that were answered with OK, in seconds.
    #[getter]
    fn mean(&self) -> f64 {
        self.0.mean().as_secs_f64()
    }

    /// Longest latency of these calls, in seconds.
    #[getter]
    fn max(&self) -> f64 {
        self.0.max().as_secs_f64()
    }

    /// The latency that this share (0 to 1) of these calls did not exceed, in seconds.
    fn quantile(&self, share: f64) -> f64 {
        self.0.quantile(share).as_secs_f64()
    }

    /// Share of all planned calls that were answered with OK within so many seconds.
    fn share_within(&self, seconds: f64) -> PyResult<f64> {
        Ok(self.0.share_within(duration("seconds", seconds)?))
    }
}

/// What a run found.
#[pyclass(frozen, module = "recalld_sidecar._core")]
pub(crate) struct LoadReport(recalld_load::Report);

impl From<recalld_load::Report> for LoadReport {
    fn from(report: recalld_load::Report) -> Self {
        Self(report)
    }
}

#[pymethods]
impl LoadReport {
    /// Seconds from the beginning of the measurement to its end, or to the last answer to a measured call.
    #[getter]
    fn elapsed(&self) -> f64 {
        self.0.elapsed.as_secs_f64()
    }

    /// All calls together.
    #[getter]
    fn total(&self) -> LoadStats {
        LoadStats(self.0.total())
    }

    /// By method, in the order in which they were given.
    #[getter]
    fn methods(&self) -> Vec<(String, LoadStats)> {
        let methods = self.0.methods.iter().cloned();
        methods
            .map(|(name, stats)| (name, LoadStats(stats)))
            .collect()
    }

    /// How much later than planned calls were sent.
    #[getter]
    fn lag(&self) -> LoadStats {
        LoadStats(self.0.lag.clone())
    }

    /// Share of one core that the generator used; near 1 it was the bottleneck.
    #[getter]
    fn cpu(&self) -> f64 {
        self.0.cpu
    }
}

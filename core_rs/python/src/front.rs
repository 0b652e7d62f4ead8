//! `Front`: the native front with the handlers of this process.
//!
//! Calls of the data plane go from the socket to the core and back without the GIL. Unary calls of the control plane
//! take it for as long as their handler runs, a few at a time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use recalld_api::Failure;
use recalld_engine::priority;
use recalld_front::{Call, Handler, Lane, Limits, Method, Methods, Shape, Status};

use crate::access::AccessLog;
use crate::core::Core;
use crate::error::CoreError;

/// Threads beyond the calls that the core admits, to tell the rest to come later.
const SPARE_THREADS: u32 = 16;
/// Calls of the control plane at a time: they share one GIL.
const CONTROL_CALLS: u32 = 16;
/// Requests that may wait for a thread, a multiple of the threads, and streams besides.
const WAITING_A_THREAD: u32 = 8;
const STREAMS: u32 = 256;

/// The native front. Serves until it is stopped.
#[pyclass(frozen, module = "recalld_sidecar._core")]
pub(crate) struct Front {
    front: recalld_front::Front,
    control: Lane,
}

#[pymethods]
impl Front {
    #[new]
    #[pyo3(signature = (upstream, *, core, control, max_in_flight, log_level = "info", log_format = "json"))]
    fn new(
        upstream: PathBuf,
        core: Option<Py<Core>>,
        control: HashMap<String, Py<PyAny>>,
        max_in_flight: u32,
        log_level: &str,
        log_format: &str,
    ) -> PyResult<Self> {
        let access = AccessLog::new(log_level, log_format);
        let access = access.ok_or_else(|| PyValueError::new_err("there is no such log level"))?;
        let threads = max_in_flight.saturating_add(SPARE_THREADS);
        let control_lane = Lane::new(CONTROL_CALLS);
        let mut methods = Methods::new();
        if let Some(core) = core {
            let handler: Arc<dyn Handler> = Arc::new(CoreHandler { core, access });
            let calls = Lane::new(threads);
            // Streams cannot take all that the core admits.
            let streams = Lane::new(max_in_flight.div_ceil(2));
            let writes = Lane::with_threads(threads, || priority::give_way(priority::WRITE));
            for method in recalld_api::Method::ALL {
                let (shape, lane) = if method.is_stream() {
                    (Shape::Pipelined, &streams)
                } else if method.writes() {
                    (Shape::Unary, &writes)
                } else {
                    (Shape::Unary, &calls)
                };
                let method = (method.name().to_owned(), shape, Arc::clone(&handler), lane);
                add(&mut methods, method);
            }
        }
        for (name, callable) in control {
            let handler = Arc::new(PythonHandler(callable));
            add(&mut methods, (name, Shape::Unary, handler, &control_lane));
        }
        let limits = Limits {
            requests: threads
                .saturating_mul(WAITING_A_THREAD)
                .saturating_add(STREAMS),
            ..Limits::default()
        };
        Ok(Self {
            front: recalld_front::Front::new(methods, upstream, limits)?,
            control: control_lane,
        })
    }

    /// Bind a Unix socket. Raises `OSError`.
    fn listen_unix(&self, path: &str) -> PyResult<()> {
        Ok(self.front.listen_unix(Path::new(path))?)
    }

    /// Bind a TCP port, 0 for any, and answer which. Raises `OSError`.
    fn listen_tcp(&self, host: &str, port: u16) -> PyResult<u16> {
        let host: IpAddr = host.parse()?;
        Ok(self.front.listen_tcp(host, port)?)
    }

    /// Begin to answer.
    fn start(&self) {
        self.front.start();
    }

    /// Take no more connections and calls; those in hand go on.
    fn drain(&self) {
        self.front.drain();
    }

    /// Drain for at most so long and end. False when calls were cut off.
    fn stop(&self, py: Python<'_>, drain_seconds: f64) -> bool {
        let drain = Duration::try_from_secs_f64(drain_seconds).unwrap_or_default();
        // A handler in hand needs the GIL to end; after this one of ours never will.
        py.detach(|| self.front.stop(drain, Some(&self.control)))
    }
}

fn add(
    methods: &mut Methods,
    (name, shape, handler, lane): (String, Shape, Arc<dyn Handler>, &Lane),
) {
    let lane = lane.clone();
    let method = Method {
        shape,
        handler,
        lane,
    };
    methods.insert(name, method);
}

/// Answers calls of the data plane.
struct CoreHandler {
    core: Py<Core>,
    access: AccessLog,
}

impl Handler for CoreHandler {
    fn call(&self, call: &Call<'_>) -> Result<Vec<u8>, Status> {
        let service = self.core.get().service();
        let dispatch = || service.dispatch(call.method, call.identity, call.request, call.deadline);
        // As in `gate`: a panic is logged where it happened.
        let result = catch_unwind(AssertUnwindSafe(dispatch))
            .unwrap_or_else(|_panic| Err(Failure::internal()));
        self.access.ended(call, result.as_ref().err());
        result.map_err(status_of)
    }
}

/// Answers calls of the control plane: identity, request, seconds left and request id in, the answer out.
struct PythonHandler(Py<PyAny>);

impl Handler for PythonHandler {
    fn call(&self, call: &Call<'_>) -> Result<Vec<u8>, Status> {
        let answered = Python::try_attach(|py| {
            let now = Instant::now();
            let left = call.deadline.map(|deadline| {
                let left = deadline.saturating_duration_since(now);
                left.as_secs_f64()
            });
            let request = PyBytes::new(py, call.request);
            let answer = self
                .0
                .call1(py, (call.identity, request, left, call.request_id));
            answer
                .and_then(|answer| Ok(answer.bind(py).cast::<PyBytes>()?.as_bytes().to_vec()))
                .map_err(|error| status_of_exception(py, &error))
        });
        answered.unwrap_or_else(|| Err(status_of(Failure::internal())))
    }
}

/// The status of an exception, which is a `CoreError` unless something is wrong.
fn status_of_exception(py: Python<'_>, error: &PyErr) -> Status {
    if error.is_instance_of::<CoreError>(py) {
        let args = error.value(py).getattr("args");
        if let Ok((code, message, details)) = args.and_then(|args| args.extract()) {
            return Status {
                code,
                message,
                details,
            };
        }
    }
    tracing::error!(%error, "a handler raised what it must not");
    status_of(Failure::internal())
}

fn status_of(failure: Failure) -> Status {
    Status {
        code: failure.code() as u32,
        details: failure.status(),
        message: failure.message,
    }
}

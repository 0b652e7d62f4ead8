//! Carrying out a plan, on one thread.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Builder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::{JoinSet, LocalSet, spawn_local, yield_now};
use tokio::time::{sleep_until, timeout_at};

use crate::connection::{Connection, Head};
use crate::error::LoadError;
use crate::pacer::Pacer;
use crate::plan::{Arrival, Mix, Plan};
use crate::report::{Recorder, Report};

/// gRPC's `DEADLINE_EXCEEDED`.
const DEADLINE_EXCEEDED: u16 = 4;

/// Carries out a plan on the calling thread, or fails with [`LoadError::Cancelled`] as soon as `cancelled` is ready.
pub fn run(plan: &Plan, cancelled: impl Future<Output = ()>) -> Result<Report, LoadError> {
    plan.check()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        tokio::select! {
            report = report(plan) => report,
            () = cancelled => Err(LoadError::Cancelled),
        }
    })
}

/// Starts to carry out a plan on a thread of its own.
pub fn spawn(plan: Plan) -> Result<Running, LoadError> {
    let (cancel, cancelled) = oneshot::channel::<()>();
    let (sender, report) = channel();
    thread::Builder::new()
        .name("recalld-load".to_owned())
        .spawn(move || {
            let report = run(&plan, async { drop(cancelled.await) });
            // Nobody waits any more when it was cancelled.
            let _ = sender.send(report);
        })?;
    Ok(Running {
        report,
        _cancel: cancel,
    })
}

/// A run on another thread; dropping it ends the run.
pub struct Running {
    report: Receiver<Result<Report, LoadError>>,
    /// Dropped with this, which the thread notices.
    _cancel: oneshot::Sender<()>,
}

impl Running {
    /// The report, if it comes within `patience`. It comes once.
    pub fn wait(&mut self, patience: Duration) -> Option<Result<Report, LoadError>> {
        match self.report.recv_timeout(patience) {
            Ok(report) => Some(report),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(LoadError::Cancelled)),
        }
    }
}

/// A plan under way.
struct Load {
    connections: Vec<Connection>,
    heads: Vec<Head>,
    timeout: Duration,
    recorder: RefCell<Recorder>,
}

async fn report(plan: &Plan) -> Result<Report, LoadError> {
    let mut connections = Vec::with_capacity(plan.connections);
    for _ in 0..plan.connections {
        connections.push(Connection::open(plan).await?);
    }
    let heads = plan
        .calls
        .iter()
        .map(|call| Head::new(&call.method, plan.timeout));
    let load = Rc::new(Load {
        connections,
        heads: heads.collect::<Result<_, _>>()?,
        timeout: plan.timeout,
        recorder: RefCell::new(Recorder::new(plan)),
    });
    let used = match plan.arrival {
        Arrival::Rate(rate) => open_loop(plan, &load, rate).await?,
        Arrival::Callers(callers) => closed_loop(plan, &load, callers).await,
    };
    let recorder = load.recorder.replace(Recorder::new(plan));
    let methods = plan.calls.iter().map(|call| call.method.clone());
    Ok(Report {
        elapsed: used.elapsed,
        methods: methods.zip(recorder.methods).collect(),
        lag: recorder.lag,
        cpu: used.cpu.as_secs_f64() / used.elapsed.as_secs_f64(),
    })
}

/// Sends every call at its moment, whatever became of the ones before.
async fn open_loop(plan: &Plan, load: &Rc<Load>, rate: f64) -> Result<Used, LoadError> {
    let pacer = Pacer::new()?;
    let slots = Arc::new(Semaphore::new(plan.max_in_flight));
    let mut mix = Mix::new(plan);
    let start = Instant::now();
    let measured_from = start + plan.warmup;
    let calls = (plan.length().as_secs_f64() * rate).ceil() as u64;
    let mut meter = None;
    for number in 0..calls {
        let planned = start + Duration::from_secs_f64(number as f64 / rate);
        pacer.until(planned).await?;
        let (kind, request) = mix.next();
        let measured = planned >= measured_from;
        if measured && meter.is_none() {
            meter = Some(Meter::start(measured_from));
        }
        if measured {
            load.recorder.borrow_mut().methods[kind].calls += 1;
        }
        let deadline = planned + plan.timeout;
        let Some(slot) = slot(&slots, deadline).await else {
            if measured {
                load.recorder.borrow_mut().methods[kind].unsent += 1;
            }
            continue;
        };
        if measured {
            load.recorder.borrow_mut().sent(planned.elapsed());
        }
        let load = Rc::clone(load);
        let connection = number as usize % load.connections.len();
        spawn_local(async move {
            load.call(connection, kind, request, planned, measured)
                .await;
            drop(slot);
        });
    }
    // The time of the last call is part of the run.
    pacer.until(start + plan.length()).await?;
    // The deadlines see to it that all come back.
    let all = u32::try_from(plan.max_in_flight).unwrap_or(u32::MAX);
    drop(slots.acquire_many(all).await);
    Ok(meter.unwrap_or_else(|| Meter::start(measured_from)).read())
}

/// Leave to have one more call under way; None when there is none before the deadline.
async fn slot(slots: &Arc<Semaphore>, deadline: Instant) -> Option<OwnedSemaphorePermit> {
    if Instant::now() >= deadline {
        return None;
    }
    if let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
        return Some(slot);
    }
    let waiting = Arc::clone(slots).acquire_owned();
    timeout_at(deadline.into(), waiting).await.ok()?.ok()
}

/// Lets callers call one after the other.
async fn closed_loop(plan: &Plan, load: &Rc<Load>, callers: usize) -> Used {
    let start = Instant::now();
    let measured_from = start + plan.warmup;
    let end = measured_from + plan.duration;
    let mix = Rc::new(RefCell::new(Mix::new(plan)));
    let mut working = JoinSet::new();
    for caller in 0..callers {
        let (load, mix) = (Rc::clone(load), Rc::clone(&mix));
        working.spawn_local(async move {
            loop {
                let planned = Instant::now();
                if planned >= end {
                    return;
                }
                let (kind, request) = mix.borrow_mut().next();
                let measured = planned >= measured_from;
                if measured {
                    load.recorder.borrow_mut().methods[kind].calls += 1;
                }
                let connection = caller % load.connections.len();
                load.call(connection, kind, request, planned, measured)
                    .await;
                // A call that fails at once must not keep the others from theirs.
                yield_now().await;
            }
        });
    }
    sleep_until(measured_from.into()).await;
    let meter = Meter::start(measured_from);
    while working.join_next().await.is_some() {}
    meter.read()
}

impl Load {
    /// Makes a call and records its end.
    async fn call(
        &self,
        connection: usize,
        kind: usize,
        request: Bytes,
        planned: Instant,
        measured: bool,
    ) {
        let call = self.connections[connection].call(&self.heads[kind], request);
        let outcome = timeout_at((planned + self.timeout).into(), call).await;
        let latency = planned.elapsed();
        if measured {
            let (code, message) = outcome.unwrap_or_else(|_elapsed| {
                (
                    DEADLINE_EXCEEDED,
                    "no answer before the deadline".to_owned(),
                )
            });
            self.recorder.borrow_mut().methods[kind].answered(code, message, latency);
        }
    }
}

/// What the measured part of a run took.
struct Used {
    elapsed: Duration,
    cpu: Duration,
}

/// Counts the time and this thread's processor time from a moment on.
struct Meter {
    from: Instant,
    cpu: Duration,
}

impl Meter {
    fn start(from: Instant) -> Self {
        let cpu = thread_time();
        Self { from, cpu }
    }

    fn read(&self) -> Used {
        Used {
            elapsed: self.from.elapsed(),
            cpu: thread_time().saturating_sub(self.cpu),
        }
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

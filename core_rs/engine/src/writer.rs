//! The one writer: a thread that takes prepared operations from a bounded queue, applies as many as wait in one
//! transaction, syncs, and answers. While one sync runs the next batch gathers; nothing is delayed on purpose.
//!
//! A caller is answered only after the sync. Readers never wait for this thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use parking_lot::{Condvar, Mutex};
use recalld_proto::storage::v1::operation::Action;
use recalld_proto::storage::v1::{self as storage};
use recalld_store::ids::{Micros, NamespaceId, Position};
use recalld_store::{Store, StoreError};

use crate::apply::{self, Applied, Applier};
use crate::documents::Documents;
use crate::filter::Filter;
use crate::indexed::TermCount;
use crate::priority;
use crate::snapshot;
use crate::{Deadline, EngineError};

/// Most operations of one transaction.
const BATCH_OPERATIONS: usize = 256;
/// Bytes from which a transaction takes no more operations: keeps a sync, and so the wait of its callers, short.
const BATCH_BYTES: usize = 8 << 20;
/// Most bytes that wait in the queue.
const QUEUED_BYTES: usize = 256 << 20;
/// What an overloaded caller is told to wait: a few batches.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// An operation with what only this process needs.
pub(crate) struct Job {
    pub(crate) operation: storage::Operation,
    /// Terms of a put's items.
    pub(crate) terms: Vec<Vec<Vec<TermCount>>>,
    /// Selects further memories of a remove, in the state just before it.
    pub(crate) filter: Option<Filter>,
    /// A caller who is gone by then gets nothing written.
    pub(crate) deadline: Deadline,
    /// Roughly, for the bounds.
    pub(crate) bytes: usize,
}

struct Queued {
    job: Job,
    reply: Sender<Result<Applied, EngineError>>,
}

/// How far the store has come, for those who wait for a token.
#[derive(Default)]
pub(crate) struct Progress {
    /// The last position, and whether there will be no other.
    state: Mutex<(u64, bool)>,
    moved: Condvar,
}

impl Progress {
    pub(crate) fn advance(&self, to: Position) {
        self.state.lock().0 = to.0;
        self.moved.notify_all();
    }

    /// Nothing more will be written: lets go of all who wait.
    pub(crate) fn close(&self) {
        self.state.lock().1 = true;
        self.moved.notify_all();
    }

    /// Waits until the store has come to `position`, the deadline passes, or the engine closes.
    pub(crate) fn wait(&self, position: Position, deadline: Instant) -> Result<(), EngineError> {
        let mut state = self.state.lock();
        while state.0 < position.0 {
            if state.1 {
                return Err(EngineError::Closing);
            }
            if self.moved.wait_until(&mut state, deadline).timed_out() && state.0 < position.0 {
                return Err(EngineError::TokenNotReached);
            }
        }
        Ok(())
    }
}

/// Hands operations to the writer thread.
pub(crate) struct Writer {
    queue: Mutex<Option<Sender<Queued>>>,
    queued_bytes: Arc<AtomicUsize>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread. `committed` is called after each commit, on the writer's thread, with the namespaces that it
    /// touched and their passages.
    pub(crate) fn start(
        store: Arc<Store>,
        dimensions: usize,
        progress: Arc<Progress>,
        max_queued: usize,
        committed: impl Fn(&[(NamespaceId, u64)]) + Send + 'static,
    ) -> Result<Self, EngineError> {
        let (queue, jobs) = bounded(max_queued);
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let thread = WriterThread {
            store,
            dimensions,
            progress,
            jobs,
            queued_bytes: queued_bytes.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("recalld-writer".to_owned())
            .spawn(move || thread.run(committed))
            .map_err(|e| EngineError::Internal(format!("cannot start the writer: {e}")))?;
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            queued_bytes,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Waits until the job is durable, or failed, or the deadline passed: then it may still be committed.
    pub(crate) fn submit(&self, job: Job) -> Result<Applied, EngineError> {
        let overloaded = || EngineError::Overloaded {
            retry_after: RETRY_AFTER,
        };
        let (bytes, deadline) = (job.bytes, job.deadline);
        let (reply, answer) = bounded(1);
        {
            let queue = self.queue.lock();
            let queue = queue.as_ref().ok_or(EngineError::Closing)?;
            if self.queued_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > QUEUED_BYTES {
                self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
                return Err(overloaded());
            }
            if let Err(refused) = queue.try_send(Queued { job, reply }) {
                self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
                return Err(match refused {
                    TrySendError::Full(_) => overloaded(),
                    TrySendError::Disconnected(_) => EngineError::Closing,
                });
            }
        }
        let answered = match deadline {
            None => answer
                .recv()
                .map_err(|_| EngineError::Internal("the writer stopped".to_owned())),
            Some(deadline) => answer.recv_deadline(deadline).map_err(|e| match e {
                crossbeam_channel::RecvTimeoutError::Timeout => EngineError::DeadlineExceeded,
                crossbeam_channel::RecvTimeoutError::Disconnected => {
                    EngineError::Internal("the writer stopped".to_owned())
                }
            }),
        };
        answered?
    }

    /// Takes no more jobs, and returns when those in the queue are done.
    pub(crate) fn close(&self) {
        drop(self.queue.lock().take());
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the writer thread panicked");
        }
    }
}

/// Answers of a batch, and the namespaces that it touched with their passages.
type Transacted = (Vec<Result<Applied, EngineError>>, Vec<(NamespaceId, u64)>);

struct WriterThread {
    store: Arc<Store>,
    dimensions: usize,
    progress: Arc<Progress>,
    jobs: Receiver<Queued>,
    queued_bytes: Arc<AtomicUsize>,
}

impl WriterThread {
    fn run(self, committed: impl Fn(&[(NamespaceId, u64)])) {
        priority::give_way(priority::WRITE);
        while let Ok(first) = self.jobs.recv() {
            let mut bytes = first.job.bytes;
            let mut batch = vec![first];
            while batch.len() < BATCH_OPERATIONS && bytes < BATCH_BYTES {
                let Ok(next) = self.jobs.try_recv() else {
                    break;
                };
                bytes += next.job.bytes;
                batch.push(next);
            }
            self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.commit(batch, &committed);
        }
    }

    /// Applies a batch in one transaction. When something other than a caller's mistake fails, nothing of the batch
    /// is kept and each operation is tried in a transaction of its own, so that one cannot fail the others.
    fn commit(&self, batch: Vec<Queued>, committed: &impl Fn(&[(NamespaceId, u64)])) {
        match self.transact(&batch) {
            Ok((answers, touched)) => {
                committed(&touched);
                for (queued, answer) in batch.into_iter().zip(answers) {
                    // The caller may have left at its deadline.
                    let _ = queued.reply.send(answer);
                }
            }
            Err(error) => {
                if let [queued] = &batch[..] {
                    tracing::error!(%error, "a write failed");
                    let _ = queued.reply.send(Err(error));
                    return;
                }
                tracing::warn!(%error, operations = batch.len(), "a batch failed; its operations are tried one by one");
                for queued in batch {
                    self.commit(vec![queued], committed);
                }
            }
        }
    }

    /// The answers of a batch that is durable now; or the error for which all of it was dropped.
    fn transact(&self, batch: &[Queued]) -> Result<Transacted, EngineError> {
        let mut txn = self.store.write()?;
        let mut applier = Applier::new(self.store.schema(), self.dimensions, &mut txn)?;
        let mut answers = Vec::with_capacity(batch.len());
        for queued in batch {
            let job = &queued.job;
            if job
                .deadline
                .is_some_and(|deadline| deadline <= Instant::now())
            {
                answers.push(Err(EngineError::DeadlineExceeded));
                continue;
            }
            let adds = matches!(job.operation.action, Some(Action::Put(_)));
            if adds && self.store.is_nearly_full()? {
                return Err(StoreError::Full { what: "size limit" }.into());
            }
            let applied = match &job.filter {
                None => applier.apply(&job.operation, Some(&job.terms)),
                Some(filter) => {
                    let operation = self.select(&applier, &job.operation, filter)?;
                    applier.apply(&operation, None)
                }
            };
            match applied {
                Ok(applied) => answers.push(Ok(applied)),
                // These fail before anything is changed.
                Err(
                    error @ (EngineError::VersionConflict { .. }
                    | EngineError::IdempotencyKeyReused { .. }),
                ) => answers.push(Err(error)),
                Err(error) => return Err(error),
            }
        }
        let (position, touched) = applier.finish()?;
        self.store.commit(txn)?;
        self.progress.advance(position);
        Ok((answers, touched))
    }

    /// The operation with the memories that its filter selects now.
    fn select(
        &self,
        applier: &Applier<'_, '_, '_>,
        operation: &storage::Operation,
        filter: &Filter,
    ) -> Result<storage::Operation, StoreError> {
        let mut operation = operation.clone();
        let segments = operation
            .namespace
            .as_ref()
            .map(|n| n.segments.as_slice())
            .unwrap_or_default();
        let ns = apply::namespace_id(self.store.schema(), applier.txn(), segments)?;
        if let (Some(ns), Some(Action::Remove(remove))) = (ns, &mut operation.action) {
            let docs = Documents {
                schema: self.store.schema(),
                ns,
                dimensions: self.dimensions,
            };
            let now = Micros(operation.at_micros);
            for id in snapshot::selected(docs, applier.txn(), filter, now)? {
                remove.selected.push(id.0.to_vec());
            }
        }
        Ok(operation)
    }
}

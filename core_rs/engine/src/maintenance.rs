//! Background work of an open engine: the thread that builds approximate indexes, and the one that sweeps what has
//! expired. Neither is needed for a right answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use recalld_proto::storage::v1 as storage;
use recalld_proto::storage::v1::operation::Action;
use recalld_store::ids::{Micros, NamespaceId, Row};
use recalld_store::{Store, keys};

use crate::ann::AnnIndexes;
use crate::apply;
use crate::clock::Clock;
use crate::priority;
use crate::types::Namespace;
use crate::writer::{Job, Writer};
use crate::{EngineError, operation};

/// How often the sweeper looks.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Most memories that one operation sweeps, so that no transaction gets long.
const SWEEP_LIMIT: u32 = 256;
/// Who the journal says did it.
const ACTOR: &str = "recalld:sweeper";

/// The running threads.
pub(crate) struct Maintenance {
    indexes: Arc<AnnIndexes>,
    stopping: Arc<(AtomicBool, Mutex<()>, Condvar)>,
    threads: Vec<JoinHandle<()>>,
}

impl Maintenance {
    pub(crate) fn start(
        store: Arc<Store>,
        writer: Arc<Writer>,
        indexes: Arc<AnnIndexes>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, EngineError> {
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(run)
                .map_err(|e| EngineError::Internal(format!("cannot start a thread: {e}")))
        };
        let stopping = Arc::new((AtomicBool::new(false), Mutex::new(()), Condvar::new()));
        let (build, built) = (indexes.clone(), store.clone());
        let builder = spawn(
            "recalld-index",
            Box::new(move || {
                priority::give_way(priority::BUILD);
                build.run(&built);
            }),
        )?;
        let until = stopping.clone();
        let sweeper = spawn(
            "recalld-sweep",
            Box::new(move || {
                let (stopping, lock, stopped) = &*until;
                while !stopping.load(Ordering::Relaxed) {
                    if let Err(error) = sweep(&store, &writer, clock.now(), stopping) {
                        tracing::warn!(%error, "expired memories were not swept; they stay invisible");
                    }
                    let mut guard = lock.lock();
                    if !stopping.load(Ordering::Relaxed) {
                        stopped.wait_for(&mut guard, SWEEP_EVERY);
                    }
                }
            }),
        )?;
        Ok(Self {
            indexes,
            stopping,
            threads: vec![builder, sweeper],
        })
    }

    pub(crate) fn stop(self) {
        let (stopping, lock, stopped) = &*self.stopping;
        stopping.store(true, Ordering::Relaxed);
        drop(lock.lock());
        stopped.notify_all();
        self.indexes.stop();
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a maintenance thread panicked");
            }
        }
    }
}

/// Removes what has expired at `now`, namespace by namespace, and outcomes past their time.
pub(crate) fn sweep(
    store: &Store,
    writer: &Writer,
    now: Micros,
    stopping: &AtomicBool,
) -> Result<(), EngineError> {
    let mut next = Some(NamespaceId(0));
    while let Some(from) = next {
        if stopping.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (found, due) = next_due(store, from, now)?;
        next = found;
        if let Some(namespace) = due {
            submit(writer, namespace, now)?;
        }
    }
    while !stopping.load(Ordering::Relaxed) && outcomes_due(store, now)? {
        submit(writer, Namespace(Vec::new()), now)?;
    }
    Ok(())
}

fn submit(writer: &Writer, namespace: Namespace, now: Micros) -> Result<(), EngineError> {
    let action = Action::Sweep(storage::Sweep { limit: SWEEP_LIMIT });
    let operation = operation(now, ACTOR.to_owned(), namespace, None, action);
    writer.submit(Job {
        operation,
        terms: Vec::new(),
        filter: None,
        deadline: None,
        bytes: 1024,
    })?;
    Ok(())
}

/// The first namespace from `from` on in which something expires: where to look next, and, when something is due in
/// it, its segments. A namespace with more due than one operation takes is answered again.
fn next_due(
    store: &Store,
    from: NamespaceId,
    now: Micros,
) -> Result<(Option<NamespaceId>, Option<Namespace>), EngineError> {
    let txn = store.read()?;
    let schema = store.schema();
    let Some((key, _)) = schema.expiry.at_or_after(&txn, &keys::namespace(from))? else {
        return Ok((None, None));
    };
    let ns = key
        .first_chunk::<4>()
        .map(|bytes| NamespaceId(u32::from_be_bytes(*bytes)));
    let (Some(ns), Some((at, Row(_)))) = (ns, keys::read_expiry(key)) else {
        return Err(schema.expiry.damaged(key).into());
    };
    let after = ns.0.checked_add(1).map(NamespaceId);
    if at > now {
        return Ok((after, None));
    }
    let namespace = Namespace(apply::namespace_state(schema, &txn, ns)?.segments);
    Ok((Some(ns), Some(namespace)))
}

fn outcomes_due(store: &Store, now: Micros) -> Result<bool, EngineError> {
    let txn = store.read()?;
    let first = store.schema().outcome_times.first(&txn)?;
    let at = first
        .and_then(|(key, _)| key.first_chunk::<{ keys::INSTANT_BYTES }>().copied())
        .map(keys::read_instant);
    Ok(at.is_some_and(|at| now.0.saturating_sub(at.0) > apply::OUTCOME_LIFETIME_MICROS))
}

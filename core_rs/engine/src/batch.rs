//! Many searches on one snapshot, by as many threads as the machine has cores.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use recalld_store::ReadTxn;

use crate::token::Token;
use crate::types::{Found, Namespace, Query};
use crate::{Deadline, Engine, EngineError, apply};

/// Searches that are worth a thread: waking one costs about as much as a search of a small namespace.
const SEARCHES_A_THREAD: usize = 2;

/// Threads for batches, kept from one to the next.
pub(crate) fn pool() -> Result<rayon::ThreadPool, EngineError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(std::thread::available_parallelism().map_or(1, NonZero::get))
        .thread_name(|index| format!("recalld-batch-{index}"))
        .build()
        .map_err(|e| EngineError::Internal(format!("cannot start threads: {e}")))
}

/// The answers to a batch.
#[derive(Debug)]
pub struct BatchFound {
    /// One a search, in order.
    pub results: Vec<Result<Found, EngineError>>,
    /// The state that was searched.
    pub token: Token,
}

impl Engine {
    /// Answers every search as [`Engine::search`] would, all on one snapshot. A search that fails leaves the others be.
    pub fn batch_search(
        &self,
        searches: &[(Namespace, Query)],
        deadline: Deadline,
    ) -> Result<BatchFound, EngineError> {
        let answers: Vec<OnceLock<Result<Found, EngineError>>> =
            searches.iter().map(|_| OnceLock::new()).collect();
        let mut work = Vec::with_capacity(searches.len());
        for ((namespace, query), answer) in searches.iter().zip(&answers) {
            let limit = self.limit(query, deadline);
            match self.reach(query.at_least, deadline) {
                Ok(()) => work.push((namespace, query, limit, answer)),
                // Each is answered once.
                Err(error) => drop(answer.set(Err(error))),
            }
        }
        let threads = (work.len() / SEARCHES_A_THREAD).clamp(1, self.pool.current_num_threads());
        let mut snapshots = self.same_snapshots(threads)?;
        let token = self.token(apply::position(self.store.schema(), &snapshots[0])?);
        let next = AtomicUsize::new(0);
        let search = |txn: ReadTxn<'_>| {
            while let Some((namespace, query, limit, answer)) =
                work.get(next.fetch_add(1, Ordering::Relaxed))
            {
                drop(answer.set(self.find(&txn, namespace, query, *limit)));
            }
        };
        let own = snapshots.pop();
        self.pool.in_place_scope(|scope| {
            for txn in snapshots {
                let search = &search;
                scope.spawn(move |_| search(txn));
            }
            own.map(search);
        });
        let unanswered = || EngineError::Internal("a search was not answered".to_owned());
        let results = answers
            .into_iter()
            .map(|answer| answer.into_inner().unwrap_or_else(|| Err(unanswered())));
        Ok(BatchFound {
            results: results.collect(),
            token,
        })
    }

    /// Transactions that all see the same state: one for each thread, since a transaction serves one at a time.
    fn same_snapshots(&self, count: usize) -> Result<Vec<ReadTxn<'_>>, EngineError> {
        loop {
            let snapshots: Vec<_> = (0..count)
                .map(|_| self.store.read())
                .collect::<Result<_, _>>()?;
            // A commit in between is rare, and opening takes a microsecond.
            if snapshots.iter().all(|txn| txn.id() == snapshots[0].id()) {
                return Ok(snapshots);
            }
        }
    }
}

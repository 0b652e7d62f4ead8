//! The engine: namespaces of memories over one store, with a journal, deterministic apply, search and briefs.
//!
//! Calls arrive validated and in the domain's own types; each read works on one snapshot, each write becomes one
//! operation that the writer thread makes durable before it is answered. The engine reads the time at the door of a
//! call and nowhere else (what is left of a latency budget is looked at on the way, and how long an index was idle), opens
//! no network connection, and never holds a read transaction across a wait.

mod ann;
mod apply;
mod attributes;
mod batch;
mod brief;
mod calendar;
pub mod clock;
mod documents;
pub mod error;
pub mod explain;
pub mod filter;
pub mod histogram;
mod indexed;
pub mod kinds;
mod maintenance;
pub mod model;
mod prepare;
pub mod priority;
mod read;
pub mod replay;
mod resident;
mod search;
mod snapshot;
mod summaries;
mod time_limit;
pub mod timings;
pub mod token;
pub mod types;
pub mod verify;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use recalld_algo::terms::ANALYZER_VERSION;
use recalld_proto::storage::v1::operation::Action;
use recalld_proto::storage::v1::outcome::Answer;
use recalld_proto::storage::v1::{self as storage, StoreIdentity};
use recalld_proto::v1::{Namespace as NamespaceMessage, WriteOutcome};
use recalld_store::ids::{MemoryId, Micros, Position};
use recalld_store::{FORMAT_VERSION, OpenOptions, Store, StoreError, Txn};

pub use batch::BatchFound;
pub use error::EngineError;
pub use recalld_store::ids;
pub use search::Tuning;

use ann::{AnnIndex, AnnIndexes};
use clock::Clock;
use explain::{Stage, Target, WhyNot};
use histogram::Latencies;
use maintenance::Maintenance;
use model::Model;
use prepare::prepare;
use search::Search;
use snapshot::Snapshot;
use time_limit::TimeLimit;
use timings::{Part, Timings};
use token::Token;
use types::{
    Brief, Briefed, Degradation, Delete, Deleted, Details, Found, Get, Idempotency, Namespace,
    NamespaceStats, Outcome, Query, Receipt, StoreStats, Write, Written,
};
use writer::{Job, Progress, Writer};

/// When a call must be answered.
pub type Deadline = Option<Instant>;

/// How long a read without a deadline waits for a consistency token.
const TOKEN_WAIT: Duration = Duration::from_secs(10);

/// How to open an engine.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Where the data is; made when missing.
    pub data_dir: PathBuf,
    /// Where the embedding model is.
    pub model_dir: PathBuf,
    /// Where this process can be reached, for the error that a second one gets.
    pub address: String,
    /// Most bytes of the data file.
    pub max_store_bytes: u64,
    /// Most writes that wait.
    pub max_queued_writes: usize,
    /// Passages from which a namespace gets an approximate index.
    pub index_after: u32,
    /// Most bytes of approximate indexes in memory.
    pub max_index_bytes: u64,
    /// Weights of the ranking.
    pub tuning: Tuning,
    /// The time within which a call should be answered: an edge of the histograms.
    pub slo: Duration,
}

/// An open data directory and all that can be done with it.
pub struct Engine {
    store: Arc<Store>,
    model: Model,
    tuning: Tuning,
    clock: Arc<dyn Clock>,
    store_id: [u8; 16],
    progress: Arc<Progress>,
    writer: Arc<Writer>,
    indexes: Arc<AnnIndexes>,
    maintenance: Mutex<Option<Maintenance>>,
    pool: rayon::ThreadPool,
    timings: Timings,
    /// Who opened it: a forked child has none of its threads.
    process: u32,
}

impl Engine {
    /// Opens or makes the data directory and starts the background threads.
    pub fn open(options: &EngineOptions, clock: Arc<dyn Clock>) -> Result<Self, EngineError> {
        let (store, model) = open_store(options)?;
        let store = Arc::new(store);
        let dimensions = model.dimensions();
        let store_id = store_id(store.identity())?;
        let progress = Arc::new(Progress::default());
        progress.advance(apply::position(store.schema(), &*store.read()?)?);
        let indexes = Arc::new(AnnIndexes::new(
            store.directory(),
            &store_id,
            dimensions,
            options.index_after,
            options.max_index_bytes,
        ));
        let notified = indexes.clone();
        let writer = Arc::new(Writer::start(
            store.clone(),
            dimensions,
            progress.clone(),
            options.max_queued_writes,
            move |touched| notified.notify(touched),
        )?);
        let maintenance = Maintenance::start(
            store.clone(),
            writer.clone(),
            indexes.clone(),
            clock.clone(),
        )?;
        // Vocabularies are built once; the first call should not pay for it.
        recalld_algo::tokens::warm();
        Ok(Self {
            store,
            model,
            tuning: options.tuning,
            clock,
            store_id,
            progress,
            writer,
            indexes,
            maintenance: Mutex::new(Some(maintenance)),
            pool: batch::pool()?,
            timings: Timings::with_edge(options.slo),
            process: std::process::id(),
        })
    }

    /// Dimensions of a vector.
    pub fn dimensions(&self) -> u32 {
        self.model.dimensions() as u32
    }

    /// The engine's time.
    pub fn now(&self) -> Micros {
        self.clock.now()
    }

    /// Writes memories. Returns when they are durable.
    pub fn write(&self, write: Write, deadline: Deadline) -> Result<Written, EngineError> {
        let now = self.clock.now();
        let mut laps = self.timings.start();
        let mut items = Vec::with_capacity(write.items.len());
        let mut terms = Vec::with_capacity(write.items.len());
        let mut bytes = 0;
        for memory in write.items {
            let prepared = prepare(memory, &self.model, now)?;
            bytes += prepared.item.content.len() * 2 + 1024;
            items.push(prepared.item);
            terms.push(prepared.terms);
        }
        laps.end(Part::Prepare);
        let action = Action::Put(storage::Put { items });
        let operation = operation(now, write.actor, write.namespace, write.idempotency, action);
        let applied = self.writer.submit(Job {
            operation,
            terms,
            filter: None,
            deadline,
            bytes,
        })?;
        laps.end(Part::Commit);
        let Answer::Put(outcome) = applied.answer else {
            return Err(EngineError::Internal(
                "a write was answered with something else".to_owned(),
            ));
        };
        let receipts = outcome
            .receipts
            .iter()
            .map(receipt)
            .collect::<Result<_, _>>()?;
        Ok(Written {
            receipts,
            token: self.token(applied.position),
        })
    }

    /// Deletes memories with all their versions. Returns when that is durable.
    pub fn delete(&self, delete: Delete, deadline: Deadline) -> Result<Deleted, EngineError> {
        let now = self.clock.now();
        if delete.dry_run {
            return self.would_delete(&delete, now);
        }
        let action = Action::Remove(storage::Remove {
            ids: delete.ids.iter().map(|id| id.0.to_vec()).collect(),
            keys: delete.keys,
            selected: Vec::new(),
            if_version: delete.if_version,
        });
        let operation = operation(
            now,
            delete.actor,
            delete.namespace,
            delete.idempotency,
            action,
        );
        let job = Job {
            operation,
            terms: Vec::new(),
            filter: delete.filter,
            deadline,
            bytes: 1024,
        };
        let applied = self.writer.submit(job)?;
        let Answer::Remove(outcome) = applied.answer else {
            return Err(EngineError::Internal(
                "a delete was answered with something else".to_owned(),
            ));
        };
        let id = |bytes: &Vec<u8>| {
            MemoryId::try_from(&bytes[..]).map_err(|error| EngineError::Internal(error.to_string()))
        };
        Ok(Deleted {
            deleted: outcome.deleted,
            deleted_versions: outcome.deleted_versions,
            missing_ids: outcome
                .missing_ids
                .iter()
                .map(id)
                .collect::<Result<_, _>>()?,
            missing_keys: outcome.missing_keys,
            token: self.token(applied.position),
        })
    }

    /// Finds the memories that fit a query best.
    pub fn search(
        &self,
        namespace: &Namespace,
        query: &Query,
        deadline: Deadline,
    ) -> Result<Found, EngineError> {
        let limit = self.limit(query, deadline);
        self.reach(query.at_least, deadline)?;
        let txn = self.store.read()?;
        self.find(&txn, namespace, query, limit)
    }

    /// Searches what a transaction sees.
    fn find(
        &self,
        txn: &Txn<'_>,
        namespace: &Namespace,
        query: &Query,
        limit: TimeLimit<'_>,
    ) -> Result<Found, EngineError> {
        let now = self.clock.now();
        self.snapshot_of(txn, namespace, now, |snapshot, token| {
            let Some(snapshot) = snapshot else {
                return Ok(Found::nothing(now, token));
            };
            let ann = self
                .indexes
                .for_search(snapshot.docs.ns, snapshot.state.passages);
            let mut laps = self.timings.start();
            let search = self.by(query, ann.as_deref(), now, limit);
            let outcome = search::run(snapshot, search, &mut laps)?;
            let hits = search::hits(snapshot, &outcome.scored)?;
            laps.end(Part::Signatures);
            Ok(Found {
                hits,
                arms: outcome.arms,
                degraded: outcome.degraded,
                now,
                token,
            })
        })
    }

    /// The time that a search may take, from now on.
    fn limit(&self, query: &Query, deadline: Deadline) -> TimeLimit<'_> {
        TimeLimit::new(&*self.clock, deadline, query.latency_budget)
    }

    /// Says why a memory is, or is not, among the hits of a search.
    pub fn why_not(
        &self,
        namespace: &Namespace,
        query: &Query,
        target: &Target,
        deadline: Deadline,
    ) -> Result<WhyNot, EngineError> {
        let limit = self.limit(query, deadline);
        self.reach(query.at_least, deadline)?;
        let now = self.clock.now();
        self.snapshot(namespace, now, |snapshot, token| {
            let Some(snapshot) = snapshot else {
                return Ok(WhyNot::at(Stage::NotFound, None, token));
            };
            let ann = self
                .indexes
                .for_search(snapshot.docs.ns, snapshot.state.passages);
            let search = self.by(query, ann.as_deref(), now, limit);
            let mut laps = self.timings.start();
            search::why_not(snapshot, search, target, &mut laps, token)
        })
    }

    fn by<'a>(
        &'a self,
        query: &'a Query,
        ann: Option<&'a AnnIndex>,
        reference: Micros,
        limit: TimeLimit<'a>,
    ) -> Search<'a> {
        Search {
            model: &self.model,
            ann,
            tuning: &self.tuning,
            query,
            reference,
            limit,
        }
    }

    /// Packs a brief.
    pub fn brief(&self, brief: &Brief, deadline: Deadline) -> Result<Briefed, EngineError> {
        let limit = self.limit(&brief.query, deadline);
        self.reach(brief.query.at_least, deadline)?;
        let now = self.clock.now();
        self.snapshot(&brief.namespace, now, |snapshot, token| {
            let Some(snapshot) = snapshot else {
                return Ok(Briefed::of(brief::of_nothing(brief), Vec::new(), token));
            };
            // Never by the approximate index: the same state must give the same bytes whether it is built or not.
            let reference = snapshot.evaluator().newest()?.unwrap_or(now);
            let query = brief::query(brief);
            let mut laps = self.timings.start();
            let search = self.by(&query, None, reference, limit);
            let outcome = search::run(snapshot, search, &mut laps)?;
            let packed = brief::build(snapshot, &outcome, brief)?;
            laps.end(Part::Pack);
            Ok(Briefed::of(packed, outcome.degraded, token))
        })
    }

    /// Fetches full memories.
    pub fn get(&self, get: &Get, deadline: Deadline) -> Result<Details, EngineError> {
        self.reach(get.at_least, deadline)?;
        self.snapshot(&get.namespace, self.clock.now(), |snapshot, token| {
            Ok(read::details(snapshot, get, token)?)
        })
    }

    /// How long the parts of calls took since the start.
    pub fn timings(&self) -> Vec<(Part, Latencies)> {
        self.timings.snapshot()
    }

    /// Counts of the store.
    pub fn store_stats(&self) -> Result<StoreStats, EngineError> {
        let txn = self.store.read()?;
        let identity = self.store.identity();
        Ok(StoreStats {
            store_id: hex(&self.store_id),
            format_version: identity.format_version,
            embedder: identity.embedder.clone(),
            embedder_fingerprint: identity.embedder_fingerprint.clone(),
            dimensions: identity.dimensions,
            position: apply::position(self.store.schema(), &txn)?.0,
            namespaces: self.store.schema().namespaces.len(&txn)?,
            memories: apply::memories(self.store.schema(), &txn)?,
            bytes_used: self.store.bytes_used(),
        })
    }

    /// Counts of a namespace, all zero when it does not exist.
    pub fn namespace_stats(&self, namespace: &Namespace) -> Result<NamespaceStats, EngineError> {
        self.snapshot(namespace, self.clock.now(), |snapshot, _| {
            let Some(snapshot) = snapshot else {
                return Ok(NamespaceStats::default());
            };
            let index = self.indexes.get(snapshot.docs.ns);
            Ok(NamespaceStats {
                memories: snapshot.state.memories,
                versions: snapshot.state.versions,
                passages: snapshot.state.passages,
                content_tokens: snapshot.state.content_tokens,
                indexed_passages: index.map_or(0, |index| index.index.len() as u64),
            })
        })
    }

    /// Finishes queued writes and stops the background threads. Later writes fail; reads go on. Does nothing in a child
    /// of the process that opened the engine.
    pub fn close(&self) {
        if self.process != std::process::id() {
            return;
        }
        if let Some(maintenance) = self.maintenance.lock().take() {
            maintenance.stop();
        }
        self.writer.close();
        self.progress.close();
    }

    fn token(&self, position: Position) -> Token {
        Token {
            store: self.store_id,
            epoch: 0,
            position,
        }
    }

    /// Waits until the store has come as far as a token says.
    fn reach(&self, token: Option<Token>, deadline: Deadline) -> Result<(), EngineError> {
        let Some(token) = token else { return Ok(()) };
        if token.store != self.store_id || token.epoch != 0 {
            return Err(EngineError::TokenOfAnotherStore);
        }
        let until = deadline.unwrap_or_else(|| Instant::now() + TOKEN_WAIT);
        self.progress.wait(token.position, until)
    }

    /// Calls `read` with one snapshot of a namespace (None: nothing was ever written to it) and its token.
    fn snapshot<T>(
        &self,
        namespace: &Namespace,
        now: Micros,
        read: impl FnOnce(Option<&Snapshot<'_>>, Token) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let txn = self.store.read()?;
        self.snapshot_of(&txn, namespace, now, read)
    }

    /// As [`Engine::snapshot`], of what a transaction sees.
    fn snapshot_of<T>(
        &self,
        txn: &Txn<'_>,
        namespace: &Namespace,
        now: Micros,
        read: impl FnOnce(Option<&Snapshot<'_>>, Token) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let schema = self.store.schema();
        let token = self.token(apply::position(schema, txn)?);
        match apply::namespace_id(schema, txn, &namespace.0)? {
            None => read(None, token),
            Some(ns) => {
                let snapshot = Snapshot::of(txn, schema, ns, self.model.dimensions(), now)?;
                read(Some(&snapshot), token)
            }
        }
    }

    fn would_delete(&self, delete: &Delete, now: Micros) -> Result<Deleted, EngineError> {
        self.snapshot(&delete.namespace, now, |snapshot, token| {
            read::would_delete(snapshot, delete, token)
        })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
    }
}

/// Opens the store with the identity that this build and model give it.
fn open_store(options: &EngineOptions) -> Result<(Store, Model), EngineError> {
    let model = Model::load(&options.model_dir)?;
    let mut store_id = vec![0; 16];
    getrandom::fill(&mut store_id)
        .map_err(|e| EngineError::Internal(format!("no random bytes: {e}")))?;
    let identity = StoreIdentity {
        format_version: FORMAT_VERSION,
        store_id,
        embedder: model.name().to_owned(),
        embedder_fingerprint: model.fingerprint().to_owned(),
        dimensions: model.dimensions() as u32,
        analyzer_version: ANALYZER_VERSION,
    };
    let open = OpenOptions {
        max_bytes: options.max_store_bytes,
        address: options.address.clone(),
        identity,
    };
    Ok((Store::open(&options.data_dir, &open)?, model))
}

fn store_id(identity: &StoreIdentity) -> Result<[u8; 16], EngineError> {
    identity.store_id.as_slice().try_into().map_err(|_| {
        EngineError::Store(StoreError::Damaged {
            record: "meta/identity: the store id is not 16 bytes".to_owned(),
        })
    })
}

fn operation(
    now: Micros,
    actor: String,
    namespace: Namespace,
    idempotency: Option<Idempotency>,
    action: Action,
) -> storage::Operation {
    let (idempotency_key, request_digest) = idempotency
        .map(|i| (i.key, i.digest.to_vec()))
        .unwrap_or_default();
    storage::Operation {
        at_micros: now.0,
        actor,
        namespace: Some(NamespaceMessage {
            segments: namespace.0,
        }),
        idempotency_key,
        request_digest,
        action: Some(action),
    }
}

fn receipt(message: &recalld_proto::v1::Receipt) -> Result<Receipt, EngineError> {
    let outcome = match message.outcome() {
        WriteOutcome::Stored => Outcome::Stored,
        WriteOutcome::Updated => Outcome::Updated,
        WriteOutcome::Duplicate => Outcome::Duplicate,
        WriteOutcome::Unspecified => {
            return Err(EngineError::Internal(
                "a receipt without an outcome".to_owned(),
            ));
        }
    };
    let id = message
        .id
        .parse()
        .map_err(|_| EngineError::Internal("a receipt without an id".to_owned()))?;
    Ok(Receipt {
        outcome,
        id,
        version: message.version,
        content_tokens: message.content_tokens,
    })
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Found {
    fn nothing(now: Micros, token: Token) -> Self {
        Self {
            hits: Vec::new(),
            arms: Vec::new(),
            degraded: Vec::new(),
            now,
            token,
        }
    }
}

impl Briefed {
    fn of(packed: brief::Packed, degraded: Vec<Degradation>, token: Token) -> Self {
        Self {
            text: packed.text,
            tokens: packed.tokens,
            included: packed.included,
            omitted: packed.omitted,
            fingerprint: packed.fingerprint,
            degraded,
            token,
        }
    }
}

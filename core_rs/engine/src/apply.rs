//! Applies operations to the store, deterministically: the same operations in the same order give the same bytes.
//!
//! It never reads a clock, a random source or a model; the operation carries all of that. An operation that fails
//! by the caller's fault fails before anything is changed; any other error means that the transaction must be
//! dropped.

use std::collections::HashMap;

use prost::Message;
use recalld_proto::storage::v1::operation::Action;
use recalld_proto::storage::v1::outcome::Answer;
use recalld_proto::storage::v1::{
    self as storage, NamespaceState, Outcome, PutOutcome, RemoveOutcome,
};
use recalld_proto::v1::{Receipt, WriteOutcome};
use recalld_store::codec::{journal, sealed};
use recalld_store::ids::{MemoryId, Micros, NamespaceId, Position, Row};
use recalld_store::{Schema, StoreError, Txn, WriteTxn, keys};

use crate::EngineError;
use crate::documents::{Documents, NewDocument, Weight};
use crate::indexed::{self, TermCount};

/// How long an outcome is kept for its idempotency key.
pub(crate) const OUTCOME_LIFETIME_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

/// What an operation did.
#[derive(Debug)]
pub(crate) struct Applied {
    /// The state that holds it: a new position, or that of the first time when it was a repeat.
    pub(crate) position: Position,
    pub(crate) answer: Answer,
}

/// Applies operations inside one write transaction.
pub(crate) struct Applier<'s, 't, 'e> {
    schema: &'s Schema,
    dimensions: usize,
    txn: &'t mut WriteTxn<'e>,
    position: Position,
    memories: u64,
    states: HashMap<NamespaceId, NamespaceState>,
    packer: journal::Packer,
}

/// The last position applied.
pub(crate) fn position(schema: &Schema, txn: &Txn<'_>) -> Result<Position, StoreError> {
    number(schema, txn, keys::META_POSITION).map(Position)
}

/// Live memories of the whole store.
pub(crate) fn memories(schema: &Schema, txn: &Txn<'_>) -> Result<u64, StoreError> {
    number(schema, txn, keys::META_MEMORIES)
}

fn number(schema: &Schema, txn: &Txn<'_>, key: &[u8]) -> Result<u64, StoreError> {
    match schema.meta.get(txn, key)? {
        None => Ok(0),
        Some(bytes) => bytes
            .try_into()
            .map(u64::from_be_bytes)
            .map_err(|_| schema.meta.damaged(key)),
    }
}

/// The number of a namespace; None when nothing was ever written to it.
pub(crate) fn namespace_id(
    schema: &Schema,
    txn: &Txn<'_>,
    segments: &[String],
) -> Result<Option<NamespaceId>, StoreError> {
    let value = schema.namespaces.get(txn, &keys::path(segments))?;
    Ok(value.and_then(keys::trailing_number).map(NamespaceId))
}

/// What is known of a namespace.
pub(crate) fn namespace_state(
    schema: &Schema,
    txn: &Txn<'_>,
    ns: NamespaceId,
) -> Result<NamespaceState, StoreError> {
    let key = keys::namespace(ns);
    let damaged = || schema.namespace_states.damaged(&key);
    let value = schema
        .namespace_states
        .get(txn, &key)?
        .ok_or_else(damaged)?;
    NamespaceState::decode(sealed::open(value).ok_or_else(damaged)?).map_err(|_| damaged())
}

impl<'s, 't, 'e> Applier<'s, 't, 'e> {
    pub(crate) fn new(
        schema: &'s Schema,
        dimensions: usize,
        txn: &'t mut WriteTxn<'e>,
    ) -> Result<Self, StoreError> {
        let position = position(schema, txn)?;
        let memories = memories(schema, txn)?;
        Ok(Self {
            schema,
            dimensions,
            txn,
            position,
            memories,
            states: HashMap::new(),
            packer: journal::Packer::new().map_err(|source| StoreError::Io { source })?,
        })
    }

    /// The transaction, for reading.
    pub(crate) fn txn(&self) -> &Txn<'e> {
        self.txn
    }

    /// Appends an operation to the journal and applies it. `terms` are those of a put's items, when the caller has
    /// them; otherwise they are derived again.
    pub(crate) fn apply(
        &mut self,
        operation: &storage::Operation,
        terms: Option<&[Vec<Vec<TermCount>>]>,
    ) -> Result<Applied, EngineError> {
        let segments = operation
            .namespace
            .as_ref()
            .map(|n| n.segments.as_slice())
            .unwrap_or_default();
        let outcome_key = keys::outcome(segments, &operation.idempotency_key);
        if let Some(applied) = self.repeated(&outcome_key, operation)? {
            return Ok(applied);
        }
        let existing = namespace_id(self.schema, self.txn, segments)?;
        let now = Micros(operation.at_micros);
        let answer = match &operation.action {
            Some(Action::Put(put)) => {
                self.check_versions(existing, put, now)?;
                let ns = existing.map_or_else(|| self.create_namespace(segments), Ok)?;
                self.put(ns, put, now, terms).map(Answer::Put)?
            }
            Some(Action::Remove(remove)) => {
                self.remove(existing, remove, now).map(Answer::Remove)?
            }
            Some(Action::Sweep(sweep)) => self.sweep(existing, *sweep, now).map(Answer::Remove)?,
            None => {
                return Err(EngineError::Internal(
                    "an operation without an action".to_owned(),
                ));
            }
        };
        self.position.0 += 1;
        self.schema.journal.put(
            self.txn,
            &keys::position(self.position),
            &self.packer.encode(&operation.encode_to_vec()),
        )?;
        let applied = Applied {
            position: self.position,
            answer,
        };
        self.remember(&outcome_key, operation, &applied)?;
        Ok(applied)
    }

    /// Writes what was gathered: the position, and the namespaces that were touched with their passages. Nothing may
    /// be applied afterwards.
    pub(crate) fn finish(self) -> Result<(Position, Vec<(NamespaceId, u64)>), StoreError> {
        let Self {
            schema,
            txn,
            position,
            memories,
            states,
            ..
        } = self;
        let mut touched = Vec::with_capacity(states.len());
        for (ns, state) in states {
            touched.push((ns, state.passages));
            schema.namespace_states.put(
                txn,
                &keys::namespace(ns),
                &sealed::seal(&state.encode_to_vec()),
            )?;
        }
        schema
            .meta
            .put(txn, keys::META_POSITION, &position.0.to_be_bytes())?;
        schema
            .meta
            .put(txn, keys::META_MEMORIES, &memories.to_be_bytes())?;
        Ok((position, touched))
    }

    fn documents(&self, ns: NamespaceId) -> Documents<'s> {
        Documents {
            schema: self.schema,
            ns,
            dimensions: self.dimensions,
        }
    }

    fn create_namespace(&mut self, segments: &[String]) -> Result<NamespaceId, StoreError> {
        let next = number(self.schema, self.txn, keys::META_NEXT_NAMESPACE)?;
        let ns = NamespaceId(u32::try_from(next).map_err(|_| StoreError::Full {
            what: "number of namespaces",
        })?);
        self.schema.meta.put(
            self.txn,
            keys::META_NEXT_NAMESPACE,
            &(next + 1).to_be_bytes(),
        )?;
        self.schema
            .namespaces
            .put(self.txn, &keys::path(segments), &keys::namespace(ns))?;
        let state = NamespaceState {
            segments: segments.to_vec(),
            ..Default::default()
        };
        self.states.insert(ns, state);
        Ok(ns)
    }

    fn state(&mut self, ns: NamespaceId) -> Result<&mut NamespaceState, StoreError> {
        match self.states.entry(ns) {
            std::collections::hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::hash_map::Entry::Vacant(entry) => {
                Ok(entry.insert(namespace_state(self.schema, self.txn, ns)?))
            }
        }
    }

    /// The kept answer of a request that is made again.
    fn repeated(
        &self,
        key: &[u8],
        operation: &storage::Operation,
    ) -> Result<Option<Applied>, EngineError> {
        if operation.idempotency_key.is_empty() {
            return Ok(None);
        }
        let Some(value) = self.schema.outcomes.get(self.txn, key)? else {
            return Ok(None);
        };
        let damaged = || self.schema.outcomes.damaged(key);
        let outcome =
            Outcome::decode(sealed::open(value).ok_or_else(damaged)?).map_err(|_| damaged())?;
        if operation.at_micros.saturating_sub(outcome.at_micros) >= OUTCOME_LIFETIME_MICROS {
            return Ok(None);
        }
        if outcome.request_digest != operation.request_digest {
            return Err(EngineError::IdempotencyKeyReused {
                key: operation.idempotency_key.clone(),
            });
        }
        let answer = outcome.answer.ok_or_else(damaged)?;
        Ok(Some(Applied {
            position: Position(outcome.position),
            answer,
        }))
    }

    /// Keeps the answer for the request's idempotency key.
    fn remember(
        &mut self,
        key: &[u8],
        operation: &storage::Operation,
        applied: &Applied,
    ) -> Result<(), StoreError> {
        if operation.idempotency_key.is_empty() {
            return Ok(());
        }
        let outcome = Outcome {
            request_digest: operation.request_digest.clone(),
            at_micros: operation.at_micros,
            position: applied.position.0,
            answer: Some(applied.answer.clone()),
        };
        let value = sealed::seal(&outcome.encode_to_vec());
        self.schema.outcomes.put(self.txn, key, &value)?;
        let time = keys::outcome_time(Micros(operation.at_micros), key);
        self.schema.outcome_times.put(self.txn, &time, &[])
    }

    /// The live document of a key, unless it had expired at `now`.
    fn current(
        &self,
        docs: Documents<'_>,
        key: &str,
        now: Micros,
    ) -> Result<Option<(Row, MemoryId, u64)>, StoreError> {
        match docs.by_key(self.txn, key)? {
            None => Ok(None),
            Some(doc) => self.unexpired(docs, doc, now),
        }
    }

    fn unexpired(
        &self,
        docs: Documents<'_>,
        doc: Row,
        now: Micros,
    ) -> Result<Option<(Row, MemoryId, u64)>, StoreError> {
        let header = docs
            .header(self.txn, doc)?
            .filter(|header| header.expires_at > now);
        Ok(header.map(|header| (doc, header.id, u64::from(header.version))))
    }

    /// Refuses a put whose items expect other versions, before anything is changed.
    fn check_versions(
        &self,
        ns: Option<NamespaceId>,
        put: &storage::Put,
        now: Micros,
    ) -> Result<(), EngineError> {
        for (index, item) in put.items.iter().enumerate() {
            let Some(expected) = item.if_version else {
                continue;
            };
            let key = item.record.as_ref().map_or("", |record| &record.key);
            let current = match ns {
                Some(ns) => self.current(self.documents(ns), key, now)?,
                None => None,
            };
            let current = current.map_or(0, |(.., version)| version);
            if current != expected {
                return Err(EngineError::VersionConflict {
                    field: format!("items[{index}].if_version"),
                    current,
                });
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        ns: NamespaceId,
        put: &storage::Put,
        now: Micros,
        terms: Option<&[Vec<Vec<TermCount>>]>,
    ) -> Result<PutOutcome, EngineError> {
        let docs = self.documents(ns);
        let mut receipts = Vec::with_capacity(put.items.len());
        for (index, item) in put.items.iter().enumerate() {
            let terms = terms.and_then(|terms| terms.get(index)).map(Vec::as_slice);
            receipts.push(self.put_item(docs, item, now, terms)?);
        }
        Ok(PutOutcome { receipts })
    }

    fn put_item(
        &mut self,
        docs: Documents<'_>,
        item: &storage::PutItem,
        now: Micros,
        terms: Option<&[Vec<TermCount>]>,
    ) -> Result<Receipt, EngineError> {
        let malformed = || EngineError::Internal("a malformed item in the journal".to_owned());
        let record = item.record.as_ref().ok_or_else(malformed)?;
        let receipt = |outcome: WriteOutcome, id: MemoryId, version: u64| Receipt {
            outcome: outcome.into(),
            id: id.to_string(),
            version,
            content_tokens: record.tokens_o200k,
        };
        if !item.digest.is_empty()
            && let Some(doc) = docs.by_digest(self.txn, &item.digest)?
            && let Some((_, id, version)) = self.unexpired(docs, doc, now)?
        {
            return Ok(receipt(WriteOutcome::Duplicate, id, version));
        }
        let mut record = record.clone();
        let existing = if record.key.is_empty() {
            None
        } else {
            docs.by_key(self.txn, &record.key)?
        };
        let current = match existing {
            Some(doc) => self.unexpired(docs, doc, now)?,
            None => None,
        };
        let (outcome, id, version) = match (existing, current) {
            (_, Some((doc, id, version))) => {
                record.created_at_micros = docs.record(self.txn, doc)?.created_at_micros;
                let weight = docs.retire(self.txn, doc)?;
                self.lighten(docs.ns, weight)?;
                (WriteOutcome::Updated, id, version + 1)
            }
            (expired, None) => {
                // What had expired is gone; the key starts anew.
                if let Some(doc) = expired
                    && let Some(header) = docs.header(self.txn, doc)?
                {
                    self.remove_memory(docs, header.id)?;
                }
                record.created_at_micros = now.0;
                let id = MemoryId::try_from(&item.id[..]).map_err(|_| malformed())?;
                (WriteOutcome::Stored, id, 1)
            }
        };
        record.version = version;
        let derived;
        let terms = match terms {
            Some(terms) => terms,
            None => {
                derived = indexed::terms(&record, &item.content);
                &derived
            }
        };
        let doc = Row(self.state(docs.ns)?.next_row);
        let new = NewDocument {
            id,
            record: &record,
            content: &item.content,
            vectors: &item.vectors,
            words: &item.words,
            terms,
        };
        let weight = docs.insert(self.txn, doc, &new)?;
        let state = self.state(docs.ns)?;
        state.next_row = (u64::from(doc.0) + weight.passages)
            .try_into()
            .map_err(|_| StoreError::Full {
                what: "number of passages of the namespace",
            })?;
        state.memories += 1;
        state.versions += 1;
        state.passages += weight.passages;
        state.terms += weight.terms;
        state.content_tokens += weight.content_tokens;
        self.memories += 1;
        Ok(receipt(outcome, id, version))
    }

    /// Takes a live document's weight out of the counts.
    fn lighten(&mut self, ns: NamespaceId, weight: Weight) -> Result<(), StoreError> {
        let state = self.state(ns)?;
        state.memories = state.memories.saturating_sub(1);
        state.passages = state.passages.saturating_sub(weight.passages);
        state.terms = state.terms.saturating_sub(weight.terms);
        state.content_tokens = state.content_tokens.saturating_sub(weight.content_tokens);
        self.memories = self.memories.saturating_sub(1);
        Ok(())
    }

    fn remove_memory(&mut self, docs: Documents<'_>, id: MemoryId) -> Result<u64, StoreError> {
        let (weight, versions) = docs.remove(self.txn, id)?;
        if versions > 0 {
            self.lighten(docs.ns, weight)?;
            let state = self.state(docs.ns)?;
            state.versions = state.versions.saturating_sub(versions);
        }
        Ok(versions)
    }

    fn remove(
        &mut self,
        ns: Option<NamespaceId>,
        remove: &storage::Remove,
        now: Micros,
    ) -> Result<RemoveOutcome, EngineError> {
        let mut outcome = RemoveOutcome::default();
        let mut targets = Vec::new();
        for bytes in &remove.ids {
            let found = match (ns, MemoryId::try_from(&bytes[..])) {
                (Some(ns), Ok(id)) => {
                    let docs = self.documents(ns);
                    let doc = docs.by_id(self.txn, id)?;
                    doc.map(|doc| self.unexpired(docs, doc, now))
                        .transpose()?
                        .flatten()
                }
                _ => None,
            };
            match found {
                Some(found) => targets.push(found),
                None => outcome.missing_ids.push(bytes.clone()),
            }
        }
        for key in &remove.keys {
            let found = match ns {
                Some(ns) => self.current(self.documents(ns), key, now)?,
                None => None,
            };
            match found {
                Some(found) => targets.push(found),
                None => outcome.missing_keys.push(key.clone()),
            }
        }
        if let Some(expected) = remove.if_version {
            let current = targets.first().map_or(0, |(.., version)| *version);
            if current != expected {
                return Err(EngineError::VersionConflict {
                    field: "if_version".to_owned(),
                    current,
                });
            }
        }
        let mut ids: Vec<MemoryId> = targets.into_iter().map(|(_, id, _)| id).collect();
        ids.extend(
            remove
                .selected
                .iter()
                .filter_map(|bytes| MemoryId::try_from(&bytes[..]).ok()),
        );
        ids.sort_unstable();
        ids.dedup();
        if let Some(ns) = ns {
            for id in ids {
                let versions = self.remove_memory(self.documents(ns), id)?;
                outcome.deleted += u64::from(versions > 0);
                outcome.deleted_versions += versions;
            }
        }
        Ok(outcome)
    }

    fn sweep(
        &mut self,
        ns: Option<NamespaceId>,
        sweep: storage::Sweep,
        now: Micros,
    ) -> Result<RemoveOutcome, EngineError> {
        let mut outcome = RemoveOutcome::default();
        if let Some(ns) = ns {
            let docs = self.documents(ns);
            let mut ids = Vec::new();
            let mut orphans = Vec::new();
            for due in expired(self.schema, self.txn, ns, now)?.take(sweep.limit as usize) {
                let (at, doc) = due?;
                match docs.header(self.txn, doc)? {
                    Some(header) => ids.push(header.id),
                    None => orphans.push(keys::expiry(ns, at, doc)),
                }
            }
            // Without a document there is nothing to sweep; the entry must not be met for ever.
            for key in orphans {
                self.schema.expiry.delete(self.txn, &key)?;
            }
            for id in ids {
                outcome.deleted_versions += self.remove_memory(docs, id)?;
                outcome.deleted += 1;
            }
        }
        self.forget_outcomes(now, sweep.limit)?;
        Ok(outcome)
    }

    /// Drops outcomes that are past their lifetime, of every namespace.
    fn forget_outcomes(&mut self, now: Micros, limit: u32) -> Result<(), StoreError> {
        let due = keys::instant(Micros(now.0.saturating_sub(OUTCOME_LIFETIME_MICROS)));
        let mut old = Vec::new();
        let entries = self.schema.outcome_times.range(
            self.txn,
            std::ops::Bound::Unbounded,
            std::ops::Bound::Excluded(&due),
        )?;
        for entry in entries.take(limit as usize) {
            old.push(entry?.0.to_vec());
        }
        for time in old {
            let (at, name) = time.split_at(keys::INSTANT_BYTES);
            // A key that was used again after its time has a newer outcome, which stays.
            let newer = match self.schema.outcomes.get(self.txn, name)? {
                // A damaged one is of no use to anybody.
                Some(value) => sealed::open(value)
                    .and_then(|bytes| Outcome::decode(bytes).ok())
                    .is_some_and(|outcome| keys::instant(Micros(outcome.at_micros))[..] > *at),
                None => true,
            };
            if !newer {
                self.schema.outcomes.delete(self.txn, name)?;
            }
            self.schema.outcome_times.delete(self.txn, &time)?;
        }
        Ok(())
    }
}

/// Live documents of a namespace that have expired at `now` with the instants at which they did, in that order.
pub(crate) fn expired<'t>(
    schema: &'t Schema,
    txn: &'t Txn<'_>,
    ns: NamespaceId,
    now: Micros,
) -> Result<impl Iterator<Item = Result<(Micros, Row), StoreError>> + use<'t>, StoreError> {
    let from = keys::namespace(ns);
    let to = keys::expiry(ns, now, Row(u32::MAX));
    let entries = schema.expiry.range(
        txn,
        std::ops::Bound::Included(&from),
        std::ops::Bound::Included(&to),
    )?;
    Ok(entries.map(move |entry| {
        let (key, _) = entry?;
        keys::read_expiry(key).ok_or_else(|| schema.expiry.damaged(key))
    }))
}

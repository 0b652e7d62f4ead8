//! Prepares memories outside any lock: all that is random, slow or depends on the clock happens here, once, and goes
//! into the journal's operation, so that applying it needs nothing else.

use std::collections::BTreeMap;

use recalld_algo::passages::{PASSAGE_CHARS, passages};
use recalld_algo::tokens::Encoding;
use recalld_counters::Counter;
use recalld_proto::storage::v1 as storage;
use recalld_proto::v1::{ContentFormat, Value};
use recalld_store::ids::{MemoryId, Micros};
use recalld_vector::Quantized;
use recalld_vector::quantize::quantize;

use crate::EngineError;
use crate::brief;
use crate::indexed::{self, TermCount};
use crate::kinds;
use crate::model::Model;
use crate::summaries;
use crate::types::{Expiry, NewMemory};

/// An item of the journal with what is derived from it.
pub(crate) struct Prepared {
    pub(crate) item: storage::PutItem,
    pub(crate) terms: Vec<Vec<TermCount>>,
}

/// A new id: milliseconds and 80 random bits.
pub(crate) fn new_id(now: Micros) -> Result<MemoryId, EngineError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes[6..])
        .map_err(|e| EngineError::Internal(format!("no random bytes: {e}")))?;
    let millis = (now.0 / 1000).max(0) as u64;
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    Ok(MemoryId(bytes))
}

fn micros(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn expires_at(expiry: Expiry, kind: &str, now: Micros) -> Option<i64> {
    match expiry {
        Expiry::ByKind => kinds::of_name(kind)?
            .ttl
            .map(|ttl| now.0.saturating_add(micros(ttl))),
        Expiry::After(ttl) => Some(now.0.saturating_add(micros(ttl))),
        Expiry::At(at) => Some(at.0),
    }
}

fn attributes(metadata: BTreeMap<String, Value>) -> Vec<storage::Attribute> {
    metadata
        .into_iter()
        .map(|(name, value)| storage::Attribute {
            name,
            value: Some(value),
        })
        .collect()
}

fn to_storage(vector: Option<Quantized>) -> storage::Vector {
    match vector {
        Some(vector) => storage::Vector {
            scale: vector.scale,
            values: vector.values.iter().map(|v| v.cast_unsigned()).collect(),
        },
        None => storage::Vector::default(),
    }
}

/// Prepares one memory.
pub(crate) fn prepare(
    memory: NewMemory,
    model: &Model,
    now: Micros,
) -> Result<Prepared, EngineError> {
    let content = memory.content;
    let spans = passages(&content, PASSAGE_CHARS);
    let summary_given = !memory.summary.is_empty();
    let (summary, headline) = summaries::to_keep(memory.summary, &content);
    let mut record = storage::Record {
        key: memory.key,
        summary,
        summary_given,
        headline,
        tags: memory.tags,
        metadata: attributes(memory.metadata),
        importance: memory.importance,
        confidence: memory.confidence,
        occurred_at_micros: memory.occurred_at.unwrap_or(now).0,
        occurred_at_given: memory.occurred_at.is_some(),
        expires_at_micros: expires_at(memory.expiry, &memory.kind, now),
        kind: memory.kind,
        sources: memory.sources,
        origin: memory.origin,
        content_format: (if memory.json {
            ContentFormat::Json
        } else {
            ContentFormat::Text
        })
        .into(),
        tokens_o200k: Encoding::O200kBase.count(&content),
        tokens_cl100k: Encoding::Cl100kBase.count(&content),
        passages: spans
            .iter()
            .map(|span| storage::Passage {
                start: span.start,
                end: span.end,
            })
            .collect(),
        version: 0,
        created_at_micros: 0,
        updated_at_micros: now.0,
        digest: memory.digest.map(|d| d.to_vec()).unwrap_or_default(),
        form_tokens_o200k: None,
        form_tokens_cl100k: None,
    };
    let forms =
        |encoding: Encoding| Some(brief::measure(&record, &content, &Counter::from(encoding)));
    (record.form_tokens_o200k, record.form_tokens_cl100k) =
        (forms(Encoding::O200kBase), forms(Encoding::Cl100kBase));
    let head = indexed::head(&record);
    let mut vectors = Vec::with_capacity(record.passages.len());
    let mut words = Vec::new();
    for index in 0..record.passages.len() {
        let text = indexed::passage_text(&head, &record, &content, index);
        let (vector, of_passage) = model.passage(&text);
        vectors.push(to_storage(vector));
        recalld_store::codec::words::append(&mut words, &of_passage);
    }
    if let Some(vector) = memory.vector {
        // It stands for the whole memory, so the first passage carries it and the others are found by their words.
        vectors.fill(storage::Vector::default());
        if let Some(first) = vectors.first_mut() {
            *first = to_storage(Some(quantize(&vector)?));
        }
    }
    let terms = indexed::terms(&record, &content);
    let item = storage::PutItem {
        id: new_id(now)?.0.to_vec(),
        digest: record.digest.clone(),
        record: Some(record),
        content,
        vectors,
        words,
        if_version: memory.if_version,
    };
    Ok(Prepared { item, terms })
}

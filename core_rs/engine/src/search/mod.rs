//! The search pipeline: one snapshot, one call.
//!
//! 1. The query becomes a vector and terms.
//! 2. The selection becomes a set of documents.
//! 3. The dense and the lexical arm score passages, each able to find a memory alone.
//! 4. The arms are fused by z-scores over all documents that may be returned, each document standing with its best
//!    passage.
//! 5. The best are re-scored exactly with importance, recency and confidence.
//! 6. Ties are broken by id. Equal states and queries give equal answers.

mod dense;
mod lexical;
mod rank;

use std::time::Instant;

use recalld_store::StoreError;
use recalld_store::codec::header::Header;
use recalld_store::ids::{Micros, Row};

use crate::ann::AnnIndex;
use crate::indexed::{self, TermCount};
use crate::model::Model;
use crate::snapshot::Snapshot;
use crate::summaries;
use crate::types::{Arm, Degradation, Query};
use crate::{Deadline, EngineError};

pub(crate) use rank::Ranked;

/// Names of the arms.
pub(crate) const DENSE: &str = "dense";
pub(crate) const LEXICAL: &str = "lexical";

const NO_QUERY: &str = "no_query";
const NO_KNOWN_WORDS: &str = "no_known_words";
const DEADLINE: &str = "deadline";

/// A memory with its score.
#[derive(Debug, Clone)]
pub(crate) struct Scored {
    pub(crate) doc: Row,
    pub(crate) header: Header,
    pub(crate) score: f64,
    pub(crate) relevance: f64,
    /// Passages with their fused scores, best first.
    pub(crate) passages: Vec<(u32, f32)>,
}

/// What a search found, before signatures or briefs are made of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Best first.
    pub(crate) scored: Vec<Scored>,
    pub(crate) arms: Vec<Arm>,
    pub(crate) degraded: Vec<Degradation>,
}

/// Runs the pipeline. Ages are measured from `reference`.
pub(crate) fn run(
    snapshot: &Snapshot<'_>,
    model: &Model,
    ann: Option<&AnnIndex>,
    query: &Query,
    reference: Micros,
    deadline: Deadline,
) -> Result<Outcome, EngineError> {
    let mut outcome = Outcome::default();
    let vector = dense_query(model, query, &mut outcome)?;
    let terms = lexical_query(query, &mut outcome);

    let mut permitted = snapshot.evaluator().select(&query.selection)?;
    let expired = snapshot.expired()?;
    if let Some(permitted) = &mut permitted {
        *permitted -= &expired;
    }
    let facts = snapshot.facts()?;
    let scope = rank::Scope {
        snapshot,
        facts: &facts,
        permitted: permitted.as_ref(),
        expired: &expired,
    };

    let lexical = match terms {
        Some(_) if passed(deadline) => {
            outcome.degraded.push(Degradation {
                arm: LEXICAL,
                reason: DEADLINE,
            });
            None
        }
        Some(terms) => Some(lexical::scores(&scope, &terms)?),
        None => None,
    };
    let dense = match vector {
        Some(_) if passed(deadline) => {
            outcome.degraded.push(Degradation {
                arm: DENSE,
                reason: DEADLINE,
            });
            None
        }
        Some(vector) => Some(dense::scores(
            &scope,
            vector,
            ann,
            rank::candidates(query.limit),
        )?),
        None => None,
    };
    if dense.is_none() && lexical.is_none() {
        if outcome
            .degraded
            .iter()
            .any(|degradation| degradation.reason == DEADLINE)
        {
            return Err(EngineError::DeadlineExceeded);
        }
        return Ok(outcome);
    }
    let Ranked { scored, arms } =
        rank::rank(&scope, dense.as_ref(), lexical.as_ref(), query, reference)?;
    outcome.scored = scored;
    outcome.arms = arms;
    Ok(outcome)
}

fn passed(deadline: Deadline) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}

fn dense_query(
    model: &Model,
    query: &Query,
    outcome: &mut Outcome,
) -> Result<Option<recalld_vector::Query>, EngineError> {
    if let Some(vector) = &query.vector {
        return Ok(Some(recalld_vector::Query::new(vector)?));
    }
    match model.embed(&query.text, recalld_vector::Query::new) {
        Some(vector) => Ok(Some(vector?)),
        None => {
            outcome.degraded.push(Degradation {
                arm: DENSE,
                reason: NO_KNOWN_WORDS,
            });
            Ok(None)
        }
    }
}

fn lexical_query(query: &Query, outcome: &mut Outcome) -> Option<Vec<TermCount>> {
    let terms = indexed::with_analyzer(|analyzer| analyzer.counts(&query.text));
    if terms.is_empty() {
        let reason = if query.text.is_empty() {
            NO_QUERY
        } else {
            NO_KNOWN_WORDS
        };
        outcome.degraded.push(Degradation {
            arm: LEXICAL,
            reason,
        });
        return None;
    }
    Some(terms)
}

/// Makes hits of the best of an outcome.
pub(crate) fn hits(
    snapshot: &Snapshot<'_>,
    scored: &[Scored],
) -> Result<Vec<crate::types::Hit>, StoreError> {
    let mut hits = Vec::with_capacity(scored.len());
    for scored in scored {
        let record = snapshot.docs.record(snapshot.txn, scored.doc)?;
        let content = snapshot.docs.content(snapshot.txn, scored.doc)?;
        hits.push(crate::types::Hit {
            summary: summaries::shown(&record, content),
            id: scored.header.id,
            key: record.key,
            kind: record.kind,
            score: scored.score,
            relevance: scored.relevance,
            occurred_at: scored.header.occurred_at,
            content_tokens: scored.header.content_tokens,
            version: u64::from(scored.header.version),
            tags: record.tags,
        });
    }
    Ok(hits)
}

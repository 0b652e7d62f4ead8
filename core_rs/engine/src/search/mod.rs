//! The search pipeline: one snapshot, one call.
//!
//! 1. The query becomes a vector and terms.
//! 2. The selection becomes a set of documents.
//! 3. The dense and the lexical arm score passages, each able to find a memory alone.
//! 4. The arms are fused by z-scores over all documents that may be returned, each document standing with its best
//!    passage.
//! 5. The best are refined: compared with the query word by word, and newer values pass the older ones.
//! 6. They are scored exactly, with importance, recency and confidence. Ties are broken by id.
//! 7. What is too weak for the request is dropped, near-duplicates are folded into the newest, and the best are kept.
//!
//! Equal states and queries give equal answers.

mod dense;
mod explain;
mod fold;
mod gather;
mod lexical;
mod rank;
mod refine;
mod tuning;
mod why;
mod words;

use recalld_store::StoreError;
use recalld_store::codec::header::Header;
use recalld_store::ids::{MemoryId, Micros, Row};

use crate::EngineError;
use crate::ann::AnnIndex;
use crate::explain::Explanation;
use crate::model::Model;
use crate::snapshot::Snapshot;
use crate::summaries;
use crate::time_limit::TimeLimit;
use crate::timings::{Laps, Part};
use crate::types::{Arm, Degradation, Query};

use lexical::Terms;
pub use tuning::Tuning;
pub(crate) use why::why_not;

/// Names of the arms.
pub(crate) const DENSE: &str = "dense";
pub(crate) const LEXICAL: &str = "lexical";
/// Name of the comparison word by word, when it is left out.
const WORDS: &str = "words";

const NO_QUERY: &str = "no_query";
const NO_KNOWN_WORDS: &str = "no_known_words";
const DEADLINE: &str = "deadline";

/// A memory with its score.
#[derive(Debug, Clone)]
pub(crate) struct Scored {
    pub(crate) doc: Row,
    pub(crate) header: Header,
    pub(crate) score: f64,
    /// The sum of its signals: deviations above an average memory.
    pub(crate) fused: f32,
    /// What that stands for, 0..1, times how much of the query the best memories have together.
    pub(crate) relevance: f64,
    /// Its relevance lies under the threshold.
    pub(crate) weak: bool,
    /// Passages with their fused scores, best first.
    pub(crate) passages: Vec<(u32, f32)>,
    /// Older memories that say the same, newest first.
    pub(crate) duplicates: Vec<(MemoryId, Row)>,
    /// When it was asked for.
    pub(crate) explanation: Option<Explanation>,
}

/// What a search found, before signatures or briefs are made of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Best first.
    pub(crate) scored: Vec<Scored>,
    pub(crate) arms: Vec<Arm>,
    pub(crate) degraded: Vec<Degradation>,
    /// Terms of the query that the namespace knows, with their weights in the lexical arm.
    pub(crate) terms: Vec<(Box<str>, f64)>,
}

/// What a search needs beside the snapshot.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) model: &'a Model,
    /// None: the dense arm scans.
    pub(crate) ann: Option<&'a AnnIndex>,
    pub(crate) tuning: &'a Tuning,
    pub(crate) query: &'a Query,
    /// Ages are measured from here.
    pub(crate) reference: Micros,
    pub(crate) limit: TimeLimit<'a>,
}

/// Runs the pipeline.
pub(crate) fn run(
    snapshot: &Snapshot<'_>,
    search: Search<'_>,
    laps: &mut Laps<'_>,
) -> Result<Outcome, EngineError> {
    let ranking = ranking(snapshot, search, None, laps)?;
    let mut outcome = ranking.outcome;
    outcome.scored.retain(|one| {
        one.score >= search.query.min_score && one.relevance >= search.query.min_relevance
    });
    fold::fold(&mut outcome.scored, search.query.limit);
    Ok(outcome)
}

/// Puts in order, best first; ties by id.
fn order(scored: &mut [Scored]) {
    scored.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.header.id.cmp(&b.header.id))
    });
}

/// All that was ranked, and the document that was probed when it is not among it.
struct Ranking {
    outcome: Outcome,
    probed: Option<rank::Probed>,
}

/// The pipeline up to thresholds.
fn ranking(
    snapshot: &Snapshot<'_>,
    search: Search<'_>,
    probe: Option<Row>,
    laps: &mut Laps<'_>,
) -> Result<Ranking, EngineError> {
    let Search {
        model,
        query,
        limit,
        ..
    } = search;
    let mut outcome = Outcome::default();
    let vector = dense_query(model, query, &mut outcome)?;
    let terms = lexical_query(query, &mut outcome);
    laps.end(Part::Query);

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

    laps.end(Part::Select);

    let lexical = match &terms {
        // The dense arm gets its turn however long the words take.
        Some(terms) => lexical::scores(&scope, terms, limit.half())?,
        None => None,
    };
    laps.end(Part::Lexical);
    let (asks_dense, asks_lexical) = (vector.is_some(), terms.is_some());
    let dense = match vector {
        Some(vector) => {
            let wanted = rank::candidates(query.limit);
            dense::scores(&scope, vector, search.ann, wanted, limit)?
        }
        None => None,
    };
    laps.end(Part::Dense);
    for (arm, late) in [
        (LEXICAL, asks_lexical && lexical.is_none()),
        (DENSE, asks_dense && dense.is_none()),
    ] {
        if late {
            outcome.degraded.push(Degradation {
                arm,
                reason: DEADLINE,
            });
        }
    }
    if dense.is_none() && lexical.is_none() {
        if asks_dense || asks_lexical {
            return Err(EngineError::DeadlineExceeded);
        }
        let probed = None;
        return Ok(Ranking { outcome, probed });
    }
    let words = words::QueryWords::of(model, &query.text);
    let evidence = rank::Evidence {
        dense: dense.as_ref(),
        lexical: lexical.as_ref(),
        words: words.as_ref(),
    };
    let ask = rank::Ask {
        query,
        tuning: search.tuning,
        reference: search.reference,
        probe,
        limit,
    };
    let rank::Ranked {
        scored,
        arms,
        probed,
        in_time,
    } = rank::rank(&scope, &evidence, &ask)?;
    laps.end(Part::Rank);
    if !in_time {
        outcome.degraded.push(Degradation {
            arm: WORDS,
            reason: DEADLINE,
        });
    }
    outcome.scored = scored;
    outcome.arms = arms;
    outcome.terms = lexical.map(|lexical| lexical.weights).unwrap_or_default();
    Ok(Ranking { outcome, probed })
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

fn lexical_query(query: &Query, outcome: &mut Outcome) -> Option<Terms> {
    let terms = Terms::of(&query.text);
    if terms.is_none() {
        let reason = if query.text.is_empty() {
            NO_QUERY
        } else {
            NO_KNOWN_WORDS
        };
        outcome.degraded.push(Degradation {
            arm: LEXICAL,
            reason,
        });
    }
    terms
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
            weak: scored.weak,
            duplicates: scored.duplicates.iter().map(|(id, _)| *id).collect(),
            explanation: scored.explanation.clone(),
        });
    }
    Ok(hits)
}

//! Fuses the arms and orders the memories.

use std::collections::HashSet;
use std::ops::Range;

use recalld_algo::decay::{self, Decay};
use recalld_algo::fusion::{Fusion, Moments};
use recalld_algo::question;
use recalld_algo::score::{relevance_from_z, score};
use recalld_store::StoreError;
use recalld_store::codec::header::Header;
use recalld_store::ids::{Micros, Row};
use recalld_vector::{NO_VECTOR, scan};
use roaring::RoaringBitmap;

use super::dense::DenseScores;
use super::explain::Explainer;
use super::gather::{Best, Gathered, gather};
use super::lexical::LexicalScores;
use super::refine::{self, Candidate, Refiner};
use super::tuning::Tuning;
use super::words::QueryWords;
use super::{DENSE, LEXICAL, Scored, order};
use crate::kinds;
use crate::snapshot::{Facts, Snapshot};
use crate::time_limit::TimeLimit;
use crate::types::{Arm, Query};

/// Documents that are re-scored exactly, at most, in a search for few hits. Importance, recency and confidence reorder
/// among these; those that cannot be among the hits are passed over.
pub(super) const CANDIDATES: usize = 128;

/// How many documents are candidates for a search of `limit` hits.
pub(crate) fn candidates(limit: usize) -> usize {
    CANDIDATES.max(limit.saturating_mul(2))
}

/// What may be returned.
pub(crate) struct Scope<'a> {
    pub(crate) snapshot: &'a Snapshot<'a>,
    pub(crate) facts: &'a Facts<'a>,
    /// None: every live document that has not expired.
    pub(crate) permitted: Option<&'a RoaringBitmap>,
    /// Live documents that have expired; not in `permitted`.
    pub(crate) expired: &'a RoaringBitmap,
}

impl Scope<'_> {
    /// Rows of a document, in order.
    pub(crate) fn rows_of(&self, doc: u32) -> impl Iterator<Item = u32> + '_ {
        (doc..self.facts.rows()).take_while(move |&row| self.facts.get(row).offset == row - doc)
    }

    pub(crate) fn allows(&self, doc: u32) -> bool {
        match self.permitted {
            Some(permitted) => permitted.contains(doc),
            None => self.expired.is_empty() || !self.expired.contains(doc),
        }
    }

    /// Whether every live document may be returned.
    pub(super) fn allows_every(&self) -> bool {
        self.permitted.is_none() && self.expired.is_empty()
    }

    /// Whether all of these rows' documents may be returned, as far as can be told at once.
    pub(super) fn allows_all(&self, rows: Range<u32>) -> bool {
        self.allows_every() || self.permitted.is_none() && self.expired.range_cardinality(rows) == 0
    }

    /// Number of documents that may be returned.
    pub(crate) fn documents(&self) -> u64 {
        match self.permitted {
            Some(permitted) => permitted.len(),
            None => self
                .snapshot
                .state
                .memories
                .saturating_sub(self.expired.len()),
        }
    }
}

/// What there is to rank by.
pub(crate) struct Evidence<'a> {
    pub(crate) dense: Option<&'a DenseScores<'a>>,
    pub(crate) lexical: Option<&'a LexicalScores>,
    pub(crate) words: Option<&'a QueryWords>,
}

/// How to rank.
pub(crate) struct Ask<'a> {
    pub(crate) query: &'a Query,
    pub(crate) tuning: &'a Tuning,
    /// Ages are measured from here.
    pub(crate) reference: Micros,
    /// A document whose way through the ranking is wanted.
    pub(crate) probe: Option<Row>,
    pub(crate) limit: TimeLimit<'a>,
}

/// The result of ranking.
pub(crate) struct Ranked {
    /// Best first: all that may be among the hits, or all candidates for a probe.
    pub(crate) scored: Vec<Scored>,
    pub(crate) arms: Vec<Arm>,
    pub(crate) probed: Option<Probed>,
    /// False: there was no time to compare all of the best word by word.
    pub(crate) in_time: bool,
}

/// The way of a document that is not among the candidates.
pub(crate) struct Probed {
    /// Its place by the arms, from 1; 0: not known.
    pub(crate) rank: u32,
    /// As if it were a candidate.
    pub(crate) scored: Scored,
}

/// Fuses the arms, refines the best, scores them exactly and puts them in order.
pub(crate) fn rank(
    scope: &Scope<'_>,
    evidence: &Evidence<'_>,
    ask: &Ask<'_>,
) -> Result<Ranked, StoreError> {
    let Evidence {
        dense,
        lexical,
        words,
    } = *evidence;
    let query = ask.query;
    let Gathered {
        bests,
        with_vector,
        dense: dense_moments,
        lexical: lexical_moments,
    } = gather(scope, dense, lexical)?;
    let cjk = question::cjk_share(&query.text);
    let (of_dense, of_lexical) = ask.tuning.arms(cjk);
    let ranking = Ranking {
        dense: dense_moments,
        lexical: lexical_moments,
        fusion: Fusion {
            dense: of_dense,
            lexical: of_lexical,
        },
    };
    let top = bests.top(&ranking, candidates(query.limit));
    let (front, rest) = top.split_at(top.len().min(refine::refined(query.limit)));

    let refiner = Refiner {
        scope,
        dense,
        lexical,
        words,
        ranking: &ranking,
        tuning: ask.tuning,
        cjk,
    };
    let mut refined = Vec::with_capacity(front.len());
    let mut in_time = true;
    for hit in front {
        in_time = in_time && !ask.limit.passed();
        refined.push(refiner.candidate(bests.doc(hit.id), in_time)?);
    }
    refiner.by_time(&mut refined, &query.text);
    let scorer = Scorer {
        scope,
        ask,
        coverage: refiner.coverage(&refined),
        explainer: (query.explain || ask.probe.is_some())
            .then(|| Explainer::new(&ranking, ask.tuning, &bests)),
    };
    let mut scored = Vec::with_capacity(refined.len());
    let mut bar = Bar::new(query.limit);
    let mut keep = |one: Scored, bar: &mut Bar| {
        // What the request drops is no hit that others would have to beat.
        if one.score >= query.min_score && one.relevance >= query.min_relevance {
            bar.raise(&one);
        }
        scored.push(one);
    };
    for candidate in refined {
        keep(scorer.score(candidate)?, &mut bar);
    }
    // Importance, recency and confidence may lift one of the others.
    let limits = scope.snapshot.evaluator().most()?;
    for hit in rest {
        let doc = bests.doc(hit.id);
        let fused = hit.score + refiner.of_literals(doc);
        if ask.probe.is_none()
            && (bar.is_above(scorer.most(fused, limits))
                || bar.is_above(scorer.most_of(fused, doc)?))
        {
            continue;
        }
        keep(scorer.score(refiner.candidate(doc, false)?)?, &mut bar);
    }
    order(&mut scored);
    let probed = match ask.probe {
        Some(doc) if scored.iter().all(|scored| scored.doc != doc) => {
            let rank = bests
                .iter()
                .find(|best| best.doc == doc.0)
                .map_or(0, |own| {
                    let fused = |best: &Best| ranking.fuse(best.cosine, best.lexical);
                    let before = bests.iter().filter(|best| fused(best) > fused(&own));
                    before.count() as u32 + 1
                });
            let scored = scorer.score(refiner.candidate(doc.0, true)?)?;
            Some(Probed { rank, scored })
        }
        _ => None,
    };
    Ok(Ranked {
        scored,
        arms: arms(scope, evidence, with_vector, query.explain),
        probed,
        in_time,
    })
}

fn arms(scope: &Scope<'_>, evidence: &Evidence<'_>, with_vector: u32, explain: bool) -> Vec<Arm> {
    let mut arms = Vec::new();
    if let Some(dense) = evidence.dense {
        let plan = explain.then(|| dense.plan.clone());
        arms.push(Arm {
            name: DENSE,
            candidates: with_vector,
            method: dense.method,
            plan: plan.unwrap_or_default(),
        });
    }
    if let Some(lexical) = evidence.lexical {
        let docs = lexical.documents();
        let candidates = if scope.allows_every() {
            docs.len()
        } else {
            docs.iter().filter(|doc| scope.allows(**doc)).count()
        };
        arms.push(Arm {
            name: LEXICAL,
            candidates: candidates as u32,
            method: "bm25",
            plan: Vec::new(),
        });
    }
    arms
}

/// Turns candidates into scores.
struct Scorer<'a> {
    scope: &'a Scope<'a>,
    ask: &'a Ask<'a>,
    coverage: f64,
    explainer: Option<Explainer<'a>>,
}

impl Scorer<'_> {
    fn score(&self, candidate: Candidate) -> Result<Scored, StoreError> {
        let query = self.ask.query;
        let header = candidate.header;
        let relevance = self.relevance(candidate.fused);
        let recency = self.recency(candidate.doc, &header)?;
        let score = score(
            &query.weights,
            relevance,
            header.importance,
            recency,
            header.confidence,
        );
        let explanation = self.explainer.as_ref().map(|explainer| {
            let values = [relevance, header.importance, recency];
            explainer.explain(&candidate, self.coverage, values, &query.weights, score)
        });
        Ok(Scored {
            doc: candidate.doc,
            score,
            relevance,
            fused: candidate.fused,
            weak: relevance < WEAK_BELOW,
            passages: candidate.passages,
            duplicates: Vec::new(),
            explanation,
            header,
        })
    }

    fn relevance(&self, fused: f32) -> f64 {
        relevance_from_z(fused) * self.coverage
    }

    fn recency(&self, doc: Row, header: &Header) -> Result<f64, StoreError> {
        let half_life = half_life(self.scope.snapshot, doc, header, self.ask.query)?;
        let age = self.ask.reference.0.saturating_sub(header.occurred_at.0);
        Ok(Decay::Exponential { half_life }.at(age))
    }

    /// The greatest score that a document can have with its importance, age and confidence.
    fn most_of(&self, fused: f32, doc: u32) -> Result<f64, StoreError> {
        let header = refine::header(self.scope, doc)?;
        Ok(score(
            &self.ask.query.weights,
            self.relevance(fused + Z_MARGIN),
            header.importance,
            self.recency(Row(doc), &header)?,
            header.confidence,
        ))
    }

    /// The greatest score that a candidate can have that the arms give so much, whatever its age, when no importance and no
    /// confidence is above these.
    fn most(&self, fused: f32, (importance, confidence): (f64, f64)) -> f64 {
        let relevance = self.relevance(fused + Z_MARGIN);
        score(
            &self.ask.query.weights,
            relevance,
            importance,
            1.0,
            confidence,
        )
    }
}

/// Relevance under which a hit is weak; `docs/decisions/0010-ranking.md` says how often that is right.
pub(crate) const WEAK_BELOW: f64 = 0.6;

/// By how much an exact z-score may be above the one by which candidates are ordered: their cosines are of quantised
/// queries.
const Z_MARGIN: f32 = 0.2;

/// The score that a further candidate must reach to be among the `limit` best.
struct Bar {
    limit: usize,
    /// The best so far, best first.
    best: Vec<f64>,
    /// What they state: memories that say the same will be one hit.
    stated: HashSet<u64>,
}

impl Bar {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            best: Vec::with_capacity(limit + 1),
            stated: HashSet::new(),
        }
    }

    fn raise(&mut self, one: &Scored) {
        if !self.stated.insert(one.header.statement) {
            return;
        }
        let score = one.score;
        let at = self.best.partition_point(|known| *known >= score);
        self.best.insert(at, score);
        self.best.truncate(self.limit);
    }

    fn is_above(&self, score: f64) -> bool {
        self.best.len() == self.limit && self.best.last().is_some_and(|least| *least > score)
    }
}

/// How the arms' raw scores become one number.
pub(super) struct Ranking {
    dense: Option<Moments>,
    lexical: Option<Moments>,
    fusion: Fusion,
}

impl Ranking {
    pub(super) fn fuse(&self, cosine: f32, lexical: f32) -> f32 {
        self.fusion
            .fuse(self.dense_z(cosine), self.lexical_z(lexical))
    }

    /// The same as [`Ranking::fuse`], within rounding, for many documents.
    pub(super) fn linear(&self) -> Linear {
        let (dense, lexical) = self.shares();
        let part = |arm: Option<Moments>, share: f32| match arm {
            Some(moments) if moments.deviation() > 0.0 => {
                let slope = f64::from(share) / moments.deviation();
                (slope, -slope * moments.mean())
            }
            _ => (0.0, 0.0),
        };
        let (by_cosine, first) = part(self.dense, dense);
        let (by_lexical, second) = part(self.lexical, lexical);
        Linear {
            by_cosine: by_cosine as f32,
            by_lexical: by_lexical as f32,
            constant: (first + second) as f32,
            mean_cosine: self.dense.map_or(0.0, |moments| moments.mean() as f32),
        }
    }

    /// A passage without a vector counts as an average one. None: the arm takes no part.
    pub(super) fn dense_z(&self, cosine: f32) -> Option<f32> {
        self.dense.map(|moments| {
            if cosine == NO_VECTOR {
                0.0
            } else {
                moments.z(cosine)
            }
        })
    }

    pub(super) fn lexical_z(&self, lexical: f32) -> Option<f32> {
        self.lexical.map(|moments| moments.z(lexical))
    }

    /// The share that each arm has in the fused value.
    pub(super) fn shares(&self) -> (f32, f32) {
        let part = |arm: Option<Moments>, weight: f32| arm.map_or(0.0, |_| weight);
        let dense = part(self.dense, self.fusion.dense);
        let lexical = part(self.lexical, self.fusion.lexical);
        let sum = dense + lexical;
        if sum > 0.0 {
            (dense / sum, lexical / sum)
        } else {
            (0.0, 0.0)
        }
    }
}

/// [`Ranking::fuse`] as two multiplications.
pub(super) struct Linear {
    by_cosine: f32,
    by_lexical: f32,
    constant: f32,
    mean_cosine: f32,
}

impl Linear {
    #[inline]
    pub(super) fn of(&self, cosine: f32, lexical: f32) -> f32 {
        // A passage without a vector counts as an average one.
        let cosine = if cosine == NO_VECTOR {
            self.mean_cosine
        } else {
            cosine
        };
        cosine * self.by_cosine + lexical * self.by_lexical + self.constant
    }
}

pub(super) fn exact(
    scope: &Scope<'_>,
    dense: &DenseScores<'_>,
    row: u32,
) -> Result<f32, StoreError> {
    let bytes = dense.vector(scope, row)?;
    Ok(bytes.map_or(NO_VECTOR, |bytes| scan::exact_cosine(&dense.query, bytes)))
}

/// In microseconds.
fn half_life(
    snapshot: &Snapshot<'_>,
    doc: Row,
    header: &Header,
    query: &Query,
) -> Result<i64, StoreError> {
    let micros =
        |duration: std::time::Duration| i64::try_from(duration.as_micros()).unwrap_or(decay::NEVER);
    if let Some(kind) = kinds::of_number(header.kind) {
        let given = query.half_lives.get(kind.name).copied();
        return Ok(given.or(kind.half_life).map_or(decay::NEVER, micros));
    }
    let given = if query.half_lives.is_empty() {
        None
    } else {
        query
            .half_lives
            .get(&snapshot.docs.record(snapshot.txn, doc)?.kind)
            .copied()
    };
    Ok(micros(given.unwrap_or(kinds::OTHER_HALF_LIFE)))
}

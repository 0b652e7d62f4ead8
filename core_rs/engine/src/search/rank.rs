//! Fuses the arms and orders the memories.

use std::collections::HashSet;

use recalld_algo::decay::{self, Decay};
use recalld_algo::fusion::{Fusion, Moments};
use recalld_algo::question;
use recalld_algo::score::{relevance_from_z, score};
use recalld_algo::topk::{Hit, TopK};
use recalld_store::StoreError;
use recalld_store::codec::header::Header;
use recalld_store::ids::{Micros, Row};
use recalld_vector::{NO_VECTOR, scan};
use roaring::RoaringBitmap;

use super::dense::{DenseScores, Seen};
use super::explain::Explainer;
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
const CANDIDATES: usize = 128;

/// Observations by which the moments of a small namespace are steadied: with three memories, a z-score would only say
/// which of the three is best. Cosines of unrelated texts under the static model lie around .1 with a deviation of
/// about .1; a passage without any of the words has no BM25 score.
const PRIOR_DOCUMENTS: f64 = 8.0;
const PRIOR_COSINE: (f64, f64) = (0.1, 0.1);
/// As shares of the best score that the query allows.
const PRIOR_LEXICAL: (f64, f64) = (0.02, 0.08);

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

/// A document's scores: the cosine of its nearest passage, and BM25 of the whole.
#[derive(Clone, Copy)]
pub(super) struct Best {
    pub(super) doc: u32,
    pub(super) cosine: f32,
    pub(super) lexical: f32,
}

/// The documents to be ranked, column by column, since every one of them passes through here.
#[derive(Default)]
pub(super) struct Bests {
    docs: Vec<u32>,
    cosines: Vec<f32>,
    lexical: Vec<f32>,
}

impl Bests {
    fn with_capacity(documents: usize) -> Self {
        Self {
            docs: Vec::with_capacity(documents),
            cosines: Vec::with_capacity(documents),
            lexical: Vec::with_capacity(documents),
        }
    }

    fn push(&mut self, best: Best) {
        self.docs.push(best.doc);
        self.cosines.push(best.cosine);
        self.lexical.push(best.lexical);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Best> + '_ {
        let columns = self.docs.iter().zip(&self.cosines).zip(&self.lexical);
        columns.map(|((&doc, &cosine), &lexical)| Best {
            doc,
            cosine,
            lexical,
        })
    }

    /// The best by the arms alone, best first, as places in the columns. Within rounding they have the value that
    /// [`Ranking::fuse`] gives.
    fn top(&self, ranking: &Ranking, count: usize) -> Vec<Hit> {
        let [by_cosine, by_lexical, constant] = ranking.linear();
        // A passage without a vector counts as an average one.
        let mean = ranking.dense.map_or(0.0, |moments| moments.mean() as f32);
        let fused: Vec<f32> = self
            .cosines
            .iter()
            .zip(&self.lexical)
            .map(|(&cosine, &lexical)| {
                let cosine = if cosine == NO_VECTOR { mean } else { cosine };
                cosine * by_cosine + lexical * by_lexical + constant
            })
            .collect();
        let mut top = TopK::new(count);
        top.extend_dense(&fused);
        top.into_sorted()
    }
}

/// Sums from which moments are made.
#[derive(Default)]
struct Sums {
    count: f64,
    sum: f64,
    squares: f64,
}

/// Partial sums that are kept side by side: one long chain of additions would take most of the time of ranking.
const LANES: usize = 8;

impl Sums {
    /// Of a value of every document; those without a vector are left out.
    fn over(values: &[f32]) -> Self {
        let mut lanes: [Self; LANES] = Default::default();
        let (chunks, rest) = values.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, &value) in lanes.iter_mut().zip(chunk) {
                lane.add(value);
            }
        }
        for (lane, &value) in lanes.iter_mut().zip(rest) {
            lane.add(value);
        }
        lanes.into_iter().fold(Self::default(), |all, lane| Self {
            count: all.count + lane.count,
            sum: all.sum + lane.sum,
            squares: all.squares + lane.squares,
        })
    }

    #[inline]
    fn add(&mut self, value: f32) {
        let (one, value) = if value == NO_VECTOR {
            (0.0, 0.0)
        } else {
            (1.0, f64::from(value))
        };
        self.count += one;
        self.sum += value;
        self.squares += value * value;
    }

    /// Moments of what was added, with the prior's pseudo-observations, `unit` being the prior's unit.
    fn moments(&self, prior: (f64, f64), unit: f64) -> Moments {
        let (mean, deviation) = (prior.0 * unit, prior.1 * unit);
        let count = self.count + PRIOR_DOCUMENTS;
        let sum = self.sum + PRIOR_DOCUMENTS * mean;
        let squares = self.squares + PRIOR_DOCUMENTS * (mean * mean + deviation * deviation);
        // The mean values stand for sums over one document, so that the count may be fractional.
        Moments::from_sums(1, sum / count, squares / count)
    }
}

/// What there is to rank by.
pub(crate) struct Evidence<'a> {
    pub(crate) dense: Option<&'a DenseScores>,
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
    let (bests, cosine_moments) = gather(scope, dense, lexical)?;
    let cjk = question::cjk_share(&query.text);
    let (of_dense, of_lexical) = ask.tuning.arms(cjk);
    let ranking = Ranking {
        dense: dense.map(|_| cosine_moments),
        lexical: lexical.map(|lexical| lexical_moments(scope, lexical, &bests)),
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
        refined.push(refiner.candidate(bests.docs[hit.id as usize], in_time)?);
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
    for hit in rest {
        let doc = bests.docs[hit.id as usize];
        let fused = hit.score + refiner.of_literals(doc);
        if ask.probe.is_none()
            && (bar.is_above(scorer.most(fused)) || bar.is_above(scorer.most_of(fused, doc)?))
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
        arms: arms(dense, lexical, &bests, query.explain),
        probed,
        in_time,
    })
}

fn arms(
    dense: Option<&DenseScores>,
    lexical: Option<&LexicalScores>,
    bests: &Bests,
    explain: bool,
) -> Vec<Arm> {
    let mut arms = Vec::new();
    if let Some(dense) = dense {
        let candidates = bests
            .cosines
            .iter()
            .filter(|cosine| **cosine != NO_VECTOR)
            .count() as u32;
        arms.push(Arm {
            name: DENSE,
            candidates,
            method: dense.method,
            plan: if explain {
                dense.plan.clone()
            } else {
                Vec::new()
            },
        });
    }
    if lexical.is_some() {
        let candidates = bests.lexical.iter().filter(|score| **score > 0.0).count() as u32;
        arms.push(Arm {
            name: LEXICAL,
            candidates,
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

    /// The greatest score that a candidate can have that the arms give so much, whatever its importance, age and
    /// confidence.
    fn most(&self, fused: f32) -> f64 {
        let relevance = self.relevance(fused + Z_MARGIN);
        score(&self.ask.query.weights, relevance, 1.0, 1.0, 1.0)
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

    /// What a cosine and a lexical score are multiplied by, and what is added.
    fn linear(&self) -> [f32; 3] {
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
        [by_cosine as f32, by_lexical as f32, (first + second) as f32]
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

/// The documents to be ranked with their best passages, and the moments of the dense arm.
fn gather(
    scope: &Scope<'_>,
    dense: Option<&DenseScores>,
    lexical: Option<&LexicalScores>,
) -> Result<(Bests, Moments), StoreError> {
    let lexical_of = |doc: u32| lexical.map_or(0.0, |lexical| lexical.document(doc));
    let mut sums = Sums::default();
    let mut bests = Bests::default();
    match dense.map(|dense| (dense, &dense.seen)) {
        Some((_, Seen::Rows(cosines))) => {
            bests = match scope.permitted {
                Some(permitted) => {
                    let mut bests = Bests::with_capacity(permitted.len() as usize);
                    for doc in permitted {
                        bests.push(Best {
                            doc,
                            cosine: best(scope.rows_of(doc).map(|row| cosines.get(row))),
                            lexical: lexical_of(doc),
                        });
                    }
                    bests
                }
                None => every(scope, |row| cosines.get(row), lexical_of),
            };
            sums = Sums::over(&bests.cosines);
        }
        Some((dense, Seen::Nearest { rows, sample })) => {
            for &cosine in sample {
                sums.add(cosine);
            }
            let mut docs: Vec<u32> = rows
                .iter()
                .map(|&row| scope.facts.document(row).0)
                .collect();
            docs.extend(lexical_candidates(lexical, rows.len()));
            docs.sort_unstable();
            docs.dedup();
            for doc in docs.into_iter().filter(|&doc| scope.allows(doc)) {
                let mut cosine = NO_VECTOR;
                for row in scope.rows_of(doc) {
                    cosine = cosine.max(exact(scope, dense, row)?);
                }
                bests.push(Best {
                    doc,
                    cosine,
                    lexical: lexical_of(doc),
                });
            }
        }
        None => {
            let mut docs = lexical
                .map(LexicalScores::documents)
                .unwrap_or_default()
                .to_vec();
            docs.sort_unstable();
            for doc in docs.into_iter().filter(|&doc| scope.allows(doc)) {
                bests.push(Best {
                    doc,
                    cosine: NO_VECTOR,
                    lexical: lexical_of(doc),
                });
            }
        }
    }
    Ok((bests, sums.moments(PRIOR_COSINE, 1.0)))
}

fn best(cosines: impl Iterator<Item = f32>) -> f32 {
    cosines.fold(NO_VECTOR, f32::max)
}

/// All documents that may be returned, in one pass over the rows.
fn every(scope: &Scope<'_>, cosine: impl Fn(u32) -> f32, lexical: impl Fn(u32) -> f32) -> Bests {
    let mut bests = Bests::with_capacity(scope.documents() as usize);
    let mut skipping = true;
    for (row, facts) in scope.facts.iter() {
        if facts.offset == 0 {
            skipping = !facts.alive || !scope.allows(row);
            if !skipping {
                bests.push(Best {
                    doc: row,
                    cosine: cosine(row),
                    lexical: lexical(row),
                });
            }
        } else if !skipping && let Some(best) = bests.cosines.last_mut() {
            *best = best.max(cosine(row));
        }
    }
    bests
}

/// Documents with the best lexical scores.
fn lexical_candidates(lexical: Option<&LexicalScores>, wanted: usize) -> Vec<u32> {
    let Some(lexical) = lexical else {
        return Vec::new();
    };
    let mut top = TopK::new(wanted.max(CANDIDATES));
    for &doc in lexical.documents() {
        top.push(doc, lexical.document(doc));
    }
    top.into_sorted().into_iter().map(|hit| hit.id).collect()
}

/// Moments over all documents that may be returned; those without a word of the query have 0.
fn lexical_moments(scope: &Scope<'_>, lexical: &LexicalScores, bests: &Bests) -> Moments {
    let mut sums = Sums::default();
    let documents = scope.documents();
    if bests.docs.len() as u64 == documents {
        sums = Sums::over(&bests.lexical);
    } else {
        // Only candidates were gathered; of the others, those without a score count as 0.
        for &doc in lexical.documents().iter().filter(|doc| scope.allows(**doc)) {
            sums.add(lexical.document(doc));
        }
        sums.count = sums.count.max(documents as f64);
    }
    sums.moments(PRIOR_LEXICAL, lexical.most.max(f64::MIN_POSITIVE))
}

pub(super) fn exact(scope: &Scope<'_>, dense: &DenseScores, row: u32) -> Result<f32, StoreError> {
    let bytes = scope.snapshot.docs.vector(scope.snapshot.txn, Row(row))?;
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

//! Gathers the documents to be ranked, each with its scores by the arms, and the moments of the arms over all documents.
//!
//! Every document of a scanned namespace passes through here in every search: what is done to one must be done to many at
//! once, and nothing may be looked up for it.

use std::ops::Range;

use recalld_algo::fusion::Moments;
use recalld_algo::topk::{Hit, TopK};
use recalld_store::StoreError;
use recalld_store::codec::rows;
use recalld_vector::{NO_VECTOR, scan};

use super::dense::{DenseScores, Seen};
use super::lexical::LexicalScores;
use super::rank::{CANDIDATES, Ranking, Scope};

/// Observations by which the moments of a small namespace are steadied: with three memories, a z-score would only say
/// which of the three is best. Cosines of unrelated texts under the static model lie around .1 with a deviation of
/// about .1; a passage without any of the words has no BM25 score.
const PRIOR_DOCUMENTS: f64 = 8.0;
const PRIOR_COSINE: (f64, f64) = (0.1, 0.1);
/// As shares of the best score that the query allows.
const PRIOR_LEXICAL: (f64, f64) = (0.02, 0.08);

/// The documents to be ranked and the moments of the arms over all that may be returned.
pub(super) struct Gathered {
    pub(super) bests: Bests,
    /// How many of them have a vector.
    pub(super) with_vector: u32,
    /// None: the arm takes no part.
    pub(super) dense: Option<Moments>,
    pub(super) lexical: Option<Moments>,
}

/// A document's scores: the cosine of its nearest passage, and BM25 of the whole.
#[derive(Clone, Copy)]
pub(super) struct Best {
    pub(super) doc: u32,
    pub(super) cosine: f32,
    pub(super) lexical: f32,
}

/// The documents to be ranked, column by column.
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

    /// Documents that follow each other; without lexical scores they have none of the words.
    fn extend(&mut self, docs: Range<u32>, cosines: &[f32], lexical: Option<&[f32]>) {
        self.docs.extend(docs);
        self.cosines.extend_from_slice(cosines);
        match lexical {
            Some(lexical) => self.lexical.extend_from_slice(lexical),
            None => self.lexical.resize(self.docs.len(), 0.0),
        }
    }

    /// The document at a place of the columns.
    pub(super) fn doc(&self, place: u32) -> u32 {
        self.docs[place as usize]
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
    pub(super) fn top(&self, ranking: &Ranking, count: usize) -> Vec<Hit> {
        const RUN: usize = 64;
        let linear = ranking.linear();
        let mut fused = [0.0; RUN];
        let mut top = TopK::new(count);
        let runs = self.cosines.chunks(RUN).zip(self.lexical.chunks(RUN));
        for (first, (cosines, lexical)) in (0..).step_by(RUN).zip(runs) {
            for ((fused, &cosine), &lexical) in fused.iter_mut().zip(cosines).zip(lexical) {
                *fused = linear.of(cosine, lexical);
            }
            top.extend_dense(first, &fused[..cosines.len()]);
        }
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

impl Sums {
    /// Of a value of every document; those without a vector are left out.
    fn over(values: &[f32]) -> Self {
        // Partial sums that are kept side by side, since one long chain of additions would take most of the time of
        // ranking; each of so few values that single precision does.
        const LANES: usize = 16;
        const RUN: usize = 16 * LANES;
        let mut all = Self::default();
        for run in values.chunks(RUN) {
            let (mut counts, mut sums, mut squares) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
            let mut add = |lane: usize, value: f32| {
                let (one, value) = if value == NO_VECTOR {
                    (0.0, 0.0)
                } else {
                    (1.0, value)
                };
                counts[lane] += one;
                sums[lane] += value;
                squares[lane] += value * value;
            };
            let (chunks, rest) = run.as_chunks::<LANES>();
            for chunk in chunks {
                for (lane, &value) in chunk.iter().enumerate() {
                    add(lane, value);
                }
            }
            for (lane, &value) in rest.iter().enumerate() {
                add(lane, value);
            }
            let total = |lanes: [f32; LANES]| lanes.iter().copied().map(f64::from).sum::<f64>();
            all.count += total(counts);
            all.sum += total(sums);
            all.squares += total(squares);
        }
        all
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

/// The documents to be ranked with their best passages, and the moments of the arms.
pub(super) fn gather(
    scope: &Scope<'_>,
    dense: Option<&DenseScores<'_>>,
    lexical: Option<&LexicalScores>,
) -> Result<Gathered, StoreError> {
    let (bests, sample) = match dense.map(|dense| (dense, &dense.seen)) {
        Some((_, Seen::Rows(cosines))) => {
            let bests = match scope.permitted {
                Some(_) => permitted(scope, cosines.by_row(), lexical),
                None => every(scope, cosines.by_row(), lexical),
            };
            (bests, None)
        }
        Some((dense, Seen::Nearest { found, sample })) => {
            let bests = candidates(scope, dense, found, lexical)?;
            (bests, Some(Sums::over(sample)))
        }
        None => (with_words(scope, lexical), None),
    };
    let cosines = Sums::over(&bests.cosines);
    Ok(Gathered {
        with_vector: cosines.count as u32,
        dense: dense.map(|_| sample.unwrap_or(cosines).moments(PRIOR_COSINE, 1.0)),
        lexical: lexical.map(|lexical| lexical_moments(scope, lexical, &bests)),
        bests,
    })
}

/// All documents of a selection.
fn permitted(scope: &Scope<'_>, cosines: &[f32], lexical: Option<&LexicalScores>) -> Bests {
    let mut bests = Bests::with_capacity(scope.documents() as usize);
    for doc in scope.permitted.into_iter().flatten() {
        let rows = scope.rows_of(doc).map(|row| cosine_of(cosines, row));
        bests.push(Best {
            doc,
            cosine: rows.fold(NO_VECTOR, f32::max),
            lexical: lexical_of(lexical, doc),
        });
    }
    bests
}

/// All documents that may be returned, in one pass over the rows.
fn every(scope: &Scope<'_>, cosines: &[f32], lexical: Option<&LexicalScores>) -> Bests {
    let mut bests = Bests::with_capacity(scope.documents() as usize);
    let mut skipping = true;
    for (first, run) in scope.facts.runs() {
        let docs = first..first + rows::count(run);
        let range = docs.start as usize..docs.end as usize;
        let scores = lexical.map(|lexical| lexical.by_document().get(range.clone()));
        if rows::each_begins_a_document(run)
            && scope.allows_all(docs.clone())
            && let Some(cosines) = cosines.get(range)
            && scores.is_none_or(|scores| scores.is_some())
        {
            bests.extend(docs, cosines, scores.flatten());
            skipping = false;
            continue;
        }
        for (row, facts) in docs.zip(rows::iter(run)) {
            let cosine = cosine_of(cosines, row);
            if facts.offset == 0 {
                skipping = !facts.alive || !scope.allows(row);
                if !skipping {
                    bests.push(Best {
                        doc: row,
                        cosine,
                        lexical: lexical_of(lexical, row),
                    });
                }
            } else if !skipping && let Some(best) = bests.cosines.last_mut() {
                *best = best.max(cosine);
            }
        }
    }
    bests
}

/// What an index found, and the best by words. As in a scan, cosines are those of the quantised query.
fn candidates(
    scope: &Scope<'_>,
    dense: &DenseScores<'_>,
    found: &[Hit],
    lexical: Option<&LexicalScores>,
) -> Result<Bests, StoreError> {
    let mut near: Vec<(u32, f32)> = found
        .iter()
        .map(|hit| (scope.facts.document(hit.id).0, hit.score))
        .collect();
    near.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    near.dedup_by_key(|(doc, _)| *doc);
    let known = near.len();
    for hit in lexical.map_or_else(Vec::new, |lexical| lexical.top(found.len().max(CANDIDATES))) {
        if near[..known]
            .binary_search_by_key(&hit.id, |(doc, _)| *doc)
            .is_err()
        {
            let mut cosine = NO_VECTOR;
            for row in scope.rows_of(hit.id) {
                let vector = dense.vector(scope, row)?;
                let nearness = vector.map(|vector| scan::scan_row(&dense.query, vector));
                cosine = cosine.max(nearness.unwrap_or(NO_VECTOR));
            }
            near.push((hit.id, cosine));
        }
    }
    near.sort_unstable_by_key(|(doc, _)| *doc);
    let mut bests = Bests::with_capacity(near.len());
    for (doc, cosine) in near.into_iter().filter(|(doc, _)| scope.allows(*doc)) {
        let lexical = lexical_of(lexical, doc);
        bests.push(Best {
            doc,
            cosine,
            lexical,
        });
    }
    Ok(bests)
}

/// The documents that hold a word of the query.
fn with_words(scope: &Scope<'_>, lexical: Option<&LexicalScores>) -> Bests {
    let docs = lexical.map(LexicalScores::documents).unwrap_or_default();
    let mut docs: Vec<u32> = docs
        .iter()
        .copied()
        .filter(|&doc| scope.allows(doc))
        .collect();
    docs.sort_unstable();
    let mut bests = Bests::with_capacity(docs.len());
    for doc in docs {
        bests.push(Best {
            doc,
            cosine: NO_VECTOR,
            lexical: lexical_of(lexical, doc),
        });
    }
    bests
}

fn cosine_of(cosines: &[f32], row: u32) -> f32 {
    cosines.get(row as usize).copied().unwrap_or(NO_VECTOR)
}

fn lexical_of(lexical: Option<&LexicalScores>, doc: u32) -> f32 {
    lexical.map_or(0.0, |lexical| lexical.document(doc))
}

/// Moments over all documents that may be returned; those without a word of the query have 0.
fn lexical_moments(scope: &Scope<'_>, lexical: &LexicalScores, bests: &Bests) -> Moments {
    let documents = scope.documents();
    let sums = if bests.docs.len() as u64 == documents {
        Sums::over(&bests.lexical)
    } else {
        // Only candidates were gathered; of the others, those without a score count as 0.
        let sums = if scope.allows_every() {
            Sums::over(lexical.by_document())
        } else {
            let docs = lexical.documents().iter().filter(|doc| scope.allows(**doc));
            Sums::over(&docs.map(|&doc| lexical.document(doc)).collect::<Vec<_>>())
        };
        Sums {
            count: documents as f64,
            ..sums
        }
    };
    sums.moments(PRIOR_LEXICAL, lexical.most.max(f64::MIN_POSITIVE))
}

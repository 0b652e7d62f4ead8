//! Says of a candidate how its score came about.

use recalld_algo::score::Weights;

use super::gather::{Best, Bests};
use super::rank::Ranking;
use super::refine::{Candidate, Refiner};
use super::tuning::Tuning;
use super::{DENSE, LEXICAL};
use crate::explain::{Explanation, Factor, Signal};

/// What an explanation needs beyond the candidate.
pub(super) struct Explainer<'a> {
    ranking: &'a Ranking,
    tuning: &'a Tuning,
    bests: &'a Bests,
}

impl<'a> Explainer<'a> {
    pub(super) fn new(ranking: &'a Ranking, tuning: &'a Tuning, bests: &'a Bests) -> Self {
        Self {
            ranking,
            tuning,
            bests,
        }
    }

    /// `values` are those of the factors.
    pub(super) fn explain(
        &self,
        candidate: &Candidate,
        coverage: f64,
        values: [f64; 3],
        weights: &Weights,
        score: f64,
    ) -> Explanation {
        let names = ["relevance", "importance", "recency"];
        let weights = [weights.relevance(), weights.importance(), weights.recency()];
        let confidence = candidate.header.confidence;
        let factors = std::array::from_fn(|at| Factor {
            name: names[at],
            value: values[at],
            weight: weights[at],
            contribution: confidence * weights[at] * values[at],
        });
        let signals = self.signals(candidate);
        Explanation {
            fused: signals.iter().map(Signal::contribution).sum(),
            signals,
            coverage,
            relevance: values[0],
            factors,
            confidence,
            score,
        }
    }

    fn signals(&self, candidate: &Candidate) -> Vec<Signal> {
        let mut signals = Vec::with_capacity(6);
        let mut add = |name, rank, raw: f32, normalized: f32, weight: f32| {
            signals.push(Signal {
                name,
                rank,
                raw: raw.into(),
                normalized: normalized.into(),
                weight: weight.into(),
            });
        };
        let (dense, lexical) = self.ranking.shares();
        if let Some(z) = self.ranking.dense_z(candidate.cosine) {
            let rank = self.rank(candidate, |best| best.cosine);
            add(DENSE, rank, candidate.cosine.max(-1.0), z, dense);
        }
        if let Some(z) = self.ranking.lexical_z(candidate.lexical) {
            let rank = if candidate.lexical > 0.0 {
                self.rank(candidate, |best| best.lexical)
            } else {
                0
            };
            add(LEXICAL, rank, candidate.lexical, z, lexical);
        }
        let (raw, normalized) = Refiner::words_signal(candidate);
        add("words", 0, raw, normalized, self.tuning.words);
        let names = candidate
            .matched
            .as_ref()
            .map_or(0.0, |matched| matched.names);
        add("names", 0, names, names, self.tuning.names);
        let literals = candidate.literals;
        add("literals", 0, literals, literals, self.tuning.literals);
        add("update", 0, candidate.update, candidate.update, 1.0);
        signals
    }

    /// The place of a candidate by an arm, as its approximate scores have it; 0 when it was not looked at.
    fn rank(&self, candidate: &Candidate, score: impl Fn(&Best) -> f32) -> u32 {
        let own = self.bests.iter().find(|best| best.doc == candidate.doc.0);
        own.map_or(0, |own| {
            let before = self.bests.iter().filter(|best| score(best) > score(&own));
            before.count() as u32 + 1
        })
    }
}

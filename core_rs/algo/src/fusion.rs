//! Fusion of the dense and the lexical arm into one relevance.
//!
//! Cosines and BM25 scores have no unit in common, so each arm's score is first turned into its distance from that arm's
//! mean over *all* documents of the namespace, in standard deviations (z-score), and the distances are then added with
//! fixed weights. That beat reciprocal rank fusion on the retrieval sets, most of all where one arm is noise: an arm that
//! matches nothing has equal scores everywhere and takes no part, while its ranks would still be added.
//!
//! A fused value compares documents within one query of one namespace. It must never be shown or compared across
//! queries; [`crate::score::relevance_from_z`] maps it to 0..1.

/// A deviation below this share of the mean is rounding noise of scores that are all equal.
const EQUAL_WITHIN: f64 = 1e-6;

/// Mean and standard deviation of one arm's scores over all documents, those that it did not score included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    mean: f64,
    deviation: f64,
}

impl Moments {
    /// From the number of documents, the sum of their scores and the sum of the squares of their scores.
    ///
    /// An arm that scores few documents (BM25) adds up only those and still gives the number of all: the others count as
    /// 0. All sums are finite. Of no documents, mean and deviation are 0.
    #[must_use]
    pub fn from_sums(documents: u64, sum: f64, sum_of_squares: f64) -> Self {
        if documents == 0 {
            return Self {
                mean: 0.0,
                deviation: 0.0,
            };
        }
        let documents = documents as f64;
        let mean = sum / documents;
        // The difference of two nearly equal numbers may come out below zero.
        let deviation = (sum_of_squares / documents - mean * mean).max(0.0).sqrt();
        Self {
            mean,
            deviation: if deviation <= EQUAL_WITHIN * mean.abs() {
                0.0
            } else {
                deviation
            },
        }
    }

    /// From the score of every document.
    #[must_use]
    pub fn of(scores: impl IntoIterator<Item = f32>) -> Self {
        let (documents, sum, sum_of_squares) = scores.into_iter().map(f64::from).fold(
            (0u64, 0.0, 0.0),
            |(documents, sum, squares), score| {
                (documents + 1, sum + score, squares + score * score)
            },
        );
        Self::from_sums(documents, sum, sum_of_squares)
    }

    /// The mean score.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard deviation of the population; exactly 0 when all scores are equal up to rounding.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// How many deviations `score` lies above the mean; 0 for every score when the deviation is 0.
    #[inline]
    #[must_use]
    pub fn z(&self, score: f32) -> f32 {
        if self.deviation == 0.0 {
            return 0.0;
        }
        ((f64::from(score) - self.mean) / self.deviation) as f32
    }
}

/// How much each arm's z-score counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fusion {
    /// Weight of the dense arm, above 0.
    pub dense: f32,
    /// Weight of the lexical arm, above 0.
    pub lexical: f32,
}

impl Default for Fusion {
    /// 0.7 and 0.3, chosen on the retrieval sets: no fixed mix is the best everywhere, and this one is near it on most.
    fn default() -> Self {
        Self {
            dense: 0.7,
            lexical: 0.3,
        }
    }
}

impl Fusion {
    /// The weighted mean of the z-scores there are.
    ///
    /// An arm is `None` when it did not take part in the query at all (a query without a vector, or without words); the
    /// other then counts alone. A document that an arm took part in and did not score has the z-score of 0, not `None`.
    /// Without either the answer is 0, the relevance of an average document.
    #[inline]
    #[must_use]
    pub fn fuse(&self, dense: Option<f32>, lexical: Option<f32>) -> f32 {
        match (dense, lexical) {
            (Some(dense), Some(lexical)) => {
                (self.dense * dense + self.lexical * lexical) / (self.dense + self.lexical)
            }
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Mean, and the deviation from it in a second pass.
    fn reference(scores: &[f32]) -> (f64, f64) {
        let documents = scores.len() as f64;
        let mean = scores.iter().copied().map(f64::from).sum::<f64>() / documents;
        let variance = scores
            .iter()
            .map(|&score| (f64::from(score) - mean).powi(2))
            .sum::<f64>()
            / documents;
        (mean, variance.sqrt())
    }

    #[test]
    fn documents_without_a_score_count_as_zero() {
        let sums = Moments::from_sums(4, 8.0, 64.0);
        assert_eq!(sums, Moments::of([8.0, 0.0, 0.0, 0.0]));
        assert!((sums.mean() - 2.0).abs() < 1e-12);
        assert!((sums.deviation() - 12f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn equal_scores_take_no_part() {
        for scores in [
            vec![],
            vec![0.0; 5],
            vec![0.1; 10_001],
            vec![-3.3; 7],
            vec![1e30; 3],
        ] {
            let moments = Moments::of(scores.iter().copied());
            assert_eq!(moments.z(0.5).to_bits(), 0f32.to_bits(), "{moments:?}");
        }
    }

    #[test]
    fn a_missing_arm_leaves_the_other_at_full_weight() {
        let fusion = Fusion::default();
        assert_eq!(fusion.fuse(Some(2.5), None).to_bits(), 2.5f32.to_bits());
        assert_eq!(
            fusion.fuse(None, Some(-1.25)).to_bits(),
            (-1.25f32).to_bits()
        );
        assert_eq!(fusion.fuse(None, None).to_bits(), 0f32.to_bits());
        assert!((fusion.fuse(Some(2.0), Some(1.0)) - 1.7).abs() < 1e-6);
        let doubled = Fusion {
            dense: 1.4,
            lexical: 0.6,
        };
        assert!((doubled.fuse(Some(2.0), Some(1.0)) - 1.7).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn equals_the_two_pass_moments(scores in vec(-100f32..100.0, 1..300)) {
            let (mean, deviation) = reference(&scores);
            let moments = Moments::of(scores.iter().copied());
            prop_assert!((moments.mean() - mean).abs() < 1e-9);
            prop_assert!((moments.deviation() - deviation).abs() < 1e-5, "{} {deviation}", moments.deviation());
        }

        #[test]
        fn z_scores_do_not_depend_on_unit_or_origin(
            scores in vec(0f32..1.0, 2..100), unit in 0.5f32..50.0, origin in -5f32..5.0,
        ) {
            let moved: Vec<f32> = scores.iter().map(|score| score * unit + origin).collect();
            let (before, after) = (Moments::of(scores.iter().copied()), Moments::of(moved.iter().copied()));
            prop_assume!(before.deviation() > 1e-3);
            for (&score, &other) in scores.iter().zip(&moved) {
                prop_assert!((before.z(score) - after.z(other)).abs() < 1e-2);
            }
        }

        #[test]
        fn fused_lies_between_the_arms_and_follows_both(
            dense in -10f32..10.0, lexical in -10f32..10.0, more in 0.01f32..5.0,
        ) {
            let fusion = Fusion::default();
            let fused = fusion.fuse(Some(dense), Some(lexical));
            prop_assert!(fused >= dense.min(lexical) - 1e-5 && fused <= dense.max(lexical) + 1e-5);
            prop_assert!(fusion.fuse(Some(dense + more), Some(lexical)) > fused);
            prop_assert!(fusion.fuse(Some(dense), Some(lexical + more)) > fused);
        }
    }
}

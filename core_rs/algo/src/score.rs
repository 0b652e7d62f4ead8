//! The score of a memory: its relevance, importance and recency, weighed, times its confidence.
//!
//! Scores lie in 0..1 and compare the hits of one response. They are not probabilities, and they must not be compared
//! across namespaces, because the relevance they start from is relative to the documents around it.

/// Fused z-score at which the relevance is 0.5.
const MIDPOINT: f64 = 1.8;
/// How fast the relevance rises around the midpoint, for each deviation.
const STEEPNESS: f64 = 1.0;

/// Why weights were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// A weight is negative, infinite or not a number.
    #[error("each weight must be a finite number of at least 0")]
    OutOfRange,
    /// No weight is above 0, or they are too small to be divided by their sum.
    #[error("at least one weight must be above 0")]
    AllZero,
}

/// How the parts of a score are weighed. Always sums to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    relevance: f64,
    importance: f64,
    recency: f64,
}

impl Default for Weights {
    /// 0.6, 0.3 and 0.1.
    fn default() -> Self {
        Self {
            relevance: 0.6,
            importance: 0.3,
            recency: 0.1,
        }
    }
}

impl Weights {
    /// Divides the weights by their sum.
    pub fn new(relevance: f64, importance: f64, recency: f64) -> Result<Self, WeightsError> {
        let sum = relevance + importance + recency;
        // The sum of finite weights may still overflow.
        if [relevance, importance, recency]
            .iter()
            .any(|&weight| weight < 0.0)
            || !sum.is_finite()
        {
            return Err(WeightsError::OutOfRange);
        }
        if !sum.is_normal() {
            return Err(WeightsError::AllZero);
        }
        Ok(Self {
            relevance: relevance / sum,
            importance: importance / sum,
            recency: recency / sum,
        })
    }

    /// Share of the relevance.
    #[must_use]
    pub fn relevance(&self) -> f64 {
        self.relevance
    }

    /// Share of the importance.
    #[must_use]
    pub fn importance(&self) -> f64 {
        self.importance
    }

    /// Share of the recency.
    #[must_use]
    pub fn recency(&self) -> f64 {
        self.recency
    }
}

/// `confidence × (w_rel × relevance + w_imp × importance + w_rec × recency)`, in 0..1.
///
/// Each argument is meant to lie in 0..1; one outside is taken as the nearer end, and what is not a number as 0.
#[inline]
#[must_use]
pub fn score(
    weights: &Weights,
    relevance: f64,
    importance: f64,
    recency: f64,
    confidence: f64,
) -> f64 {
    let weighed = weights.relevance * unit(relevance)
        + weights.importance * unit(importance)
        + weights.recency * unit(recency);
    // The shares may add up to one unit in the last place above 1.
    unit(unit(confidence) * weighed)
}

/// Maps a fused z-score ([`crate::fusion::Fusion::fuse`]) to a relevance in 0..1, without changing any order.
///
/// A logistic curve: an average document (z = 0) has .14, z = 1 has .31, z = 1.8 has .50, z = 4 has .90. The constants
/// are fixed, not fitted, and a z-score is relative to its corpus, so equal relevances in two namespaces do not promise
/// equal usefulness.
#[inline]
#[must_use]
pub fn relevance_from_z(z: f32) -> f64 {
    logistic(z, MIDPOINT, STEEPNESS)
}

/// A logistic curve from 0 to 1 that is .5 at `midpoint`, the same bits on every machine.
#[inline]
#[must_use]
pub fn logistic(z: f32, midpoint: f64, steepness: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-steepness * (f64::from(z) - midpoint)))
}

/// The nearest value in 0..1; 0 for what is not a number.
#[inline]
fn unit(value: f64) -> f64 {
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_defaults_are_normalised() {
        let Weights {
            relevance,
            importance,
            recency,
        } = Weights::default();
        assert!((relevance + importance + recency - 1.0).abs() < 1e-15);
        assert!((score(&Weights::default(), 0.5, 1.0, 0.2, 0.5) - 0.31).abs() < 1e-12);
    }

    #[test]
    fn weights_that_say_nothing_are_refused() {
        for bad in [-0.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for weights in [(bad, 1.0, 1.0), (1.0, bad, 1.0), (1.0, 1.0, bad)] {
                let refused = Weights::new(weights.0, weights.1, weights.2);
                assert_eq!(refused, Err(WeightsError::OutOfRange), "{weights:?}");
            }
        }
        assert_eq!(
            Weights::new(f64::MAX, f64::MAX, 0.0),
            Err(WeightsError::OutOfRange)
        );
        assert_eq!(Weights::new(0.0, -0.0, 0.0), Err(WeightsError::AllZero));
    }

    #[test]
    fn the_curve_goes_through_its_documented_points() {
        for (z, relevance) in [(0.0, 0.14), (1.0, 0.31), (1.8, 0.50), (4.0, 0.90)] {
            assert!((relevance_from_z(z) - relevance).abs() < 0.006, "{z}");
        }
        assert_eq!(relevance_from_z(f32::INFINITY).to_bits(), 1f64.to_bits());
        assert_eq!(
            relevance_from_z(f32::NEG_INFINITY).to_bits(),
            0f64.to_bits()
        );
    }

    fn weights() -> impl Strategy<Value = Weights> {
        [0.001f64..1_000.0, 0.0f64..1_000.0, 0.0f64..1_000.0]
            .prop_map(|[a, b, c]| Weights::new(a, b, c))
            .prop_filter_map("refused", Result::ok)
    }

    proptest! {
        #[test]
        fn lies_in_range_whatever_the_arguments(weights in weights(), arguments: [f64; 4]) {
            let [relevance, importance, recency, confidence] = arguments;
            let score = score(&weights, relevance, importance, recency, confidence);
            prop_assert!((0.0..=1.0).contains(&score), "{score}");
        }

        #[test]
        fn is_the_mean_of_its_parts_times_the_confidence(
            [a, b, c] in [0.001f64..1_000.0, 0.0f64..1_000.0, 0.0f64..1_000.0], parts: [u16; 4],
        ) {
            let [relevance, importance, recency, confidence] = parts.map(|part| f64::from(part) / f64::from(u16::MAX));
            let weights = Weights::new(a, b, c).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let expected = confidence * (a * relevance + b * importance + c * recency) / (a + b + c);
            let score = score(&weights, relevance, importance, recency, confidence);
            prop_assert!((score - expected).abs() < 1e-12, "{score} {expected}");
        }

        #[test]
        fn relevance_keeps_the_order(z in -10f32..10.0, more in 0.001f32..10.0) {
            prop_assert!(relevance_from_z(z + more) > relevance_from_z(z));
        }
    }
}

//! Recency: how much of a memory's freshness is left at an age.
//!
//! Times are integers in microseconds, so that an age is exact and the caller's clock is read once, outside. Every curve
//! is 1 for what is new (or dated in the future), 0.5 at its half-life, never rises with age, and never reaches 0: an old
//! memory ranks lower, it does not vanish.

/// A half-life, in microseconds, that never passes: the value is 1 at every age.
pub const NEVER: i64 = i64::MAX;

/// The curve by which a memory's recency falls with its age.
///
/// Half-lives are in microseconds and at least 1 (a smaller one counts as 1); [`NEVER`] switches decay off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decay {
    /// Halves with every half-life: `2^(-age / half_life)`, as in half-life regression (Settles and Meeder, "A Trainable
    /// Spaced Repetition Model for Language Learning", 2016) with the half-life given instead of trained.
    Exponential {
        /// Age at which the value is 0.5.
        half_life: i64,
    },
    /// Falls fast at first and slowly later: `(1 + 3 age / h)^(-1/2)`. Human forgetting follows a power law (Wixted and
    /// Ebbesen, "On the Form of Forgetting", 1991); the exponent is the one of ACT-R's base-level activation (Anderson
    /// and Schooler, "Reflections of the Environment in Memory", 1991).
    ///
    /// Use strengthens: `h = half_life × (1 + log2(1 + uses))`, so that every doubling of the uses adds one half-life.
    /// The growth is logarithmic on purpose. What is found is used, and what is used is found again: in proportion to
    /// the uses, that circle would keep a popular memory fresh for ever.
    PowerLaw {
        /// Age at which the value is 0.5 for a memory that was never used.
        half_life: i64,
        /// How often the memory has been used.
        uses: u32,
    },
}

impl Decay {
    /// The value at `age` microseconds, above 0 and at most 1.
    #[must_use]
    pub fn at(&self, age: i64) -> f64 {
        let (Self::Exponential { half_life } | Self::PowerLaw { half_life, .. }) = *self;
        if age <= 0 || half_life == NEVER {
            return 1.0;
        }
        let half_lives = age as f64 / half_life.max(1) as f64;
        match *self {
            // An age of more than a thousand half-lives is too small for an f64.
            Self::Exponential { .. } => libm::exp2(-half_lives).max(f64::MIN_POSITIVE),
            Self::PowerLaw { uses, .. } => {
                let strength = 1.0 + libm::log2(1.0 + f64::from(uses));
                1.0 / (1.0 + 3.0 * half_lives / strength).sqrt()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: i64 = 86_400_000_000;

    fn curve() -> impl Strategy<Value = Decay> {
        let half_life = prop_oneof![1i64..1_000, DAY / 24..3_650 * DAY, Just(NEVER - 1)];
        prop_oneof![
            half_life
                .clone()
                .prop_map(|half_life| Decay::Exponential { half_life }),
            (half_life, prop_oneof![0u32..100, any::<u32>()])
                .prop_map(|(half_life, uses)| Decay::PowerLaw { half_life, uses }),
        ]
    }

    #[test]
    fn known_values() {
        let exponential = Decay::Exponential {
            half_life: 30 * DAY,
        };
        let power = Decay::PowerLaw {
            half_life: 30 * DAY,
            uses: 0,
        };
        for (curve, age, value) in [
            (exponential, 30 * DAY, 0.5),
            (exponential, 60 * DAY, 0.25),
            (exponential, 300 * DAY, 1.0 / 1_024.0),
            (power, 30 * DAY, 0.5),
            (power, 150 * DAY, 0.25),
            (power, 30 * 341 * DAY, 1.0 / 32.0),
        ] {
            assert_eq!(
                curve.at(age).to_bits(),
                f64::to_bits(value),
                "{curve:?} {age}"
            );
        }
    }

    #[test]
    fn each_doubling_of_the_uses_adds_a_half_life() {
        for (uses, half_lives) in [(0, 1), (1, 2), (3, 3), (7, 4), (1_023, 11)] {
            let curve = Decay::PowerLaw {
                half_life: DAY,
                uses,
            };
            assert!(
                (curve.at(half_lives * DAY) - 0.5).abs() < 1e-12,
                "{uses} uses"
            );
        }
    }

    #[test]
    fn a_half_life_of_zero_or_less_is_the_shortest() {
        for half_life in [0, -5, i64::MIN] {
            let (shortest, this) = (
                Decay::Exponential { half_life: 1 },
                Decay::Exponential { half_life },
            );
            assert_eq!(this.at(3).to_bits(), shortest.at(3).to_bits());
        }
    }

    proptest! {
        #[test]
        fn is_half_at_the_half_life(half_life in 1i64..3_650 * DAY) {
            for curve in [Decay::Exponential { half_life }, Decay::PowerLaw { half_life, uses: 0 }] {
                prop_assert!((curve.at(half_life) - 0.5).abs() < 1e-12);
            }
        }

        #[test]
        fn never_rises_with_age_and_stays_in_range(
            curve in curve(), age in prop_oneof![-5i64..5, 0..400 * DAY, any::<i64>()], later in 0..i64::MAX,
        ) {
            let (now, then) = (curve.at(age), curve.at(age.saturating_add(later)));
            prop_assert!(now > 0.0 && now <= 1.0 && then > 0.0 && then <= now, "{now} {then}");
            prop_assert!(age > 0 || now.to_bits() == 1f64.to_bits());
        }

        #[test]
        fn use_never_weakens(half_life in 1i64..3_650 * DAY, age: i64, uses in 0u32..u32::MAX) {
            let at = |uses| Decay::PowerLaw { half_life, uses }.at(age);
            prop_assert!(at(uses + 1) >= at(uses));
            prop_assert!(age <= half_life || at(1) > at(0));
        }

        #[test]
        fn never_means_no_decay(age: i64, uses: u32) {
            for curve in [Decay::Exponential { half_life: NEVER }, Decay::PowerLaw { half_life: NEVER, uses }] {
                prop_assert_eq!(curve.at(age).to_bits(), 1f64.to_bits());
            }
        }
    }
}

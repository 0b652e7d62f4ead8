//! The k best of many scores, in one pass.
//!
//! The order is total and depends on nothing but scores and ids: higher score first, then lower id. So the answer is the
//! same however the scores arrive, which is what makes equal queries give equal bytes. Scores that are not a number come
//! last, after negative infinity; the two zeros are equal.
//!
//! Score and id are packed into one integer whose order is the ranking. At most 2k of them are held: when the buffer is
//! full, a selection (Hoare's, linear) drops the worse half, and its worst becomes the bar that later scores must pass.
//! That costs O(n) for n scores, and one comparison for nearly all of them.

/// Scores that are compared with the bar at once.
const RUN: usize = 32;

/// A score and the document that has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The document's number.
    pub id: u32,
    /// Its score.
    pub score: f32,
}

/// Collects the k best hits.
#[derive(Debug, Clone)]
pub struct TopK {
    k: usize,
    /// Ranks of the best so far, unordered: at most 2k.
    ranks: Vec<u64>,
    /// A rank below this is not among the k best.
    bar: u64,
    /// The score of the bar: nearly all scores are below it, and one comparison tells.
    bar_score: f32,
}

impl TopK {
    /// A collector of the `k` best.
    #[must_use]
    pub fn new(k: usize) -> Self {
        Self {
            k,
            ranks: Vec::new(),
            bar: 0,
            bar_score: f32::NEG_INFINITY,
        }
    }

    /// Offers one document. A document that is offered twice may be kept twice.
    #[inline]
    pub fn push(&mut self, id: u32, score: f32) {
        if score < self.bar_score {
            return;
        }
        let rank = rank(id, score);
        if rank >= self.bar {
            self.keep(rank);
        }
    }

    /// Offers the documents `first`, `first + 1` and so on, by their scores.
    pub fn extend_dense(&mut self, first: u32, scores: &[f32]) {
        for (start, run) in (first..).step_by(RUN).zip(scores.chunks(RUN)) {
            // Most runs have none that passes the bar.
            if best_of(run) < self.bar_score {
                continue;
            }
            for (id, &score) in (start..).zip(run) {
                self.push(id, score);
            }
        }
    }

    /// The k best, best first; fewer when fewer were offered.
    #[must_use]
    pub fn into_sorted(mut self) -> Vec<Hit> {
        self.ranks.sort_unstable_by(|a, b| b.cmp(a));
        self.ranks.truncate(self.k);
        self.ranks.into_iter().map(hit).collect()
    }

    fn keep(&mut self, rank: u64) {
        if self.k == 0 {
            return;
        }
        self.ranks.push(rank);
        if self.ranks.len() >= self.k.saturating_mul(2) {
            let (_, &mut worst, _) = self
                .ranks
                .select_nth_unstable_by(self.k - 1, |a, b| b.cmp(a));
            self.ranks.truncate(self.k);
            self.bar = worst;
            self.bar_score = hit(worst).score;
        }
    }
}

/// The greatest of some scores, without those that are not a number; negative infinity of none.
#[inline]
fn best_of(scores: &[f32]) -> f32 {
    // Side by side, so that the compiler compares many at once.
    const LANES: usize = 8;
    let greater = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = scores.as_chunks::<LANES>();
    for chunk in chunks {
        for (best, &score) in lanes.iter_mut().zip(chunk) {
            *best = greater(*best, score);
        }
    }
    lanes
        .iter()
        .chain(rest)
        .copied()
        .fold(f32::NEG_INFINITY, greater)
}

const SIGN: u32 = 1 << 31;

/// An integer that is greater for a better hit: the score's bits, made monotone, above the complement of the id.
#[inline]
fn rank(id: u32, score: f32) -> u64 {
    // Adding zero turns -0 into +0.
    let bits = (score + 0.0).to_bits();
    let monotone = if score.is_nan() {
        0
    } else if bits & SIGN == 0 {
        bits | SIGN
    } else {
        !bits
    };
    u64::from(monotone) << 32 | u64::from(!id)
}

/// The hit that has this rank.
#[inline]
fn hit(rank: u64) -> Hit {
    let monotone = (rank >> 32) as u32;
    let bits = if monotone & SIGN == 0 {
        !monotone
    } else {
        monotone & !SIGN
    };
    Hit {
        id: !(rank as u32),
        score: f32::from_bits(bits),
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn order(a: Hit, b: Hit) -> Ordering {
        let by_score = match (a.score.is_nan(), b.score.is_nan()) {
            (false, false) => (b.score + 0.0).total_cmp(&(a.score + 0.0)),
            (a, b) => a.cmp(&b),
        };
        by_score.then(a.id.cmp(&b.id))
    }

    /// Sorts everything and takes the first k.
    fn reference(mut hits: Vec<Hit>, k: usize) -> Vec<Hit> {
        hits.sort_by(|&a, &b| order(a, b));
        hits.truncate(k);
        hits
    }

    /// NaN equals NaN here, and the zeros are equal.
    fn comparable(hits: &[Hit]) -> Vec<(u32, Option<f32>)> {
        hits.iter()
            .map(|hit| (hit.id, Some(hit.score).filter(|score| !score.is_nan())))
            .collect()
    }

    fn top(hits: &[Hit], k: usize) -> Vec<Hit> {
        let mut top = TopK::new(k);
        for hit in hits {
            top.push(hit.id, hit.score);
        }
        top.into_sorted()
    }

    #[test]
    fn ties_go_to_the_lower_id_and_what_is_not_a_number_comes_last() {
        let scores = [
            0.5,
            f32::NAN,
            f32::NEG_INFINITY,
            0.5,
            -0.0,
            0.0,
            f32::INFINITY,
            -f32::NAN,
        ];
        let mut top = TopK::new(10);
        top.extend_dense(0, &scores);
        let ids: Vec<u32> = top.into_sorted().iter().map(|hit| hit.id).collect();
        assert_eq!(ids, [6, 0, 3, 4, 5, 2, 1, 7]);
    }

    #[test]
    fn of_none_asked_none_are_kept() {
        assert!(top(&[Hit { id: 1, score: 1.0 }], 0).is_empty());
        assert!(top(&[], 3).is_empty());
        assert_eq!(top(&[Hit { id: 1, score: 1.0 }], usize::MAX).len(), 1);
    }

    fn score() -> impl Strategy<Value = f32> {
        // Few distinct scores, so that ties at the bar are common; and any bits at all.
        prop_oneof![
            (-3i8..3).prop_map(|score| f32::from(score) / 2.0),
            any::<u32>().prop_map(f32::from_bits)
        ]
    }

    proptest! {
        #[test]
        fn equals_sorting_everything(
            mut hits in vec((any::<u32>(), score()).prop_map(|(id, score)| Hit { id, score }), 0..400),
            k in prop_oneof![0usize..12, 0usize..500],
        ) {
            let expected = comparable(&reference(hits.clone(), k));
            prop_assert_eq!(&comparable(&top(&hits, k)), &expected);
            hits.reverse();
            prop_assert_eq!(&comparable(&top(&hits, k)), &expected);
        }

        #[test]
        fn offered_in_a_row_is_as_offered_one_by_one(scores in vec(score(), 0..300), first in 0u32..100, k in 0usize..20) {
            let mut dense = TopK::new(k);
            dense.extend_dense(first, &scores);
            let hits: Vec<Hit> = (first..).zip(&scores).map(|(id, &score)| Hit { id, score }).collect();
            prop_assert_eq!(comparable(&dense.into_sorted()), comparable(&top(&hits, k)));
        }

        #[test]
        fn the_best_of_parts_are_the_best_of_the_whole(scores in vec(score(), 0..300), k in 1usize..20) {
            let mut whole = TopK::new(k);
            whole.extend_dense(0, &scores);
            let mut joined = TopK::new(k);
            for (part, chunk) in (0u32..).zip(scores.chunks(50)) {
                let hits: Vec<Hit> =
                    (part * 50..).zip(chunk).map(|(id, &score)| Hit { id, score }).collect();
                for hit in top(&hits, k) {
                    joined.push(hit.id, hit.score);
                }
            }
            prop_assert_eq!(comparable(&whole.into_sorted()), comparable(&joined.into_sorted()));
        }
    }
}

//! A histogram of latencies without a lock: recording one costs three relaxed additions.
//!
//! A snapshot taken while others record may be ahead in one number and behind in another by those.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets in seconds; one more bucket has none. The bound of the SLA stands beside these.
const BOUNDS: [f64; 14] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
];

/// Counts of latencies.
#[derive(Debug)]
pub struct Histogram {
    /// Upper bounds, ascending.
    bounds: Vec<f64>,
    /// Calls in each bucket alone.
    buckets: Vec<AtomicU64>,
    nanoseconds: AtomicU64,
}

/// What a histogram held.
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies {
    /// Upper bound in seconds and latencies at or below it; the last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
    /// Sum of all latencies.
    pub seconds: f64,
}

impl Histogram {
    /// An empty histogram with a bucket that ends at `edge`.
    pub fn with_edge(edge: Duration) -> Self {
        let edge = edge.as_secs_f64();
        let mut bounds = BOUNDS.to_vec();
        if !bounds.contains(&edge) {
            bounds.push(edge);
            bounds.sort_by(f64::total_cmp);
        }
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self {
            bounds,
            buckets,
            nanoseconds: AtomicU64::new(0),
        }
    }

    /// Counts one latency. A bound belongs to the bucket below it.
    pub fn record(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = self.bounds.partition_point(|&bound| bound < seconds);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.nanoseconds
            .fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
    }

    /// All numbers now.
    pub fn snapshot(&self) -> Latencies {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let mut below = 0;
        let buckets = bounds.zip(&self.buckets).map(|(bound, calls)| {
            below += calls.load(Ordering::Relaxed);
            (bound, below)
        });
        Latencies {
            buckets: buckets.collect(),
            seconds: Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_bounds_belong_below() {
        let histogram = Histogram::with_edge(Duration::from_millis(50));
        for micros in [1, 500, 501, 1_000, 2_500_000, 2_500_001] {
            histogram.record(Duration::from_micros(micros));
        }
        let Latencies { buckets, seconds } = histogram.snapshot();
        assert_eq!(buckets.len(), BOUNDS.len() + 1);
        assert_eq!(buckets[1..4], [(0.000_25, 1), (0.000_5, 2), (0.001, 4)]);
        assert_eq!(buckets[13..], [(2.5, 5), (f64::INFINITY, 6)]);
        assert!((seconds - 5.002_003).abs() < 1e-9, "{seconds}");
    }

    #[test]
    fn the_edge_is_a_bound() {
        let histogram = Histogram::with_edge(Duration::from_millis(30));
        histogram.record(Duration::from_millis(30));
        histogram.record(Duration::from_millis(31));
        let buckets = histogram.snapshot().buckets;
        assert_eq!(buckets.len(), BOUNDS.len() + 2);
        assert!(buckets.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(buckets.contains(&(0.03, 1)) && buckets.contains(&(0.05, 2)));
    }
}

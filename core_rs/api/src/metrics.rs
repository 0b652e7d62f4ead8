//! Counts and latencies by method, without a lock: a call costs a handful of relaxed additions.
//!
//! A snapshot taken while calls end may be ahead in one number and behind in another by those calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::dispatch::Method;
use crate::error::Code;

/// Upper bounds of the latency buckets in seconds. One more bucket has none.
const BOUNDS: [f64; 13] = [
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
];

/// Codes of gRPC: 0 to 16.
const CODES: usize = 17;

/// What one method did since the start.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodMetrics {
    /// Full name, `/recalld.v1.MemoryService/Search`.
    pub method: &'static str,
    /// Calls by gRPC code; codes that never occurred are left out.
    pub codes: BTreeMap<u8, u64>,
    /// Upper bound in seconds and calls at or below it; the last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
    /// Sum of all latencies.
    pub seconds: f64,
}

#[derive(Debug, Default)]
struct Counters {
    codes: [AtomicU64; CODES],
    /// Calls in each bucket alone.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

/// Counters of all methods.
#[derive(Debug, Default)]
pub(crate) struct Metrics([Counters; Method::ALL.len()]);

/// Times a call. Counted when dropped; as INTERNAL when [`Timer::end`] was not reached, which means a panic.
#[derive(Debug)]
pub(crate) struct Timer<'a> {
    counters: &'a Counters,
    started: Instant,
    code: Code,
}

impl Metrics {
    /// Starts timing a call.
    pub(crate) fn start(&self, method: Method) -> Timer<'_> {
        Timer {
            counters: &self.0[method as usize],
            started: Instant::now(),
            code: Code::Internal,
        }
    }

    /// All numbers now.
    pub(crate) fn snapshot(&self) -> Vec<MethodMetrics> {
        Method::ALL
            .into_iter()
            .zip(&self.0)
            .map(|(method, counters)| counters.snapshot(method))
            .collect()
    }
}

impl Counters {
    fn record(&self, code: Code, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS
            .iter()
            .position(|&bound| seconds <= bound)
            .unwrap_or(BOUNDS.len());
        self.codes[code as usize].fetch_add(1, Ordering::Relaxed);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds
            .fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
    }

    fn snapshot(&self, method: Method) -> MethodMetrics {
        let codes = self
            .codes
            .iter()
            .map(|calls| calls.load(Ordering::Relaxed))
            .zip(0u8..);
        let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
        let mut below = 0;
        let buckets = bounds.zip(&self.buckets).map(|(bound, calls)| {
            below += calls.load(Ordering::Relaxed);
            (bound, below)
        });
        MethodMetrics {
            method: method.name(),
            codes: codes
                .filter(|&(calls, _)| calls > 0)
                .map(|(calls, code)| (code, calls))
                .collect(),
            buckets: buckets.collect(),
            seconds: Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64(),
        }
    }
}

impl Timer<'_> {
    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The call ended with this code.
    pub(crate) fn end(mut self, code: Code) {
        self.code = code;
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.counters.record(self.code, self.started.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_bounds_belong_below() {
        let metrics = Metrics::default();
        for micros in [1, 500, 501, 1_000, 5_000_000, 5_000_001] {
            metrics.0[Method::Search as usize].record(Code::Ok, Duration::from_micros(micros));
        }
        let search = metrics.snapshot().swap_remove(Method::Search as usize);
        assert_eq!(search.method, "/recalld.v1.MemoryService/Search");
        assert_eq!(search.codes, BTreeMap::from([(0, 6)]));
        assert_eq!(search.buckets.len(), 14);
        assert_eq!(
            search.buckets[..3],
            [(0.000_5, 2), (0.001, 4), (0.002_5, 4)]
        );
        assert_eq!(search.buckets[12..], [(5.0, 5), (f64::INFINITY, 6)]);
        assert!(
            (search.seconds - 10.002_003).abs() < 1e-9,
            "{}",
            search.seconds
        );
    }

    #[test]
    fn a_call_counts_once_and_a_lost_one_as_internal() {
        let metrics = Metrics::default();
        metrics.start(Method::Get).end(Code::Aborted);
        drop(metrics.start(Method::Get));
        let get = metrics.snapshot().swap_remove(Method::Get as usize);
        assert_eq!(get.codes, BTreeMap::from([(10, 1), (13, 1)]));
        assert_eq!(get.buckets.last(), Some(&(f64::INFINITY, 2)));
        let others = metrics
            .snapshot()
            .into_iter()
            .filter(|one| one.method != get.method);
        assert_eq!(others.map(|one| one.codes.len()).sum::<usize>(), 0);
    }
}

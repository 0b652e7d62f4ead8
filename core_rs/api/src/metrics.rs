//! Counts and latencies by method, without a lock: a call costs a handful of relaxed additions.
//!
//! A snapshot taken while calls end may be ahead in one number and behind in another by those calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use recalld_engine::histogram::{Histogram, Latencies};

use crate::dispatch::Method;
use crate::error::Code;

/// Codes of gRPC: 0 to 16.
const CODES: usize = 17;

/// What one method did since the start.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodMetrics {
    /// Full name, `/recalld.v1.MemoryService/Search`.
    pub method: &'static str,
    /// Calls by gRPC code; codes that never occurred are left out.
    pub codes: BTreeMap<u8, u64>,
    /// From arrival to answer.
    pub latencies: Latencies,
    /// Calls that took longer than the SLA allows.
    pub slow: u64,
}

#[derive(Debug)]
struct Counters {
    codes: [AtomicU64; CODES],
    latencies: Histogram,
    slo: Duration,
    slow: AtomicU64,
}

/// Counters of all methods.
#[derive(Debug)]
pub(crate) struct Metrics([Counters; Method::ALL.len()]);

/// Times a call. Counted when dropped; as INTERNAL when [`Timer::end`] was not reached, which means a panic.
#[derive(Debug)]
pub(crate) struct Timer<'a> {
    counters: &'a Counters,
    started: Instant,
    code: Code,
}

impl Metrics {
    /// None yet; calls that take longer than `slo` are slow.
    pub(crate) fn new(slo: Duration) -> Self {
        Self(Method::ALL.map(|_| Counters::new(slo)))
    }

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
    fn new(slo: Duration) -> Self {
        Self {
            codes: Default::default(),
            latencies: Histogram::with_edge(slo),
            slo,
            slow: AtomicU64::new(0),
        }
    }

    fn record(&self, code: Code, took: Duration) {
        self.codes[code as usize].fetch_add(1, Ordering::Relaxed);
        self.latencies.record(took);
        if took > self.slo {
            self.slow.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn snapshot(&self, method: Method) -> MethodMetrics {
        let codes = self
            .codes
            .iter()
            .map(|calls| calls.load(Ordering::Relaxed))
            .zip(0u8..);
        MethodMetrics {
            method: method.name(),
            codes: codes
                .filter(|&(calls, _)| calls > 0)
                .map(|(calls, code)| (code, calls))
                .collect(),
            latencies: self.latencies.snapshot(),
            slow: self.slow.load(Ordering::Relaxed),
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

    const SLO: Duration = Duration::from_millis(50);

    #[test]
    fn slow_is_what_takes_longer_than_the_sla_allows() {
        let metrics = Metrics::new(SLO);
        for took in [Duration::ZERO, SLO, SLO + Duration::from_nanos(1)] {
            metrics.0[Method::Search as usize].record(Code::Ok, took);
        }
        let search = metrics.snapshot().swap_remove(Method::Search as usize);
        assert_eq!(search.method, "/recalld.v1.MemoryService/Search");
        assert_eq!(search.codes, BTreeMap::from([(0, 3)]));
        assert_eq!(search.slow, 1);
        assert!(search.latencies.buckets.contains(&(0.05, 2)));
    }

    #[test]
    fn a_call_counts_once_and_a_lost_one_as_internal() {
        let metrics = Metrics::new(SLO);
        metrics.start(Method::Get).end(Code::Aborted);
        drop(metrics.start(Method::Get));
        let get = metrics.snapshot().swap_remove(Method::Get as usize);
        assert_eq!(get.codes, BTreeMap::from([(10, 1), (13, 1)]));
        assert_eq!(get.latencies.buckets.last(), Some(&(f64::INFINITY, 2)));
        let others = metrics
            .snapshot()
            .into_iter()
            .filter(|one| one.method != get.method);
        assert_eq!(others.map(|one| one.codes.len()).sum::<usize>(), 0);
    }
}

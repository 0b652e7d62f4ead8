//! What a run found: counts and latencies, for each kind of call and for all.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::plan::{MAX_LENGTH, Plan};

/// Latencies are kept to three digits.
const DIGITS: u8 = 3;
/// Longest latency that is told from longer ones, in nanoseconds; no deadline is longer.
const LONGEST: u64 = 2 * MAX_LENGTH.as_nanos() as u64;
/// gRPC's OK.
pub(crate) const OK: u16 = 0;

/// What became of the calls of one kind.
///
/// Percentiles are of the calls that were answered with OK; [`Stats::share_within`] is of all calls, so that a server
/// cannot look fast by failing.
#[derive(Debug, Clone)]
pub struct Stats {
    /// Calls that were planned.
    pub calls: u64,
    /// Of them those that were not sent before their deadline, because too many were under way.
    pub unsent: u64,
    /// The others by gRPC status code; 4 (`DEADLINE_EXCEEDED`) is also what the generator's own deadline makes.
    pub codes: BTreeMap<u16, u64>,
    /// The first message that came with each code other than OK.
    pub messages: BTreeMap<u16, String>,
    latencies: Histogram<u64>,
}

impl Stats {
    #[expect(
        clippy::expect_used,
        reason = "the histogram's bounds are constants that it takes"
    )]
    pub(crate) fn new() -> Self {
        Self {
            calls: 0,
            unsent: 0,
            codes: BTreeMap::new(),
            messages: BTreeMap::new(),
            latencies: Histogram::new_with_max(LONGEST, DIGITS).expect("bounds that are allowed"),
        }
    }

    pub(crate) fn answered(&mut self, code: u16, message: String, latency: Duration) {
        *self.codes.entry(code).or_default() += 1;
        if code == OK {
            self.latencies.saturating_record(nanoseconds(latency));
        } else {
            self.messages.entry(code).or_insert(message);
        }
    }

    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.unsent += other.unsent;
        for (&code, count) in &other.codes {
            *self.codes.entry(code).or_default() += count;
        }
        for (&code, message) in &other.messages {
            self.messages.entry(code).or_insert_with(|| message.clone());
        }
        // Cannot fail: both have the same bounds.
        let _ = self.latencies.add(&other.latencies);
    }

    /// Calls that were answered with OK.
    pub fn ok(&self) -> u64 {
        self.latencies.len()
    }

    /// The latency that this share (0 to 1) of the answers did not exceed; zero when there are none.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.latencies.value_at_quantile(share.clamp(0.0, 1.0)))
    }

    /// The longest latency of an answer.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.latencies.max())
    }

    /// The mean latency of an answer.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.latencies.mean() as u64)
    }

    /// Share of all planned calls that were answered with OK within so long; what failed or was not sent was not.
    pub fn share_within(&self, limit: Duration) -> f64 {
        if self.calls == 0 {
            return 0.0;
        }
        self.latencies.count_between(0, nanoseconds(limit)) as f64 / self.calls as f64
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What a run found.
#[derive(Debug, Clone)]
pub struct Report {
    /// From the beginning of the measurement to its end, or to the last answer to a measured call.
    pub elapsed: Duration,
    /// By kind of call: its method and what became of it, in the order of the plan.
    pub methods: Vec<(String, Stats)>,
    /// How much later than planned calls were sent. A large value with a server that answers means that the generator
    /// could not keep up.
    pub lag: Stats,
    /// Processor time of the generator's thread as a share of one core; near 1 it was the bottleneck.
    pub cpu: f64,
}

impl Report {
    /// All kinds together.
    pub fn total(&self) -> Stats {
        let mut total = Stats::new();
        for (_, stats) in &self.methods {
            total.add(stats);
        }
        total
    }
}

/// Collects a report while the calls come back.
pub(crate) struct Recorder {
    pub(crate) methods: Vec<Stats>,
    pub(crate) lag: Stats,
}

impl Recorder {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            methods: plan.calls.iter().map(|_| Stats::new()).collect(),
            lag: Stats::new(),
        }
    }

    pub(crate) fn sent(&mut self, lag: Duration) {
        self.lag.calls += 1;
        self.lag.answered(OK, String::new(), lag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_count_against_the_share_and_not_for_the_latency() {
        let mut stats = Stats::new();
        stats.calls = 10;
        stats.unsent = 1;
        for milliseconds in 1..=8 {
            stats.answered(OK, String::new(), Duration::from_millis(milliseconds));
        }
        stats.answered(14, "first".to_owned(), Duration::from_micros(1));
        assert_eq!(stats.ok(), 8);
        assert_eq!(stats.codes, BTreeMap::from([(0, 8), (14, 1)]));
        assert_eq!(stats.messages, BTreeMap::from([(14, "first".to_owned())]));
        assert!((stats.share_within(Duration::from_millis(4)) - 0.4).abs() < 1e-9);
        assert!((stats.share_within(Duration::MAX) - 0.8).abs() < 1e-9);
        let near = |found: Duration, milliseconds: f64| {
            let ratio = found.as_secs_f64() * 1e3 / milliseconds;
            assert!((0.999..1.001).contains(&ratio), "{found:?}");
        };
        near(stats.quantile(0.5), 4.0);
        near(stats.quantile(1.0), 8.0);
        near(stats.max(), 8.0);
        near(stats.mean(), 4.5);
    }

    #[test]
    fn a_total_is_the_sum_of_its_parts() {
        let mut one = Stats::new();
        one.calls = 2;
        one.unsent = 1;
        one.answered(OK, String::new(), Duration::from_millis(1));
        let mut other = Stats::new();
        other.calls = 2;
        other.answered(OK, String::new(), Duration::from_millis(3));
        other.answered(8, "busy".to_owned(), Duration::ZERO);
        let report = Report {
            elapsed: Duration::from_secs(1),
            methods: vec![("/a".to_owned(), one), ("/b".to_owned(), other)],
            lag: Stats::new(),
            cpu: 0.0,
        };
        let total = report.total();
        assert_eq!((total.calls, total.unsent, total.ok()), (4, 1, 2));
        assert_eq!(total.codes, BTreeMap::from([(0, 2), (8, 1)]));
        assert_eq!(total.messages[&8], "busy");
        assert!((total.share_within(Duration::from_millis(2)) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn nothing_measured_has_no_share() {
        let stats = Stats::new();
        assert_eq!(stats.share_within(Duration::MAX).to_bits(), 0);
        assert_eq!(stats.quantile(0.99), Duration::ZERO);
    }
}

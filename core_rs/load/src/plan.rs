//! What is to be sent where, how often and for how long; and which call is the next one.
//!
//! The order of calls is a function of the plan alone, so that two servers can be given the same.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::LoadError;

/// Most calls that a run may plan: more would not be a probe but a way to fill a disk.
const MAX_CALLS: f64 = 1e10;
/// Most calls under way and most connections.
const MAX_IN_FLIGHT: usize = 1_000_000;
/// Longest deadline, and longest run of either part.
pub(crate) const MAX_LENGTH: Duration = Duration::from_secs(86_400);

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket, by its path.
    Unix(PathBuf),
    /// `HOST:PORT`.
    Tcp(String),
}

impl FromStr for Address {
    type Err = LoadError;

    /// Reads `unix:PATH`, `unix:///PATH` or `HOST:PORT`.
    fn from_str(text: &str) -> Result<Self, LoadError> {
        let wrong = || LoadError::Plan(format!("{text:?} is neither unix:PATH nor HOST:PORT"));
        if let Some(path) = text.strip_prefix("unix:") {
            let path = match path.strip_prefix("//") {
                Some(absolute) if absolute.starts_with('/') => absolute,
                Some(_) => return Err(wrong()),
                None => path,
            };
            return match path {
                "" | "/" => Err(wrong()),
                path => Ok(Self::Unix(path.into())),
            };
        }
        match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                Ok(Self::Tcp(text.to_owned()))
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::Tcp(name) => formatter.write_str(name),
        }
    }
}

/// One kind of call: a method, its requests, which are sent one after the other and then again, and how often it is
/// called beside the others.
#[derive(Debug, Clone)]
pub struct Call {
    pub(crate) method: String,
    pub(crate) requests: Vec<Bytes>,
    pub(crate) weight: f64,
}

impl Call {
    /// A call of `method` (`/package.Service/Method`) with these serialised messages; `weight` is relative to that of
    /// the other calls of the plan.
    pub fn new(
        method: impl Into<String>,
        messages: impl IntoIterator<Item = impl AsRef<[u8]>>,
        weight: f64,
    ) -> Self {
        Self {
            method: method.into(),
            requests: messages
                .into_iter()
                .map(|message| framed(message.as_ref()))
                .collect(),
            weight,
        }
    }
}

/// A message as it travels: not compressed, its length, itself.
fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(5 + message.len());
    frame.put_u8(0);
    frame.put_u32(message.len() as u32);
    frame.put_slice(message);
    frame.freeze()
}

/// When calls are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    /// Open loop: so many a second, evenly spaced, whatever the server does.
    Rate(f64),
    /// Closed loop: so many callers, each of which calls again as soon as it has its answer.
    Callers(usize),
}

/// A whole run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The server.
    pub address: Address,
    /// What is called; at least one.
    pub calls: Vec<Call>,
    /// When.
    pub arrival: Arrival,
    /// Time before the measurement, at the same rate, that the report says nothing of.
    pub warmup: Duration,
    /// Time in which calls are measured.
    pub duration: Duration,
    /// Connections, which take turns.
    pub connections: usize,
    /// Deadline of a call, from the moment it was planned for.
    pub timeout: Duration,
    /// Most calls under way. Further ones wait in the generator, and the wait is part of their latency.
    pub max_in_flight: usize,
    /// Chooses the order in which the kinds of calls are mixed.
    pub seed: u64,
}

impl Plan {
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        let refuse = |what: String| Err(LoadError::Plan(what));
        if self.calls.is_empty() {
            return refuse("nothing is to be called".to_owned());
        }
        for call in &self.calls {
            if !call.method.starts_with('/') || call.method.parse::<http::Uri>().is_err() {
                return refuse(format!("{:?} is not /package.Service/Method", call.method));
            }
            if call.requests.is_empty() {
                return refuse(format!("{} has no requests", call.method));
            }
            if !(call.weight.is_finite() && call.weight > 0.0) {
                return refuse(format!("the weight of {} is not above 0", call.method));
            }
        }
        if [self.duration, self.warmup, self.timeout].iter().max() > Some(&MAX_LENGTH) {
            return refuse("nothing may take longer than a day".to_owned());
        }
        match self.arrival {
            Arrival::Rate(rate) if !(rate.is_finite() && rate > 0.0) => {
                return refuse("the rate is not above 0".to_owned());
            }
            Arrival::Rate(rate) if rate * self.length().as_secs_f64() > MAX_CALLS => {
                return refuse(format!("more than {MAX_CALLS:e} calls are planned"));
            }
            Arrival::Callers(callers) if !(1..=MAX_IN_FLIGHT).contains(&callers) => {
                return refuse(format!("1 to {MAX_IN_FLIGHT} callers are allowed"));
            }
            _ => {}
        }
        if self.duration.is_zero() || self.timeout.is_zero() {
            return refuse("the duration and the timeout must be above 0".to_owned());
        }
        let allowed = 1..=MAX_IN_FLIGHT;
        if !allowed.contains(&self.connections) || !allowed.contains(&self.max_in_flight) {
            let limits =
                format!("1 to {MAX_IN_FLIGHT} connections and calls in flight are allowed");
            return refuse(limits);
        }
        Ok(())
    }

    /// Warm-up and measurement.
    pub(crate) fn length(&self) -> Duration {
        self.warmup.saturating_add(self.duration)
    }
}

/// Deals out the calls of a plan.
pub(crate) struct Mix {
    calls: Vec<Call>,
    /// Upper end of each call's part of 0..1.
    ends: Vec<f64>,
    next: Vec<usize>,
    state: u64,
}

impl Mix {
    pub(crate) fn new(plan: &Plan) -> Self {
        let total: f64 = plan.calls.iter().map(|call| call.weight).sum();
        let mut end = 0.0;
        let ends = plan.calls.iter().map(|call| {
            end += call.weight / total;
            end
        });
        Self {
            ends: ends.collect(),
            // The requests themselves are shared.
            calls: plan.calls.clone(),
            next: vec![0; plan.calls.len()],
            state: plan.seed,
        }
    }

    /// The number of the kind and the request.
    pub(crate) fn next(&mut self) -> (usize, Bytes) {
        let drawn = self.share();
        // The last end may miss 1 by a rounding.
        let kind = self.ends.iter().position(|&end| drawn < end);
        let kind = kind.unwrap_or(self.calls.len() - 1);
        let requests = &self.calls[kind].requests;
        let request = requests[self.next[kind] % requests.len()].clone();
        self.next[kind] += 1;
        (kind, request)
    }

    /// `SplitMix64` (Steele, Lea and Flood 2014), in 0..1.
    fn share(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(weights: &[f64]) -> Plan {
        Plan {
            address: Address::Tcp("localhost:1".to_owned()),
            calls: weights
                .iter()
                .enumerate()
                .map(|(at, &weight)| Call::new(format!("/s/M{at}"), [b"a", b"b", b"c"], weight))
                .collect(),
            arrival: Arrival::Rate(1.0),
            warmup: Duration::ZERO,
            duration: Duration::from_secs(1),
            connections: 1,
            timeout: Duration::from_secs(1),
            max_in_flight: 1,
            seed: 7,
        }
    }

    #[test]
    fn addresses_are_read_and_written() {
        for (text, written) in [
            ("unix:/run/a.sock", "unix:/run/a.sock"),
            ("unix:///run/a.sock", "unix:/run/a.sock"),
            ("unix:a.sock", "unix:a.sock"),
            ("localhost:7411", "localhost:7411"),
            ("[::1]:7411", "[::1]:7411"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), written);
        }
        for text in ["", "unix:", "unix://a", "host", "host:", ":1", "host:65536"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("neither unix:PATH nor HOST:PORT"), "{error}");
        }
    }

    #[test]
    fn a_message_is_framed_with_its_length() {
        let call = Call::new("/s/M", [b"abc"], 1.0);
        assert_eq!(&call.requests[0][..], b"\0\0\0\0\x03abc");
    }

    #[test]
    fn requests_of_a_kind_go_round() {
        let plan = plan(&[1.0]);
        let mut mix = Mix::new(&plan);
        let last: Vec<u8> = (0..7).map(|_| mix.next().1[5]).collect();
        assert_eq!(last, b"abcabca");
    }

    proptest! {
        #[test]
        fn kinds_are_called_by_their_weights(
            weights in prop::collection::vec(0.1_f64..10.0, 1..6),
            seed: u64,
        ) {
            const DRAWS: usize = 20_000;
            let plan = Plan { seed, ..plan(&weights) };
            let (mut mix, mut again) = (Mix::new(&plan), Mix::new(&plan));
            let mut counts = vec![0_u32; weights.len()];
            for _ in 0..DRAWS {
                let next = mix.next();
                prop_assert_eq!(&next, &again.next());
                counts[next.0] += 1;
            }
            let total: f64 = weights.iter().sum();
            for (count, weight) in counts.into_iter().zip(&weights) {
                // Five standard deviations of the share are at most 0.018.
                prop_assert!((f64::from(count) / DRAWS as f64 - weight / total).abs() < 0.02);
            }
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let refused = |change: fn(&mut Plan), part: &str| {
            let mut plan = plan(&[1.0]);
            assert!(plan.check().is_ok());
            change(&mut plan);
            let error = plan.check().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        refused(|plan| plan.calls.clear(), "nothing");
        refused(|plan| plan.calls[0].method = "M".to_owned(), "\"M\"");
        refused(|plan| plan.calls[0].method = "/a b".to_owned(), "\"/a b\"");
        refused(|plan| plan.calls[0].requests.clear(), "no requests");
        refused(|plan| plan.calls[0].weight = 0.0, "weight");
        refused(|plan| plan.calls[0].weight = f64::NAN, "weight");
        refused(|plan| plan.arrival = Arrival::Rate(0.0), "rate");
        refused(|plan| plan.arrival = Arrival::Rate(1e11), "calls");
        refused(|plan| plan.arrival = Arrival::Callers(0), "callers");
        refused(|plan| plan.duration = Duration::ZERO, "duration");
        refused(|plan| plan.timeout = Duration::ZERO, "timeout");
        refused(|plan| plan.warmup = Duration::MAX, "day");
        refused(|plan| plan.connections = 0, "connections");
        refused(|plan| plan.max_in_flight = 0, "in flight");
        refused(|plan| plan.max_in_flight = 1_000_001, "in flight");
    }
}

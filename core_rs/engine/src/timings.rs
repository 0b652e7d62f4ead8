//! How long the parts of calls take: what a slow call was slow at.

use std::time::{Duration, Instant};

use crate::histogram::{Histogram, Latencies};

/// A part of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The query becomes a vector and terms.
    Query,
    /// The selection becomes a set of documents.
    Select,
    /// The lexical arm.
    Lexical,
    /// The dense arm.
    Dense,
    /// Fusing, refining and scoring.
    Rank,
    /// Folding duplicates, and signatures of the hits.
    Signatures,
    /// Choosing and rendering the forms of a brief.
    Pack,
    /// What a write does before it has a place in the journal: terms, tokens, summaries, vectors.
    Prepare,
    /// From a write's place in the queue to its receipts, the sync included.
    Commit,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Query,
        Self::Select,
        Self::Lexical,
        Self::Dense,
        Self::Rank,
        Self::Signatures,
        Self::Pack,
        Self::Prepare,
        Self::Commit,
    ];

    /// Its name in the metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Select => "select",
            Self::Lexical => "lexical",
            Self::Dense => "dense",
            Self::Rank => "rank",
            Self::Signatures => "signatures",
            Self::Pack => "pack",
            Self::Prepare => "prepare",
            Self::Commit => "commit",
        }
    }
}

/// Histograms of all parts.
#[derive(Debug)]
pub(crate) struct Timings([Histogram; Part::ALL.len()]);

impl Timings {
    /// Empty ones with a bucket that ends at `edge`.
    pub(crate) fn with_edge(edge: Duration) -> Self {
        Self(Part::ALL.map(|_| Histogram::with_edge(edge)))
    }

    /// Starts a clock for the parts of one call.
    pub(crate) fn start(&self) -> Laps<'_> {
        Laps {
            timings: self,
            last: Instant::now(),
        }
    }

    /// All numbers now.
    pub(crate) fn snapshot(&self) -> Vec<(Part, Latencies)> {
        let latencies = self.0.iter().map(Histogram::snapshot);
        Part::ALL.into_iter().zip(latencies).collect()
    }
}

/// The clock of one call.
pub(crate) struct Laps<'a> {
    timings: &'a Timings,
    last: Instant,
}

impl Laps<'_> {
    /// This part ends here, and the next begins.
    pub(crate) fn end(&mut self, part: Part) {
        let now = Instant::now();
        self.timings.0[part as usize].record(now - self.last);
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lap_counts_for_its_part_alone() {
        let timings = Timings::with_edge(Duration::from_millis(50));
        let mut laps = timings.start();
        laps.end(Part::Dense);
        laps.end(Part::Rank);
        laps.end(Part::Rank);
        let counts: Vec<_> = timings
            .snapshot()
            .into_iter()
            .map(|(part, latencies)| {
                (
                    part.name(),
                    latencies.buckets[latencies.buckets.len() - 1].1,
                )
            })
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(counts, [("dense", 1), ("rank", 2)]);
    }
}

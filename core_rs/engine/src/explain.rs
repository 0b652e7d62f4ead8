//! How a score came about, and why a memory is not among the hits.

use recalld_store::ids::MemoryId;

use crate::token::Token;
use crate::types::Degradation;

/// How a memory got its score. The contributions of the signals add up to `fused`, those of the factors to `score`.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The arms first.
    pub signals: Vec<Signal>,
    /// Deviations above an average memory.
    pub fused: f64,
    /// How much of the query's words the best memories have together, 0..1.
    pub coverage: f64,
    /// 0..1.
    pub relevance: f64,
    /// Relevance, importance and recency.
    pub factors: [Factor; 3],
    /// 0..1.
    pub confidence: f64,
    /// 0..1.
    pub score: f64,
}

/// One signal of relevance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signal {
    /// Its name.
    pub name: &'static str,
    /// Place of the memory by this signal, from 1; 0: none.
    pub rank: u32,
    /// As measured.
    pub raw: f64,
    /// Made comparable.
    pub normalized: f64,
    /// Of the normalised value.
    pub weight: f64,
}

impl Signal {
    /// What it adds to the fused value.
    #[must_use]
    pub fn contribution(&self) -> f64 {
        self.normalized * self.weight
    }
}

/// One factor of the score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    /// Its name.
    pub name: &'static str,
    /// 0..1.
    pub value: f64,
    /// All weights sum to 1.
    pub weight: f64,
    /// Confidence × weight × value.
    pub contribution: f64,
}

/// A memory, as a request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// By id.
    Id(MemoryId),
    /// By key.
    Key(String),
}

/// A stage of the search, in the order of the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// There is no such memory.
    NotFound,
    /// It has expired.
    Expired,
    /// A part of the selection leaves it out.
    Filter,
    /// No arm proposed it.
    Candidates,
    /// It lies under what the request asks for.
    Threshold,
    /// A newer one stands for it.
    Duplicate,
    /// It is ranked behind the limit.
    Limit,
    /// It is among the hits.
    Returned,
}

/// The answer to "why not?".
#[derive(Debug, Clone, PartialEq)]
pub struct WhyNot {
    /// The stage that dropped it.
    pub stage: Stage,
    /// What decided: the field of the request, or the id of the memory that stands for it.
    pub detail: String,
    /// Its place at the stage, from 1; 0: not ranked.
    pub rank: u32,
    /// The last place that would have been kept; 0: not by place.
    pub needed_rank: u32,
    /// Its value at the stage.
    pub value: f64,
    /// The least value that would have been kept.
    pub needed_value: f64,
    /// How its score comes about.
    pub explanation: Option<Explanation>,
    /// None: it was not found.
    pub id: Option<MemoryId>,
    /// Arms that could not take part.
    pub degraded: Vec<Degradation>,
    /// The state that was searched.
    pub token: Token,
}

impl WhyNot {
    pub(crate) fn at(stage: Stage, id: Option<MemoryId>, token: Token) -> Self {
        Self {
            stage,
            detail: String::new(),
            rank: 0,
            needed_rank: 0,
            value: 0.0,
            needed_value: 0.0,
            explanation: None,
            id,
            degraded: Vec::new(),
            token,
        }
    }
}

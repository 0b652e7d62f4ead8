//! What `SearchRequest` and `BriefRequest` have in common.

use std::collections::BTreeMap;
use std::time::Duration;

use recalld_algo::score::{Weights, WeightsError};
use recalld_engine::types::{Query, Selection};
use recalld_proto::v1;
use recalld_store::ids::Micros;

use super::Context;
use super::fields::{Characters, instant, kind, real, span, tags, text, token, vector};
use super::filter::filter;
use super::report::{Path, Report};
use crate::limits::{DEFAULT_WEIGHTS, MAX_QUERY_BYTES, MAX_WEIGHT};

/// The shared fields, as given.
pub(super) struct GivenQuery {
    pub(super) query: String,
    pub(super) vector: Vec<f32>,
    /// Already checked.
    pub(super) limit: u32,
    pub(super) filter: Option<v1::Filter>,
    pub(super) kinds: Vec<String>,
    pub(super) tags: Vec<String>,
    pub(super) occurred: Option<v1::TimeRange>,
    pub(super) min_score: Option<f64>,
    pub(super) min_relevance: Option<f64>,
    pub(super) weights: Option<v1::Weights>,
    pub(super) half_lives: BTreeMap<String, prost_types::Duration>,
    pub(super) explain: bool,
    pub(super) latency_budget: Option<prost_types::Duration>,
    pub(super) at_least_as_fresh: String,
}

pub(super) fn query(report: &mut Report, given: GivenQuery, context: Context<'_>) -> Query {
    let at = Path::field("query");
    text(
        report,
        &at,
        &given.query,
        0..=MAX_QUERY_BYTES,
        Characters::Any,
    );
    let vector = vector(report, &Path::field("vector"), given.vector, context);
    let has_text = !given.query.trim().is_empty();
    if !has_text && vector.is_none() {
        report.wrong(&at, "must have text, unless `vector` is given");
    }
    let at_kinds = Path::field("kinds");
    for (i, name) in given.kinds.iter().enumerate() {
        kind(report, &at_kinds.index(i), name);
    }
    let (occurred_from, occurred_before) = given
        .occurred
        .map(|range| span_of_time(report, range))
        .unwrap_or_default();
    Query {
        text: if has_text { given.query } else { String::new() },
        vector,
        limit: given.limit as usize,
        selection: Selection {
            filter: filter(report, given.filter),
            kinds: given.kinds,
            tags: tags(report, &Path::field("tags"), given.tags),
            occurred_from,
            occurred_before,
        },
        min_score: real(
            report,
            &Path::field("min_score"),
            given.min_score,
            0.0,
            0.0..=1.0,
        ),
        min_relevance: real(
            report,
            &Path::field("min_relevance"),
            given.min_relevance,
            0.0,
            0.0..=1.0,
        ),
        weights: given
            .weights
            .map(|given| weights(report, given))
            .unwrap_or_default(),
        half_lives: half_lives(report, &given.half_lives),
        explain: given.explain,
        latency_budget: given
            .latency_budget
            .and_then(|budget| span(report, &Path::field("latency_budget"), &budget)),
        at_least: token(report, &given.at_least_as_fresh),
    }
}

fn span_of_time(report: &mut Report, range: v1::TimeRange) -> (Option<Micros>, Option<Micros>) {
    let at = Path::field("occurred");
    let start = range
        .start
        .and_then(|time| instant(report, &at.child("start"), &time));
    let end = range
        .end
        .and_then(|time| instant(report, &at.child("end"), &time));
    if let (Some(start), Some(end)) = (start, end)
        && end <= start
    {
        report.wrong(&at.child("end"), "must be after `start`");
    }
    (start, end)
}

fn weights(report: &mut Report, given: v1::Weights) -> Weights {
    let at = Path::field("weights");
    let mut weight =
        |name, value, default| real(report, &at.child(name), value, default, 0.0..=MAX_WEIGHT);
    let [relevance, importance, recency] = DEFAULT_WEIGHTS;
    let relevance = weight("relevance", given.relevance, relevance);
    let importance = weight("importance", given.importance, importance);
    let recency = weight("recency", given.recency, recency);
    Weights::new(relevance, importance, recency).unwrap_or_else(|error| {
        // A weight that is out of range has been reported by its own name.
        if error == WeightsError::AllZero {
            report.wrong(&at, error);
        }
        Weights::default()
    })
}

fn half_lives(
    report: &mut Report,
    given: &BTreeMap<String, prost_types::Duration>,
) -> BTreeMap<String, Duration> {
    let at = Path::field("half_lives");
    given
        .iter()
        .filter_map(|(name, half_life)| {
            let at = at.name(name);
            kind(report, &at, name);
            Some((name.clone(), span(report, &at, half_life)?))
        })
        .collect()
}

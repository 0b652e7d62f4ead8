//! `SearchRequest` and `WhyNotRequest`.

use recalld_engine::explain::Target;
use recalld_engine::types::{Namespace, Query};
use recalld_proto::v1::{BatchSearchRequest, SearchRequest, WhyNotRequest};

use super::Context;
use super::fields::{Characters, number, text};
use super::namespace::namespace;
use super::query::{GivenQuery, query};
use super::report::{Path, Report, quoted};
use crate::error::Failure;
use crate::limits::{DEFAULT_HITS, MAX_HITS, MAX_KEY_BYTES, MAX_SEARCHES};

/// Checks a search.
pub(crate) fn search(
    request: SearchRequest,
    context: Context<'_>,
) -> Result<(Namespace, Query), Failure> {
    let mut report = Report::default();
    let checked = check(&mut report, request, context);
    report.finish(checked)
}

/// Checks how many searches a batch has; each is checked by itself.
pub(crate) fn batch_search(request: &BatchSearchRequest) -> Result<(), Failure> {
    let mut report = Report::default();
    let given = request.searches.len();
    if !(1..=MAX_SEARCHES).contains(&given) {
        let what = format_args!("must be 1 to {MAX_SEARCHES}, not {given}");
        report.wrong(&Path::field("searches"), what);
    }
    report.finish(())
}

/// Checks the question why a memory is, or is not, among the hits of a search.
pub(crate) fn why_not(
    request: WhyNotRequest,
    context: Context<'_>,
) -> Result<(Namespace, Query, Target), Failure> {
    let mut report = Report::default();
    let target = match (request.id.is_empty(), request.key.is_empty()) {
        (false, true) => match request.id.parse() {
            Ok(id) => Target::Id(id),
            Err(error) => {
                let what = format_args!("{error}; this is {}", quoted(&request.id));
                report.wrong(&Path::field("id"), what);
                Target::Key(String::new())
            }
        },
        (true, false) => {
            let (at, bytes) = (Path::field("key"), 1..=MAX_KEY_BYTES);
            text(&mut report, &at, &request.key, bytes, Characters::Printable);
            Target::Key(request.key)
        }
        (no_id, _) => {
            let (field, what) = if no_id {
                ("id", "must be given, or `key`")
            } else {
                ("key", "must be empty when `id` is given")
            };
            report.wrong(&Path::field(field), what);
            Target::Key(String::new())
        }
    };
    let mut inner = Report::within("search.");
    if request.search.is_none() {
        report.wrong(&Path::field("search"), "must be given");
    }
    let (namespace, query) = check(&mut inner, request.search.unwrap_or_default(), context);
    report.add(inner);
    report.finish((namespace, query, target))
}

fn check(report: &mut Report, request: SearchRequest, context: Context<'_>) -> (Namespace, Query) {
    let namespace = namespace(report, request.namespace);
    let limit = number(
        report,
        &Path::field("limit"),
        request.limit,
        DEFAULT_HITS,
        1..=MAX_HITS,
    );
    let given = GivenQuery {
        query: request.query,
        vector: request.vector,
        limit,
        filter: request.filter,
        kinds: request.kinds,
        tags: request.tags,
        occurred: request.occurred,
        min_score: request.min_score,
        min_relevance: request.min_relevance,
        weights: request.weights,
        half_lives: request.half_lives,
        explain: request.explain,
        latency_budget: request.latency_budget,
        at_least_as_fresh: request.at_least_as_fresh,
    };
    let query = query(report, given, context);
    (namespace, query)
}

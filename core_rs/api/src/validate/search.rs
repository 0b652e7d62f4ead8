//! `SearchRequest`.

use recalld_engine::types::{Namespace, Query};
use recalld_proto::v1::SearchRequest;

use super::Context;
use super::fields::number;
use super::namespace::namespace;
use super::query::{GivenQuery, query};
use super::report::{Path, Report};
use crate::error::Failure;
use crate::limits::{DEFAULT_HITS, MAX_HITS};

/// Checks a search.
pub(crate) fn search(
    request: SearchRequest,
    context: Context,
) -> Result<(Namespace, Query), Failure> {
    let mut report = Report::default();
    let namespace = namespace(&mut report, request.namespace);
    let limit = number(
        &mut report,
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
        at_least_as_fresh: request.at_least_as_fresh,
    };
    let query = query(&mut report, given, context);
    report.finish((namespace, query))
}

//! `BriefRequest`.

use recalld_engine::types::Brief;
use recalld_proto::v1::BriefRequest;

use super::Context;
use super::fields::{encoding, number};
use super::namespace::namespace;
use super::query::{GivenQuery, query};
use super::report::{Path, Report};
use crate::error::Failure;
use crate::limits::{DEFAULT_BRIEF_MEMORIES, DEFAULT_BUDGET, MAX_BRIEF_MEMORIES, MAX_BUDGET};

/// Checks a request for a brief. `if_fingerprint` may be any text: what is no fingerprint equals none.
pub(crate) fn brief(request: BriefRequest, context: Context) -> Result<Brief, Failure> {
    let mut report = Report::default();
    let namespace = namespace(&mut report, request.namespace);
    let at = Path::field("limit");
    let limit = number(
        &mut report,
        &at,
        request.limit,
        DEFAULT_BRIEF_MEMORIES,
        1..=MAX_BRIEF_MEMORIES,
    );
    let at = Path::field("budget_tokens");
    let budget = number(
        &mut report,
        &at,
        request.budget_tokens,
        DEFAULT_BUDGET,
        1..=MAX_BUDGET,
    );
    let encoding = encoding(&mut report, &Path::field("encoding"), &request.encoding);
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
    report.finish(Brief {
        namespace,
        query,
        budget,
        encoding,
    })
}

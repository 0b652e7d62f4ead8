//! `DeleteRequest`.

use recalld_engine::types::Delete;
use recalld_proto::v1::DeleteRequest;

use super::fields::{idempotency, named};
use super::filter::filter;
use super::namespace::namespace;
use super::report::{Path, Report};
use crate::error::Failure;

/// Checks a request to delete; `actor` is who asks.
pub(crate) fn delete(mut request: DeleteRequest, actor: &str) -> Result<Delete, Failure> {
    let mut report = Report::default();
    let key = std::mem::take(&mut request.idempotency_key);
    let idempotency = idempotency(&mut report, key, "Delete", &request);
    let namespace = namespace(&mut report, request.namespace);
    let asked = request.ids.len() + request.keys.len();
    if asked == 0 && request.filter.is_none() {
        report.wrong(
            &Path::field("ids"),
            "must name a memory, unless `keys` or `filter` does",
        );
    }
    if request.if_version.is_some() && (asked != 1 || request.filter.is_some()) {
        report.wrong(
            &Path::field("if_version"),
            "needs exactly one id or key, and no filter",
        );
    }
    let ids = named(&mut report, &request.ids, &request.keys);
    let filter = filter(&mut report, request.filter);
    report.finish(Delete {
        namespace,
        ids,
        keys: request.keys,
        filter,
        if_version: request.if_version,
        dry_run: request.dry_run,
        idempotency,
        actor: actor.to_owned(),
    })
}

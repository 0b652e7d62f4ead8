//! `GetRequest`.

use recalld_engine::types::Get;
use recalld_proto::v1::GetRequest;

use super::Context;
use super::fields::{counter, named, token};
use super::namespace::namespace;
use super::report::{Path, Report};
use crate::error::Failure;

/// Checks a request for full memories.
pub(crate) fn get(request: GetRequest, context: Context<'_>) -> Result<Get, Failure> {
    let mut report = Report::default();
    let namespace = namespace(&mut report, request.namespace);
    let asked = request.ids.len() + request.keys.len();
    if asked == 0 {
        report.wrong(
            &Path::field("ids"),
            "must name a memory, unless `keys` does",
        );
    }
    let ids = named(&mut report, &request.ids, &request.keys);
    if request.max_tokens == Some(0) {
        report.wrong(&Path::field("max_tokens"), "must be at least 1");
    }
    if let Some(version) = request.as_of_version {
        let at = Path::field("as_of_version");
        if version == 0 {
            report.wrong(&at, "must be at least 1");
        }
        if asked != 1 {
            report.wrong(&at, "needs exactly one id or key");
        }
    }
    let counter = counter(&mut report, &request.encoding, context);
    let at_least = token(&mut report, &request.at_least_as_fresh);
    report.finish(Get {
        namespace,
        ids,
        keys: request.keys,
        max_tokens: request.max_tokens,
        counter,
        version: request.as_of_version,
        at_least,
    })
}

//! `Namespace`: the wall between tenants. A missing one never means "all".

use recalld_engine::types::Namespace;
use recalld_proto::v1;

use super::fields::{Characters, text};
use super::report::{Path, Report};
use crate::error::Failure;
use crate::limits::{MAX_SEGMENT_BYTES, MAX_SEGMENTS};

/// The field `namespace` of a request.
pub(super) fn namespace(report: &mut Report, value: Option<v1::Namespace>) -> Namespace {
    let at = Path::field("namespace");
    let Some(v1::Namespace { segments }) = value else {
        report.wrong(&at, "must be given");
        return Namespace(Vec::new());
    };
    let at = at.child("segments");
    if !(1..=MAX_SEGMENTS).contains(&segments.len()) {
        report.wrong(
            &at,
            format_args!(
                "must be 1 to {MAX_SEGMENTS} segments, not {}",
                segments.len()
            ),
        );
    }
    for (i, segment) in segments.iter().enumerate() {
        text(
            report,
            &at.index(i),
            segment,
            1..=MAX_SEGMENT_BYTES,
            Characters::Printable,
        );
    }
    Namespace(segments)
}

/// A namespace on its own.
pub(crate) fn only_namespace(segments: Vec<String>) -> Result<Namespace, Failure> {
    let mut report = Report::default();
    let namespace = namespace(&mut report, Some(v1::Namespace { segments }));
    report.finish(namespace)
}

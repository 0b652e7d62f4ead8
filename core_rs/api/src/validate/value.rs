//! `Value`: typed values of metadata, however nested.

use std::collections::BTreeMap;

use recalld_proto::v1::value::Kind;
use recalld_proto::v1::{Value, ValueMap};

use super::fields::instant;
use super::report::{Path, Report, is_name};
use crate::limits::{MAX_METADATA_NAMES, MAX_NAME_BYTES, MAX_VALUE_DEPTH};

/// Named values; `depth` is that of the values.
pub(super) fn fields(
    report: &mut Report,
    at: &Path<'_>,
    fields: &BTreeMap<String, Value>,
    depth: usize,
) {
    if fields.len() > MAX_METADATA_NAMES {
        report.wrong(
            at,
            format_args!(
                "must have at most {MAX_METADATA_NAMES} names, not {}",
                fields.len()
            ),
        );
    }
    for (name, field) in fields {
        let at = at.name(name);
        if !is_name(name) {
            report.wrong(
                &at,
                format_args!(
                    "a name must be 1 to {MAX_NAME_BYTES} bytes without control characters and dots"
                ),
            );
        }
        value(report, &at, field, depth);
    }
}

fn value(report: &mut Report, at: &Path<'_>, value: &Value, depth: usize) {
    if depth > MAX_VALUE_DEPTH {
        report.wrong(at, format_args!("must nest at most {MAX_VALUE_DEPTH} deep"));
        return;
    }
    match &value.kind {
        Some(Kind::BoolValue(_) | Kind::IntValue(_)) => {}
        Some(Kind::DoubleValue(double)) => finite(report, at, *double),
        Some(Kind::StringValue(text)) => no_nul(report, at, text),
        Some(Kind::TimeValue(time)) => {
            instant(report, at, time);
        }
        Some(Kind::ListValue(list)) => {
            for (i, element) in list.values.iter().enumerate() {
                self::value(report, &at.index(i), element, depth + 1);
            }
        }
        Some(Kind::MapValue(ValueMap { fields: map })) => fields(report, at, map, depth + 1),
        None => unset(report, at),
    }
}

pub(super) fn finite(report: &mut Report, at: &Path<'_>, value: f64) {
    if !value.is_finite() {
        report.wrong(at, format_args!("must be a finite number, not {value}"));
    }
}

pub(super) fn no_nul(report: &mut Report, at: &Path<'_>, value: &str) {
    if value.contains('\0') {
        report.wrong(at, "must not contain NUL");
    }
}

pub(super) fn unset(report: &mut Report, at: &Path<'_>) {
    report.wrong(at, "must have a value");
}

//! `WriteItem`: one memory to write.

use std::collections::BTreeMap;
use std::time::Duration;

use prost::Message;
use recalld_engine::types::{Expiry, NewMemory};
use recalld_proto::v1::{ContentFormat, Source, Value, ValueMap, WriteItem};

use super::Context;
use super::fields::{Characters, LATEST, instant, kind_or_default, real, span, tags, text, vector};
use super::report::{Path, Report};
use super::value;
use crate::canonical;
use crate::limits::{
    DEFAULT_CONFIDENCE, DEFAULT_IMPORTANCE, MAX_CONTENT_BYTES, MAX_KEY_BYTES, MAX_METADATA_BYTES,
    MAX_ORIGIN_BYTES, MAX_SOURCES, MAX_SPEAKER_BYTES, MAX_SUMMARY_BYTES, MAX_TAGS, MAX_URI_BYTES,
};

/// Checks an item and gives unset fields their defaults.
pub(super) fn item(
    report: &mut Report,
    at: &Path<'_>,
    mut item: WriteItem,
    context: Context<'_>,
) -> NewMemory {
    text(
        report,
        &at.child("key"),
        &item.key,
        0..=MAX_KEY_BYTES,
        Characters::Printable,
    );
    let json = content(report, at, &item);
    item.kind = kind_or_default(report, &at.child("kind"), std::mem::take(&mut item.kind));
    text(
        report,
        &at.child("summary"),
        &item.summary,
        0..=MAX_SUMMARY_BYTES,
        Characters::Any,
    );
    item.tags = at_most_tags(report, &at.child("tags"), std::mem::take(&mut item.tags));
    item.metadata = metadata(
        report,
        &at.child("metadata"),
        ValueMap {
            fields: std::mem::take(&mut item.metadata),
        },
    );
    let importance = real(
        report,
        &at.child("importance"),
        item.importance,
        DEFAULT_IMPORTANCE,
        0.0..=1.0,
    );
    let confidence = real(
        report,
        &at.child("confidence"),
        item.confidence,
        DEFAULT_CONFIDENCE,
        0.0..=1.0,
    );
    let occurred_at = item
        .occurred_at
        .and_then(|time| instant(report, &at.child("occurred_at"), &time));
    let expiry = expiry(report, at, &item, context);
    sources(report, &at.child("sources"), &item.sources);
    text(
        report,
        &at.child("origin"),
        &item.origin,
        0..=MAX_ORIGIN_BYTES,
        Characters::Any,
    );
    if item.if_version.is_some() && item.key.is_empty() {
        report.wrong(&at.child("if_version"), "needs a key");
    }

    let if_version = item.if_version.take();
    item.content_format = if json {
        ContentFormat::Json
    } else {
        ContentFormat::Text
    }
    .into();
    item.importance = Some(importance);
    item.confidence = Some(confidence);
    let digest = canonical::item_digest(&item);
    NewMemory {
        key: item.key,
        content: item.content,
        json,
        kind: item.kind,
        summary: item.summary,
        tags: item.tags,
        metadata: item.metadata,
        importance,
        confidence,
        occurred_at,
        expiry,
        sources: item.sources,
        vector: vector(report, &at.child("vector"), item.vector, context),
        if_version,
        origin: item.origin,
        digest,
    }
}

/// Checks the content against its format; true for JSON.
fn content(report: &mut Report, at: &Path<'_>, item: &WriteItem) -> bool {
    let at_content = at.child("content");
    text(
        report,
        &at_content,
        &item.content,
        1..=MAX_CONTENT_BYTES,
        Characters::Any,
    );
    if !item.content.is_empty() && item.content.trim().is_empty() {
        report.wrong(&at_content, "must not be white space alone");
    }
    match ContentFormat::try_from(item.content_format) {
        Ok(ContentFormat::Unspecified | ContentFormat::Text) => false,
        Ok(ContentFormat::Json) => {
            // Builds nothing and does not recurse, so neither size nor depth can hurt.
            if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&item.content) {
                report.wrong(
                    &at_content,
                    format_args!("must be one JSON document: {error}"),
                );
            }
            true
        }
        Err(_) => {
            report.wrong(&at.child("content_format"), "must be TEXT or JSON");
            false
        }
    }
}

fn at_most_tags(report: &mut Report, at: &Path<'_>, given: Vec<String>) -> Vec<String> {
    let tags = tags(report, at, given);
    if tags.len() > MAX_TAGS {
        report.wrong(
            at,
            format_args!("must be at most {MAX_TAGS} tags, not {}", tags.len()),
        );
    }
    tags
}

fn metadata(report: &mut Report, at: &Path<'_>, map: ValueMap) -> BTreeMap<String, Value> {
    let bytes = map.encoded_len();
    if bytes > MAX_METADATA_BYTES {
        report.wrong(
            at,
            format_args!("must be at most {MAX_METADATA_BYTES} bytes in all, not {bytes}"),
        );
    }
    value::fields(report, at, &map.fields, 1);
    map.fields
}

fn expiry(report: &mut Report, at: &Path<'_>, item: &WriteItem, context: Context<'_>) -> Expiry {
    let at_ttl = at.child("ttl");
    let at_expires = at.child("expires_at");
    if item.ttl.is_some() && item.expires_at.is_some() {
        report.wrong(&at_expires, "must not be given together with `ttl`");
    }
    if let Some(ttl) = item.ttl.and_then(|ttl| span(report, &at_ttl, &ttl)) {
        let left = LATEST.0.saturating_sub(context.now.0).unsigned_abs();
        if ttl > Duration::from_micros(left) {
            report.wrong(&at_ttl, "must end before the year 10000");
        }
        return Expiry::After(ttl);
    }
    if let Some(expires) = item
        .expires_at
        .and_then(|time| instant(report, &at_expires, &time))
    {
        if expires <= context.now {
            report.wrong(&at_expires, "must be in the future");
        }
        return Expiry::At(expires);
    }
    Expiry::ByKind
}

fn sources(report: &mut Report, at: &Path<'_>, sources: &[Source]) {
    if sources.len() > MAX_SOURCES {
        report.wrong(
            at,
            format_args!(
                "must be at most {MAX_SOURCES} sources, not {}",
                sources.len()
            ),
        );
    }
    for (
        i,
        Source {
            uri,
            session,
            speaker,
        },
    ) in sources.iter().enumerate()
    {
        let at = at.index(i);
        if uri.is_empty() && session.is_empty() && speaker.is_empty() {
            report.wrong(&at, "must have at least one field set");
        }
        text(
            report,
            &at.child("uri"),
            uri,
            0..=MAX_URI_BYTES,
            Characters::Any,
        );
        text(
            report,
            &at.child("session"),
            session,
            0..=MAX_SPEAKER_BYTES,
            Characters::Any,
        );
        text(
            report,
            &at.child("speaker"),
            speaker,
            0..=MAX_SPEAKER_BYTES,
            Characters::Any,
        );
    }
}

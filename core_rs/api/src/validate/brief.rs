//! `BriefRequest`.

use std::collections::{HashMap, HashSet};

use recalld_engine::types::{Brief, BriefFormat, Section};
use recalld_proto::v1::{self, BriefRequest};
use recalld_store::ids::MemoryId;

use super::Context;
use super::fields::{Characters, counter, kind, number, text};
use super::namespace::namespace;
use super::query::{GivenQuery, query};
use super::report::{Path, Report, quoted};
use crate::error::Failure;
use crate::limits::{
    DEFAULT_BRIEF_MEMORIES, DEFAULT_BUDGET, MAX_BRIEF_MEMORIES, MAX_BUDGET, MAX_KEY_BYTES,
    MAX_PINNED, MAX_SECTIONS, MAX_TITLE_BYTES,
};

/// Checks a request for a brief. `if_fingerprint` may be any text: what is no fingerprint equals none.
pub(crate) fn brief(request: BriefRequest, context: Context<'_>) -> Result<Brief, Failure> {
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
    let counter = counter(&mut report, &request.encoding, context);
    let format = format(&mut report, request.format);
    let sections = sections(&mut report, request.sections);
    let pinned_ids = pinned(&mut report, &request.pinned_ids, &request.pinned_keys);
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
        explain: false,
        latency_budget: request.latency_budget,
        at_least_as_fresh: request.at_least_as_fresh,
    };
    let query = query(&mut report, given, context);
    report.finish(Brief {
        namespace,
        query,
        budget,
        counter,
        format,
        sections,
        pinned_ids,
        pinned_keys: request.pinned_keys,
    })
}

fn format(report: &mut Report, value: i32) -> BriefFormat {
    match v1::BriefFormat::try_from(value) {
        Ok(v1::BriefFormat::Unspecified | v1::BriefFormat::Markdown) => BriefFormat::Markdown,
        Ok(v1::BriefFormat::Json) => BriefFormat::Json,
        Ok(v1::BriefFormat::Xml) => BriefFormat::Xml,
        Err(_) => {
            report.wrong(
                &Path::field("format"),
                format_args!("must be MARKDOWN, JSON or XML, not {value}"),
            );
            BriefFormat::Markdown
        }
    }
}

fn sections(report: &mut Report, given: Vec<v1::BriefSection>) -> Vec<Section> {
    let at = Path::field("sections");
    if given.len() > MAX_SECTIONS {
        report.wrong(
            &at,
            format_args!("must be at most {MAX_SECTIONS}, not {}", given.len()),
        );
    }
    let mut titles = HashMap::new();
    for (i, section) in given.iter().enumerate() {
        let at = at.index(i);
        title(report, &at.child("title"), &section.title);
        if let Some(before) = titles.insert(section.title.as_str(), i) {
            report.wrong(
                &at.child("title"),
                format_args!("stands in `sections[{before}]` too"),
            );
        }
        let at_kinds = at.child("kinds");
        for (i, name) in section.kinds.iter().enumerate() {
            kind(report, &at_kinds.index(i), name);
        }
        if section.max_tokens == Some(0) {
            report.wrong(&at.child("max_tokens"), "must be at least 1");
        }
    }
    given
        .into_iter()
        .map(|section| Section {
            title: section.title,
            kinds: section.kinds,
            max_tokens: section.max_tokens,
        })
        .collect()
}

fn title(report: &mut Report, at: &Path<'_>, value: &str) {
    text(
        report,
        at,
        value,
        1..=MAX_TITLE_BYTES,
        Characters::Printable,
    );
    if value.contains(['\u{2028}', '\u{2029}']) {
        report.wrong(at, "must be on one line");
    }
    if !value.is_empty() && value.trim().is_empty() {
        report.wrong(at, "must not be only white space");
    }
}

/// The fields `pinned_ids` and `pinned_keys`. No memory is named twice by the same name.
fn pinned(report: &mut Report, ids: &[String], keys: &[String]) -> Vec<MemoryId> {
    let at = Path::field("pinned_ids");
    let pinned = ids.len() + keys.len();
    if pinned > MAX_PINNED {
        report.wrong(
            &at,
            format_args!("must be at most {MAX_PINNED} together with `pinned_keys`, not {pinned}"),
        );
    }
    let mut parsed = Vec::with_capacity(ids.len());
    let mut seen = HashSet::new();
    for (i, given) in ids.iter().enumerate() {
        match given.parse::<MemoryId>() {
            Ok(id) if seen.insert(id) => parsed.push(id),
            Ok(_) => report.wrong(&at.index(i), "is pinned already"),
            Err(error) => report.wrong(
                &at.index(i),
                format_args!("{error}; this is {}", quoted(given)),
            ),
        }
    }
    let at = Path::field("pinned_keys");
    let mut seen = HashSet::new();
    for (i, key) in keys.iter().enumerate() {
        text(
            report,
            &at.index(i),
            key,
            1..=MAX_KEY_BYTES,
            Characters::Printable,
        );
        if !seen.insert(key) {
            report.wrong(&at.index(i), "is pinned already");
        }
    }
    parsed
}

//! The sentences of a memory that answer the query: its summary in this brief.

use recalld_algo::bm25;
use recalld_algo::passages::Span;
use recalld_algo::summary::{QueryTerms, SUMMARY_TOKENS, answer, answer_json};
use recalld_proto::storage::v1::Record;
use recalld_store::codec::postings;
use recalld_store::{StoreError, keys};

use crate::indexed::with_analyzer;
use crate::search::Scored;
use crate::snapshot::Snapshot;

/// The best passages of a memory, in which sentences are looked for: a summary is hardly longer than one.
const PASSAGES: usize = 2;
/// JSON has to be read whole. As much of it is read for one brief, the best memories first; others keep their stored
/// summaries. That is 2 ms.
const JSON_BYTES: usize = 128 << 10;

/// Makes summaries for one query.
pub(super) struct Focus {
    query: QueryTerms,
    json_bytes: usize,
}

impl Focus {
    /// Weighs the words of a query as the lexical arm does.
    pub(super) fn new(snapshot: &Snapshot<'_>, query: &str) -> Result<Self, StoreError> {
        Ok(Self {
            query: words(snapshot, query)?,
            json_bytes: JSON_BYTES,
        })
    }

    /// One line of at most 80 tokens; none where the stored summary has to do: when no word of the query is in the best
    /// passages, or when the memory is short enough to be its own summary.
    pub(super) fn answer(
        &mut self,
        record: &Record,
        content: &str,
        scored: &Scored,
    ) -> Option<String> {
        if record.tokens_o200k <= SUMMARY_TOKENS || self.query.is_empty() {
            return None;
        }
        with_analyzer(|analyzer| {
            if content.trim_start().starts_with(['{', '['])
                && let Some(left) = self.json_bytes.checked_sub(content.len())
            {
                self.json_bytes = left;
                if let Some(line) = answer_json(analyzer, &self.query, content) {
                    return Some(line);
                }
            }
            let best = scored.passages.iter().take(PASSAGES);
            let spans: Vec<Span> = best
                .filter_map(|(index, _)| record.passages.get(*index as usize))
                .map(|passage| Span {
                    start: passage.start,
                    end: passage.end,
                })
                .collect();
            answer(analyzer, &self.query, content, &spans)
        })
    }
}

/// The words of a query that the namespace knows, with their inverse document frequencies.
fn words(snapshot: &Snapshot<'_>, query: &str) -> Result<QueryTerms, StoreError> {
    let (schema, ns) = (snapshot.docs.schema, snapshot.docs.ns);
    let memories = snapshot.state.memories as u32;
    let facts = snapshot.facts()?;
    let mut words = Vec::new();
    for (term, times) in with_analyzer(|analyzer| analyzer.counts(query)) {
        let mut holding = 0;
        let mut last = None;
        for entry in schema
            .postings
            .prefix(snapshot.txn, &keys::term(ns, &term))?
        {
            let (key, block) = entry?;
            let damaged = || schema.postings.damaged(key);
            let first = keys::trailing_number(key).ok_or_else(damaged)?;
            postings::for_each(first, block, |posting| {
                let doc = Some(facts.document(posting.row));
                holding += u32::from(doc != last);
                last = doc;
            })
            .ok_or_else(damaged)?;
        }
        if holding > 0 {
            let weight = bm25::idf(memories, holding) * times as f32;
            words.push((term, f64::from(weight)));
        }
    }
    Ok(QueryTerms::new(words))
}

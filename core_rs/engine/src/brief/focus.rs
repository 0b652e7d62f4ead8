//! The sentences of a memory that answer the query: its summary in this brief.

use recalld_algo::passages::Span;
use recalld_algo::summary::{Answer, QueryTerms, answer, answer_json};
use recalld_proto::storage::v1::Record;

use crate::indexed::with_analyzer;
use crate::search::Scored;

/// Memories up to this long are hardly shortened by leaving sentences out.
pub(super) const SHORT_TOKENS: u32 = 50;
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
    /// For the terms of a query, weighed as the lexical arm does.
    pub(super) fn new(terms: &[(Box<str>, f64)]) -> Self {
        Self {
            query: QueryTerms::new(terms.to_vec()),
            json_bytes: JSON_BYTES,
        }
    }

    /// None where the stored summary has to do: when no word of the query is in the best passages, or when the memory is
    /// short.
    pub(super) fn answer(
        &mut self,
        record: &Record,
        content: &str,
        scored: &Scored,
    ) -> Option<Answer> {
        if record.tokens_o200k <= SHORT_TOKENS || self.query.is_empty() {
            return None;
        }
        with_analyzer(|analyzer| {
            if content.trim_start().starts_with(['{', '['])
                && let Some(left) = self.json_bytes.checked_sub(content.len())
            {
                self.json_bytes = left;
                if let Some(answer) = answer_json(analyzer, &self.query, content) {
                    return Some(answer);
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

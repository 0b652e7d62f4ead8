//! Deterministic extractive summaries: the one line that stands for a memory in a search result.
//!
//! A summary repeats words of the text and never states anything that the text does not: sentences are chosen whole, in
//! text order, and where one must be cut, no number, date, name, quotation or negation is cut or parted from its word
//! (see [`crate::protect`]). It is always one line without control characters, and always within its tokens.
//!
//! Sentences are chosen greedily by the frequency of their terms in the text, as in `SumBasic` (Nenkova and Vanderwende,
//! "The Impact of Frequency on Summarization", 2005): terms that a chosen sentence has count less from then on, so that
//! the next says something else. Position and protected parts add to it. `answer` chooses by the words of a query instead.

mod answer;
mod cut;
mod extract;
mod json;

use crate::tokens::Encoding;

pub use answer::{Answer, QueryTerms, answer, answer_json};
pub use cut::one_line;
pub use json::flatten_json;

/// The most tokens of a summary in `o200k_base`.
pub const SUMMARY_TOKENS: u32 = 80;

/// The most tokens of a headline in `o200k_base`.
pub const HEADLINE_TOKENS: u32 = 16;

/// The encoding that summaries are measured in.
const ENCODING: Encoding = Encoding::O200kBase;

/// A summary of `text` in at most [`SUMMARY_TOKENS`] tokens.
///
/// A text within that is its own summary, with each run of white space and control characters as one space. A JSON object
/// or array becomes its leaves as `key: value`: all of them if they fit, else the most telling. Takes linear time.
pub fn summarize(text: &str) -> String {
    if let Some(summary) = json::summary(text) {
        return summary;
    }
    let line = cut::one_line(text);
    if ENCODING.count_within(&line, SUMMARY_TOKENS).is_some() {
        return line;
    }
    extract::summary(text).unwrap_or_else(|| cut::cut(&line, SUMMARY_TOKENS))
}

/// The start of a summary in at most [`HEADLINE_TOKENS`] tokens, cut by the same rule.
pub fn headline(summary: &str) -> String {
    cut::cut(&cut::one_line(summary), HEADLINE_TOKENS)
}

/// A part of a text that may go into a summary.
struct Candidate {
    /// Where it stands in the text.
    order: usize,
    text: String,
}

/// Joins candidates in text order, each after the `separator` for what stands before it.
fn in_order(chosen: &[Candidate], separator: impl Fn(&str) -> &'static str) -> String {
    let mut ordered: Vec<&Candidate> = chosen.iter().collect();
    ordered.sort_by_key(|candidate| candidate.order);
    let mut summary = String::new();
    for candidate in ordered {
        if !summary.is_empty() {
            let separator = separator(&summary);
            summary.push_str(separator);
        }
        summary.push_str(&candidate.text);
    }
    summary
}

/// Joins the chosen candidates, leaving out the last chosen until the result fits.
fn joined(mut chosen: Vec<Candidate>, separator: impl Fn(&str) -> &'static str) -> Option<String> {
    while !chosen.is_empty() {
        let summary = in_order(&chosen, &separator);
        if ENCODING.count_within(&summary, SUMMARY_TOKENS).is_some() {
            return Some(summary);
        }
        chosen.pop();
    }
    None
}

#[cfg(test)]
mod tests;

//! What of a memory is indexed: the text of each passage with its head, and the terms in it.
//!
//! The head is the date, when the writer gave one, and the speaker of the first source: without them every measured
//! recall fell. Writing, deleting and verifying all derive terms from a record and its content here, so that they
//! cannot disagree.

use std::cell::RefCell;

use recalld_algo::statement;
use recalld_algo::terms::Analyzer;
use recalld_proto::storage::v1::Record;
use recalld_store::ids::Micros;

use crate::calendar;

/// A term and how often it stands in a passage.
pub(crate) type TermCount = (Box<str>, u32);

thread_local! {
    static ANALYZER: RefCell<Analyzer> = RefCell::new(Analyzer::new());
}

/// Calls `with` with this thread's analyzer.
pub(crate) fn with_analyzer<T>(with: impl FnOnce(&mut Analyzer) -> T) -> T {
    ANALYZER.with_borrow_mut(with)
}

/// The date and speaker before a passage; empty when neither is known.
pub(crate) fn head(record: &Record) -> String {
    let mut head = String::new();
    if record.occurred_at_given {
        head.push('[');
        head.push_str(&calendar::date(Micros(record.occurred_at_micros)));
        head.push_str("] ");
    }
    if let Some(source) = record.sources.first()
        && !source.speaker.is_empty()
    {
        head.push_str(&source.speaker);
        head.push_str(": ");
    }
    head
}

/// Names what a memory states: the same for memories of one kind and speaker that state the same.
pub(crate) fn statement(record: &Record, content: &str) -> u64 {
    let speaker = record.sources.first().map_or("", |source| &source.speaker);
    let mut hasher = blake3::Hasher::new();
    for part in [&record.kind, speaker, &statement::statement(content)] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let hash = hasher.finalize();
    hash.as_bytes()
        .first_chunk::<8>()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The text of passage `index` as it is embedded.
pub(crate) fn passage_text(head: &str, record: &Record, content: &str, index: usize) -> String {
    let text = record
        .passages
        .get(index)
        .and_then(|span| content.get(span.start as usize..span.end as usize))
        .unwrap_or_default();
    format!("{head}{text}")
}

/// The terms of every passage, in order. The first also holds those of the key and the tags, by which a memory is
/// known as much as by its words.
pub(crate) fn terms(record: &Record, content: &str) -> Vec<Vec<TermCount>> {
    let head = head(record);
    with_analyzer(|analyzer| {
        (0..record.passages.len())
            .map(|index| {
                let mut text = passage_text(&head, record, content, index);
                if index == 0 {
                    for name in std::iter::once(&record.key).chain(&record.tags) {
                        text.push('\n');
                        text.push_str(name);
                    }
                }
                analyzer.counts(&text)
            })
            .collect()
    })
}

//! The forms in which a memory can stand in a brief, each with its exact cost and its value.

use recalld_algo::tokens::Encoding;
use recalld_proto::storage::v1::Record;
use recalld_store::ids::MemoryId;

use super::render;
use crate::search::Scored;
use crate::summaries;
use crate::types::Form;

/// What a form keeps of a memory's value.
const FULL: f64 = 1.0;
const SUMMARY: f64 = 0.5;
const HEADLINE: f64 = 0.2;
/// A passage keeps this share of the value for its place: the best one nearly all of it.
const PASSAGES: [f64; 3] = [0.8, 0.9, 0.95];

/// One form of a memory.
pub(super) struct OfferedForm {
    pub(super) form: Form,
    /// Its lines, ending with a line feed.
    pub(super) text: String,
    pub(super) tokens: u32,
    pub(super) value: u64,
}

/// A memory with its forms.
pub(super) struct Offer {
    /// Place in the ranking, from 0.
    pub(super) rank: usize,
    pub(super) id: MemoryId,
    pub(super) key: String,
    pub(super) version: u64,
    pub(super) citation: String,
    pub(super) forms: Vec<OfferedForm>,
}

impl Offer {
    pub(super) fn new(
        rank: usize,
        place: usize,
        scored: &Scored,
        record: &Record,
        content: &str,
        worth: f64,
        encoding: Encoding,
    ) -> Self {
        let citation = format!("[m{place}]");
        let head = render::head(&citation, record);
        let mut forms: Vec<OfferedForm> = Vec::new();
        let mut add = |form: Form, body: &str, share: f64| {
            let text = format!("{head}{body}\n");
            if body.is_empty() || forms.iter().any(|known| known.text == text) {
                return;
            }
            let tokens = encoding.count(&text);
            // A form that costs no less than a better one is of no use; the packer would drop it too.
            forms.push(OfferedForm {
                form,
                text,
                tokens,
                value: (worth * share) as u64,
            });
        };
        add(Form::Full, &render::block(content), FULL);
        if record.passages.len() > 1 {
            for (count, share) in (1..).zip(PASSAGES) {
                if count < record.passages.len() {
                    add(
                        Form::Passages,
                        &quote(scored, record, content, count),
                        share,
                    );
                }
            }
        }
        let summary = summaries::shown(record, content);
        add(Form::Summary, &render::one_line(&summary), SUMMARY);
        add(
            Form::Headline,
            &render::one_line(&record.headline),
            HEADLINE,
        );
        Self {
            rank,
            id: scored.header.id,
            key: record.key.clone(),
            version: record.version,
            citation,
            forms,
        }
    }
}

/// The `count` best passages in the order of the content; neighbours run on, gaps show as an ellipsis.
fn quote(scored: &Scored, record: &Record, content: &str, count: usize) -> String {
    let mut chosen: Vec<u32> = scored
        .passages
        .iter()
        .take(count)
        .map(|(index, _)| *index)
        .collect();
    chosen.sort_unstable();
    let mut text = String::new();
    let mut next = 0;
    for index in chosen {
        let Some(span) = record.passages.get(index as usize) else {
            continue;
        };
        let passage = content
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default();
        if index > next {
            text.push_str(if text.is_empty() { "… " } else { " … " });
        } else if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&render::one_line(passage));
        next = index + 1;
    }
    if (next as usize) < record.passages.len() {
        text.push_str(" …");
    }
    text
}

//! The forms in which a memory can stand in a brief, each with its exact cost and its value.
//!
//! What a form costs does not depend on the query, but for quoted passages, so it is counted once, when the memory is
//! written; a text is made only of the forms that are taken.

use recalld_algo::tokens::Encoding;
use recalld_proto::storage::v1::{FormTokens, Record};
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
const PASSAGES: [f64; 3] = [0.9, 0.95, 0.97];

/// Counts the tokens of a memory's forms. The record has its summary and headline already.
pub(crate) fn measure(record: &Record, content: &str, encoding: Encoding) -> FormTokens {
    let full = body(record, content, &Body::Full);
    let count = |body: &str| {
        if body.is_empty() {
            0
        } else {
            encoding.count(&render::tail(body))
        }
    };
    let other = |form: &Body| {
        let body = body(record, content, form);
        if body == full { 0 } else { count(&body) }
    };
    FormTokens {
        full: count(&full),
        summary: other(&Body::Summary),
        headline: other(&Body::Headline),
    }
}

/// Where the text of a form comes from.
enum Body {
    Full,
    Summary,
    Headline,
    Quote(String),
}

fn body(record: &Record, content: &str, body: &Body) -> String {
    match body {
        Body::Full => render::block(content),
        Body::Summary => render::one_line(&summaries::shown(record, content)),
        Body::Headline => render::one_line(&record.headline),
        Body::Quote(text) => text.clone(),
    }
}

/// One form of a memory.
pub(super) struct OfferedForm {
    pub(super) form: Form,
    pub(super) tokens: u32,
    pub(super) value: u64,
    body: Body,
}

/// A memory with its forms.
pub(super) struct Offer<'t> {
    /// Place in the ranking, from 0.
    pub(super) rank: usize,
    pub(super) id: MemoryId,
    pub(super) record: Record,
    pub(super) citation: String,
    pub(super) forms: Vec<OfferedForm>,
    content: &'t str,
    head: String,
}

impl<'t> Offer<'t> {
    pub(super) fn new(
        rank: usize,
        place: usize,
        scored: &Scored,
        record: Record,
        content: &'t str,
        worth: f64,
        encoding: Encoding,
    ) -> Self {
        let citation = format!("[m{place}]");
        let head = render::head(&citation, &record);
        let of_head = encoding.count(&head);
        let stored = match encoding {
            Encoding::O200kBase => record.form_tokens_o200k,
            Encoding::Cl100kBase => record.form_tokens_cl100k,
        }
        .unwrap_or_default();
        let mut forms = Vec::with_capacity(6);
        let mut add = |form: Form, body: Body, tokens: u32, share: f64| {
            if tokens > 0 {
                forms.push(OfferedForm {
                    form,
                    tokens: of_head + tokens,
                    value: (worth * share) as u64,
                    body,
                });
            }
        };
        add(Form::Full, Body::Full, stored.full, FULL);
        for (count, share) in (1..record.passages.len()).zip(PASSAGES) {
            let text = quote(scored, &record, content, count);
            let tokens = encoding.count(&render::tail(&text));
            add(Form::Passages, Body::Quote(text), tokens, share);
        }
        add(Form::Summary, Body::Summary, stored.summary, SUMMARY);
        add(Form::Headline, Body::Headline, stored.headline, HEADLINE);
        Self {
            rank,
            id: scored.header.id,
            record,
            citation,
            forms,
            content,
            head,
        }
    }

    /// The lines of a form, ending with a line feed.
    pub(super) fn lines(&self, form: &OfferedForm) -> String {
        let body = body(&self.record, self.content, &form.body);
        format!("{}{}", self.head, render::tail(&body))
    }

    /// Tokens of the smallest form.
    pub(super) fn least(&self) -> u32 {
        self.forms.iter().map(|form| form.tokens).min().unwrap_or(0)
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
        text.push_str(passage);
        next = index + 1;
    }
    if (next as usize) < record.passages.len() {
        text.push_str(" …");
    }
    // Only now: a tag of ours might be put together from the end of one passage and the beginning of the next.
    render::one_line(&text)
}

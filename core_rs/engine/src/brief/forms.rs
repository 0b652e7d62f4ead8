//! The forms in which a memory can stand in a brief, each with its exact cost and its value.
//!
//! In Markdown, what the whole, the stored summary and the headline cost does not depend on the query, so for the
//! vocabularies that are compiled in it is counted once, when the memory is written; a text is made only of the forms that
//! are taken. All else is counted here.

use std::borrow::Cow;

use recalld_algo::summary::Answer;
use recalld_algo::tokens::Encoding;
use recalld_counters::Counter;
use recalld_proto::storage::v1::{FormTokens, Record};
use recalld_store::ids::MemoryId;

use super::clean::one_line;
use super::layout::Costs;
use super::worth::{
    ALWAYS_OFFERED, CORE, FULL, HEADLINE, PASSAGE_TOKENS, PASSAGES, SUMMARY, worth,
};
use crate::search::Scored;
use crate::summaries;
use crate::types::{BriefFormat, Form, Included, Omission, Omitted};

/// Counts the tokens of a memory's forms in Markdown. The record has its summary and headline already.
pub(crate) fn measure(record: &Record, content: &str, counter: &Counter) -> FormTokens {
    let format = BriefFormat::Markdown;
    let full = text(format, record, content, &Body::Full);
    let count = |text: &str| {
        if text.is_empty() {
            0
        } else {
            counter.count(&format.tail(text))
        }
    };
    let other = |body: &Body| {
        let text = text(format, record, content, body);
        if text == full { 0 } else { count(&text) }
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
    /// Cleaned already.
    Quote(String),
}

fn text(format: BriefFormat, record: &Record, content: &str, body: &Body) -> String {
    match body {
        Body::Full => format.block(content),
        Body::Summary => one_line(&summaries::shown(record, content)),
        Body::Headline => one_line(&record.headline),
        Body::Quote(text) => text.clone(),
    }
}

/// A memory that a brief may carry, before its forms are made.
pub(super) struct Source<'t> {
    pub(super) id: MemoryId,
    pub(super) record: Record,
    pub(super) content: &'t str,
    /// What the search said of it; none for a pinned memory that it did not find.
    pub(super) scored: Option<&'t Scored>,
    pub(super) pinned: bool,
    /// The section that takes it; none without sections and for pinned memories.
    pub(super) section: Option<usize>,
    /// Its place among all that was found or pinned: pinned memories first, then the best.
    pub(super) rank: usize,
    /// Whether it is good enough to be read for the query.
    pub(super) is_read: bool,
}

/// What the forms of one memory cost.
struct Pricing<'p> {
    record: &'p Record,
    content: &'p str,
    costs: &'p Costs<'p>,
    head: String,
    /// Of the head, and of the tails that were counted at the write.
    stored: Option<(u32, FormTokens)>,
    /// The whole content, where it was not counted.
    full: String,
}

impl<'p> Pricing<'p> {
    fn new(source: &'p Source<'_>, citation: &str, costs: &'p Costs<'p>) -> Self {
        let record = &source.record;
        let head = costs.format.head(citation, record);
        let stored = match (costs.format, costs.counter.encoding()) {
            (BriefFormat::Markdown, Some(Encoding::O200kBase)) => record.form_tokens_o200k,
            (BriefFormat::Markdown, Some(Encoding::Cl100kBase)) => record.form_tokens_cl100k,
            _ => None,
        };
        let stored = stored.map(|tails| (costs.memory(&head), tails));
        let full = if stored.is_some() {
            String::new()
        } else {
            costs.format.block(source.content)
        };
        Self {
            record,
            content: source.content,
            costs,
            head,
            stored,
            full,
        }
    }

    /// Tokens of the memory in a form; none when it is empty or says what the whole content says.
    fn tokens(&self, body: &Body) -> Option<u32> {
        let format = self.costs.format;
        if let Some((head, tails)) = &self.stored {
            let tail = match body {
                Body::Full => tails.full,
                Body::Summary => tails.summary,
                Body::Headline => tails.headline,
                Body::Quote(text) if text.is_empty() => 0,
                Body::Quote(text) => self.costs.counter.count(&format.tail(text)),
            };
            return (tail > 0).then_some(head + tail);
        }
        let text = match body {
            Body::Full => Cow::Borrowed(&self.full),
            body => Cow::Owned(text(format, self.record, self.content, body)),
        };
        let repeats = matches!(body, Body::Summary | Body::Headline) && *text == self.full;
        (!text.is_empty() && !repeats).then(|| {
            self.costs
                .memory(&format!("{}{}", self.head, format.tail(&text)))
        })
    }
}

impl Source<'_> {
    /// What an answer says when the memory is left out before its forms are made.
    pub(super) fn omitted(&self, reason: Omission, costs: &Costs<'_>) -> Omitted {
        let pricing = Pricing::new(self, "[m1]", costs);
        let shortest = [Body::Headline, Body::Summary, Body::Full]
            .iter()
            .find_map(|body| pricing.tokens(body));
        self.omitted_at(reason, shortest.unwrap_or(0))
    }

    fn omitted_at(&self, reason: Omission, tokens: u32) -> Omitted {
        Omitted {
            id: Some(self.id),
            key: self.record.key.clone(),
            reason,
            tokens,
        }
    }
}

/// One form of a memory.
pub(super) struct OfferedForm {
    form: Form,
    pub(super) tokens: u32,
    pub(super) value: u64,
    body: Body,
}

/// A memory with its forms.
pub(super) struct Offer<'t> {
    pub(super) source: Source<'t>,
    /// The whole, quotations from one passage up, summaries, the headline.
    pub(super) forms: Vec<OfferedForm>,
    citation: String,
    head: String,
    format: BriefFormat,
}

impl<'t> Offer<'t> {
    /// `place` is its number among all that are cited, `even` the tokens that every memory could have of the budget,
    /// `answer` what it says to the query, where it was read for it.
    pub(super) fn new(
        source: Source<'t>,
        place: usize,
        even: u32,
        answer: Option<Answer>,
        costs: &Costs<'_>,
    ) -> Self {
        let citation = format!("[m{place}]");
        let pricing = Pricing::new(&source, &citation, costs);
        let worth = source.scored.map_or(0.0, worth);
        let mut forms = Vec::with_capacity(6);
        let mut add = |form: Form, body: Body, share: f64| {
            if let Some(tokens) = pricing.tokens(&body) {
                forms.push(OfferedForm {
                    form,
                    tokens,
                    // What is worth nothing still stands where there is room.
                    value: ((worth * share) as u64).max(1),
                    body,
                });
            }
        };
        add(Form::Full, Body::Full, FULL);
        if let Some(scored) = source.scored.filter(|_| source.is_read && !source.pinned) {
            let room = (2 * even / PASSAGE_TOKENS) as usize;
            let most =
                (source.record.passages.len().saturating_sub(1)).min(room.max(ALWAYS_OFFERED));
            for (count, share) in PASSAGES.into_iter().filter(|(count, _)| *count <= most) {
                let text = quote(scored, &source.record, source.content, count);
                add(Form::Passages, Body::Quote(text), share);
            }
        }
        let quoted = |line: &str| Body::Quote(one_line(line));
        match answer {
            Some(Answer { summary, core }) => {
                add(Form::Summary, quoted(&summary), SUMMARY);
                if let Some(core) = core {
                    add(Form::Headline, quoted(&core), CORE);
                }
            }
            None => add(Form::Summary, Body::Summary, SUMMARY),
        }
        add(Form::Headline, Body::Headline, HEADLINE);
        let head = pricing.head;
        Self {
            forms,
            citation,
            head,
            format: costs.format,
            source,
        }
    }

    /// What stands in the text for a form.
    pub(super) fn text(&self, form: &OfferedForm) -> String {
        let Source {
            record, content, ..
        } = &self.source;
        let text = text(self.format, record, content, &form.body);
        format!("{}{}", self.head, self.format.tail(&text))
    }

    pub(super) fn included(&self, form: &OfferedForm, section: &str) -> Included {
        Included {
            id: self.source.id,
            key: self.source.record.key.clone(),
            version: self.source.record.version,
            form: form.form,
            tokens: form.tokens,
            citation: self.citation.clone(),
            section: section.to_owned(),
            pinned: self.source.pinned,
            weak: self.source.scored.is_some_and(|scored| scored.weak),
        }
    }

    pub(super) fn omitted(&self, reason: Omission) -> Omitted {
        let least = self.forms.iter().map(|form| form.tokens).min();
        self.source.omitted_at(reason, least.unwrap_or(0))
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
    // One that stands for the memory that was found may have fewer passages.
    if text.is_empty() {
        return text;
    }
    if (next as usize) < record.passages.len() {
        text.push_str(" …");
    }
    // Only now: a tag of ours might be put together from the end of one passage and the beginning of the next.
    one_line(&text)
}

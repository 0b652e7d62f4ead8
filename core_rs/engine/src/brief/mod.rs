//! Briefs: the best forms of the best memories within an exact number of tokens.
//!
//! The text is a function of the state and the request: recency is measured from the newest memory and not from the
//! clock, lines stand in a fixed order, and there are no scores or relative times in it. Same state, same bytes.

mod forms;
mod render;

use recalld_algo::pack::{self, pack};
use recalld_algo::tokens::Encoding;
use recalld_store::StoreError;

use crate::EngineError;
use crate::search::{Outcome, Scored};
use crate::snapshot::Snapshot;
use crate::types::{Included, Omission, Omitted};

use forms::Offer;

/// A packed brief.
pub(crate) struct Packed {
    pub(crate) text: String,
    pub(crate) tokens: u32,
    pub(crate) included: Vec<Included>,
    pub(crate) omitted: Vec<Omitted>,
    pub(crate) fingerprint: String,
}

/// Value of a memory in millionths: relevance says whether it helps at all, the score how much it should count.
fn worth(scored: &Scored) -> f64 {
    scored.relevance * scored.score * 1e6
}

/// Packs what a search found.
pub(crate) fn build(
    snapshot: &Snapshot<'_>,
    outcome: &Outcome,
    budget: u32,
    encoding: Encoding,
) -> Result<Packed, EngineError> {
    let (offers, mut omitted) = offers(snapshot, &outcome.scored, encoding)?;
    let frame = encoding.count(&render::frame(&[]));
    let mut room = budget.saturating_sub(frame);
    loop {
        let packing = pack(&offers.iter().map(Offer::priced).collect::<Vec<_>>(), room);
        let lines: Vec<&str> = offers
            .iter()
            .zip(&packing.choices)
            .filter_map(|(offer, choice)| Some(offer.forms[usize::from((*choice)?)].text.as_str()))
            .collect();
        let text = if lines.is_empty() {
            String::new()
        } else {
            render::frame(&lines)
        };
        let tokens = encoding.count(&text);
        // Lines are built so that counts add up; should a tokenizer ever disagree, the budget still holds.
        if tokens > budget {
            room = room.saturating_sub(tokens - budget);
            continue;
        }
        let mut included = Vec::new();
        for (offer, choice) in offers.iter().zip(&packing.choices) {
            match choice {
                Some(choice) => {
                    let form = &offer.forms[usize::from(*choice)];
                    included.push(Included {
                        id: offer.id,
                        key: offer.key.clone(),
                        version: offer.version,
                        form: form.form,
                        tokens: form.tokens,
                        citation: offer.citation.clone(),
                    });
                }
                None => omitted.push((
                    offer.rank,
                    Omitted {
                        id: offer.id,
                        reason: Omission::Budget,
                        tokens: offer.least(),
                    },
                )),
            }
        }
        omitted.sort_by_key(|(rank, _)| *rank);
        let fingerprint = fingerprint(&text);
        let omitted = omitted.into_iter().map(|(_, omitted)| omitted).collect();
        return Ok(Packed {
            text,
            tokens,
            included,
            omitted,
            fingerprint,
        });
    }
}

/// Names a text: 32 hexadecimal digits.
pub(crate) fn fingerprint(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

type Ranked<T> = (usize, T);

/// The offers in the order of the text, and the memories whose text another one has.
fn offers(
    snapshot: &Snapshot<'_>,
    scored: &[Scored],
    encoding: Encoding,
) -> Result<(Vec<Offer>, Vec<Ranked<Omitted>>), StoreError> {
    let mut seen = std::collections::HashSet::new();
    let mut sources = Vec::new();
    let mut duplicates = Vec::new();
    for (rank, scored) in scored.iter().enumerate() {
        let record = snapshot.docs.record(snapshot.txn, scored.doc)?;
        let content = snapshot.docs.content(snapshot.txn, scored.doc)?;
        if seen.insert(render::one_line(content)) {
            sources.push((rank, scored, record, content));
        } else {
            duplicates.push((rank, scored, record, content));
        }
    }
    sources.sort_by(|(_, a, a_record, _), (_, b, b_record, _)| {
        let order = |scored: &Scored| (scored.header.occurred_at, scored.header.id);
        render::layer(&a_record.kind)
            .cmp(&render::layer(&b_record.kind))
            .then_with(|| order(a).0.cmp(&order(b).0))
            .then_with(|| a_record.key.cmp(&b_record.key))
            .then_with(|| order(a).1.cmp(&order(b).1))
    });
    let offers: Vec<Offer> = sources
        .iter()
        .enumerate()
        .map(|(place, (rank, scored, record, content))| {
            Offer::new(
                *rank,
                place + 1,
                scored,
                record,
                content,
                worth(scored),
                encoding,
            )
        })
        .collect();
    let duplicates = duplicates
        .into_iter()
        .map(|(rank, scored, record, content)| {
            let offer = Offer::new(rank, 0, scored, &record, content, worth(scored), encoding);
            (
                rank,
                Omitted {
                    id: offer.id,
                    reason: Omission::Duplicate,
                    tokens: offer.least(),
                },
            )
        })
        .collect();
    Ok((offers, duplicates))
}

impl Offer {
    fn priced(&self) -> Vec<pack::Form> {
        self.forms
            .iter()
            .map(|form| pack::Form {
                tokens: form.tokens,
                value: form.value,
            })
            .collect()
    }

    /// Tokens of the smallest form.
    fn least(&self) -> u32 {
        self.forms.iter().map(|form| form.tokens).min().unwrap_or(0)
    }
}

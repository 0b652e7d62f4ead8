//! Briefs: the best forms of the best memories within an exact number of tokens.
//!
//! The text is a function of the state and the request: recency is measured from the newest memory and not from the
//! clock, lines stand in a fixed order, and there are no scores or relative times in it. Same state, same bytes.

mod forms;
mod render;

use std::collections::HashSet;

use recalld_algo::pack::{self, pack};
use recalld_algo::tokens::Encoding;
use recalld_proto::storage::v1::Record;
use recalld_store::StoreError;

use crate::EngineError;
use crate::search::{Outcome, Scored};
use crate::snapshot::Snapshot;
use crate::types::{Included, Omission, Omitted};

pub(crate) use forms::measure;
use forms::{Offer, OfferedForm};

/// A packed brief.
pub(crate) struct Packed {
    pub(crate) text: String,
    pub(crate) tokens: u32,
    pub(crate) included: Vec<Included>,
    pub(crate) omitted: Vec<Omitted>,
    pub(crate) fingerprint: String,
}

/// Value of a memory. The packer adds values up, so they must behave like chances to help: relevance itself is far too
/// high for an average memory, and many cheap headlines would crowd out the one that answers.
/// `docs/decisions/0004-briefs.md` has the sweep.
fn worth(scored: &Scored) -> f64 {
    scored.relevance.powi(4) * scored.score * 1e9
}

/// Packs what a search found.
pub(crate) fn build(
    snapshot: &Snapshot<'_>,
    outcome: &Outcome,
    budget: u32,
    encoding: Encoding,
) -> Result<Packed, EngineError> {
    let (offers, mut omitted) = offers(snapshot, &outcome.scored, encoding)?;
    let frame = encoding.count(&render::frame::<&str>(&[]));
    let mut room = budget.saturating_sub(frame);
    loop {
        let packing = pack(&offers.iter().map(Offer::priced).collect::<Vec<_>>(), room);
        let chosen: Vec<(&Offer<'_>, &OfferedForm)> = offers
            .iter()
            .zip(&packing.choices)
            .filter_map(|(offer, choice)| Some((offer, offer.forms.get(usize::from((*choice)?))?)))
            .collect();
        let lines: Vec<String> = chosen
            .iter()
            .map(|(offer, form)| offer.lines(form))
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
        let included = chosen
            .iter()
            .map(|(offer, form)| Included {
                id: offer.id,
                key: offer.record.key.clone(),
                version: offer.record.version,
                form: form.form,
                tokens: form.tokens,
                citation: offer.citation.clone(),
            })
            .collect();
        for (offer, choice) in offers.iter().zip(&packing.choices) {
            if choice.is_none() {
                omitted.push(offer.omitted(Omission::Budget));
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
fn offers<'t>(
    snapshot: &Snapshot<'t>,
    scored: &[Scored],
    encoding: Encoding,
) -> Result<(Vec<Offer<'t>>, Vec<Ranked<Omitted>>), StoreError> {
    let mut seen = HashSet::new();
    let mut sources = Vec::with_capacity(scored.len());
    let mut duplicates = Vec::new();
    for (rank, scored) in scored.iter().enumerate() {
        let record = snapshot.docs.record(snapshot.txn, scored.doc)?;
        let content = snapshot.docs.content(snapshot.txn, scored.doc)?;
        if seen.insert(content) {
            sources.push((rank, scored, record, content));
        } else {
            let offer = Offer::new(rank, 0, scored, record, content, 0.0, encoding);
            duplicates.push(offer.omitted(Omission::Duplicate));
        }
    }
    sources.sort_by(|(_, a, a_record, _), (_, b, b_record, _)| {
        let layer = |record: &Record| render::layer(&record.kind);
        (
            layer(a_record),
            a.header.occurred_at,
            &a_record.key,
            a.header.id,
        )
            .cmp(&(
                layer(b_record),
                b.header.occurred_at,
                &b_record.key,
                b.header.id,
            ))
    });
    let offers = sources
        .into_iter()
        .enumerate()
        .map(|(place, (rank, scored, record, content))| {
            Offer::new(
                rank,
                place + 1,
                scored,
                record,
                content,
                worth(scored),
                encoding,
            )
        })
        .collect();
    Ok((offers, duplicates))
}

impl Offer<'_> {
    fn priced(&self) -> Vec<pack::Form> {
        self.forms
            .iter()
            .map(|form| pack::Form {
                tokens: form.tokens,
                value: form.value,
            })
            .collect()
    }

    fn omitted(&self, reason: Omission) -> Ranked<Omitted> {
        let omitted = Omitted {
            id: self.id,
            reason,
            tokens: self.least(),
        };
        (self.rank, omitted)
    }
}

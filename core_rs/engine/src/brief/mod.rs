//! Briefs: the best forms of the best memories within an exact number of tokens.
//!
//! The text is a function of the state and the request: recency is measured from the newest memory and not from the
//! clock, memories stand in a fixed order, and there are no scores or relative times in it. Same state, same bytes.
//!
//! 1. Pinned memories are fetched, and what the search found is dealt out to the sections.
//! 2. All of them are put in order and numbered, and the forms of each are priced.
//! 3. Pinned memories take room in the order of the request: first all in their shortest forms, then each in the longest
//!    that fits. So the last ones are shortened first, and left out first.
//! 4. The others are packed into what is left.
//! 5. The text is written and counted. The sum of the parts is a promise of two vocabularies only; should another count
//!    more than the budget, all is packed again into less.

mod clean;
mod focus;
mod forms;
mod layout;
mod worth;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use recalld_algo::pack::{self, pack, pack_sections};
use recalld_algo::summary::Answer;
use recalld_store::ids::Row;
use recalld_store::{StoreError, keys};

use crate::EngineError;
use crate::search::{Outcome, Scored};
use crate::snapshot::Snapshot;
use crate::types::{Brief, Included, Omission, Omitted, Query};

use focus::{Focus, SHORT_TOKENS};
pub(crate) use forms::measure;
use forms::{Offer, OfferedForm, Source};
use layout::{Costs, Part};
use worth::QUOTATION_TOKENS;

/// A packed brief.
pub(crate) struct Packed {
    pub(crate) text: String,
    pub(crate) tokens: u32,
    pub(crate) included: Vec<Included>,
    pub(crate) omitted: Vec<Omitted>,
    pub(crate) fingerprint: String,
}

/// The search behind a brief: pinned memories that it finds do not take the place of others.
pub(crate) fn query(brief: &Brief) -> Cow<'_, Query> {
    match brief.pinned_ids.len() + brief.pinned_keys.len() {
        0 => Cow::Borrowed(&brief.query),
        pinned => Cow::Owned(Query {
            limit: brief.query.limit + pinned,
            ..brief.query.clone()
        }),
    }
}

/// Packs what a search found.
pub(crate) fn build(
    snapshot: &Snapshot<'_>,
    outcome: &Outcome,
    brief: &Brief,
) -> Result<Packed, EngineError> {
    let costs = Costs::new(brief.format, &brief.counter);
    let candidates = candidates(snapshot, outcome, brief, &costs)?;
    let headings: Vec<String> = brief
        .sections
        .iter()
        .map(|section| brief.format.heading(&section.title))
        .collect();
    let mut allowed = brief.budget;
    loop {
        let choices = choose(&candidates.offers, brief, &headings, &costs, allowed);
        let text = write(&candidates.offers, &choices, brief, &headings);
        let tokens = brief.counter.count(&text);
        if tokens <= brief.budget {
            return Ok(finish(candidates, &choices, brief, text, tokens));
        }
        allowed = allowed.saturating_sub(tokens - brief.budget);
    }
}

/// The brief of a namespace that does not exist.
pub(crate) fn of_nothing(brief: &Brief) -> Packed {
    let missing = brief
        .pinned_ids
        .iter()
        .map(|id| Omitted::missing(Some(*id), ""));
    let missing_keys = brief
        .pinned_keys
        .iter()
        .map(|key| Omitted::missing(None, key));
    Packed {
        text: String::new(),
        tokens: 0,
        included: Vec::new(),
        omitted: missing.chain(missing_keys).collect(),
        fingerprint: fingerprint(""),
    }
}

/// Names a text: 32 hexadecimal digits.
fn fingerprint(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

/// What a brief may carry, and what it leaves out before anything is packed.
struct Candidates<'t> {
    /// In the order of the text: pinned memories, then section by section.
    offers: Vec<Offer<'t>>,
    /// With their ranks.
    omitted: Vec<(usize, Omitted)>,
    /// Memories that say what another one says: their ranks, and the rank of that.
    twins: Vec<(usize, Omitted, usize)>,
}

fn candidates<'t>(
    snapshot: &'t Snapshot<'t>,
    outcome: &'t Outcome,
    brief: &Brief,
    costs: &Costs<'_>,
) -> Result<Candidates<'t>, StoreError> {
    let scored = &outcome.scored;
    let mut sources = Vec::with_capacity(scored.len());
    let mut omitted = Vec::new();
    let mut twins = Vec::new();
    let pinned = pin(snapshot, scored, brief, &mut sources, &mut omitted)?;
    let mut rank = sources.len() + omitted.len();
    let read = sources.len() + (brief.budget / QUOTATION_TOKENS) as usize + 1;
    let mut left = brief.query.limit;
    for scored in scored {
        let found = (scored.header.id, scored.doc);
        let alike = || std::iter::once(&found).chain(&scored.duplicates);
        // One that is pinned stands for all that say the same.
        let mut standing = alike().find_map(|(_, doc)| pinned.get(doc).copied());
        if standing.is_none() && left == 0 {
            break;
        }
        left -= usize::from(standing.is_none());
        for &(id, doc) in alike().filter(|(_, doc)| !pinned.contains_key(doc)) {
            let record = snapshot.docs.record(snapshot.txn, doc)?;
            let source = Source {
                id,
                section: section(brief, &record.kind),
                record,
                content: snapshot.docs.content(snapshot.txn, doc)?,
                scored: Some(scored),
                pinned: false,
                rank,
                is_read: sources.len() < read,
            };
            rank += 1;
            if source.section.is_none() && !brief.sections.is_empty() {
                omitted.push((source.rank, source.omitted(Omission::Section, costs)));
            } else if let Some(of) = standing.or_else(|| twin(&sources, source.content)) {
                twins.push((source.rank, source.omitted(Omission::Duplicate, costs), of));
            } else {
                standing = Some(source.rank);
                sources.push(source);
            }
        }
    }
    let mut answers = answers(&sources, &outcome.terms);
    let even = brief.budget / (sources.len().max(1) as u32);
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.sort_by(|&a, &b| place(&sources[a]).cmp(&place(&sources[b])));
    let mut sources: Vec<Option<Source<'_>>> = sources.into_iter().map(Some).collect();
    let offers = order
        .into_iter()
        .filter_map(|at| sources[at].take())
        .enumerate()
        .map(|(place, source)| {
            let answer = answers.remove(&source.rank);
            Offer::new(source, place + 1, even, answer, costs)
        })
        .collect();
    Ok(Candidates {
        offers,
        omitted,
        twins,
    })
}

/// The rank of the one that has the same text: the lengths of most differ.
fn twin(sources: &[Source<'_>], content: &str) -> Option<usize> {
    let same = sources.iter().find(|source| source.content == content);
    same.map(|source| source.rank)
}

/// Fetches what is pinned, each memory once. Returns the documents with their ranks.
fn pin<'t>(
    snapshot: &'t Snapshot<'t>,
    scored: &'t [Scored],
    brief: &Brief,
    sources: &mut Vec<Source<'t>>,
    omitted: &mut Vec<(usize, Omitted)>,
) -> Result<HashMap<Row, usize>, StoreError> {
    let mut pinned = HashMap::new();
    let ids = brief.pinned_ids.iter().map(|id| (Some(*id), ""));
    let keys = brief.pinned_keys.iter().map(|key| (None, key.as_str()));
    for (id, key) in ids.chain(keys) {
        let doc = match id {
            Some(id) => snapshot.live_by_id(id)?,
            None => snapshot.live_by_key(key)?,
        };
        let rank = sources.len() + omitted.len();
        let Some(doc) = doc else {
            omitted.push((rank, Omitted::missing(id, key)));
            continue;
        };
        if pinned.contains_key(&doc) {
            continue;
        }
        pinned.insert(doc, rank);
        let numbered = keys::numbered(snapshot.docs.ns, doc.0);
        let header = snapshot
            .docs
            .header(snapshot.txn, doc)?
            .ok_or_else(|| snapshot.docs.schema.headers.damaged(&numbered))?;
        sources.push(Source {
            id: header.id,
            record: snapshot.docs.record(snapshot.txn, doc)?,
            content: snapshot.docs.content(snapshot.txn, doc)?,
            scored: scored.iter().find(|scored| scored.doc == doc),
            pinned: true,
            section: None,
            rank,
            is_read: true,
        });
    }
    Ok(pinned)
}

/// The first section that takes a kind.
fn section(brief: &Brief, kind: &str) -> Option<usize> {
    brief.sections.iter().position(|section| {
        section.kinds.is_empty() || section.kinds.iter().any(|taken| taken == kind)
    })
}

/// By rank, what long memories say to the query, the best first.
fn answers(sources: &[Source<'_>], terms: &[(Box<str>, f64)]) -> HashMap<usize, Answer> {
    let is_long =
        |source: &&Source<'_>| source.is_read && source.record.tokens_o200k > SHORT_TOKENS;
    let mut answers = HashMap::new();
    let mut focus = Focus::new(terms);
    for source in sources.iter().filter(is_long) {
        let answer = source
            .scored
            .and_then(|scored| focus.answer(&source.record, source.content, scored));
        if let Some(answer) = answer {
            answers.insert(source.rank, answer);
        }
    }
    answers
}

/// Where a memory stands in the text.
fn place<'s>(source: &'s Source<'_>) -> impl Ord + use<'s> {
    let by_rank = if source.pinned {
        source.rank
    } else {
        usize::MAX
    };
    (
        by_rank,
        source.section,
        layer(&source.record.kind),
        source.record.occurred_at_micros,
        &source.record.key,
        source.id,
    )
}

/// Order of the kinds: what always holds, then what is known, then what happened, then what was said.
fn layer(kind: &str) -> u8 {
    match kind {
        "profile" => 0,
        "event" | "task" | "stage_result" | "tool_result" => 2,
        "turn" => 3,
        _ => 1,
    }
}

/// The form taken of each offer.
fn choose(
    offers: &[Offer<'_>],
    brief: &Brief,
    headings: &[String],
    costs: &Costs<'_>,
    allowed: u32,
) -> Vec<Option<usize>> {
    let (pinned, found) = offers.split_at(offers.partition_point(|offer| offer.source.pinned));
    let mut choices = vec![None; offers.len()];
    let Some(mut room) = allowed.checked_sub(costs.frame()) else {
        return choices;
    };
    for (choice, offer) in choices.iter_mut().zip(pinned) {
        let forms = offer.forms.iter().map(|form| form.tokens).enumerate();
        let shortest = forms.min_by_key(|(_, tokens)| *tokens);
        if let Some((form, tokens)) = shortest.filter(|(_, tokens)| *tokens <= room) {
            *choice = Some(form);
            room -= tokens;
        }
    }
    for (choice, offer) in choices.iter_mut().zip(pinned) {
        let Some(shortest) = choice else { continue };
        let free = room + offer.forms[*shortest].tokens;
        // Without quotations, which are for what was found, forms stand longest first.
        if let Some(longest) = offer.forms.iter().position(|form| form.tokens <= free) {
            room = free - offer.forms[longest].tokens;
            *shortest = longest;
        }
    }
    let packing = if brief.sections.is_empty() {
        pack(&priced(found), room)
    } else {
        let with_memories = choices.iter().any(Option::is_some);
        let room = (costs.frame() + room).saturating_sub(costs.sectioned_frame(with_memories));
        let mut rest = found;
        let sections = brief.sections.iter().zip(headings).enumerate();
        let sections: Vec<pack::Section<Vec<pack::Form>>> = sections
            .map(|(at, (section, heading))| {
                let own = rest.partition_point(|offer| offer.source.section <= Some(at));
                let (own, after) = rest.split_at(own);
                rest = after;
                pack::Section {
                    items: priced(own),
                    heading: costs.heading(heading),
                    most: section.max_tokens.unwrap_or(u32::MAX),
                }
            })
            .collect();
        pack_sections(&sections, room)
    };
    for (choice, packed) in choices[pinned.len()..].iter_mut().zip(packing.choices) {
        *choice = packed.map(|form| form as usize);
    }
    choices
}

fn priced(offers: &[Offer<'_>]) -> Vec<Vec<pack::Form>> {
    let forms = |offer: &Offer<'_>| {
        let form = |form: &OfferedForm| pack::Form {
            tokens: form.tokens,
            value: form.value,
        };
        offer.forms.iter().map(form).collect()
    };
    offers.iter().map(forms).collect()
}

fn write(
    offers: &[Offer<'_>],
    choices: &[Option<usize>],
    brief: &Brief,
    headings: &[String],
) -> String {
    let mut memories = Vec::new();
    let mut parts: Vec<Part<'_>> = headings.iter().map(|heading| Part::new(heading)).collect();
    for (offer, choice) in offers.iter().zip(choices) {
        let Some(form) = choice else { continue };
        let text = offer.text(&offer.forms[*form]);
        match offer.source.section {
            Some(section) => parts[section].memories.push(text),
            None => memories.push(text),
        }
    }
    layout::text(brief.format, &memories, &parts)
}

fn finish(
    candidates: Candidates<'_>,
    choices: &[Option<usize>],
    brief: &Brief,
    text: String,
    tokens: u32,
) -> Packed {
    let Candidates {
        offers,
        mut omitted,
        twins,
    } = candidates;
    let mut included = Vec::new();
    let mut quoted = HashSet::new();
    for (offer, choice) in offers.iter().zip(choices) {
        let rank = offer.source.rank;
        if let Some(form) = choice {
            let section = offer
                .source
                .section
                .map_or("", |at| &brief.sections[at].title);
            included.push(offer.included(&offer.forms[*form], section));
            quoted.insert(rank);
        } else {
            omitted.push((rank, offer.omitted(Omission::Budget)));
        }
    }
    for (rank, mut twin, of) in twins {
        if !quoted.contains(&of) {
            twin.reason = Omission::Budget;
        }
        omitted.push((rank, twin));
    }
    omitted.sort_by_key(|(rank, _)| *rank);
    Packed {
        fingerprint: fingerprint(&text),
        text,
        tokens,
        included,
        omitted: omitted.into_iter().map(|(_, omitted)| omitted).collect(),
    }
}

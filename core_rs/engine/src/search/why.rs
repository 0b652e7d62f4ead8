//! Why a memory is, or is not, among the hits of a search: the pipeline is run for it, and the stage that drops it is
//! named with its numbers.

use std::collections::HashSet;

use recalld_store::StoreError;
use recalld_store::ids::{Micros, Row};

use super::{Search, fold, rank, ranking};
use crate::EngineError;
use crate::explain::{Stage, Target, WhyNot};
use crate::snapshot::Snapshot;
use crate::timings::Laps;
use crate::token::Token;
use crate::types::Selection;

/// Follows a memory through a search.
pub(crate) fn why_not(
    snapshot: &Snapshot<'_>,
    search: Search<'_>,
    target: &Target,
    laps: &mut Laps<'_>,
    token: Token,
) -> Result<WhyNot, EngineError> {
    let (docs, txn) = (snapshot.docs, snapshot.txn);
    let doc = match target {
        Target::Id(id) => docs.by_id(txn, *id)?,
        Target::Key(key) => docs.by_key(txn, key)?,
    };
    let Some((doc, header)) = (match doc {
        Some(doc) => docs.header(txn, doc)?.map(|header| (doc, header)),
        None => None,
    }) else {
        return Ok(WhyNot::at(Stage::NotFound, None, token));
    };
    let id = Some(header.id);
    if header.expires_at != Micros::NEVER && header.expires_at <= snapshot.now {
        return Ok(WhyNot::at(Stage::Expired, id, token));
    }
    if let Some(field) = excluded_by(snapshot, &search.query.selection, doc)? {
        let detail = field.to_owned();
        return Ok(WhyNot {
            detail,
            ..WhyNot::at(Stage::Filter, id, token)
        });
    }
    let ranked = ranking(snapshot, search, Some(doc), laps)?;
    let mut why = WhyNot {
        degraded: ranked.outcome.degraded,
        ..WhyNot::at(Stage::Candidates, id, token)
    };
    let query = search.query;
    let mut scored = ranked.outcome.scored;
    let Some(place) = scored.iter().position(|one| one.doc == doc) else {
        // Without a query that can be looked up, nothing is a candidate.
        if let Some(probed) = ranked.probed {
            why.rank = probed.rank;
            why.needed_rank = rank::candidates(query.limit) as u32;
            why.value = probed.scored.explanation.as_ref().map_or(0.0, |e| e.fused);
            why.explanation = probed.scored.explanation;
        }
        return Ok(why);
    };
    why.explanation.clone_from(&scored[place].explanation);
    let own = &scored[place];
    for (field, value, least) in [
        ("min_score", own.score, query.min_score),
        ("min_relevance", own.relevance, query.min_relevance),
    ] {
        if value < least {
            why.stage = Stage::Threshold;
            field.clone_into(&mut why.detail);
            (why.value, why.needed_value) = (value, least);
            return Ok(why);
        }
    }
    why.value = own.score;
    scored.retain(|one| one.score >= query.min_score && one.relevance >= query.min_relevance);
    let before = scored.clone();
    fold::fold(&mut scored, query.limit);
    why.needed_rank = query.limit as u32;
    if let Some(place) = scored.iter().position(|one| one.doc == doc) {
        why.stage = Stage::Returned;
        why.rank = place as u32 + 1;
    } else if let Some(hit) = scored
        .iter()
        .find(|hit| hit.duplicates.iter().any(|(_, row)| *row == doc))
    {
        why.stage = Stage::Duplicate;
        why.detail = hit.header.id.to_string();
        why.needed_rank = 0;
    } else {
        why.stage = Stage::Limit;
        // Places are those of hits: memories that say the same share one.
        let until = before.iter().position(|one| one.doc == doc);
        let stated = before.iter().take(until.map_or(0, |place| place + 1));
        let places: HashSet<u64> = stated.map(|one| one.header.statement).collect();
        why.rank = places.len() as u32;
        why.needed_value = scored.last().map_or(0.0, |last| last.score);
    }
    Ok(why)
}

/// The first part of the selection that leaves a document out.
fn excluded_by(
    snapshot: &Snapshot<'_>,
    selection: &Selection,
    doc: Row,
) -> Result<Option<&'static str>, StoreError> {
    let parts = [
        (
            "filter",
            Selection {
                filter: selection.filter.clone(),
                ..Selection::default()
            },
        ),
        (
            "kinds",
            Selection {
                kinds: selection.kinds.clone(),
                ..Selection::default()
            },
        ),
        (
            "tags",
            Selection {
                tags: selection.tags.clone(),
                ..Selection::default()
            },
        ),
        (
            "occurred",
            Selection {
                occurred_from: selection.occurred_from,
                occurred_before: selection.occurred_before,
                ..Selection::default()
            },
        ),
    ];
    for (field, part) in parts {
        let allowed = snapshot.evaluator().select(&part)?;
        if allowed.is_some_and(|allowed| !allowed.contains(doc.0)) {
            return Ok(Some(field));
        }
    }
    Ok(None)
}

//! Folds near-duplicates: of memories that say the same, the newest stands for all, at the place of the best.
//!
//! Two memories say the same when the hashes in their headers are equal: those of what they state
//! (`recalld_algo::statement`), their kind and their speaker. So `ORD-17` and `ORD-18` are never one, nor are "likes" and
//! "does not like".

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use recalld_store::ids::{Micros, Row};

use super::Scored;

/// Leaves the best `limit` of `scored`, which stand best first, each with the older ones that say the same.
pub(super) fn fold(scored: &mut Vec<Scored>, limit: usize) {
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut groups: Vec<Vec<Scored>> = Vec::new();
    for one in scored.drain(..) {
        match places.entry(one.header.statement) {
            Entry::Occupied(place) => groups[*place.get()].push(one),
            Entry::Vacant(place) if groups.len() < limit => {
                place.insert(groups.len());
                groups.push(vec![one]);
            }
            Entry::Vacant(_) => {}
        }
    }
    scored.extend(groups.into_iter().filter_map(stand_for));
    super::order(scored);
}

/// The newest of a group, which stands best first, with the score of the best and the others as its duplicates.
fn stand_for(mut group: Vec<Scored>) -> Option<Scored> {
    let time = |one: &Scored| -> (Micros, Row) { (one.header.occurred_at, one.doc) };
    let best = group.first()?.clone();
    group.sort_by_key(|one| std::cmp::Reverse(time(one)));
    let mut group = group.into_iter();
    let newest = group.next()?;
    Some(Scored {
        score: best.score,
        relevance: best.relevance,
        fused: best.fused,
        weak: best.weak,
        explanation: best.explanation,
        duplicates: group.map(|one| (one.header.id, one.doc)).collect(),
        ..newest
    })
}

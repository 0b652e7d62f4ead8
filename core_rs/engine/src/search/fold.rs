//! Folds near-duplicates: of memories that say the same, the newest stands for all, at the place of the best.
//!
//! Two memories say the same when they have the same words in the same order but for case, punctuation and words such as
//! "the" (`recalld_algo::statement::same_statement`). So `ORD-17` and `ORD-18` are never one, nor are "likes" and "does not
//! like". Candidates are compared by the words of the model first, which is cheap.

use recalld_algo::statement::same_statement;
use recalld_store::StoreError;
use recalld_store::codec::words;

use super::Scored;
use crate::snapshot::Snapshot;

/// The share of all words of two memories that both must have before their contents are compared. Low, because the date
/// before a short memory is much of it.
const ALIKE: f32 = 0.4;

/// Leaves the best `limit` of `scored`, each with the older ones that say the same.
pub(super) fn fold(
    snapshot: &Snapshot<'_>,
    scored: &mut Vec<Scored>,
    limit: usize,
) -> Result<(), StoreError> {
    let mut kept: Vec<Scored> = Vec::with_capacity(limit.min(scored.len()));
    let mut words_of: Vec<Vec<u32>> = Vec::with_capacity(kept.capacity());
    for mut one in scored.drain(..) {
        // Beyond the limit only what belongs to a hit matters, and near-duplicates lie beside it.
        if kept.len() == limit {
            break;
        }
        let own = telling(snapshot, &one)?;
        let mut same = None;
        for (place, words) in words_of.iter().enumerate() {
            if alike(words, &own) && says_the_same(snapshot, &kept[place], &one)? {
                same = Some(place);
                break;
            }
        }
        let Some(place) = same else {
            kept.push(one);
            words_of.push(own);
            continue;
        };
        let first = &mut kept[place];
        let time = |one: &Scored| (one.header.occurred_at, one.doc);
        if time(&one) > time(first) {
            std::mem::swap(first, &mut one);
            // The place among the hits, and with it the score, is that of the best.
            std::mem::swap(&mut first.score, &mut one.score);
            std::mem::swap(&mut first.relevance, &mut one.relevance);
            std::mem::swap(&mut first.fused, &mut one.fused);
            std::mem::swap(&mut first.weak, &mut one.weak);
            std::mem::swap(&mut first.explanation, &mut one.explanation);
            first.duplicates = std::mem::take(&mut one.duplicates);
        }
        first.duplicates.push((one.header.id, one.doc));
    }
    *scored = kept;
    Ok(())
}

/// All telling words of a memory, in order.
fn telling(snapshot: &Snapshot<'_>, scored: &Scored) -> Result<Vec<u32>, StoreError> {
    let stored = snapshot.docs.words(snapshot.txn, scored.doc)?;
    let mut all = Vec::new();
    words::for_each(stored, |_, word| all.push(word));
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn alike(a: &[u32], b: &[u32]) -> bool {
    let (mut common, mut i, mut j) = (0usize, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        common += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    common as f32 >= ALIKE * (a.len() + b.len() - common) as f32
}

fn says_the_same(snapshot: &Snapshot<'_>, a: &Scored, b: &Scored) -> Result<bool, StoreError> {
    let (docs, txn) = (snapshot.docs, snapshot.txn);
    if !same_statement(docs.content(txn, a.doc)?, docs.content(txn, b.doc)?) {
        return Ok(false);
    }
    let speaker = |one: &Scored| -> Result<Option<String>, StoreError> {
        let record = docs.record(txn, one.doc)?;
        Ok(record
            .sources
            .into_iter()
            .next()
            .map(|source| source.speaker))
    };
    let kind = |one: &Scored| -> Result<String, StoreError> { Ok(docs.record(txn, one.doc)?.kind) };
    Ok(speaker(a)? == speaker(b)? && kind(a)? == kind(b)?)
}

//! The dense arm: cosines of the query with passages. It looks in one of three ways, by what there is to look at:
//! a scan of every vector, a scan of the vectors that the selection allows, or the approximate index with a scan of
//! what it does not hold yet.

use std::cell::RefCell;

use recalld_algo::topk::TopK;
use recalld_store::StoreError;
use recalld_vector::{NO_VECTOR, Query, row_bytes, scan};

use super::rank::Scope;
use crate::EngineError;
use crate::ann::AnnIndex;

/// Allowed documents up to which their vectors are scanned one by one instead of all.
const FILTERED_SCAN_DOCUMENTS: u64 = 20_000;

/// Rows of the sample from which the mean cosine is estimated when not all are scanned: its error is 1/√2,048 of a
/// deviation, too small to reorder anything.
const SAMPLE_ROWS: u32 = 2_048;

/// How the arm looked, and what it saw.
pub(crate) struct DenseScores {
    pub(crate) query: Query,
    pub(crate) method: &'static str,
    pub(crate) seen: Seen,
}

/// Which cosines are known.
pub(crate) enum Seen {
    /// By row: every row that may be returned; [`NO_VECTOR`] for the others.
    Rows(Cosines),
    /// Of an index: candidate rows, and cosines of a sample of all rows.
    Nearest { rows: Vec<u32>, sample: Vec<f32> },
}

thread_local! {
    static COSINES: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Cosines by row, in a buffer that is kept from query to query.
pub(crate) struct Cosines(Vec<f32>);

impl Cosines {
    fn new(rows: u32) -> Self {
        let mut cosines = COSINES.take();
        cosines.clear();
        cosines.resize(rows as usize, NO_VECTOR);
        Self(cosines)
    }

    #[inline]
    pub(crate) fn get(&self, row: u32) -> f32 {
        self.0.get(row as usize).copied().unwrap_or(NO_VECTOR)
    }
}

impl Drop for Cosines {
    fn drop(&mut self) {
        COSINES.set(std::mem::take(&mut self.0));
    }
}

/// Looks for the passages nearest to the query; about `wanted` when an index is asked.
pub(crate) fn scores(
    scope: &Scope<'_>,
    query: Query,
    ann: Option<&AnnIndex>,
    wanted: usize,
) -> Result<DenseScores, EngineError> {
    let (method, seen) = match (scope.permitted, ann) {
        (Some(permitted), _) if permitted.len() <= FILTERED_SCAN_DOCUMENTS => {
            ("filtered_scan", Seen::Rows(filtered(scope, &query)?))
        }
        (None, Some(ann)) => match nearest(scope, &query, ann, wanted) {
            Ok(seen) => ("hnsw", seen),
            Err(EngineError::Vector(error)) => {
                tracing::warn!(%error, "the approximate index failed; the search scans");
                ("scan", Seen::Rows(all(scope, &query)?))
            }
            Err(error) => return Err(error),
        },
        _ => ("scan", Seen::Rows(all(scope, &query)?)),
    };
    Ok(DenseScores {
        query,
        method,
        seen,
    })
}

fn all(scope: &Scope<'_>, query: &Query) -> Result<Cosines, StoreError> {
    let mut cosines = Cosines::new(scope.facts.rows());
    let size = row_bytes(query.dims());
    scope.snapshot.vector_blocks(|first, block| {
        let first = first as usize;
        scan::scan_block(
            query,
            block,
            &mut cosines.0[first..first + block.len() / size],
        );
    })?;
    Ok(cosines)
}

fn filtered(scope: &Scope<'_>, query: &Query) -> Result<Cosines, StoreError> {
    let mut cosines = Cosines::new(scope.facts.rows());
    let mut chosen: Vec<u32> = Vec::new();
    let mut scores: Vec<f32> = Vec::new();
    let docs = scope.snapshot.docs;
    let mut block = u32::MAX;
    let mut scan = |block: u32, chosen: &mut Vec<u32>| -> Result<(), StoreError> {
        if chosen.is_empty() {
            return Ok(());
        }
        let key = recalld_store::keys::numbered(docs.ns, block);
        let table = &docs.schema.vectors;
        let bytes = table
            .get(scope.snapshot.txn, &key)?
            .ok_or_else(|| table.damaged(&key))?;
        let size = row_bytes(query.dims());
        if chosen
            .last()
            .is_some_and(|&last| (last as usize + 1) * size > bytes.len())
        {
            return Err(table.damaged(&key));
        }
        scores.clear();
        scores.resize(chosen.len(), 0.0);
        scan::scan_rows(query, bytes, chosen, &mut scores);
        let first = block as usize * recalld_vector::rows_per_block(query.dims());
        for (row, score) in chosen.drain(..).zip(&scores) {
            cosines.0[first + row as usize] = *score;
        }
        Ok(())
    };
    for doc in scope.permitted.into_iter().flatten() {
        for row in scope.rows_of(doc) {
            let (number, index) = docs.vector_place(recalld_store::ids::Row(row));
            if number != block {
                scan(block, &mut chosen)?;
                block = number;
            }
            chosen.push(index as u32);
        }
    }
    scan(block, &mut chosen)?;
    Ok(cosines)
}

/// Asks the index for what it holds and scans the rest: no acknowledged write is missing.
fn nearest(
    scope: &Scope<'_>,
    query: &Query,
    ann: &AnnIndex,
    wanted: usize,
) -> Result<Seen, EngineError> {
    let facts = scope.facts;
    let rows_now = facts.rows();
    let indexed = ann.rows();
    let mut best = TopK::new(wanted);
    for neighbour in ann.index.search(query, wanted)? {
        // A younger index may hold rows that this snapshot does not know.
        if let Ok(row) = u32::try_from(neighbour.key)
            && row < rows_now
            && row < indexed
            && facts.get(row).alive
        {
            best.push(row, neighbour.cosine);
        }
    }
    let size = row_bytes(query.dims());
    let mut scores: Vec<f32> = Vec::new();
    let mut sample = Vec::with_capacity(SAMPLE_ROWS as usize * 2);
    let per_block = recalld_vector::rows_per_block(query.dims()) as u32;
    let blocks = rows_now.div_ceil(per_block);
    let step = (blocks / SAMPLE_ROWS.div_ceil(per_block)).max(1);
    let snapshot = scope.snapshot;
    for number in 0..blocks {
        let first = number * per_block;
        let sampled = number % step == 0;
        let tail = first + per_block > indexed;
        if !sampled && !tail {
            continue;
        }
        let key = recalld_store::keys::numbered(snapshot.docs.ns, number);
        let Some(block) = snapshot.docs.schema.vectors.get(snapshot.txn, &key)? else {
            continue;
        };
        scores.clear();
        scores.resize(block.len() / size, 0.0);
        scan::scan_block(query, block, &mut scores);
        for (index, &score) in scores.iter().enumerate() {
            let row = first + index as u32;
            if score == NO_VECTOR || !facts.get(row).alive {
                continue;
            }
            if sampled {
                sample.push(score);
            }
            if row >= indexed {
                best.push(row, score);
            }
        }
    }
    let rows = best.into_sorted().into_iter().map(|hit| hit.id).collect();
    Ok(Seen::Nearest { rows, sample })
}

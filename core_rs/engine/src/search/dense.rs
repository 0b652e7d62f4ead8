//! The dense arm: cosines of the query with passages. It looks in one of three ways, whichever costs least by what there
//! is to look at: a scan of every vector, a scan of the vectors that the selection allows, or the approximate index with
//! a scan of what it does not hold yet.

use std::cell::RefCell;
use std::ops::ControlFlow;

use recalld_algo::topk::{Hit, TopK};
use recalld_store::StoreError;
use recalld_store::ids::Row;
use recalld_vector::{NO_VECTOR, Query, row_bytes, scan};

use super::rank::Scope;
use crate::EngineError;
use crate::ann::AnnIndex;
use crate::time_limit::TimeLimit;
use crate::types::PlannedMethod;

const SCAN: &str = "scan";
const FILTERED_SCAN: &str = "filtered_scan";
const HNSW: &str = "hnsw";

/// A vector out of order costs as much as so many in order: 34 ns against 18 (100,000 rows, one in seven allowed).
const OUT_OF_ORDER: u64 = 2;

/// Rows of the sample from which the mean cosine is estimated when not all are scanned: its error is 1/√2,048 of a
/// deviation, too small to reorder anything.
const SAMPLE_ROWS: u32 = 2_048;

/// How the arm looked, and what it saw.
pub(crate) struct DenseScores<'t> {
    pub(crate) query: Query,
    pub(crate) method: &'static str,
    /// All ways that were open.
    pub(crate) plan: Vec<PlannedMethod>,
    pub(crate) seen: Seen,
    blocks: Blocks<'t>,
}

impl DenseScores<'_> {
    /// The bytes of a row's vector; None: the row is not known.
    pub(super) fn vector<'s>(
        &'s self,
        scope: &'s Scope<'_>,
        row: u32,
    ) -> Result<Option<&'s [u8]>, StoreError> {
        let docs = scope.snapshot.docs;
        let (number, place) = docs.vector_place(Row(row));
        match self.blocks.get(number) {
            Some(block) => {
                let size = row_bytes(self.query.dims());
                Ok(block.get(place * size..(place + 1) * size))
            }
            None => docs.vector(scope.snapshot.txn, Row(row)),
        }
    }
}

/// The blocks of vectors that were read, by number: the best of their rows are looked at again.
#[derive(Default)]
struct Blocks<'t>(Vec<&'t [u8]>);

impl<'t> Blocks<'t> {
    fn keep(&mut self, number: u32, block: &'t [u8]) {
        self.0.resize(number as usize, &[]);
        self.0.push(block);
    }

    /// None: it was not read.
    fn get(&self, number: u32) -> Option<&'t [u8]> {
        let block = self.0.get(number as usize).copied();
        block.filter(|block| !block.is_empty())
    }
}

/// Which cosines are known.
pub(crate) enum Seen {
    /// By row: every row that may be returned; [`NO_VECTOR`] for the others.
    Rows(Cosines),
    /// Of an index: candidate rows with their cosines, and cosines of a sample of all rows.
    Nearest { found: Vec<Hit>, sample: Vec<f32> },
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

    pub(super) fn by_row(&self) -> &[f32] {
        &self.0
    }
}

impl Drop for Cosines {
    fn drop(&mut self) {
        COSINES.set(std::mem::take(&mut self.0));
    }
}

/// The ways that are open, the first of the cheapest being the one to take.
fn plan(scope: &Scope<'_>, ann: Option<&AnnIndex>) -> Vec<PlannedMethod> {
    let rows = u64::from(scope.facts.rows());
    let mut plan = Vec::with_capacity(3);
    let mut open = |method, cost| plan.push(PlannedMethod { method, cost });
    if let Some(permitted) = scope.permitted {
        let state = &scope.snapshot.state;
        let passages = permitted.len() * state.passages.div_ceil(state.memories.max(1));
        open(FILTERED_SCAN, passages * OUT_OF_ORDER);
    }
    if let Some(ann) = ann {
        let missing = rows.saturating_sub(u64::from(ann.rows()));
        // The search goes on until it has seen enough that is allowed.
        let allowed = scope.documents().max(1);
        let search = u64::from(ann.cost) * scope.snapshot.state.memories.max(1) / allowed;
        open(HNSW, search + missing);
    }
    open(SCAN, rows);
    plan
}

/// Looks for the passages nearest to the query; about `wanted` when an index is asked. None: the time was over first.
pub(crate) fn scores<'t>(
    scope: &Scope<'t>,
    query: Query,
    ann: Option<&AnnIndex>,
    wanted: usize,
    limit: TimeLimit<'_>,
) -> Result<Option<DenseScores<'t>>, EngineError> {
    if limit.passed() {
        return Ok(None);
    }
    let plan = plan(scope, ann);
    let method = plan.iter().min_by_key(|planned| planned.cost);
    let mut method = method.map_or(SCAN, |planned| planned.method);
    let mut seen = None;
    let mut blocks = Blocks::default();
    if let (HNSW, Some(ann)) = (method, ann) {
        match nearest(scope, &query, ann, wanted) {
            Ok(Some(nearest)) => seen = Some(nearest),
            // Too few of those that are allowed were met.
            Ok(None) => method = SCAN,
            Err(EngineError::Vector(error)) => {
                tracing::warn!(%error, "the approximate index failed; the search scans");
                method = SCAN;
            }
            Err(error) => return Err(error),
        }
    }
    if seen.is_none() {
        let cosines = match method {
            FILTERED_SCAN => filtered(scope, &query, limit, &mut blocks)?,
            _ => all(scope, &query, limit, &mut blocks)?,
        };
        seen = cosines.map(Seen::Rows);
    }
    Ok(seen.map(|seen| DenseScores {
        query,
        method,
        plan,
        seen,
        blocks,
    }))
}

/// None: the time was over first.
fn all<'t>(
    scope: &Scope<'t>,
    query: &Query,
    limit: TimeLimit<'_>,
    blocks: &mut Blocks<'t>,
) -> Result<Option<Cosines>, StoreError> {
    let mut cosines = Cosines::new(scope.facts.rows());
    let size = row_bytes(query.dims());
    let per_block = recalld_vector::rows_per_block(query.dims()) as u32;
    let end = scope.snapshot.vector_blocks(|first, block| {
        if limit.passed() {
            return ControlFlow::Break(());
        }
        blocks.keep(first / per_block, block);
        let first = first as usize;
        scan::scan_block(
            query,
            block,
            &mut cosines.0[first..first + block.len() / size],
        );
        ControlFlow::Continue(())
    })?;
    Ok(end.is_continue().then_some(cosines))
}

/// None: the time was over first.
fn filtered<'t>(
    scope: &Scope<'t>,
    query: &Query,
    limit: TimeLimit<'_>,
    blocks: &mut Blocks<'t>,
) -> Result<Option<Cosines>, StoreError> {
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
        blocks.keep(block, bytes);
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
            let (number, index) = docs.vector_place(Row(row));
            if number != block {
                if limit.passed() {
                    return Ok(None);
                }
                scan(block, &mut chosen)?;
                block = number;
            }
            chosen.push(index as u32);
        }
    }
    scan(block, &mut chosen)?;
    Ok(Some(cosines))
}

/// Asks the index for what it holds and scans the rest: no acknowledged write is missing. None when fewer were found
/// than there are.
fn nearest(
    scope: &Scope<'_>,
    query: &Query,
    ann: &AnnIndex,
    wanted: usize,
) -> Result<Option<Seen>, EngineError> {
    let facts = scope.facts;
    let rows_now = facts.rows();
    let indexed = ann.rows();
    let mut best = TopK::new(wanted);
    let found = match scope.permitted {
        Some(permitted) => ann.index.search_allowed(query, wanted, |key| {
            u32::try_from(key)
                .is_ok_and(|row| row < rows_now && permitted.contains(facts.document(row).0))
        })?,
        None => ann.index.search(query, wanted)?,
    };
    for neighbour in found {
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
            let may_be_returned = || scope.allows(facts.document(row).0);
            if score == NO_VECTOR || !facts.get(row).alive || !may_be_returned() {
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
    let best = best.into_sorted();
    if scope.permitted.is_some() && best.len() < wanted.min(scope.documents() as usize) {
        return Ok(None);
    }
    Ok(Some(Seen::Nearest {
        found: best,
        sample,
    }))
}

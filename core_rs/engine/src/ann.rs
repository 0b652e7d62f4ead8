//! Approximate indexes of large namespaces: a cache that may be deleted at any time.
//!
//! One background thread builds them from snapshots, one namespace after another, and saves them beside the data. A
//! search that finds none scans instead; one that finds an index scans the rows the index does not hold yet. Nothing
//! here is needed for a right answer.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::{Condvar, Mutex};
use recalld_store::codec::rows;
use recalld_store::ids::{Micros, NamespaceId};
use recalld_store::{Store, Txn, keys};
use recalld_vector::{HnswIndex, ROW_HEADER, row_bytes, rows_per_block};

use crate::EngineError;
use crate::resident::{KEPT, Resident};
use crate::snapshot::Snapshot;

/// Folder of the indexes in the data directory.
const FOLDER: &str = "index";
/// Rows read in one read transaction, so that a build does not hold one for long.
const ROWS_PER_STEP: u32 = 2_000;
/// New rows, as a share of those indexed, from which the index is brought up to date: below it the scan of the rest
/// costs less than the index would save.
const GROWTH: f64 = 0.05;
/// Share of the rows that an index covers from which, when so many have died since, it is built anew.
const DEAD: f64 = 0.3;

/// An index and how far it reaches.
pub(crate) struct AnnIndex {
    pub(crate) index: HnswIndex,
    rows: AtomicU32,
    /// How many of them were alive when they were added, with a vector or without.
    alive: AtomicU32,
    /// What a search in it costs with all that belongs to it, in vectors compared in the order in which they lie: as many
    /// as a namespace must have to get an index.
    pub(crate) cost: u32,
}

impl AnnIndex {
    pub(crate) fn empty(dimensions: usize, cost: u32) -> Result<Self, EngineError> {
        Ok(Self {
            index: HnswIndex::new(dimensions)?,
            rows: AtomicU32::new(0),
            alive: AtomicU32::new(0),
            cost,
        })
    }

    /// Rows below this one are in it, or had no vector when they were added. Read it before searching: rows that
    /// come in meanwhile are then scanned as well, and none is missed.
    pub(crate) fn rows(&self) -> u32 {
        self.rows.load(Ordering::Acquire)
    }

    /// Whether too many of its rows have died in a namespace of `passages` live rows of `rows`: dead rows cost every
    /// search. Those that it does not cover count as alive.
    fn is_worn(&self, rows: u32, passages: u64) -> bool {
        let alive = f64::from(self.alive.load(Ordering::Relaxed));
        let tail = f64::from(rows.saturating_sub(self.rows()));
        alive + tail - passages as f64 > alive * DEAD
    }
}

/// The indexes of a store.
pub(crate) struct AnnIndexes {
    folder: PathBuf,
    store_id: Vec<u8>,
    dimensions: usize,
    /// Passages from which a namespace gets one.
    index_after: u32,
    resident: Resident,
    /// Namespaces to look at.
    due: Mutex<BTreeSet<NamespaceId>>,
    woken: Condvar,
    stopping: AtomicBool,
}

impl AnnIndexes {
    pub(crate) fn new(
        directory: &Path,
        store_id: &[u8],
        dimensions: usize,
        index_after: u32,
        most_bytes: u64,
    ) -> Self {
        Self {
            folder: directory.join(FOLDER),
            store_id: store_id.to_vec(),
            dimensions,
            index_after,
            resident: Resident::new(most_bytes, KEPT),
            due: Mutex::default(),
            woken: Condvar::new(),
            stopping: AtomicBool::new(false),
        }
    }

    pub(crate) fn get(&self, ns: NamespaceId) -> Option<Arc<AnnIndex>> {
        self.resident.get(ns)
    }

    /// The index for a search in a namespace of so many passages. One that is missing will be there for a later search,
    /// if there is room.
    pub(crate) fn for_search(&self, ns: NamespaceId, passages: u64) -> Option<Arc<AnnIndex>> {
        let found = self.resident.take_for_search(ns);
        if found.is_none() && passages >= u64::from(self.index_after) {
            self.notify(&[(ns, passages)]);
        }
        found
    }

    /// Something was written to these namespaces, which now have so many passages.
    pub(crate) fn notify(&self, touched: &[(NamespaceId, u64)]) {
        let large = touched
            .iter()
            .filter(|(ns, passages)| {
                *passages >= u64::from(self.index_after) || self.get(*ns).is_some()
            })
            .map(|(ns, _)| *ns);
        let mut due = self.due.lock();
        due.extend(large);
        if !due.is_empty() {
            self.woken.notify_one();
        }
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        drop(self.due.lock());
        self.woken.notify_one();
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Builds until told to stop: first what the directory holds, then what is written.
    pub(crate) fn run(&self, store: &Store) {
        match self.large_namespaces(store) {
            Ok(large) => self.due.lock().extend(large),
            Err(error) => {
                tracing::warn!(%error, "large namespaces could not be listed; searches scan");
            }
        }
        while let Some(ns) = self.next() {
            if let Err(error) = self.update(store, ns) {
                tracing::warn!(%error, "an approximate index could not be built; searches scan instead");
            }
        }
    }

    /// Waits for a namespace to look at; None when told to stop.
    fn next(&self) -> Option<NamespaceId> {
        let mut due = self.due.lock();
        loop {
            if self.stopping() {
                return None;
            }
            if let Some(ns) = due.pop_first() {
                return Some(ns);
            }
            self.woken.wait(&mut due);
        }
    }

    /// Namespaces with more rows than `index_after`.
    fn large_namespaces(&self, store: &Store) -> Result<Vec<NamespaceId>, EngineError> {
        let txn = store.read()?;
        // The block that holds row `index_after` exists only where there are so many rows.
        let (block, _) = rows::locate(self.index_after);
        let mut large = Vec::new();
        let mut ns = 0;
        while let Some((key, _)) = store
            .schema()
            .rows
            .at_or_after(&txn, &keys::numbered(NamespaceId(ns), block))?
        {
            let Some(found) = key
                .first_chunk::<4>()
                .map(|bytes| u32::from_be_bytes(*bytes))
            else {
                break;
            };
            if found == ns || keys::trailing_number(key).is_some_and(|number| number >= block) {
                large.push(NamespaceId(found));
                ns = found + 1;
            } else {
                ns = found;
            }
        }
        Ok(large)
    }

    fn update(&self, store: &Store, ns: NamespaceId) -> Result<(), EngineError> {
        let (rows, passages) = {
            let txn = store.read()?;
            let snapshot = Snapshot::of(&txn, store.schema(), ns, self.dimensions, Micros(0))?;
            (snapshot.state.next_row, snapshot.state.passages)
        };
        if passages < u64::from(self.index_after) {
            self.resident.remove(ns);
            return Ok(());
        }
        let bytes = HnswIndex::expected_bytes(self.dimensions, passages as usize);
        if !self.resident.make_room(ns, bytes as u64) {
            return Ok(());
        }
        let current = match self.get(ns).or_else(|| self.load(ns, rows)) {
            // Begin anew, and let the old index serve meanwhile.
            Some(current) if current.is_worn(rows, passages) => None,
            current => current,
        };
        let missing = current
            .as_ref()
            .map(|current| rows.saturating_sub(current.rows()));
        let index = match current {
            Some(current) => current,
            None => Arc::new(AnnIndex::empty(self.dimensions, self.index_after)?),
        };
        if missing.is_none_or(|missing| f64::from(missing) >= f64::from(index.rows()) * GROWTH) {
            self.grow(store, ns, &index, rows)?;
            self.save(ns, &index);
        }
        self.resident.insert(ns, index);
        Ok(())
    }

    /// Adds the live rows up to `rows`. Searches that use the index meanwhile scan what it says it lacks.
    fn grow(
        &self,
        store: &Store,
        ns: NamespaceId,
        index: &AnnIndex,
        rows: u32,
    ) -> Result<(), EngineError> {
        let per_block = rows_per_block(self.dimensions) as u32;
        let size = row_bytes(self.dimensions);
        let mut saved = index.rows().max(self.index_after);
        while index.rows() < rows && !self.stopping() {
            let from = index.rows();
            let to = rows.min(from.saturating_add(ROWS_PER_STEP));
            let mut vectors: Vec<(u32, Vec<u8>)> = Vec::new();
            let alive;
            {
                let txn = store.read()?;
                alive = alive_rows(store, &txn, ns, from..to)?;
                let table = &store.schema().vectors;
                for number in from / per_block..to.div_ceil(per_block) {
                    let Some(block) = table.get(&txn, &keys::numbered(ns, number))? else {
                        continue;
                    };
                    for (place, bytes) in block.chunks_exact(size).enumerate() {
                        let row = number * per_block + place as u32;
                        // A row without a vector, or a dead one, has the scale 0.
                        if (from..to).contains(&row) && bytes[..ROW_HEADER] != [0; ROW_HEADER] {
                            vectors.push((row, bytes.to_vec()));
                        }
                    }
                }
            }
            for (row, bytes) in vectors {
                // A step that failed half-way is done again.
                if !index.index.contains(u64::from(row)) {
                    index.index.add(u64::from(row), &bytes)?;
                }
            }
            index.alive.fetch_add(alive, Ordering::Relaxed);
            index.rows.store(to, Ordering::Release);
            // A million rows take long: a restart meanwhile begins at half of it, at worst.
            if to / 2 >= saved {
                self.save(ns, index);
                saved = to;
            }
        }
        Ok(())
    }

    fn path(&self, ns: NamespaceId) -> PathBuf {
        self.folder.join(format!("{}.hnsw", ns.0))
    }

    /// What a file is of: another store's, or one of another reach, is not taken.
    fn stamp(&self, ns: NamespaceId, rows: u32, alive: u32) -> Vec<u8> {
        let mut stamp = self.store_id.clone();
        for number in [ns.0, rows, alive] {
            stamp.extend_from_slice(&number.to_be_bytes());
        }
        stamp
    }

    fn load(&self, ns: NamespaceId, rows: u32) -> Option<Arc<AnnIndex>> {
        let path = self.path(ns);
        if !path.exists() {
            return None;
        }
        match HnswIndex::load(&path, self.dimensions) {
            Ok((index, stamp)) => {
                let (reach, alive) = reach(&stamp).unwrap_or((u32::MAX, 0));
                if reach <= rows && stamp == self.stamp(ns, reach, alive) {
                    return Some(Arc::new(AnnIndex {
                        cost: self.index_after,
                        index,
                        rows: AtomicU32::new(reach),
                        alive: AtomicU32::new(alive),
                    }));
                }
                tracing::warn!(path = %path.display(), "the index is of another store; it is built anew");
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the index is not used; it is built anew");
            }
        }
        None
    }

    /// A file that cannot be written costs the next start a build, and nothing else.
    fn save(&self, ns: NamespaceId, index: &AnnIndex) {
        if self.stopping() {
            return;
        }
        let saved = std::fs::create_dir_all(&self.folder)
            .map_err(|error| error.to_string())
            .and_then(|()| {
                let alive = index.alive.load(Ordering::Relaxed);
                index
                    .index
                    .save(&self.path(ns), &self.stamp(ns, index.rows(), alive))
                    .map_err(|error| error.to_string())
            });
        if let Err(error) = saved {
            tracing::warn!(%error, "an approximate index could not be saved");
        }
    }
}

/// How far an index reaches, and how many of its rows were alive, by the end of its stamp.
fn reach(stamp: &[u8]) -> Option<(u32, u32)> {
    let (_, numbers) = stamp.split_last_chunk::<8>()?;
    let (rows, alive) = numbers.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*rows), keys::trailing_number(alive)?))
}

/// How many rows of a range are alive.
fn alive_rows(
    store: &Store,
    txn: &Txn<'_>,
    ns: NamespaceId,
    range: Range<u32>,
) -> Result<u32, EngineError> {
    let mut alive = 0;
    let (first, _) = rows::locate(range.start);
    for number in first..=rows::locate(range.end).0 {
        let Some(block) = store.schema().rows.get(txn, &keys::numbered(ns, number))? else {
            continue;
        };
        let rows = (number * rows::ROWS_PER_BLOCK as u32..).zip(rows::iter(block));
        alive += rows
            .filter(|(row, facts)| range.contains(row) && facts.alive)
            .count() as u32;
    }
    Ok(alive)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn an_index_is_worn_by_what_died_since_and_not_by_what_has_no_vector() {
        let index = AnnIndex::empty(8, 1).unwrap();
        // Of 1,000 rows 900 were alive when they were added, of which a few had a vector: the index does not count them.
        index.rows.store(1_000, Ordering::Relaxed);
        index.alive.store(900, Ordering::Relaxed);
        assert!(!index.is_worn(1_000, 900), "nothing has died");
        assert!(!index.is_worn(1_050, 950), "nor where there are more");
        assert!(!index.is_worn(1_050, 950 - 270), "270 are three tenths");
        assert!(index.is_worn(1_050, 950 - 271), "one more is too many");
    }
}

//! The approximate indexes that are in memory: no more bytes of them than allowed, those in use before idle ones.
//!
//! A search in a namespace whose index is not here scans, so that what is left out costs time and never an answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use recalld_store::ids::NamespaceId;

use crate::ann::AnnIndex;

/// How long an index stays after a search in it, whatever others want: to load two in turns would cost more than to scan
/// for one of them.
pub(crate) const KEPT: Duration = Duration::from_secs(60);

/// The indexes in memory.
pub(crate) struct Resident {
    most_bytes: u64,
    kept: Duration,
    held: RwLock<HashMap<NamespaceId, Held>>,
}

struct Held {
    index: Arc<AnnIndex>,
    used: Mutex<Instant>,
}

impl Held {
    fn bytes(&self) -> u64 {
        self.index.index.memory_bytes() as u64
    }
}

impl Resident {
    pub(crate) fn new(most_bytes: u64, kept: Duration) -> Self {
        Self {
            most_bytes,
            kept,
            held: RwLock::default(),
        }
    }

    /// The index of a namespace, without using it.
    pub(crate) fn get(&self, ns: NamespaceId) -> Option<Arc<AnnIndex>> {
        Some(self.held.read().get(&ns)?.index.clone())
    }

    /// The index of a namespace, for a search.
    pub(crate) fn take_for_search(&self, ns: NamespaceId) -> Option<Arc<AnnIndex>> {
        let held = self.held.read();
        let held = held.get(&ns)?;
        *held.used.lock() = Instant::now();
        Some(held.index.clone())
    }

    /// Makes room for a namespace's index of so many bytes in place of those that were idle longest. False, and nothing
    /// is given up, when those in use leave too little.
    pub(crate) fn make_room(&self, ns: NamespaceId, bytes: u64) -> bool {
        let mut held = self.held.write();
        let mut others = 0;
        let mut idle = Vec::new();
        for (&other, held) in held.iter().filter(|(other, _)| **other != ns) {
            let bytes = held.bytes();
            others += bytes;
            let used = *held.used.lock();
            if used.elapsed() >= self.kept {
                idle.push((used, other, bytes));
            }
        }
        let spare: u64 = idle.iter().map(|(.., bytes)| bytes).sum();
        if others - spare + bytes > self.most_bytes {
            return false;
        }
        idle.sort_unstable();
        for (_, other, freed) in idle {
            if others + bytes <= self.most_bytes {
                break;
            }
            held.remove(&other);
            others -= freed;
        }
        true
    }

    /// Holds a namespace's index. One that takes the place of another, or has grown, is as idle as before: writes are no
    /// use of an index.
    pub(crate) fn insert(&self, ns: NamespaceId, index: Arc<AnnIndex>) {
        let mut held = self.held.write();
        let used = held
            .remove(&ns)
            .map_or_else(Instant::now, |old| old.used.into_inner());
        let used = Mutex::new(used);
        held.insert(ns, Held { index, used });
    }

    pub(crate) fn remove(&self, ns: NamespaceId) {
        self.held.write().remove(&ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NamespaceId = NamespaceId(1);
    const B: NamespaceId = NamespaceId(2);
    const C: NamespaceId = NamespaceId(3);

    fn index() -> Arc<AnnIndex> {
        Arc::new(AnnIndex::empty(8, 1).unwrap())
    }

    /// Room for two of three equal indexes.
    fn of_two(kept: Duration) -> (Resident, u64) {
        let bytes = index().index.memory_bytes() as u64;
        let resident = Resident::new(bytes * 2, kept);
        for ns in [A, B] {
            assert!(resident.make_room(ns, bytes));
            resident.insert(ns, index());
        }
        (resident, bytes)
    }

    #[test]
    fn the_one_that_was_idle_longest_makes_room() {
        let (resident, bytes) = of_two(Duration::ZERO);
        assert!(resident.take_for_search(A).is_some());
        assert!(resident.make_room(C, bytes));
        assert!(resident.get(A).is_some() && resident.get(B).is_none());
    }

    #[test]
    fn one_in_use_stays() {
        let (resident, bytes) = of_two(Duration::from_secs(3_600));
        assert!(!resident.make_room(C, bytes));
        assert!(resident.get(A).is_some() && resident.get(B).is_some());
    }

    #[test]
    fn an_index_that_is_only_written_to_is_idle() {
        let (resident, bytes) = of_two(Duration::ZERO);
        assert!(resident.take_for_search(A).is_some());
        resident.insert(B, index());
        assert!(resident.make_room(C, bytes));
        assert!(resident.get(A).is_some() && resident.get(B).is_none());
    }

    #[test]
    fn what_is_too_large_for_all_drives_nothing_out() {
        let (resident, bytes) = of_two(Duration::ZERO);
        assert!(!resident.make_room(C, bytes * 2 + 1));
        assert!(resident.get(A).is_some() && resident.get(B).is_some());
    }

    #[test]
    fn an_index_that_grows_does_not_count_twice() {
        let (resident, bytes) = of_two(Duration::from_secs(3_600));
        assert!(resident.make_room(A, bytes));
        assert!(!resident.make_room(A, bytes + 1));
    }
}

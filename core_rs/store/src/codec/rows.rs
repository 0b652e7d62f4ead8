//! Facts of rows, in blocks of two pages that are read in place: for each row the length of its document in terms,
//! how far back its document's first row is, and whether it is alive.

/// Rows of a block: as many as fit two pages of 4 KiB, less LMDB's page header of 16 bytes.
pub const ROWS_PER_BLOCK: usize = (2 * 4096 - 16) / BYTES;

const BYTES: usize = 8;

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowFacts {
    /// Terms of the whole document, repeats counted.
    pub terms: u32,
    /// The row minus its document's first row; less than 2^31.
    pub offset: u32,
    /// False once its document was superseded, deleted or swept.
    pub alive: bool,
}

impl RowFacts {
    #[inline]
    fn decode(bytes: [u8; BYTES]) -> Self {
        let both = u64::from_le_bytes(bytes);
        let place = (both >> 32) as u32;
        Self {
            terms: both as u32,
            offset: place >> 1,
            alive: place & 1 != 0,
        }
    }

    fn encode(self) -> [u8; BYTES] {
        let place = self.offset << 1 | u32::from(self.alive);
        (u64::from(place) << 32 | u64::from(self.terms)).to_le_bytes()
    }
}

/// Block and index in it of a row.
pub fn locate(row: u32) -> (u32, usize) {
    let size = ROWS_PER_BLOCK as u32;
    (row / size, (row % size) as usize)
}

/// Row `index` of a block; a row that was never written is dead.
pub fn get(block: &[u8], index: usize) -> RowFacts {
    match block
        .get(index * BYTES..)
        .and_then(|rest| rest.first_chunk::<BYTES>())
    {
        Some(bytes) => RowFacts::decode(*bytes),
        None => RowFacts::default(),
    }
}

/// Row `index` of a block and the one behind it; None at the end of the block.
#[inline]
pub fn pair(block: &[u8], index: usize) -> Option<(RowFacts, RowFacts)> {
    let bytes = block.get(index * BYTES..)?.first_chunk::<{ 2 * BYTES }>()?;
    let (own, behind) = bytes.split_first_chunk::<BYTES>()?;
    Some((
        RowFacts::decode(*own),
        RowFacts::decode(*behind.first_chunk()?),
    ))
}

/// The rows of a block, in order.
pub fn iter(block: &[u8]) -> impl Iterator<Item = RowFacts> + '_ {
    block
        .as_chunks::<BYTES>()
        .0
        .iter()
        .map(|bytes| RowFacts::decode(*bytes))
}

/// Rows of a run.
const RUN: usize = 64;

/// A block in runs, each with the index of its first row.
pub fn runs(block: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    (0..).step_by(RUN).zip(block.chunks(RUN * BYTES))
}

/// How many rows a run has.
pub fn count(run: &[u8]) -> u32 {
    (run.len() / BYTES) as u32
}

/// Whether each row of a run is alive and the first of its document.
pub fn each_begins_a_document(run: &[u8]) -> bool {
    let begins = RowFacts {
        alive: true,
        ..RowFacts::default()
    };
    let place = |bytes: &[u8; BYTES]| (u64::from_le_bytes(*bytes) >> 32) as u32;
    let expected = place(&begins.encode());
    let rows = run.as_chunks::<BYTES>().0.iter();
    // Without a way out in the middle, so that the compiler compares many at once.
    rows.fold(0, |other, bytes| other | (place(bytes) ^ expected)) == 0
}

/// Sets row `index`, growing the block with dead rows up to it.
pub fn set(block: &mut Vec<u8>, index: usize, facts: RowFacts) {
    let end = (index + 1) * BYTES;
    if block.len() < end {
        block.resize(end, 0);
    }
    block[end - BYTES..end].copy_from_slice(&facts.encode());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_what_was_set(writes in proptest::collection::vec((0..200usize, any::<u32>(), 0..1u32 << 31, any::<bool>()), 1..60)) {
            let mut block = Vec::new();
            let mut model = std::collections::BTreeMap::new();
            for (index, terms, offset, alive) in writes {
                let facts = RowFacts { terms, offset, alive };
                set(&mut block, index, facts);
                model.insert(index, facts);
            }
            for index in 0..210 {
                prop_assert_eq!(get(&block, index), model.get(&index).copied().unwrap_or_default());
            }
            for index in 0..210 {
                let both = (index + 1 < block.len() / 8).then(|| (get(&block, index), get(&block, index + 1)));
                prop_assert_eq!(pair(&block, index), both);
            }
            let rows: Vec<_> = runs(&block).flat_map(|(first, run)| (first..).zip(iter(run))).collect();
            prop_assert_eq!(rows, (0..).zip(iter(&block)).collect::<Vec<_>>());
            for (_, run) in runs(&block) {
                let all = iter(run).all(|facts| facts.alive && facts.offset == 0);
                prop_assert_eq!(each_begins_a_document(run), all);
            }
            prop_assert_eq!(iter(&block).collect::<Vec<_>>(), (0..block.len() / 8).map(|i| get(&block, i)).collect::<Vec<_>>());
        }
    }
}

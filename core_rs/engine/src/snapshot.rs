//! One namespace at one instant, read in one transaction: what every read call works on.

use std::ops::ControlFlow;

use recalld_proto::storage::v1::NamespaceState;
use recalld_store::codec::rows::{self, ROWS_PER_BLOCK, RowFacts};
use recalld_store::ids::{MemoryId, Micros, NamespaceId, Row};
use recalld_store::{Schema, StoreError, Txn, keys};
use recalld_vector::{row_bytes, rows_per_block};
use roaring::RoaringBitmap;

use crate::apply;
use crate::attributes::Evaluator;
use crate::documents::Documents;
use crate::filter::Filter;

/// A namespace that exists.
pub(crate) struct Snapshot<'t> {
    pub(crate) txn: &'t Txn<'t>,
    pub(crate) docs: Documents<'t>,
    pub(crate) state: NamespaceState,
    pub(crate) now: Micros,
}

impl<'t> Snapshot<'t> {
    /// The namespace of that number.
    pub(crate) fn of(
        txn: &'t Txn<'t>,
        schema: &'t Schema,
        ns: NamespaceId,
        dimensions: usize,
        now: Micros,
    ) -> Result<Self, StoreError> {
        let state = apply::namespace_state(schema, txn, ns)?;
        Ok(Self {
            txn,
            docs: Documents {
                schema,
                ns,
                dimensions,
            },
            state,
            now,
        })
    }

    pub(crate) fn evaluator(&self) -> Evaluator<'t, 't> {
        Evaluator {
            txn: self.txn,
            schema: self.docs.schema,
            ns: self.docs.ns,
        }
    }

    /// Live documents that have expired.
    pub(crate) fn expired(&self) -> Result<RoaringBitmap, StoreError> {
        apply::expired(self.docs.schema, self.txn, self.docs.ns, self.now)?
            .map(|due| due.map(|(_, doc)| doc.0))
            .collect()
    }

    /// Ids of the live, unexpired memories that satisfy a filter.
    pub(crate) fn selected(&self, filter: &Filter) -> Result<Vec<MemoryId>, StoreError> {
        selected(self.docs, self.txn, filter, self.now)
    }

    /// The facts of all rows, to be read in place.
    pub(crate) fn facts(&self) -> Result<Facts<'t>, StoreError> {
        let count = (self.state.next_row as usize).div_ceil(ROWS_PER_BLOCK);
        let mut blocks: Vec<&[u8]> = vec![&[]; count];
        for entry in self
            .docs
            .schema
            .rows
            .prefix(self.txn, &keys::namespace(self.docs.ns))?
        {
            let (key, bytes) = entry?;
            let number = keys::trailing_number(key).map(|number| number as usize);
            match number.and_then(|number| blocks.get_mut(number)) {
                Some(block) => *block = bytes,
                None => return Err(self.docs.schema.rows.damaged(key)),
            }
        }
        Ok(Facts {
            blocks,
            rows: self.state.next_row,
        })
    }

    /// Calls `each` with the first row of every block of vectors and the block, until it says to stop.
    pub(crate) fn vector_blocks(
        &self,
        mut each: impl FnMut(u32, &'t [u8]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let per_block = rows_per_block(self.docs.dimensions) as u32;
        let size = row_bytes(self.docs.dimensions);
        for entry in self
            .docs
            .schema
            .vectors
            .prefix(self.txn, &keys::namespace(self.docs.ns))?
        {
            let (key, bytes) = entry?;
            let damaged = || self.docs.schema.vectors.damaged(key);
            let first = keys::trailing_number(key)
                .ok_or_else(damaged)?
                .checked_mul(per_block)
                .ok_or_else(damaged)?;
            let rows = bytes.len() / size;
            if bytes.len() % size != 0 || first as usize + rows > self.state.next_row as usize {
                return Err(damaged());
            }
            if each(first, bytes).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Ids of the memories of a namespace that are live, have not expired at `now`, and satisfy a filter.
pub(crate) fn selected(
    docs: Documents<'_>,
    txn: &Txn<'_>,
    filter: &Filter,
    now: Micros,
) -> Result<Vec<MemoryId>, StoreError> {
    let Documents { schema, ns, .. } = docs;
    let mut set = Evaluator { txn, schema, ns }.filter(filter)?;
    for due in apply::expired(schema, txn, ns, now)? {
        set.remove(due?.1.0);
    }
    let mut ids = Vec::new();
    for doc in set {
        if let Some(header) = docs.header(txn, Row(doc))? {
            ids.push(header.id);
        }
    }
    Ok(ids)
}

/// Facts of the rows of a namespace.
pub(crate) struct Facts<'t> {
    blocks: Vec<&'t [u8]>,
    rows: u32,
}

impl Facts<'_> {
    /// Rows ever given.
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    /// One row.
    #[inline]
    pub(crate) fn get(&self, row: u32) -> RowFacts {
        let (block, index) = rows::locate(row);
        self.blocks
            .get(block as usize)
            .map_or_else(RowFacts::default, |block| rows::get(block, index))
    }

    /// One row, and whether it is a whole document.
    #[inline]
    pub(crate) fn get_whole(&self, row: u32) -> (RowFacts, bool) {
        let (block, index) = rows::locate(row);
        let block = self.blocks.get(block as usize).copied().unwrap_or_default();
        let (own, behind) = rows::pair(block, index)
            .unwrap_or_else(|| (rows::get(block, index), self.get(row.saturating_add(1))));
        (own, own.offset == 0 && behind.offset == 0)
    }

    /// The document of a row.
    #[inline]
    pub(crate) fn document(&self, row: u32) -> Row {
        Row(row - self.get(row).offset.min(row))
    }

    /// All rows in order, in runs, each with its first row.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.blocks.iter().enumerate().flat_map(|(number, block)| {
            let first = number * ROWS_PER_BLOCK;
            rows::runs(block).map(move |(index, run)| ((first + index) as u32, run))
        })
    }
}

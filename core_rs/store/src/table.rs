//! Access to one LMDB database by bytes, with errors that name the table.

use std::ops::Bound;

use heed::types::Bytes;
use heed::{Database, RoTxn, RwTxn, WithoutTls};

use crate::StoreError;

/// What both kinds of transaction can be read as.
pub type Txn<'e> = RoTxn<'e>;
/// A snapshot of the store.
pub type ReadTxn<'e> = RoTxn<'e, WithoutTls>;
/// The write transaction.
pub type WriteTxn<'e> = RwTxn<'e>;

/// A key with its value, borrowed from the map.
pub type Entry<'t> = (&'t [u8], &'t [u8]);

/// One table: ordered keys of at most 511 bytes, values of any size.
#[derive(Clone, Copy)]
pub struct Table {
    database: Database<'static, Bytes, Bytes>,
    name: &'static str,
}

impl Table {
    pub(crate) fn new(database: Database<'static, Bytes, Bytes>, name: &'static str) -> Self {
        Self { database, name }
    }

    /// The table's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The value of `key`, borrowed from the map.
    pub fn get<'t>(&self, txn: &'t RoTxn<'_>, key: &[u8]) -> Result<Option<&'t [u8]>, StoreError> {
        self.database.get(txn, key).map_err(StoreError::environment)
    }

    /// Sets the value of `key`.
    pub fn put(&self, txn: &mut WriteTxn<'_>, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.database
            .put(txn, key, value)
            .map_err(StoreError::environment)
    }

    /// Removes `key`; false when it was not there.
    pub fn delete(&self, txn: &mut WriteTxn<'_>, key: &[u8]) -> Result<bool, StoreError> {
        self.database
            .delete(txn, key)
            .map_err(StoreError::environment)
    }

    /// The last entry whose key is at most `key`.
    pub fn at_or_before<'t>(
        &self,
        txn: &'t RoTxn<'_>,
        key: &[u8],
    ) -> Result<Option<Entry<'t>>, StoreError> {
        self.database
            .get_lower_than_or_equal_to(txn, key)
            .map_err(StoreError::environment)
    }

    /// The first entry whose key is at least `key`.
    pub fn at_or_after<'t>(
        &self,
        txn: &'t RoTxn<'_>,
        key: &[u8],
    ) -> Result<Option<Entry<'t>>, StoreError> {
        self.database
            .get_greater_than_or_equal_to(txn, key)
            .map_err(StoreError::environment)
    }

    /// The entry with the least key.
    pub fn first<'t>(&self, txn: &'t RoTxn<'_>) -> Result<Option<Entry<'t>>, StoreError> {
        self.database.first(txn).map_err(StoreError::environment)
    }

    /// All entries, in order.
    pub fn all<'t>(
        &self,
        txn: &'t RoTxn<'_>,
    ) -> Result<impl Iterator<Item = Result<Entry<'t>, StoreError>> + use<'t>, StoreError> {
        let entries = self.database.iter(txn).map_err(StoreError::environment)?;
        Ok(entries.map(|entry| entry.map_err(StoreError::environment)))
    }

    /// Entries whose key starts with `prefix` (not empty), in order.
    pub fn prefix<'t>(
        &self,
        txn: &'t RoTxn<'_>,
        prefix: &[u8],
    ) -> Result<impl Iterator<Item = Result<Entry<'t>, StoreError>> + use<'t>, StoreError> {
        let entries = self
            .database
            .prefix_iter(txn, prefix)
            .map_err(StoreError::environment)?;
        Ok(entries.map(|entry| entry.map_err(StoreError::environment)))
    }

    /// Entries with a key between the bounds, in order.
    pub fn range<'t>(
        &self,
        txn: &'t RoTxn<'_>,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> Result<impl Iterator<Item = Result<Entry<'t>, StoreError>> + use<'t>, StoreError> {
        let entries = self
            .database
            .range(txn, &(from, to))
            .map_err(StoreError::environment)?;
        Ok(entries.map(|entry| entry.map_err(StoreError::environment)))
    }

    /// Pages that it takes.
    pub(crate) fn pages(&self, txn: &Txn<'_>) -> Result<u64, StoreError> {
        let stat = self.database.stat(txn).map_err(StoreError::environment)?;
        Ok((stat.branch_pages + stat.leaf_pages + stat.overflow_pages) as u64)
    }

    /// Number of entries.
    pub fn len(&self, txn: &RoTxn<'_>) -> Result<u64, StoreError> {
        self.database.len(txn).map_err(StoreError::environment)
    }

    /// True when there is no entry.
    pub fn is_empty(&self, txn: &RoTxn<'_>) -> Result<bool, StoreError> {
        Ok(self.len(txn)? == 0)
    }

    /// The error for a value of this table that cannot be read.
    pub fn damaged(&self, key: &[u8]) -> StoreError {
        use std::fmt::Write;
        let mut record = format!("{}/", self.name);
        for byte in key {
            // Writing to a String cannot fail.
            let _ = write!(record, "{byte:02x}");
        }
        StoreError::Damaged { record }
    }
}

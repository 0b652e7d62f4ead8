//! The whole data model.
//!
//! Every key of a namespace starts with the namespace's number (`ns`, u32), so that export, erase and counts are
//! prefix scans. Integers in keys are big-endian, so that LMDB's order is numeric order; instants have their sign
//! bit flipped. A *document* (`doc`) is one version of one memory, known by the row of its first passage. "Sealed"
//! values start with a checksum (`codec::sealed`); the others can be rebuilt from sealed ones.

use heed::Database;
use heed::types::Bytes;

use crate::table::Table;

/// Version of everything below. A change of layout raises it; old directories are then refused or migrated.
pub const FORMAT_VERSION: u32 = 1;

macro_rules! schema {
    ($($(#[$doc:meta])* $table:ident,)*) => {
        /// The tables.
        pub struct Schema {
            $($(#[$doc])* pub $table: Table,)*
        }

        /// Names of the tables, in the order of [`Schema`].
        pub(crate) const NAMES: [&str; [$(stringify!($table)),*].len()] = [$(stringify!($table)),*];

        impl Schema {
            pub(crate) fn new(databases: [Database<'static, Bytes, Bytes>; NAMES.len()]) -> Self {
                let [$($table),*] = databases;
                Self { $($table: Table::new($table, stringify!($table)),)* }
            }

            /// All tables, in order.
            pub fn tables(&self) -> [&Table; NAMES.len()] {
                [$(&self.$table),*]
            }
        }
    };
}

schema! {
    /// `"identity"` → `StoreIdentity`, sealed; `"position"` → u64, the last operation applied;
    /// `"next_namespace"` and `"memories"` (live ones of the whole store) → u64.
    meta,
    /// position (u64) → Operation (`codec::journal`): what happened, in order; replaying it gives every other table.
    journal,
    /// segments, each with its length before it (or a hash of that, when it is long) → ns.
    namespaces,
    /// ns → `NamespaceState`, sealed.
    namespace_states,
    /// hash of the namespace's path (16 bytes), idempotency key → `Outcome`, sealed: what a call with this key was
    /// answered.
    outcomes,
    /// instant, key of the outcome → nothing: the order in which outcomes are forgotten.
    outcome_times,
    /// ns, key → doc of the current version.
    keys,
    /// ns, id (16 bytes) → doc of the current version.
    ids,
    /// ns, id (16 bytes), version (u32) → doc: every version kept, the current one included.
    versions,
    /// ns, digest (16 bytes) → doc of the live memory that was written with exactly these fields.
    digests,
    /// ns, instant, doc → nothing: live documents that expire, in the order of it.
    expiry,
    /// ns, doc → Header (`codec::header`), sealed: the fixed-size facts that ranking reads.
    headers,
    /// ns, doc → Record, sealed: everything but the content.
    records,
    /// ns, doc → the content, sealed.
    contents,
    /// ns, block (u32) → a block of row facts (`codec::rows`): length of the document in terms, offset to its first row, alive or not.
    rows,
    /// ns, block (u32) → a block of quantised vectors, one a row.
    vectors,
    /// ns, doc → the words of each passage as rows of the embedding model (`codec::words`): by them the best
    /// candidates are compared with the query word by word.
    words,
    /// ns, term, first row of the block (u32) → a block of postings (`codec::postings`): rows and term frequencies.
    postings,
    /// ns, field, value, chunk (u16) → a chunk of a set of live documents (`codec::docs`): the filter index.
    attributes,
}

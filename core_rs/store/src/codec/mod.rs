//! Encodings of values, one file each.

pub mod docs;
pub mod header;
pub mod postings;
pub mod rows;
pub mod sealed;

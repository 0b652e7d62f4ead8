//! Encodings of values, one file each.

pub mod docs;
pub mod header;
pub mod journal;
mod number;
pub mod postings;
pub mod rows;
pub mod sealed;
pub mod words;

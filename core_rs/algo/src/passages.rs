//! passages.

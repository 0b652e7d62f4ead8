//! terms.

//! pack.

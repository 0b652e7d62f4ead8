//! decay.

//! fusion.

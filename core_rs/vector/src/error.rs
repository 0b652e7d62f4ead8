//! What can be wrong with a vector, or with a graph and its file.
//!
//! The first group is about a vector that came from outside, worded so that the API can show it beside the field; the
//! second is about the graph, which its owner answers by rebuilding it from the store.

use std::{io, path::PathBuf};

use crate::quantize::MAX_DIMS;

/// The error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// The vector has no elements.
    #[error("the vector is empty")]
    Empty,
    /// The vector has more elements than the integer arithmetic of the kernels allows.
    #[error("the vector has {actual} dimensions, the most is {MAX_DIMS}")]
    TooManyDimensions {
        /// Elements of the vector.
        actual: usize,
    },
    /// The vector is not of the length that its neighbours have.
    #[error("the vector has {actual} dimensions, expected {expected}")]
    WrongLength {
        /// Dimensions of the store or the graph.
        expected: usize,
        /// Elements of the vector.
        actual: usize,
    },
    /// An element is NaN or infinite.
    #[error("element {position} of the vector is not finite")]
    NotFinite {
        /// Position of the first such element.
        position: usize,
    },
    /// Every element is zero, so that the vector has no direction.
    #[error("the vector is all zeros")]
    Zero,

    /// The row given to the graph holds no vector, or one that quantisation never makes.
    #[error("the row holds no vector")]
    NoVector,
    /// The key is in the graph already.
    #[error("key {0} is in the index already")]
    DuplicateKey(u64),
    /// The key is the one that marks removed nodes.
    #[error("key {0} is reserved")]
    ReservedKey(u64),
    /// The file is something else, or was made by a release with another format, or for other dimensions.
    #[error("{path} is not an index for this store: {reason}")]
    ForeignIndex {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The file was an index, and its bytes have changed since it was written.
    #[error("the index {path} is damaged: {reason}")]
    DamagedIndex {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: &'static str,
    },
    /// Reading or writing an index failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The graph library refused, for want of memory as a rule.
    #[error("usearch: {0}")]
    Usearch(String),
}

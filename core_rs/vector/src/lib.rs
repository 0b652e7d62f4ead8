//! Vector search over unit vectors of signed bytes: quantisation, an exact scan, and an approximate graph.
//!
//! The store keeps vectors as rows of bytes ([`quantize`]); the scan reads them where they lie ([`scan`]); the graph
//! ([`hnsw`]) is a cache over the same rows for large namespaces, which may be thrown away at any time. Both give an
//! approximate cosine that is the same number on every CPU; the final order comes from [`scan::exact_cosine`].
//!
//! This is the only crate with `unsafe` code: CPU intrinsics behind run-time detection, the C++ graph, and memory
//! maps. It must never store anything of its own besides the graph file, and never decide what is alive, allowed or
//! relevant: a score is all it gives.

pub mod error;
pub mod hnsw;
pub mod kernel;
pub mod mapped;
pub mod quantize;
pub mod scan;

pub use error::VectorError;
pub use hnsw::{HnswIndex, Neighbour};
pub use kernel::Kernel;
pub use mapped::MappedFile;
pub use quantize::{MAX_DIMS, Quantized, ROW_HEADER, row_bytes, rows_per_block};
pub use scan::{NO_VECTOR, Query};

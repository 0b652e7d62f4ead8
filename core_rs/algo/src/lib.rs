//! The pure algorithms of the hot path: token counts, terms, passages, summaries, scoring, fusion, top k and packing.
//!
//! Nothing here does I/O, reads a clock or a random source, or holds state between calls: equal inputs give equal
//! outputs on every machine.
#![forbid(unsafe_code)]

pub mod bm25;
pub mod decay;
pub mod fusion;
pub mod pack;
pub mod passages;
pub mod protect;
pub mod question;
pub mod score;
pub mod statement;
pub mod summary;
pub mod terms;
pub mod tokens;
pub mod topk;

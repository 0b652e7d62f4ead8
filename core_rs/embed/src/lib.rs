//! Text to vector, by the static model: one table of int8 rows and its vocabulary.
//!
//! A text is a bag of rows; its vector is the sum of them, scaled to unit length. There is no network, no
//! transformer and no state, so a query costs about a microsecond and the same text always gives the same
//! vector. `tools/model` holds the recipe of the weights and the reference implementation, which gives the
//! same rows for the same text.
//!
//! What this crate must never do: open a file or map memory (the caller brings the bytes), panic on a text
//! or a damaged file, or spend more than time and memory proportional to the length of the text.
//!
//! It has one concrete model and no trait. Another embedder is slow, can fail and takes texts by the batch;
//! an interface that fits both would serve neither.
#![forbid(unsafe_code)]

mod error;
mod format;
mod model;
mod neighbours;
mod tokenizer;
mod trie;
mod unigram;
mod words;

pub use error::EmbedError;
pub use model::StaticModel;
pub use tokenizer::Scratch;

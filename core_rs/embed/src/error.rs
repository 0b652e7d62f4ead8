//! Why a model could not be loaded. Embedding itself cannot fail: a text without a known piece has no
//! vector, which is an answer.

use crate::format::FORMAT;

/// Why the two files of a model were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// The weights file is cut short, is not in the safetensors format, or its parts contradict each other.
    #[error("the weights file is damaged: {0}")]
    Weights(&'static str),
    /// The weights file is whole, but written in another version of the format.
    #[error("the model is of format {found:?}; this version reads format {FORMAT:?}")]
    Format {
        /// The format that the file names.
        found: String,
    },
    /// The file of the neighbours is damaged or belongs to other weights.
    #[error("the file of the neighbours is of no use: {0}")]
    Neighbours(&'static str),
    /// The vocabulary belongs to other weights.
    #[error("the vocabulary has {found} lines where the weights have {expected} rows")]
    VocabularyLength {
        /// Rows of the table, thus lines that the vocabulary must have.
        expected: usize,
        /// Lines that it has.
        found: usize,
    },
    /// A line of the vocabulary cannot be read.
    #[error("line {line} of the vocabulary {reason}")]
    VocabularyLine {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
}

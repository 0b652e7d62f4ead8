//! Counters of tokens, by the names that a request's `encoding` gives.
//!
//! There are the two vocabularies that are compiled in, which count exactly; the tokenizers that the configuration
//! names, each read from a file when the sidecar starts; and an approximation that needs neither. Counting never fails,
//! waits or reads anything, and a count is a function of the text alone.

mod approximate;
mod file;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use recalld_algo::tokens::Encoding;

use file::FileTokenizer;
pub use file::{TokenizerError, TokenizerFault};

/// The name of the approximation.
pub const APPROXIMATE: &str = "approximate";

/// Counts tokens. Cheap to clone.
#[derive(Clone)]
pub struct Counter(Kind);

#[derive(Clone)]
enum Kind {
    Encoding(Encoding),
    File(Arc<FileTokenizer>),
    Approximate,
}

impl Counter {
    /// The name by which it is asked for.
    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::Encoding(encoding) => encoding.name(),
            Kind::File(tokenizer) => tokenizer.name(),
            Kind::Approximate => APPROXIMATE,
        }
    }

    /// The vocabulary that it counts by, when it is one that is compiled in.
    pub fn encoding(&self) -> Option<Encoding> {
        match &self.0 {
            Kind::Encoding(encoding) => Some(*encoding),
            Kind::File(_) | Kind::Approximate => None,
        }
    }

    /// The number of tokens of `text`.
    ///
    /// Counts are not additive: that of two texts together may be more or less than the sum.
    pub fn count(&self, text: &str) -> u32 {
        match &self.0 {
            Kind::Encoding(encoding) => encoding.count(text),
            Kind::File(tokenizer) => tokenizer.count(text),
            Kind::Approximate => approximate::count(text),
        }
    }

    /// The number of tokens of `text` if there are at most `limit`, else `None`: as [`Self::count`], but a long text
    /// is not read to its end.
    pub fn count_within(&self, text: &str, limit: u32) -> Option<u32> {
        match &self.0 {
            Kind::Encoding(encoding) => encoding.count_within(text, limit),
            Kind::File(tokenizer) => tokenizer.count_within(text, limit),
            Kind::Approximate => approximate::count_within(text, limit),
        }
    }

    /// A start of `text` of at most `max_tokens` tokens that ends between two characters: `text` itself if that fits,
    /// and never shorter when `max_tokens` grows.
    pub fn prefix<'t>(&self, text: &'t str, max_tokens: u32) -> &'t str {
        match &self.0 {
            Kind::Encoding(encoding) => encoding.prefix(text, max_tokens),
            Kind::File(tokenizer) => tokenizer.prefix(text, max_tokens),
            Kind::Approximate => approximate::prefix(text, max_tokens),
        }
    }
}

impl From<Encoding> for Counter {
    fn from(encoding: Encoding) -> Self {
        Self(Kind::Encoding(encoding))
    }
}

/// `o200k_base`.
impl Default for Counter {
    fn default() -> Self {
        Encoding::O200kBase.into()
    }
}

/// True when both count by the same vocabulary.
impl PartialEq for Counter {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Encoding(one), Kind::Encoding(other)) => one == other,
            (Kind::File(one), Kind::File(other)) => Arc::ptr_eq(one, other),
            (Kind::Approximate, Kind::Approximate) => true,
            _ => false,
        }
    }
}

/// Its name: a vocabulary is no help to a reader.
impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counter").field(&self.name()).finish()
    }
}

/// The counters that can be asked for.
#[derive(Debug, Clone)]
pub struct Counters {
    /// By name.
    tokenizers: BTreeMap<String, Counter>,
}

impl Counters {
    /// Those that need no file.
    pub const fn built_in() -> Self {
        Self {
            tokenizers: BTreeMap::new(),
        }
    }

    /// Those that need no file, and the tokenizers in these files by the names given. A name of the former cannot be
    /// given to another.
    pub fn load(tokenizers: &BTreeMap<String, PathBuf>) -> Result<Self, TokenizerError> {
        let tokenizers = tokenizers.iter().map(|(name, path)| {
            let tokenizer = FileTokenizer::load(name, path)?;
            Ok((name.clone(), Counter(Kind::File(Arc::new(tokenizer)))))
        });
        Ok(Self {
            tokenizers: tokenizers.collect::<Result<_, _>>()?,
        })
    }

    /// The counter of that exact name.
    pub fn get(&self, name: &str) -> Option<Counter> {
        if name == APPROXIMATE {
            return Some(Counter(Kind::Approximate));
        }
        Encoding::from_name(name)
            .map(Counter::from)
            .or_else(|| self.tokenizers.get(name).cloned())
    }

    /// All names.
    pub fn names(&self) -> Vec<&str> {
        let built_in = Encoding::ALL.map(Encoding::name);
        built_in
            .into_iter()
            .chain([APPROXIMATE])
            .chain(self.tokenizers.keys().map(String::as_str))
            .collect()
    }
}

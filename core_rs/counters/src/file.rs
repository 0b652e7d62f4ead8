//! Counting by a tokenizer in a file: the `tokenizer.json` of Hugging Face's libraries.
//!
//! The file is the operator's and is read once, when the sidecar starts; the texts are anybody's. A count is that of
//! the text alone: no special tokens are added, none is recognised in the text, and nothing is cut or padded, whatever
//! the file says. Counting never fails: a text that the tokenizer cannot take counts one token a byte, which is more
//! than any tokenizer makes of it.

use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use tokenizers::models::ModelWrapper;
use tokenizers::{Encoding, PostProcessorWrapper, Tokenizer};

/// Most bytes of a file. The largest vocabularies in use, of 250,000 tokens and more, take a third of it.
const MAX_FILE_BYTES: u64 = 128 << 20;

/// A text is counted in parts, since the library takes many times the memory of what it is given: the first
/// place after so many bytes at which a tokenizer would split as well ends a part.
const LEAST_PART_BYTES: usize = 64 << 10;
/// The end of a part without such a place.
const MOST_PART_BYTES: usize = 128 << 10;

/// Pieces of words that each thread remembers with their tokens, by tokenizer.
const REMEMBERED_WORDS: usize = 4096;

/// What every tokenizer must be able to encode: common scripts, and characters that no vocabulary has.
const PROBES: [&str; 4] = [
    "The ticket isn't refundable; it's $1,250.50.\n\n\tdef f(x):\r\n        return {\"a\": [1]}\n",
    "naïve café, Привет мир, 我喜欢爬山, 東京で寿司, 서울에서, مرحبا بالعالم, नमस्ते, สวัสดี, 👩\u{200d}👩\u{200d}👧",
    "\u{0}\u{7f}\u{ad}\u{feff}\u{e000}\u{fffd}\u{10fffd}e\u{301}\u{323}𓀀",
    " ",
];

/// Why a file cannot be counted with.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerFault {
    /// The system refuses.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// A folder, a pipe or the like.
    #[error("is not a file")]
    NotAFile,
    /// More than 128 MiB.
    #[error("has {bytes} bytes; at most {MAX_FILE_BYTES} are read")]
    TooLarge {
        /// What it has.
        bytes: u64,
    },
    /// Not what the library calls a tokenizer.
    #[error("is not a tokenizer.json: {0}")]
    Malformed(String),
    /// Some texts would have no count.
    #[error("is a tokenizer that cannot encode every text: {0}")]
    Partial(String),
}

/// A tokenizer of the configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} {fault}", .path.display())]
pub struct TokenizerError {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// What is wrong.
    pub fault: TokenizerFault,
}

/// A tokenizer, by the name that the configuration gives it.
pub(crate) struct FileTokenizer {
    name: String,
    tokenizer: Tokenizer,
}

impl FileTokenizer {
    pub(crate) fn load(name: &str, path: &Path) -> Result<Self, TokenizerError> {
        let failed = |fault| TokenizerError {
            name: name.to_owned(),
            path: path.to_owned(),
            fault,
        };
        let bytes = read(path).map_err(failed)?;
        let tokenizer = guarded(|| prepared(&bytes))
            .map_err(TokenizerFault::Malformed)
            .map_err(failed)?;
        let loaded = Self {
            name: name.to_owned(),
            tokenizer,
        };
        for probe in PROBES {
            loaded
                .encode(probe)
                .map_err(TokenizerFault::Partial)
                .map_err(failed)?;
        }
        Ok(loaded)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn count(&self, text: &str) -> u32 {
        parts(text).map(|part| self.count_part(part)).sum()
    }

    pub(crate) fn count_within(&self, text: &str, limit: u32) -> Option<u32> {
        parts(text).try_fold(0_u32, |total, part| {
            let total = total.saturating_add(self.count_part(part));
            (total <= limit).then_some(total)
        })
    }

    pub(crate) fn prefix<'t>(&self, text: &'t str, max_tokens: u32) -> &'t str {
        let mut room = max_tokens;
        let mut start = 0;
        for part in parts(text) {
            let tokens = self.count_part(part);
            if tokens > room {
                let end = start + self.prefix_of_part(part, room);
                return &text[..end];
            }
            room -= tokens;
            start += part.len();
        }
        text
    }

    fn count_part(&self, part: &str) -> u32 {
        let tokens = guarded(|| self.tokenizer.encode_fast(part, false));
        tokens.map_or(part.len(), |encoding| encoding.len()) as u32
    }

    /// The bytes of a part of more than `max_tokens` tokens that fill at most so many: the last end of one of its
    /// first tokens at which the text before, counted anew, fits. A text that is cut can be encoded otherwise.
    fn prefix_of_part(&self, part: &str, max_tokens: u32) -> usize {
        let most = max_tokens as usize;
        let mut ends: Vec<usize> = match self.encode(part) {
            Ok(encoding) => {
                let offsets = encoding.get_offsets().iter().take(most);
                offsets.map(|&(_, end)| end).collect()
            }
            Err(_) => (0..part.len()).take(most + 1).collect(),
        };
        ends.sort_unstable();
        ends.dedup();
        ends.into_iter()
            .rev()
            .filter(|&end| part.is_char_boundary(end))
            .find(|&end| self.count_part(&part[..end]) <= max_tokens)
            .unwrap_or(0)
    }

    /// The tokens of a text with the bytes that they stand for.
    fn encode(&self, text: &str) -> Result<Encoding, String> {
        guarded(|| self.tokenizer.encode(text, false))
    }
}

/// Calls the library. That it panics on some file or text is no reason to lose the process, or the call.
fn guarded<T>(work: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_panic) => Err("the library panicked".to_owned()),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TokenizerFault> {
    // Asked before it is opened: opening a pipe would wait for its other end.
    if !path.metadata()?.is_file() {
        return Err(TokenizerFault::NotAFile);
    }
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(TokenizerFault::TooLarge { bytes });
    }
    let mut content = Vec::new();
    file.by_ref()
        .take(MAX_FILE_BYTES)
        .read_to_end(&mut content)?;
    Ok(content)
}

/// A tokenizer that encodes a text and does nothing else to it.
fn prepared(bytes: &[u8]) -> tokenizers::Result<Tokenizer> {
    let mut tokenizer = Tokenizer::from_bytes(bytes)?;
    let mut model = tokenizer.get_model().clone();
    if let ModelWrapper::BPE(model) = &mut model {
        // It makes training robust, and counts random.
        model.dropout = None;
    }
    model.resize_cache(REMEMBERED_WORDS);
    tokenizer.with_model(model);
    tokenizer.with_truncation(None)?;
    tokenizer.with_padding(None);
    tokenizer.with_post_processor(None::<PostProcessorWrapper>);
    tokenizer.set_encode_special_tokens(true);
    Ok(tokenizer)
}

/// The parts in which a text is counted. Where one ends does not depend on what comes after it, so that the parts of a
/// prefix are those of the text, but for the last one.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (part, after) = rest.split_at(end_of_part(rest));
        rest = after;
        Some(part)
    })
}

fn end_of_part(text: &str) -> usize {
    let bytes = text.as_bytes();
    let splits = |at: &usize| {
        let (before, after) = (bytes[at - 1], bytes[*at]);
        (after == b' ' && !before.is_ascii_whitespace())
            || (before == b'\n' && !after.is_ascii_whitespace())
    };
    let last = bytes.len().min(MOST_PART_BYTES);
    (LEAST_PART_BYTES..last).find(splits).unwrap_or_else(|| {
        // A character has at most four bytes.
        (0..=last)
            .rev()
            .find(|&at| text.is_char_boundary(at))
            .unwrap_or(last)
    })
}

#[cfg(test)]
mod tests;

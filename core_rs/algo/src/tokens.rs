//! Exact token counts of the `OpenAI` vocabularies `o200k_base` and `cl100k_base`.
//!
//! Every budget of the sidecar is in tokens, so a count is never an estimate: it equals `tiktoken`'s
//! `encode_ordinary` on any text, which means that text that looks like a special token is counted as plain text.
//! The vocabularies are compiled into the program. All functions take time linear in the length of the text.
//!
//! Counts are not additive: `count(a) + count(b)` may differ from the count of the concatenation, in both directions.

mod short;
mod split;

use std::sync::LazyLock;

use bpe_openai::Tokenizer;

use short::ShortTokens;
use split::Pieces;

/// The longest token of either vocabulary, in bytes.
const MAX_TOKEN_BYTES: usize = 128;

/// A vocabulary with its rules for splitting text into pieces before byte pair encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `o200k_base`: GPT-4o and later.
    O200kBase,
    /// `cl100k_base`: GPT-4 and GPT-3.5.
    Cl100kBase,
}

impl Encoding {
    /// All encodings.
    pub const ALL: [Self; 2] = [Self::O200kBase, Self::Cl100kBase];

    /// The encoding of that exact name, `o200k_base` or `cl100k_base`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|encoding| encoding.name() == name)
    }

    /// The name by which `tiktoken` knows the encoding.
    pub const fn name(self) -> &'static str {
        match self {
            Self::O200kBase => "o200k_base",
            Self::Cl100kBase => "cl100k_base",
        }
    }

    /// The number of tokens of `text`.
    pub fn count(self, text: &str) -> u32 {
        let counter = Counter::new(self);
        self.pieces(text).map(|piece| counter.count(piece)).sum()
    }

    /// The number of tokens of `text` if there are at most `limit`, else `None`.
    ///
    /// Stops reading soon after the limit is passed.
    pub fn count_within(self, text: &str, limit: u32) -> Option<u32> {
        let counter = Counter::new(self);
        let mut total = 0;
        for piece in self.pieces(text) {
            let room = limit - total;
            if piece.len() > room as usize * MAX_TOKEN_BYTES {
                return None;
            }
            let tokens = counter.count(piece);
            if tokens > room {
                return None;
            }
            total += tokens;
        }
        Some(total)
    }

    /// The start of `text` that fills at most `max_tokens` tokens: all the pieces that fit, then as many whole tokens
    /// of the next piece as fit and end between two characters.
    ///
    /// The result is `text` itself if that fits, counts at most `max_tokens`, and never gets shorter when `max_tokens`
    /// grows. A longer prefix of the same count may exist, by less than a token and a character.
    pub fn prefix(self, text: &str, max_tokens: u32) -> &str {
        let bpe = &self.tokenizer().bpe;
        let mut room = max_tokens as usize;
        let mut start = 0;
        for piece in self.pieces(text) {
            let tokens = bpe.encode_via_backtracking(piece.as_bytes());
            if tokens.len() <= room {
                room -= tokens.len();
                start += piece.len();
                continue;
            }
            // Ends of the tokens that fit. A piece cut short may split otherwise (a contraction without its last
            // letter, white space that is now at the end), so each cut is counted anew. Cutting at the start of the
            // piece leaves the pieces before it as they were.
            let mut ends = Vec::with_capacity(room);
            let mut end = start;
            for &token in tokens.iter().take(room) {
                end += bpe.token_len(token);
                ends.push(end);
            }
            return ends
                .into_iter()
                .rev()
                .filter(|&end| text.is_char_boundary(end))
                .map(|end| &text[..end])
                .find(|prefix| self.count_within(prefix, max_tokens).is_some())
                .unwrap_or(&text[..start]);
        }
        text
    }

    fn tokenizer(self) -> &'static Tokenizer {
        match self {
            Self::O200kBase => bpe_openai::o200k_base(),
            Self::Cl100kBase => bpe_openai::cl100k_base(),
        }
    }

    fn pieces(self, text: &str) -> Pieces<'_> {
        Pieces::new(self, self.tokenizer(), text)
    }

    fn short_tokens(self) -> &'static ShortTokens {
        static O200K_BASE: LazyLock<ShortTokens> =
            LazyLock::new(|| ShortTokens::new(bpe_openai::o200k_base()));
        static CL100K_BASE: LazyLock<ShortTokens> =
            LazyLock::new(|| ShortTokens::new(bpe_openai::cl100k_base()));
        match self {
            Self::O200kBase => &O200K_BASE,
            Self::Cl100kBase => &CL100K_BASE,
        }
    }
}

/// Counts the tokens of one piece.
struct Counter {
    short: &'static ShortTokens,
    tokenizer: &'static Tokenizer,
}

impl Counter {
    fn new(encoding: Encoding) -> Self {
        Self {
            short: encoding.short_tokens(),
            tokenizer: encoding.tokenizer(),
        }
    }

    fn count(&self, piece: &str) -> u32 {
        if self.short.contains(piece.as_bytes()) {
            1
        } else {
            self.tokenizer.bpe.count(piece.as_bytes()) as u32
        }
    }
}

/// Builds both vocabularies (about a tenth of a second each), which otherwise happens at the first count with each.
pub fn warm() {
    for encoding in Encoding::ALL {
        encoding.count(" ");
    }
}

#[cfg(test)]
mod tests;

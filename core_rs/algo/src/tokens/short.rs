//! The short tokens of a vocabulary.
//!
//! Nearly all pieces of plain text are single tokens of a few bytes. Looking one up here takes a tenth of the time of the
//! byte pair encoder, which has to search and allocate.

use bpe_openai::Tokenizer;

/// The set of the ASCII tokens of at most eight bytes: a hash table with open addressing of the bytes as a number.
pub(super) struct ShortTokens {
    /// A power of two of slots, of which less than half are used; 0 is empty.
    slots: Box<[u64]>,
}

impl ShortTokens {
    pub(super) fn new(tokenizer: &Tokenizer) -> Self {
        let keys: Vec<u64> = (0..tokenizer.bpe.num_tokens() as u32)
            .filter_map(|token| key(tokenizer.bpe.token_bytes(token)))
            .collect();
        let mut tokens = Self {
            slots: vec![0; (keys.len() * 2).next_power_of_two()].into(),
        };
        for key in keys {
            let slot = tokens.slot(key);
            tokens.slots[slot] = key;
        }
        tokens
    }

    /// Whether `piece` is one token. False also for pieces that are too long to be in the set.
    pub(super) fn contains(&self, piece: &[u8]) -> bool {
        key(piece).is_some_and(|key| self.slots[self.slot(key)] == key)
    }

    /// The slot that holds `key`, or the empty slot where it belongs.
    fn slot(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        // Fibonacci hashing: the high bits of a product with 2^64 divided by the golden ratio.
        let mut slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.slots[slot] != 0 && self.slots[slot] != key {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

/// The bytes of an ASCII text as a number that no other such text has; none if it is empty, long or has a NUL.
fn key(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 8 {
        return None;
    }
    let mut bytes = [0; 8];
    bytes[..text.len()].copy_from_slice(text);
    (text.is_ascii() && !text.contains(&0)).then_some(u64::from_le_bytes(bytes))
}

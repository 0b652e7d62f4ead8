//! Newtypes of what the store counts and names, so that a row cannot be taken for a namespace.

use std::fmt;
use std::str::FromStr;

/// Number of a namespace in this store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespaceId(pub u32);

/// Number of a passage in its namespace. A memory's version is known by the row of its first passage, and its
/// passages follow one another. Rows are given in order and never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row(pub u32);

/// Number of an operation in the journal; 0 is the empty store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// An instant: microseconds since 1970 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub i64);

impl Micros {
    /// Later than every instant: what never expires.
    pub const NEVER: Self = Self(i64::MAX);
}

/// The id of a memory: 48 bits of milliseconds since 1970 and 80 random bits, like a ULID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryId(pub [u8; 16]);

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

impl fmt::Display for MemoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = u128::from_be_bytes(self.0);
        let mut text = [0u8; 26];
        for (i, out) in text.iter_mut().enumerate() {
            *out = CROCKFORD[(value >> (5 * (25 - i)) & 31) as usize];
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// The text is not 26 characters of Crockford base32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id is 26 characters of 0-9 and A-Z without I, L, O, U")]
pub struct InvalidMemoryId;

impl FromStr for MemoryId {
    type Err = InvalidMemoryId;

    fn from_str(text: &str) -> Result<Self, InvalidMemoryId> {
        // The first character holds 3 bits.
        if text.len() != 26 || text.as_bytes()[0] > b'7' {
            return Err(InvalidMemoryId);
        }
        let mut value = 0u128;
        for byte in text.bytes() {
            let digit = CROCKFORD
                .iter()
                .position(|&c| c == byte)
                .ok_or(InvalidMemoryId)?;
            value = value << 5 | digit as u128;
        }
        Ok(Self(value.to_be_bytes()))
    }
}

impl TryFrom<&[u8]> for MemoryId {
    type Error = InvalidMemoryId;

    fn try_from(bytes: &[u8]) -> Result<Self, InvalidMemoryId> {
        bytes.try_into().map(Self).map_err(|_| InvalidMemoryId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn text_round_trips_and_keeps_order(a: [u8; 16], b: [u8; 16]) {
            let (x, y) = (MemoryId(a), MemoryId(b));
            prop_assert_eq!(x.to_string().parse::<MemoryId>().unwrap(), x);
            prop_assert_eq!(x.to_string().cmp(&y.to_string()), x.cmp(&y));
        }

        #[test]
        fn any_text_is_an_id_or_refused(text in "\\PC{0,30}") {
            if let Ok(id) = text.parse::<MemoryId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}

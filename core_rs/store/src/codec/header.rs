//! The fixed-size facts of a document that ranking reads, so that it need not touch summaries and contents.

use crate::ids::{MemoryId, Micros};

/// One version of a memory, as ranking sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Header {
    /// The memory.
    pub id: MemoryId,
    /// Its version.
    pub version: u32,
    /// Number of passages: its rows follow its first.
    pub passages: u32,
    /// Tokens of the content in `o200k_base`.
    pub content_tokens: u32,
    /// Number of a built-in kind, or [`Header::OTHER_KIND`].
    pub kind: u8,
    /// 0..1.
    pub importance: f64,
    /// 0..1.
    pub confidence: f64,
    /// When what it tells happened.
    pub occurred_at: Micros,
    /// When this version was written.
    pub updated_at: Micros,
    /// First instant at which it is no longer returned.
    pub expires_at: Micros,
    /// Hash of what it states and who says it; memories with the same are shown as one.
    pub statement: u64,
}

impl Header {
    /// A kind of the user's own; the record has its name.
    pub const OTHER_KIND: u8 = 0;

    /// Bytes of an encoded header.
    pub const BYTES: usize = 16 + 4 + 4 + 4 + 1 + 8 + 8 + 8 + 8 + 8 + 8;

    /// Little-endian, in the order of the fields.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&self.id.0);
        put(&self.version.to_le_bytes());
        put(&self.passages.to_le_bytes());
        put(&self.content_tokens.to_le_bytes());
        put(&[self.kind]);
        put(&self.importance.to_le_bytes());
        put(&self.confidence.to_le_bytes());
        put(&self.occurred_at.0.to_le_bytes());
        put(&self.updated_at.0.to_le_bytes());
        put(&self.expires_at.0.to_le_bytes());
        put(&self.statement.to_le_bytes());
        out
    }

    /// The header, or None when the bytes are not one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let header = Self {
            id: MemoryId(take(&mut rest)?),
            version: u32::from_le_bytes(take(&mut rest)?),
            passages: u32::from_le_bytes(take(&mut rest)?),
            content_tokens: u32::from_le_bytes(take(&mut rest)?),
            kind: u8::from_le_bytes(take(&mut rest)?),
            importance: f64::from_le_bytes(take(&mut rest)?),
            confidence: f64::from_le_bytes(take(&mut rest)?),
            occurred_at: Micros(i64::from_le_bytes(take(&mut rest)?)),
            updated_at: Micros(i64::from_le_bytes(take(&mut rest)?)),
            expires_at: Micros(i64::from_le_bytes(take(&mut rest)?)),
            statement: u64::from_le_bytes(take(&mut rest)?),
        };
        rest.is_empty().then_some(header)
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips(id: [u8; 16], numbers: [u32; 3], kind: u8, parts in (0.0..1.0f64, 0.0..1.0f64), times: [i64; 3], statement: u64) {
            let header = Header {
                id: MemoryId(id),
                version: numbers[0],
                passages: numbers[1],
                content_tokens: numbers[2],
                kind,
                importance: parts.0,
                confidence: parts.1,
                occurred_at: Micros(times[0]),
                updated_at: Micros(times[1]),
                expires_at: Micros(times[2]),
                statement,
            };
            prop_assert_eq!(Header::decode(&header.encode()), Some(header));
            prop_assert_eq!(Header::decode(&header.encode()[1..]), None);
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Header::decode(&bytes);
        }
    }
}

//! A chunk of a set of documents: the low 16 bits of those whose high 16 bits are the chunk's number. Small chunks
//! are plain little-endian numbers in order, larger ones a roaring bitmap; the first byte says which.

use roaring::RoaringBitmap;

const PLAIN: u8 = 0;
const ROARING: u8 = 1;
/// A roaring bitmap of one container costs 16 bytes before its first member.
const PLAIN_LIMIT: usize = 12;

/// Chunk and member of a document.
pub fn split(doc: u32) -> (u16, u16) {
    ((doc >> 16) as u16, doc as u16)
}

/// The encoded chunk, or None when it is empty and its key must go.
pub fn encode(members: &RoaringBitmap) -> Option<Vec<u8>> {
    if members.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    if members.len() <= PLAIN_LIMIT as u64 {
        out.push(PLAIN);
        for member in members {
            out.extend_from_slice(&(member as u16).to_le_bytes());
        }
    } else {
        out.push(ROARING);
        // Writing to a Vec cannot fail.
        let _ = members.serialize_into(&mut out);
    }
    Some(out)
}

/// The members of a chunk (0..65,536), or None when it is damaged.
pub fn decode(bytes: &[u8]) -> Option<RoaringBitmap> {
    let (&form, rest) = bytes.split_first()?;
    match form {
        PLAIN => {
            let (members, rest) = rest.as_chunks::<2>();
            rest.is_empty().then(|| {
                members
                    .iter()
                    .map(|m| u32::from(u16::from_le_bytes(*m)))
                    .collect()
            })
        }
        ROARING => RoaringBitmap::deserialize_from(rest).ok(),
        _ => None,
    }
}

/// Adds the members of chunk number `chunk` to a set of documents. None when it is damaged.
pub fn add_to(set: &mut RoaringBitmap, chunk: u16, bytes: &[u8]) -> Option<()> {
    let base = u32::from(chunk) << 16;
    let members = decode(bytes)?;
    if members.max().is_some_and(|last| last > 0xffff) {
        return None;
    }
    if base == 0 {
        *set |= members;
    } else {
        // The members are in order and the set may hold others after them.
        set.extend(members.into_iter().map(|m| base | m));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips(members in proptest::collection::btree_set(0..=0xffffu32, 1..400), chunk: u16) {
            let set: RoaringBitmap = members.iter().copied().collect();
            let bytes = encode(&set).unwrap();
            prop_assert_eq!(decode(&bytes), Some(set));
            let mut all = RoaringBitmap::new();
            add_to(&mut all, chunk, &bytes).unwrap();
            let expected: Vec<u32> = members.iter().map(|m| u32::from(chunk) << 16 | m).collect();
            prop_assert_eq!(all.iter().collect::<Vec<_>>(), expected);
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn an_empty_chunk_has_no_value() {
        assert_eq!(encode(&RoaringBitmap::new()), None);
    }
}

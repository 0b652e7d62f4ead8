//! A value with a checksum: a version byte, the CRC-32 of the payload, the payload.
//!
//! LMDB does not check what it reads; a flipped bit in a record must become an error and not an answer.

const PLAIN: u8 = 1;
const HEAD: usize = 5;

/// The sealed form of `payload`.
pub fn seal(payload: &[u8]) -> Vec<u8> {
    seal_as(PLAIN, &[payload])
}

/// The payload, or None when the value is damaged.
pub fn open(value: &[u8]) -> Option<&[u8]> {
    open_as(PLAIN, value)
}

/// The sealed form of a payload in parts, which a version tells how to read.
pub(super) fn seal_as(version: u8, payload: &[&[u8]]) -> Vec<u8> {
    let length: usize = payload.iter().map(|part| part.len()).sum();
    let mut value = Vec::with_capacity(HEAD + length);
    let mut sum = crc32fast::Hasher::new();
    value.extend_from_slice(&[version, 0, 0, 0, 0]);
    for part in payload {
        sum.update(part);
        value.extend_from_slice(part);
    }
    value[1..HEAD].copy_from_slice(&sum.finalize().to_le_bytes());
    value
}

/// The payload, or None when the value is damaged or of another version.
pub(super) fn open_as(version: u8, value: &[u8]) -> Option<&[u8]> {
    let (head, payload) = value.split_at_checked(HEAD)?;
    let sum = u32::from_le_bytes(*head.last_chunk::<4>()?);
    (head[0] == version && crc32fast::hash(payload) == sum).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_single_bit_is_guarded(payload in proptest::collection::vec(any::<u8>(), 0..200), at: usize) {
            let mut value = seal(&payload);
            prop_assert_eq!(open(&value), Some(&payload[..]));
            let bit = at % (value.len() * 8);
            value[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(open(&value), None);
        }
    }
}

//! An entry of the journal: an operation, sealed as it is, or sealed as its length (u32) and a zstd frame of it where that
//! is shorter.
//!
//! The journal holds again what the tables hold, and nothing reads it while agents wait: here space counts for more than
//! time.

use std::borrow::Cow;

use super::sealed;

/// The version of a seal around a frame. No single flipped bit makes it that of a plain one.
const PACKED: u8 = 2;
/// More bytes than any operation has, and few enough to ask for.
const MOST: usize = 1 << 28;

/// Makes entries.
pub struct Packer(zstd::bulk::Compressor<'static>);

impl Packer {
    /// A packer with buffers that are kept from operation to operation.
    pub fn new() -> std::io::Result<Self> {
        zstd::bulk::Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL).map(Self)
    }

    /// The entry of an encoded operation.
    pub fn encode(&mut self, operation: &[u8]) -> Vec<u8> {
        let length = operation.len() as u32;
        match self.0.compress(operation) {
            Ok(frame) if size_of_val(&length) + frame.len() < operation.len() => {
                sealed::seal_as(PACKED, &[&length.to_le_bytes(), &frame])
            }
            _ => sealed::seal(operation),
        }
    }
}

/// The encoded operation of an entry, or None when the entry is damaged.
pub fn decode(entry: &[u8]) -> Option<Cow<'_, [u8]>> {
    if let Some(operation) = sealed::open(entry) {
        return Some(Cow::Borrowed(operation));
    }
    let (length, frame) = sealed::open_as(PACKED, entry)?.split_first_chunk()?;
    let length = u32::from_le_bytes(*length) as usize;
    if length > MOST {
        return None;
    }
    let operation = zstd::bulk::decompress(frame, length).ok()?;
    (operation.len() == length).then_some(Cow::Owned(operation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_operation_comes_back(operations in vec(vec(0u8..4, 0..2_000), 1..4), noise: Vec<u8>) {
            let mut packer = Packer::new().unwrap();
            for operation in operations.iter().chain([&noise]) {
                let entry = packer.encode(operation);
                prop_assert_eq!(decode(&entry).map(Cow::into_owned), Some(operation.clone()));
                prop_assert!(entry.len() <= sealed::seal(operation).len());
                // The same bytes each time, whatever was packed before.
                prop_assert_eq!(entry, Packer::new().unwrap().encode(operation));
            }
        }

        #[test]
        fn every_single_bit_is_guarded(length in 100usize..2_000, at: usize) {
            let operation = vec![7; length];
            let mut entry = Packer::new().unwrap().encode(&operation);
            prop_assert!(entry.len() < length);
            let bit = at % (entry.len() * 8);
            entry[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(decode(&entry), None);
        }

        #[test]
        fn no_bytes_make_it_panic(entry: Vec<u8>, payload: Vec<u8>) {
            let _ = decode(&entry);
            let _ = decode(&sealed::seal_as(PACKED, &[&payload]));
        }
    }
}

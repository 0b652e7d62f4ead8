//! A block of postings: the last row it holds (u32, little-endian), then for each row that holds the term, in order,
//! the distance from the row before it and the term frequency, as LEB128 numbers. The first distance is from the
//! block's first row, which stands in its key; the last row stands in front so that appending need not decode.

use super::number::{put_number, take_number};

/// Bytes from which a block is full and the next posting opens another. Small, because a write copies the last
/// block of each of its terms; large enough that a common term is read in few steps.
pub const FULL_BYTES: usize = 1024;

const LAST: usize = 4;

/// One row that holds the term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    /// The row.
    pub row: u32,
    /// How often the term stands in it; at least 1.
    pub frequency: u32,
}

/// A block that holds one posting; its key has that posting's row.
pub fn start(posting: Posting) -> Vec<u8> {
    let mut block = posting.row.to_le_bytes().to_vec();
    put_number(&mut block, 0);
    put_number(&mut block, posting.frequency);
    block
}

/// Adds a posting whose row is after all others. None when the block is damaged.
pub fn append(block: &mut Vec<u8>, posting: Posting) -> Option<()> {
    let last = block.first_chunk_mut::<LAST>()?;
    let distance = posting.row.checked_sub(u32::from_le_bytes(*last))?;
    *last = posting.row.to_le_bytes();
    put_number(block, distance);
    put_number(block, posting.frequency);
    Some(())
}

/// The block without a row; None when nothing is left of it. The outer None: damaged.
pub fn without(first: u32, block: &[u8], row: u32) -> Option<Option<Vec<u8>>> {
    let mut left: Option<Vec<u8>> = None;
    let mut before = first;
    for_each(first, block, |posting| {
        if posting.row != row {
            let out = left.get_or_insert_with(|| vec![0; LAST]);
            put_number(out, posting.row - before);
            put_number(out, posting.frequency);
            before = posting.row;
        }
    })?;
    if let Some(last) = left.as_mut().and_then(|out| out.first_chunk_mut::<LAST>()) {
        *last = before.to_le_bytes();
    }
    Some(left)
}

/// Calls `each` with every posting, in order. None when the block is damaged; what came before was given.
#[inline]
pub fn for_each(first: u32, block: &[u8], mut each: impl FnMut(Posting)) -> Option<()> {
    let mut at = LAST;
    let mut row = first;
    while at < block.len() {
        let (step, frequency) = match block[at..] {
            // Nearly all are of two bytes.
            [step, frequency, ..] if (step | frequency) < 0x80 => {
                at += 2;
                (step.into(), frequency.into())
            }
            _ => (take_number(block, &mut at)?, take_number(block, &mut at)?),
        };
        row = row.checked_add(step)?;
        each(Posting { row, frequency });
    }
    Some(())
}

/// The postings of a block, or None when it is damaged.
pub fn decode(first: u32, block: &[u8]) -> Option<Vec<Posting>> {
    let mut postings = Vec::with_capacity(block.len() / 2);
    for_each(first, block, |posting| postings.push(posting))?;
    Some(postings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn holds_what_was_appended_and_not_removed(
            first in 0..1_000_000u32,
            steps in proptest::collection::vec((1..100_000u32, 1..100_000u32, any::<bool>()), 1..200),
        ) {
            let mut row = first;
            let mut model = Vec::new();
            let mut block: Option<Vec<u8>> = None;
            for (step, frequency, _) in &steps {
                let posting = Posting { row, frequency: *frequency };
                match &mut block {
                    None => block = Some(start(posting)),
                    Some(block) => append(block, posting).unwrap(),
                }
                model.push(posting);
                row += step;
            }
            let mut block = block.unwrap();
            prop_assert_eq!(decode(first, &block), Some(model.clone()));
            for (posting, (.., remove)) in model.clone().into_iter().zip(&steps) {
                if *remove {
                    model.retain(|kept| kept.row != posting.row);
                    match without(first, &block, posting.row).unwrap() {
                        Some(left) => block = left,
                        None => prop_assert!(model.is_empty()),
                    }
                }
            }
            if !model.is_empty() {
                prop_assert_eq!(decode(first, &block), Some(model.clone()));
                let next = Posting { row, frequency: 1 };
                append(&mut block, next).unwrap();
                model.push(next);
                prop_assert_eq!(decode(first, &block), Some(model));
            }
        }

        #[test]
        fn never_panics(first: u32, block in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(first, &block);
            let _ = without(first, &block, first);
        }
    }
}

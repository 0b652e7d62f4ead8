//! The words of a document's passages, as rows of the embedding model: for each passage the number of its words and
//! then, in order, each word's distance from the one before it (the first from 0), all as LEB128 numbers.

use super::number::{put_number, take_number};

/// The words of one passage more. They are in order and differ.
pub fn append(bytes: &mut Vec<u8>, words: &[u32]) {
    put_number(bytes, words.len() as u32);
    let mut before = 0;
    for &word in words {
        put_number(bytes, word - before);
        before = word;
    }
}

/// Calls `each` with every word and the number of its passage, in order, and answers how many passages there are. None
/// when the value is damaged; what came before was given.
#[inline]
pub fn for_each(bytes: &[u8], mut each: impl FnMut(u32, u32)) -> Option<u32> {
    let mut at = 0;
    let mut passage = 0;
    while at < bytes.len() {
        let mut word = 0u32;
        for _ in 0..take_number(bytes, &mut at)? {
            word = word.checked_add(take_number(bytes, &mut at)?)?;
            each(passage, word);
        }
        passage += 1;
    }
    Some(passage)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gives_back_what_was_appended(passages in proptest::collection::vec(proptest::collection::btree_set(any::<u32>(), 0..40), 0..6)) {
            let mut bytes = Vec::new();
            for words in &passages {
                append(&mut bytes, &words.iter().copied().collect::<Vec<_>>());
            }
            let mut found = vec![BTreeSet::new(); passages.len()];
            let count = for_each(&bytes, |passage, word| {
                found[passage as usize].insert(word);
            });
            prop_assert_eq!(count, Some(passages.len() as u32));
            prop_assert_eq!(found, passages);
        }

        #[test]
        fn damage_is_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut words = 0;
            for_each(&bytes, |_, _| words += 1);
            prop_assert!(words <= bytes.len());
        }
    }
}

//! A set of strings with a row number each, searched by walking along a text.
//!
//! Both tokenizers ask the same question: which of my strings start at this place of the text? A trie
//! answers in as many steps as the longest of them has characters, however many there are, so a text cannot
//! be made slow. Edges are one hash map: a node has few children except the root, which has thousands.

use rustc_hash::FxHashMap;

/// Marks a node at which no string ends.
const NO_ROW: u32 = u32::MAX;

/// Where an edge leads.
struct Node {
    id: u32,
    /// Row of the string that ends here, or [`NO_ROW`].
    row: u32,
}

/// Strings with a row number each; see the module.
#[derive(Default)]
pub(crate) struct Trie {
    /// Keyed by the parent's id and the character; the root has id 0. The keys are the vocabulary's own, so
    /// the hash needs no secret.
    edges: FxHashMap<(u32, char), Node>,
}

impl Trie {
    /// Adds a string that is not empty, with a row below `u32::MAX`. False, and no change, if it is there.
    pub fn insert(&mut self, string: &str, row: u32) -> bool {
        debug_assert!(!string.is_empty() && row != NO_ROW);
        let mut chars = string.chars().peekable();
        let mut parent = 0;
        while let Some(c) = chars.next() {
            let id = self.edges.len() as u32 + 1;
            let node = self
                .edges
                .entry((parent, c))
                .or_insert(Node { id, row: NO_ROW });
            if chars.peek().is_none() {
                if node.row != NO_ROW {
                    return false;
                }
                node.row = row;
            }
            parent = node.id;
        }
        true
    }

    /// The strings that `text` starts with, shortest first, as (length in characters, row).
    pub fn matches(&self, text: &[char]) -> impl Iterator<Item = (usize, u32)> {
        let mut parent = 0;
        text.iter()
            .map_while(move |&c| {
                let node = self.edges.get(&(parent, c))?;
                parent = node.id;
                Some(node.row)
            })
            .zip(1..)
            .filter(|&(row, _)| row != NO_ROW)
            .map(|(row, length)| (length, row))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The same matches as trying every string in turn.
        #[test]
        fn matches_what_comparing_each_string_finds(
            strings in vec("[ab\u{e9}\u{6f22}]{1,5}", 0..30),
            text in "[ab\u{e9}\u{6f22}]{0,12}",
        ) {
            let mut trie = Trie::default();
            let mut naive = BTreeMap::new();
            for (row, string) in (0..).zip(&strings) {
                let new = !naive.contains_key(string);
                prop_assert_eq!(trie.insert(string, row), new);
                naive.entry(string.clone()).or_insert(row);
            }
            let mut expected: Vec<(usize, u32)> = naive
                .iter()
                .filter(|(string, _)| text.starts_with(string.as_str()))
                .map(|(string, &row)| (string.chars().count(), row))
                .collect();
            expected.sort_unstable();
            let text: Vec<char> = text.chars().collect();
            prop_assert_eq!(trie.matches(&text).collect::<Vec<_>>(), expected);
        }
    }
}

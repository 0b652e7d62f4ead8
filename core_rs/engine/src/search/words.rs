//! Word by word: how much of the query's words a memory has, each or one that means nearly the same.
//!
//! A vector is the sum of its words, so that a memory may be near to a query that it does not answer, and BM25 knows
//! only the words as they are written. The best candidates of both are therefore compared once more: every word of the
//! query looks for the word of a passage that is nearest to it ("`MaxSim`", as in Khattab and Zaharia, "`ColBERT`",
//! 2020, over the rows of a static model instead of a transformer's outputs), and counts by how much it says. Words that
//! name something count only where they stand as they are.

use std::cell::RefCell;

use recalld_algo::question;
use recalld_store::codec::words;

use crate::model::Model;

/// Words of a query that are compared, at most: those that say most.
const MAX_WORDS: usize = 128;

/// How much more a name counts than another word of its weight, in what the best memories must have together.
const NAME_FACTOR: f32 = 4.0;

/// A query of more words than this is a situation and not a question: it need not be found in whole.
const QUESTION_WORDS: f32 = 10.0;

/// The share of a query's words from which a memory is about what is asked.
const ABOUT: f32 = 0.35;

/// How much of a query's words a newer memory may lack of those that an older one has, when that has all of them. When it
/// has fewer, less by the root: else a memory with few of them would be passed by one with none.
const MAY_LACK: f32 = 0.15;

/// A cosine from which a word is the same word.
const SAME: f32 = 0.999;

/// The words of a query and everything near to them.
pub(crate) struct QueryWords {
    /// Weights of the words, summing to 1.
    weights: Vec<f32>,
    /// Whether they name something.
    names: Vec<bool>,
    /// Sum of the weights of names.
    named: f32,
    near: Near,
}

/// How much of the query's words a memory has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Matched {
    /// Of all words, by weight, in its best passage; 0..1.
    pub(crate) words: f32,
    /// Of the names, as they are; 0..1.
    pub(crate) names: f32,
    /// By passage.
    pub(crate) passages: Vec<f32>,
    /// By word of the query, in any passage.
    pub(crate) best: Vec<f32>,
}

impl QueryWords {
    /// None when the query has no telling word.
    pub(crate) fn of(model: &Model, text: &str) -> Option<Self> {
        let mut rows = model.words(text);
        if rows.is_empty() {
            return None;
        }
        let weight = |row: &u32| model.weight(*row);
        if rows.len() > MAX_WORDS {
            rows.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then(a.cmp(b)));
            rows.truncate(MAX_WORDS);
        }
        let mut named_rows = Vec::new();
        for name in question::names(text) {
            named_rows.extend(model.words(name));
        }
        let mut weights: Vec<f32> = rows.iter().map(weight).collect();
        let sum: f32 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= sum;
        }
        let names: Vec<bool> = rows.iter().map(|row| named_rows.contains(row)).collect();
        let named = weights
            .iter()
            .zip(&names)
            .filter_map(|(weight, is_name)| is_name.then_some(weight))
            .sum();
        let mut near = Near::new();
        for (word, &row) in (0..).zip(&rows) {
            near.add(row, word, 1.0);
            for (other, cosine) in model.neighbours(row) {
                near.add(other, word, cosine);
            }
        }
        Some(Self {
            weights,
            names,
            named,
            near,
        })
    }

    /// How many words are compared.
    pub(crate) fn len(&self) -> usize {
        self.weights.len()
    }

    /// Compares a memory's words, as they are stored. None when they are damaged.
    pub(crate) fn compare(&self, stored: &[u8]) -> Option<Matched> {
        let count = self.weights.len();
        // One line a passage.
        let mut grid: Vec<f32> = vec![0.0; count];
        let passages = words::for_each(stored, |passage, word| {
            let start = passage as usize * count;
            for entry in self.near.of(word) {
                if grid.len() < start + count {
                    grid.resize(start + count, 0.0);
                }
                let best = &mut grid[start + usize::from(entry.word)];
                *best = best.max(entry.cosine);
            }
        })?;
        grid.resize(passages.max(1) as usize * count, 0.0);
        let mut matched = Matched {
            best: vec![0.0; count],
            ..Matched::default()
        };
        for line in grid.chunks_exact(count) {
            let words = line.iter().zip(&self.weights).map(|(c, w)| c * w).sum();
            matched.passages.push(words);
            matched.words = matched.words.max(words);
            if self.named > 0.0 {
                matched.names = matched.names.max(self.share_of_names(line));
            }
            for (best, cosine) in matched.best.iter_mut().zip(line) {
                *best = best.max(*cosine);
            }
        }
        Some(matched)
    }

    fn share_of_names(&self, line: &[f32]) -> f32 {
        let found: f32 = line
            .iter()
            .zip(&self.names)
            .zip(&self.weights)
            .filter_map(|((cosine, is_name), weight)| {
                (*is_name && *cosine >= SAME).then_some(weight)
            })
            .sum();
        found / self.named
    }

    /// How much of the query, 0..1, memories have that have these words together. A name counts for more, and only as it
    /// is: without what it names, there is no answer.
    pub(crate) fn coverage<'m>(&self, memories: impl Iterator<Item = &'m Matched>) -> f32 {
        let mut together = vec![0.0f32; self.weights.len()];
        for matched in memories {
            for (best, cosine) in together.iter_mut().zip(&matched.best) {
                *best = best.max(*cosine);
            }
        }
        let (mut found, mut all) = (0.0, 0.0);
        for ((cosine, weight), is_name) in together.iter().zip(&self.weights).zip(&self.names) {
            let (weight, cosine) = match is_name {
                true => (weight * NAME_FACTOR, f32::from(*cosine >= SAME)),
                false => (*weight, *cosine),
            };
            found += weight * cosine;
            all += weight;
        }
        let missing = 1.0 - found / all;
        1.0 - missing * (QUESTION_WORDS / self.weights.len() as f32).min(1.0)
    }

    /// Whether `old` is about what is asked and `new` has nearly all that `old` has of it. A query that `old` has word for
    /// word quotes it, and asks for no other value.
    pub(crate) fn brings_up_to_date(&self, new: &Matched, old: &Matched) -> bool {
        let (mut has, mut lacks) = (0.0, 0.0);
        for ((old, new), weight) in old.best.iter().zip(&new.best).zip(&self.weights) {
            has += weight * old;
            lacks += weight * (old - new).max(0.0);
        }
        let may_lack = if has >= SAME {
            0.0
        } else {
            MAY_LACK * has.sqrt()
        };
        has >= ABOUT && lacks <= may_lack
    }
}

/// One word of a query near to a row.
struct Entry {
    row: u32,
    /// Place of the next entry of the row, plus 1; 0: none.
    next: u16,
    word: u8,
    cosine: f32,
}

/// The words of a query by the rows near to them: a list of entries for each row, whose heads stand in an array, since
/// every word of every candidate is looked up.
#[derive(Default)]
struct Near {
    /// By row, the place of its first entry plus 1; 0: none. All 0 between queries.
    heads: Vec<u16>,
    entries: Vec<Entry>,
}

thread_local! {
    /// Kept from query to query.
    static POOL: RefCell<Near> = RefCell::default();
}

impl Near {
    fn new() -> Self {
        POOL.take()
    }

    fn add(&mut self, row: u32, word: u8, cosine: f32) {
        let at = row as usize;
        if self.heads.len() <= at {
            self.heads.resize(at + 1, 0);
        }
        let next = self.heads[at];
        self.entries.push(Entry {
            row,
            next,
            word,
            cosine,
        });
        self.heads[at] = self.entries.len() as u16;
    }

    #[inline]
    fn of(&self, row: u32) -> impl Iterator<Item = &Entry> {
        let entry = |place: u16| self.entries.get(usize::from(place).wrapping_sub(1));
        let first = self.heads.get(row as usize).copied().unwrap_or(0);
        std::iter::successors(entry(first), move |last| entry(last.next))
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        for entry in self.entries.drain(..) {
            self.heads[entry.row as usize] = 0;
        }
        // A query of a dropped thread has nothing to keep.
        let _ = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            std::mem::swap(&mut pool.heads, &mut self.heads);
            std::mem::swap(&mut pool.entries, &mut self.entries);
        });
    }
}

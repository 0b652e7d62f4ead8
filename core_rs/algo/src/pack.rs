//! Packing a brief: which form of which memory to take, so that the value is greatest and the budget holds.
//!
//! Each candidate offers a few forms (the whole, passages, a summary, a headline) with a cost in tokens and a value, and
//! at most one of them is taken: a multiple-choice knapsack. It is solved in three steps, after Pisinger, "A Minimal
//! Algorithm for the Multiple-Choice Knapsack Problem" (1995):
//!
//! 1. `relax`: forms that cost no less and are worth no more than another are dropped, and the linear relaxation is
//!    solved greedily along each item's convex hull (Zemel, "The Linear Multiple Choice Knapsack Problem", 1980). That
//!    gives an upper bound, a feasible packing, and the rate of value per token at which they part.
//! 2. `exact`: forms that cannot be part of a better packing at that rate are dropped. What is left, usually a dozen
//!    items around the rate, is solved by dynamic programming, nearest items first, each partial packing pruned by the
//!    rates of the items still to come.
//! 3. The second step counts its operations. At a fixed limit it stops with the best packing found and the bound proved
//!    by then. Wall time plays no part, so equal inputs give equal packings on every machine.
//!
//! Items may stand under headings, each of which costs tokens and may have a limit of its own: `sections` makes one item
//! of each section, whose forms are the best ways to fill it, and packs those by the same steps.
//!
//! A packing is never over the budget, and its bound never below the optimum.

mod exact;
mod relax;
mod sections;

use relax::Menus;

/// How many partial packings may be made before the best one so far is returned: 2-5 ms.
///
/// A brief takes 300 (64 memories into 1,200 tokens) to 6,000 (256 into 8,000). What meets the limit is made to: equal
/// values per token throughout, and a budget that no packing fills.
const WORK_LIMIT: u64 = 200_000;

/// The greatest sum of values that is taken: differences of such sums fit an `i64`.
const MOST_VALUE: u128 = 1 << 62;

/// One form of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Form {
    /// Its cost.
    pub tokens: u32,
    /// Its worth, in any unit that all items share. A form of value 0 is never taken.
    pub value: u64,
}

/// Items under a heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section<Item> {
    /// In any order.
    pub items: Vec<Item>,
    /// Tokens of the heading, which a section without a taken form does not have.
    pub heading: u32,
    /// Most tokens of the section with its heading.
    pub most: u32,
}

/// A choice of at most one form for each item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packing {
    /// For each item, in the order given, the index of the form taken.
    pub choices: Vec<Option<u32>>,
    /// Tokens of the forms taken together, and of the headings over them; never above the budget.
    pub tokens: u32,
    /// Value of the forms taken together.
    pub value: u64,
    /// No packing has a greater value. Equal to `value` unless the work limit was met.
    pub bound: u64,
}

impl Packing {
    /// Whether no packing is worth more.
    #[must_use]
    pub fn is_optimal(&self) -> bool {
        self.value == self.bound
    }

    /// The share of the bound that may be missing, 0..1: the optimum is worth at most `value / (1 - gap)`.
    #[must_use]
    pub fn gap(&self) -> f64 {
        if self.is_optimal() {
            return 0.0;
        }
        (self.bound - self.value) as f64 / self.bound as f64
    }
}

/// The most valuable packing of `items` into `budget` tokens.
///
/// An item is a list of forms, in any order. Of two packings of equal value the one with fewer tokens is taken (unless the
/// work limit was met). Where those are equal too, which one is taken is fixed by the items and their order.
///
/// # Panics
///
/// When the best values of all items add up to more than 2^62.
#[must_use]
pub fn pack<Item: AsRef<[Form]>>(items: &[Item], budget: u32) -> Packing {
    pack_within(items, budget, WORK_LIMIT)
}

/// The most valuable packing of the items of all `sections` into `budget` tokens, as [`pack`] finds it: `choices` are those
/// of the items of the first section, then of the second, and so on. A form without cost is never taken here.
///
/// # Panics
///
/// When the best values of all items add up to more than 2^62.
#[must_use]
pub fn pack_sections<Item: AsRef<[Form]>>(sections: &[Section<Item>], budget: u32) -> Packing {
    sections::pack_within(sections, budget, WORK_LIMIT)
}

fn pack_within<Item: AsRef<[Form]>>(items: &[Item], budget: u32, work_limit: u64) -> Packing {
    let menus = Menus::new(items, 0..=budget);
    assert!(
        menus.most_value() <= MOST_VALUE,
        "the values of the items add up to more than 2^62"
    );
    let (levels, bound) = if menus.most_tokens() <= u64::from(budget) {
        (menus.best_levels(), None)
    } else {
        let relaxed = relax::solve(&menus, budget);
        exact::solve(&menus, &relaxed, budget, work_limit)
    };
    let mut packing = Packing {
        choices: Vec::with_capacity(levels.len()),
        tokens: 0,
        value: 0,
        bound: 0,
    };
    for (item, level) in levels.into_iter().enumerate() {
        let choice = menus.of(item)[level];
        packing.choices.push(choice.form);
        packing.tokens += choice.tokens;
        packing.value += choice.value;
    }
    packing.bound = bound.unwrap_or(packing.value);
    packing
}

#[cfg(test)]
mod tests;

//! The choices worth considering, and the linear relaxation over them.

use std::cmp::{Ordering, Reverse};
use std::ops::RangeInclusive;

use super::Form;

/// A form of an item, or the choice to leave the item out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    pub tokens: u32,
    pub value: u64,
    /// Index of the form in the caller's item; `None` leaves the item out.
    pub form: Option<u32>,
}

/// Every item's choices, dearest last. Within an item tokens and values both strictly rise, and the first choice costs
/// nothing. An index into an item's choices is called a level.
pub(super) struct Menus {
    choices: Vec<Choice>,
    /// Where each item's choices end.
    ends: Vec<usize>,
}

impl Menus {
    /// Looks only at forms that cost what `affordable` allows.
    pub fn new<Item: AsRef<[Form]>>(items: &[Item], affordable: RangeInclusive<u32>) -> Self {
        let mut menus = Self {
            choices: Vec::with_capacity(items.len() * 4),
            ends: Vec::with_capacity(items.len()),
        };
        for item in items {
            let start = menus.choices.len();
            menus.choices.push(Choice {
                tokens: 0,
                value: 0,
                form: None,
            });
            let forms = (0..)
                .zip(item.as_ref())
                .filter(|(_, form)| affordable.contains(&form.tokens));
            menus.choices.extend(forms.map(|(index, form)| Choice {
                tokens: form.tokens,
                value: form.value,
                form: Some(index),
            }));
            menus.choices[start..]
                .sort_unstable_by_key(|choice| (choice.tokens, Reverse(choice.value), choice.form));
            menus.drop_dominated(start);
            menus.ends.push(menus.choices.len());
        }
        menus
    }

    /// Of the choices from `start` on, ordered by tokens, keeps those worth more than every cheaper one.
    fn drop_dominated(&mut self, start: usize) {
        let mut kept = start + 1;
        for next in start + 1..self.choices.len() {
            if self.choices[next].value > self.choices[kept - 1].value {
                self.choices[kept] = self.choices[next];
                kept += 1;
            }
        }
        self.choices.truncate(kept);
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn of(&self, item: usize) -> &[Choice] {
        let start = if item == 0 { 0 } else { self.ends[item - 1] };
        &self.choices[start..self.ends[item]]
    }

    /// The level of each item's best choice.
    pub fn best_levels(&self) -> Vec<usize> {
        (0..self.len())
            .map(|item| self.of(item).len() - 1)
            .collect()
    }

    fn best(&self) -> impl Iterator<Item = &Choice> {
        self.ends.iter().map(|&end| &self.choices[end - 1])
    }

    /// Tokens of all best choices together.
    pub fn most_tokens(&self) -> u64 {
        self.best().map(|choice| u64::from(choice.tokens)).sum()
    }

    /// Value of all best choices together.
    pub fn most_value(&self) -> u128 {
        self.best().map(|choice| u128::from(choice.value)).sum()
    }
}

/// A rate of value per token, compared without rounding. `tokens` is above 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub value: u64,
    pub tokens: u32,
}

impl Rate {
    /// What it takes, and brings, to go from one choice to a dearer one of the same item.
    pub fn between(cheap: &Choice, dear: &Choice) -> Self {
        Self {
            value: dear.value - cheap.value,
            tokens: dear.tokens - cheap.tokens,
        }
    }
}

impl Ord for Rate {
    fn cmp(&self, other: &Self) -> Ordering {
        let this = u128::from(self.value) * u128::from(other.tokens);
        this.cmp(&(u128::from(other.value) * u128::from(self.tokens)))
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rate {}

/// One edge of an item's convex hull: the upgrade to level `to` from the hull's level before it.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub item: usize,
    pub to: usize,
    pub rate: Rate,
}

/// The greedy solution of the linear relaxation.
pub(super) struct Relaxed {
    /// Each item's level after all steps before the first one that does not fit.
    pub levels: Vec<usize>,
    /// Tokens that those levels leave of the budget.
    pub room: u32,
    /// The rate of the first step that does not fit. The relaxation's value is that of `levels` plus `room` at `rate`.
    pub rate: Rate,
    /// `levels` with the later steps that still fit: a packing to start from.
    pub filled: Vec<usize>,
}

/// Takes the steps of all hulls, best rate first. The best choices together must cost more than the budget.
pub(super) fn solve(menus: &Menus, budget: u32) -> Relaxed {
    let mut filled = vec![0; menus.len()];
    let mut room = budget;
    let mut broken: Option<(Vec<usize>, u32, Rate)> = None;
    for step in steps(menus) {
        let choices = menus.of(step.item);
        // After a step that did not fit, a later one of the same item starts lower than its rate says.
        let tokens = choices[step.to].tokens - choices[filled[step.item]].tokens;
        if tokens <= room {
            room -= tokens;
            filled[step.item] = step.to;
        } else if broken.is_none() {
            broken = Some((filled.clone(), room, step.rate));
        }
    }
    let (levels, room, rate) = broken.unwrap_or_else(|| unreachable!("all best choices fit"));
    Relaxed {
        levels,
        room,
        rate,
        filled,
    }
}

/// The steps of all hulls, best rate first.
pub(super) fn steps(menus: &Menus) -> Vec<Step> {
    let mut steps = Vec::with_capacity(menus.choices.len());
    let mut hull = Vec::new();
    for item in 0..menus.len() {
        hull_steps(menus.of(item), item, &mut hull, &mut steps);
    }
    // Rates fall along a hull; equal ones keep the order of items and, within an item, of levels.
    steps.sort_by_key(|step| Reverse(step.rate));
    steps
}

/// Appends the steps of the upper convex hull of one item's choices. `hull` is room to work in.
fn hull_steps(choices: &[Choice], item: usize, hull: &mut Vec<usize>, steps: &mut Vec<Step>) {
    hull.clear();
    for (level, choice) in choices.iter().enumerate() {
        while let [.., before, last] = hull[..] {
            let to_last = Rate::between(&choices[before], &choices[last]);
            if to_last >= Rate::between(&choices[last], choice) {
                break;
            }
            hull.pop();
        }
        hull.push(level);
    }
    steps.extend(hull.windows(2).map(|edge| Step {
        item,
        to: edge[1],
        rate: Rate::between(&choices[edge[0]], &choices[edge[1]]),
    }));
}

//! Packing under headings: a knapsack of knapsacks.
//!
//! A section is told by its curve: for each number of tokens, the best value of its items under its heading and its own
//! limit. With a curve as the forms of one item the rest is an ordinary packing. Curves are long, so only the part is
//! made that an optimum can need:
//!
//! 1. Each section is relaxed as `relax` does, which gives its outline: the heading alone, then each step that fits, and at
//!    the section's limit what fits of the next.
//! 2. The outlines are filled greedily, the heading paid by the first steps together. That gives a packing to start from
//!    and the rate of value per token at which the budget ends. With that rate as Lagrange's multiplier of the budget, the
//!    outlines bound the value of any packing.
//! 3. What a choice loses against the outline of its section, at the section's own rate, is lost to the whole. Choices
//!    that lose more than the bound is above the first packing are dropped: single ones first, then partial fillings of a
//!    section while they are made.
//!
//! The number of partial fillings is limited. At the limit those that lost least are kept, and the bound of step 2 is all
//! that is proved. A packing is never over the budget nor a section over its limit.

use std::cmp::Reverse;

use super::relax::{Menus, Rate, Step, steps};
use super::{Form, MOST_VALUE, Packing, Section};

/// Partial fillings of a section that are kept whatever the work limit is.
const LEAST_WIDTH: u64 = 16;

/// Tokens and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    tokens: u32,
    value: u64,
}

impl Point {
    /// Value above that of as many tokens at a rate, times the rate's tokens.
    fn surplus(self, rate: Rate) -> i128 {
        i128::from(self.value) * i128::from(rate.tokens)
            - i128::from(self.tokens) * i128::from(rate.value)
    }
}

/// Solves as [`super::pack_sections`] says, with about as much work as `work_limit`.
pub(super) fn pack_within<Item: AsRef<[Form]>>(
    sections: &[Section<Item>],
    budget: u32,
    work_limit: u64,
) -> Packing {
    let groups: Vec<Group> = sections
        .iter()
        .map(|section| Group::new(section, budget))
        .collect();
    let most: u128 = groups.iter().map(|group| group.menus.most_value()).sum();
    assert!(
        most <= MOST_VALUE,
        "the values of the items add up to more than 2^62"
    );
    let start = Start::new(&groups, budget);
    let price = i128::from(start.rate.tokens);
    let bound = bound(&groups, start.rate, budget);
    let slack = bound - i128::from(start.value) * price;
    let plans: Vec<Plan<'_>> = groups
        .iter()
        .map(|group| Plan::new(group, start.rate, slack))
        .collect();
    let moves: u64 = plans.iter().map(Plan::moves).sum();
    let width = (work_limit / moves.max(1)).max(LEAST_WIDTH) as usize;
    let curves: Vec<Curve> = plans.iter().map(|plan| plan.curve(width)).collect();
    let forms: Vec<&[Form]> = curves.iter().map(|curve| curve.forms.as_slice()).collect();
    let filled = super::pack_within(&forms, budget, work_limit);

    let is_whole = curves.iter().all(|curve| curve.is_whole);
    let mut packing = Packing {
        choices: Vec::new(),
        tokens: 0,
        value: 0,
        bound: if is_whole {
            filled.bound
        } else {
            (bound / price) as u64
        },
    };
    for (at, group) in groups.iter().enumerate() {
        // The first packing is among the fillings, unless the limit was met.
        let levels = if filled.value < start.value {
            start.levels[at].clone()
        } else {
            plans[at].levels(&curves[at], filled.choices[at])
        };
        let mut tokens = 0;
        for (item, level) in levels.into_iter().enumerate() {
            let choice = group.menus.of(item)[level];
            packing.choices.push(choice.form);
            tokens += choice.tokens;
            packing.value += choice.value;
        }
        packing.tokens += if tokens > 0 {
            group.heading + tokens
        } else {
            0
        };
    }
    packing
}

/// No packing is worth more, times the rate's tokens: the relaxation with `rate` as the price of a token of the budget.
fn bound(groups: &[Group], rate: Rate, budget: u32) -> i128 {
    let surplus: i128 = groups.iter().map(|group| group.most_surplus(rate)).sum();
    surplus + i128::from(budget) * i128::from(rate.value)
}

/// A section with its relaxation.
struct Group {
    menus: Menus,
    heading: u32,
    /// Tokens that its items may take.
    room: u32,
    /// Of the items' hulls, best rate first.
    steps: Vec<Step>,
    /// The heading alone, then after each step. The last one may be taken in part, its value rounded up.
    outline: Vec<Point>,
    /// The rate of a step that was taken in part.
    limit: Option<Rate>,
}

impl Group {
    fn new<Item: AsRef<[Form]>>(section: &Section<Item>, budget: u32) -> Self {
        let room = section.most.min(budget).saturating_sub(section.heading);
        let menus = Menus::new(&section.items, 1..=room);
        let steps = steps(&menus);
        let mut point = Point {
            tokens: section.heading,
            value: 0,
        };
        let mut outline = vec![point];
        let mut limit = None;
        let mut left = room;
        for Step { rate, .. } in &steps {
            let tokens = rate.tokens.min(left);
            let value = u128::from(rate.value) * u128::from(tokens);
            point.tokens += tokens;
            point.value += value.div_ceil(u128::from(rate.tokens)) as u64;
            outline.push(point);
            left -= tokens;
            if tokens < rate.tokens {
                limit = Some(*rate);
                break;
            }
        }
        Self {
            menus,
            heading: section.heading,
            room,
            steps,
            outline,
            limit,
        }
    }

    /// The greatest surplus of the section at `rate`: that of its outline, or of nothing at all.
    fn most_surplus(&self, rate: Rate) -> i128 {
        self.outline_surplus(rate).max(0)
    }

    fn outline_surplus(&self, rate: Rate) -> i128 {
        let surplus = self.outline.iter().map(|point| point.surplus(rate));
        surplus.max().unwrap_or(0)
    }

    /// The steps as a greedy packing takes them: first those that pay the heading best together, then one by one.
    fn units(&self, group: usize) -> Vec<Unit<'_>> {
        let end = self.outline.len() - 1;
        let rate = |at: usize| Rate {
            value: self.outline[at].value,
            tokens: self.outline[at].tokens,
        };
        let Some(first) = (1..=end).max_by_key(|&at| rate(at)) else {
            return Vec::new();
        };
        let mut units = vec![Unit {
            group,
            rate: rate(first),
            tokens: self.outline[first].tokens,
            steps: &self.steps[..first],
        }];
        units.extend((first..end).map(|at| Unit {
            group,
            rate: self.steps[at].rate,
            tokens: self.outline[at + 1].tokens - self.outline[at].tokens,
            steps: &self.steps[at..=at],
        }));
        units
    }
}

/// Steps of the outline that belong together.
struct Unit<'g> {
    group: usize,
    rate: Rate,
    tokens: u32,
    steps: &'g [Step],
}

/// A packing to start from.
struct Start {
    /// The levels of the items of each group.
    levels: Vec<Vec<usize>>,
    value: u64,
    /// The rate of the first unit that did not fit; zero when all did.
    rate: Rate,
}

impl Start {
    /// Takes the units of all outlines, best rate first, and of each the steps that fit.
    fn new(groups: &[Group], budget: u32) -> Self {
        let mut units: Vec<Unit<'_>> = (0..groups.len())
            .flat_map(|at| groups[at].units(at))
            .collect();
        units.sort_by_key(|unit| Reverse(unit.rate));
        let mut left = budget;
        let broken = units.iter().find(|unit| {
            let fits = unit.tokens <= left;
            left = left.saturating_sub(unit.tokens);
            !fits
        });
        let rate = broken.map_or(
            Rate {
                value: 0,
                tokens: 1,
            },
            |unit| unit.rate,
        );

        let mut levels: Vec<Vec<usize>> = groups
            .iter()
            .map(|group| vec![0; group.menus.len()])
            .collect();
        let mut used = vec![0; groups.len()];
        let mut room = budget;
        let mut value = 0;
        for unit in &units {
            let (group, used) = (&groups[unit.group], &mut used[unit.group]);
            for step in unit.steps {
                let level = &mut levels[unit.group][step.item];
                let choices = group.menus.of(step.item);
                let (from, to) = (choices[*level], choices[step.to]);
                let tokens = to.tokens - from.tokens;
                let heading = if *used == 0 { group.heading } else { 0 };
                let fits = u64::from(heading) + u64::from(tokens) <= u64::from(room);
                if fits && tokens <= group.room - *used {
                    room -= heading + tokens;
                    *used += tokens;
                    value += to.value - from.value;
                    *level = step.to;
                }
            }
        }
        Self {
            levels,
            value,
            rate,
        }
    }
}

/// An item with more than one level still possible.
struct Open {
    item: usize,
    /// Levels with what they cost and are worth, cheapest first.
    moves: Vec<(usize, Point)>,
    /// The greatest surplus of them.
    most: i128,
}

/// The levels of a section that can be part of a packing as good as the first one.
struct Plan<'g> {
    group: &'g Group,
    /// The budget's rate.
    price: Rate,
    /// The least surplus of the section, at that rate.
    least: i128,
    /// The section's own rate: that at its limit, where that is greater.
    rate: Rate,
    /// What may be lost by the levels, at that rate; less than nothing when the section stays empty.
    may_lose: i128,
    /// The level of each item that is not open.
    fixed: Vec<usize>,
    open: Vec<Open>,
}

impl<'g> Plan<'g> {
    /// The bound may be missed by `slack`, times the rate's tokens.
    fn new(group: &'g Group, price: Rate, slack: i128) -> Self {
        let least = group.most_surplus(price) - slack;
        let rate = group.limit.map_or(price, |limit| limit.max(price));
        let from = i128::from(price.tokens);
        let may_lose = (group.outline_surplus(price) - least) * i128::from(rate.tokens);
        let mut plan = Self {
            group,
            price,
            least,
            rate,
            // Rounded up, so that nothing is lost that should be kept.
            may_lose: (may_lose + from - 1).div_euclid(from),
            fixed: vec![0; group.menus.len()],
            open: Vec::new(),
        };
        for item in 0..group.menus.len() {
            plan.add(item);
        }
        plan
    }

    fn add(&mut self, item: usize) {
        let moves = self.group.menus.of(item).iter().map(|choice| Point {
            tokens: choice.tokens,
            value: choice.value,
        });
        let Some(most) = moves.clone().map(|to| to.surplus(self.rate)).max() else {
            return;
        };
        let moves: Vec<(usize, Point)> = moves
            .enumerate()
            .filter(|(_, to)| most - to.surplus(self.rate) <= self.may_lose)
            .collect();
        match moves[..] {
            [] => {}
            [(level, _)] => self.fixed[item] = level,
            _ => self.open.push(Open { item, moves, most }),
        }
    }

    fn moves(&self) -> u64 {
        self.open.iter().map(|open| open.moves.len() as u64).sum()
    }

    /// The fillings that lose little enough, at most `width` at a time while they are made.
    fn curve(&self, width: usize) -> Curve {
        let mut curve = Curve {
            forms: Vec::new(),
            ends: Vec::new(),
            trails: Vec::new(),
            is_whole: true,
        };
        if self.may_lose < 0 {
            return curve;
        }
        let base = (0..).zip(&self.fixed).fold(
            Point {
                tokens: 0,
                value: 0,
            },
            |sum, (item, level)| {
                let choice = self.group.menus.of(item)[*level];
                Point {
                    tokens: sum.tokens.saturating_add(choice.tokens),
                    value: sum.value + choice.value,
                }
            },
        );
        let mut to_come: u64 = self.open.iter().map(Open::least_tokens).sum();
        let mut least = base.surplus(self.rate) - self.may_lose;
        let mut partial = vec![State {
            point: base,
            trail: None,
        }];
        let mut next = Vec::new();
        for open in &self.open {
            to_come -= open.least_tokens();
            least += open.most;
            let keeps = |point: Point| {
                u64::from(point.tokens) + to_come <= u64::from(self.group.room)
                    && point.surplus(self.rate) >= least
            };
            curve.visit(&partial, open, keeps, &mut next);
            if next.len() > width {
                curve.is_whole = false;
                self.keep_best(&mut next, width);
            }
            std::mem::swap(&mut partial, &mut next);
            next.clear();
        }
        for State { point, trail } in partial {
            if point.value == 0 || point.tokens > self.group.room {
                continue;
            }
            let point = Point {
                tokens: self.group.heading + point.tokens,
                ..point
            };
            if point.surplus(self.price) >= self.least {
                curve.forms.push(Form {
                    tokens: point.tokens,
                    value: point.value,
                });
                curve.ends.push(trail);
            }
        }
        curve
    }

    /// Keeps the `width` states of the greatest surplus, in their order.
    fn keep_best(&self, states: &mut Vec<State>, width: usize) {
        let mut surplus: Vec<i128> = states
            .iter()
            .map(|state| state.point.surplus(self.rate))
            .collect();
        let place = surplus.len() - width;
        let (_, least, _) = surplus.select_nth_unstable(place);
        let least = *least;
        states.retain(|state| state.point.surplus(self.rate) >= least);
        states.truncate(width);
    }

    /// The levels of one form of the curve, or of an empty section.
    fn levels(&self, curve: &Curve, form: Option<u32>) -> Vec<usize> {
        let Some(form) = form else {
            return vec![0; self.fixed.len()];
        };
        let mut levels = self.fixed.clone();
        let mut trail = curve.ends[form as usize];
        while let Some(at) = trail {
            let made = &curve.trails[at as usize];
            levels[made.item as usize] = made.level as usize;
            trail = made.before;
        }
        levels
    }
}

impl Open {
    fn least_tokens(&self) -> u64 {
        self.moves.first().map_or(0, |(_, to)| u64::from(to.tokens))
    }
}

/// A partial filling, and the last of the moves that made it.
#[derive(Debug, Clone, Copy)]
struct State {
    point: Point,
    trail: Option<u32>,
}

/// A level taken, after those of `before`.
struct Trail {
    before: Option<u32>,
    item: u32,
    level: u32,
}

/// The best ways to fill a section.
struct Curve {
    /// With the heading, cheapest first; each is worth more than those before.
    forms: Vec<Form>,
    /// The last move of each form.
    ends: Vec<Option<u32>>,
    trails: Vec<Trail>,
    /// False when the work limit was met.
    is_whole: bool,
}

impl Curve {
    /// Makes every move from every state, in the order of tokens, and keeps what no cheaper one is worth as much as.
    ///
    /// States are ordered by rising tokens and rising value. Each move keeps that order, so the moves' results are merged.
    fn visit(
        &mut self,
        partial: &[State],
        open: &Open,
        keeps: impl Fn(Point) -> bool,
        next: &mut Vec<State>,
    ) {
        let mut heads = vec![0; open.moves.len()];
        let mut most: Option<u64> = None;
        loop {
            let mut pick: Option<(usize, u64, u64)> = None;
            for (by, ((_, to), &head)) in open.moves.iter().zip(&heads).enumerate() {
                let Some(State { point, .. }) = partial.get(head) else {
                    continue;
                };
                let tokens = u64::from(point.tokens) + u64::from(to.tokens);
                let value = point.value + to.value;
                if pick.is_none_or(|(_, least, most)| {
                    (tokens, Reverse(value)) < (least, Reverse(most))
                }) {
                    pick = Some((by, tokens, value));
                }
            }
            let Some((by, tokens, value)) = pick else {
                return;
            };
            let before = partial[heads[by]].trail;
            heads[by] += 1;
            if most.is_some_and(|most| value <= most) {
                continue;
            }
            most = Some(value);
            // What follows costs more still.
            let Ok(tokens) = u32::try_from(tokens) else {
                return;
            };
            let point = Point { tokens, value };
            if keeps(point) {
                self.trails.push(Trail {
                    before,
                    item: open.item as u32,
                    level: open.moves[by].0 as u32,
                });
                next.push(State {
                    point,
                    trail: Some(self.trails.len() as u32 - 1),
                });
            }
        }
    }
}

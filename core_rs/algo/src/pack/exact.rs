//! Dynamic programming over the items that the relaxation leaves open.
//!
//! Every partial packing is told as its difference to the relaxation's levels, the base: the room it leaves and the
//! value it gains. Items not yet visited stand at the base. A partial packing may be over the budget for a while, as
//! long as the items to come can give back the tokens.

use std::cmp::Reverse;

use super::relax::{Choice, Menus, Rate, Relaxed};

/// Room left and value gained against the base.
#[derive(Debug, Clone, Copy)]
struct Point {
    room: i64,
    gain: i64,
}

impl Point {
    fn after(self, change: Point) -> Point {
        Point {
            room: self.room + change.room,
            gain: self.gain + change.gain,
        }
    }

    /// More gain, or as much with more room.
    fn beats(self, other: Point) -> bool {
        (self.gain, self.room) > (other.gain, other.room)
    }
}

/// A change of one item away from the base, or (all zero) its staying there.
#[derive(Debug, Clone, Copy)]
struct Move {
    change: Point,
    level: usize,
}

/// An item whose level is open, with the moves still possible, cheapest first.
struct Open {
    item: usize,
    moves: Vec<Move>,
}

/// The best rates at which the items to come can turn room into gain, and must turn gain into room.
#[derive(Clone, Copy)]
struct Rates {
    /// None when no item to come can grow.
    spend: Option<Rate>,
    /// None when no item to come can shrink.
    free: Option<Rate>,
}

impl Rates {
    /// The most that a point can gain in the end, the budget held; None when it cannot be held.
    fn most_gain(&self, point: Point) -> Option<i128> {
        let gain = i128::from(point.gain);
        let at = |rate: Rate| {
            let change = i128::from(point.room) * i128::from(rate.value);
            gain + change.div_euclid(i128::from(rate.tokens))
        };
        if point.room < 0 {
            self.free.map(at)
        } else {
            Some(self.spend.map_or(gain, at))
        }
    }

    /// Whether a point can still end at `goal` or above, the budget held.
    fn reach(&self, point: Point, goal: i64) -> bool {
        let rate = if point.room < 0 {
            self.free
        } else {
            self.spend
        };
        match rate {
            Some(rate) => {
                let missing = i128::from(goal - point.gain) * i128::from(rate.tokens);
                i128::from(point.room) * i128::from(rate.value) >= missing
            }
            None => point.room >= 0 && point.gain >= goal,
        }
    }

    /// Whether a point can still end better than `best`: with more gain, or with as much and more room.
    fn can_beat(&self, point: Point, best: Point) -> bool {
        let with_more_room = Point {
            room: point.room - best.room - 1,
            gain: point.gain,
        };
        self.reach(point, best.gain + 1) || self.reach(with_more_room, best.gain)
    }
}

/// A partial packing, and the last of the moves that made it.
#[derive(Debug, Clone, Copy)]
struct State {
    point: Point,
    trail: u32,
}

/// A move away from the base, after those of `before`.
#[derive(Clone, Copy)]
struct Trail {
    before: u32,
    item: u32,
    level: u32,
}

/// The trail of the base itself.
const BASE: u32 = 0;

/// The levels of the best packing found, and, when the work limit was met, a bound on the value of any.
pub(super) fn solve(
    menus: &Menus,
    relaxed: &Relaxed,
    budget: u32,
    work_limit: u64,
) -> (Vec<usize>, Option<u64>) {
    let base = Point {
        room: i64::from(relaxed.room),
        gain: 0,
    };
    let filled = (0..menus.len()).fold(base, |point, item| {
        let choices = menus.of(item);
        let (from, to) = (relaxed.levels[item], relaxed.filled[item]);
        point.after(change(&choices[from], &choices[to]))
    });
    let stages = stages(open_items(menus, relaxed, base, filled));
    let mut search = Search::new(filled);
    let unfinished = search.run(&stages, base, work_limit);
    debug_assert!((0..=i64::from(budget)).contains(&search.best.room));

    let levels = match search.best_trail {
        Some(trail) => search.follow(trail, relaxed.levels.clone()),
        None => relaxed.filled.clone(),
    };
    let bound = unfinished.map(|gain| {
        let base_value: u64 = (0..menus.len())
            .map(|item| menus.of(item)[relaxed.levels[item]].value)
            .sum();
        // The relaxation is a bound too. It is less than the value of the step that did not fit, so it fits an u64.
        let relaxed_gain = u128::from(relaxed.room) * u128::from(relaxed.rate.value)
            / u128::from(relaxed.rate.tokens);
        base_value + gain.unsigned_abs().min(relaxed_gain) as u64
    });
    (levels, bound)
}

fn change(from: &Choice, to: &Choice) -> Point {
    Point {
        room: i64::from(from.tokens) - i64::from(to.tokens),
        gain: to.value as i64 - from.value as i64,
    }
}

/// The items that have a move which, at the relaxation's rate, could be part of a better packing than `best`.
fn open_items(menus: &Menus, relaxed: &Relaxed, base: Point, best: Point) -> Vec<Open> {
    let rates = Rates {
        spend: Some(relaxed.rate),
        free: Some(relaxed.rate),
    };
    (0..menus.len())
        .filter_map(|item| {
            let choices = menus.of(item);
            let stays = relaxed.levels[item];
            let moves: Vec<Move> = choices
                .iter()
                .enumerate()
                .map(|(level, choice)| Move {
                    change: change(&choices[stays], choice),
                    level,
                })
                .filter(|to| to.level == stays || rates.can_beat(base.after(to.change), best))
                .collect();
            (moves.len() > 1).then_some(Open { item, moves })
        })
        .collect()
}

/// A visit to an open item.
struct Stage {
    open: Open,
    /// The rates of the items that are still to come when this one is visited, itself included.
    before: Rates,
    /// The rates of those that come after it.
    after: Rates,
}

/// Orders the visits. The item that can grow at the best rate and the one that can shrink at the best rate take turns,
/// so that the rates of what is left part as fast as they can, and prune more.
fn stages(open: Vec<Open>) -> Vec<Stage> {
    let (grow, shrink): (Vec<_>, Vec<_>) = open.iter().map(Open::rates).unzip();
    let by = |rates: &[Option<Rate>]| {
        let mut order: Vec<usize> = (0..rates.len()).filter(|&at| rates[at].is_some()).collect();
        order.sort_by_key(|&at| rates[at]);
        order
    };
    let mut by_growth = by(&grow);
    by_growth.reverse();
    let by_shrinking = by(&shrink);

    let mut waiting: Vec<Option<Open>> = open.into_iter().map(Some).collect();
    let mut visits = Vec::with_capacity(waiting.len());
    let (mut growing, mut shrinking) = (by_growth.into_iter(), by_shrinking.into_iter());
    while visits.len() < waiting.len() {
        for order in [&mut growing, &mut shrinking] {
            let next = order.find_map(|at| Some((at, waiting[at].take()?)));
            visits.extend(next);
        }
    }

    let mut stages = Vec::with_capacity(visits.len());
    let mut after = Rates {
        spend: None,
        free: None,
    };
    for (at, open) in visits.into_iter().rev() {
        let before = Rates {
            spend: after.spend.max(grow[at]),
            free: match (after.free, shrink[at]) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        };
        stages.push(Stage {
            open,
            before,
            after,
        });
        after = before;
    }
    stages.reverse();
    stages
}

impl Open {
    /// The best rate at which this item can grow, and at which it can shrink.
    fn rates(&self) -> (Option<Rate>, Option<Rate>) {
        let rate = |to: &Move| Rate {
            value: to.change.gain.unsigned_abs(),
            tokens: to.change.room.unsigned_abs() as u32,
        };
        let growing = self.moves.iter().filter(|to| to.change.room < 0);
        let shrinking = self.moves.iter().filter(|to| to.change.room > 0);
        (growing.map(rate).max(), shrinking.map(rate).min())
    }
}

/// The best packing so far, and how the partial packings came about.
struct Search {
    best: Point,
    /// None while the best is the one to start from.
    best_trail: Option<u32>,
    trails: Vec<Trail>,
}

impl Search {
    fn new(best: Point) -> Self {
        Self {
            best,
            best_trail: None,
            trails: vec![Trail {
                before: BASE,
                item: 0,
                level: 0,
            }],
        }
    }

    /// Visits all stages. When that would take more work than the limit, stops before the stage that would pass it,
    /// with a bound on the gain of any packing.
    fn run(&mut self, stages: &[Stage], base: Point, work_limit: u64) -> Option<i128> {
        let mut work = 0;
        let mut partial = vec![State {
            point: base,
            trail: BASE,
        }];
        let mut next = Vec::new();
        for stage in stages {
            work += partial.len() as u64 * stage.open.moves.len() as u64;
            if work > work_limit {
                let open = partial
                    .iter()
                    .filter_map(|state| stage.before.most_gain(state.point));
                return Some(open.fold(i128::from(self.best.gain), i128::max));
            }
            self.visit(&partial, stage, &mut next);
            std::mem::swap(&mut partial, &mut next);
            next.clear();
        }
        None
    }

    /// Makes every move from every state, and keeps what is not dominated and can still beat the best, by falling room
    /// and rising gain.
    fn visit(&mut self, partial: &[State], stage: &Stage, next: &mut Vec<State>) {
        let mut made: Vec<(Point, usize, u32)> = Vec::with_capacity(partial.len());
        for (by, to) in stage.open.moves.iter().enumerate() {
            for state in partial {
                let point = state.point.after(to.change);
                if point.room >= 0 && point.beats(self.best) {
                    self.best = point;
                    self.best_trail = Some(self.extend(state.trail, stage.open.item, to));
                }
                if stage.after.can_beat(point, self.best) {
                    made.push((point, by, state.trail));
                }
            }
        }
        // Stable: of equal points the one of the cheapest move is kept.
        made.sort_by_key(|(point, ..)| (Reverse(point.room), Reverse(point.gain)));
        let mut most_gain = i64::MIN;
        for (point, by, before) in made {
            if point.gain > most_gain {
                most_gain = point.gain;
                if stage.after.can_beat(point, self.best) {
                    let trail = self.extend(before, stage.open.item, &stage.open.moves[by]);
                    next.push(State { point, trail });
                }
            }
        }
    }

    fn extend(&mut self, before: u32, item: usize, to: &Move) -> u32 {
        if to.change.room == 0 {
            return before;
        }
        self.trails.push(Trail {
            before,
            item: item as u32,
            level: to.level as u32,
        });
        (self.trails.len() - 1) as u32
    }

    /// Makes the moves of a trail.
    fn follow(&self, mut trail: u32, mut levels: Vec<usize>) -> Vec<usize> {
        while trail != BASE {
            let Trail {
                before,
                item,
                level,
            } = self.trails[trail as usize];
            levels[item as usize] = level as usize;
            trail = before;
        }
        levels
    }
}

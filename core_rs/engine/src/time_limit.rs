//! The time that a search may take. Its stages look at the clock and leave out what comes too late; nothing here waits.

use std::time::{Duration, Instant};

use crate::Deadline;
use crate::clock::Clock;

/// An instant, and the clock to compare it with.
#[derive(Clone, Copy)]
pub(crate) struct TimeLimit<'a> {
    clock: &'a dyn Clock,
    until: Deadline,
}

impl<'a> TimeLimit<'a> {
    /// The deadline of the call or the end of its budget, whichever is first.
    pub(crate) fn new(clock: &'a dyn Clock, deadline: Deadline, budget: Option<Duration>) -> Self {
        let end = budget.and_then(|budget| clock.instant().checked_add(budget));
        let until = match (deadline, end) {
            (Some(deadline), Some(end)) => Some(deadline.min(end)),
            (deadline, end) => deadline.or(end),
        };
        Self { clock, until }
    }

    /// Whether the time is over. Costs nothing when there is no limit.
    #[inline]
    pub(crate) fn passed(self) -> bool {
        self.until
            .is_some_and(|until| until <= self.clock.instant())
    }

    /// Half of the time that is left, so that one of two stages cannot take the other's.
    pub(crate) fn half(self) -> Self {
        let half = |until: Instant| {
            let now = self.clock.instant();
            now + until.saturating_duration_since(now) / 2
        };
        Self {
            until: self.until.map(half),
            ..self
        }
    }
}

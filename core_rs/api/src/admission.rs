//! Admission: so many calls at a time, and a refusal with a time to come back for the rest.
//!
//! A sidecar that queues without bound answers everybody late; one that refuses keeps its promise to those it admits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::Failure;

/// When a refused caller should come back: a few times as long as a slow call takes.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// Counts the calls in hand.
#[derive(Debug)]
pub(crate) struct Admission {
    most: usize,
    in_flight: AtomicUsize,
    refusing: AtomicBool,
}

/// A call in hand, until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted<'a>(&'a Admission);

impl Admission {
    /// Admits at most `most` calls at a time.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            in_flight: AtomicUsize::new(0),
            refusing: AtomicBool::new(false),
        }
    }

    /// Admits a call or says why not.
    pub(crate) fn enter(&self) -> Result<Admitted<'_>, Failure> {
        let before = self.in_flight.fetch_add(1, Ordering::SeqCst);
        let admitted = Admitted(self);
        // Looked at after the call was counted: once `refuse` has returned and nothing is in flight, nothing will be.
        if self.refusing.load(Ordering::SeqCst) {
            return Err(Failure::not_serving());
        }
        if before >= self.most {
            return Err(Failure::overloaded(RETRY_AFTER));
        }
        Ok(admitted)
    }

    /// Refuses every later call.
    pub(crate) fn refuse(&self) {
        self.refusing.store(true, Ordering::SeqCst);
    }

    /// Calls in hand.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn reason(entered: Result<Admitted<'_>, Failure>) -> &'static str {
        entered
            .map_err(|failure| failure.reason_name())
            .unwrap_err()
    }

    #[test]
    fn admits_so_many_at_a_time() {
        let admission = Admission::new(2);
        let first = admission.enter().unwrap();
        let second = admission.enter().unwrap();
        let refused = admission.enter();
        assert_eq!(refused.as_ref().unwrap_err().retry_after, Some(RETRY_AFTER));
        assert_eq!(reason(refused), "OVERLOADED");
        assert_eq!(admission.in_flight(), 2);
        drop(first);
        let third = admission.enter().unwrap();
        drop((second, third));
        assert_eq!(admission.in_flight(), 0);
    }

    #[test]
    fn a_panic_gives_its_place_back() {
        let admission = Admission::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _admitted = admission.enter().unwrap();
            panic!("a bug");
        }));
        assert!(panicked.is_err());
        assert_eq!(admission.in_flight(), 0);
        assert!(admission.enter().is_ok());
    }

    #[test]
    fn refuses_for_good_and_lets_calls_in_hand_go_on() {
        let admission = Admission::new(2);
        let in_hand = admission.enter().unwrap();
        admission.refuse();
        assert_eq!(reason(admission.enter()), "NOT_SERVING");
        assert_eq!(admission.in_flight(), 1);
        drop(in_hand);
        assert_eq!(admission.in_flight(), 0);
        assert_eq!(reason(admission.enter()), "NOT_SERVING");
    }
}

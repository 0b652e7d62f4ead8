//! The one clock of the engine. Tests replace it.

use std::time::Instant;

use recalld_store::ids::Micros;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Micros;

    /// Now, on a clock that never goes back: what the time for a call is measured by.
    fn instant(&self) -> Instant {
        Instant::now()
    }
}

/// The system's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one clock")]
    fn now(&self) -> Micros {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // A clock before 1970 is a broken one; 1970 is as good as any other answer.
        Micros(since.map_or(0, |d| d.as_micros() as i64))
    }
}

//! Waiting for a moment to within some tens of microseconds.
//!
//! tokio's own timer counts milliseconds, which would add one to every latency that counts from a planned moment, and
//! a loop that looks at the clock would take a core from the server. A timer of the kernel does neither.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::task::yield_now;

pub(crate) struct Pacer {
    timer: AsyncFd<OwnedFd>,
}

impl Pacer {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(
            deprecated,
            reason = "its unsafe successor is for types that could lie about their descriptor; OwnedFd cannot"
        )]
        let timer = AsyncFd::new(timer)?;
        Ok(Self { timer })
    }

    /// Waits for an instant. One that has passed lets other work go on once, and that is all.
    pub(crate) async fn until(&self, instant: Instant) -> io::Result<()> {
        loop {
            let left = instant.saturating_duration_since(Instant::now());
            if left.is_zero() {
                yield_now().await;
                return Ok(());
            }
            let once = Itimerspec {
                it_interval: Timespec::default(),
                it_value: Timespec {
                    tv_sec: left.as_secs() as i64,
                    tv_nsec: left.subsec_nanos().into(),
                },
            };
            // Setting it also takes back what it has said before.
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
            self.timer.readable().await?.clear_ready();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn no_moment_comes_early_and_a_past_one_at_once() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let pacer = Pacer::new().unwrap();
            let start = Instant::now();
            for step in 1..=20 {
                let moment = start + Duration::from_micros(300) * step;
                pacer.until(moment).await.unwrap();
                assert!(Instant::now() >= moment);
            }
            pacer.until(start).await.unwrap();
        });
    }
}

//! Who waits for whom when the processor is short: searches come first, then writes, then builds of indexes. On an idle
//! machine this makes no difference.

/// Niceness of threads that write: about a third of the processor beside a thread that searches.
pub const WRITE: i32 = 5;
/// Niceness of the thread that builds indexes: about a tenth.
pub(crate) const BUILD: i32 = 10;

/// Lowers the priority of this thread; on Linux each has its own. It cannot be raised again.
pub fn give_way(niceness: i32) {
    let thread = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(thread), niceness) {
        // Then this work is as important as a search.
        tracing::warn!(%error, "a thread cannot lower its priority");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_thread_gives_way() {
        let niceness = |thread| rustix::process::getpriority_process(Some(thread));
        let own = rustix::thread::gettid();
        let before = niceness(own);
        let (during, other) = std::thread::spawn(move || {
            give_way(BUILD);
            (niceness(rustix::thread::gettid()), niceness(own))
        })
        .join()
        .unwrap();
        assert_eq!(during, Ok(BUILD));
        assert_eq!((other, niceness(own)), (before, before));
    }
}

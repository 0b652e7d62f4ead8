//! Threads in which handlers run.
//!
//! A call goes to the thread that became free last, whose caches and buffers are warm. (A pool that takes turns, as
//! tokio's does, gives each call of a lone caller to another thread: a search then costs almost twice the processor
//! time.) Threads are made when they are needed and end when they were not for a while. A panic ends its call only.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

/// How long a thread waits for a call before it ends.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// A pool of threads. Those that are busy when it is dropped finish their calls.
pub(crate) struct Pool(Arc<Shared>);

struct Shared {
    most: usize,
    /// What each thread does first.
    begin: fn(),
    /// How long a thread waits for a call before it ends.
    patience: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Threads without a job, the last one first to get one.
    idle: Vec<Arc<Seat>>,
    /// Jobs that came when all threads were busy.
    waiting: VecDeque<Job>,
    threads: usize,
    is_closed: bool,
}

/// Where a thread waits.
#[derive(Default)]
struct Seat {
    order: Mutex<Option<Order>>,
    given: Condvar,
}

enum Order {
    Run(Job),
    End,
}

impl Pool {
    /// A pool of so many threads at most, each of which calls `begin` first.
    pub(crate) fn new(most: usize, begin: fn()) -> Self {
        Self::with_patience(most, begin, IDLE)
    }

    fn with_patience(most: usize, begin: fn(), patience: Duration) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Shared {
            most,
            begin,
            patience,
            state,
        }))
    }

    /// Does work in a thread of the pool. None when it panicked. When this is dropped the work is done all the same.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.give(Box::new(move || {
            // Nobody may be waiting any more.
            let _ = answer.send(work());
        }));
        answered.await.ok()
    }

    fn give(&self, job: Job) {
        let mut state = self.0.state.lock();
        if let Some(seat) = state.idle.pop() {
            drop(state);
            seat.give(Order::Run(job));
            return;
        }
        state.waiting.push_back(job);
        if state.threads < self.0.most {
            let shared = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("recalld-call".to_owned());
            match thread.spawn(move || shared.work()) {
                Ok(_) => state.threads += 1,
                // Another thread does it, if there is one.
                Err(error) => {
                    tracing::error!(%error, "a thread could not be made");
                    if state.threads == 0 {
                        state.waiting.clear();
                    }
                }
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_closed = true;
        for seat in state.idle.drain(..) {
            seat.give(Order::End);
        }
    }
}

impl Seat {
    fn give(&self, order: Order) {
        *self.order.lock() = Some(order);
        self.given.notify_one();
    }
}

impl Shared {
    /// The life of a thread.
    fn work(&self) {
        (self.begin)();
        let seat = Arc::new(Seat::default());
        while let Some(job) = self.next(&seat) {
            // Its caller is told by the end of the channel.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }

    /// Waits for a job. None when the thread must end, and is not counted any more: whoever finds no idle thread
    /// then makes a new one, and does not wait for one that is about to end.
    fn next(&self, seat: &Arc<Seat>) -> Option<Job> {
        {
            let mut state = self.state.lock();
            if let Some(job) = state.waiting.pop_front() {
                return Some(job);
            }
            if state.is_closed {
                state.threads -= 1;
                return None;
            }
            state.idle.push(Arc::clone(seat));
        }
        let mut order = seat.order.lock();
        loop {
            match order.take() {
                Some(Order::Run(job)) => return Some(job),
                Some(Order::End) => {
                    self.state.lock().threads -= 1;
                    return None;
                }
                None => {}
            }
            if !seat.given.wait_for(&mut order, self.patience).timed_out() {
                continue;
            }
            drop(order);
            let mut state = self.state.lock();
            let place = state.idle.iter().position(|idle| Arc::ptr_eq(idle, seat));
            if let Some(place) = place {
                state.idle.remove(place);
                state.threads -= 1;
                return None;
            }
            // Somebody took the seat to give it an order.
            drop(state);
            order = seat.order.lock();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().build().unwrap()
    }

    #[test]
    fn a_lone_caller_stays_with_one_thread() {
        let pool = Pool::new(8, || ());
        runtime().block_on(async {
            // Two threads are there, and one of them became free last.
            let both = Arc::new(Barrier::new(2));
            let (first, second) = (Arc::clone(&both), both);
            tokio::join!(
                pool.run(move || first.wait()),
                pool.run(move || second.wait())
            );
            let mut used = HashSet::new();
            for _ in 0..20 {
                // It answers before it is free again.
                while pool.0.state.lock().idle.len() < 2 {
                    tokio::task::yield_now().await;
                }
                used.insert(pool.run(|| thread::current().id()).await.unwrap());
            }
            assert_eq!(used.len(), 1);
        });
    }

    #[test]
    fn work_that_comes_as_the_last_thread_ends_is_done() {
        let pool = Pool::with_patience(1, || (), Duration::ZERO);
        let (say_done, done) = mpsc::channel();
        for number in 0..60_000 {
            let say_done = say_done.clone();
            pool.give(Box::new(move || say_done.send(number).unwrap()));
            // Nobody else would wake it.
            assert_eq!(done.recv_timeout(Duration::from_secs(60)), Ok(number));
            // The next one comes at another instant of the thread's end.
            for _ in 0..number % 200 {
                std::hint::spin_loop();
            }
        }
    }

    #[test]
    fn a_panic_ends_its_call_only() {
        let pool = Pool::new(1, || ());
        runtime().block_on(async {
            assert_eq!(pool.run(|| panic!("a bug")).await, None::<()>);
            assert_eq!(pool.run(|| 1).await, Some(1));
        });
        assert_eq!(pool.0.state.lock().threads, 1);
    }

    #[test]
    fn more_work_than_threads_is_done_in_order() {
        let pool = Pool::new(1, || ());
        let (sender, receiver) = mpsc::channel();
        runtime().block_on(async {
            let mut all = tokio::task::JoinSet::new();
            let pool = Arc::new(pool);
            for number in 0..100 {
                let (pool, sender) = (Arc::clone(&pool), sender.clone());
                all.spawn(async move { pool.run(move || sender.send(number)).await });
            }
            while let Some(done) = all.join_next().await {
                done.unwrap().unwrap().unwrap();
            }
        });
        drop(sender);
        let mut done: Vec<i32> = receiver.iter().collect();
        done.sort_unstable();
        assert_eq!(done, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn idle_threads_end_with_the_pool_and_busy_ones_finish() {
        let pool = Pool::new(2, || ());
        let state = Arc::clone(&pool.0);
        let (release, released) = mpsc::channel::<()>();
        let (say_done, done) = mpsc::channel();
        pool.give(Box::new(move || {
            let _ = released.recv();
            say_done.send(()).unwrap();
        }));
        runtime().block_on(pool.run(|| ())).unwrap();
        drop(pool);
        release.send(()).unwrap();
        done.recv().unwrap();
        while state.state.lock().threads > 0 {
            thread::yield_now();
        }
    }
}

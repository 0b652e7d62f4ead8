//! What the host of the front provides: handlers by method, and where they run.
//!
//! A handler is one function from the bytes of a request to the bytes of an answer or a [`Status`]. It may block; it
//! runs in a thread of its lane and never in one that moves bytes. Nothing here knows what a method means.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::limits::{Place, Places};
use crate::pool::Pool;

/// One call, as its handler sees it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Full name, `/recalld.v1.MemoryService/Search`.
    pub method: &'a str,
    /// Who asks: `unix`, or the peer's address as gRPC writes it.
    pub identity: &'a str,
    /// The id that the caller gave or was given; safe to log.
    pub request_id: &'a str,
    /// The request message.
    pub request: &'a [u8],
    /// When its caller stops waiting; None for never.
    pub deadline: Option<Instant>,
    /// When the request was there as a whole.
    pub arrived: Instant,
}

/// How a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The canonical gRPC code.
    pub code: u32,
    /// For a person.
    pub message: String,
    /// The serialised `google.rpc.Status`, which repeats code and message; empty for none.
    pub details: Vec<u8>,
}

impl Status {
    /// A failure of the protocol itself, which has no details.
    pub(crate) fn of_protocol(code: u32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Vec::new(),
        }
    }
}

/// Codes of gRPC that the front itself answers.
pub(crate) mod code {
    pub(crate) const DEADLINE_EXCEEDED: u32 = 4;
    pub(crate) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(crate) const UNIMPLEMENTED: u32 = 12;
    pub(crate) const INTERNAL: u32 = 13;
    pub(crate) const UNAVAILABLE: u32 = 14;
}

/// Answers calls. A panic ends its call with INTERNAL and nothing else.
pub trait Handler: Send + Sync + 'static {
    /// Answers one call; may block.
    fn call(&self, call: &Call<'_>) -> Result<Vec<u8>, Status>;
}

impl<F> Handler for F
where
    F: Fn(&Call<'_>) -> Result<Vec<u8>, Status> + Send + Sync + 'static,
{
    fn call(&self, call: &Call<'_>) -> Result<Vec<u8>, Status> {
        self(call)
    }
}

/// Threads for the calls of some methods, and so a bound on how many of them run at a time; further ones wait without a
/// thread.
#[derive(Clone)]
pub struct Lane {
    places: Places,
    pool: Arc<Pool>,
}

impl Lane {
    /// A lane for so many calls at a time.
    pub fn new(width: u32) -> Self {
        Self::with_threads(width, || ())
    }

    /// A lane whose threads call `begin` first, for example to lower their priority.
    pub fn with_threads(width: u32, begin: fn()) -> Self {
        Self {
            places: Places::new(width),
            pool: Arc::new(Pool::new(width as usize, begin)),
        }
    }

    pub(crate) async fn place(&self) -> Place {
        self.places.take().await
    }

    /// Does work in a thread of the lane, for which there must be a place. None when it panicked. When this is dropped
    /// the work is done all the same.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        self.pool.run(work).await
    }

    pub(crate) async fn wait_until_empty(&self) {
        self.places.wait_until_empty().await;
    }
}

/// How a method uses its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One request, one answer.
    Unary,
    /// A stream of requests, each answered as soon as its answer is there, in any order.
    Pipelined,
}

/// A method that the front answers itself.
#[derive(Clone)]
pub struct Method {
    /// How it uses its stream.
    pub shape: Shape,
    /// What answers it.
    pub handler: Arc<dyn Handler>,
    /// With which other methods it shares threads.
    pub lane: Lane,
}

/// Methods by full name. All others are passed through.
pub type Methods = HashMap<String, Method>;

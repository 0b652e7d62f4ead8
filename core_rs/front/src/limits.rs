//! What the front holds at most, and how long it waits. A peer can spend these and nothing more.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::handler::{Status, code};

/// Bounds of a front.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at a time; further ones are closed.
    pub connections: u32,
    /// Requests in hand at a time, streams and those passed through included; further ones are refused.
    pub requests: u32,
    /// Requests in hand on one connection; a client waits with further ones.
    pub requests_a_connection: u32,
    /// Bytes of all metadata of a request. Far more than these are refused without the words of gRPC.
    pub metadata_bytes: usize,
    /// Bytes of one message, inflated.
    pub message_bytes: usize,
    /// Bytes of all messages in hand together. Answers that wait for their readers are not refused, but requests are
    /// while there are too many of them.
    pub held_bytes: usize,
    /// Bytes of answers that one connection has made no room for; its further requests are refused.
    pub unread_bytes_a_connection: usize,
    /// Messages of one pipelined stream being answered at a time; further ones are not read.
    pub messages_a_stream: usize,
    /// How long a peer may neither send a missing byte of a unary request nor make room for a byte of an answer.
    pub stall: Duration,
    /// How long a new connection may take to say that it speaks HTTP/2.
    pub handshake: Duration,
    /// How often a peer is asked whether it is alive.
    pub ping_every: Duration,
    /// How long it may take to say so.
    pub ping_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            requests: 1024,
            requests_a_connection: 1024,
            // What grpcio allows.
            metadata_bytes: 16 << 10,
            // Twice the largest request of the contract, so that the core refuses it with a reason.
            message_bytes: 32 << 20,
            held_bytes: 256 << 20,
            unread_bytes_a_connection: 64 << 20,
            messages_a_stream: 16,
            stall: Duration::from_secs(120),
            handshake: Duration::from_secs(20),
            ping_every: Duration::from_secs(60),
            ping_timeout: Duration::from_secs(20),
        }
    }
}

/// So many places for things that come and go.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
    count: u32,
}

/// One of some places, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Places {
    pub(crate) fn new(count: u32) -> Self {
        let free = Arc::new(Semaphore::new(count as usize));
        Self { free, count }
    }

    /// Takes a place if one is free.
    pub(crate) fn try_take(&self) -> Option<Place> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(Place { _permit: permit })
    }

    /// Waits for a place.
    pub(crate) async fn take(&self) -> Place {
        match Arc::clone(&self.free).acquire_owned().await {
            Ok(permit) => Place { _permit: permit },
            // The semaphore is never closed.
            Err(_) => pending().await,
        }
    }

    /// Waits until all places are free.
    pub(crate) async fn wait_until_empty(&self) {
        let _ = self.free.acquire_many(self.count).await;
    }
}

/// The bytes that all messages hold together.
#[derive(Debug)]
pub(crate) struct Budget {
    most: usize,
    used: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let used = AtomicUsize::new(0);
        Arc::new(Self { most, used })
    }

    /// Counts bytes that are there in any case.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Held {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        let budget = Arc::clone(self);
        Held { budget, bytes }
    }

    /// Refuses a request while more is held than may be.
    pub(crate) fn check(&self) -> Result<(), Status> {
        if self.used.load(Ordering::Relaxed) > self.most {
            let message = "as many bytes of messages wait as may; nothing was done";
            return Err(Status::of_protocol(code::RESOURCE_EXHAUSTED, message));
        }
        Ok(())
    }
}

/// Bytes taken from a [`Budget`] until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Held {
    pub(crate) fn nothing(budget: Arc<Budget>) -> Self {
        Self { budget, bytes: 0 }
    }

    /// Takes more, or refuses the request.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Status> {
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        self.budget.check()
    }

    /// Hands a part of it on.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self {
            budget: Arc::clone(&self.budget),
            bytes,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_comes_back() {
        let budget = Budget::new(10);
        let mut first = Held::nothing(Arc::clone(&budget));
        first.grow(8).unwrap();
        let part = first.split(5);
        let mut second = Held::nothing(Arc::clone(&budget));
        assert_eq!(second.grow(3).unwrap_err().code, code::RESOURCE_EXHAUSTED);
        drop(second);
        drop(first);
        assert_eq!(budget.used.load(Ordering::Relaxed), 5);
        drop(part);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}

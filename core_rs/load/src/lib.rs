//! An open-loop load generator for unary gRPC calls, over a Unix socket or TCP.
//!
//! Calls arrive at a constant rate, each at a moment that is fixed before the run starts, and the latency of a call
//! counts from that moment. So a server that stalls is charged for every call that should have been sent meanwhile:
//! what is called coordinated omission (Tene, "How NOT to measure latency") cannot happen. What cannot be sent is
//! counted, never dropped. A closed loop, in which callers wait for an answer before they ask again, is here too: it
//! says what one caller sees of a server with nothing else to do.
//!
//! The generator runs on one thread and reports how much of it was used, so that one sees when it was the bottleneck.
//! It knows nothing of what the requests mean: they are bytes, prepared before.

mod connection;
mod error;
mod pacer;
mod plan;
mod report;
mod run;

pub use error::LoadError;
pub use plan::{Address, Arrival, Call, Plan};
pub use report::{Report, Stats};
pub use run::{Running, run, spawn};

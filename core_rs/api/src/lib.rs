//! The contract in Rust: bytes of a request in, bytes of an answer or an error out.
//!
//! A call passes through here in one line: admission, decoding, `validate` (all limits of `proto/recalld/v1`, all
//! violations at once), the engine, `convert`, encoding. What the engine gets has been checked; what a caller gets
//! is an answer of the contract or a [`Failure`] with a stable reason. This crate must never keep state of its own
//! about memories, and an internal cause must never reach a caller: it goes to the log.

mod admission;
mod canonical;
mod convert;
mod dispatch;
mod error;
mod limits;
mod metrics;
mod rpc;
mod service;
mod validate;

pub use dispatch::Method;
pub use error::{Code, Failure, Violation};
pub use metrics::MethodMetrics;
pub use service::{Service, ServiceOptions};

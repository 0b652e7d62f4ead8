//! The native front: gRPC over HTTP/2 on Unix sockets and TCP ports.
//!
//! A request for a method that the host gave a [`Handler`] is answered here; its body is collected, the handler is called
//! in a thread of its lane, and the answer is framed. Every other request is passed through to a grpcio server on a
//! private socket. What gRPC demands of a server (deadlines, cancellation, compression, statuses, limits, draining) is
//! kept here for the former and by grpcio for the latter.
//!
//! The crate knows nothing of recalld's messages and nothing of Python. It must never run a handler in a thread that moves
//! bytes, never hold more than its [`Limits`] say, and never let one caller's fault end another's call.

mod authority;
mod connection;
mod front;
mod handler;
mod limits;
mod message;
mod metadata;
mod pass;
mod pipelined;
mod pool;
mod request;
mod responder;
mod shared;

pub use front::Front;
pub use handler::{Call, Handler, Lane, Method, Methods, Shape, Status};
pub use limits::Limits;

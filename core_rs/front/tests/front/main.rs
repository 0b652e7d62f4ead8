//! The front over real sockets, with handlers and clients of the tests' own.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hostile;
mod pass;
mod pipelined;
mod support;
mod unary;

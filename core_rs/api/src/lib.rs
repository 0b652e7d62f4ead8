//! The contract in Rust: messages, validation, dispatch, errors.

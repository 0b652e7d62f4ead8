//! Why there is no report.

use std::io;

use thiserror::Error;

/// Why a run did not happen or did not end. A call that fails is no such error: the report counts it.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The plan cannot be carried out; the message says what is wrong with it.
    #[error("{0}")]
    Plan(String),
    /// Nobody answers at the address.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Where.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused a thread, a timer or the like.
    #[error("cannot generate load: {0}")]
    System(#[from] io::Error),
    /// The caller gave up waiting.
    #[error("cancelled")]
    Cancelled,
}

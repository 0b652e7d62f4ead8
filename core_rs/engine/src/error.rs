//! What can go wrong in the engine. Each variant says whose fault it is and what was kept.

use std::time::Duration;

use recalld_embed::EmbedError;
use recalld_store::StoreError;
use recalld_vector::VectorError;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store's own error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The embedding model cannot be used: a mistake in the configuration.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The approximate index failed. Never reaches a caller: the index is a cache, and the scan answers.
    #[error(transparent)]
    Vector(#[from] VectorError),
    /// The caller's `if_version` was not current. Nothing was written.
    #[error("{field}: the current version is {current}")]
    VersionConflict {
        /// The request's field, for example `items[2].if_version`.
        field: String,
        /// 0: there is no such memory.
        current: u64,
    },
    /// The idempotency key belongs to another request.
    #[error("the idempotency key {key:?} was used with another request")]
    IdempotencyKeyReused {
        /// The key.
        key: String,
    },
    /// The token was made by another store, or by another history of this one.
    #[error("the consistency token belongs to another store")]
    TokenOfAnotherStore,
    /// The store did not come as far as the token in time.
    #[error("the store did not reach the consistency token in time")]
    TokenNotReached,
    /// The caller's deadline passed. A write may have been committed.
    #[error("the deadline passed before the answer was ready")]
    DeadlineExceeded,
    /// More writes wait than the engine admits. Nothing was written.
    #[error("more writes wait than the sidecar admits")]
    Overloaded {
        /// When to try again.
        retry_after: Duration,
    },
    /// The engine is closing. Nothing was written.
    #[error("the sidecar is shutting down")]
    Closing,
    /// A bug or the machine's fault; the text is for the log.
    #[error("internal error: {0}")]
    Internal(String),
}

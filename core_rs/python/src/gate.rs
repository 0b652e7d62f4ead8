//! The gate between Python and Rust: the GIL is released, and a panic ends the call but not the process.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;
use recalld_api::Failure;

use crate::error::raised;

/// Runs `work` without the GIL.
///
/// A panic is an INTERNAL error, logged where it happened by the hook of [`crate::log`]. State seen afterwards is
/// sound: the engine changes what is stored in transactions, and its locks do not break.
pub(crate) fn gate<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let result = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    result
        .unwrap_or_else(|_panic| Err(Failure::internal()))
        .map_err(|failure| raised(&failure))
}

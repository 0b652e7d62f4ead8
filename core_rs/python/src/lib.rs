//! The Python module `recalld_sidecar._core`, as `_core.pyi` describes it.
//!
//! Values are converted, the GIL is released, errors and panics become `CoreError`: nothing else happens here. What
//! a call means is in `recalld-api`.

mod access;
mod core;
mod error;
mod front;
mod gate;
mod load;
mod log;
mod tools;

/// The Rust core.
#[pyo3::pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::core::{
        Core, MethodMetrics, NamespaceStats, PartTimings, StoreStats, latency_bounds,
        ranking_defaults,
    };
    #[pymodule_export]
    use crate::front::Front;
    #[pymodule_export]
    use crate::load::{LoadReport, LoadStats, load};
    #[pymodule_export]
    use crate::tools::{Problem, build_profile, count_tokens, embed, verify};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::log::install();
        module.add("CoreError", crate::error::exception_type(module.py())?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

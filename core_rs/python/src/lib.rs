//! The Python module recalld_sidecar._core.

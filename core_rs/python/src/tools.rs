//! Functions that need no open data directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use recalld_api::Failure;
use recalld_counters::Counters;
use recalld_engine::EngineOptions;
use recalld_engine::model::Model;

use crate::gate::gate;

/// Something wrong with a data directory.
#[pyclass(frozen, get_all, module = "recalld_sidecar._core")]
pub(crate) struct Problem {
    r#where: String,
    what: String,
    fix: String,
}

/// Read everything in a data directory that no process holds and check it. Raises `CoreError` when it cannot open.
#[pyfunction]
pub(crate) fn verify(
    py: Python<'_>,
    data_dir: String,
    model_dir: String,
) -> PyResult<Vec<Problem>> {
    // Nothing is written, so the limits do not matter, but for the size of the memory map.
    let options = EngineOptions {
        data_dir: data_dir.into(),
        model_dir: model_dir.into(),
        address: String::new(),
        max_store_bytes: 1 << 40,
        max_queued_writes: 1,
        index_after: u32::MAX,
        max_index_bytes: 1 << 32,
        tuning: recalld_engine::Tuning::default(),
        slo: Duration::from_millis(50),
    };
    let problems = gate(py, || {
        recalld_engine::verify::verify(&options).map_err(Failure::of_opening)
    })?;
    let problems = problems.into_iter().map(|problem| Problem {
        r#where: problem.location,
        what: problem.what,
        fix: problem.fix,
    });
    Ok(problems.collect())
}

/// Tokens of a text by a counter, of which `tokenizers` may add some: files by name. Raises `ValueError` for an unknown
/// encoding and `CoreError` for a file that cannot be counted with.
#[pyfunction]
#[pyo3(signature = (text, encoding, tokenizers = BTreeMap::new()))]
pub(crate) fn count_tokens(
    py: Python<'_>,
    text: &str,
    encoding: &str,
    tokenizers: BTreeMap<String, PathBuf>,
) -> PyResult<u32> {
    let counters = gate(py, move || {
        Counters::load(&tokenizers).map_err(|error| Failure::of_tokenizer(&error))
    })?;
    let Some(counter) = counters.get(encoding) else {
        let known = counters.names().join(", ");
        return Err(PyValueError::new_err(format!(
            "unknown encoding {encoding:?}; known are {known}"
        )));
    };
    gate(py, || Ok(counter.count(text)))
}

/// Unit vectors of texts by the model in `model_dir`; None where nothing in the text is known.
#[pyfunction]
pub(crate) fn embed(
    py: Python<'_>,
    model_dir: String,
    texts: Vec<String>,
) -> PyResult<Vec<Option<Vec<f32>>>> {
    gate(py, move || {
        let model = Model::load(Path::new(&model_dir)).map_err(Failure::of_opening)?;
        let embedded = texts.iter().map(|text| model.embed(text, <[f32]>::to_vec));
        Ok(embedded.collect())
    })
}

/// Cargo profile kind of this build: `release` or `debug` (checks on).
#[pyfunction]
pub(crate) fn build_profile() -> &'static str {
    if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    }
}

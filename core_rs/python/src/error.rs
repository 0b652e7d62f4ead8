//! `CoreError`: how a failure looks in Python.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyTuple, PyType};
use recalld_api::Failure;

pyo3::create_exception!(
    recalld_sidecar._core,
    CoreError,
    PyException,
    "A call failed. `args` is (code, message, status)."
);

/// Names of the elements of `args`, in order.
const ATTRIBUTES: [(&str, &str); 3] = [
    ("code", "The canonical gRPC status code."),
    ("message", "What happened, for a person."),
    (
        "status",
        "The serialised google.rpc.Status with its details.",
    ),
];

/// The type, whose attributes read `args`.
///
/// They are set here because a native class cannot extend an exception in the stable ABI of Python 3.11.
pub(crate) fn exception_type(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let exception = py.get_type::<CoreError>();
    let property = py.import("builtins")?.getattr("property")?;
    for (index, (name, doc)) in ATTRIBUTES.into_iter().enumerate() {
        let read = move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, _>>| {
            let error = args.get_item(0)?;
            error.getattr("args")?.get_item(index).map(Bound::unbind)
        };
        let read = PyCFunction::new_closure(py, None, None, read)?;
        exception.setattr(name, property.call1((read, py.None(), py.None(), doc))?)?;
    }
    Ok(exception)
}

/// The exception of a failure.
pub(crate) fn raised(failure: &Failure) -> PyErr {
    CoreError::new_err((
        failure.code() as u8,
        failure.message.clone(),
        failure.status(),
    ))
}

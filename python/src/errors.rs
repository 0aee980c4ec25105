//! Core errors as exceptions of `polyabayes.exceptions`.

use polyabayes::Error;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The exception for a core error, with its message.
pub(crate) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let name = match error {
        Error::Offsets { .. }
        | Error::WordOutOfRange { .. }
        | Error::Unsorted { .. }
        | Error::Count { .. } => "InvalidCountsError",
        Error::Budget { .. }
        | Error::SamplingBudget { .. }
        | Error::EnumerationBudget { .. }
        | Error::SamplerMemory { .. }
        | Error::Memory { .. } => "BudgetExceededError",
        _ => "InvalidArgumentError",
    };
    let class = py
        .import("polyabayes.exceptions")
        .and_then(|module| module.getattr(name))
        .and_then(|class| Ok(class.cast_into::<PyType>()?));
    match class {
        Ok(class) => PyErr::from_type(class, error.to_string()),
        Err(missing) => missing,
    }
}

//! Core errors as exceptions of `polyabayes.exceptions`.

use std::io;
use std::sync::Mutex;

use polyabayes::Error;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::detach::Panic;

/// Place of the last panic.
static PANICKED_AT: Mutex<String> = Mutex::new(String::new());

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
        | Error::Memory { .. } => "BudgetExceededError",
        _ => "InvalidArgumentError",
    };
    exception(py, name, error.to_string())
}

/// The exception for work that could not start its threads.
pub(crate) fn no_threads(py: Python<'_>, n_jobs: usize, error: &io::Error) -> PyErr {
    let message = format!("n_jobs={n_jobs}: the threads cannot be started: {error}; ask for fewer");
    exception(py, "BudgetExceededError", message)
}

/// The exception for a panic of the core.
pub(crate) fn internal(py: Python<'_>, panic: &Panic) -> PyErr {
    let said = (panic.downcast_ref::<String>().map(String::as_str))
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    let place = PANICKED_AT.lock().map_or_else(|_| String::new(), |place| place.clone());
    exception(py, "InternalError", format!("{said} ({place})"))
}

/// Keeps the place of a panic for the exception, instead of printing it.
pub(crate) fn keep_places_of_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if let (Some(place), Ok(mut kept)) = (panic.location(), PANICKED_AT.lock()) {
            *kept = place.to_string();
        }
    }));
}

fn exception(py: Python<'_>, name: &str, message: String) -> PyErr {
    let class = py
        .import("polyabayes.exceptions")
        .and_then(|module| module.getattr(name))
        .and_then(|class| Ok(class.cast_into::<PyType>()?));
    match class {
        Ok(class) => PyErr::from_type(class, message),
        Err(missing) => missing,
    }
}

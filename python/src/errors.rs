//! Core errors as exceptions of `polyabayes.exceptions`.

use rayon::ThreadPoolBuildError;
use std::sync::Mutex;

use polyabayes::Error;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The payload of a panic.
pub(crate) type Panic = dyn std::any::Any + Send;

/// Quantities of the core that are arguments in Python, by their names there and here.
const ARGUMENTS: [&str; 19] = [
    "budget",
    "concentration",
    "doc_topic_prior",
    "exposure",
    "init",
    "n_components",
    "n_init",
    "n_particles",
    "n_replicates",
    "n_samples",
    "probability",
    "probability_prior",
    "rate",
    "shape",
    "shape_prior",
    "target_std_error",
    "tol",
    "topic_word",
    "topic_word_prior",
];

/// Place of the last panic.
static PANICKED_AT: Mutex<String> = Mutex::new(String::new());

/// The exception for a core error: the core says what is wrong, the rest is said here in terms of
/// Python's arguments, with the argument, its value and its limit as attributes.
pub(crate) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
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
    let Facts { message, argument, value, limit } = facts(error);
    let exception = exception(py, class, message);
    let found = exception.value(py);
    let set = found
        .setattr("argument", argument)
        .and_then(|()| found.setattr("value", value))
        .and_then(|()| found.setattr("limit", limit));
    set.err().unwrap_or(exception)
}

/// Message of an exception, and the attributes it carries.
#[derive(Default)]
struct Facts {
    message: String,
    argument: Option<&'static str>,
    value: Option<f64>,
    limit: Option<f64>,
}

impl Facts {
    /// Facts of an argument.
    fn of(argument: &'static str, message: String, value: f64, limit: f64) -> Self {
        Facts { message, argument: Some(argument), value: Some(value), limit: Some(limit) }
    }
}

fn facts(error: &Error) -> Facts {
    match error {
        &Error::Empty { name } => match argument_of(name) {
            Some(argument) => {
                Facts::of(argument, format!("{} must be at least 1", named(argument)), 0.0, 1.0)
            }
            None => costs(error),
        },
        &Error::Length { name, found, expected } => {
            let argument = argument_of(name);
            let what = argument.map_or_else(|| name.to_owned(), named);
            let message = format!("{what} has length {found}, expected {expected}");
            let (value, limit) = (Some(found as f64), Some(expected as f64));
            Facts { message, argument, value, limit }
        }
        &Error::Parameter { name, index, value, domain } => {
            let argument = argument_of(name);
            let what = argument.map_or_else(|| name.to_owned(), named);
            let message = format!("{what}[{index}] = {value:?}: must be {domain}");
            Facts { message, argument, value: Some(value), limit: None }
        }
        &Error::NotNormalised { topic, sum } => {
            let what = named("topic_word");
            let message =
                format!("{what}[{topic}] sums to {sum}, not to 1: divide each row by its sum");
            Facts::of("topic_word", message, sum, 1.0)
        }
        Error::Range => {
            let what = named("concentration");
            let message = format!("{error}: take a {what} nearer to 1, or fewer nodes");
            Facts { message, argument: Some("concentration"), ..Facts::default() }
        }
        Error::Impossible { word, document } => {
            let message = format!(
                "{} has probability 0 for word {word}, which document {document} holds: fit it on \
                 the same documents, or with a {} above 0",
                named("init"),
                named("topic_word_prior")
            );
            Facts { message, argument: Some("init"), ..Facts::default() }
        }
        _ => costs(error),
    }
}

/// Facts of work that would cost too much, and of all that has no argument.
fn costs(error: &Error) -> Facts {
    let raise = |enough: bool| {
        if enough { format!("raise {}, or ", named("budget")) } else { String::new() }
    };
    match *error {
        Error::TooManyTokens { n_tokens, most } => {
            let instead = named("method='vb'");
            let message = format!("{error}: divide the counts by a common unit, or use {instead}");
            let (value, limit) = (Some(n_tokens as f64), Some(most as f64));
            Facts { message, argument: None, value, limit }
        }
        Error::TooManyParticles { n_particles: n, most } => {
            let what = named("n_particles");
            let message =
                format!("{what} = {n} is too many for the memory of a run: at most {most}");
            Facts::of("n_particles", message, n as f64, most as f64)
        }
        Error::Budget { operations, bytes, budget, most_bytes, .. } => {
            let (raise, auto) = (raise(bytes <= most_bytes), named("method='auto'"));
            let lookahead = named("method='smc-lookahead'");
            let message = format!("{error}: {raise}use {auto} or {lookahead}");
            Facts::of("budget", message, operations, budget)
        }
        Error::EnumerationBudget { operations, bytes, budget, most_bytes, has_missing, .. } => {
            let instead = if has_missing {
                format!("give a smaller {}, or use {}", named("max_total"), named("method='smc'"))
            } else {
                format!("use {}", named("method='tempered'"))
            };
            let message = format!("{error}: {}{instead}", raise(bytes <= most_bytes));
            Facts::of("budget", message, operations, budget)
        }
        Error::SamplingBudget { operations, budget, .. } => {
            let [samples, particles, replicates, recursive] =
                ["n_samples", "n_particles", "n_replicates", "method='recursive'"].map(named);
            let lower = format!("lower {samples}, {particles} or {replicates}");
            let message = format!("{error}: {lower}, {}use {recursive}", raise(true));
            Facts::of("budget", message, operations, budget)
        }
        Error::SamplerMemory { n_draws, bytes, available, .. } => {
            let draws = match n_draws {
                0 => String::new(),
                _ => format!("lower {}, ", named("n_draws")),
            };
            let message = format!(
                "{error}: {draws}take fewer, divide the counts by a common unit, lower {}, or use \
                 {}, which holds no tokens and no particles",
                named("n_jobs"),
                named("method='vb'")
            );
            let argument = (n_draws > 0).then_some("n_draws");
            Facts { message, argument, value: Some(bytes), limit: Some(available) }
        }
        _ => Facts { message: error.to_string(), ..Facts::default() },
    }
}

/// A reference to an argument, as `polyabayes.exceptions` marks it.
fn named(argument: &str) -> String {
    format!("\u{1f}{argument}\u{1f}")
}

/// The argument that an error of the core names, if the quantity is one.
fn argument_of(name: &'static str) -> Option<&'static str> {
    ARGUMENTS.contains(&name).then_some(name)
}

/// The exception for work that could not start its threads.
pub(crate) fn no_threads(py: Python<'_>, n_jobs: usize, error: &ThreadPoolBuildError) -> PyErr {
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

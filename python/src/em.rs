//! Variational EM of latent Dirichlet allocation.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use polyabayes::training::{self, EmFit, EmSettings, EmStart};
use pyo3::prelude::*;

use crate::convert::Documents;
use crate::detach::{self, Running};

/// Result of EM.
#[pyclass(frozen, get_all, module = "polyabayes._core")]
pub(crate) struct EmResult {
    /// φ, (V, K).
    word_topic: Py<PyArray2<f64>>,
    /// α, (K,).
    alpha: Py<PyArray1<f64>>,
    /// The bound of the training documents.
    bound: f64,
    /// The bound at the start and after every iteration.
    trace: Py<PyArray1<f64>>,
    /// Expected tokens of each topic, (K,).
    n_tokens: Py<PyArray1<f64>>,
    /// The exception that cut the work short.
    interruption: Option<Py<PyAny>>,
}

/// Variational EM of LDA, from φ (V, J), α (J,) and the known bound of a smaller model where
/// `start` gives them.
#[pyfunction]
#[pyo3(signature = (documents, alpha, start, *, learned, topic_word_prior, max_iter, tolerance,
                    start_sweeps, n_init, **running))]
pub(crate) fn fit_em(
    py: Python<'_>,
    documents: &Documents,
    alpha: PyReadonlyArray1<'_, f64>,
    start: Option<(PyReadonlyArray2<'_, f64>, PyReadonlyArray1<'_, f64>, f64)>,
    learned: bool,
    topic_word_prior: f64,
    max_iter: u64,
    tolerance: f64,
    start_sweeps: u64,
    n_init: u64,
    running: Option<Running>,
) -> PyResult<EmResult> {
    let alpha = alpha.as_slice()?.to_vec();
    let start = match start {
        None => None,
        Some((phi, alpha, bound)) => Some(EmStart {
            phi: phi.as_slice()?.to_vec(),
            alpha: alpha.as_slice()?.to_vec(),
            bound,
        }),
    };
    let outcome = detach::call(py, running, usize::MAX, |seed, watch| {
        let settings = EmSettings {
            alpha,
            learned,
            topic_word_prior,
            max_iter,
            tolerance,
            start_sweeps,
            n_starts: n_init,
            seed,
        };
        training::fit_em(&documents.0, start, &settings, watch)
    })?;
    let (fit, interruption) = outcome.into_parts(py);
    let EmFit { phi, alpha, bound, trace, n_tokens } = fit;
    let shape = [documents.0.n_words(), alpha.len()];
    Ok(EmResult {
        word_topic: PyArray1::from_vec(py, phi).reshape(shape)?.unbind(),
        alpha: PyArray1::from_vec(py, alpha).unbind(),
        bound,
        trace: PyArray1::from_vec(py, trace).unbind(),
        n_tokens: PyArray1::from_vec(py, n_tokens).unbind(),
        interruption,
    })
}

//! Training of topic models.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use polyabayes::training::{
    Fit, LdaParameters, LdaPrior, LdaSampler, PfaParameters, PfaPrior, PfaSampler, Schedule, fit,
};
use pyo3::prelude::*;

use crate::convert::Documents;
use crate::detach;

/// How long to sample, and what to keep: read from an object with these attributes.
#[derive(FromPyObject)]
pub(crate) struct FitSchedule {
    max_iter: u64,
    burn_in: u64,
    warm_up: u64,
    thin: u64,
    seed: u64,
    n_jobs: usize,
}

impl FitSchedule {
    fn to_core(&self) -> Schedule {
        Schedule {
            max_iter: self.max_iter,
            burn_in: self.burn_in,
            warm_up: self.warm_up,
            thin: self.thin,
        }
    }
}

/// What a run of a sampler gives.
#[pyclass(frozen, get_all, module = "polyabayes._core")]
pub(crate) struct FitResult {
    /// φ, (V, K).
    word_topic: Py<PyArray2<f64>>,
    /// r, (K,); None for LDA.
    shape: Option<Py<PyArray1<f64>>>,
    /// p, (K,); None for LDA.
    probability: Option<Py<PyArray1<f64>>>,
    n_iter: u64,
    n_kept: u64,
    /// What cut the work short.
    interruption: Option<Py<PyAny>>,
}

impl FitResult {
    fn new<P>(
        py: Python<'_>,
        outcome: detach::Outcome<Fit<P>>,
        n_words: usize,
        arrays: impl FnOnce(P) -> (Vec<f64>, Option<(Vec<f64>, Vec<f64>)>),
    ) -> PyResult<Self> {
        let Fit { parameters, n_iter, n_kept } = outcome.value;
        let (phi, shape_and_probability) = arrays(parameters);
        let n_topics = phi.len() / n_words;
        let array = |values| PyArray1::from_vec(py, values).unbind();
        let (shape, probability) = shape_and_probability.map(|(r, p)| (array(r), array(p))).unzip();
        Ok(FitResult {
            word_topic: PyArray1::from_vec(py, phi).reshape([n_words, n_topics])?.unbind(),
            shape,
            probability,
            n_iter,
            n_kept,
            interruption: outcome.interruption.map(|error| error.into_value(py).into_any()),
        })
    }
}

/// Gibbs sampling of latent Dirichlet allocation.
#[pyfunction]
#[pyo3(signature = (documents, alpha, beta, schedule, *, progress = None))]
pub(crate) fn fit_lda(
    py: Python<'_>,
    documents: &Documents,
    alpha: PyReadonlyArray1<'_, f64>,
    beta: f64,
    schedule: FitSchedule,
    progress: Option<Py<PyAny>>,
) -> PyResult<FitResult> {
    let prior = LdaPrior { alpha: alpha.as_slice()?.to_vec(), beta };
    let outcome = detach::run(py, schedule.n_jobs, progress, |watch| {
        let mut sampler = LdaSampler::new(&documents.0, prior, schedule.seed)?;
        fit(&mut sampler, schedule.to_core(), watch)
    })?;
    FitResult::new(py, outcome, documents.0.n_words(), |LdaParameters { phi }| (phi, None))
}

/// Gibbs sampling of Poisson factor analysis; priors that are None keep their parameter fixed.
#[pyfunction]
#[pyo3(signature = (documents, shape, probability, topic_word_prior, probability_prior, shape_prior,
                    schedule, *, progress = None))]
#[expect(clippy::too_many_arguments, reason = "the model's parameters and priors, by name")]
pub(crate) fn fit_pfa(
    py: Python<'_>,
    documents: &Documents,
    shape: PyReadonlyArray1<'_, f64>,
    probability: PyReadonlyArray1<'_, f64>,
    topic_word_prior: f64,
    probability_prior: Option<(f64, f64)>,
    shape_prior: Option<(f64, f64)>,
    schedule: FitSchedule,
    progress: Option<Py<PyAny>>,
) -> PyResult<FitResult> {
    let (r, p) = (shape.as_slice()?.to_vec(), probability.as_slice()?.to_vec());
    let prior = PfaPrior {
        topic_word: topic_word_prior,
        probability: probability_prior,
        shape: shape_prior,
    };
    let outcome = detach::run(py, schedule.n_jobs, progress, |watch| {
        let mut sampler = PfaSampler::new(&documents.0, prior, r, p, schedule.seed)?;
        fit(&mut sampler, schedule.to_core(), watch)
    })?;
    FitResult::new(py, outcome, documents.0.n_words(), |PfaParameters { phi, r, p }| {
        (phi, Some((r, p)))
    })
}

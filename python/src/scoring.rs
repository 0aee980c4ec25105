//! Likelihoods and topic weights of documents.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use polyabayes::{Event, Form, Method, Query, Sampler, Settings};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::{Documents, Model};
use crate::detach;

/// The names of the methods, in the order of their codes.
const METHODS: [(&str, Method); 14] = [
    ("auto", Method::Auto),
    ("exact", Method::Exact),
    ("direct", Method::Sample(Sampler::Direct)),
    ("harmonic", Method::Sample(Sampler::Harmonic)),
    ("mean-field", Method::Sample(Sampler::MeanField)),
    ("left-to-right", Method::Sample(Sampler::LeftToRight(Form::MeanOfProducts))),
    ("left-to-right-particle", Method::Sample(Sampler::LeftToRight(Form::ProductOfMeans))),
    ("left-to-right-sequential", Method::Sample(Sampler::LeftToRight(Form::Sequential))),
    ("l2r", Method::Sample(Sampler::L2r)),
    ("smc", Method::Sample(Sampler::Smc)),
    ("smc-lookahead", Method::Sample(Sampler::SmcLookahead)),
    ("annealed", Method::Sample(Sampler::Annealed)),
    ("chib", Method::Sample(Sampler::Chib)),
    ("recursive", Method::Recursive),
];

/// How to score: read from an object with these attributes.
#[derive(FromPyObject)]
pub(crate) struct ScoreSettings {
    method: String,
    event: String,
    given_length: bool,
    n_samples: usize,
    n_particles: Option<usize>,
    n_replicates: usize,
    target_std_error: Option<f64>,
    budget: f64,
}

impl ScoreSettings {
    fn to_core(&self) -> PyResult<Settings> {
        let unknown = |what: &str, name: &str| PyValueError::new_err(format!("{what} {name:?}"));
        let method = METHODS.iter().find(|(name, _)| *name == self.method);
        let event = match self.event.as_str() {
            "sequence" => Event::Sequence,
            "counts" => Event::Counts,
            other => return Err(unknown("unknown event", other)),
        };
        Ok(Settings {
            method: method.ok_or_else(|| unknown("unknown method", &self.method))?.1,
            query: Query { event, given_length: self.given_length },
            n_samples: self.n_samples,
            n_particles: self.n_particles,
            n_replicates: self.n_replicates,
            target_std_error: self.target_std_error,
            budget: self.budget,
        })
    }
}

/// Scores of all documents; documents that an interruption left out are NaN.
#[pyclass(frozen, get_all, module = "polyabayes._core")]
pub(crate) struct Scores {
    values: Py<PyArray1<f64>>,
    std_errors: Py<PyArray1<f64>>,
    n_effs: Py<PyArray1<f64>>,
    /// Name of the estimator that scored each document; empty where none did.
    methods: Vec<&'static str>,
    /// What cut the work short.
    interruption: Option<Py<PyAny>>,
}

/// ln p of every document under the model.
#[pyfunction]
#[pyo3(signature = (model, documents, settings, *, seed, n_jobs, progress = None))]
pub(crate) fn score(
    py: Python<'_>,
    model: &Model,
    documents: &Documents,
    settings: ScoreSettings,
    seed: u64,
    n_jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Scores> {
    let settings = settings.to_core()?;
    let outcome = detach::run(py, n_jobs, progress, |watch| {
        polyabayes::score(&model.0, &documents.0, &settings, seed, watch)
    })?;
    let scores = &outcome.value;
    let column = |of: fn(&polyabayes::Estimate) -> f64| {
        let values = scores.iter().map(|score| score.map_or(f64::NAN, |s| of(&s.estimate)));
        PyArray1::from_iter(py, values).unbind()
    };
    let name = |method| METHODS.iter().find(|(_, m)| *m == method).map_or("", |(name, _)| *name);
    Ok(Scores {
        values: column(|estimate| estimate.ln_value),
        std_errors: column(|estimate| estimate.std_error),
        n_effs: column(|estimate| estimate.n_eff),
        methods: scores.iter().map(|score| score.map_or("", |s| name(s.method))).collect(),
        interruption: outcome.interruption.map(|error| error.into_value(py).into_any()),
    })
}

/// Posterior mean topic weights of every document, (D, K).
#[pyfunction]
#[pyo3(signature = (model, documents, *, n_sweeps, seed, n_jobs, progress = None))]
pub(crate) fn transform<'py>(
    py: Python<'py>,
    model: &Model,
    documents: &Documents,
    n_sweeps: usize,
    seed: u64,
    n_jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let outcome = detach::run(py, n_jobs, progress, |watch| {
        polyabayes::transform(&model.0, &documents.0, n_sweeps, seed, watch)
    })?;
    let shape = [documents.0.n_documents(), model.0.urn().n_topics()];
    match outcome.interruption {
        Some(interruption) => Err(interruption),
        None => PyArray1::from_vec(py, outcome.value).reshape(shape),
    }
}

//! Likelihoods and topic weights of documents.

use numpy::ndarray::Array2;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
};
use polyabayes::document::estimators::mean_field::UpdateRule;
use polyabayes::document::{self, Draws};
use polyabayes::{
    Bounds, Conditionals, ESTIMATORS, Estimate, Event, Form, MeanField, Method, Moments, Query,
    SampleSize, Sampler, Score, Settings, Spread, Start,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::{Documents, Model};
use crate::detach::{self, Running};

/// How to score: read from an object with these attributes.
#[derive(FromPyObject)]
pub(crate) struct ScoreSettings {
    method: String,
    event: String,
    given_length: bool,
    n_samples: Option<usize>,
    n_particles: Option<usize>,
    n_replicates: usize,
    target_std_error: Option<f64>,
    budget: Option<f64>,
    trace: bool,
    /// Order of the mean field's update, 1 or 2.
    order: usize,
    /// Updates of the mean field.
    n_iterations: usize,
    /// Draws a conditional of l2r; None for exact conditionals.
    n_conditional_samples: Option<usize>,
    /// Reference distribution of annealing; None for one chosen by document.
    start: Option<String>,
}

impl ScoreSettings {
    fn to_core(&self) -> PyResult<Settings> {
        let event = match self.event.as_str() {
            "sequence" => Event::Sequence,
            "counts" => Event::Counts,
            other => return Err(unknown("event", other)),
        };
        Ok(Settings {
            method: self.method()?.ok_or_else(|| unknown("method", &self.method))?,
            query: Query { event, given_length: self.given_length },
            n_samples: self.n_samples,
            n_particles: self.n_particles,
            n_replicates: self.n_replicates,
            total: None,
            target_std_error: self.target_std_error,
            budget: self.budget,
            trace: self.trace,
        })
    }

    fn method(&self) -> PyResult<Option<Method>> {
        let order = if self.order == 2 { UpdateRule::Second } else { UpdateRule::First };
        let conditionals =
            self.n_conditional_samples.map_or(Conditionals::Exact, Conditionals::Sampled);
        let samplers = [
            Sampler::Annealed(self.start()?),
            Sampler::SmcLookahead,
            Sampler::Smc,
            Sampler::LeftToRight(Form::MeanOfProducts),
            Sampler::LeftToRight(Form::ProductOfMeans),
            Sampler::LeftToRight(Form::Sequential),
            Sampler::L2r(conditionals),
            Sampler::Chib,
            Sampler::MeanField(MeanField { order, n_iterations: self.n_iterations }),
            Sampler::Direct,
            Sampler::Harmonic,
        ];
        let mut methods = [Method::Auto, Method::Exact, Method::Recursive]
            .into_iter()
            .chain(samplers.map(Method::Sample));
        Ok(methods.find(|method| method.estimator().name == self.method))
    }

    fn start(&self) -> PyResult<Option<Start>> {
        match self.start.as_deref() {
            None => Ok(None),
            Some("prior") => Ok(Some(Start::Prior)),
            Some("mean-field") => Ok(Some(Start::MeanField)),
            Some("lowered") => Ok(Some(Start::Lowered)),
            Some("softened") => Ok(Some(Start::Softened)),
            Some(other) => Err(unknown("start", other)),
        }
    }
}

fn unknown(what: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("unknown {what} {name:?}"))
}

/// The estimators: name, cost, whether unbiased, consistent, reversible and to be asked for, the
/// argument that is the size of the sample with its default, and names of options.
#[pyfunction]
pub(crate) fn estimators() -> Vec<EstimatorRow> {
    let argument = |size: SampleSize| match size {
        SampleSize::Samples => "n_samples",
        SampleSize::Particles => "n_particles",
    };
    (ESTIMATORS.iter())
        .map(|row| {
            let flags = (row.is_unbiased, row.is_consistent, row.is_reversible, row.is_method);
            let size = row.size.map(argument);
            (row.name, row.cost, flags, size, row.default_size, row.options.to_vec())
        })
        .collect()
}

type EstimatorRow = (
    &'static str,
    &'static str,
    (bool, bool, bool, bool),
    Option<&'static str>,
    Option<usize>,
    Vec<&'static str>,
);

/// Scores of all documents; documents that an interruption left out are NaN.
#[pyclass(frozen, get_all, module = "polyabayes._core")]
pub(crate) struct Scores {
    values: Py<PyArray1<f64>>,
    std_errors: Py<PyArray1<f64>>,
    n_effs: Py<PyArray1<f64>>,
    /// Name of the estimator that scored each document; empty where none did.
    methods: Vec<&'static str>,
    /// Particles, draws, states or temperatures of each replicate.
    sizes: Py<PyArray1<i64>>,
    /// The part of each document in the correction of a total, and the variance of ln p of one of its
    /// runs; 0 where no total was wanted.
    shortfalls: Py<PyArray1<f64>>,
    variances: Py<PyArray1<f64>>,
    /// Samples, values and standard errors on the way, (3, D, T).
    trace: [Py<PyArray2<f64>>; 3],
    /// The exception that cut the work short.
    interruption: Option<Py<PyAny>>,
}

impl Scores {
    fn new(py: Python<'_>, outcome: detach::Outcome<Vec<Option<Score>>>) -> Self {
        let (scores, interruption) = outcome.into_parts(py);
        let column = |of: fn(&Estimate) -> f64| {
            let values = scores.iter().map(|s| s.as_ref().map_or(f64::NAN, |s| of(&s.estimate)));
            PyArray1::from_iter(py, values).unbind()
        };
        let of_spread = |of: fn(Spread) -> f64| {
            let spreads = scores.iter().map(|s| s.as_ref().and_then(|s| s.spread).map_or(0.0, of));
            PyArray1::from_iter(py, spreads).unbind()
        };
        let sizes = scores.iter().map(|score| score.as_ref().map_or(0, |s| s.size as i64));
        let methods = scores.iter().map(|score| score.as_ref().map_or("", |s| s.estimator.name));
        let n_points = scores.iter().flatten().map(|s| s.trace.len()).max().unwrap_or(0);
        let table = |of: fn(&Score, usize) -> f64| {
            let cell = |(row, point): (usize, usize)| {
                scores[row].as_ref().map_or(f64::NAN, |s| of(s, point))
            };
            Array2::from_shape_fn((scores.len(), n_points), cell).into_pyarray(py).unbind()
        };
        Scores {
            values: column(|estimate| estimate.ln_value),
            std_errors: column(|estimate| estimate.std_error),
            n_effs: column(|estimate| estimate.n_eff),
            methods: methods.collect(),
            shortfalls: of_spread(|spread| spread.shortfall),
            variances: of_spread(|spread| spread.variance),
            sizes: PyArray1::from_iter(py, sizes).unbind(),
            trace: [
                table(|score, i| score.trace.get(i).map_or(0.0, |p| p.n_samples as f64)),
                table(|score, i| {
                    score.trace.get(i).map_or(score.estimate, |p| p.estimate).ln_value
                }),
                table(|score, i| {
                    score.trace.get(i).map_or(score.estimate, |p| p.estimate).std_error
                }),
            ],
            interruption,
        }
    }
}

/// ln p of every document under the model; through so many temperatures for the sake of their sum, where
/// they are given.
#[pyfunction]
#[pyo3(signature = (model, documents, settings, *, n_temperatures = None, **running))]
pub(crate) fn score(
    py: Python<'_>,
    model: &Model,
    documents: &Documents,
    settings: ScoreSettings,
    n_temperatures: Option<usize>,
    running: Option<Running>,
) -> PyResult<Scores> {
    let settings = Settings { total: n_temperatures, ..settings.to_core()? };
    let outcome = detach::call(py, running, documents.0.n_documents(), |seed, watch| {
        document::score(&*model.0, &documents.0, &settings, seed, watch)
    })?;
    Ok(Scores::new(py, outcome))
}

/// Refuses what scoring would refuse, without any work.
#[pyfunction]
pub(crate) fn check_score(
    py: Python<'_>,
    model: &Model,
    documents: &Documents,
    settings: ScoreSettings,
) -> PyResult<()> {
    let settings = settings.to_core()?;
    detach::briefly(py, || document::check_score(&*model.0, &documents.0, &settings))
}

/// Refuses what completion would refuse, without any work.
#[pyfunction]
pub(crate) fn check_completion(
    py: Python<'_>,
    model: &Model,
    observed: &Documents,
    held_out: &Documents,
    settings: ScoreSettings,
) -> PyResult<()> {
    let settings = settings.to_core()?;
    detach::briefly(py, || {
        document::check_completion(&*model.0, &observed.0, &held_out.0, &settings)
    })
}

/// ln p of held-out tokens given the observed tokens of every document.
#[pyfunction]
#[pyo3(signature = (model, observed, held_out, settings, **running))]
pub(crate) fn completion(
    py: Python<'_>,
    model: &Model,
    observed: &Documents,
    held_out: &Documents,
    settings: ScoreSettings,
    running: Option<Running>,
) -> PyResult<Scores> {
    let settings = settings.to_core()?;
    let outcome = detach::call(py, running, observed.0.n_documents(), |seed, watch| {
        document::completion(&*model.0, &observed.0, &held_out.0, &settings, seed, watch)
    })?;
    Ok(Scores::new(py, outcome))
}

/// Latent values of simulated documents: topics of all tokens, or standard normals, (D, rank).
#[derive(FromPyObject)]
pub(crate) enum Drawn<'py> {
    Topics(PyReadonlyArray1<'py, u16>),
    Latent(PyReadonlyArray2<'py, f64>),
}

/// Stochastic lower and upper bounds of documents simulated from the model: values and standard
/// errors of either, and the sizes of the replicates.
#[pyfunction]
#[pyo3(signature = (model, documents, draws, settings, **running))]
pub(crate) fn bidirectional(
    py: Python<'_>,
    model: &Model,
    documents: &Documents,
    draws: Drawn<'_>,
    settings: ScoreSettings,
    running: Option<Running>,
) -> PyResult<Py<PyArray2<f64>>> {
    let settings = settings.to_core()?;
    let draws = match &draws {
        Drawn::Topics(topics) => Draws::Topics(topics.as_slice()?),
        Drawn::Latent(latent) => Draws::Latent(latent.as_slice()?),
    };
    let found = detach::call(py, running, usize::MAX, |seed, watch| {
        document::bidirectional(&*model.0, &documents.0, draws, &settings, seed, watch)
    })?;
    let found = found.uninterrupted()?;
    let columns: [fn(&Bounds) -> f64; 5] = [
        |bounds| bounds.lower.ln_value,
        |bounds| bounds.lower.std_error,
        |bounds| bounds.upper.ln_value,
        |bounds| bounds.upper.std_error,
        |bounds| bounds.size as f64,
    ];
    let cell = |(column, row): (usize, usize)| -> f64 {
        found[row].as_ref().map_or(f64::NAN, columns[column])
    };
    let table = Array2::from_shape_fn((columns.len(), found.len()), cell);
    Ok(table.into_pyarray(py).unbind())
}

/// Posterior mean topic weights of every document and, where `spread` is set, their standard
/// deviations and the errors of the means, (D, 1 or 3, K).
#[pyfunction]
#[pyo3(signature = (model, documents, *, spread, n_sweeps, **running))]
pub(crate) fn transform<'py>(
    py: Python<'py>,
    model: &Model,
    documents: &Documents,
    spread: bool,
    n_sweeps: usize,
    running: Option<Running>,
) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let moments = if spread { Moments::All } else { Moments::Mean };
    let outcome = detach::call(py, running, documents.0.n_documents(), |seed, watch| {
        document::transform(&*model.0, &documents.0, moments, n_sweeps, seed, watch)
    })?;
    let shape = [documents.0.n_documents(), moments.n_arrays(), model.0.n_topics()];
    PyArray1::from_vec(py, outcome.uninterrupted()?).reshape(shape)
}

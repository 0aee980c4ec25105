//! Training of topic models.

use std::time::Instant;

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use polyabayes::training::{
    Fit, Kept, LdaParameters, LdaPrior, LdaSampler, NmfParameters, NmfUpdates, PfaParameters,
    PfaPrior, PfaSampler, Progress, Sampler, Schedule, Scheme, Start, State, find_topics,
    fit_and_look, nmf_weights,
};
use polyabayes::{CountMatrix, Error};
use pyo3::prelude::*;

use crate::convert::Documents;
use crate::{detach, errors};

/// Dirichlet parameters of the sampler that finds the topics from which updates of NMF start: the
/// sum over the topics of α, and β.
const NMF_START_ALPHA_SUM: f64 = 5.0;
const NMF_START_BETA: f64 = 0.1;

/// Dirichlet parameters of the sampler that finds the topics from which updates of NMF start: α of so
/// many topics, and β.
#[pyfunction]
pub(crate) fn nmf_start_priors(py: Python<'_>, n_topics: usize) -> (Bound<'_, PyArray1<f64>>, f64) {
    let alpha = vec![NMF_START_ALPHA_SUM / n_topics as f64; n_topics];
    (PyArray1::from_vec(py, alpha), NMF_START_BETA)
}

/// How long to sample, and what to keep: read from an object with these attributes.
#[derive(FromPyObject)]
pub(crate) struct FitSchedule {
    max_iter: u64,
    burn_in: u64,
    warm_up: u64,
    thin: u64,
    pub(crate) start_sweeps: u64,
    n_init: u64,
    pub(crate) seed: u64,
    pub(crate) n_jobs: usize,
}

/// The log joint density after some sweeps: the number of the sweep, the value, and seconds since
/// the work began.
#[derive(Clone, Copy, IntoPyObject)]
pub(crate) struct Look(u64, f64, f64);

/// Looks at a sampler, every so many sweeps and after the last.
struct Looks {
    every: u64,
    last: u64,
    began: Instant,
    seen: Vec<Look>,
}

impl Looks {
    fn new(every: u64, last: u64) -> Self {
        Looks { every, last, began: Instant::now(), seen: vec![] }
    }

    fn at(&mut self, n_sweeps: u64, sampler: &impl Sampler) {
        if n_sweeps.is_multiple_of(self.every) || n_sweeps == self.last {
            let ln_joint = sampler.ln_joint();
            self.seen.push(Look(n_sweeps, ln_joint, self.began.elapsed().as_secs_f64()));
        }
    }
}

impl FitSchedule {
    pub(crate) fn to_core(&self) -> Schedule {
        Schedule {
            max_iter: self.max_iter,
            burn_in: self.burn_in,
            warm_up: self.warm_up,
            thin: self.thin,
        }
    }

    /// Topics of all tokens to start from.
    fn find_topics(
        &self,
        counts: &CountMatrix,
        alpha: &[f64],
        beta: f64,
        watch: &detach::Watch,
    ) -> polyabayes::Result<Vec<u16>> {
        let start = Start { n_sweeps: self.start_sweeps, n_starts: self.n_init };
        find_topics(counts, alpha, beta, start, self.seed, watch)
    }
}

/// Progress of a run: all it takes to go on.
#[pyclass(frozen, get_all, module = "polyabayes._core")]
pub(crate) struct FitState {
    n_sweeps: u64,
    n_kept: u64,
    /// The topic of every token.
    assignments: Py<PyArray1<u16>>,
    /// The other parameters of the sampler.
    parameters: Py<PyArray1<f64>>,
    /// Sum over the kept sweeps of φ (V, K) and the other parameters, flat.
    kept_sum: Option<Py<PyArray1<f64>>>,
}

#[pymethods]
impl FitState {
    #[new]
    fn new(
        n_sweeps: u64,
        n_kept: u64,
        assignments: Py<PyArray1<u16>>,
        parameters: Py<PyArray1<f64>>,
        kept_sum: Option<Py<PyArray1<f64>>>,
    ) -> Self {
        FitState { n_sweeps, n_kept, assignments, parameters, kept_sum }
    }
}

impl FitState {
    fn to_core<P: Flat>(
        &self,
        py: Python<'_>,
        n_words: usize,
        n_topics: usize,
    ) -> PyResult<Progress<P>> {
        let floats =
            |array: &Py<PyArray1<f64>>| array.bind(py).readonly().as_slice().map(<[f64]>::to_vec);
        let sum = self.kept_sum.as_ref().map(floats).transpose()?;
        let state = State {
            n_sweeps: self.n_sweeps,
            assignments: self.assignments.bind(py).readonly().as_slice()?.to_vec(),
            parameters: floats(&self.parameters)?,
        };
        let sum = sum.map(|sum| kept_sum(sum, n_words, n_topics)).transpose();
        let sum = sum.map_err(|error| errors::to_python(py, &error))?;
        Ok(Progress { state, kept: Kept { n: self.n_kept, sum } })
    }

    fn of<P: Flat>(py: Python<'_>, progress: Progress<P>) -> Self {
        let Progress { state, kept: Kept { n: n_kept, sum } } = progress;
        FitState {
            n_sweeps: state.n_sweeps,
            n_kept,
            assignments: PyArray1::from_vec(py, state.assignments).unbind(),
            parameters: PyArray1::from_vec(py, state.parameters).unbind(),
            kept_sum: sum.map(|sum| PyArray1::from_vec(py, sum.into_flat()).unbind()),
        }
    }
}

/// The sum over kept sweeps from its array, checked: what a file holds may be anything.
pub(crate) fn kept_sum<P: Flat>(
    flat: Vec<f64>,
    n_words: usize,
    n_topics: usize,
) -> polyabayes::Result<P> {
    let (name, found) = ("sums of the state", flat.len());
    if let Some(index) = flat.iter().position(|&x| !(x.is_finite() && x >= 0.0)) {
        let (value, domain) = (flat[index], "finite and not negative");
        return Err(Error::Parameter { name, index, value, domain });
    }
    let expected = n_words * n_topics;
    P::from_flat(flat, n_words, n_topics).ok_or(Error::Length { name, found, expected })
}

/// φ, word-major, and the other parameters.
pub(crate) type Means = (Vec<f64>, [Vec<f64>; 2]);

/// Parameters as arrays.
pub(crate) trait Flat: Sized {
    fn into_arrays(self) -> Means;

    /// One array, each of them after the other.
    fn into_flat(self) -> Vec<f64> {
        let (phi, [first, second]) = self.into_arrays();
        [phi, first, second].concat()
    }

    /// `None` where the array has another size.
    fn from_flat(flat: Vec<f64>, n_words: usize, n_topics: usize) -> Option<Self>;
}

impl Flat for LdaParameters {
    fn into_arrays(self) -> Means {
        (self.phi, [self.alpha, vec![self.beta]])
    }

    fn from_flat(mut flat: Vec<f64>, n_words: usize, n_topics: usize) -> Option<Self> {
        if flat.len() != (n_words + 1) * n_topics + 1 {
            return None;
        }
        let beta = flat.pop()?;
        let alpha = flat.split_off(n_words * n_topics);
        Some(LdaParameters { phi: flat, alpha, beta })
    }
}

impl Flat for PfaParameters {
    fn into_arrays(self) -> Means {
        (self.phi, [self.r, self.p])
    }

    fn from_flat(mut flat: Vec<f64>, n_words: usize, n_topics: usize) -> Option<Self> {
        if flat.len() != (n_words + 2) * n_topics {
            return None;
        }
        let p = flat.split_off((n_words + 1) * n_topics);
        let r = flat.split_off(n_words * n_topics);
        Some(PfaParameters { phi: flat, r, p })
    }
}

impl Flat for NmfParameters {
    fn into_arrays(self) -> Means {
        (self.phi, [self.n_tokens, vec![]])
    }

    fn from_flat(mut flat: Vec<f64>, n_words: usize, n_topics: usize) -> Option<Self> {
        if flat.len() != (n_words + 1) * n_topics {
            return None;
        }
        let n_tokens = flat.split_off(n_words * n_topics);
        Some(NmfParameters { phi: flat, n_tokens })
    }
}

/// Result of a run of a sampler.
#[pyclass(frozen, get_all, module = "polyabayes._core")]
pub(crate) struct FitResult {
    /// φ, (V, K).
    word_topic: Py<PyArray2<f64>>,
    /// α and β of LDA, r and p of gamma-Poisson, tokens of each topic of NMF: (K,), and (1,), (K,)
    /// or (0,).
    others: [Py<PyArray1<f64>>; 2],
    /// ln of the joint density of the last state.
    ln_joint: f64,
    /// ln of the joint density after some of the sweeps.
    looks: Vec<Look>,
    /// State to go on from.
    state: Py<FitState>,
    /// The exception that cut the work short.
    interruption: Option<Py<PyAny>>,
}

impl FitResult {
    fn new<P: Flat>(
        py: Python<'_>,
        outcome: detach::Outcome<Fit<P>>,
        looks: Looks,
        n_words: usize,
    ) -> PyResult<Self> {
        let (fit, interruption) = outcome.into_parts(py);
        let Fit { parameters, progress, ln_joint } = fit;
        let (phi, others) = parameters.into_arrays();
        let n_topics = phi.len() / n_words;
        Ok(FitResult {
            word_topic: PyArray1::from_vec(py, phi).reshape([n_words, n_topics])?.unbind(),
            others: others.map(|values| PyArray1::from_vec(py, values).unbind()),
            ln_joint,
            looks: looks.seen,
            state: Py::new(py, FitState::of(py, progress))?,
            interruption,
        })
    }
}

/// Gibbs sampling of latent Dirichlet allocation, from `state` where it is given, until there are
/// `until` sweeps in all. `topic_priors`, (V, K), take the place of `beta`.
#[pyfunction]
#[pyo3(signature = (documents, alpha, beta, learned, schedule, *, until, look_every,
                    topic_priors = None, state = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "the model's priors, by name")]
pub(crate) fn fit_lda(
    py: Python<'_>,
    documents: &Documents,
    alpha: PyReadonlyArray1<'_, f64>,
    beta: f64,
    learned: bool,
    schedule: FitSchedule,
    until: u64,
    look_every: u64,
    topic_priors: Option<PyReadonlyArray2<'_, f64>>,
    state: Option<&FitState>,
    progress: Option<Py<PyAny>>,
) -> PyResult<FitResult> {
    let prior = LdaPrior { alpha: alpha.as_slice()?.to_vec(), beta, learned };
    let (n_words, n_topics) = (documents.0.n_words(), prior.alpha.len());
    let topic_priors = topic_priors.map(|p| p.as_slice().map(<[f64]>::to_vec)).transpose()?;
    let start = state.map(|state| state.to_core(py, n_words, n_topics)).transpose()?;
    let mut looks = Looks::new(look_every, schedule.max_iter);
    let outcome = detach::run(py, schedule.n_jobs, progress, |watch| {
        let mut sampler = LdaSampler::new(&documents.0, prior.clone(), schedule.seed)?;
        if let Some(priors) = topic_priors {
            // These tell which topic is which.
            sampler = sampler.with_topic_priors(priors)?;
        } else if start.is_none() {
            let topics = schedule.find_topics(&documents.0, &prior.alpha, prior.beta, watch)?;
            sampler = sampler.with_assignments(&topics)?;
        }
        let look = |n_sweeps, sampler: &_| looks.at(n_sweeps, sampler);
        fit_and_look(&mut sampler, schedule.to_core(), start, until, watch, look)
    })?;
    FitResult::new(py, outcome, looks, n_words)
}

/// Gibbs sampling of Poisson factor analysis; priors that are None keep their parameter fixed.
/// Collapsed, or blocked.
#[pyfunction]
#[pyo3(signature = (documents, shape, probability, topic_word_prior, probability_prior, shape_prior,
                    blocked, schedule, *, until, look_every, state = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "the model's parameters and priors, by name")]
pub(crate) fn fit_pfa(
    py: Python<'_>,
    documents: &Documents,
    shape: PyReadonlyArray1<'_, f64>,
    probability: PyReadonlyArray1<'_, f64>,
    topic_word_prior: f64,
    probability_prior: Option<(f64, f64)>,
    shape_prior: Option<(f64, f64)>,
    blocked: bool,
    schedule: FitSchedule,
    until: u64,
    look_every: u64,
    state: Option<&FitState>,
    progress: Option<Py<PyAny>>,
) -> PyResult<FitResult> {
    let (r, p) = (shape.as_slice()?.to_vec(), probability.as_slice()?.to_vec());
    let prior = PfaPrior {
        topic_word: topic_word_prior,
        probability: probability_prior,
        shape: shape_prior,
    };
    let (n_words, n_topics) = (documents.0.n_words(), r.len());
    let start = state.map(|state| state.to_core(py, n_words, n_topics)).transpose()?;
    let mut looks = Looks::new(look_every, schedule.max_iter);
    let outcome = detach::run(py, schedule.n_jobs, progress, |watch| {
        let scheme = if blocked { Scheme::Blocked } else { Scheme::Collapsed };
        let sampler = PfaSampler::new(&documents.0, prior, r.clone(), p, schedule.seed)?;
        let mut sampler = sampler.with_scheme(scheme);
        if start.is_none() {
            let topics = schedule.find_topics(&documents.0, &r, topic_word_prior, watch)?;
            sampler = sampler.with_assignments(&topics)?;
        }
        let look = |n_sweeps, sampler: &_| looks.at(n_sweeps, sampler);
        fit_and_look(&mut sampler, schedule.to_core(), start, until, watch, look)
    })?;
    FitResult::new(py, outcome, looks, n_words)
}

/// Multiplicative updates of non-negative matrix factorisation; nothing is averaged.
#[pyfunction]
#[pyo3(signature = (documents, n_topics, schedule, *, until, look_every, state = None,
                    progress = None))]
#[expect(clippy::too_many_arguments, reason = "what a part of a run takes, by name")]
pub(crate) fn fit_nmf(
    py: Python<'_>,
    documents: &Documents,
    n_topics: usize,
    schedule: FitSchedule,
    until: u64,
    look_every: u64,
    state: Option<&FitState>,
    progress: Option<Py<PyAny>>,
) -> PyResult<FitResult> {
    let n_words = documents.0.n_words();
    let start = state.map(|state| state.to_core(py, n_words, n_topics)).transpose()?;
    let mut looks = Looks::new(look_every, schedule.max_iter);
    let outcome = detach::run(py, schedule.n_jobs, progress, |watch| {
        let mut updates = NmfUpdates::new(&documents.0, n_topics, schedule.seed)?;
        if start.is_none() {
            let alpha = vec![NMF_START_ALPHA_SUM / n_topics as f64; n_topics];
            let topics = schedule.find_topics(&documents.0, &alpha, NMF_START_BETA, watch)?;
            updates = updates.with_assignments(&topics)?;
        }
        let schedule = Schedule { burn_in: u64::MAX, ..schedule.to_core() };
        let look = |n_sweeps, updates: &_| looks.at(n_sweeps, updates);
        fit_and_look(&mut updates, schedule, start, until, watch, look)
    })?;
    FitResult::new(py, outcome, looks, n_words)
}

/// Topic weights of documents under the topics of an NMF (V, K).
#[pyfunction]
#[pyo3(signature = (word_topic, documents, *, n_jobs, progress = None))]
pub(crate) fn transform_nmf<'py>(
    py: Python<'py>,
    word_topic: PyReadonlyArray2<'_, f64>,
    documents: &Documents,
    n_jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let phi = word_topic.as_slice()?;
    let outcome = detach::run(py, n_jobs, progress, |watch| nmf_weights(phi, &documents.0, watch))?;
    let n_documents = documents.0.n_documents();
    let shape = [n_documents, phi.len() / documents.0.n_words()];
    PyArray1::from_vec(py, outcome.uninterrupted()?).reshape(shape)
}

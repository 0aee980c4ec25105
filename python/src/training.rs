//! Training of topic models by Gibbs sampling.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use polyabayes::training::{
    BurstState, Chain, ChainState, Concentration, ExposureGroups, Globals, KnownGlobals,
    LdaGlobals, LdaPrior, MemoryTokens, PfaGlobals, PfaPrior, Position, Schedule, Tokens,
    TopicStart,
};
use polyabayes::{CountMatrix, Result};
use pyo3::prelude::*;

use crate::convert::Documents;
use crate::detach;
use crate::parts::{PositionTuple, ShardTokens, position};
use crate::regression::design;

type Floats<'py> = Bound<'py, PyArray1<f64>>;
type Words<'py> = Bound<'py, PyArray2<f64>>;
type Means<'py> = (Words<'py>, Words<'py>, Floats<'py>);
type Places<'py> = (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i32>>);
type Tables<'py> = ((Bound<'py, PyArray1<i64>>, Places<'py>), (usize, usize));

/// How long to sample, and what to keep: read from an object with these attributes.
#[derive(FromPyObject)]
pub(crate) struct FitSchedule {
    max_iter: u64,
    burn_in: u64,
    warm_up: u64,
    thin: u64,
    start_sweeps: u64,
    n_init: u64,
    seed: u64,
    n_jobs: usize,
}

/// State of a run to go on from: read from an object with these attributes.
#[derive(FromPyObject)]
pub(crate) struct RunState<'py> {
    position: PositionTuple,
    best: Option<(u64, f64)>,
    parameters: PyReadonlyArray1<'py, f64>,
    n_kept: u64,
    /// Sums over the kept sweeps of φ and the other parameters, as the core gives them.
    kept_sum: Option<PyReadonlyArray1<'py, f64>>,
    /// Coefficients of covariates and ln of learned concentrations of the sweeps after the burn-in, flat.
    kept_coefficients: Option<PyReadonlyArray1<'py, f64>>,
    /// The topic of every token, of documents in memory.
    assignments: Option<PyReadonlyArray1<'py, u16>>,
}

impl RunState<'_> {
    fn to_core(&self) -> PyResult<Before> {
        let state = ChainState {
            position: position(&self.position)?,
            best: self.best,
            parameters: self.parameters.as_slice()?.to_vec(),
            n_kept: self.n_kept,
        };
        let floats = |array: &Option<PyReadonlyArray1<'_, f64>>| {
            array.as_ref().map(|array| array.as_slice().map(<[f64]>::to_vec)).transpose()
        };
        let coefficients = floats(&self.kept_coefficients)?.unwrap_or_default();
        Ok(Before { state, kept_sum: floats(&self.kept_sum)?, coefficients })
    }
}

/// A state to go on from, and the kept sweeps before it.
struct Before {
    state: ChainState,
    kept_sum: Option<Vec<f64>>,
    coefficients: Vec<f64>,
}

/// Documents in memory, or an object that keeps them and the topics of their tokens elsewhere.
#[derive(FromPyObject)]
pub(crate) enum Source {
    Memory(Py<Documents>),
    Elsewhere(Py<PyAny>),
}

/// Concentrations of topics: one a topic, or how they are learned, "per topic" or "shared".
#[derive(FromPyObject)]
pub(crate) enum Concentrations<'py> {
    Fixed(PyReadonlyArray1<'py, f64>),
    Learned(String),
}

/// The concentrations that are given; `None` is LDA.
fn bursts(
    py: Python<'_>,
    given: Option<&Concentrations<'_>>,
    n_topics: usize,
) -> PyResult<Option<BurstState>> {
    let how = match given {
        None => return Ok(None),
        Some(Concentrations::Fixed(values)) => Concentration::Fixed(values.as_slice()?.to_vec()),
        Some(Concentrations::Learned(how)) if how == "shared" => Concentration::Shared,
        Some(Concentrations::Learned(_)) => Concentration::PerTopic,
    };
    detach::briefly(py, || BurstState::new(how, n_topics))
}

/// The log joint density after some sweeps: the number of the sweep, the value, and seconds since
/// the work began.
type Look = (u64, f64, f64);

enum AnyChain {
    Memory(Chain<MemoryTokens<Arc<CountMatrix>>>),
    Elsewhere(Chain<ShardTokens>),
}

/// Evaluates an expression of the chain, wherever its tokens are.
macro_rules! chain {
    ($chain:expr, $inner:ident => $value:expr) => {
        match $chain {
            AnyChain::Memory($inner) => $value,
            AnyChain::Elsewhere($inner) => $value,
        }
    };
}

/// A chain of Gibbs sampling between two sweeps.
#[pyclass(module = "polyabayes._core")]
pub(crate) struct Training {
    chain: AnyChain,
    n_jobs: usize,
}

#[pymethods]
impl Training {
    /// LDA; `topic_priors`, (V, K), take the place of `beta`, and tell which topic is which;
    /// `covariates`, (D, P) without the intercept, are those that α depends on; topics of a
    /// `topic_concentration` are bursty.
    #[staticmethod]
    #[pyo3(signature = (source, n_words, *, alpha, beta, learned, schedule, topic_priors = None,
                        covariates = None, topic_concentration = None, state = None))]
    fn lda(
        py: Python<'_>,
        source: Source,
        n_words: usize,
        alpha: PyReadonlyArray1<'_, f64>,
        beta: f64,
        learned: bool,
        schedule: FitSchedule,
        topic_priors: Option<PyReadonlyArray2<'_, f64>>,
        covariates: Option<PyReadonlyArray2<'_, f64>>,
        topic_concentration: Option<Concentrations<'_>>,
        state: Option<RunState<'_>>,
    ) -> PyResult<Self> {
        let bursts = bursts(py, topic_concentration.as_ref(), alpha.as_slice()?.len())?;
        let prior = LdaPrior { alpha: alpha.as_slice()?.to_vec(), beta, learned };
        let priors = topic_priors.map(|p| p.as_slice().map(<[f64]>::to_vec)).transpose()?;
        let start = priors.is_none().then(|| (prior.alpha.clone(), beta));
        let (seed, design) =
            (schedule.seed, covariates.map(|given| design(py, given)).transpose()?);
        let globals = move |_: Option<ExposureGroups>| {
            let mut globals = LdaGlobals::new(n_words, prior, seed)?.with_bursts(bursts);
            if let Some(priors) = priors {
                globals = globals.with_topic_priors(priors)?;
            }
            if let Some(design) = design {
                globals = globals.with_covariates(design)?;
            }
            Ok(Box::new(globals) as Box<dyn Globals>)
        };
        Training::new(py, source, (n_words, start), globals, &schedule, state)
    }

    /// Poisson factor analysis; priors that are None keep their parameter fixed; `covariates`, (D, P)
    /// without the intercept, are those that r depends on; topics of a `topic_concentration` are bursty.
    #[staticmethod]
    #[pyo3(signature = (source, n_words, *, n_documents, shape, probability, topic_word_prior,
                        probability_prior, shape_prior, schedule, covariates = None,
                        topic_concentration = None, state = None))]
    fn pfa(
        py: Python<'_>,
        source: Source,
        n_words: usize,
        n_documents: usize,
        shape: PyReadonlyArray1<'_, f64>,
        probability: PyReadonlyArray1<'_, f64>,
        topic_word_prior: f64,
        probability_prior: Option<(f64, f64)>,
        shape_prior: Option<(f64, f64)>,
        schedule: FitSchedule,
        covariates: Option<PyReadonlyArray2<'_, f64>>,
        topic_concentration: Option<Concentrations<'_>>,
        state: Option<RunState<'_>>,
    ) -> PyResult<Self> {
        let bursts = bursts(py, topic_concentration.as_ref(), shape.as_slice()?.len())?;
        let prior = PfaPrior {
            topic_word: topic_word_prior,
            probability: probability_prior,
            shape: shape_prior,
        };
        let (r, p) = (shape.as_slice()?.to_vec(), probability.as_slice()?.to_vec());
        let (start, seed) = (Some((r.clone(), topic_word_prior)), schedule.seed);
        let design = covariates.map(|given| design(py, given)).transpose()?;
        let globals = move |exposures: Option<ExposureGroups>| {
            let globals = PfaGlobals::new(n_words, n_documents, prior, r, p, seed)?;
            let mut globals = globals.with_bursts(bursts);
            if let Some(design) = design {
                globals = globals.with_covariates(design)?;
            }
            if let Some(exposures) = exposures {
                globals = globals.with_exposures(&exposures)?;
            }
            Ok(Box::new(globals) as Box<dyn Globals>)
        };
        Training::new(py, source, (n_words, start), globals, &schedule, state)
    }

    /// Known topics φ, (V, K), with pseudo-counts and urn weights over φ: only concentrations are
    /// learned.
    #[staticmethod]
    #[pyo3(signature = (source, *, prior, topics, factors, topic_concentration, schedule))]
    fn known(
        py: Python<'_>,
        source: Source,
        prior: PyReadonlyArray1<'_, f64>,
        topics: PyReadonlyArray2<'_, f64>,
        factors: PyReadonlyArray1<'_, f64>,
        topic_concentration: Concentrations<'_>,
        schedule: FitSchedule,
    ) -> PyResult<Self> {
        let (a, phi) = (prior.as_slice()?.to_vec(), topics.as_slice()?.to_vec());
        let (factors, n_words) = (factors.as_slice()?.to_vec(), topics.as_array().nrows());
        let bursts = bursts(py, Some(&topic_concentration), a.len())?;
        let globals = move |_: Option<ExposureGroups>| {
            let globals = KnownGlobals::new(a, phi, factors, bursts)?;
            Ok(Box::new(globals) as Box<dyn Globals>)
        };
        Training::new(py, source, (n_words, None), globals, &schedule, None)
    }

    /// Samples until there are `until` sweeps in all: looks, and the exception that cut it short.
    #[pyo3(signature = (until, look_every, progress = None))]
    fn run(
        &mut self,
        py: Python<'_>,
        until: u64,
        look_every: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Vec<Look>, Option<Py<PyAny>>)> {
        let (chain, mut looks, began) = (&mut self.chain, vec![], Instant::now());
        let outcome = detach::run(py, self.n_jobs, progress, |watch| {
            let look = |n_sweeps, value| {
                looks.push((n_sweeps, value, began.elapsed().as_secs_f64()));
            };
            match chain {
                AnyChain::Memory(chain) => chain.run(until, look_every, watch, look),
                AnyChain::Elsewhere(chain) => {
                    chain.tokens().listen(watch.flag());
                    chain.run(until, look_every, watch, look)
                }
            }
        })?;
        let ((), interruption) = outcome.into_parts(py);
        let failure = match &self.chain {
            AnyChain::Memory(_) => None,
            AnyChain::Elsewhere(chain) => chain.tokens().failure(),
        };
        let failure = failure.map(|error| error.into_value(py).into_any());
        Ok((looks, interruption.or(failure)))
    }

    /// Sweeps done.
    #[getter]
    fn n_sweeps(&self) -> u64 {
        chain!(&self.chain, chain => chain.n_sweeps())
    }

    /// Posterior means: φ (K, V), its standard deviations (K, V), and the other parameters, flat: α and
    /// β, or r and p, then λ and σ² of covariates, then ln of learned concentrations. With `release`,
    /// the memory of the current state is freed before; other methods make it again.
    fn mean<'py>(&mut self, py: Python<'py>, release: bool) -> PyResult<Means<'py>> {
        let (n_jobs, chain) = (self.n_jobs, &mut self.chain);
        let n_topics = chain!(chain, chain => chain.n_topics());
        let mean = |_: &detach::Watch| chain!(chain, chain => chain.mean(release));
        let (means, _) = detach::run(py, n_jobs, None, mean)?.into_parts(py);
        let table = |x: Vec<f64>| {
            let n_words = x.len() / n_topics;
            PyArray1::from_vec(py, x).reshape([n_topics, n_words])
        };
        Ok((table(means.topics)?, table(means.std)?, PyArray1::from_vec(py, means.others)))
    }

    /// The counts that φ rests on, of tokens that open tables of bursty topics, as a sparse matrix (K, V):
    /// those that are not 0, with their topics and words, and the shape.
    fn tables<'py>(&mut self, py: Python<'py>) -> PyResult<Tables<'py>> {
        let (n_jobs, chain) = (self.n_jobs, &mut self.chain);
        let k = chain!(&*chain, chain => chain.n_topics());
        let tables = |_: &detach::Watch| {
            chain!(&mut *chain, chain => chain.restore()?);
            let tables = chain!(&*chain, chain => chain.tables());
            let found = (0..).zip(tables).filter(|(_, n)| **n > 0);
            let found = found.map(|(i, &n)| (i64::from(n), ((i % k) as i32, (i / k) as i32)));
            Ok((found.unzip(), (k, tables.len() / k)))
        };
        let ((counts, (topics, words)), shape) =
            detach::run(py, n_jobs, None, tables)?.uninterrupted()?;
        let array = |x: Vec<i32>| PyArray1::from_vec(py, x);
        Ok(((PyArray1::from_vec(py, counts), (array(topics), array(words))), shape))
    }

    /// Parameters of the current state beside φ, flat, from which a run can go on.
    fn state_parameters<'py>(&self, py: Python<'py>) -> Floats<'py> {
        PyArray1::from_vec(py, chain!(&self.chain, chain => chain.state().parameters))
    }

    /// Parameters of the current state beside φ, flat: α and β; r, p and ln(1 - p); λ and σ² of
    /// covariates; ln of learned concentrations.
    fn parameters<'py>(&self, py: Python<'py>) -> Floats<'py> {
        PyArray1::from_vec(py, chain!(&self.chain, chain => chain.parameters()))
    }

    /// The topic of every token, cell after cell, document after document; of documents in memory.
    fn assignments<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u16>>> {
        match &self.chain {
            AnyChain::Memory(chain) => Some(PyArray1::from_vec(py, chain.tokens().topics())),
            AnyChain::Elsewhere(_) => None,
        }
    }

    /// Number of kept sweeps, and the sums of their parameters, for a later run.
    fn kept<'py>(&self, py: Python<'py>) -> (u64, Option<Floats<'py>>) {
        let (n, sum) = chain!(&self.chain, chain => (chain.state().n_kept, chain.kept_sum()));
        (n, sum.map(|sum| PyArray1::from_vec(py, sum)))
    }

    /// Coefficients of covariates of the sweeps after the burn-in, topics x (1 + covariates), and ln of
    /// learned concentrations, flat: one sweep after the other.
    fn kept_coefficients<'py>(&self, py: Python<'py>) -> Floats<'py> {
        PyArray1::from_slice(py, chain!(&self.chain, chain => chain.kept_coefficients()))
    }
}

impl Training {
    /// A chain from its start, or from a state; `start` are α, or what comes near it, and β.
    fn new(
        py: Python<'_>,
        source: Source,
        (n_words, start): (usize, Option<(Vec<f64>, f64)>),
        globals: impl FnOnce(Option<ExposureGroups>) -> Result<Box<dyn Globals>> + Send,
        schedule: &FitSchedule,
        state: Option<RunState<'_>>,
    ) -> PyResult<Self> {
        let &FitSchedule { max_iter, burn_in, warm_up, thin, seed, n_jobs, .. } = schedule;
        let start = start.map(|(alpha, beta)| {
            let (n_sweeps, n_starts) = (schedule.start_sweeps, schedule.n_init);
            TopicStart { n_words, alpha, beta, n_sweeps, n_starts }
        });
        let schedule = Schedule { max_iter, burn_in, warm_up, thin, seed };
        let before = state.as_ref().map(RunState::to_core).transpose()?;
        let assignments = state.as_ref().and_then(|state| state.assignments.as_ref());
        let assignments = assignments.map(|topics| topics.as_slice()).transpose()?;
        let begin = Begin { start, schedule, before };
        let chain = match source {
            Source::Memory(documents) => {
                let counts = Arc::clone(&documents.get().0);
                let new = |watch: &detach::Watch| {
                    let mut tokens = MemoryTokens::new(counts)?;
                    let globals = globals(tokens.exposures())?;
                    if let Some(topics) = assignments {
                        let n_topics = globals.pseudo_counts().n_topics();
                        tokens.set_topics(topics, n_topics)?;
                    }
                    begin.chain(globals, tokens, watch)
                };
                AnyChain::Memory(detach::run(py, n_jobs, None, new)?.uninterrupted()?)
            }
            Source::Elsewhere(object) => {
                let tokens = ShardTokens::new(object.bind(py))?;
                let failure = tokens.failures();
                let new = |watch: &detach::Watch| {
                    tokens.listen(watch.flag());
                    begin.chain(globals(tokens.exposures())?, tokens, watch)
                };
                let outcome = detach::run(py, n_jobs, None, new);
                let failure = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
                let chain = outcome.map_err(|error| failure.unwrap_or(error))?;
                AnyChain::Elsewhere(chain.uninterrupted()?)
            }
        };
        Ok(Training { chain, n_jobs })
    }
}

/// Where a chain begins.
struct Begin {
    start: Option<TopicStart>,
    schedule: Schedule,
    before: Option<Before>,
}

impl Begin {
    fn chain<T: Tokens>(
        self,
        globals: Box<dyn Globals>,
        tokens: T,
        watch: &detach::Watch,
    ) -> Result<Chain<T>> {
        let (start, schedule) = (self.start.as_ref(), self.schedule);
        match self.before {
            Some(Before { state, kept_sum, coefficients })
                if matches!(state.position, Position::Chain { .. }) =>
            {
                Chain::resumed(globals, tokens, schedule, &state, kept_sum)?
                    .with_kept_coefficients(coefficients)
            }
            begun => {
                let begun = begun.as_ref().map(|before| &before.state);
                Chain::new(globals, tokens, schedule, start, begun, watch)
            }
        }
    }
}

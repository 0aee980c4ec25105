//! Training on parts of a corpus: what is drawn once for all of them, and a part within a sweep.

use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1,
    PyReadwriteArray2,
};
use polyabayes::Result;
use polyabayes::math::ExactSum;
use polyabayes::training::{
    self, ExposedPart, ExposedTokens, FirstTopics, Globals, Kept, LdaGlobals, LdaPrior,
    LnDocuments, Part, PfaGlobals, PfaPrior, Scheme, Sweep, Swept, TopicWeights,
};
use pyo3::prelude::*;

use crate::convert::Documents;
use crate::training::{FitSchedule, Flat, Means, kept_sum};
use crate::{detach, errors};

type Floats<'py> = Bound<'py, PyArray1<f64>>;
/// Sweeps done, the parameters beside φ, sweeps kept and their sum.
type ChainState<'py> = (u64, Vec<f64>, u64, Option<PyReadonlyArray1<'py, f64>>);
/// Tokens of every topic by exposure in a part: first entries of topics and the end, (K + 1,), numbers
/// of exposures and tokens.
type Exposed<'py> =
    (PyReadonlyArray1<'py, u64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u32>);
type NewExposed<'py> = (Bound<'py, PyArray1<u64>>, Numbers<'py>, Numbers<'py>);
type Table<'py> = Bound<'py, PyArray2<f64>>;
type Topics<'py> = Bound<'py, PyArray1<u16>>;
type Numbers<'py> = Bound<'py, PyArray1<u32>>;

/// The scales of φ, the pseudo-counts of documents and perhaps the rates.
type Urns<'py> = (Floats<'py>, Floats<'py>, Option<Floats<'py>>);

/// φ up to the scale of each topic, word-major: an array, or where it is drawn.
#[derive(FromPyObject)]
pub(crate) enum Weights<'py> {
    Array(PyReadonlyArray2<'py, f64>),
    Chain(PyRef<'py, ShardedChain>),
    Start(PyRef<'py, ShardedStart>),
}

impl Weights<'_> {
    fn as_slice(&self) -> PyResult<&[f64]> {
        match self {
            Weights::Array(weights) => Ok(weights.as_slice()?),
            Weights::Chain(chain) => Ok(chain.inner.weights().0),
            Weights::Start(start) => Ok(start.inner.weights().0),
        }
    }
}

/// Words x topics, as they are in memory.
fn table<'py>(py: Python<'py>, values: &[f64], n_topics: usize) -> PyResult<Table<'py>> {
    PyArray1::from_slice(py, values).reshape([values.len() / n_topics, n_topics])
}

/// Blocks of documents and the order of their tokens: read from an object with these attributes.
#[derive(FromPyObject)]
pub(crate) struct Blocks<'py> {
    n_documents: PyReadonlyArray1<'py, u64>,
    /// First token of each word of each block and the end, (blocks, V + 1).
    word_starts: PyReadonlyArray2<'py, u32>,
    token_documents: PyReadonlyArray1<'py, u16>,
    documents_before: usize,
    longest: u64,
    documents: Option<Py<Documents>>,
}

impl Blocks<'_> {
    pub(crate) fn to_core(&self) -> PyResult<Part<'_>> {
        Ok(Part {
            n_words: self.word_starts.as_array().ncols().saturating_sub(1),
            n_documents: self.n_documents.as_slice()?,
            word_starts: self.word_starts.as_slice()?,
            token_documents: self.token_documents.as_slice()?,
            documents_before: self.documents_before,
            longest: self.longest,
            counts: self.documents.as_ref().map(|documents| &documents.get().0),
        })
    }
}

/// Order of the tokens of a block: the first of each word and the end (V + 1,), and their documents.
#[pyfunction]
pub(crate) fn order_tokens<'py>(
    py: Python<'py>,
    documents: &Documents,
) -> PyResult<(Bound<'py, PyArray1<u32>>, Topics<'py>)> {
    let (starts, numbers) = detach::briefly(py, || training::order_tokens(&documents.0))?;
    Ok((PyArray1::from_vec(py, starts), PyArray1::from_vec(py, numbers)))
}

/// Topics that are in the order of documents and cells, in the order of the blocks.
#[pyfunction]
pub(crate) fn order_topics<'py>(
    py: Python<'py>,
    blocks: Blocks<'py>,
    topics: PyReadonlyArray1<'py, u16>,
) -> PyResult<Topics<'py>> {
    let (part, topics) = (blocks.to_core()?, topics.as_slice()?);
    let ordered = detach::briefly(py, || training::order_topics(part, topics))?;
    Ok(PyArray1::from_vec(py, ordered))
}

/// Draws the topics of all tokens of some blocks anew and adds them to `totals`, (V, K): the tables of
/// each topic, (K,). `sweep` is the number of a sweep of the chain, with `run` of a start; `blocked`
/// tells how the chain draws.
#[pyfunction]
#[pyo3(signature = (blocks, topics, weights, scale, a, rates, totals, *, seed, run, sweep, blocked,
                    tables, n_jobs))]
#[expect(clippy::too_many_arguments, reason = "blocks and their sweep, by name")]
pub(crate) fn sweep_part<'py>(
    py: Python<'py>,
    blocks: Blocks<'py>,
    mut topics: PyReadwriteArray1<'py, u16>,
    weights: Weights<'py>,
    scale: PyReadonlyArray1<'py, f64>,
    a: PyReadonlyArray1<'py, f64>,
    rates: Option<PyReadonlyArray1<'py, f64>>,
    mut totals: PyReadwriteArray2<'py, u32>,
    seed: u64,
    run: Option<u64>,
    sweep: u64,
    blocked: bool,
    tables: bool,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let part = blocks.to_core()?;
    let (weights, scale, a) = (weights.as_slice()?, scale.as_slice()?, a.as_slice()?);
    let rates = rates.as_ref().map(|rates| rates.as_slice()).transpose()?;
    let weights = TopicWeights { a, weights, scale, rates };
    let scheme = if blocked { Scheme::Blocked } else { Scheme::Collapsed };
    let sweep = match run {
        Some(run) => Sweep::Start { run, sweep },
        None => Sweep::Chain { sweep, scheme },
    };
    let (topics, totals) = (topics.as_slice_mut()?, totals.as_slice_mut()?);
    let outcome = detach::run(py, n_jobs, None, |watch| {
        training::sweep_part(part, topics, weights, (seed, sweep), tables, totals, watch)
    })?;
    Ok(PyArray1::from_vec(py, outcome.uninterrupted()?))
}

/// Adds the tokens of some blocks to `totals`, (V, K).
#[pyfunction]
pub(crate) fn count_part(
    py: Python<'_>,
    blocks: Blocks<'_>,
    topics: PyReadonlyArray1<'_, u16>,
    mut totals: PyReadwriteArray2<'_, u32>,
) -> PyResult<()> {
    let n_topics = totals.as_array().ncols();
    let part = blocks.to_core()?;
    let (topics, totals) = (topics.as_slice()?, totals.as_slice_mut()?);
    detach::briefly(py, || training::count_part(part, topics, n_topics, totals))
}

/// Tokens of every topic by exposure in each of some blocks, given the number of the exposure of each of
/// their documents.
#[pyfunction]
pub(crate) fn exposed_of_part<'py>(
    py: Python<'py>,
    blocks: Blocks<'py>,
    topics: PyReadonlyArray1<'py, u16>,
    n_topics: usize,
    exposures: PyReadonlyArray1<'py, u32>,
    n_jobs: usize,
) -> PyResult<Vec<NewExposed<'py>>> {
    let (part, topics, exposures) = (blocks.to_core()?, topics.as_slice()?, exposures.as_slice()?);
    let work = |_: &detach::Watch| training::exposed_of_part(part, topics, n_topics, exposures);
    let found = detach::run(py, n_jobs, None, work)?.uninterrupted()?;
    let arrays = |part: ExposedTokens| {
        let [exposures, tokens] =
            [part.exposures, part.tokens].map(|values| PyArray1::from_vec(py, values));
        (PyArray1::from_vec(py, part.starts), exposures, tokens)
    };
    Ok(found.into_iter().map(arrays).collect())
}

/// Sums over the documents of some blocks of ln of their urns and of ln of the rising factorials of
/// their lengths, in units of which the sums over all parts are exact.
#[pyfunction]
pub(crate) fn ln_urns_of_part(
    py: Python<'_>,
    blocks: Blocks<'_>,
    topics: PyReadonlyArray1<'_, u16>,
    a: PyReadonlyArray1<'_, f64>,
) -> PyResult<(i128, i128)> {
    let (part, topics, a) = (blocks.to_core()?, topics.as_slice()?, a.as_slice()?);
    let (urns, lengths) = detach::briefly(py, || training::ln_urns_of_part(part, topics, a))?;
    Ok((urns.parts(), lengths.parts()))
}

/// Uniform topics of tokens, one after the other.
#[pyclass(module = "polyabayes._core", name = "FirstTopics")]
pub(crate) struct PyFirstTopics(FirstTopics);

#[pymethods]
impl PyFirstTopics {
    /// Those of the next tokens.
    fn next<'py>(&mut self, py: Python<'py>, n_tokens: usize) -> Bound<'py, PyArray1<u16>> {
        let mut topics = vec![0; n_tokens];
        self.0.fill(&mut topics);
        PyArray1::from_vec(py, topics)
    }
}

/// The part of a start that belongs to no document. Counts are those of all parts in sum, (V, K).
#[pyclass(module = "polyabayes._core")]
pub(crate) struct ShardedStart {
    inner: training::ShardedStart,
    n_jobs: usize,
}

#[pymethods]
impl ShardedStart {
    #[new]
    fn new(
        py: Python<'_>,
        n_words: usize,
        alpha: PyReadonlyArray1<'_, f64>,
        beta: f64,
        schedule: FitSchedule,
        run: u64,
    ) -> PyResult<Self> {
        let alpha = alpha.as_slice()?.to_vec();
        let (n_sweeps, seed, n_jobs) = (schedule.start_sweeps, schedule.seed, schedule.n_jobs);
        let new = || training::ShardedStart::new(n_words, alpha, beta, n_sweeps, seed, run);
        Ok(ShardedStart { inner: detach::briefly(py, new)?, n_jobs })
    }

    /// Topics at first.
    #[getter]
    fn n_topics(&self) -> usize {
        self.inner.n_topics()
    }

    fn first_topics(&self) -> PyFirstTopics {
        PyFirstTopics(self.inner.first_topics())
    }

    /// Sets φ for the sweep of this number; the scales and the pseudo-counts, no rates.
    fn prepare<'py>(
        &mut self,
        py: Python<'py>,
        counts: PyReadonlyArray2<'py, u32>,
        sweep: u64,
    ) -> PyResult<Urns<'py>> {
        let (inner, counts) = (&mut self.inner, counts.as_slice()?);
        let prepare = |_: &detach::Watch| inner.prepare(counts, sweep);
        detach::run(py, self.n_jobs, None, prepare)?.uninterrupted()?;
        let (_, scale, a) = self.inner.weights();
        let floats = |values| PyArray1::from_slice(py, values);
        Ok((floats(scale), floats(a), None))
    }

    /// φ up to the scale of each topic, (V, K).
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Table<'py>> {
        let (weights, _, a) = self.inner.weights();
        table(py, weights, a.len())
    }

    /// The number that each topic has after all mergers.
    fn merge<'py>(
        &mut self,
        py: Python<'py>,
        counts: PyReadonlyArray2<'py, u32>,
    ) -> PyResult<Bound<'py, PyArray1<u16>>> {
        let (inner, counts) = (&mut self.inner, counts.as_slice()?);
        let outcome = detach::run(py, self.n_jobs, None, |watch| inner.merge(counts, watch))?;
        Ok(PyArray1::from_vec(py, outcome.uninterrupted()?))
    }

    /// Pseudo-counts of documents after the mergers.
    fn pseudo_counts<'py>(&self, py: Python<'py>) -> Floats<'py> {
        PyArray1::from_vec(py, self.inner.pseudo_counts())
    }

    /// ln of the joint density after the mergers, up to a constant.
    fn ln_joint(
        &self,
        py: Python<'_>,
        counts: PyReadonlyArray2<'_, u32>,
        ln_urns: i128,
    ) -> PyResult<f64> {
        let (counts, ln_urns) = (counts.as_slice()?, ExactSum::from_parts(ln_urns));
        let work = |_: &detach::Watch| self.inner.ln_joint(counts, ln_urns);
        detach::run(py, self.n_jobs, None, work)?.uninterrupted()
    }

    /// New numbers of topics with so many tokens each, the largest where its prior is largest.
    fn numbers_by_size<'py>(
        &self,
        py: Python<'py>,
        n_tokens: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyArray1<u16>>> {
        let n_tokens = n_tokens.as_slice()?;
        let numbers = detach::briefly(py, || self.inner.numbers_by_size(n_tokens))?;
        Ok(PyArray1::from_vec(py, numbers))
    }
}

/// A chain of any model, φ and the other parameters as arrays.
trait Chain: Send + Sync {
    fn n_sweeps(&self) -> u64;
    fn parameters(&self) -> Vec<f64>;
    fn pseudo_counts(&self) -> &[f64];
    fn n_kept(&self) -> u64;
    fn kept(&self) -> (u64, Option<Vec<f64>>);
    fn weights(&self) -> (&[f64], &[f64]);
    fn rates(&self) -> Option<&[f64]>;
    fn n_exposures(&self) -> usize;
    fn advance(&mut self, counts: &[u32], swept: Swept<'_>) -> Result<()>;
    fn mean(&self, counts: &[u32]) -> Result<Means>;
    fn ln_joint(&self, counts: &[u32], documents: LnDocuments<'_>) -> Result<f64>;
}

impl<G> Chain for training::ShardedChain<G>
where
    G: Globals<Parameters: Flat + Send + Sync> + Send + Sync,
{
    fn n_sweeps(&self) -> u64 {
        self.n_sweeps()
    }

    fn parameters(&self) -> Vec<f64> {
        self.parameters()
    }

    fn pseudo_counts(&self) -> &[f64] {
        self.pseudo_counts()
    }

    fn n_kept(&self) -> u64 {
        self.kept().n
    }

    fn kept(&self) -> (u64, Option<Vec<f64>>) {
        let kept = self.kept();
        (kept.n, kept.sum.clone().map(Flat::into_flat))
    }

    fn weights(&self) -> (&[f64], &[f64]) {
        self.weights()
    }

    fn rates(&self) -> Option<&[f64]> {
        self.rates()
    }

    fn n_exposures(&self) -> usize {
        self.n_exposures()
    }

    fn advance(&mut self, counts: &[u32], swept: Swept<'_>) -> Result<()> {
        self.advance(counts, swept)
    }

    fn mean(&self, counts: &[u32]) -> Result<Means> {
        Ok(self.mean(counts)?.into_arrays())
    }

    fn ln_joint(&self, counts: &[u32], documents: LnDocuments<'_>) -> Result<f64> {
        self.ln_joint(counts, documents)
    }
}

/// The part of a chain that belongs to no document. Counts are those of all parts in sum, (V, K).
#[pyclass(module = "polyabayes._core")]
pub(crate) struct ShardedChain {
    inner: Box<dyn Chain>,
    n_jobs: usize,
}

#[pymethods]
impl ShardedChain {
    /// LDA; `state` is the number of sweeps, the parameters, the number of kept sweeps and their sum.
    #[staticmethod]
    #[pyo3(signature = (n_words, alpha, beta, learned, schedule, counts, state = None))]
    #[expect(clippy::too_many_arguments, reason = "the model's priors, by name")]
    fn lda(
        py: Python<'_>,
        n_words: usize,
        alpha: PyReadonlyArray1<'_, f64>,
        beta: f64,
        learned: bool,
        schedule: FitSchedule,
        counts: PyReadonlyArray2<'_, u32>,
        state: Option<ChainState<'_>>,
    ) -> PyResult<Self> {
        let prior = LdaPrior { alpha: alpha.as_slice()?.to_vec(), beta, learned };
        let globals = LdaGlobals::new(n_words, prior, schedule.seed);
        let globals = globals.map_err(|error| errors::to_python(py, &error))?;
        Self::of(py, globals, n_words, &schedule, counts, state)
    }

    /// Poisson factor analysis of so many documents; priors that are None keep their parameter fixed.
    /// `exposures` are the different ones in increasing order, and the number of documents of each.
    #[staticmethod]
    #[pyo3(signature = (n_words, n_documents, exposures, shape, probability, topic_word_prior,
                        probability_prior, shape_prior, schedule, counts, state = None))]
    #[expect(clippy::too_many_arguments, reason = "the model's parameters and priors, by name")]
    fn pfa(
        py: Python<'_>,
        n_words: usize,
        n_documents: usize,
        exposures: Option<(PyReadonlyArray1<'_, f64>, PyReadonlyArray1<'_, u64>)>,
        shape: PyReadonlyArray1<'_, f64>,
        probability: PyReadonlyArray1<'_, f64>,
        topic_word_prior: f64,
        probability_prior: Option<(f64, f64)>,
        shape_prior: Option<(f64, f64)>,
        schedule: FitSchedule,
        counts: PyReadonlyArray2<'_, u32>,
        state: Option<ChainState<'_>>,
    ) -> PyResult<Self> {
        let prior = PfaPrior {
            topic_word: topic_word_prior,
            probability: probability_prior,
            shape: shape_prior,
        };
        let (r, p) = (shape.as_slice()?.to_vec(), probability.as_slice()?.to_vec());
        let mut globals = PfaGlobals::new(n_words, n_documents, prior, r, p, schedule.seed);
        if let Some((values, n)) = exposures {
            let (values, n) = (values.as_slice()?, n.as_slice()?);
            globals = globals.and_then(|globals| globals.with_exposures(values, n));
        }
        let globals = globals.map_err(|error| errors::to_python(py, &error))?;
        Self::of(py, globals, n_words, &schedule, counts, state)
    }

    #[getter]
    fn n_sweeps(&self) -> u64 {
        self.inner.n_sweeps()
    }

    /// Parameters beside φ, one array after the other: α and β; r, p and ln(1 - p).
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> Floats<'py> {
        PyArray1::from_vec(py, self.inner.parameters())
    }

    /// Pseudo-counts of documents: α, or r.
    #[getter]
    fn pseudo_counts<'py>(&self, py: Python<'py>) -> Floats<'py> {
        PyArray1::from_slice(py, self.inner.pseudo_counts())
    }

    /// Number of kept sweeps.
    #[getter]
    fn n_kept(&self) -> u64 {
        self.inner.n_kept()
    }

    /// Number of kept sweeps, and the sum of their parameters, flat.
    fn kept<'py>(&self, py: Python<'py>) -> (u64, Option<Floats<'py>>) {
        let (n, sum) = self.inner.kept();
        (n, sum.map(|sum| PyArray1::from_vec(py, sum)))
    }

    /// The scales of φ, the pseudo-counts, and the rates where documents have exposures, for the next
    /// sweep.
    fn urns<'py>(&self, py: Python<'py>) -> Urns<'py> {
        let floats = |values| PyArray1::from_slice(py, values);
        let rates = self.inner.rates().map(floats);
        (floats(self.inner.weights().1), self.pseudo_counts(py), rates)
    }

    /// φ up to the scale of each topic, (V, K).
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Table<'py>> {
        let (weights, scale) = self.inner.weights();
        table(py, weights, scale.len())
    }

    /// Takes up a sweep over all tokens; gives the exception, if any, that came meanwhile.
    fn advance(
        &mut self,
        py: Python<'_>,
        counts: PyReadonlyArray2<'_, u32>,
        n_tables: PyReadonlyArray1<'_, u64>,
        lengths: PyReadonlyArray1<'_, u32>,
        exposed: Vec<Exposed<'_>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let counts = counts.as_slice()?;
        let exposed = &exposed_parts(py, &exposed, self.inner.n_exposures())?;
        let swept = Swept { n_tables: n_tables.as_slice()?, lengths: lengths.as_slice()?, exposed };
        let inner = &mut self.inner;
        let advance = |_: &detach::Watch| inner.advance(counts, swept);
        Ok(detach::run(py, self.n_jobs, None, advance)?.into_parts(py).1)
    }

    /// Posterior means: φ (V, K), and α and β (1,), or r and p.
    fn mean<'py>(
        &self,
        py: Python<'py>,
        counts: PyReadonlyArray2<'py, u32>,
    ) -> PyResult<(Table<'py>, [Floats<'py>; 2])> {
        let counts = counts.as_slice()?;
        let mean = |_: &detach::Watch| self.inner.mean(counts);
        let ((phi, others), _) = detach::run(py, self.n_jobs, None, mean)?.into_parts(py);
        let n_topics = self.inner.pseudo_counts().len();
        let phi = PyArray1::from_vec(py, phi);
        let phi = phi.reshape([phi.len()? / n_topics, n_topics])?;
        Ok((phi, others.map(|values| PyArray1::from_vec(py, values))))
    }

    /// ln of the joint density, from the sums over all parts.
    fn ln_joint(
        &self,
        py: Python<'_>,
        counts: PyReadonlyArray2<'_, u32>,
        ln_urns: i128,
        ln_lengths: i128,
        exposed: Vec<Exposed<'_>>,
    ) -> PyResult<f64> {
        let counts = counts.as_slice()?;
        let [ln_urns, ln_lengths] = [ln_urns, ln_lengths].map(ExactSum::from_parts);
        let exposed = &exposed_parts(py, &exposed, self.inner.n_exposures())?;
        let documents = LnDocuments { ln_urns, ln_lengths, exposed };
        let work = |_: &detach::Watch| self.inner.ln_joint(counts, documents);
        detach::run(py, self.n_jobs, None, work)?.uninterrupted()
    }
}

/// Tokens of every topic by exposure, checked.
fn exposed_parts<'a>(
    py: Python<'_>,
    parts: &'a [Exposed<'_>],
    n_exposures: usize,
) -> PyResult<Vec<ExposedPart<'a>>> {
    let part = |(starts, exposures, tokens): &'a Exposed<'_>| {
        let (starts, exposures) = (starts.as_slice()?, exposures.as_slice()?);
        let part = ExposedPart::new(starts, exposures, tokens.as_slice()?, n_exposures);
        part.map_err(|error| errors::to_python(py, &error))
    };
    parts.iter().map(part).collect()
}

impl ShardedChain {
    /// The chain of these parameters, from its start or from a state.
    fn of<G>(
        py: Python<'_>,
        globals: G,
        n_words: usize,
        schedule: &FitSchedule,
        counts: PyReadonlyArray2<'_, u32>,
        state: Option<ChainState<'_>>,
    ) -> PyResult<Self>
    where
        G: Globals<Parameters: Flat + Send + Sync> + Send + Sync + 'static,
    {
        let (counts, n_topics) = (counts.as_slice()?, globals.pseudo_counts().len());
        let mut before = None;
        if let Some((n_sweeps, parameters, n, sum)) = state {
            let sum = sum.map(|sum| sum.as_slice().map(<[f64]>::to_vec)).transpose()?;
            let sum = sum.map(|sum| kept_sum(sum, n_words, n_topics)).transpose();
            let sum = sum.map_err(|error| errors::to_python(py, &error))?;
            before = Some((n_sweeps, parameters, Kept { n, sum }));
        }
        let outcome = detach::run(py, schedule.n_jobs, None, |_| {
            let chain = training::ShardedChain::new(globals, schedule.to_core(), counts)?;
            match before {
                Some((n, parameters, kept)) => chain.resumed(n, &parameters, kept, counts),
                None => Ok(chain),
            }
        })?;
        let inner = Box::new(outcome.uninterrupted()?);
        Ok(ShardedChain { inner, n_jobs: schedule.n_jobs })
    }
}

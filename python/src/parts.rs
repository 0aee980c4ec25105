//! Tokens of a corpus that are elsewhere: in the hands of a Python object, part by part.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use numpy::{
    PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1,
    PyReadwriteArray2,
};
use polyabayes::math::ExactSum;
use polyabayes::training::{
    self, BurstWeights, ChainState, CorpusSizes, ExposedTokens, ExposureGroups, FirstTopics, Part,
    Position, PseudoCounts, SweptTokens, Tokens, TopicWeights,
};
use polyabayes::{Error, Observer, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::Documents;
use crate::detach;

type Numbers<'py> = Bound<'py, PyArray1<u32>>;
type TopicArray<'py> = Bound<'py, PyArray1<u16>>;
/// Tokens of every topic by exposure in a part: first entries of topics and the end, (K + 1,), numbers
/// of exposures and tokens.
type NewExposed<'py> = (Bound<'py, PyArray1<u64>>, Numbers<'py>, Numbers<'py>);
type Exposed<'py> =
    (PyReadonlyArray1<'py, u64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u32>);

/// A position as its phase, start and sweep.
pub(crate) type PositionTuple = (String, u64, u64);

pub(crate) fn position_tuple(position: Position) -> (&'static str, u64, u64) {
    match position {
        Position::Start { run, sweep } => ("start", run, sweep),
        Position::Merged { run } => ("merged", run, 0),
        Position::Chain { sweep } => ("sweep", 0, sweep),
    }
}

pub(crate) fn position((phase, run, sweep): &PositionTuple) -> PyResult<Position> {
    let (run, sweep) = (*run, *sweep);
    match phase.as_str() {
        "start" => Ok(Position::Start { run, sweep }),
        "merged" => Ok(Position::Merged { run }),
        "sweep" => Ok(Position::Chain { sweep }),
        _ => Err(PyValueError::new_err(format!("no phase of a run is called {phase:?}"))),
    }
}

/// Uniform topics of tokens, one after the other.
#[pyclass(module = "polyabayes._core", name = "FirstTopics")]
pub(crate) struct PyFirstTopics(FirstTopics);

#[pymethods]
impl PyFirstTopics {
    /// Topics of the next tokens.
    fn next<'py>(&mut self, py: Python<'py>, n_tokens: usize) -> TopicArray<'py> {
        let mut topics = vec![0; n_tokens];
        self.0.fill(&mut topics);
        PyArray1::from_vec(py, topics)
    }
}

/// Whether the work is to stop, for an object that waits for others.
#[pyclass(frozen, module = "polyabayes._core")]
struct StopFlag(Arc<AtomicBool>);

#[pymethods]
impl StopFlag {
    fn __call__(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Topics of tokens in the hands of a Python object, by whose methods a sweep is done.
pub(crate) struct ShardTokens {
    object: Py<PyAny>,
    lengths: Vec<u32>,
    exposures: Option<ExposureGroups>,
    failure: Arc<Mutex<Option<PyErr>>>,
}

impl ShardTokens {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let lengths: PyReadonlyArray1<'_, u32> = object.getattr("lengths")?.extract()?;
        let exposures: Option<(PyReadonlyArray1<'_, f64>, PyReadonlyArray1<'_, u32>)> =
            object.getattr("exposure_groups")?.extract()?;
        let exposures = exposures.map(|(values, numbers)| -> PyResult<_> {
            let (values, numbers) = (values.as_slice()?.to_vec(), numbers.as_slice()?.to_vec());
            Ok(ExposureGroups { values, numbers })
        });
        Ok(ShardTokens {
            lengths: lengths.as_slice()?.to_vec(),
            exposures: exposures.transpose()?,
            object: object.clone().unbind(),
            failure: Arc::default(),
        })
    }

    /// Lets the object see whether the work is to stop.
    pub(crate) fn listen(&self, flag: Arc<AtomicBool>) {
        Python::attach(|py| {
            let set = Py::new(py, StopFlag(flag))
                .and_then(|flag| self.object.bind(py).setattr("stopped", flag));
            if let Err(error) = set {
                *self.lock() = Some(error);
            }
        });
    }

    /// The exception that a method of the object raised last, which ended the work.
    pub(crate) fn failure(&self) -> Option<PyErr> {
        self.lock().take()
    }

    /// Where that exception is.
    pub(crate) fn failures(&self) -> Arc<Mutex<Option<PyErr>>> {
        Arc::clone(&self.failure)
    }

    fn lock(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the object; an exception is kept for whoever began the work, which ends.
    fn call<T>(&self, work: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<T>) -> Result<T> {
        Python::attach(|py| work(self.object.bind(py))).map_err(|error| {
            *self.lock() = Some(error);
            Error::Stopped
        })
    }
}

/// Pseudo-counts that all documents share, as workers are told them.
fn shared(a: PseudoCounts<'_>) -> Result<&[f64]> {
    if a.is_grouped() { Err(Error::Empty { name: "covariates of shards" }) } else { Ok(a.first()) }
}

/// Copies counts (V, K) of the expected size.
fn copy_counts(counts: &Bound<'_, PyAny>, to: &mut [u32]) -> PyResult<()> {
    let counts: PyReadonlyArray2<'_, u32> = counts.extract()?;
    let counts = counts.as_slice()?;
    if counts.len() != to.len() {
        return Err(PyValueError::new_err("counts of words by topic have another size"));
    }
    to.copy_from_slice(counts);
    Ok(())
}

impl Tokens for ShardTokens {
    fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    fn exposures(&self) -> Option<ExposureGroups> {
        self.exposures.clone()
    }

    fn draw_first(&mut self, at: Position, topics: FirstTopics) -> Result<()> {
        self.call(|object| {
            let arguments = (position_tuple(at), PyFirstTopics(topics));
            object.call_method1("draw_first", arguments).map(drop)
        })
    }

    fn count(&mut self, at: Position, n_topics: usize, counts: &mut [u32]) -> Result<()> {
        self.call(|object| {
            let found = object.call_method1("count", (position_tuple(at), n_topics))?;
            copy_counts(&found, counts)
        })
    }

    fn sweep(
        &mut self,
        to: Position,
        weights: TopicWeights<'_>,
        _: u64,
        tables: bool,
        counts: &mut [u32],
        observer: &dyn Observer,
    ) -> Result<SweptTokens> {
        observer.check_stop()?;
        let TopicWeights { a, weights, scale, rates, bursts } = weights;
        if bursts.is_some() {
            return Err(Error::Empty { name: "bursty topics of shards" });
        }
        let a = shared(a)?;
        self.call(|object| {
            let floats = |values| PyArray1::from_slice(object.py(), values);
            let weights = floats(weights).reshape([weights.len() / a.len(), a.len()])?;
            let urns = (weights, floats(scale), floats(a), rates.map(floats));
            let found = object.call_method1("sweep", (position_tuple(to), urns, tables))?;
            let (found, n_tables): (Bound<'_, PyAny>, PyReadonlyArray1<'_, u64>) =
                found.extract()?;
            copy_counts(&found, counts)?;
            Ok(SweptTokens { n_tables: n_tables.as_slice()?.to_vec(), ..SweptTokens::default() })
        })
    }

    fn renumber(&mut self, from: Position, to: Position, numbers: &[u16]) -> Result<()> {
        self.call(|object| {
            let numbers = PyArray1::from_slice(object.py(), numbers);
            let arguments = (position_tuple(from), position_tuple(to), numbers);
            object.call_method1("renumber", arguments).map(drop)
        })
    }

    fn ln_urns(&mut self, at: Position, a: PseudoCounts<'_>) -> Result<ExactSum> {
        let a = shared(a)?;
        self.call(|object| {
            let a = PyArray1::from_slice(object.py(), a);
            let sum = object.call_method1("ln_urns", (position_tuple(at), a))?;
            Ok(ExactSum::from_parts(sum.extract()?))
        })
    }

    fn ln_bursts(&mut self, _: TopicWeights<'_>, _: BurstWeights<'_>) -> Result<ExactSum> {
        Err(Error::Empty { name: "bursty topics of shards" })
    }

    fn exposed(&mut self, at: Position, n_topics: usize) -> Result<Vec<ExposedTokens>> {
        self.call(|object| {
            let found = object.call_method1("exposed", (position_tuple(at), n_topics))?;
            let parts: Vec<Exposed<'_>> = found.extract()?;
            let part = |(starts, exposures, tokens): Exposed<'_>| {
                Ok(ExposedTokens {
                    starts: starts.as_slice()?.to_vec(),
                    exposures: exposures.as_slice()?.to_vec(),
                    tokens: tokens.as_slice()?.to_vec(),
                })
            };
            parts.into_iter().map(part).collect()
        })
    }

    fn keeps_states(&self) -> bool {
        true
    }

    fn commit(&mut self, state: &ChainState, kept_sum: Option<&[f64]>) -> Result<()> {
        self.call(|object| {
            let floats = |values| PyArray1::from_slice(object.py(), values);
            let at = position_tuple(state.position);
            let parameters = floats(&state.parameters[..]);
            let kept = (state.n_kept, kept_sum.map(floats));
            object.call_method1("commit", (at, state.best, parameters, kept)).map(drop)
        })
    }
}

/// Blocks of documents and the order of their tokens: read from an object with these attributes.
#[derive(FromPyObject)]
pub(crate) struct Blocks<'py> {
    n_documents: PyReadonlyArray1<'py, u64>,
    /// First token of each word of each block and the end, (blocks, V + 1).
    word_starts: PyReadonlyArray2<'py, u32>,
    token_documents: PyReadonlyArray1<'py, u16>,
    documents_before: usize,
    /// Tokens of the longest document of the corpus, all its tokens, and its cells that are not zero.
    sizes: (u64, u64, u64),
    documents: Option<Py<Documents>>,
}

impl Blocks<'_> {
    fn to_core(&self) -> PyResult<Part<'_>> {
        let (longest, n_tokens, n_cells) = self.sizes;
        Ok(Part {
            n_words: self.word_starts.as_array().ncols().saturating_sub(1),
            n_documents: self.n_documents.as_slice()?,
            word_starts: self.word_starts.as_slice()?,
            token_documents: self.token_documents.as_slice()?,
            documents_before: self.documents_before,
            sizes: CorpusSizes { longest, n_tokens, n_cells },
            counts: self.documents.as_ref().map(|documents| &*documents.get().0),
        })
    }
}

/// Order of the tokens of a block: the first of each word and the end (V + 1,), and their documents.
#[pyfunction]
pub(crate) fn order_tokens<'py>(
    py: Python<'py>,
    documents: &Documents,
) -> PyResult<(Numbers<'py>, TopicArray<'py>)> {
    let (starts, numbers) = detach::briefly(py, || training::order_tokens(&documents.0))?;
    Ok((PyArray1::from_vec(py, starts), PyArray1::from_vec(py, numbers)))
}

/// Topics that are in the order of documents and cells, in the order of the blocks.
#[pyfunction]
pub(crate) fn order_topics<'py>(
    py: Python<'py>,
    blocks: Blocks<'py>,
    topics: PyReadonlyArray1<'py, u16>,
) -> PyResult<TopicArray<'py>> {
    let (part, topics) = (blocks.to_core()?, topics.as_slice()?);
    let ordered = detach::briefly(py, || training::order_topics(part, topics))?;
    Ok(PyArray1::from_vec(py, ordered))
}

/// Draws the topics of all tokens of some blocks anew on the way to a position, and adds them to
/// `counts`, (V, K): the tables of each topic, (K,). `urns` are φ (V, K) up to a scale, the scales, the
/// pseudo-counts, and rates where documents have exposures.
#[pyfunction]
#[pyo3(signature = (blocks, topics, urns, counts, *, seed, to, tables, n_jobs))]
pub(crate) fn sweep_part<'py>(
    py: Python<'py>,
    blocks: Blocks<'py>,
    mut topics: PyReadwriteArray1<'py, u16>,
    urns: (
        PyReadonlyArray2<'py, f64>,
        PyReadonlyArray1<'py, f64>,
        PyReadonlyArray1<'py, f64>,
        Option<PyReadonlyArray1<'py, f64>>,
    ),
    mut counts: PyReadwriteArray2<'py, u32>,
    seed: u64,
    to: PositionTuple,
    tables: bool,
    n_jobs: usize,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let (part, to) = (blocks.to_core()?, position(&to)?);
    let (weights, scale, a, rates) = &urns;
    let weights = TopicWeights {
        a: PseudoCounts::shared(a.as_slice()?),
        weights: weights.as_slice()?,
        scale: scale.as_slice()?,
        rates: rates.as_ref().map(|rates| rates.as_slice()).transpose()?,
        bursts: None,
    };
    let (topics, counts) = (topics.as_slice_mut()?, counts.as_slice_mut()?);
    let outcome = detach::run(py, n_jobs, None, |watch| {
        training::sweep_part(part, topics, weights, (seed, to), tables, counts, watch)
    })?;
    Ok(PyArray1::from_vec(py, outcome.uninterrupted()?))
}

/// Adds the tokens of some blocks to `counts`, (V, K).
#[pyfunction]
pub(crate) fn count_part(
    py: Python<'_>,
    blocks: Blocks<'_>,
    topics: PyReadonlyArray1<'_, u16>,
    mut counts: PyReadwriteArray2<'_, u32>,
) -> PyResult<()> {
    let n_topics = counts.as_array().ncols();
    let part = blocks.to_core()?;
    let (topics, counts) = (topics.as_slice()?, counts.as_slice_mut()?);
    detach::briefly(py, || training::count_part(part, topics, n_topics, counts))
}

/// Tokens of every topic by exposure in each of some blocks, given the number of the exposure of
/// each of their documents.
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

/// Sum over the documents of some blocks of ln of their urns, in units of which the sum over all
/// parts is exact.
#[pyfunction]
pub(crate) fn ln_urns_of_part(
    py: Python<'_>,
    blocks: Blocks<'_>,
    topics: PyReadonlyArray1<'_, u16>,
    a: PyReadonlyArray1<'_, f64>,
) -> PyResult<i128> {
    let (part, topics, a) = (blocks.to_core()?, topics.as_slice()?, a.as_slice()?);
    Ok(detach::briefly(py, || training::ln_urns_of_part(part, topics, a))?.parts())
}

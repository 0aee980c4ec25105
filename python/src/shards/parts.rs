//! Parts of a corpus within a sweep: their tokens in the order of blocks, and sums over them.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyReadwriteArray2};
use polyabayes::training::{self, ExposedTokens, Part, Scheme, Sweep, TopicWeights};
use pyo3::prelude::*;

use super::{ShardedChain, ShardedStart, Topics};
use crate::convert::Documents;
use crate::detach;

type Numbers<'py> = Bound<'py, PyArray1<u32>>;
type NewExposed<'py> = (Bound<'py, PyArray1<u64>>, Numbers<'py>, Numbers<'py>);

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
            Weights::Chain(chain) => Ok(chain.topic_weights()),
            Weights::Start(start) => Ok(start.topic_weights()),
        }
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

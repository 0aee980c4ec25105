//! Matrix factorisation of documents that are elsewhere.

use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray2,
};
use polyabayes::math::ExactSum;
use polyabayes::training::{self, NmfPart};
use pyo3::prelude::*;

use crate::convert::Documents;
use crate::shards::Blocks;
use crate::{detach, errors};

/// Weights from which updates start (D, K), of the documents of some blocks.
#[pyfunction]
pub(crate) fn start_weights_of_part<'py>(
    py: Python<'py>,
    blocks: Blocks<'py>,
    topics: PyReadonlyArray1<'py, u16>,
    n_topics: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (part, topics) = (blocks.to_core()?, topics.as_slice()?);
    let new = || training::start_weights_of_part(part, topics, n_topics);
    let weights = detach::briefly(py, new)?;
    let shape = [weights.len() / n_topics, n_topics];
    PyArray1::from_vec(py, weights).reshape(shape)
}

/// φ (V, K) from which updates start, by the tokens of every word in each topic.
#[pyfunction]
pub(crate) fn nmf_start_topics<'py>(
    py: Python<'py>,
    counts: PyReadonlyArray2<'py, u32>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (shape, counts) = (counts.as_array().dim(), counts.as_slice()?);
    let phi = detach::briefly(py, || Ok(training::nmf_start_topics(counts, shape.1)))?;
    PyArray1::from_vec(py, phi).reshape([shape.0, shape.1])
}

/// Updates φ (V, K) by the factors of all words.
#[pyfunction]
pub(crate) fn nmf_update_topics(
    py: Python<'_>,
    mut phi: PyReadwriteArray2<'_, f64>,
    factors: PyReadonlyArray2<'_, f64>,
    n_jobs: usize,
) -> PyResult<()> {
    let n_topics = phi.as_array().ncols();
    let (phi, factors) = (phi.as_slice_mut()?, factors.as_slice()?);
    let update = |_: &detach::Watch| training::nmf_update_topics(phi, factors, n_topics);
    detach::run(py, n_jobs, None, update)?.uninterrupted()
}

/// Adds the factors of some documents to those of consecutive words, of which `first` is the first.
#[pyfunction]
#[pyo3(signature = (documents, theta, phi, factors, first, n_jobs))]
pub(crate) fn nmf_add_factors(
    py: Python<'_>,
    documents: &Documents,
    theta: PyReadonlyArray2<'_, f64>,
    phi: PyReadonlyArray2<'_, f64>,
    mut factors: PyReadwriteArray2<'_, f64>,
    first: usize,
    n_jobs: usize,
) -> PyResult<()> {
    let words = first..first + factors.as_array().nrows();
    let part = part(py, documents, &phi)?;
    let (theta, factors) = (theta.as_slice()?, factors.as_slice_mut()?);
    let add = |watch: &detach::Watch| part.add_factors(theta, words, factors, watch);
    detach::run(py, n_jobs, None, add)?.uninterrupted()
}

/// Updates the weights θ (D, K) of some documents.
#[pyfunction]
pub(crate) fn nmf_update_weights(
    py: Python<'_>,
    documents: &Documents,
    mut theta: PyReadwriteArray2<'_, f64>,
    phi: PyReadonlyArray2<'_, f64>,
    n_jobs: usize,
) -> PyResult<()> {
    let part = part(py, documents, &phi)?;
    let theta = theta.as_slice_mut()?;
    let update = |watch: &detach::Watch| part.update_weights(theta, watch);
    detach::run(py, n_jobs, None, update)?.uninterrupted()
}

/// ln of the likelihood of some documents, in units of which sums over all documents are exact.
#[pyfunction]
pub(crate) fn nmf_ln_joint(
    py: Python<'_>,
    documents: &Documents,
    theta: PyReadonlyArray2<'_, f64>,
    phi: PyReadonlyArray2<'_, f64>,
) -> PyResult<i128> {
    let part = part(py, documents, &phi)?;
    let theta = theta.as_slice()?;
    Ok(detach::briefly(py, || part.ln_joint(theta))?.parts())
}

/// Sums of the weights of some documents by topic, in such units.
#[pyfunction]
pub(crate) fn nmf_sums(
    py: Python<'_>,
    documents: &Documents,
    theta: PyReadonlyArray2<'_, f64>,
    phi: PyReadonlyArray2<'_, f64>,
) -> PyResult<Vec<i128>> {
    let part = part(py, documents, &phi)?;
    let theta = theta.as_slice()?;
    let sums = detach::briefly(py, || part.n_tokens(theta))?;
    Ok(sums.into_iter().map(ExactSum::parts).collect())
}

/// The nearest double to a sum of such units.
#[pyfunction]
pub(crate) fn exact_value(parts: i128) -> f64 {
    ExactSum::from_parts(parts).value()
}

fn part<'a>(
    py: Python<'_>,
    documents: &'a Documents,
    phi: &'a PyReadonlyArray2<'_, f64>,
) -> PyResult<NmfPart<'a>> {
    NmfPart::new(&documents.0, phi.as_slice()?).map_err(|error| errors::to_python(py, &error))
}

//! Arrays as the core's types.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use polyabayes::{CountMatrix, TopicModel};
use pyo3::prelude::*;

use crate::detach;

/// Count matrix in compressed sparse rows, with an exposure of each row perhaps; checked.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct Documents(pub(crate) CountMatrix);

#[pymethods]
impl Documents {
    #[new]
    #[pyo3(signature = (n_words, indptr, indices, data, exposure = None))]
    fn new(
        py: Python<'_>,
        n_words: usize,
        indptr: PyReadonlyArray1<'_, i64>,
        indices: PyReadonlyArray1<'_, i64>,
        data: PyReadonlyArray1<'_, i64>,
        exposure: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let (offsets, words, counts) = (indptr.as_slice()?, indices.as_slice()?, data.as_slice()?);
        let exposures = exposure.map(|array| array.as_slice().map(<[f64]>::to_vec)).transpose()?;
        let new = || CountMatrix::new(n_words, offsets, words, counts);
        detach::briefly(py, || exposed(new()?, exposures))
    }

    /// The same from words and counts of 32 bits.
    #[staticmethod]
    #[pyo3(signature = (n_words, indptr, indices, data, exposure = None))]
    fn narrow(
        py: Python<'_>,
        n_words: usize,
        indptr: PyReadonlyArray1<'_, i64>,
        indices: PyReadonlyArray1<'_, u32>,
        data: PyReadonlyArray1<'_, u32>,
        exposure: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let (offsets, words, counts) = (indptr.as_slice()?, indices.as_slice()?, data.as_slice()?);
        let exposures = exposure.map(|array| array.as_slice().map(<[f64]>::to_vec)).transpose()?;
        let new = || CountMatrix::from_narrow(n_words, offsets, words, counts);
        detach::briefly(py, || exposed(new()?, exposures))
    }

    /// Tokens of each row, (D,).
    fn lengths<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_iter(py, self.0.documents().map(polyabayes::counts::Document::n_tokens))
    }

    /// For each row, which of the different documents it is, (D,).
    fn groups<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.0.distinct().index.into_iter().map(|index| index as i64))
    }
}

fn exposed(counts: CountMatrix, exposures: Option<Vec<f64>>) -> polyabayes::Result<Documents> {
    match exposures {
        Some(exposures) => counts.with_exposures(exposures).map(Documents),
        None => Ok(Documents(counts)),
    }
}

/// Topic model with a closed-form urn, checked.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct Model(pub(crate) TopicModel);

#[pymethods]
impl Model {
    /// Latent Dirichlet allocation from alpha (K,) and phi (K, V).
    #[staticmethod]
    fn lda(
        py: Python<'_>,
        alpha: PyReadonlyArray1<'_, f64>,
        phi: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Self> {
        let (alpha, phi) = (alpha.as_slice()?.to_vec(), phi.as_slice()?);
        detach::briefly(py, || TopicModel::lda(alpha, phi).map(Model))
    }

    /// Gamma-Poisson model from r (K,), p (K,) and phi (K, V).
    #[staticmethod]
    fn gamma_poisson(
        py: Python<'_>,
        r: PyReadonlyArray1<'_, f64>,
        p: PyReadonlyArray1<'_, f64>,
        phi: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Self> {
        let (r, p, phi) = (r.as_slice()?.to_vec(), p.as_slice()?, phi.as_slice()?);
        detach::briefly(py, || TopicModel::gamma_poisson(r, p, phi).map(Model))
    }
}

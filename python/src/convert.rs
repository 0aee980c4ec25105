//! Arrays as the core's types.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use polyabayes::{CountMatrix, TopicModel};
use pyo3::prelude::*;

use crate::errors;

/// Count matrix in compressed sparse rows, checked.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct Documents(pub(crate) CountMatrix);

#[pymethods]
impl Documents {
    #[new]
    fn new(
        py: Python<'_>,
        n_words: usize,
        indptr: PyReadonlyArray1<'_, i64>,
        indices: PyReadonlyArray1<'_, i64>,
        data: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<Self> {
        CountMatrix::new(n_words, indptr.as_slice()?, indices.as_slice()?, data.as_slice()?)
            .map(Documents)
            .map_err(|error| errors::to_python(py, &error))
    }

    /// For each row, which of the different documents it is, (D,).
    fn groups<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.0.distinct().index.into_iter().map(|index| index as i64))
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
        TopicModel::lda(alpha.as_slice()?.to_vec(), phi.as_slice()?)
            .map(Model)
            .map_err(|error| errors::to_python(py, &error))
    }

    /// Gamma-Poisson model from r (K,), p (K,) and phi (K, V).
    #[staticmethod]
    fn gamma_poisson(
        py: Python<'_>,
        r: PyReadonlyArray1<'_, f64>,
        p: PyReadonlyArray1<'_, f64>,
        phi: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Self> {
        TopicModel::gamma_poisson(r.as_slice()?.to_vec(), p.as_slice()?, phi.as_slice()?)
            .map(Model)
            .map_err(|error| errors::to_python(py, &error))
    }
}

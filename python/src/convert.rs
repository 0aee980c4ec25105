//! Arrays as the core's types.

use std::sync::Arc;

use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use polyabayes::document::laws::logistic_normal::{Decoder, Link};
use polyabayes::document::laws::mixture::Component;
use polyabayes::document::{FiniteMixture, Law, LogisticNormal};
use polyabayes::{CountMatrix, TopicModel};
use pyo3::prelude::*;

use crate::detach;

/// Count matrix in compressed sparse rows, with an exposure of each row perhaps; checked. Indices and
/// data are of 64 bits, or unsigned of 32.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct Documents(pub(crate) Arc<CountMatrix>);

#[pymethods]
impl Documents {
    #[new]
    #[pyo3(signature = (n_words, indptr, indices, data, exposure = None, priors = None))]
    fn new(
        py: Python<'_>,
        n_words: usize,
        indptr: PyReadonlyArray1<'_, i64>,
        indices: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        exposure: Option<PyReadonlyArray1<'_, f64>>,
        priors: Option<PyReadonlyArray2<'_, f64>>,
    ) -> PyResult<Self> {
        let exposures = exposure.map(|array| array.as_slice().map(<[f64]>::to_vec)).transpose()?;
        let priors = priors.map(|array| array.as_slice().map(<[f64]>::to_vec)).transpose()?;
        let is_narrow = indices.extract::<PyReadonlyArray1<'_, u32>>().is_ok();
        let new = if is_narrow { matrix::<u32> } else { matrix::<i64> };
        let mut counts = new(n_words, indptr.as_slice()?, indices, data)?;
        detach::briefly(py, || {
            if let Some(exposures) = exposures {
                counts = counts.with_exposures(exposures)?;
            }
            if let Some(priors) = priors {
                counts = counts.with_priors(priors)?;
            }
            Ok(Documents(Arc::new(counts)))
        })
    }

    /// Tokens of each row, (D,).
    fn lengths<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_iter(py, self.0.documents().map(polyabayes::counts::Document::n_tokens))
    }

    /// Number of the distinct document of each row, (D,).
    fn groups<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.0.distinct().index.into_iter().map(|index| index as i64))
    }
}

/// Counts whose words and numbers of tokens have this type.
fn matrix<T: Element + Copy + Into<i64>>(
    n_words: usize,
    indptr: &[i64],
    indices: &Bound<'_, PyAny>,
    data: &Bound<'_, PyAny>,
) -> PyResult<CountMatrix> {
    let words: PyReadonlyArray1<'_, T> = indices.extract()?;
    let counts: PyReadonlyArray1<'_, T> = data.extract()?;
    let (words, counts) = (words.as_slice()?, counts.as_slice()?);
    detach::briefly(indices.py(), || CountMatrix::new(n_words, indptr, words, counts))
}

/// A document model, checked.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct Model(pub(crate) Box<dyn Law>);

#[pymethods]
impl Model {
    /// Latent Dirichlet allocation from alpha (K,) and phi (K, V), and concentrations of bursty topics
    /// (K,). Here and below, `sizes` are those of vocabularies whose columns follow one another;
    /// without them there is one.
    #[staticmethod]
    #[pyo3(signature = (alpha, phi, concentration = None, sizes = Vec::new()))]
    fn lda(
        py: Python<'_>,
        alpha: PyReadonlyArray1<'_, f64>,
        phi: PyReadonlyArray2<'_, f64>,
        concentration: Option<PyReadonlyArray1<'_, f64>>,
        sizes: Vec<usize>,
    ) -> PyResult<Self> {
        let (alpha, phi) = (alpha.as_slice()?.to_vec(), phi.as_slice()?);
        let concentration = concentration.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        detach::briefly(py, || {
            urn(TopicModel::lda_of_vocabularies(alpha, phi, &sizes), concentration)
        })
    }

    /// Gamma-Poisson model from r (K,), p (K,) and phi (K, V), and concentrations of bursty topics (K,).
    #[staticmethod]
    #[pyo3(signature = (r, p, phi, concentration = None))]
    fn gamma_poisson(
        py: Python<'_>,
        r: PyReadonlyArray1<'_, f64>,
        p: PyReadonlyArray1<'_, f64>,
        phi: PyReadonlyArray2<'_, f64>,
        concentration: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let (r, p, phi) = (r.as_slice()?.to_vec(), p.as_slice()?, phi.as_slice()?);
        let concentration = concentration.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        detach::briefly(py, || urn(TopicModel::gamma_poisson(r, p, phi), concentration))
    }

    /// Logistic-normal weights, a mean (K,) and covariance (K, K), of the topics phi (K, V); with K - 1
    /// coordinates the last topic is the reference.
    #[staticmethod]
    #[pyo3(signature = (phi, mean, covariance, sizes = Vec::new()))]
    fn logistic_normal(
        py: Python<'_>,
        phi: PyReadonlyArray2<'_, f64>,
        mean: PyReadonlyArray1<'_, f64>,
        covariance: PyReadonlyArray2<'_, f64>,
        sizes: Vec<usize>,
    ) -> PyResult<Self> {
        let (n_topics, phi) = (phi.as_array().nrows(), phi.as_slice()?);
        let (mean, covariance) = (mean.as_slice()?, covariance.as_slice()?);
        let link = if mean.len() + 1 == n_topics { Link::Reference } else { Link::Softmax };
        detach::briefly(py, || {
            let decoder = Decoder::mixture(n_topics, phi, &sizes)?;
            Ok(Model(Box::new(LogisticNormal::new(decoder, link, n_topics, mean, covariance)?)))
        })
    }

    /// Words by the softmax of bias (V,) and weights times loadings (K, V); the weights are the
    /// softmax of the latent coordinates, or the coordinates themselves.
    #[staticmethod]
    #[pyo3(signature = (loadings, bias, mean, covariance, is_softmax, sizes = Vec::new()))]
    fn product_of_experts(
        py: Python<'_>,
        loadings: PyReadonlyArray2<'_, f64>,
        bias: PyReadonlyArray1<'_, f64>,
        mean: PyReadonlyArray1<'_, f64>,
        covariance: PyReadonlyArray2<'_, f64>,
        is_softmax: bool,
        sizes: Vec<usize>,
    ) -> PyResult<Self> {
        let (n_topics, loadings) = (loadings.as_array().nrows(), loadings.as_slice()?);
        let (bias, mean, covariance) = (bias.as_slice()?, mean.as_slice()?, covariance.as_slice()?);
        let link = match (is_softmax, mean.len() + 1 == n_topics) {
            (false, _) => Link::Identity,
            (true, false) => Link::Softmax,
            (true, true) => Link::Reference,
        };
        detach::briefly(py, || {
            let decoder = Decoder::experts(n_topics, loadings, bias, &sizes)?;
            Ok(Model(Box::new(LogisticNormal::new(decoder, link, n_topics, mean, covariance)?)))
        })
    }

    /// One of J components a document: weights (J,), and word probabilities (J, V) or, where
    /// `is_dirichlet`, parameters of their Dirichlet distributions.
    #[staticmethod]
    #[pyo3(signature = (weights, words, is_dirichlet, sizes = Vec::new()))]
    fn mixture(
        py: Python<'_>,
        weights: PyReadonlyArray1<'_, f64>,
        words: PyReadonlyArray2<'_, f64>,
        is_dirichlet: bool,
        sizes: Vec<usize>,
    ) -> PyResult<Self> {
        let component =
            if is_dirichlet { Component::DirichletMultinomial } else { Component::Multinomial };
        let (weights, words) = (weights.as_slice()?, words.as_slice()?);
        detach::briefly(py, || {
            Ok(Model(Box::new(FiniteMixture::new(component, weights, words, &sizes)?)))
        })
    }

    /// L with L Lᵀ the covariance of the latent coordinates, (coordinates, rank).
    fn covariance_factor<'py>(
        &self,
        py: Python<'py>,
        n_coordinates: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let factor = self.0.covariance_factor();
        let rank = factor.len() / n_coordinates;
        PyArray1::from_slice(py, factor).reshape([n_coordinates, rank])
    }
}

fn urn(
    model: polyabayes::Result<TopicModel>,
    concentration: Option<&[f64]>,
) -> polyabayes::Result<Model> {
    let model = match concentration {
        Some(concentration) => model?.with_topic_concentration(concentration)?,
        None => model?,
    };
    Ok(Model(Box::new(model)))
}

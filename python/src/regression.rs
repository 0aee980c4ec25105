//! Regression of the weights of classes, or pseudo-counts, on covariates.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use polyabayes::regression::{Design, Regression};
use polyabayes::rng::{Key, Purpose};
use pyo3::prelude::*;

use crate::errors::to_python;

/// Covariates of documents, grouped.
pub(crate) fn design(py: Python<'_>, covariates: PyReadonlyArray2<'_, f64>) -> PyResult<Design> {
    let (n_documents, n_slopes) = covariates.as_array().dim();
    let design = Design::new(covariates.as_slice()?, n_documents, n_slopes);
    design.map_err(|error| to_python(py, &error))
}

/// Coefficients of classes given the rows of each, drawn anew as often as one likes.
#[pyclass(module = "polyabayes._core")]
pub(crate) struct ClassRegression {
    regression: Regression,
    seed: u64,
}

#[pymethods]
impl ClassRegression {
    /// A regression without slopes, from the weights `start`; exp of each intercept has a gamma prior of this shape
    /// and rate 1.
    #[new]
    fn new(
        py: Python<'_>,
        covariates: PyReadonlyArray2<'_, f64>,
        start: PyReadonlyArray1<'_, f64>,
        shape: f64,
        seed: u64,
    ) -> PyResult<Self> {
        let (design, start) = (design(py, covariates)?, start.as_slice()?);
        let regression = Regression::new(design, start, vec![(shape, 1.0); start.len()]);
        let regression = regression.map_err(|error| to_python(py, &error))?;
        Ok(ClassRegression { regression, seed })
    }

    /// Group of each row: rows of one group have equal covariates.
    #[getter]
    fn groups<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, self.regression.groups())
    }

    /// exp(x·λ) of every group and class, flat.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.regression.pseudo_counts())
    }

    /// Intercept and slopes of every class, flat, then the variance of the slopes.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.regression.parameters())
    }

    /// Draws coefficients and variance given the rows of each group and class, flat, and the sums over
    /// the rows of each group of exponential variables whose rates are the sums of its weights.
    fn draw(
        &mut self,
        n_rows: PyReadonlyArray1<'_, f64>,
        exposures: PyReadonlyArray1<'_, f64>,
        sweep: u64,
    ) -> PyResult<()> {
        let key = Key::new(self.seed, Purpose::Parameters).unit(sweep);
        let exposures = exposures.as_slice()?;
        self.regression.draw(n_rows.as_slice()?, |_| exposures.to_vec(), key);
        Ok(())
    }
}

//! Tensors with cells that were not observed.

use numpy::PyReadonlyArray1;
use polyabayes::allocation::{Ascent, Incomplete, Limits, MissingAscent};
use pyo3::prelude::*;

use super::model::Allocation;
use super::options::{EvidenceOptions, ascent, method_name};
use super::results::{AllocationCompletion, AllocationDecomposition};
use crate::detach::{self, Running};

/// A network laid out for a tensor and the cells that were not observed, checked.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct IncompleteAllocation {
    incomplete: Incomplete,
}

#[pymethods]
impl IncompleteAllocation {
    /// `missing` has the coordinates of the cells that were not observed, one after the other.
    #[new]
    fn new(
        py: Python<'_>,
        allocation: &Allocation,
        missing: PyReadonlyArray1<'_, i64>,
        rate: f64,
    ) -> PyResult<Self> {
        let missing = coordinates(&missing)?;
        let Allocation { network, data, elimination, .. } = allocation;
        let outcome = detach::run(py, 1, None, |_| {
            let order = elimination.as_deref();
            Ok(IncompleteAllocation {
                incomplete: Incomplete::new(network, data, &missing, rate, order)?,
            })
        })?;
        outcome.uninterrupted()
    }

    /// Cells that were not observed.
    #[getter]
    fn n_missing(&self) -> usize {
        self.incomplete.n_missing()
    }

    /// Evidence by total, and the name of the method that found it.
    #[pyo3(signature = (options, *, max_total, **running))]
    fn complete(
        &self,
        py: Python<'_>,
        options: EvidenceOptions,
        max_total: Option<u64>,
        running: Option<Running>,
    ) -> PyResult<(&'static str, AllocationCompletion)> {
        let settings = options.to_core()?;
        let outcome = detach::call(py, running, usize::MAX, |seed, watch| {
            self.incomplete.complete(&settings, max_total, seed, watch)
        })?;
        let (completion, method) = outcome.uninterrupted()?;
        Ok((method_name(method), AllocationCompletion::new(py, &completion)?))
    }

    /// A lower bound of the evidence, by variational Bayes, shared out by its own distribution of
    /// the total.
    #[pyo3(signature = (*, max_iter, tolerance, n_restarts, **running))]
    fn bound(
        &self,
        py: Python<'_>,
        max_iter: usize,
        tolerance: f64,
        n_restarts: usize,
        running: Option<Running>,
    ) -> PyResult<AllocationCompletion> {
        let limits = Limits { max_iter, tolerance, n_restarts };
        let outcome = detach::call(py, running, usize::MAX, |seed, watch| {
            self.incomplete.ascend(Ascent::Variational, limits, seed, watch)?.completion(watch)
        })?;
        AllocationCompletion::new(py, &outcome.uninterrupted()?)
    }

    /// Family counts by coordinate ascent: variational Bayes, by a lower bound of
    /// ln Pr(X_observed), or EM.
    #[pyo3(signature = (method, *, max_iter, tolerance, n_restarts, **running))]
    fn variational(
        &self,
        py: Python<'_>,
        method: &str,
        max_iter: usize,
        tolerance: f64,
        n_restarts: usize,
        running: Option<Running>,
    ) -> PyResult<AllocationDecomposition> {
        let ascent = ascent(method)?;
        let limits = Limits { max_iter, tolerance, n_restarts };
        let outcome = detach::call(py, running, usize::MAX, |seed, watch| {
            self.incomplete.ascend(ascent, limits, seed, watch)
        })?;
        let MissingAscent { decomposition, expected } = outcome.uninterrupted()?;
        Ok(AllocationDecomposition::new(py, decomposition, expected))
    }
}

/// Coordinates as the core has them: those that do not fit lie outside of every tensor.
fn coordinates(missing: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<u32>> {
    let fitting = |&i: &i64| u32::try_from(i).unwrap_or(u32::MAX);
    Ok(missing.as_slice()?.iter().map(fitting).collect())
}

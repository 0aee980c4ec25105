//! Tensors with cells that were not observed.

use numpy::{PyArray1, PyReadonlyArray1};
use polyabayes::Estimate;
use polyabayes::allocation::{
    Completion, Incomplete, Limits, MissingAscent, Network, ascend_missing,
};
use polyabayes::counts::CountTensor;
use pyo3::prelude::*;

use crate::allocation::{self, AllocationDecomposition, AllocationEstimate, FilterOptions};
use crate::detach;

/// A network laid out for a tensor and the cells that were not observed, checked.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct IncompleteAllocation {
    pub(crate) network: Network,
    pub(crate) data: CountTensor,
    pub(crate) missing: Vec<u32>,
    pub(crate) rate: f64,
    pub(crate) elimination: Option<Vec<usize>>,
    pub(crate) incomplete: Incomplete,
}

#[pymethods]
impl IncompleteAllocation {
    /// Joint states of hidden nodes that a token is summed over.
    #[getter]
    fn n_states(&self) -> usize {
        self.incomplete.problem().n_states()
    }

    /// Cells that were not observed.
    #[getter]
    fn n_missing(&self) -> usize {
        self.missing.len() / self.data.shape().len()
    }

    /// Total of the observed counts.
    #[getter]
    fn n_tokens(&self) -> u64 {
        self.incomplete.problem().n_tokens()
    }

    /// Groups of hidden nodes that are summed out together.
    #[getter]
    fn n_cliques(&self) -> usize {
        self.incomplete.problem().n_cliques()
    }

    /// Marginal counts of one allocation.
    #[getter]
    fn n_marginals(&self) -> usize {
        self.incomplete.problem().n_rows()
    }

    /// ln Pr(T, X_observed) by enumeration.
    #[pyo3(signature = (*, max_total, budget, progress = None))]
    fn exact(
        &self,
        py: Python<'_>,
        max_total: Option<u64>,
        budget: f64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<AllocationCompletion> {
        let outcome = detach::run(py, 1, progress, |watch| {
            self.incomplete.enumerate(max_total, budget, watch)
        })?;
        AllocationCompletion::new(py, &outcome.uninterrupted()?)
    }

    /// ln Pr(T, X_observed) by sequential importance sampling.
    #[pyo3(signature = (filtering, *, max_total, n_replicates, seed, n_jobs, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "options, by name")]
    fn smc(
        &self,
        py: Python<'_>,
        filtering: FilterOptions,
        max_total: Option<u64>,
        n_replicates: usize,
        seed: u64,
        n_jobs: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<AllocationCompletion> {
        let filter = filtering.to_core()?;
        let outcome = detach::run(py, n_jobs, progress, |watch| {
            self.incomplete.filter(&filter, max_total, n_replicates, seed, watch)
        })?;
        AllocationCompletion::new(py, &outcome.uninterrupted()?)
    }

    /// Family counts by coordinate ascent: variational Bayes, by a lower bound of
    /// ln Pr(X_observed), or EM.
    #[pyo3(signature = (method, *, max_iter, tolerance, n_restarts, seed, n_jobs, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "options, by name")]
    fn variational(
        &self,
        py: Python<'_>,
        method: &str,
        max_iter: usize,
        tolerance: f64,
        n_restarts: usize,
        seed: u64,
        n_jobs: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<AllocationDecomposition> {
        let ascent = allocation::ascent(method)?;
        let limits = Limits { max_iter, tolerance, n_restarts };
        let (network, data, order) = (&self.network, &self.data, self.elimination.as_deref());
        let outcome = detach::run(py, n_jobs, progress, |watch| {
            let missing = &self.missing;
            ascend_missing(network, data, missing, self.rate, order, ascent, limits, seed, watch)
        })?;
        let MissingAscent { decomposition, expected } = outcome.uninterrupted()?;
        Ok(AllocationDecomposition::new(py, decomposition, expected))
    }
}

/// Coordinates as the core has them: those that do not fit lie outside of every tensor.
pub(crate) fn coordinates(missing: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<u32>> {
    let fitting = |&i: &i64| u32::try_from(i).unwrap_or(u32::MAX);
    Ok(missing.as_slice()?.iter().map(fitting).collect())
}

/// Evidence by total, and what is expected of the missing cells.
#[pyclass(frozen, get_all, module = "polyabayes._core")]
pub(crate) struct AllocationCompletion {
    /// ln Pr(X_observed).
    evidence: Py<AllocationEstimate>,
    /// ln Pr(T, X_observed) of every total from that of the observed cells on.
    ln_joint: Py<PyArray1<f64>>,
    ln_joint_errors: Py<PyArray1<f64>>,
    /// Pr(T | X_observed).
    posterior: Py<PyArray1<f64>>,
    posterior_errors: Py<PyArray1<f64>>,
    /// Expected counts of the missing cells.
    expected: Py<PyArray1<f64>>,
    expected_errors: Py<PyArray1<f64>>,
    /// ln of what totals beyond the last would add to the evidence, about.
    ln_remainder: f64,
    /// ln of what they add at most.
    ln_remainder_bound: f64,
}

impl AllocationCompletion {
    fn new(py: Python<'_>, found: &Completion) -> PyResult<Self> {
        let array = |values: Vec<f64>| PyArray1::from_vec(py, values).unbind();
        let values = |shares: &[(f64, f64)]| array(shares.iter().map(|share| share.0).collect());
        let errors = |shares: &[(f64, f64)]| array(shares.iter().map(|share| share.1).collect());
        let of_joint =
            |part: fn(&Estimate) -> f64| array(found.ln_joint.iter().map(part).collect());
        Ok(AllocationCompletion {
            evidence: Py::new(py, AllocationEstimate::from(found.evidence))?,
            ln_joint: of_joint(|joint| joint.ln_value),
            ln_joint_errors: of_joint(|joint| joint.std_error),
            posterior: values(&found.posterior),
            posterior_errors: errors(&found.posterior),
            expected: values(&found.expected),
            expected_errors: errors(&found.expected),
            ln_remainder: found.ln_remainder,
            ln_remainder_bound: found.ln_remainder_bound,
        })
    }
}

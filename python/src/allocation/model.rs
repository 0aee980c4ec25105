//! A network laid out for a tensor of counts: its evidence and decompositions.

use numpy::PyReadonlyArray1;
use polyabayes::allocation::{
    Evidence, EvidenceSettings, Limits, Network, Prior, Problem, Sweeps, ascend, best_particle,
    bidirectional_bounds, evidence, gibbs, posterior,
};
use polyabayes::counts::CountTensor;
use pyo3::prelude::*;

use super::options::{EvidenceOptions, ascent, method_name};
use super::results::{
    AllocationDecomposition, AllocationDraws, AllocationEstimate, AllocationTempering, DrawRows,
};
use crate::detach::{self, Running};

/// Method, estimate, whether it converged, and the rounds of tempering.
pub(super) type Found = (&'static str, AllocationEstimate, bool, Option<AllocationTempering>);

/// An evidence as Python gets it.
pub(super) fn found(evidence: Evidence) -> Found {
    let Evidence { estimate, method, converged, tempering } = evidence;
    (method_name(method), estimate.into(), converged, tempering.map(AllocationTempering::new))
}

/// A network laid out for a tensor of counts, checked.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct Allocation {
    pub(super) network: Network,
    pub(super) data: CountTensor,
    pub(super) elimination: Option<Vec<usize>>,
    pub(super) problem: Problem,
}

#[pymethods]
impl Allocation {
    /// Nodes by number; `axes` names the node of each axis, `coordinates` has the cells of the
    /// tensor one after the other. `form` is "joint", or "factorised" for ascents that sum over one
    /// token at a time, or "stepwise" for the evidence by particles.
    #[new]
    #[pyo3(signature = (sizes, parents, axes, ties, concentration, tables, shape, coordinates, counts,
                        elimination = None, form = "joint"))]
    fn new(
        py: Python<'_>,
        sizes: Vec<usize>,
        parents: Vec<Vec<usize>>,
        axes: Vec<usize>,
        ties: Vec<Vec<usize>>,
        concentration: f64,
        tables: Option<Vec<f64>>,
        shape: Vec<usize>,
        coordinates: PyReadonlyArray1<'_, i64>,
        counts: PyReadonlyArray1<'_, i64>,
        elimination: Option<Vec<usize>>,
        form: &str,
    ) -> PyResult<Self> {
        let (coordinates, counts) = (coordinates.as_slice()?, counts.as_slice()?);
        let outcome = detach::run(py, 1, None, |_| {
            let prior = Prior { concentration, tables };
            let network = Network::new(sizes, parents, axes, &ties, prior)?;
            let data = CountTensor::new(shape, coordinates, counts)?;
            let lay_out = match form {
                "factorised" => Problem::factorised,
                "stepwise" => Problem::stepwise,
                _ => Problem::new,
            };
            let problem = lay_out(&network, &data, elimination.as_deref())?;
            Ok(Allocation { network, data, elimination, problem })
        })?;
        outcome.uninterrupted()
    }

    /// Joint states of hidden nodes that a token is summed over.
    #[getter]
    fn n_states(&self) -> usize {
        self.problem.n_states()
    }

    /// Whether particles draw the hidden nodes of a token clique after clique.
    #[getter]
    fn is_stepwise(&self) -> bool {
        self.problem.is_stepwise()
    }

    /// Total of the counts.
    #[getter]
    fn n_tokens(&self) -> u64 {
        self.problem.n_tokens()
    }

    /// Marginal counts of one allocation.
    #[getter]
    fn n_marginals(&self) -> usize {
        self.problem.n_rows()
    }

    /// ln Pr(T), the total being negative binomial.
    fn ln_total(&self, rate: f64) -> f64 {
        self.problem.ln_total(rate)
    }

    /// ln Pr(X | T), and the exception that cut the work short.
    #[pyo3(signature = (options, **running))]
    fn evidence(
        &self,
        py: Python<'_>,
        options: EvidenceOptions,
        running: Option<Running>,
    ) -> PyResult<(Found, Option<Py<PyAny>>)> {
        let settings = options.to_core()?;
        let outcome = detach::call(py, running, usize::MAX, |seed, watch| {
            evidence(&self.problem, &settings, seed, watch)
        })?;
        let (evidence, interruption) = outcome.into_parts(py);
        Ok((found(evidence), interruption))
    }

    /// Allocations from the posterior, of the last round of tempering: `n_draws` or a few more, and
    /// the exception that cut it short. `others` are the same network and data under other priors,
    /// whose evidence the particles of smc tell, too.
    #[pyo3(signature = (options, others, *, n_draws, **running))]
    fn draws(
        &self,
        py: Python<'_>,
        options: EvidenceOptions,
        others: Vec<PyRef<'_, Allocation>>,
        n_draws: usize,
        running: Option<Running>,
    ) -> PyResult<(AllocationDraws, Option<Py<PyAny>>)> {
        let settings = options.to_core()?;
        let others: Vec<&Problem> = others.iter().map(|other| &other.problem).collect();
        let outcome = detach::call(py, running, usize::MAX, |seed, watch| {
            let found = posterior(&self.problem, &others, &settings, n_draws, seed, watch)?;
            Ok(DrawRows::new(found, &self.network, &self.data))
        })?;
        let (rows, interruption) = outcome.into_parts(py);
        Ok((AllocationDraws::new(py, rows)?, interruption))
    }

    /// Family counts of the most probable particle of one run.
    #[pyo3(signature = (options, **running))]
    fn best_particle(
        &self,
        py: Python<'_>,
        options: EvidenceOptions,
        running: Option<Running>,
    ) -> PyResult<AllocationDecomposition> {
        let settings = EvidenceSettings { n_sweeps: Some(0), ..options.to_core()? };
        let (filter, order) = (settings.filter(), self.elimination.as_deref());
        let outcome = detach::call(py, running, usize::MAX, |seed, watch| {
            best_particle(&self.network, &self.data, order, &filter, seed, watch)
        })?;
        Ok(AllocationDecomposition::new(py, outcome.uninterrupted()?, Vec::new()))
    }

    /// Coordinate ascent: "vb", "em", "dual-em" or "icm".
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
        let order = self.elimination.as_deref();
        let outcome = detach::call(py, running, usize::MAX, |seed, watch| {
            ascend(&self.network, &self.data, order, ascent, limits, seed, watch)
        })?;
        Ok(AllocationDecomposition::new(py, outcome.uninterrupted()?, Vec::new()))
    }

    /// Family counts averaged over collapsed Gibbs sweeps, the first `burn_in` of which anneal.
    #[pyo3(signature = (*, n_sweeps, burn_in, **running))]
    fn gibbs(
        &self,
        py: Python<'_>,
        n_sweeps: usize,
        burn_in: usize,
        running: Option<Running>,
    ) -> PyResult<AllocationDecomposition> {
        let sweeps = Sweeps { burn_in, n_kept: n_sweeps.saturating_sub(burn_in) };
        let order = self.elimination.as_deref();
        let outcome = detach::call(py, running, usize::MAX, |seed, watch| {
            gibbs(&self.network, &self.data, order, sweeps, seed, watch)
        })?;
        Ok(AllocationDecomposition::new(py, outcome.uninterrupted()?, Vec::new()))
    }

    /// Annealing from both sides on a tensor of `total` tokens drawn from the model: estimates that
    /// are low, and high, in expectation.
    #[pyo3(signature = (total, *, n_chains, n_temperatures, n_replicates, **running))]
    fn bidirectional_bounds(
        &self,
        py: Python<'_>,
        total: u64,
        n_chains: usize,
        n_temperatures: usize,
        n_replicates: usize,
        running: Option<Running>,
    ) -> PyResult<(AllocationEstimate, AllocationEstimate)> {
        let (network, size) = (&self.network, (n_chains, n_temperatures, n_replicates));
        let outcome = detach::call(py, running, usize::MAX, |seed, watch| {
            bidirectional_bounds(network, total, size.0, size.1, size.2, seed, watch)
        })?;
        let bounds = outcome.uninterrupted()?;
        Ok((bounds.lower.into(), bounds.upper.into()))
    }
}

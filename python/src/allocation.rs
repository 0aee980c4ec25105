//! Evidence and decomposition of count tensors.

use numpy::{PyArray1, PyReadonlyArray1};
use polyabayes::Estimate;
use polyabayes::allocation::{
    Algorithm, Ascent, Decomposition, Filter, Incomplete, Limits, Network, Prior, Problem, Sweeps,
    TokenOrder, ascend, best_particle, gibbs, ln_probability, sandwich, tempered,
};
use polyabayes::counts::CountTensor;
use polyabayes::math::Resampling;
use polyabayes::temper::{Options, Outcome, Round};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::detach;
use crate::missing::{self, IncompleteAllocation};

/// A network laid out for a tensor of counts, checked.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct Allocation {
    network: Network,
    data: CountTensor,
    elimination: Option<Vec<usize>>,
    problem: Problem,
}

#[pymethods]
impl Allocation {
    /// Nodes by number; `axes` names the node of each axis, `coordinates` has the cells of the
    /// tensor one after the other.
    #[new]
    #[pyo3(signature = (sizes, parents, axes, ties, concentration, tables, shape, coordinates, counts,
                        elimination = None))]
    #[expect(clippy::too_many_arguments, reason = "the parts of a model and its data, by name")]
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
    ) -> PyResult<Self> {
        let (coordinates, counts) = (coordinates.as_slice()?, counts.as_slice()?);
        let outcome = detach::run(py, 1, None, |_| {
            let prior = Prior { concentration, tables };
            let network = Network::new(sizes, parents, axes, &ties, prior)?;
            let data = CountTensor::new(shape, coordinates, counts)?;
            let problem = Problem::new(&network, &data, elimination.as_deref())?;
            Ok(Allocation { network, data, elimination, problem })
        })?;
        outcome.uninterrupted()
    }

    /// Joint states of hidden nodes that a token is summed over.
    #[getter]
    fn n_states(&self) -> usize {
        self.problem.n_states()
    }

    /// Total of the counts.
    #[getter]
    fn n_tokens(&self) -> u64 {
        self.problem.n_tokens()
    }

    /// Groups of hidden nodes that are summed out together.
    #[getter]
    fn n_cliques(&self) -> usize {
        self.problem.n_cliques()
    }

    /// Cells of the tensor that are not zero.
    #[getter]
    fn n_cells(&self) -> usize {
        self.problem.n_cells()
    }

    /// Marginal counts of one allocation.
    #[getter]
    fn n_marginals(&self) -> usize {
        self.problem.n_rows()
    }

    /// The same with the coordinates of cells that were not observed, one after the other.
    fn with_missing(
        &self,
        py: Python<'_>,
        missing: PyReadonlyArray1<'_, i64>,
        rate: f64,
    ) -> PyResult<IncompleteAllocation> {
        let missing = missing::coordinates(&missing)?;
        let Allocation { network, data, elimination, .. } = self;
        let outcome = detach::run(py, 1, None, |_| {
            Ok(IncompleteAllocation {
                network: network.clone(),
                data: data.clone(),
                incomplete: Incomplete::new(network, data, &missing, rate, elimination.as_deref())?,
                missing,
                rate,
                elimination: elimination.clone(),
            })
        })?;
        outcome.uninterrupted()
    }

    /// ln Pr(T), the total being negative binomial.
    fn ln_total(&self, rate: f64) -> f64 {
        self.problem.ln_total(rate)
    }

    /// ln Pr(X | T) by enumeration.
    #[pyo3(signature = (*, budget, progress = None))]
    fn exact(
        &self,
        py: Python<'_>,
        budget: f64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<AllocationEstimate> {
        self.estimate(py, Algorithm::Exact { budget }, 0, 0, 1, progress)
    }

    /// ln Pr(X | T) by sequential importance sampling, and with `lookahead` along what a Gibbs run
    /// expects of the tokens to come.
    #[pyo3(signature = (filtering, *, lookahead, n_replicates, seed, n_jobs, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "options, by name")]
    fn smc(
        &self,
        py: Python<'_>,
        filtering: FilterOptions,
        lookahead: bool,
        n_replicates: usize,
        seed: u64,
        n_jobs: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<AllocationEstimate> {
        let filter = filtering.to_core()?;
        let algorithm =
            if lookahead { Algorithm::Lookahead(filter) } else { Algorithm::Filter(filter) };
        self.estimate(py, algorithm, n_replicates, seed, n_jobs, progress)
    }

    /// Family counts of the most probable particle of one run.
    #[pyo3(signature = (filtering, *, seed, n_jobs, progress = None))]
    fn best_particle(
        &self,
        py: Python<'_>,
        filtering: FilterOptions,
        seed: u64,
        n_jobs: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<AllocationDecomposition> {
        let (filter, order) = (filtering.to_core()?, self.elimination.as_deref());
        let outcome = detach::run(py, n_jobs, progress, |watch| {
            best_particle(&self.network, &self.data, order, &filter, seed, watch)
        })?;
        Ok(AllocationDecomposition::new(py, outcome.uninterrupted()?, Vec::new()))
    }

    /// ln Pr(X | T) by parallel tempering, in rounds until it is known to `target_std_error`. A stop
    /// after the first round keeps what is there, beside the exception.
    #[pyo3(signature = (*, n_replicates, target_std_error, max_scans, max_chains, seed, n_jobs,
                        progress = None))]
    #[expect(clippy::too_many_arguments, reason = "options, by name")]
    fn tempered(
        &self,
        py: Python<'_>,
        n_replicates: usize,
        target_std_error: f64,
        max_scans: Option<usize>,
        max_chains: usize,
        seed: u64,
        n_jobs: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(AllocationTempering, Option<Py<PyAny>>)> {
        let options = Options { n_replicates, target_std_error, max_scans, max_chains };
        let outcome = detach::run(py, n_jobs, progress, |watch| {
            tempered(&self.problem, &options, seed, watch)
        })?;
        let (outcome, interruption) = outcome.into_parts(py);
        Ok((AllocationTempering { outcome }, interruption))
    }

    /// ln Pr(X | T) by annealed populations of Gibbs chains.
    #[pyo3(signature = (*, n_chains, n_temperatures, n_replicates, seed, n_jobs, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "options, by name")]
    fn annealed(
        &self,
        py: Python<'_>,
        n_chains: usize,
        n_temperatures: usize,
        n_replicates: usize,
        seed: u64,
        n_jobs: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<AllocationEstimate> {
        let algorithm = Algorithm::Annealed { n_chains, n_temperatures };
        self.estimate(py, algorithm, n_replicates, seed, n_jobs, progress)
    }

    /// Coordinate ascent: "vb", "em", "dual-em" or "icm".
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
        let ascent = ascent(method)?;
        let limits = Limits { max_iter, tolerance, n_restarts };
        let order = self.elimination.as_deref();
        let outcome = detach::run(py, n_jobs, progress, |watch| {
            ascend(&self.network, &self.data, order, ascent, limits, seed, watch)
        })?;
        Ok(AllocationDecomposition::new(py, outcome.uninterrupted()?, Vec::new()))
    }

    /// Family counts averaged over collapsed Gibbs sweeps, the first `burn_in` of which anneal.
    #[pyo3(signature = (*, n_sweeps, burn_in, seed, n_jobs, progress = None))]
    fn gibbs(
        &self,
        py: Python<'_>,
        n_sweeps: usize,
        burn_in: usize,
        seed: u64,
        n_jobs: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<AllocationDecomposition> {
        let sweeps = Sweeps { burn_in, n_kept: n_sweeps.saturating_sub(burn_in) };
        let order = self.elimination.as_deref();
        let outcome = detach::run(py, n_jobs, progress, |watch| {
            gibbs(&self.network, &self.data, order, sweeps, seed, watch)
        })?;
        Ok(AllocationDecomposition::new(py, outcome.uninterrupted()?, Vec::new()))
    }

    /// Annealing from both sides on a tensor of `total` tokens drawn from the model: estimates that
    /// are low, and high, in expectation.
    #[pyo3(signature = (total, *, n_chains, n_temperatures, n_replicates, seed, n_jobs,
                        progress = None))]
    #[expect(clippy::too_many_arguments, reason = "options, by name")]
    fn sandwich(
        &self,
        py: Python<'_>,
        total: u64,
        n_chains: usize,
        n_temperatures: usize,
        n_replicates: usize,
        seed: u64,
        n_jobs: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(AllocationEstimate, AllocationEstimate)> {
        let (network, size) = (&self.network, (n_chains, n_temperatures, n_replicates));
        let outcome = detach::run(py, n_jobs, progress, |watch| {
            sandwich(network, total, size.0, size.1, size.2, seed, watch)
        })?;
        let found = outcome.uninterrupted()?;
        Ok((found.lower.into(), found.upper.into()))
    }
}

impl Allocation {
    fn estimate(
        &self,
        py: Python<'_>,
        algorithm: Algorithm,
        n_replicates: usize,
        seed: u64,
        n_jobs: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<AllocationEstimate> {
        let outcome = detach::run(py, n_jobs, progress, |watch| {
            ln_probability(&self.problem, &algorithm, n_replicates, seed, watch)
        })?;
        Ok(outcome.uninterrupted()?.into())
    }
}

/// Rounds of parallel tempering.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct AllocationTempering {
    outcome: Outcome,
}

/// Scans, estimates of the replicates, both sides, round trips, barrier.
type RoundRow = (usize, Vec<f64>, (f64, f64), u64, f64);

#[pymethods]
impl AllocationTempering {
    #[getter]
    fn ln_value(&self) -> f64 {
        self.outcome.ln_value()
    }

    #[getter]
    fn std_error(&self) -> f64 {
        self.outcome.std_error()
    }

    #[getter]
    fn rounds(&self) -> Vec<RoundRow> {
        let row = |round: &Round| {
            let [forward, backward] = round.sides;
            let sides = (forward, backward);
            (round.n_scans, round.ln_values.clone(), sides, round.n_trips, round.barrier)
        };
        self.outcome.rounds.iter().map(row).collect()
    }

    /// Inverse temperatures of the last round.
    #[getter]
    fn betas(&self) -> Vec<f64> {
        self.outcome.betas.clone()
    }

    /// Rejections of the swaps between them.
    #[getter]
    fn rejections(&self) -> Vec<f64> {
        self.outcome.rejections.clone()
    }

    #[getter]
    fn converged(&self) -> bool {
        self.outcome.converged
    }

    #[getter]
    fn stopped(&self) -> bool {
        self.outcome.stopped
    }
}

/// The ascent of a method.
pub(crate) fn ascent(method: &str) -> PyResult<Ascent> {
    match method {
        "vb" => Ok(Ascent::Variational),
        "em" => Ok(Ascent::Em),
        "dual-em" => Ok(Ascent::DualEm),
        "icm" => Ok(Ascent::Icm),
        other => Err(PyValueError::new_err(format!("method {other:?}"))),
    }
}

/// Options of the particle filter, resampled below a share `threshold` of effective particles:
/// read from an object with these attributes.
#[derive(FromPyObject)]
pub(crate) struct FilterOptions {
    n_particles: usize,
    threshold: f64,
    resampling: String,
    order: Order,
}

impl FilterOptions {
    pub(crate) fn to_core(&self) -> PyResult<Filter> {
        let resampling = match self.resampling.as_str() {
            "multinomial" => Resampling::Multinomial,
            "residual" => Resampling::Residual,
            "stratified" => Resampling::Stratified,
            "systematic" => Resampling::Systematic,
            other => return Err(PyValueError::new_err(format!("resampling {other:?}"))),
        };
        let order = match &self.order {
            Order::Cells(cells) => TokenOrder::Given(cells.clone()),
            Order::Name(name) if name == "random" => TokenOrder::Random,
            Order::Name(name) if name == "sorted" => TokenOrder::Sorted,
            Order::Name(other) => return Err(PyValueError::new_err(format!("order {other:?}"))),
        };
        let (n_particles, threshold) = (self.n_particles, self.threshold);
        Ok(Filter { n_particles, threshold, resampling, order })
    }
}

/// In which order tokens are drawn: "random", "sorted", or cells by number.
#[derive(FromPyObject)]
enum Order {
    Name(String),
    Cells(Vec<u32>),
}

/// ln of a probability, and how well it is known.
#[pyclass(frozen, get_all, module = "polyabayes._core")]
pub(crate) struct AllocationEstimate {
    ln_value: f64,
    std_error: f64,
    n_eff: f64,
    n_replicates: u32,
}

impl From<Estimate> for AllocationEstimate {
    fn from(estimate: Estimate) -> Self {
        AllocationEstimate {
            ln_value: estimate.ln_value,
            std_error: estimate.std_error,
            n_eff: estimate.n_eff,
            n_replicates: estimate.n_replicates,
        }
    }
}

/// Family counts of a decomposition.
#[pyclass(frozen, get_all, module = "polyabayes._core")]
pub(crate) struct AllocationDecomposition {
    /// Counts of every table, flat, (child, parents...).
    counts: Vec<Py<PyArray1<f64>>>,
    /// Objective of every iteration; given the total, if all cells were observed.
    trace: Py<PyArray1<f64>>,
    /// The last of the trace.
    ln_value: f64,
    /// Whether the last gain was below the tolerance.
    converged: bool,
    /// Expected counts of the missing cells.
    expected: Py<PyArray1<f64>>,
}

impl AllocationDecomposition {
    pub(crate) fn new(py: Python<'_>, decomposition: Decomposition, expected: Vec<f64>) -> Self {
        let array = |values| PyArray1::from_vec(py, values).unbind();
        let Decomposition { counts, trace, converged } = decomposition;
        let ln_value = trace.last().copied().unwrap_or(f64::NAN);
        let counts = counts.into_iter().map(array).collect();
        let (trace, expected) = (array(trace), array(expected));
        AllocationDecomposition { counts, trace, ln_value, converged, expected }
    }
}

//! Results of the evidence, decompositions and missing cells, as Python gets them.

use numpy::{Element, PyArray1};
use polyabayes::Estimate;
use polyabayes::allocation::{Completion, Decomposition, Network, Posterior};
use polyabayes::counts::CountTensor;
use polyabayes::temper::{Round, TemperingOutcome};
use pyo3::prelude::*;

/// ln of a probability, and how well it is known.
#[pyclass(frozen, get_all, module = "polyabayes._core")]
pub(crate) struct AllocationEstimate {
    ln_value: f64,
    std_error: f64,
    n_eff: f64,
    n_replicates: u32,
}

/// Whether replicates tell too little for their standard error to be trusted.
#[pyfunction]
pub(crate) fn is_doubtful(std_error: f64, n_eff: f64, n_replicates: u32) -> bool {
    Estimate { ln_value: 0.0, std_error, n_eff, n_replicates }.is_doubtful()
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

/// Scans, estimates of the replicates, both sides, round trips, barrier.
type RoundRow = (usize, Vec<f64>, (f64, f64), u64, f64);

/// Rounds of parallel tempering.
#[pyclass(frozen, get_all, module = "polyabayes._core")]
pub(crate) struct AllocationTempering {
    rounds: Vec<RoundRow>,
    /// Inverse temperatures of the last round.
    betas: Vec<f64>,
    /// Rejections of the swaps between them.
    rejections: Vec<f64>,
    converged: bool,
    /// Degrees of freedom of the standard error.
    n_free: usize,
}

impl AllocationTempering {
    pub(super) fn new(outcome: TemperingOutcome) -> Self {
        let row = |round: &Round| {
            let sides = (round.sides[0], round.sides[1]);
            (round.n_scans, round.ln_values.clone(), sides, round.n_trips, round.barrier)
        };
        let (rounds, n_free) = (outcome.rounds.iter().map(row).collect(), outcome.n_free());
        let TemperingOutcome { betas, rejections, converged, .. } = outcome;
        AllocationTempering { rounds, betas, rejections, converged, n_free }
    }
}

/// Draws from the posterior, all in a row.
pub(super) struct DrawRows {
    tempering: Option<TemperingOutcome>,
    particles: Option<Estimate>,
    others: Vec<Estimate>,
    hidden: Vec<usize>,
    replicates: Vec<i64>,
    ln_laws: Vec<f64>,
    /// First group of every draw, and the number of all groups.
    starts: Vec<i64>,
    cells: Vec<u32>,
    numbers: Vec<u32>,
    values: Vec<u32>,
    /// Counts of every table, draw after draw.
    counts: Vec<Vec<f64>>,
}

impl DrawRows {
    /// The draws of a posterior, each of which is dropped as its rows are written.
    pub(super) fn new(posterior: Posterior, network: &Network, data: &CountTensor) -> Self {
        let Posterior { tempering, particles, others, hidden, draws } = posterior;
        let n_groups: usize = draws.iter().map(|draw| draw.groups.len()).sum();
        let n_draws = draws.len();
        let mut rows = DrawRows {
            tempering,
            particles,
            others,
            replicates: draws.iter().map(|draw| draw.replicate as i64).collect(),
            ln_laws: draws.iter().map(|draw| draw.ln_law).collect(),
            starts: vec![0],
            cells: Vec::with_capacity(n_groups),
            numbers: Vec::with_capacity(n_groups),
            values: Vec::with_capacity(n_groups * hidden.len()),
            counts: Vec::new(),
            hidden,
        };
        for draw in draws {
            let counts = draw.counts(network, data, &rows.hidden);
            if rows.counts.is_empty() {
                let room = |of_table: &Vec<f64>| Vec::with_capacity(n_draws * of_table.len());
                rows.counts = counts.iter().map(room).collect();
            }
            rows.counts.iter_mut().zip(counts).for_each(|(all, counts)| all.extend(counts));
            rows.cells.extend(draw.groups.iter().map(|group| group.0));
            rows.numbers.extend(draw.groups.iter().map(|group| group.1));
            rows.values.extend(draw.values);
            rows.starts.push(rows.cells.len() as i64);
        }
        rows
    }
}

/// Allocations drawn from their posterior.
#[pyclass(frozen, get_all, module = "polyabayes._core")]
pub(crate) struct AllocationDraws {
    /// Rounds of the tempering; None where nothing is hidden.
    tempering: Option<Py<AllocationTempering>>,
    /// ln Pr(X | T) and how well it is known; None where nothing is hidden.
    estimate: Option<Py<AllocationEstimate>>,
    /// The same under each of the other priors.
    others: Vec<Py<AllocationEstimate>>,
    /// Hidden nodes, by number.
    hidden: Vec<usize>,
    /// Replicate that every draw comes from.
    replicates: Py<PyArray1<i64>>,
    /// ln Pr(X, S | T) of every draw.
    ln_laws: Py<PyArray1<f64>>,
    /// First group of every draw, and the number of all groups.
    starts: Py<PyArray1<i64>>,
    /// Cell of each group of equal tokens.
    cells: Py<PyArray1<u32>>,
    /// Tokens of each group.
    numbers: Py<PyArray1<u32>>,
    /// Values of the hidden nodes, group after group.
    values: Py<PyArray1<u32>>,
    /// Counts of every table, flat, (child, parents...), draw after draw.
    counts: Vec<Py<PyArray1<f64>>>,
}

impl AllocationDraws {
    pub(super) fn new(py: Python<'_>, rows: DrawRows) -> PyResult<Self> {
        fn array<T: Element>(py: Python<'_>, values: Vec<T>) -> Py<PyArray1<T>> {
            PyArray1::from_vec(py, values).unbind()
        }
        let estimate = rows.tempering.as_ref().map(TemperingOutcome::estimate).or(rows.particles);
        let estimate = estimate.map(|found| Py::new(py, AllocationEstimate::from(found)));
        let tempering = rows.tempering.map(AllocationTempering::new);
        let others =
            rows.others.into_iter().map(|found| Py::new(py, AllocationEstimate::from(found)));
        Ok(AllocationDraws {
            tempering: tempering.map(|found| Py::new(py, found)).transpose()?,
            estimate: estimate.transpose()?,
            others: others.collect::<PyResult<_>>()?,
            hidden: rows.hidden,
            replicates: array(py, rows.replicates),
            ln_laws: array(py, rows.ln_laws),
            starts: array(py, rows.starts),
            cells: array(py, rows.cells),
            numbers: array(py, rows.numbers),
            values: array(py, rows.values),
            counts: rows.counts.into_iter().map(|counts| array(py, counts)).collect(),
        })
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
    pub(super) fn new(py: Python<'_>, decomposition: Decomposition, expected: Vec<f64>) -> Self {
        let array = |values| PyArray1::from_vec(py, values).unbind();
        let Decomposition { counts, trace, converged } = decomposition;
        let ln_value = trace.last().copied().unwrap_or(f64::NAN);
        let counts = counts.into_iter().map(array).collect();
        let (trace, expected) = (array(trace), array(expected));
        AllocationDecomposition { counts, trace, ln_value, converged, expected }
    }
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
    pub(super) fn new(py: Python<'_>, found: &Completion) -> PyResult<Self> {
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

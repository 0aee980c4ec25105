//! Results of the evidence, decompositions and missing cells, as Python gets them.

use numpy::{PyArray1, PyArray2};
use polyabayes::Estimate;
use polyabayes::allocation::{Completion, Decomposition, Draw, Network, Posterior};
use polyabayes::counts::CountTensor;
use polyabayes::temper::{Outcome, Round};
use pyo3::exceptions::PyIndexError;
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

/// Rounds of parallel tempering.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct AllocationTempering {
    outcome: Outcome,
}

/// Scans, estimates of the replicates, both sides, round trips, barrier.
type RoundRow = (usize, Vec<f64>, (f64, f64), u64, f64);

/// Cells, numbers of tokens, hidden values.
type Groups = (Py<PyArray1<u32>>, Py<PyArray1<u32>>, Py<PyArray1<u32>>);

impl AllocationTempering {
    pub(super) fn new(outcome: Outcome) -> Self {
        AllocationTempering { outcome }
    }
}

#[pymethods]
impl AllocationTempering {
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

    /// Degrees of freedom of the standard error.
    #[getter]
    fn n_free(&self) -> usize {
        self.outcome.n_free()
    }
}

/// Allocations drawn from their posterior.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct AllocationDraws {
    posterior: Posterior,
    /// Counts of all tables, draw after draw.
    counts: Vec<Vec<Vec<f64>>>,
}

impl AllocationDraws {
    pub(super) fn new(posterior: Posterior, network: &Network, data: &CountTensor) -> Self {
        let of_draw = |draw: &Draw| draw.counts(network, data, &posterior.hidden);
        let counts = posterior.draws.iter().map(of_draw).collect();
        AllocationDraws { posterior, counts }
    }
}

#[pymethods]
impl AllocationDraws {
    /// Rounds of the tempering; None where nothing is hidden.
    #[getter]
    fn tempering(&self) -> Option<AllocationTempering> {
        self.posterior.tempering.clone().map(AllocationTempering::new)
    }

    /// ln Pr(X | T) and how well it is known; None where nothing is hidden.
    #[getter]
    fn estimate(&self) -> Option<AllocationEstimate> {
        self.posterior.tempering.as_ref().map(|outcome| outcome.estimate().into())
    }

    /// Hidden nodes, by number.
    #[getter]
    fn hidden(&self) -> Vec<usize> {
        self.posterior.hidden.clone()
    }

    /// Replicate that every draw comes from.
    #[getter]
    fn replicates(&self) -> Vec<usize> {
        self.posterior.draws.iter().map(|draw| draw.replicate).collect()
    }

    /// ln Pr(X, S | T) of every draw.
    #[getter]
    fn ln_laws(&self) -> Vec<f64> {
        self.posterior.draws.iter().map(|draw| draw.ln_law).collect()
    }

    /// Counts of every table, flat, (child, parents...), of every draw.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray2<f64>>>> {
        let n_tables = self.counts.first().map_or(0, Vec::len);
        let table = |table: usize| {
            let rows: Vec<Vec<f64>> = self.counts.iter().map(|draw| draw[table].clone()).collect();
            Ok(PyArray2::from_vec2(py, &rows)?)
        };
        (0..n_tables).map(table).collect()
    }

    /// Cells and numbers of the groups of equal tokens of a draw, and the values of their hidden
    /// nodes, group after group.
    fn allocation(&self, py: Python<'_>, draw: usize) -> PyResult<Groups> {
        let found = self.posterior.draws.get(draw);
        let draw = found.ok_or_else(|| PyIndexError::new_err(format!("draw {draw}")))?;
        let (cells, numbers): (Vec<u32>, Vec<u32>) = draw.groups.iter().copied().unzip();
        let array = |values| PyArray1::from_vec(py, values).unbind();
        Ok((array(cells), array(numbers), array(draw.values.clone())))
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
    /// Rounds of the tempering that it began with.
    tempering: Option<Py<AllocationTempering>>,
}

impl AllocationCompletion {
    pub(super) fn new(py: Python<'_>, found: &Completion) -> PyResult<Self> {
        let array = |values: Vec<f64>| PyArray1::from_vec(py, values).unbind();
        let values = |shares: &[(f64, f64)]| array(shares.iter().map(|share| share.0).collect());
        let errors = |shares: &[(f64, f64)]| array(shares.iter().map(|share| share.1).collect());
        let tempering = found.tempering.clone().map(AllocationTempering::new);
        let tempering = tempering.map(|found| Py::new(py, found));
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
            tempering: tempering.transpose()?,
        })
    }
}

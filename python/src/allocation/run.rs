//! The evidence by tasks that run on workers.

use std::sync::{Mutex, PoisonError};

use polyabayes::allocation::{EvidenceRun, EvidenceSettings, Task, from_bytes, to_bytes};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::model::{Allocation, Found, found};
use super::options::EvidenceOptions;
use crate::detach::{self, Running};
use crate::errors;

/// An evidence whose tasks run wherever one likes, each a string of bytes.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct AllocationRun {
    allocation: Py<Allocation>,
    run: Mutex<EvidenceRun>,
}

#[pymethods]
impl AllocationRun {
    #[new]
    #[pyo3(signature = (allocation, options, *, n_jobs))]
    fn new(
        py: Python<'_>,
        allocation: Py<Allocation>,
        options: EvidenceOptions,
        n_jobs: usize,
    ) -> PyResult<Self> {
        let settings = options.to_core()?;
        let problem = &allocation.get().problem;
        let outcome =
            detach::run(py, n_jobs, None, |watch| EvidenceRun::new(problem, &settings, watch))?;
        let run = Mutex::new(outcome.uninterrupted()?);
        Ok(AllocationRun { allocation, run })
    }

    /// Tasks that are next; none where the evidence is known.
    fn tasks(&self, py: Python<'_>) -> PyResult<Vec<Py<PyBytes>>> {
        let tasks = self.lock().tasks();
        let bytes = tasks.iter().map(to_bytes).collect::<polyabayes::Result<Vec<_>>>();
        let bytes = bytes.map_err(|error| errors::to_python(py, &error))?;
        Ok(bytes.iter().map(|task| PyBytes::new(py, task).unbind()).collect())
    }

    /// Adds the results of all tasks, in their order; returns how many replicates, or rounds, they end.
    fn add(&self, py: Python<'_>, results: Vec<PyBackedBytes>) -> PyResult<u64> {
        let problem = &self.allocation.get().problem;
        let read: polyabayes::Result<Vec<_>> =
            results.iter().map(|bytes| from_bytes(bytes)).collect();
        let added = read.and_then(|results| self.lock().add(problem, results));
        added.map_err(|error| errors::to_python(py, &error))
    }

    /// The evidence, or what is known of it so far.
    fn evidence(&self) -> Found {
        found(self.lock().evidence())
    }
}

impl AllocationRun {
    fn lock(&self) -> std::sync::MutexGuard<'_, EvidenceRun> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Result of a task of an [`AllocationRun`] with these options, as bytes.
#[pyfunction]
#[pyo3(signature = (allocation, options, task, **running))]
pub(crate) fn run_allocation_task(
    py: Python<'_>,
    allocation: &Allocation,
    options: EvidenceOptions,
    task: PyBackedBytes,
    running: Option<Running>,
) -> PyResult<Py<PyBytes>> {
    let settings: EvidenceSettings = options.to_core()?;
    let problem = &allocation.problem;
    let outcome = detach::call(py, running, usize::MAX, |seed, watch| {
        to_bytes(&from_bytes::<Task>(&task)?.run(problem, &settings, seed, watch)?)
    })?;
    Ok(PyBytes::new(py, &outcome.uninterrupted()?).unbind())
}

//! Replicates of the evidence one by one: on workers, and to go on from.

use polyabayes::allocation::{Choice, Method, Parts, Settings, choose};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use rayon::prelude::*;

use super::model::Allocation;
use super::options::{EvidenceOptions, method_name};
use super::results::{AllocationEstimate, AllocationTempering};
use crate::detach;
use crate::errors;

/// A ladder, and what a round that ended has found.
type Ladder = (Py<PyBytes>, Option<Py<PyBytes>>);

/// Estimate, rounds of tempering, scans of the next one if there is to be one.
type Course = (AllocationEstimate, AllocationTempering, Option<usize>);

/// Replicates of the evidence of a tensor, by a method and its options.
#[pyclass(frozen, module = "polyabayes._core")]
pub(crate) struct AllocationParts {
    allocation: Py<Allocation>,
    settings: Settings,
    seed: u64,
}

#[pymethods]
impl AllocationParts {
    #[new]
    #[pyo3(signature = (allocation, options, *, seed))]
    fn new(allocation: Py<Allocation>, options: EvidenceOptions, seed: u64) -> PyResult<Self> {
        Ok(AllocationParts { allocation, settings: options.to_core()?, seed })
    }

    /// The name of the method that is to be taken, and the estimate of one that is exact.
    #[pyo3(signature = (*, n_jobs))]
    fn choose(
        &self,
        py: Python<'_>,
        n_jobs: usize,
    ) -> PyResult<(&'static str, Option<AllocationEstimate>)> {
        let problem = self.allocation.get().problem();
        let outcome = detach::run(py, n_jobs, None, |watch| {
            choose(problem, &self.settings, self.seed, watch)
        })?;
        Ok(match outcome.uninterrupted()? {
            Choice::Known(found) => (method_name(found.method), Some(found.estimate.into())),
            Choice::Sample(sampler) => (method_name(Method::Sample(sampler)), None),
        })
    }

    /// ln Ẑ of replicates of a filter, and the relative variances that they know of.
    #[pyo3(signature = (replicates, *, n_jobs))]
    fn filtered(
        &self,
        py: Python<'_>,
        replicates: Vec<usize>,
        n_jobs: usize,
    ) -> PyResult<Vec<(f64, f64)>> {
        let parts = self.parts()?;
        let outcome = detach::run(py, n_jobs, None, |watch| {
            replicates.par_iter().map(|&replicate| parts.run(replicate, watch)).collect()
        })?;
        outcome.uninterrupted()
    }

    /// The estimate by all replicates of a filter.
    fn of_runs(&self, runs: Vec<(f64, f64)>) -> PyResult<AllocationEstimate> {
        Ok(self.parts()?.of_runs(&runs).estimate.into())
    }

    /// Parameter of the reference that all ladders share.
    #[pyo3(signature = (*, n_jobs))]
    fn reference(&self, py: Python<'_>, n_jobs: usize) -> PyResult<f64> {
        let parts = self.parts()?;
        detach::run(py, n_jobs, None, |watch| parts.reference(watch))?.uninterrupted()
    }

    /// Ladders of replicates before their first round.
    #[pyo3(signature = (kappa, replicates, *, n_jobs))]
    fn ladders(
        &self,
        py: Python<'_>,
        kappa: f64,
        replicates: Vec<usize>,
        n_jobs: usize,
    ) -> PyResult<Vec<Py<PyBytes>>> {
        let parts = self.parts()?;
        let outcome = detach::run(py, n_jobs, None, |watch| {
            let ladder = |&replicate| parts.ladder(kappa, replicate, watch);
            replicates.par_iter().map(ladder).collect::<polyabayes::Result<Vec<_>>>()
        })?;
        Ok(outcome.uninterrupted()?.iter().map(|ladder| bytes(py, ladder)).collect())
    }

    /// Ladders after a part of a round of `n_scans` scans, and what a round that ended has found.
    #[pyo3(signature = (kappa, ladders, n_scans, *, n_jobs))]
    fn ladder_parts(
        &self,
        py: Python<'_>,
        kappa: f64,
        ladders: Vec<PyBackedBytes>,
        n_scans: usize,
        n_jobs: usize,
    ) -> PyResult<Vec<Ladder>> {
        let parts = self.parts()?;
        let outcome = detach::run(py, n_jobs, None, |watch| {
            let part = |ladder: &PyBackedBytes| parts.ladder_part(kappa, ladder, n_scans, watch);
            ladders.par_iter().map(part).collect::<polyabayes::Result<Vec<_>>>()
        })?;
        let of_part = |(ladder, found): &(Vec<u8>, Option<Vec<u8>>)| {
            (bytes(py, ladder), found.as_ref().map(|found| bytes(py, found)))
        };
        Ok(outcome.uninterrupted()?.iter().map(of_part).collect())
    }

    /// The estimate by the rounds so far, by what all ladders have found in each of them, and the
    /// scans of the next one.
    fn course(&self, py: Python<'_>, rounds: Vec<Vec<PyBackedBytes>>) -> PyResult<Course> {
        let rounds = borrowed(&rounds);
        let found = self.parts()?.course(&rounds);
        let (found, n_scans) = found.map_err(|error| errors::to_python(py, &error))?;
        let tempering = AllocationTempering::new(found.tempering.unwrap_or_default());
        Ok((found.estimate.into(), tempering, n_scans))
    }

    /// The estimate by all rounds, or by another path where they have not settled.
    #[pyo3(signature = (rounds, *, n_jobs))]
    fn finish(
        &self,
        py: Python<'_>,
        rounds: Vec<Vec<PyBackedBytes>>,
        n_jobs: usize,
    ) -> PyResult<(AllocationEstimate, AllocationTempering)> {
        let parts = self.parts()?;
        let rounds = borrowed(&rounds);
        let found = detach::run(py, n_jobs, None, |watch| parts.finish(&rounds, watch))?;
        let found = found.uninterrupted()?;
        let tempering = AllocationTempering::new(found.tempering.unwrap_or_default());
        Ok((found.estimate.into(), tempering))
    }
}

impl AllocationParts {
    fn parts(&self) -> PyResult<Parts<'_>> {
        let Method::Sample(sampler) = self.settings.method else {
            return Err(PyValueError::new_err("a method without replicates"));
        };
        let problem = self.allocation.get().problem();
        Ok(Parts { problem, sampler, settings: &self.settings, seed: self.seed })
    }
}

fn borrowed(rounds: &[Vec<PyBackedBytes>]) -> Vec<Vec<&[u8]>> {
    rounds.iter().map(|found| found.iter().map(|bytes| &**bytes).collect()).collect()
}

fn bytes(py: Python<'_>, content: &[u8]) -> Py<PyBytes> {
    PyBytes::new(py, content).unbind()
}

//! Starts of a chain whose tokens are elsewhere.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use polyabayes::math::ExactSum;
use polyabayes::training::{self, FirstTopics};
use pyo3::prelude::*;

use super::{Floats, Table, Urns, table};
use crate::detach;
use crate::training::FitSchedule;

/// Uniform topics of tokens, one after the other.
#[pyclass(module = "polyabayes._core", name = "FirstTopics")]
pub(crate) struct PyFirstTopics(FirstTopics);

#[pymethods]
impl PyFirstTopics {
    /// Those of the next tokens.
    fn next<'py>(&mut self, py: Python<'py>, n_tokens: usize) -> Bound<'py, PyArray1<u16>> {
        let mut topics = vec![0; n_tokens];
        self.0.fill(&mut topics);
        PyArray1::from_vec(py, topics)
    }
}

/// The part of a start that belongs to no document. Counts are those of all parts in sum, (V, K).
#[pyclass(module = "polyabayes._core")]
pub(crate) struct ShardedStart {
    inner: training::ShardedStart,
    n_jobs: usize,
}

#[pymethods]
impl ShardedStart {
    #[new]
    fn new(
        py: Python<'_>,
        n_words: usize,
        alpha: PyReadonlyArray1<'_, f64>,
        beta: f64,
        schedule: FitSchedule,
        run: u64,
    ) -> PyResult<Self> {
        let alpha = alpha.as_slice()?.to_vec();
        let (n_sweeps, seed, n_jobs) = (schedule.start_sweeps, schedule.seed, schedule.n_jobs);
        let new = || training::ShardedStart::new(n_words, alpha, beta, n_sweeps, seed, run);
        Ok(ShardedStart { inner: detach::briefly(py, new)?, n_jobs })
    }

    /// Topics at first.
    #[getter]
    fn n_topics(&self) -> usize {
        self.inner.n_topics()
    }

    fn first_topics(&self) -> PyFirstTopics {
        PyFirstTopics(self.inner.first_topics())
    }

    /// Sets φ for the sweep of this number; the scales and the pseudo-counts, no rates.
    fn prepare<'py>(
        &mut self,
        py: Python<'py>,
        counts: PyReadonlyArray2<'py, u32>,
        sweep: u64,
    ) -> PyResult<Urns<'py>> {
        let (inner, counts) = (&mut self.inner, counts.as_slice()?);
        let prepare = |_: &detach::Watch| inner.prepare(counts, sweep);
        detach::run(py, self.n_jobs, None, prepare)?.uninterrupted()?;
        let (_, scale, a) = self.inner.weights();
        let floats = |values| PyArray1::from_slice(py, values);
        Ok((floats(scale), floats(a), None))
    }

    /// φ up to the scale of each topic, (V, K).
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Table<'py>> {
        let (weights, _, a) = self.inner.weights();
        table(py, weights, a.len())
    }

    /// The number that each topic has after all mergers.
    fn merge<'py>(
        &mut self,
        py: Python<'py>,
        counts: PyReadonlyArray2<'py, u32>,
    ) -> PyResult<Bound<'py, PyArray1<u16>>> {
        let (inner, counts) = (&mut self.inner, counts.as_slice()?);
        let outcome = detach::run(py, self.n_jobs, None, |watch| inner.merge(counts, watch))?;
        Ok(PyArray1::from_vec(py, outcome.uninterrupted()?))
    }

    /// Pseudo-counts of documents after the mergers.
    fn pseudo_counts<'py>(&self, py: Python<'py>) -> Floats<'py> {
        PyArray1::from_vec(py, self.inner.pseudo_counts())
    }

    /// ln of the joint density after the mergers, up to a constant.
    fn ln_joint(
        &self,
        py: Python<'_>,
        counts: PyReadonlyArray2<'_, u32>,
        ln_urns: i128,
    ) -> PyResult<f64> {
        let (counts, ln_urns) = (counts.as_slice()?, ExactSum::from_parts(ln_urns));
        let work = |_: &detach::Watch| self.inner.ln_joint(counts, ln_urns);
        detach::run(py, self.n_jobs, None, work)?.uninterrupted()
    }

    /// New numbers of topics with so many tokens each, the largest where its prior is largest.
    fn numbers_by_size<'py>(
        &self,
        py: Python<'py>,
        n_tokens: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyArray1<u16>>> {
        let n_tokens = n_tokens.as_slice()?;
        let numbers = detach::briefly(py, || self.inner.numbers_by_size(n_tokens))?;
        Ok(PyArray1::from_vec(py, numbers))
    }
}

impl ShardedStart {
    /// φ up to the scale of each topic, word-major.
    pub(super) fn topic_weights(&self) -> &[f64] {
        self.inner.weights().0
    }
}

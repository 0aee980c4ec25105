//! Chains whose tokens are elsewhere: their parameters between two sweeps.

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use polyabayes::Result;
use polyabayes::math::ExactSum;
use polyabayes::training::{
    self, ExposedPart, Globals, Kept, LdaGlobals, LdaPrior, LnDocuments, PfaGlobals, PfaPrior,
    Swept,
};
use pyo3::prelude::*;

use super::{Floats, Table, Urns, table};
use crate::training::{FitSchedule, Flat, Means, kept_sum};
use crate::{detach, errors};

/// Sweeps done, the parameters beside φ, sweeps kept and their sum.
type ChainState<'py> = (u64, Vec<f64>, u64, Option<PyReadonlyArray1<'py, f64>>);
/// Tokens of every topic by exposure in a part: first entries of topics and the end, (K + 1,), numbers
/// of exposures and tokens.
type Exposed<'py> =
    (PyReadonlyArray1<'py, u64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u32>);

/// A chain of any model, φ and the other parameters as arrays.
trait Chain: Send + Sync {
    fn n_sweeps(&self) -> u64;
    fn parameters(&self) -> Vec<f64>;
    fn pseudo_counts(&self) -> &[f64];
    fn n_kept(&self) -> u64;
    fn kept(&self) -> (u64, Option<Vec<f64>>);
    fn weights(&self) -> (&[f64], &[f64]);
    fn rates(&self) -> Option<&[f64]>;
    fn n_exposures(&self) -> usize;
    fn advance(&mut self, counts: &[u32], swept: Swept<'_>) -> Result<()>;
    fn mean(&self, counts: &[u32]) -> Result<Means>;
    fn ln_joint(&self, counts: &[u32], documents: LnDocuments<'_>) -> Result<f64>;
}

impl<G> Chain for training::ShardedChain<G>
where
    G: Globals<Parameters: Flat + Send + Sync> + Send + Sync,
{
    fn n_sweeps(&self) -> u64 {
        self.n_sweeps()
    }

    fn parameters(&self) -> Vec<f64> {
        self.parameters()
    }

    fn pseudo_counts(&self) -> &[f64] {
        self.pseudo_counts()
    }

    fn n_kept(&self) -> u64 {
        self.kept().n
    }

    fn kept(&self) -> (u64, Option<Vec<f64>>) {
        let kept = self.kept();
        (kept.n, kept.sum.clone().map(Flat::into_flat))
    }

    fn weights(&self) -> (&[f64], &[f64]) {
        self.weights()
    }

    fn rates(&self) -> Option<&[f64]> {
        self.rates()
    }

    fn n_exposures(&self) -> usize {
        self.n_exposures()
    }

    fn advance(&mut self, counts: &[u32], swept: Swept<'_>) -> Result<()> {
        self.advance(counts, swept)
    }

    fn mean(&self, counts: &[u32]) -> Result<Means> {
        Ok(self.mean(counts)?.into_arrays())
    }

    fn ln_joint(&self, counts: &[u32], documents: LnDocuments<'_>) -> Result<f64> {
        self.ln_joint(counts, documents)
    }
}

/// The part of a chain that belongs to no document. Counts are those of all parts in sum, (V, K).
#[pyclass(module = "polyabayes._core")]
pub(crate) struct ShardedChain {
    inner: Box<dyn Chain>,
    n_jobs: usize,
}

#[pymethods]
impl ShardedChain {
    /// LDA; `state` is the number of sweeps, the parameters, the number of kept sweeps and their sum.
    #[staticmethod]
    #[pyo3(signature = (n_words, alpha, beta, learned, schedule, counts, state = None))]
    #[expect(clippy::too_many_arguments, reason = "the model's priors, by name")]
    fn lda(
        py: Python<'_>,
        n_words: usize,
        alpha: PyReadonlyArray1<'_, f64>,
        beta: f64,
        learned: bool,
        schedule: FitSchedule,
        counts: PyReadonlyArray2<'_, u32>,
        state: Option<ChainState<'_>>,
    ) -> PyResult<Self> {
        let prior = LdaPrior { alpha: alpha.as_slice()?.to_vec(), beta, learned };
        let globals = LdaGlobals::new(n_words, prior, schedule.seed);
        let globals = globals.map_err(|error| errors::to_python(py, &error))?;
        Self::of(py, globals, n_words, &schedule, counts, state)
    }

    /// Poisson factor analysis of so many documents; priors that are None keep their parameter fixed.
    /// `exposures` are the different ones in increasing order, and the number of documents of each.
    #[staticmethod]
    #[pyo3(signature = (n_words, n_documents, exposures, shape, probability, topic_word_prior,
                        probability_prior, shape_prior, schedule, counts, state = None))]
    #[expect(clippy::too_many_arguments, reason = "the model's parameters and priors, by name")]
    fn pfa(
        py: Python<'_>,
        n_words: usize,
        n_documents: usize,
        exposures: Option<(PyReadonlyArray1<'_, f64>, PyReadonlyArray1<'_, u64>)>,
        shape: PyReadonlyArray1<'_, f64>,
        probability: PyReadonlyArray1<'_, f64>,
        topic_word_prior: f64,
        probability_prior: Option<(f64, f64)>,
        shape_prior: Option<(f64, f64)>,
        schedule: FitSchedule,
        counts: PyReadonlyArray2<'_, u32>,
        state: Option<ChainState<'_>>,
    ) -> PyResult<Self> {
        let prior = PfaPrior {
            topic_word: topic_word_prior,
            probability: probability_prior,
            shape: shape_prior,
        };
        let (r, p) = (shape.as_slice()?.to_vec(), probability.as_slice()?.to_vec());
        let mut globals = PfaGlobals::new(n_words, n_documents, prior, r, p, schedule.seed);
        if let Some((values, n)) = exposures {
            let (values, n) = (values.as_slice()?, n.as_slice()?);
            globals = globals.and_then(|globals| globals.with_exposures(values, n));
        }
        let globals = globals.map_err(|error| errors::to_python(py, &error))?;
        Self::of(py, globals, n_words, &schedule, counts, state)
    }

    #[getter]
    fn n_sweeps(&self) -> u64 {
        self.inner.n_sweeps()
    }

    /// Parameters beside φ, one array after the other: α and β; r, p and ln(1 - p).
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> Floats<'py> {
        PyArray1::from_vec(py, self.inner.parameters())
    }

    /// Pseudo-counts of documents: α, or r.
    #[getter]
    fn pseudo_counts<'py>(&self, py: Python<'py>) -> Floats<'py> {
        PyArray1::from_slice(py, self.inner.pseudo_counts())
    }

    /// Number of kept sweeps.
    #[getter]
    fn n_kept(&self) -> u64 {
        self.inner.n_kept()
    }

    /// Number of kept sweeps, and the sum of their parameters, flat.
    fn kept<'py>(&self, py: Python<'py>) -> (u64, Option<Floats<'py>>) {
        let (n, sum) = self.inner.kept();
        (n, sum.map(|sum| PyArray1::from_vec(py, sum)))
    }

    /// The scales of φ, the pseudo-counts, and the rates where documents have exposures, for the next
    /// sweep.
    fn urns<'py>(&self, py: Python<'py>) -> Urns<'py> {
        let floats = |values| PyArray1::from_slice(py, values);
        let rates = self.inner.rates().map(floats);
        (floats(self.inner.weights().1), self.pseudo_counts(py), rates)
    }

    /// φ up to the scale of each topic, (V, K).
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Table<'py>> {
        let (weights, scale) = self.inner.weights();
        table(py, weights, scale.len())
    }

    /// Takes up a sweep over all tokens; gives the exception, if any, that came meanwhile.
    fn advance(
        &mut self,
        py: Python<'_>,
        counts: PyReadonlyArray2<'_, u32>,
        n_tables: PyReadonlyArray1<'_, u64>,
        lengths: PyReadonlyArray1<'_, u32>,
        exposed: Vec<Exposed<'_>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let counts = counts.as_slice()?;
        let exposed = &exposed_parts(py, &exposed, self.inner.n_exposures())?;
        let swept = Swept { n_tables: n_tables.as_slice()?, lengths: lengths.as_slice()?, exposed };
        let inner = &mut self.inner;
        let advance = |_: &detach::Watch| inner.advance(counts, swept);
        Ok(detach::run(py, self.n_jobs, None, advance)?.into_parts(py).1)
    }

    /// Posterior means: φ (V, K), and α and β (1,), or r and p.
    fn mean<'py>(
        &self,
        py: Python<'py>,
        counts: PyReadonlyArray2<'py, u32>,
    ) -> PyResult<(Table<'py>, [Floats<'py>; 2])> {
        let counts = counts.as_slice()?;
        let mean = |_: &detach::Watch| self.inner.mean(counts);
        let ((phi, others), _) = detach::run(py, self.n_jobs, None, mean)?.into_parts(py);
        let n_topics = self.inner.pseudo_counts().len();
        let phi = PyArray1::from_vec(py, phi);
        let phi = phi.reshape([phi.len()? / n_topics, n_topics])?;
        Ok((phi, others.map(|values| PyArray1::from_vec(py, values))))
    }

    /// ln of the joint density, from the sums over all parts.
    fn ln_joint(
        &self,
        py: Python<'_>,
        counts: PyReadonlyArray2<'_, u32>,
        ln_urns: i128,
        ln_lengths: i128,
        exposed: Vec<Exposed<'_>>,
    ) -> PyResult<f64> {
        let counts = counts.as_slice()?;
        let [ln_urns, ln_lengths] = [ln_urns, ln_lengths].map(ExactSum::from_parts);
        let exposed = &exposed_parts(py, &exposed, self.inner.n_exposures())?;
        let documents = LnDocuments { ln_urns, ln_lengths, exposed };
        let work = |_: &detach::Watch| self.inner.ln_joint(counts, documents);
        detach::run(py, self.n_jobs, None, work)?.uninterrupted()
    }
}

/// Tokens of every topic by exposure, checked.
fn exposed_parts<'a>(
    py: Python<'_>,
    parts: &'a [Exposed<'_>],
    n_exposures: usize,
) -> PyResult<Vec<ExposedPart<'a>>> {
    let part = |(starts, exposures, tokens): &'a Exposed<'_>| {
        let (starts, exposures) = (starts.as_slice()?, exposures.as_slice()?);
        let part = ExposedPart::new(starts, exposures, tokens.as_slice()?, n_exposures);
        part.map_err(|error| errors::to_python(py, &error))
    };
    parts.iter().map(part).collect()
}

impl ShardedChain {
    /// φ up to the scale of each topic, word-major.
    pub(super) fn topic_weights(&self) -> &[f64] {
        self.inner.weights().0
    }

    /// The chain of these parameters, from its start or from a state.
    fn of<G>(
        py: Python<'_>,
        globals: G,
        n_words: usize,
        schedule: &FitSchedule,
        counts: PyReadonlyArray2<'_, u32>,
        state: Option<ChainState<'_>>,
    ) -> PyResult<Self>
    where
        G: Globals<Parameters: Flat + Send + Sync> + Send + Sync + 'static,
    {
        let (counts, n_topics) = (counts.as_slice()?, globals.pseudo_counts().len());
        let mut before = None;
        if let Some((n_sweeps, parameters, n, sum)) = state {
            let sum = sum.map(|sum| sum.as_slice().map(<[f64]>::to_vec)).transpose()?;
            let sum = sum.map(|sum| kept_sum(sum, n_words, n_topics)).transpose();
            let sum = sum.map_err(|error| errors::to_python(py, &error))?;
            before = Some((n_sweeps, parameters, Kept { n, sum }));
        }
        let outcome = detach::run(py, schedule.n_jobs, None, |_| {
            let chain = training::ShardedChain::new(globals, schedule.to_core(), counts)?;
            match before {
                Some((n, parameters, kept)) => chain.resumed(n, &parameters, kept, counts),
                None => Ok(chain),
            }
        })?;
        let inner = Box::new(outcome.uninterrupted()?);
        Ok(ShardedChain { inner, n_jobs: schedule.n_jobs })
    }
}

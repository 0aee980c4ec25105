//! Non-negative matrix factorisation by multiplicative updates: no priors, and nothing drawn.

mod parts;

use rayon::prelude::*;

use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Error, Result, array_of, check_all};
use crate::math::{ExactSum, dirichlet, dot, ln_factorial};
use crate::rng::{Key, Purpose};
use crate::training::limits::{check_assignments, check_n_topics};
use crate::training::schedule::{Averaged, Sampler, State, TopicStep, added, check_parameters};
use crate::training::start::{count_documents, count_words};

pub use parts::{NmfPart, nmf_start_topics, nmf_update_topics};

/// Rows per unit of parallel work; fixed, so that sums do not depend on the threads.
const CHUNK: usize = 64;

/// Weights below this are 0: products of two of them would not be normal numbers.
const VANISHED: f64 = 1e-150;

/// Added to the tokens of every word and document in a topic from which updates start: an update
/// multiplies, and leaves a zero as it is.
pub(super) const PSEUDO_COUNT: f64 = 0.1;

/// How near to its maximum, in nats, the log-likelihood of a document must be known to be for its
/// weights to be found, and the most updates that are spent on it.
const GAP: f64 = 1e-3;
const MOST_UPDATES: usize = 1_000;

/// Factors after the last update.
#[derive(Debug, Clone, PartialEq)]
pub struct NmfParameters {
    /// φ, word-major; every topic sums to 1.
    pub phi: Vec<f64>,
    /// Σ_d θ_dk: the tokens of each topic.
    pub n_tokens: Vec<f64>,
}

/// Maximises the Poisson likelihood of y_dw ~ Poisson(Σ_k θ_dk φ_kw), which minimises the
/// Kullback-Leibler divergence, by the updates of Lee and Seung (1999):
///
/// ```text
/// φ_kw ∝ φ_kw Σ_d y_dw θ_dk / λ_dw,   θ_dk ← θ_dk Σ_w y_dw φ_kw / λ_dw,   λ_dw = Σ_k θ_dk φ_kw
/// ```
///
/// Neither lowers the likelihood. Cost of a sweep: non-zero cells x topics, twice; memory: 8 bytes
/// a topic for every word and document.
pub struct NmfUpdates<'a> {
    by_document: &'a CountMatrix,
    by_word: CountMatrix,
    n_topics: usize,
    phi: Vec<f64>,
    theta: Vec<f64>,
    n_sweeps: u64,
}

impl<'a> NmfUpdates<'a> {
    /// Starts from φ_k ~ Dirichlet(1) and one update of equal weights θ.
    ///
    /// # Errors
    /// No topics or more than 65,535; no memory for φ and θ.
    pub fn new(counts: &'a CountMatrix, n_topics: usize, seed: u64) -> Result<Self> {
        check_n_topics(n_topics)?;
        let (n_words, n_documents) = (counts.n_words(), counts.n_documents());
        let mut phi = array_of("topic-word probabilities", n_words * n_topics, 0.0)?;
        let theta = array_of("topic weights of all documents", n_documents * n_topics, 1.0)?;
        let (key, mut topic) = (Key::new(seed, Purpose::Initialise), vec![0.0; n_words]);
        for k in 0..n_topics {
            dirichlet(&vec![1.0; n_words], &mut topic, &mut key.unit(k as u64).rng());
            phi[k..].iter_mut().step_by(n_topics).zip(&topic).for_each(|(to, from)| *to = *from);
        }
        let by_word = counts.transposed();
        let mut updates =
            NmfUpdates { by_document: counts, by_word, n_topics, phi, theta, n_sweeps: 0 };
        updates.update_weights(&())?;
        Ok(updates)
    }

    /// The same updates from φ and θ that are in proportion to the tokens of each topic, and
    /// positive.
    ///
    /// # Errors
    /// Another number of tokens; topics beyond the number of topics.
    pub fn with_assignments(mut self, topics: &[u16]) -> Result<Self> {
        check_assignments(self.by_document, self.n_topics, topics)?;
        self.phi.fill(0.0);
        count_words(self.by_document, topics, &mut self.phi);
        self.theta.fill(0.0);
        count_documents(self.by_document, topics, &mut self.theta);
        self.phi.iter_mut().chain(&mut self.theta).for_each(|n| *n += PSEUDO_COUNT);
        normalise_topics(&mut self.phi, self.n_topics);
        Ok(self)
    }

    /// φ, word-major; every topic sums to 1.
    pub fn phi(&self) -> &[f64] {
        &self.phi
    }

    /// θ, `n_documents` x `n_topics`.
    pub fn theta(&self) -> &[f64] {
        &self.theta
    }

    /// φ given θ. A topic that no document has any more becomes uniform.
    fn update_topics(&mut self, observer: &impl Observer) -> Result<()> {
        let mut updated = array_of("topic-word probabilities", self.phi.len(), 0.0)?;
        updated.copy_from_slice(&self.phi);
        update_rows(&mut updated, &self.by_word, &self.theta, self.n_topics, observer);
        // Words that the observer stopped are on another scale than those that are updated.
        observer.check_stop()?;
        normalise_topics(&mut updated, self.n_topics);
        self.phi = updated;
        Ok(())
    }

    /// θ given φ, whose topics sum to 1.
    fn update_weights(&mut self, observer: &impl Observer) -> Result<()> {
        update_rows(&mut self.theta, self.by_document, &self.phi, self.n_topics, observer);
        observer.check_stop()
    }
}

impl Sampler for NmfUpdates<'_> {
    type Parameters = NmfParameters;

    fn state(&self) -> State {
        let parameters = [&self.phi[..], &self.theta].concat();
        State { n_sweeps: self.n_sweeps, assignments: vec![], parameters }
    }

    fn resume(&mut self, state: &State, _: TopicStep) -> Result<()> {
        check_parameters(&state.parameters, self.phi.len() + self.theta.len())?;
        check_all("weights of the state", &state.parameters, "not negative", |x| x >= 0.0)?;
        let (phi, theta) = state.parameters.split_at(self.phi.len());
        self.phi.copy_from_slice(phi);
        self.theta.copy_from_slice(theta);
        self.n_sweeps = state.n_sweeps;
        Ok(())
    }

    /// ln p(counts | φ, θ): Σ y ln λ - Σ λ - Σ ln y!.
    fn ln_joint(&self) -> f64 {
        let documents = (0..self.by_document.n_documents()).into_par_iter();
        let ln_values = documents.map(|doc_ix| {
            let theta = row(&self.theta, doc_ix as u32, self.n_topics);
            ln_document(self.by_document.document(doc_ix), theta, &self.phi)
        });
        ln_values.sum::<ExactSum>().value()
    }

    fn sweep(&mut self, _: TopicStep, observer: &impl Observer) -> Result<()> {
        self.n_sweeps += 1;
        self.update_topics(observer)?;
        self.update_weights(observer)
    }

    fn expected_parameters(&self, sum: Option<NmfParameters>) -> Result<NmfParameters> {
        let (phi, n_tokens) = sum.map(|sum| (sum.phi, sum.n_tokens)).unzip();
        let own_tokens = exact_sums(&self.theta, self.n_topics).into_iter().map(ExactSum::value);
        Ok(NmfParameters {
            phi: added(phi, self.phi.iter().copied()),
            n_tokens: added(n_tokens, own_tokens),
        })
    }
}

impl Averaged for NmfParameters {
    fn scale(&mut self, factor: f64) {
        self.phi.iter_mut().chain(&mut self.n_tokens).for_each(|x| *x *= factor);
    }
}

/// The weights θ of every document under topics that stay, `n_documents` x `n_topics`.
///
/// `phi` is word-major, and every topic sums to 1. The log-likelihood is concave in θ: updates go
/// on until its maximum is at most 0.001 nats away, or through 1,000 of them. Words that no topic
/// can produce are left out. Cost: updates x non-zero cells x topics.
///
/// # Errors
/// Topics of another vocabulary; [`Error::Stopped`] when the observer asks to stop.
pub fn nmf_weights(
    phi: &[f64],
    documents: &CountMatrix,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let n_topics = phi.len() / documents.n_words();
    let (found, expected) = (phi.len(), n_topics * documents.n_words());
    if n_topics == 0 || found != expected {
        return Err(Error::Length { name: "word-major topics", found, expected });
    }
    let n_weights = documents.n_documents() * n_topics;
    let mut weights = array_of("topic weights of all documents", n_weights, 0.0)?;
    weights.par_chunks_exact_mut(n_topics).enumerate().with_max_len(16).try_for_each(
        |(row, theta)| {
            fold_in(theta, documents.document(row), phi, observer)?;
            observer.advance(1);
            Ok(())
        },
    )?;
    Ok(weights)
}

fn fold_in(
    theta: &mut [f64],
    document: Document<'_>,
    phi: &[f64],
    observer: &impl Observer,
) -> Result<()> {
    let n_topics = theta.len();
    let possible = |&(word, _): &(u32, u32)| row(phi, word, n_topics).iter().any(|&x| x > 0.0);
    let cells: Vec<_> = document.cells().filter(possible).collect();
    let n_tokens: f64 = cells.iter().map(|&(_, y)| f64::from(y)).sum();
    theta.fill(n_tokens / n_topics as f64);
    let mut factors = vec![0.0; n_topics];
    for _ in 0..MOST_UPDATES {
        observer.check_stop()?;
        update(theta, cells.iter().copied(), phi, &mut factors);
        // The factors are the gradient, whose mean under the weights is 1: a concave function
        // lies below its tangent, and no weights reach higher there than those on the largest.
        let largest = factors.iter().copied().fold(0.0, f64::max);
        if n_tokens * (largest - 1.0) < GAP {
            break;
        }
    }
    Ok(())
}

/// Updates every row of `own` given the rows of `others`; those that the observer stops stay.
fn update_rows(
    own: &mut [f64],
    counts: &CountMatrix,
    others: &[f64],
    n_topics: usize,
    observer: &impl Observer,
) {
    own.par_chunks_mut(CHUNK * n_topics).enumerate().for_each(|(chunk, rows)| {
        let mut factors = vec![0.0; n_topics];
        for (ix, own) in (chunk * CHUNK..).zip(rows.chunks_exact_mut(n_topics)) {
            if !observer.stopped() {
                update(own, counts.document(ix).cells(), others, &mut factors);
            }
        }
    });
}

/// Multiplies `own` by `factors`, which become Σ y other / λ over the cells (row of `others`, y).
fn update(
    own: &mut [f64],
    cells: impl Iterator<Item = (u32, u32)>,
    others: &[f64],
    factors: &mut [f64],
) {
    factors.fill(0.0);
    for (other, y) in cells {
        add_factors(factors, own, row(others, other, own.len()), y);
    }
    multiply(own, factors);
}

/// Adds y other / λ of a cell to the factors of the rows that it belongs to.
fn add_factors(factors: &mut [f64], own: &[f64], other: &[f64], y: u32) {
    let ratio = f64::from(y) / dot(own, other);
    factors.iter_mut().zip(other).for_each(|(factor, x)| *factor += ratio * x);
}

fn multiply(own: &mut [f64], factors: &[f64]) {
    for (own, factor) in own.iter_mut().zip(factors) {
        *own *= *factor;
        if *own < VANISHED {
            *own = 0.0;
        }
    }
}

/// Divides every topic by its sum; one that has none becomes uniform.
fn normalise_topics(phi: &mut [f64], n_topics: usize) {
    let sums = column_sums(phi, n_topics);
    let uniform = ((phi.len() / n_topics) as f64).recip();
    phi.par_chunks_mut(CHUNK * n_topics).for_each(|rows| {
        for row in rows.chunks_exact_mut(n_topics) {
            for (phi, &sum) in row.iter_mut().zip(&sums) {
                *phi = if sum > 0.0 { *phi / sum } else { uniform };
            }
        }
    });
}

/// The least ln of a probability that exact sums hold.
const LEAST_LN: f64 = -1e14;

/// ln p(counts of a document | φ, θ): Σ y ln λ - Σ θ - Σ ln y!; [`LEAST_LN`] where it is impossible.
fn ln_document(document: Document<'_>, theta: &[f64], phi: &[f64]) -> f64 {
    let cells = document.cells().map(|(word, y)| {
        let ln_rate = dot(theta, row(phi, word, theta.len())).ln();
        f64::from(y) * ln_rate - ln_factorial(u64::from(y))
    });
    (cells.sum::<f64>() - theta.iter().sum::<f64>()).max(LEAST_LN)
}

/// Sums over the rows, the same for any order of them.
fn exact_sums(rows: &[f64], n_topics: usize) -> Vec<ExactSum> {
    let mut sums = vec![ExactSum::default(); n_topics];
    for row in rows.chunks_exact(n_topics) {
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += x);
    }
    sums
}

/// Sums over the rows, in an order that does not depend on the threads.
fn column_sums(rows: &[f64], n_topics: usize) -> Vec<f64> {
    let add = |mut sums: Vec<f64>, row: &[f64]| {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        sums
    };
    let chunks = rows.par_chunks(CHUNK * n_topics);
    let sums: Vec<Vec<f64>> =
        chunks.map(|rows| rows.chunks_exact(n_topics).fold(vec![0.0; n_topics], add)).collect();
    sums.iter().fold(vec![0.0; n_topics], |total, sums| add(total, sums))
}

fn row(rows: &[f64], ix: u32, n_topics: usize) -> &[f64] {
    &rows[ix as usize * n_topics..][..n_topics]
}

//! The start of training: more topics than asked for, which are then merged.
//!
//! From uniform topics of tokens, a sampler of exactly K topics often ends in a mode in which one
//! topic holds two themes and two topics share another theme; it leaves this mode only by chance.
//! Hardly any theme stays without a topic of its own where there are more topics. Then the pairs of
//! topics are merged whose merger the density of the words likes best, until K are left (compare
//! the split and merge EM of Ueda, Nakano, Ghahramani and Hinton 2000, "SMEM algorithm for mixture
//! models", Neural Computation 12). All this comes before the first sweep of a chain: the chain
//! starts elsewhere, and its law is the same.

mod merge;
mod sharded;
mod wide;

use std::ops::AddAssign;

use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Error, Result};
use crate::training::sweeps::{Assignments, Scheme};

pub use sharded::{FirstTopics, ShardedStart};
pub(super) use wide::start_key;
use wide::{Priors, WideStart, ln_words, numbers_by_size};

/// How to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Sweeps of every start, before topics are merged.
    pub n_sweeps: u64,
    /// Starts, of which the one with the largest joint density is taken.
    pub n_starts: u64,
}

/// The topic of every token from which to train, cell after cell, document after document.
///
/// `alpha` and `beta` are the Dirichlet parameters of LDA, or what comes near them: the shapes of a
/// gamma-Poisson model. Where `alpha` is not the same for all topics, the largest topic gets the
/// largest. Cost: starts x sweeps of 1.5 times as many topics, and some passes over the pairs of
/// topics of each word. The same bits for any number of threads. Ends early, with what it has, when
/// the observer asks to stop.
///
/// # Errors
/// No topics or more than 65,535, no starts, parameters outside their domain, too little memory.
pub fn find_topics(
    counts: &CountMatrix,
    alpha: &[f64],
    beta: f64,
    start: Start,
    seed: u64,
    observer: &impl Observer,
) -> Result<Vec<u16>> {
    let priors = Priors::of(alpha, beta)?;
    if start.n_starts == 0 {
        return Err(Error::Empty { name: "n_init" });
    }
    let (mut best, mut best_value) = (Vec::new(), f64::NEG_INFINITY);
    for run in 0..start.n_starts {
        let wide =
            WideStart::new(counts.n_words(), alpha.len(), priors, start.n_sweeps, seed, run)?;
        let topics = merged(counts, wide, start.n_sweeps, observer)?;
        let value =
            if start.n_starts > 1 { ln_joint(counts, alpha.len(), priors, &topics)? } else { 0.0 };
        if value > best_value {
            (best, best_value) = (topics, value);
        }
        if observer.stopped() {
            break;
        }
    }
    let mut n_tokens = vec![0u64; alpha.len()];
    best.iter().for_each(|&topic| n_tokens[usize::from(topic)] += 1);
    renumber(&mut best, &numbers_by_size(&n_tokens, alpha));
    Ok(best)
}

/// One start: uniform topics of tokens, sweeps of many topics, mergers.
fn merged(
    counts: &CountMatrix,
    mut wide: WideStart,
    n_sweeps: u64,
    observer: &impl Observer,
) -> Result<Vec<u16>> {
    let mut tokens = Assignments::new(counts, wide.n_topics(), wide.initial_key())?;
    for sweep in 1..=n_sweeps {
        match tokens.sweep(wide.step(&tokens, sweep), Scheme::Collapsed, false, observer) {
            Err(Error::Stopped) => break,
            result => result?,
        };
    }
    let numbers = wide.merge(&tokens, observer)?;
    let mut topics = tokens.topics();
    renumber(&mut topics, &numbers);
    Ok(topics)
}

/// ln p(words, topics of all tokens), up to a constant.
fn ln_joint(
    counts: &CountMatrix,
    n_topics: usize,
    priors: Priors,
    assignments: &[u16],
) -> Result<f64> {
    let tokens = Assignments::restored(counts, n_topics, assignments)?;
    Ok(tokens.ln_urns(&vec![priors.a; n_topics]).value() + ln_words(&tokens, n_topics, priors)?)
}

/// Gives topics other numbers.
fn renumber(topics: &mut [u16], numbers: &[u16]) {
    topics.iter_mut().for_each(|topic| *topic = numbers[usize::from(*topic)]);
}

/// Adds the tokens of each topic in each document to `rows`, documents x topics.
pub(in crate::training) fn count_documents<T: AddAssign + From<u8>>(
    counts: &CountMatrix,
    topics: &[u16],
    rows: &mut [T],
) {
    let n_topics = rows.len() / counts.n_documents();
    let mut rest = topics;
    let lengths = counts.documents().map(Document::n_tokens);
    for (row, length) in rows.chunks_exact_mut(n_topics).zip(lengths) {
        let (own, after) = rest.split_at(length as usize);
        own.iter().for_each(|&topic| row[usize::from(topic)] += T::from(1));
        rest = after;
    }
}

/// Adds the tokens of each word in each topic to word-major `rows`.
pub(in crate::training) fn count_words(counts: &CountMatrix, topics: &[u16], rows: &mut [f64]) {
    let n_topics = rows.len() / counts.n_words();
    let mut rest = topics;
    for (word, count) in counts.documents().flat_map(Document::cells) {
        let (own, after) = rest.split_at(count as usize);
        let row = &mut rows[word as usize * n_topics..][..n_topics];
        own.iter().for_each(|&topic| row[usize::from(topic)] += 1.0);
        rest = after;
    }
}

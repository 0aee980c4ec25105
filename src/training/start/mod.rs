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

use std::ops::AddAssign;

use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Error, Result, check_positive};
use crate::rng::{Key, Purpose};
use crate::training::limits::check_n_topics;
use crate::training::schedule::TopicStep;
use crate::training::sweeps::{Assignments, Scheme, Topics};
use crate::urn::MAX_TOPICS;

use merge::Merger;

/// Topics at first, for each topic asked for.
const WIDTH: f64 = 1.5;

/// Most topics at first: all pairs of them are compared.
const MOST_TOPICS: usize = 2048;

/// One in so many of the surplus topics is merged at a time.
const MERGERS_SHARE: usize = 4;

/// Bounds of the Dirichlet parameters of a start. Below the first, tokens keep the topics that they
/// have by chance; above the second in sum over the topics, documents do not tell topics apart.
const LEAST_PRIOR: f64 = 0.01;
const MOST_PRIOR_SUM: f64 = 5.0;

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
    check_n_topics(alpha.len())?;
    check_positive("doc_topic_prior", alpha)?;
    check_positive("topic_word_prior", &[beta])?;
    if start.n_starts == 0 {
        return Err(Error::Empty { name: "n_init" });
    }
    let n_topics = alpha.len() as f64;
    let most = (MOST_PRIOR_SUM / n_topics).max(LEAST_PRIOR);
    let mean = alpha.iter().sum::<f64>() / n_topics;
    let priors = Priors { a: mean.clamp(LEAST_PRIOR, most), beta: beta.max(LEAST_PRIOR) };
    let key = Key::new(seed, Purpose::Initialise);
    let (mut best, mut best_value) = (Vec::new(), f64::NEG_INFINITY);
    for run in 0..start.n_starts {
        let topics =
            merged(counts, alpha.len(), priors, start.n_sweeps, key.unit(1 + run), observer)?;
        let value =
            if start.n_starts > 1 { ln_joint(counts, alpha.len(), priors, &topics)? } else { 0.0 };
        if value > best_value {
            (best, best_value) = (topics, value);
        }
        if observer.stopped() {
            break;
        }
    }
    match_sizes(&mut best, alpha);
    Ok(best)
}

/// Dirichlet parameters of a start, the same for all topics and words.
#[derive(Clone, Copy)]
struct Priors {
    a: f64,
    beta: f64,
}

/// One start: uniform topics of tokens, sweeps of many topics, mergers.
fn merged(
    counts: &CountMatrix,
    n_topics: usize,
    priors: Priors,
    n_sweeps: u64,
    key: Key,
    observer: &impl Observer,
) -> Result<Vec<u16>> {
    let wide = ((WIDTH * n_topics as f64).ceil() as usize).min(MOST_TOPICS.min(MAX_TOPICS));
    let n_wide = if n_topics > 1 && n_sweeps > 0 { wide.max(n_topics) } else { n_topics };
    let mut tokens = Assignments::new(counts, n_wide, key.unit(0))?;
    let mut topics = Topics::new(counts.n_words(), n_wide, priors.beta)?;
    let a = vec![priors.a; n_wide];
    for sweep in 1..=n_sweeps {
        let key = key.unit(sweep);
        topics.update(&tokens, TopicStep::Mean, key);
        match tokens.sweep(topics.step(&a, key), Scheme::Collapsed, false, observer) {
            Err(Error::Stopped) => break,
            result => result?,
        };
    }
    topics.update(&tokens, TopicStep::Mean, key);
    let mut merger = Merger::new(&tokens, &topics.n_tokens);
    while merger.n_topics() > n_topics {
        let surplus = merger.n_topics() - n_topics;
        // The best merger depends on the mergers before.
        match merger.merge(surplus.div_ceil(MERGERS_SHARE), priors.beta, observer) {
            Err(Error::Stopped) => merger.fold(n_topics),
            result => result?,
        }
    }
    Ok(merger.topics())
}

/// ln p(words, topics of all tokens), up to a constant.
fn ln_joint(
    counts: &CountMatrix,
    n_topics: usize,
    priors: Priors,
    assignments: &[u16],
) -> Result<f64> {
    let tokens = Assignments::restored(counts, n_topics, assignments)?;
    let mut topics = Topics::new(counts.n_words(), n_topics, priors.beta)?;
    topics.update(&tokens, TopicStep::Mean, Key::new(0, Purpose::Initialise));
    Ok(tokens.ln_urns(&vec![priors.a; n_topics]) + topics.ln_words(&tokens))
}

/// Renumbers topics so that the largest has the largest parameter, and so on.
fn match_sizes(topics: &mut [u16], alpha: &[f64]) {
    if alpha.windows(2).all(|pair| pair[0].to_bits() == pair[1].to_bits()) {
        return;
    }
    let mut n_tokens = vec![0u64; alpha.len()];
    topics.iter().for_each(|&topic| n_tokens[usize::from(topic)] += 1);
    let mut by_size: Vec<usize> = (0..alpha.len()).collect();
    by_size.sort_by_key(|&topic| std::cmp::Reverse(n_tokens[topic]));
    let mut by_parameter: Vec<usize> = (0..alpha.len()).collect();
    by_parameter.sort_by(|&i, &j| alpha[j].total_cmp(&alpha[i]));
    let mut number = vec![0u16; alpha.len()];
    for (from, to) in by_size.into_iter().zip(by_parameter) {
        number[from] = to as u16;
    }
    topics.iter_mut().for_each(|topic| *topic = number[usize::from(*topic)]);
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

//! The start of training: more topics than asked for, which are then merged.
//!
//! From uniform topics of tokens, a sampler of exactly K topics often ends in a mode in which one
//! topic holds two themes and two topics share another theme; it leaves this mode only by chance.
//! Hardly any theme stays without a topic of its own where there are more topics. Then the pairs of
//! topics are merged whose merger the density of the words likes best, until K are left (compare
//! the split and merge EM of Ueda, Nakano, Ghahramani and Hinton 2000, "SMEM algorithm for mixture
//! models", Neural Computation 12). All this comes before the first sweep of a chain: the chain
//! starts elsewhere, and its distribution is the same.
//!
//! The constants of this room are those with which `benches/starts.py` made its records.

mod merge;
mod wide;

use super::pseudo_counts::PseudoCounts;
use super::sweeps::totals;
use super::tokens::{ChainState, FirstTopics, Position, Tokens};
use crate::control::Observer;
use crate::error::{Error, Result, array_of};
use crate::training::limits::check_n_topics;

use wide::{Priors, WideStart, ln_words, numbers_by_size};

/// How to start.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicStart {
    /// Size of the vocabulary.
    pub n_words: usize,
    /// Dirichlet parameters of documents of LDA, or what comes near them: the shapes of a gamma-Poisson
    /// model. Where they differ between topics, the largest topic gets the largest.
    pub alpha: Vec<f64>,
    /// Dirichlet parameter of the topics.
    pub beta: f64,
    /// Sweeps of every start, before topics are merged.
    pub n_sweeps: u64,
    /// Starts, of which the one with the largest joint density is taken.
    pub n_starts: u64,
}

/// The best of the starts so far.
struct Best {
    run: u64,
    /// ln of its joint density.
    value: f64,
    counts: Vec<u32>,
}

/// Finds topics of all tokens from which to train: the counts of every word in each topic.
///
/// `begun` is the state of a start that was broken off, whose topics the tokens have kept. Cost:
/// starts x sweeps of 1.5 times as many topics, and some passes over the pairs of topics of each
/// word. The same bits for any number of threads.
///
/// # Errors
/// No topics or more than 65,535, no starts, parameters outside their domain, too little memory;
/// [`Error::Stopped`] when the observer asks to stop.
pub fn find_topics(
    tokens: &mut impl Tokens,
    start: &TopicStart,
    seed: u64,
    begun: Option<&ChainState>,
    observer: &dyn Observer,
) -> Result<Vec<u32>> {
    let (n_words, n_topics, n_sweeps) = (start.n_words, start.alpha.len(), start.n_sweeps);
    let priors = Priors::of(&start.alpha, start.beta)?;
    let n_first = wide::n_first(n_topics, n_sweeps);
    check_n_topics(n_first)?;
    if start.n_starts == 0 {
        return Err(Error::Empty { name: "n_init" });
    }
    let mut best = None;
    if let Some((run, value)) = begun.and_then(|state| state.best) {
        let counts = tokens.counted(Position::Merged { run }, n_words, n_topics)?;
        best = Some(Best { run, value, counts });
    }
    let (first, mut done) = match begun.map(|state| state.position) {
        Some(Position::Start { run, sweep }) => (run, Some(sweep)),
        Some(Position::Merged { run }) => (run + 1, None),
        _ => (0, None),
    };
    for run in first..start.n_starts {
        let mut wide = WideStart::new(n_words, (n_first, n_topics), priors, seed, run)?;
        let counts =
            swept(tokens, &mut wide, (seed, run, n_sweeps), done.take(), best.as_ref(), observer)?;
        let numbers = wide.merge(&counts, observer)?;
        let (from, to) = (Position::Start { run, sweep: n_sweeps }, Position::Merged { run });
        tokens.renumber(from, to, &numbers)?;
        let counts = renumbered(&counts, &numbers, n_topics)?;
        let mut value = 0.0;
        if start.n_starts > 1 {
            let ln_urns = tokens.ln_urns(to, PseudoCounts::shared(&vec![priors.a; n_topics]))?;
            value = ln_urns.value() + ln_words(&counts, n_topics, priors)?;
        }
        if best.as_ref().is_none_or(|best: &Best| value > best.value) {
            best = Some(Best { run, value, counts });
        }
        commit(tokens, to, best.as_ref())?;
    }
    let Best { run, counts, .. } = best.ok_or(Error::Saved)?;
    let numbers = numbers_by_size(&totals(&counts, n_topics), &start.alpha);
    tokens.renumber(Position::Merged { run }, Position::Chain { sweep: 0 }, &numbers)?;
    renumbered(&counts, &numbers, n_topics)
}

/// Sweeps of one start, of which `done` are done.
fn swept(
    tokens: &mut impl Tokens,
    wide: &mut WideStart,
    (seed, run, n_sweeps): (u64, u64, u64),
    done: Option<u64>,
    best: Option<&Best>,
    observer: &dyn Observer,
) -> Result<Vec<u32>> {
    let mut at = Position::Start { run, sweep: done.unwrap_or(0) };
    if done.is_none() {
        tokens.draw_first(at, FirstTopics::new(wide.n_topics(), at.key(seed)))?;
        commit(tokens, at, best)?;
    }
    let mut counts = tokens.counted(at, wide.n_words(), wide.n_topics())?;
    for sweep in 1 + done.unwrap_or(0)..=n_sweeps {
        at = Position::Start { run, sweep };
        let weights = wide.weights(&counts);
        tokens.sweep(at, weights, seed, false, &mut counts, observer)?;
        commit(tokens, at, best)?;
    }
    Ok(counts)
}

fn commit(tokens: &mut impl Tokens, position: Position, best: Option<&Best>) -> Result<()> {
    let best = best.map(|best| (best.run, best.value));
    tokens.commit(&ChainState { position, best, parameters: vec![], n_kept: 0 }, None)
}

/// Counts of the topics that have these new numbers.
fn renumbered(counts: &[u32], numbers: &[u16], n_topics: usize) -> Result<Vec<u32>> {
    let n_words = counts.len() / numbers.len();
    let mut renumbered = array_of("counts of words by topic", n_words * n_topics, 0)?;
    let rows = renumbered.chunks_exact_mut(n_topics).zip(counts.chunks_exact(numbers.len()));
    for (to, from) in rows {
        numbers.iter().zip(from).for_each(|(&topic, n)| to[usize::from(topic)] += n);
    }
    Ok(renumbered)
}

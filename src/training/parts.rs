//! A part of a corpus within a sweep: all that its documents need beside their own tokens are φ, α and
//! their place in the corpus.

use rayon::prelude::*;

use super::lda::ln_lengths;
use super::limits::check_assignments;
use super::start::start_key;
use super::sweeps::{Assignments, Place, Scheme, Step, ln_urns, sweep_key};
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Error, Result};
use crate::math::ExactSum;
use crate::rng::Key;

/// Words per unit of parallel work.
const WORDS: usize = 256;

/// A part of a corpus, and its place there.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// Its documents.
    pub counts: &'a CountMatrix,
    /// Documents of the corpus before them.
    pub documents_before: usize,
    /// Tokens of the longest document of the corpus.
    pub longest: u64,
}

impl Part<'_> {
    fn place(&self) -> Place {
        Place { documents_before: self.documents_before, longest: self.longest }
    }
}

/// Which sweep it is: the random numbers belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// A sweep of a start, counted from 1.
    Start {
        /// Number of the start.
        run: u64,
        /// Number of the sweep.
        sweep: u64,
    },
    /// A sweep of the chain, counted from 1.
    Chain {
        /// Number of the sweep.
        sweep: u64,
        /// How it draws the topics of a document's tokens.
        scheme: Scheme,
    },
}

impl Sweep {
    fn key(self, seed: u64) -> Key {
        match self {
            Sweep::Start { run, sweep } => start_key(seed, run, sweep),
            Sweep::Chain { sweep, .. } => sweep_key(seed, sweep),
        }
    }

    fn scheme(self) -> Scheme {
        match self {
            Sweep::Start { .. } => Scheme::Collapsed,
            Sweep::Chain { scheme, .. } => scheme,
        }
    }
}

/// Topics of words as [`ShardedChain`](super::ShardedChain) and [`ShardedStart`](super::ShardedStart)
/// give them.
#[derive(Clone, Copy)]
pub struct TopicWeights<'a> {
    /// Pseudo-counts of documents: α, or r.
    pub a: &'a [f64],
    /// φ up to the scale of each topic, word-major.
    pub weights: &'a [f64],
    /// The scales.
    pub scale: &'a [f64],
}

/// Draws the topics of all tokens of a part anew, and adds them to `totals`, words x topics; where
/// `tables` is set, returns the tables of each topic, else zeros.
///
/// # Errors
/// Sizes that disagree, topics beyond their number, and [`Error::Stopped`], by which `topics` stay as
/// they were.
pub fn sweep_part(
    part: Part<'_>,
    topics: &mut [u16],
    weights: TopicWeights<'_>,
    (seed, sweep): (u64, Sweep),
    tables: bool,
    totals: &mut [u32],
    observer: &impl Observer,
) -> Result<Vec<u64>> {
    let TopicWeights { a, weights, scale } = weights;
    let n_topics = a.len();
    check_length("topic-word weights", weights.len(), part.counts.n_words() * n_topics)?;
    check_length("scales of topics", scale.len(), n_topics)?;
    let mut tokens = Assignments::part(part.counts, part.place(), n_topics, topics)?;
    let step = Step::new(a, weights, scale, sweep.key(seed));
    let n_tables = tokens.sweep(step, sweep.scheme(), tables, observer)?;
    add_words(&tokens, part.counts.n_words(), n_topics, totals)?;
    tokens.read_topics(topics);
    Ok(n_tables)
}

/// Adds the tokens of a part to `totals`, words x topics.
///
/// # Errors
/// Sizes that disagree, topics beyond their number.
pub fn count_part(
    counts: &CountMatrix,
    topics: &[u16],
    n_topics: usize,
    totals: &mut [u32],
) -> Result<()> {
    check_assignments(counts, n_topics, topics)?;
    check_length("counts of words by topic", totals.len(), counts.n_words() * n_topics)?;
    let mut rest = topics;
    for (word, count) in counts.documents().flat_map(Document::cells) {
        let (own, after) = rest.split_at(count as usize);
        let row = &mut totals[word as usize * n_topics..][..n_topics];
        own.iter().for_each(|&topic| row[usize::from(topic)] += 1);
        rest = after;
    }
    Ok(())
}

/// Sums over the documents of a part of ln of their urns, and of ln (α_+)_N.
///
/// # Errors
/// Sizes that disagree, topics beyond their number.
pub fn ln_urns_of_part(
    counts: &CountMatrix,
    topics: &[u16],
    a: &[f64],
) -> Result<(ExactSum, ExactSum)> {
    check_assignments(counts, a.len(), topics)?;
    let lengths = counts.documents().map(Document::n_tokens);
    Ok((ln_urns(counts, topics, a), ln_lengths(a, lengths)))
}

fn add_words(
    tokens: &Assignments<'_>,
    n_words: usize,
    n_topics: usize,
    totals: &mut [u32],
) -> Result<()> {
    check_length("counts of words by topic", totals.len(), n_words * n_topics)?;
    totals.par_chunks_mut(WORDS * n_topics).enumerate().for_each(|(chunk, totals)| {
        let first = chunk * WORDS;
        tokens.add_words(&(first..first + totals.len() / n_topics), totals);
    });
    Ok(())
}

fn check_length(name: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Length { name, found, expected }) }
}

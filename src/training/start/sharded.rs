//! The start of training where the tokens are elsewhere: they come as counts of words by topic.

use rand::RngExt;

use super::wide::{Priors, WideStart, ln_words, numbers_by_size};
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::ExactSum;
use crate::rng::Rng;
use crate::training::sweeps::Gathered;

/// The part of one start that belongs to no document.
///
/// The topics are those of [`find_topics`](super::find_topics), where
/// [`sweep_part`](crate::training::sweep_part) draws the topics of tokens, part by part. Counts are words x topics,
/// those of all parts in sum.
pub struct ShardedStart {
    wide: WideStart,
    priors: Priors,
    alpha: Vec<f64>,
}

impl ShardedStart {
    /// The start of number `run`, of so many sweeps.
    ///
    /// # Errors
    /// As [`find_topics`](super::find_topics).
    pub fn new(
        n_words: usize,
        alpha: Vec<f64>,
        beta: f64,
        n_sweeps: u64,
        seed: u64,
        run: u64,
    ) -> Result<Self> {
        let priors = Priors::of(&alpha, beta)?;
        let wide = WideStart::new(n_words, alpha.len(), priors, n_sweeps, seed, run)?;
        Ok(ShardedStart { wide, priors, alpha })
    }

    /// Topics at first: more than asked for.
    pub fn n_topics(&self) -> usize {
        self.wide.n_topics()
    }

    /// The first topics of all tokens, in order.
    pub fn first_topics(&self) -> FirstTopics {
        FirstTopics { n_topics: self.n_topics(), rng: self.wide.initial_key().rng() }
    }

    /// Sets φ for the sweep of this number, counted from 1.
    ///
    /// # Errors
    /// Another number of counts.
    pub fn prepare(&mut self, counts: &[u32], sweep: u64) -> Result<()> {
        let counts = gathered(counts, self.wide.weights().0.len(), self.n_topics())?;
        self.wide.step(&counts, sweep);
        Ok(())
    }

    /// φ up to the scale of each topic, word-major, the scales, and the pseudo-counts of documents.
    pub fn weights(&self) -> (&[f64], &[f64], &[f64]) {
        self.wide.weights()
    }

    /// The number that each topic has after all mergers.
    ///
    /// # Errors
    /// Another number of counts.
    pub fn merge(&mut self, counts: &[u32], observer: &impl Observer) -> Result<Vec<u16>> {
        let counts = gathered(counts, self.wide.weights().0.len(), self.n_topics())?;
        self.wide.merge(&counts, observer)
    }

    /// Pseudo-counts of documents after the mergers.
    pub fn pseudo_counts(&self) -> Vec<f64> {
        vec![self.priors.a; self.alpha.len()]
    }

    /// ln p(words, topics of all tokens) after the mergers, up to a constant.
    ///
    /// # Errors
    /// Another number of counts.
    pub fn ln_joint(&self, counts: &[u32], ln_urns: ExactSum) -> Result<f64> {
        let n_topics = self.alpha.len();
        let expected = self.wide.weights().0.len() / self.n_topics() * n_topics;
        let counts = gathered(counts, expected, n_topics)?;
        Ok(ln_urns.value() + ln_words(&counts, n_topics, self.priors)?)
    }

    /// New numbers of topics with so many tokens each, by which the largest has the largest parameter.
    ///
    /// # Errors
    /// Another number of topics.
    pub fn numbers_by_size(&self, n_tokens: &[u64]) -> Result<Vec<u16>> {
        let (found, expected) = (n_tokens.len(), self.alpha.len());
        if found != expected {
            return Err(Error::Length { name: "tokens of topics", found, expected });
        }
        Ok(numbers_by_size(n_tokens, &self.alpha))
    }
}

/// Uniform topics of tokens, one after the other.
pub struct FirstTopics {
    n_topics: usize,
    rng: Rng,
}

impl FirstTopics {
    /// Fills `topics` with those of the next tokens.
    pub fn fill(&mut self, topics: &mut [u16]) {
        let n_topics = self.n_topics;
        topics.iter_mut().for_each(|topic| *topic = self.rng.random_range(0..n_topics) as u16);
    }
}

fn gathered(counts: &[u32], expected: usize, n_topics: usize) -> Result<Gathered<'_>> {
    let found = counts.len();
    if found == expected {
        Ok(Gathered::new(counts, n_topics))
    } else {
        Err(Error::Length { name: "counts of words by topic", found, expected })
    }
}

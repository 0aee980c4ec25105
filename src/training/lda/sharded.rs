//! The chain of LDA where the tokens are elsewhere: they come as counts of words by topic.

use super::globals::{Globals, LdaParameters, LdaPrior};
use crate::error::{Error, Result};
use crate::math::ExactSum;
use crate::training::schedule::{Kept, Schedule, TopicStep};
use crate::training::sweeps::Gathered;

/// The part of a Gibbs sampler of LDA that belongs to no document.
///
/// The chain is that of [`LdaSampler`](super::LdaSampler), bit for bit, where
/// [`sweep_part`](crate::training::sweep_part) draws the topics of tokens, part by part. Counts are words x topics,
/// those of all parts in sum.
pub struct ShardedLda {
    globals: Globals,
    schedule: Schedule,
    kept: Kept<LdaParameters>,
}

impl ShardedLda {
    /// The chain before its first sweep, φ at its mean.
    ///
    /// # Errors
    /// No topics or more than 65,535; priors that are not positive; another number of counts.
    pub fn new(
        n_words: usize,
        prior: LdaPrior,
        schedule: Schedule,
        seed: u64,
        counts: &[u32],
    ) -> Result<Self> {
        let globals = Globals::new(n_words, prior, seed)?;
        let mut chain = ShardedLda { globals, schedule, kept: Kept::default() };
        chain.check_counts(counts)?;
        let counts = Gathered::new(counts, chain.n_topics());
        chain.globals.update_topics(&counts, TopicStep::Mean);
        Ok(chain)
    }

    /// The same chain after some sweeps, from its parameters and the sweeps kept so far.
    ///
    /// # Errors
    /// Values outside their domain, or of another number of topics.
    pub fn resumed(
        mut self,
        n_sweeps: u64,
        parameters: &[f64],
        kept: Kept<LdaParameters>,
        counts: &[u32],
    ) -> Result<Self> {
        let (found, expected) = (parameters.len(), self.n_topics() + 1);
        if found != expected {
            return Err(Error::Length { name: "parameters of the state", found, expected });
        }
        kept.check()?;
        self.check_counts(counts)?;
        self.globals.restore(n_sweeps, parameters)?;
        if n_sweeps > 0 {
            let counts = Gathered::new(counts, self.n_topics());
            self.globals.update_topics(&counts, self.schedule.step(n_sweeps - 1));
        }
        self.kept = kept;
        Ok(self)
    }

    /// Number of topics.
    pub fn n_topics(&self) -> usize {
        self.globals.alpha.len()
    }

    /// Sweeps done.
    pub fn n_sweeps(&self) -> u64 {
        self.globals.n_sweeps
    }

    /// α of the current state.
    pub fn alpha(&self) -> &[f64] {
        &self.globals.alpha
    }

    /// α and β of the current state, one after the other.
    pub fn parameters(&self) -> Vec<f64> {
        self.globals.parameters()
    }

    /// φ up to the scale of each topic, word-major, and the scales.
    pub fn weights(&self) -> (&[f64], &[f64]) {
        (&self.globals.topics.weights, &self.globals.topics.scale)
    }

    /// Sum of the expected parameters over the kept sweeps.
    pub fn kept(&self) -> &Kept<LdaParameters> {
        &self.kept
    }

    /// Takes up what a sweep over all tokens has come to: the counts, and where α is learned the tables
    /// of each topic and the lengths of all documents in order.
    ///
    /// # Errors
    /// Another number of counts or tables; [`Error::Memory`] where there is no room for a mean.
    pub fn advance(&mut self, counts: &[u32], n_tables: &[u64], lengths: &[u32]) -> Result<()> {
        self.check_counts(counts)?;
        let (found, expected) = (n_tables.len(), self.n_topics());
        if found != expected {
            return Err(Error::Length { name: "tables of topics", found, expected });
        }
        let counts = Gathered::new(counts, expected);
        let step = self.schedule.step(self.globals.n_sweeps);
        self.globals.n_sweeps += 1;
        let lengths = lengths.iter().map(|&n| u64::from(n));
        self.globals.update(&counts, lengths, n_tables, step);
        if self.schedule.keeps(self.globals.n_sweeps) {
            self.kept.add(self.globals.expected(&counts)?);
        }
        Ok(())
    }

    /// Posterior mean over the kept sweeps; of the last state where none was kept.
    ///
    /// # Errors
    /// Another number of counts; [`Error::Memory`].
    pub fn mean(&self, counts: &[u32]) -> Result<LdaParameters> {
        self.check_counts(counts)?;
        match self.kept.mean() {
            Some(mean) => Ok(mean),
            None => self.globals.expected(&Gathered::new(counts, self.n_topics())),
        }
    }

    /// ln of the joint density of the current state, from the sums that
    /// [`ln_urns_of_part`](crate::training::ln_urns_of_part) gives for all parts.
    ///
    /// # Errors
    /// Another number of counts.
    pub fn ln_joint(&self, counts: &[u32], ln_urns: ExactSum, ln_lengths: ExactSum) -> Result<f64> {
        self.check_counts(counts)?;
        let counts = Gathered::new(counts, self.n_topics());
        Ok(self.globals.ln_joint(&counts, ln_urns, ln_lengths))
    }

    fn check_counts(&self, counts: &[u32]) -> Result<()> {
        let (found, expected) = (counts.len(), self.globals.topics.weights.len());
        if found == expected {
            Ok(())
        } else {
            Err(Error::Length { name: "counts of words by topic", found, expected })
        }
    }
}

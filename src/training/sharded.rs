//! Chains of Gibbs sampling where the tokens are elsewhere: they come as counts of words by topic.

use super::schedule::{Averaged, Kept, Schedule, TopicStep};
use super::sweeps::{ExposedPart, Gathered, Topics, WordCounts};
use crate::error::{Error, Result};
use crate::math::ExactSum;

/// The part of a Gibbs sampler that belongs to no document: φ and the other parameters between two
/// sweeps over the tokens, wherever the tokens are.
pub trait Globals {
    /// Parameters that the sampler estimates.
    type Parameters: Averaged;

    /// φ and the counts of tokens by topic.
    fn topics(&self) -> &Topics;

    /// Pseudo-counts of documents.
    fn pseudo_counts(&self) -> &[f64];

    /// Sweeps done.
    fn n_sweeps(&self) -> u64;

    /// The parameters beside φ, one array after the other.
    fn parameters(&self) -> Vec<f64>;

    /// Takes up the parameters beside φ after `n_sweeps` sweeps.
    ///
    /// # Errors
    /// Another number of parameters; values outside their domain.
    fn restore(&mut self, n_sweeps: u64, parameters: &[f64]) -> Result<()>;

    /// Draws φ of the present sweep, or sets it to its mean.
    fn update_topics(&mut self, tokens: &impl WordCounts, step: TopicStep);

    /// Refuses a sweep over tokens with these counts whose results leave out what the parameters are
    /// drawn from: they would be drawn from their priors.
    ///
    /// # Errors
    /// [`Error::Length`] of the results.
    fn check(&self, counts: &[u32], swept: Swept<'_>) -> Result<()>;

    /// Draws all parameters after one more sweep over the tokens.
    fn update(&mut self, tokens: &impl WordCounts, swept: Swept<'_>, step: TopicStep);

    /// ln of the joint density, from sums over documents.
    fn ln_joint(&self, tokens: &impl WordCounts, documents: LnDocuments<'_>) -> f64;

    /// Rates of the gamma laws of θ, by which the urns of documents of different exposures differ.
    fn rates(&self) -> Option<&[f64]> {
        None
    }

    /// Number of different exposures of documents; 0 where these have none.
    fn n_exposures(&self) -> usize {
        0
    }

    /// Expected parameters given the topics of all tokens, added to `sum` if it is given.
    ///
    /// # Errors
    /// [`Error::Memory`] where there is no room for them.
    fn expected(
        &self,
        tokens: &impl WordCounts,
        sum: Option<Self::Parameters>,
    ) -> Result<Self::Parameters>;
}

/// Results of a sweep over all tokens beside the counts of words by topic.
#[derive(Clone, Copy)]
pub struct Swept<'a> {
    /// Tables of each topic, summed over documents.
    pub n_tables: &'a [u64],
    /// Lengths of all documents, in order; of use to a learned α of LDA only.
    pub lengths: &'a [u32],
    /// Tokens of every topic by exposure: where documents have exposures, and p is learned.
    pub exposed: &'a [ExposedPart<'a>],
}

/// Sums over all documents that the joint density depends on.
#[derive(Clone, Copy)]
pub struct LnDocuments<'a> {
    /// Σ_d of ln of the urns.
    pub ln_urns: ExactSum,
    /// Σ_d ln (a_+)_{N_d}; of use to LDA only.
    pub ln_lengths: ExactSum,
    /// Tokens of every topic by exposure, where documents have exposures.
    pub exposed: &'a [ExposedPart<'a>],
}

/// A chain whose tokens are elsewhere.
///
/// It is that of [`LdaSampler`](super::LdaSampler) or [`PfaSampler`](super::PfaSampler), bit for bit, where [`sweep_part`](super::sweep_part) draws
/// the topics of tokens, part by part. Counts are words x topics, those of all parts in sum.
pub struct ShardedChain<G: Globals> {
    globals: G,
    schedule: Schedule,
    kept: Kept<G::Parameters>,
}

impl<G: Globals> ShardedChain<G> {
    /// The chain before its first sweep, φ at its mean.
    ///
    /// # Errors
    /// Another number of counts.
    pub fn new(globals: G, schedule: Schedule, counts: &[u32]) -> Result<Self> {
        let mut chain = ShardedChain { globals, schedule, kept: Kept::default() };
        let counts = chain.gathered(counts)?;
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
        kept: Kept<G::Parameters>,
        counts: &[u32],
    ) -> Result<Self> {
        kept.check()?;
        let counts = self.gathered(counts)?;
        self.globals.restore(n_sweeps, parameters)?;
        if n_sweeps > 0 {
            self.globals.update_topics(&counts, self.schedule.step(n_sweeps - 1));
        }
        self.kept = kept;
        Ok(self)
    }

    /// Number of topics.
    pub fn n_topics(&self) -> usize {
        self.pseudo_counts().len()
    }

    /// Sweeps done.
    pub fn n_sweeps(&self) -> u64 {
        self.globals.n_sweeps()
    }

    /// Pseudo-counts of documents in the current state: α of LDA, r of gamma-Poisson models.
    pub fn pseudo_counts(&self) -> &[f64] {
        self.globals.pseudo_counts()
    }

    /// Parameters of the current state beside φ, one array after the other.
    pub fn parameters(&self) -> Vec<f64> {
        self.globals.parameters()
    }

    /// φ up to the scale of each topic, word-major, and the scales.
    pub fn weights(&self) -> (&[f64], &[f64]) {
        let topics = self.globals.topics();
        (&topics.weights, &topics.scale)
    }

    /// Rates of the gamma laws of θ, where documents have exposures.
    pub fn rates(&self) -> Option<&[f64]> {
        self.globals.rates()
    }

    /// Number of different exposures of documents; 0 where these have none.
    pub fn n_exposures(&self) -> usize {
        self.globals.n_exposures()
    }

    /// Sum of the expected parameters over the kept sweeps.
    pub fn kept(&self) -> &Kept<G::Parameters> {
        &self.kept
    }

    /// Takes up the results of a sweep over all tokens.
    ///
    /// # Errors
    /// Another number of counts or tables; lengths of documents or tokens by exposure that are left
    /// out and needed; [`Error::Memory`] where there is no room for a mean.
    pub fn advance(&mut self, counts: &[u32], swept: Swept<'_>) -> Result<()> {
        let (found, expected) = (swept.n_tables.len(), self.n_topics());
        if found != expected {
            return Err(Error::Length { name: "tables of topics", found, expected });
        }
        self.check_exposed(swept.exposed)?;
        self.globals.check(counts, swept)?;
        let counts = self.gathered(counts)?;
        let step = self.schedule.step(self.n_sweeps());
        self.globals.update(&counts, swept, step);
        if self.schedule.keeps(self.n_sweeps()) {
            self.kept.add(|sum| self.globals.expected(&counts, sum))?;
        }
        Ok(())
    }

    /// Posterior mean over the kept sweeps; of the last state where none was kept.
    ///
    /// # Errors
    /// Another number of counts; [`Error::Memory`].
    pub fn mean(&self, counts: &[u32]) -> Result<G::Parameters> {
        let counts = self.gathered(counts)?;
        match self.kept.mean() {
            Some(mean) => Ok(mean),
            None => self.globals.expected(&counts, None),
        }
    }

    /// ln of the joint density of the current state, from the sums that
    /// [`ln_urns_of_part`](super::ln_urns_of_part) gives for all parts.
    ///
    /// # Errors
    /// Another number of counts.
    pub fn ln_joint(&self, counts: &[u32], documents: LnDocuments<'_>) -> Result<f64> {
        self.check_exposed(documents.exposed)?;
        Ok(self.globals.ln_joint(&self.gathered(counts)?, documents))
    }

    fn check_exposed(&self, parts: &[ExposedPart<'_>]) -> Result<()> {
        let expected = self.n_topics();
        match parts.iter().map(ExposedPart::n_topics).find(|&found| found != expected) {
            Some(found) => Err(Error::Length { name: "tokens by exposure", found, expected }),
            None => Ok(()),
        }
    }

    fn gathered<'c>(&self, counts: &'c [u32]) -> Result<Gathered<'c>> {
        let (found, expected) = (counts.len(), self.globals.topics().weights.len());
        if found == expected {
            Ok(Gathered::new(counts, self.n_topics()))
        } else {
            Err(Error::Length { name: "counts of words by topic", found, expected })
        }
    }
}

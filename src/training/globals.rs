//! Parameters of models that belong to no document, as a chain of Gibbs sampling draws them.

use super::bursts::BurstState;
use super::limits::check_finite;
use super::pseudo_counts::PseudoCounts;
use super::schedule::TopicStep;
use super::sweeps::{ExposedTokens, Topics, totals};
use crate::error::Result;
use crate::math::ExactSum;
use crate::regression::Regression;
use crate::rng::{Key, Purpose};

/// Parts of the parameters that all models have.
pub struct Common {
    pub(super) topics: Topics,
    /// α, or r; where documents have covariates, its mean over them.
    pub(super) a: Vec<f64>,
    /// Coefficients of covariates that the pseudo-counts depend on.
    pub(super) regression: Option<Regression>,
    seed: u64,
    pub(super) n_sweeps: u64,
}

impl Common {
    pub(super) fn new(topics: Topics, a: Vec<f64>, seed: u64) -> Self {
        Common { topics, a, regression: None, seed, n_sweeps: 0 }
    }

    /// Streams of the parameters in the present sweep.
    pub(super) fn key(&self) -> Key {
        Key::new(self.seed, Purpose::Parameters).unit(self.n_sweeps)
    }

    /// λ and σ², where documents have covariates.
    pub(super) fn of_regression(&self) -> Vec<f64> {
        self.regression.as_ref().map_or(vec![], Regression::parameters)
    }

    /// Checks the parameters of a state after `n_sweeps` sweeps, `n_own` of which are the model's, and
    /// takes up those of covariates and the number of sweeps where `check` finds the model's right.
    pub(super) fn restore<'a>(
        &mut self,
        n_sweeps: u64,
        parameters: &'a [f64],
        n_own: usize,
        check: impl Fn(&[f64]) -> Result<()>,
    ) -> Result<&'a [f64]> {
        let of_regression = self.regression.as_ref().map_or(0, Regression::n_parameters);
        check_finite("parameters of the state", parameters, n_own + of_regression)?;
        let (own, of_regression) = parameters.split_at(n_own);
        check(own)?;
        if let Some(regression) = &mut self.regression {
            regression.restore(of_regression)?;
        }
        self.n_sweeps = n_sweeps;
        Ok(own)
    }
}

/// The part of a Gibbs sampler that belongs to no document: φ and the other parameters between two
/// sweeps over the tokens, wherever the tokens are. Counts are words x topics.
pub trait Globals: Send + Sync {
    /// The parts that all models have.
    fn common(&self) -> &Common;

    /// The same, to change them.
    fn common_mut(&mut self) -> &mut Common;

    /// φ and the counts of tokens by topic.
    fn topics(&self) -> &Topics {
        &self.common().topics
    }

    /// Pseudo-counts of documents.
    fn pseudo_counts(&self) -> PseudoCounts<'_> {
        let Common { a, regression, .. } = self.common();
        regression.as_ref().map_or(PseudoCounts::shared(a), PseudoCounts::of)
    }

    /// Coefficients of covariates that the pseudo-counts depend on, topics x (1 + covariates).
    fn coefficients(&self) -> &[f64] {
        self.common().regression.as_ref().map_or(&[], Regression::coefficients)
    }

    /// The same parameters with bursty topics.
    #[must_use]
    fn with_bursts(mut self, bursts: Option<BurstState>) -> Self
    where
        Self: Sized,
    {
        self.common_mut().topics.bursts = bursts;
        self
    }

    /// The parameters beside φ, one array after the other.
    fn parameters(&self) -> Vec<f64>;

    /// Takes up the parameters beside φ after `n_sweeps` sweeps.
    ///
    /// # Errors
    /// Another number of parameters; values outside their domain.
    fn restore(&mut self, n_sweeps: u64, parameters: &[f64]) -> Result<()>;

    /// Draws φ of the present sweep, or sets it to its mean.
    fn update_topics(&mut self, counts: WordCounts<'_>, step: TopicStep);

    /// Frees φ, which [`update_topics`](Self::update_topics) makes again for the same sweep.
    fn release_topics(&mut self) {
        self.common_mut().topics.weights = vec![];
    }

    /// Whether the parameters depend on tables of topics, and on the tokens of topics by exposure.
    fn needs(&self) -> (bool, bool);

    /// Draws all parameters after one more sweep over the tokens.
    fn update(&mut self, counts: WordCounts<'_>, swept: Swept<'_>, step: TopicStep);

    /// ln of the joint density, from sums over documents.
    fn ln_joint(&self, documents: DocumentTotals<'_>) -> f64;

    /// Expected parameters beside φ given the topics of all tokens, one array after the other.
    fn expected(&self) -> Vec<f64> {
        self.parameters()
    }

    /// Rates of the gamma distributions of θ, by which documents of different exposures differ.
    fn rates(&self) -> Option<&[f64]> {
        None
    }

    /// Urn weights of words in each topic over their probabilities φ, where they are not 1.
    fn factors(&self) -> Option<&[f64]> {
        None
    }

    /// Number of different exposures of documents; 0 where these have none.
    fn n_exposures(&self) -> usize {
        0
    }
}

/// Counts of every word in each topic, words x topics.
#[derive(Clone, Copy)]
pub struct WordCounts<'a> {
    /// All tokens.
    pub tokens: &'a [u32],
    /// Tokens that φ rests on: those that open tables, where some topic is bursty; else all.
    pub tables: &'a [u32],
}

impl WordCounts<'_> {
    /// All tokens of each topic, once `topics` are updated.
    pub(super) fn n_tokens(self, topics: &Topics) -> Vec<u64> {
        match topics.bursts {
            Some(_) => totals(self.tokens, topics.n_tokens.len()),
            None => topics.n_tokens.clone(),
        }
    }
}

/// Results of a sweep over all tokens beside the counts of words by topic.
#[derive(Clone, Copy)]
pub struct Swept<'a> {
    /// Tables of each topic, summed over the documents of each group of equal pseudo-counts.
    pub n_tables: &'a [u64],
    /// Lengths of all documents, in order.
    pub lengths: &'a [u32],
    /// Tokens of every topic by exposure: where documents have exposures, and p is learned.
    pub exposed: &'a [ExposedTokens],
}

/// Properties of all documents that the joint density depends on.
#[derive(Clone, Copy)]
pub struct DocumentTotals<'a> {
    /// Σ_d of ln of the urns.
    pub ln_urns: ExactSum,
    /// ln of the probability of the words given the topics of all tokens: φ integrated out, but where
    /// some topic is bursty given φ.
    pub ln_words: f64,
    /// Lengths of all documents.
    pub lengths: &'a [u32],
    /// Tokens of every topic by exposure, where documents have exposures.
    pub exposed: &'a [ExposedTokens],
}

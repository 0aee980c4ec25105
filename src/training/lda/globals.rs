//! The parameters of LDA that belong to no document, and their draws given the topics of all tokens.

use rand_distr::Distribution as _;

use crate::error::{Error, Result, check_drawn, check_positive};
use crate::math::{ExactSum, gamma_law, ln_beta_variate, ln_rising};
use crate::rng::{Key, Purpose};
use crate::training::limits::{LEAST_PRIOR, check_n_topics};
use crate::training::schedule::{Averaged, TopicStep, added, check_parameters};
use crate::training::sharded::{Globals, LnDocuments, Swept};
use crate::training::sweeps::{Step, Topics, WordCounts, sweep_key};

/// Priors of LDA: θ_d ~ Dirichlet(α), φ_k ~ Dirichlet(β).
#[derive(Debug, Clone, PartialEq)]
pub struct LdaPrior {
    /// α, one value a topic: where it starts, or its fixed value.
    pub alpha: Vec<f64>,
    /// β, the same.
    pub beta: f64,
    /// Whether α_k and β have exponential priors, whose means are the values above, and are
    /// learned.
    pub learned: bool,
}

/// Parameters of LDA.
#[derive(Debug, Clone, PartialEq)]
pub struct LdaParameters {
    /// φ, word-major.
    pub phi: Vec<f64>,
    /// α.
    pub alpha: Vec<f64>,
    /// β.
    pub beta: f64,
}

impl Averaged for LdaParameters {
    fn scale(&mut self, factor: f64) {
        self.phi.iter_mut().chain(&mut self.alpha).for_each(|x| *x *= factor);
        self.beta *= factor;
    }
}

/// α, β and φ between two sweeps over the tokens, wherever the tokens are.
pub struct LdaGlobals {
    pub(super) topics: Topics,
    pub(super) prior: LdaPrior,
    pub(super) alpha: Vec<f64>,
    pub(super) seed: u64,
    pub(super) n_sweeps: u64,
}

impl LdaGlobals {
    /// Parameters at their prior values; φ is not set.
    ///
    /// # Errors
    /// No topics or more than 65,535; priors that are not positive.
    pub fn new(n_words: usize, prior: LdaPrior, seed: u64) -> Result<Self> {
        check_n_topics(prior.alpha.len())?;
        check_positive("Dirichlet prior of topics", &prior.alpha)?;
        check_positive("Dirichlet prior of words", &[prior.beta])?;
        let topics = Topics::new(n_words, prior.alpha.len(), prior.beta)?;
        let alpha = prior.alpha.clone();
        Ok(LdaGlobals { topics, prior, alpha, seed, n_sweeps: 0 })
    }

    /// φ and α for the next sweep over the tokens, the number of which is `n_sweeps`.
    pub(super) fn step(&self) -> Step<'_> {
        self.topics.step(&self.alpha, sweep_key(self.seed, self.n_sweeps))
    }

    /// Draws α, β and φ after a sweep: `lengths` are those of all documents, in order, of which only
    /// a learned α makes use.
    pub(super) fn draw(
        &mut self,
        tokens: &impl WordCounts,
        lengths: impl Iterator<Item = u64>,
        n_tables: &[u64],
        step: TopicStep,
    ) {
        if self.prior.learned {
            self.update_alpha(lengths, n_tables);
            if self.topics.own_priors.is_none() {
                let key = self.parameters_key().unit(u64::MAX - 2);
                self.topics.update_prior(tokens, self.prior.beta.recip(), key);
            }
        }
        self.update_topics(tokens, step);
    }

    /// α_k ~ Gamma(1 + Σ_d l_dk, rate - Σ_d ln q_d), with the tables l_dk ~ CRT(n_dk, α_k) and
    /// q_d ~ Beta(α_+, N_d): θ is integrated out.
    fn update_alpha(&mut self, lengths: impl Iterator<Item = u64>, n_tables: &[u64]) {
        let mut rng = self.parameters_key().unit(u64::MAX - 1).rng();
        let total: f64 = self.alpha.iter().sum();
        let lengths = lengths.filter(|&n| n > 0);
        let ln_q: f64 = lengths.map(|n| ln_beta_variate(total, n as f64, &mut rng).0).sum();
        for (k, alpha) in self.alpha.iter_mut().enumerate() {
            let rate = self.prior.alpha[k].recip() - ln_q;
            let drawn = gamma_law(1.0 + n_tables[k] as f64).sample(&mut rng) / rate;
            *alpha = drawn.max(LEAST_PRIOR);
        }
    }

    fn parameters_key(&self) -> Key {
        Key::new(self.seed, Purpose::Parameters).unit(self.n_sweeps)
    }
}

impl Globals for LdaGlobals {
    type Parameters = LdaParameters;

    fn topics(&self) -> &Topics {
        &self.topics
    }

    fn pseudo_counts(&self) -> &[f64] {
        &self.alpha
    }

    fn n_sweeps(&self) -> u64 {
        self.n_sweeps
    }

    /// α, then β.
    fn parameters(&self) -> Vec<f64> {
        [&self.alpha[..], &[self.topics.prior]].concat()
    }

    fn restore(&mut self, n_sweeps: u64, parameters: &[f64]) -> Result<()> {
        let n_topics = self.alpha.len();
        check_parameters(parameters, n_topics + 1)?;
        check_drawn("Dirichlet priors of the state", parameters)?;
        self.n_sweeps = n_sweeps;
        self.alpha.copy_from_slice(&parameters[..n_topics]);
        self.topics.prior = parameters[n_topics];
        Ok(())
    }

    fn update_topics(&mut self, tokens: &impl WordCounts, step: TopicStep) {
        let key = self.parameters_key();
        self.topics.update(tokens, step, key);
    }

    fn check(&self, counts: &[u32], swept: Swept<'_>) -> Result<()> {
        let sum = |numbers: &[u32]| numbers.iter().map(|&n| n as usize).sum::<usize>();
        let (found, expected) = (sum(swept.lengths), sum(counts));
        if self.prior.learned && found != expected {
            return Err(Error::Length { name: "tokens by lengths of documents", found, expected });
        }
        Ok(())
    }

    fn update(&mut self, tokens: &impl WordCounts, swept: Swept<'_>, step: TopicStep) {
        self.n_sweeps += 1;
        let lengths = swept.lengths.iter().map(|&n| u64::from(n));
        self.draw(tokens, lengths, swept.n_tables, step);
    }

    fn ln_joint(&self, tokens: &impl WordCounts, documents: LnDocuments<'_>) -> f64 {
        let ln_documents = documents.ln_urns.value() - documents.ln_lengths.value();
        let mut ln_value = ln_documents + self.topics.ln_words(tokens);
        if self.prior.learned {
            let drawn = self.alpha.iter().zip(&self.prior.alpha);
            ln_value -= drawn.map(|(alpha, mean)| alpha / mean).sum::<f64>();
            ln_value -= self.topics.prior / self.prior.beta;
        }
        ln_value
    }

    fn expected(
        &self,
        tokens: &impl WordCounts,
        sum: Option<LdaParameters>,
    ) -> Result<LdaParameters> {
        let beta = sum.as_ref().map_or(0.0, |sum| sum.beta);
        let (phi, alpha) = sum.map(|sum| (sum.phi, sum.alpha)).unzip();
        Ok(LdaParameters {
            phi: self.topics.expected(tokens, phi)?,
            alpha: added(alpha, self.alpha.iter().copied()),
            beta: beta + self.topics.prior,
        })
    }
}

/// Σ_d ln (α_+)_{N_d}: what documents of these lengths have in common.
pub(in crate::training) fn ln_lengths(
    alpha: &[f64],
    lengths: impl Iterator<Item = u64>,
) -> ExactSum {
    let alpha_sum: f64 = alpha.iter().sum();
    lengths.map(|n| ln_rising(alpha_sum, n)).sum()
}

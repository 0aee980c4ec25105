//! Latent Dirichlet allocation: the parameters that belong to no document, and their draws given the
//! topics of all tokens, which a sweep draws by the urn given φ (partially collapsed Gibbs sampling).

use rand_distr::Distribution as _;

use crate::error::{Result, check_drawn, check_positive};
use crate::math::{ExactSum, gamma_law, ln_beta_variate, ln_rising};
use crate::rng::{Key, Purpose};

use super::chain::{Documents, Globals, Swept, check_parameters};
use super::limits::{LEAST_PRIOR, check_n_topics};
use super::schedule::TopicStep;
use super::sweeps::Topics;

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

/// α, β and φ between two sweeps over the tokens, wherever the tokens are.
pub struct LdaGlobals {
    topics: Topics,
    prior: LdaPrior,
    alpha: Vec<f64>,
    seed: u64,
    n_sweeps: u64,
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

    /// The same parameters with φ_k ~ Dirichlet(row k of `priors`) instead, which is word-major; β is
    /// then neither used nor learned.
    ///
    /// # Errors
    /// Another size than words x topics; values that are not positive.
    pub fn with_topic_priors(mut self, priors: Vec<f64>) -> Result<Self> {
        self.topics = self.topics.with_priors(priors)?;
        Ok(self)
    }

    /// α_k ~ Gamma(1 + Σ_d l_dk, rate - Σ_d ln q_d), with the tables l_dk ~ CRT(n_dk, α_k) and
    /// q_d ~ Beta(α_+, N_d): θ is integrated out.
    fn update_alpha(&mut self, lengths: &[u32], n_tables: &[u64]) {
        let mut rng = self.parameters_key().unit(u64::MAX - 1).rng();
        let total: f64 = self.alpha.iter().sum();
        let lengths = lengths.iter().filter(|n| **n > 0);
        let ln_q: f64 = lengths.map(|&n| ln_beta_variate(total, f64::from(n), &mut rng).0).sum();
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

    fn update_topics(&mut self, counts: &[u32], step: TopicStep) {
        let key = self.parameters_key();
        self.topics.update(counts, step, key);
    }

    fn needs(&self) -> (bool, bool) {
        (self.prior.learned, false)
    }

    fn update(&mut self, counts: &[u32], swept: Swept<'_>, step: TopicStep) {
        self.n_sweeps += 1;
        if self.prior.learned {
            self.update_alpha(swept.lengths, swept.n_tables);
            if !self.topics.has_own_priors() {
                let key = self.parameters_key().unit(u64::MAX - 2);
                self.topics.update_prior(counts, self.prior.beta.recip(), key);
            }
        }
        self.update_topics(counts, step);
    }

    fn ln_joint(&self, counts: &[u32], documents: Documents<'_>) -> f64 {
        let total: f64 = self.alpha.iter().sum();
        let ln_lengths: ExactSum =
            documents.lengths.iter().map(|&n| ln_rising(total, u64::from(n))).sum();
        let ln_documents = documents.ln_urns.value() - ln_lengths.value();
        let mut ln_value = ln_documents + self.topics.ln_words(counts);
        if self.prior.learned {
            let drawn = self.alpha.iter().zip(&self.prior.alpha);
            ln_value -= drawn.map(|(alpha, mean)| alpha / mean).sum::<f64>();
            ln_value -= self.topics.prior / self.prior.beta;
        }
        ln_value
    }

    /// α, then β.
    fn expected(&self) -> Vec<f64> {
        self.parameters()
    }
}

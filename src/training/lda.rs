//! Latent Dirichlet allocation: the parameters that belong to no document, and their draws given the
//! topics of all tokens, which a sweep draws by the urn given φ (partially collapsed Gibbs sampling).

use rand_distr::Distribution as _;

use crate::error::{Result, check_drawn, check_positive};
use crate::math::{ExactSum, gamma_law, ln_beta_variate, ln_rising};
use crate::regression::{Design, Regression};
use crate::urn::LEAST_PRIOR;

use super::globals::{Common, DocumentTotals, Globals, Swept, WordCounts};
use super::limits::check_n_topics;
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
    common: Common,
    prior: LdaPrior,
}

impl LdaGlobals {
    /// Parameters at their prior values; φ is not set.
    ///
    /// # Errors
    /// No topics or more than 65,535; priors that are not positive.
    pub fn new(n_words: usize, prior: LdaPrior, seed: u64) -> Result<Self> {
        check_n_topics(prior.alpha.len())?;
        check_positive("doc_topic_prior", &prior.alpha)?;
        check_positive("topic_word_prior", &[prior.beta])?;
        let topics = Topics::new(n_words, prior.alpha.len(), prior.beta)?;
        Ok(LdaGlobals { common: Common::new(topics, prior.alpha.clone(), seed), prior })
    }

    /// The same parameters with φ_k ~ Dirichlet(row k of `priors`) instead, which is word-major; β is
    /// then neither used nor learned.
    ///
    /// # Errors
    /// Another size than words x topics; values that are not positive.
    pub fn with_topic_priors(mut self, priors: Vec<f64>) -> Result<Self> {
        self.common.topics = self.common.topics.with_priors(priors)?;
        Ok(self)
    }

    /// The same parameters with α_dk = exp(x_d·λ_k): the exponential of an intercept has the
    /// exponential prior of a learned α_k, the slopes are normal. α is then always learned,
    /// `learned` is about β.
    ///
    /// # Errors
    /// Too little memory for α of all documents that differ in it.
    pub fn with_covariates(mut self, design: Design) -> Result<Self> {
        let priors = self.prior.alpha.iter().map(|mean| (1.0, mean.recip())).collect();
        self.common.regression = Some(Regression::new(design, &self.common.a, priors)?);
        Ok(self)
    }

    /// λ of all topics, given tables and q_d ~ Beta(α_d+, N_d), whose -ln are summed by group.
    fn update_coefficients(&mut self, lengths: &[u32], n_tables: &[u64]) {
        let key = self.common.key().unit(u64::MAX - 1);
        let Some(regression) = &mut self.common.regression else { return };
        let (totals, mut rng) = (regression.totals(), key.rng());
        let mut weights = vec![0.0; totals.len()];
        for (&n, &group) in lengths.iter().zip(regression.groups()).filter(|(n, _)| **n > 0) {
            let group = group as usize;
            weights[group] -= ln_beta_variate(totals[group], f64::from(n), &mut rng).0;
        }
        let n_tables: Vec<f64> = n_tables.iter().map(|&n| n as f64).collect();
        regression.draw(&n_tables, |_| weights.clone(), key);
        self.common.a = regression.mean();
    }

    /// α_k ~ Gamma(1 + Σ_d l_dk, rate - Σ_d ln q_d), with the tables l_dk ~ CRT(n_dk, α_k) and
    /// q_d ~ Beta(α_+, N_d): θ is integrated out.
    fn update_alpha(&mut self, lengths: &[u32], n_tables: &[u64]) {
        let mut rng = self.common.key().unit(u64::MAX - 1).rng();
        let total: f64 = self.common.a.iter().sum();
        let lengths = lengths.iter().filter(|n| **n > 0);
        let ln_q: f64 = lengths.map(|&n| ln_beta_variate(total, f64::from(n), &mut rng).0).sum();
        for (k, alpha) in self.common.a.iter_mut().enumerate() {
            let rate = self.prior.alpha[k].recip() - ln_q;
            let drawn = gamma_law(1.0 + n_tables[k] as f64).sample(&mut rng) / rate;
            *alpha = drawn.max(LEAST_PRIOR);
        }
    }
}

impl Globals for LdaGlobals {
    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    /// α, then β; where documents have covariates, then λ and σ².
    fn parameters(&self) -> Vec<f64> {
        [&self.common.a[..], &[self.common.topics.prior], &self.common.of_regression()].concat()
    }

    fn restore(&mut self, n_sweeps: u64, parameters: &[f64]) -> Result<()> {
        let n_topics = self.common.a.len();
        let check = |own: &[f64]| check_drawn("Dirichlet priors of the state", own);
        let own = self.common.restore(n_sweeps, parameters, n_topics + 1, check)?;
        self.common.a.copy_from_slice(&own[..n_topics]);
        self.common.topics.prior = own[n_topics];
        Ok(())
    }

    fn update_topics(&mut self, counts: WordCounts<'_>, step: TopicStep) {
        let key = self.common.key();
        self.common.topics.update(counts.tables, step, key);
    }

    fn needs(&self) -> (bool, bool) {
        (self.prior.learned || self.common.regression.is_some(), false)
    }

    fn update(&mut self, counts: WordCounts<'_>, swept: Swept<'_>, step: TopicStep) {
        self.common.n_sweeps += 1;
        if self.common.regression.is_some() {
            self.update_coefficients(swept.lengths, swept.n_tables);
        } else if self.prior.learned {
            self.update_alpha(swept.lengths, swept.n_tables);
        }
        if self.prior.learned && !self.common.topics.has_own_priors() {
            let key = self.common.key().unit(u64::MAX - 2);
            self.common.topics.update_prior(counts.tables, self.prior.beta.recip(), key);
        }
        self.update_topics(counts, step);
    }

    fn ln_joint(&self, documents: DocumentTotals<'_>) -> f64 {
        let total: f64 = self.common.a.iter().sum();
        let totals = self.common.regression.as_ref().map_or(vec![total], Regression::totals);
        let a = self.pseudo_counts();
        let lengths = documents.lengths.iter().enumerate();
        let ln_length = |(doc_ix, &n): (usize, &u32)| ln_rising(totals[a.group(doc_ix)], n.into());
        let ln_lengths: ExactSum = lengths.map(ln_length).sum();
        let ln_documents = documents.ln_urns.value() - ln_lengths.value();
        let mut ln_value = ln_documents + documents.ln_words;
        if let Some(regression) = &self.common.regression {
            ln_value += regression.ln_prior();
        } else if self.prior.learned {
            let drawn = self.common.a.iter().zip(&self.prior.alpha);
            ln_value -= drawn.map(|(alpha, mean)| alpha / mean).sum::<f64>();
        }
        if self.prior.learned {
            ln_value -= self.common.topics.prior / self.prior.beta;
        }
        ln_value
    }
}

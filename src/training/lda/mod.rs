//! Latent Dirichlet allocation.

use rand_distr::Distribution as _;

use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::{Error, Result, check_drawn, check_positive};
use crate::math::{gamma_law, ln_beta_variate, ln_rising};
use crate::rng::{Key, Purpose};
use crate::training::limits::{LEAST_PRIOR, check_n_topics};
use crate::training::schedule::{Sampler, State, TopicStep};
use crate::training::sweeps::{Assignments, Scheme, Topics};

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

/// Partially collapsed Gibbs sampler of LDA: topics of tokens by the urn given φ, then φ.
pub struct LdaSampler<'a> {
    tokens: Assignments<'a>,
    topics: Topics,
    prior: LdaPrior,
    alpha: Vec<f64>,
    seed: u64,
    n_sweeps: u64,
}

impl<'a> LdaSampler<'a> {
    /// A sampler that starts from uniform topics of tokens, and φ at its mean given them.
    ///
    /// # Errors
    /// No topics or more than 65,535; priors that are not positive.
    pub fn new(counts: &'a CountMatrix, prior: LdaPrior, seed: u64) -> Result<Self> {
        check_n_topics(prior.alpha.len())?;
        check_positive("Dirichlet prior of topics", &prior.alpha)?;
        check_positive("Dirichlet prior of words", &[prior.beta])?;
        let n_topics = prior.alpha.len();
        let tokens = Assignments::new(counts, n_topics, Key::new(seed, Purpose::Initialise))?;
        let topics = Topics::new(counts.n_words(), n_topics, prior.beta)?;
        let alpha = prior.alpha.clone();
        let mut sampler = LdaSampler { tokens, topics, prior, alpha, seed, n_sweeps: 0 };
        sampler.update_topics(TopicStep::Mean);
        Ok(sampler)
    }

    /// The same sampler with φ_k ~ Dirichlet(row k of `priors`) instead, which is word-major; β is
    /// then neither used nor learned.
    ///
    /// # Errors
    /// Another size than words x topics; values that are not positive.
    pub fn with_topic_priors(mut self, priors: Vec<f64>) -> Result<Self> {
        let (found, expected) = (priors.len(), self.topics.weights.len());
        if found != expected {
            return Err(Error::Length { name: "topic priors", found, expected });
        }
        check_positive("topic priors", &priors)?;
        self.topics.own_priors = Some(priors.into());
        self.update_topics(TopicStep::Mean);
        Ok(self)
    }

    /// The same sampler from other topics of tokens, cell after cell, document after document.
    ///
    /// # Errors
    /// Another number of tokens; topics beyond the number of topics.
    pub fn with_assignments(mut self, topics: &[u16]) -> Result<Self> {
        self.tokens.restore(topics)?;
        self.update_topics(TopicStep::Mean);
        Ok(self)
    }

    /// The topic of every token, cell after cell, document after document.
    pub fn assignments(&self) -> Vec<u16> {
        self.tokens.topics()
    }

    /// φ of the current state, word-major.
    pub fn phi(&self) -> Vec<f64> {
        self.topics.scaled()
    }

    /// α of the current state.
    pub fn alpha(&self) -> &[f64] {
        &self.alpha
    }

    /// β of the current state.
    pub fn beta(&self) -> f64 {
        self.topics.prior
    }

    fn parameters_key(&self) -> Key {
        Key::new(self.seed, Purpose::Parameters).unit(self.n_sweeps)
    }

    /// α_k ~ Gamma(1 + Σ_d l_dk, rate - Σ_d ln q_d), with the tables l_dk ~ CRT(n_dk, α_k) and
    /// q_d ~ Beta(α_+, N_d): θ is integrated out.
    fn update_alpha(&mut self, n_tables: &[u64]) {
        let mut rng = self.parameters_key().unit(u64::MAX - 1).rng();
        let total: f64 = self.alpha.iter().sum();
        let lengths = self.tokens.lengths().filter(|&n| n > 0);
        let ln_q: f64 = lengths.map(|n| ln_beta_variate(total, n as f64, &mut rng).0).sum();
        for (k, alpha) in self.alpha.iter_mut().enumerate() {
            let rate = self.prior.alpha[k].recip() - ln_q;
            let drawn = gamma_law(1.0 + n_tables[k] as f64).sample(&mut rng) / rate;
            *alpha = drawn.max(LEAST_PRIOR);
        }
    }

    fn update_topics(&mut self, step: TopicStep) {
        let key = self.parameters_key();
        self.topics.update(&self.tokens, step, key);
    }
}

impl Sampler for LdaSampler<'_> {
    type Parameters = LdaParameters;

    fn state(&self) -> State {
        let assignments = self.tokens.topics();
        let parameters = [&self.alpha[..], &[self.topics.prior]].concat();
        State { n_sweeps: self.n_sweeps, assignments, parameters }
    }

    fn resume(&mut self, state: &State, step: TopicStep) -> Result<()> {
        let n_topics = self.alpha.len();
        state.check_parameters(n_topics + 1)?;
        check_drawn("Dirichlet priors of the state", &state.parameters)?;
        self.tokens.restore(&state.assignments)?;
        self.n_sweeps = state.n_sweeps;
        self.alpha.copy_from_slice(&state.parameters[..n_topics]);
        self.topics.prior = state.parameters[n_topics];
        self.update_topics(step);
        Ok(())
    }

    fn ln_joint(&self) -> f64 {
        let alpha_sum: f64 = self.alpha.iter().sum();
        let ln_lengths: f64 = self.tokens.lengths().map(|n| ln_rising(alpha_sum, n)).sum();
        let mut ln_value =
            self.tokens.ln_urns(&self.alpha) - ln_lengths + self.topics.ln_words(&self.tokens);
        if self.prior.learned {
            let drawn = self.alpha.iter().zip(&self.prior.alpha);
            ln_value -= drawn.map(|(alpha, mean)| alpha / mean).sum::<f64>();
            ln_value -= self.topics.prior / self.prior.beta;
        }
        ln_value
    }

    fn sweep(&mut self, step: TopicStep, observer: &impl Observer) -> Result<()> {
        self.n_sweeps += 1;
        let key = Key::new(self.seed, Purpose::Assign).unit(self.n_sweeps);
        let learned = self.prior.learned;
        let step_of_tokens = self.topics.step(&self.alpha, key);
        let n_tables = self.tokens.sweep(step_of_tokens, Scheme::Collapsed, learned, observer)?;
        if learned {
            self.update_alpha(&n_tables);
            if self.topics.own_priors.is_none() {
                let key = self.parameters_key().unit(u64::MAX - 2);
                self.topics.update_prior(&self.tokens, self.prior.beta.recip(), key);
            }
        }
        self.update_topics(step);
        Ok(())
    }

    fn expected_parameters(&self) -> Result<LdaParameters> {
        Ok(LdaParameters {
            phi: self.topics.expected(&self.tokens)?,
            alpha: self.alpha.clone(),
            beta: self.topics.prior,
        })
    }

    fn add(sum: &mut LdaParameters, other: &LdaParameters) {
        sum.phi.iter_mut().zip(&other.phi).for_each(|(sum, x)| *sum += x);
        sum.alpha.iter_mut().zip(&other.alpha).for_each(|(sum, x)| *sum += x);
        sum.beta += other.beta;
    }

    fn scale(sum: &mut LdaParameters, factor: f64) {
        sum.phi.iter_mut().chain(&mut sum.alpha).for_each(|x| *x *= factor);
        sum.beta *= factor;
    }
}

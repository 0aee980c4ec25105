//! Latent Dirichlet allocation.

use super::assignments::Assignments;
use super::topics::Topics;
use super::{Sampler, State, TopicStep};
use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::{Error, Result, check_positive};
use crate::math::ln_rising;
use crate::rng::{Key, Purpose};
use crate::urn::MAX_TOPICS;

/// Priors of LDA: θ_d ~ Dirichlet(α), φ_k ~ Dirichlet(β).
#[derive(Debug, Clone, PartialEq)]
pub struct LdaPrior {
    /// α, one value a topic.
    pub alpha: Vec<f64>,
    /// β.
    pub beta: f64,
}

/// Parameters of LDA.
#[derive(Debug, Clone, PartialEq)]
pub struct LdaParameters {
    /// φ, word-major.
    pub phi: Vec<f64>,
}

/// Partially collapsed Gibbs sampler of LDA: topics of tokens by the urn given φ, then φ.
pub struct LdaSampler<'a> {
    tokens: Assignments<'a>,
    topics: Topics,
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
        check_positive("doc_topic_prior", &prior.alpha)?;
        check_positive("topic_word_prior", &[prior.beta])?;
        let n_topics = prior.alpha.len();
        let tokens = Assignments::new(counts, n_topics, Key::new(seed, Purpose::Initialise))?;
        let topics = Topics::new(counts.n_words(), n_topics, prior.beta)?;
        let mut sampler = LdaSampler { tokens, topics, alpha: prior.alpha, seed, n_sweeps: 0 };
        sampler.update_topics(TopicStep::Mean);
        Ok(sampler)
    }

    /// The topic of every token, cell after cell, document after document.
    pub fn assignments(&self) -> &[u16] {
        self.tokens.topics()
    }

    /// φ of the current state, word-major.
    pub fn phi(&self) -> &[f64] {
        &self.topics.weights
    }

    fn update_topics(&mut self, step: TopicStep) {
        let key = Key::new(self.seed, Purpose::Parameters).unit(self.n_sweeps);
        let totals = self.topics.update(&self.tokens, step, key);
        let inverse: Vec<f64> = totals.iter().map(|total| total.recip()).collect();
        self.topics.normalise(&inverse);
    }
}

impl Sampler for LdaSampler<'_> {
    type Parameters = LdaParameters;

    fn state(&self) -> State {
        let assignments = self.tokens.topics().to_vec();
        State { n_sweeps: self.n_sweeps, assignments, parameters: Vec::new() }
    }

    fn resume(&mut self, state: &State, step: TopicStep) -> Result<()> {
        check_parameters(state, 0)?;
        self.tokens.restore(&state.assignments)?;
        self.n_sweeps = state.n_sweeps;
        self.update_topics(step);
        Ok(())
    }

    fn ln_joint(&self) -> f64 {
        let alpha_sum: f64 = self.alpha.iter().sum();
        let ln_lengths: f64 = self.tokens.lengths().map(|n| ln_rising(alpha_sum, n)).sum();
        self.tokens.ln_urns(&self.alpha) - ln_lengths + self.topics.ln_words(&self.tokens)
    }

    fn sweep(&mut self, step: TopicStep, observer: &impl Observer) -> Result<()> {
        self.n_sweeps += 1;
        let key = Key::new(self.seed, Purpose::Assign).unit(self.n_sweeps);
        self.tokens.sweep(&self.alpha, &self.topics.weights, false, key, observer)?;
        self.update_topics(step);
        Ok(())
    }

    fn expected_parameters(&self) -> Result<LdaParameters> {
        Ok(LdaParameters { phi: self.topics.expected(&self.tokens)? })
    }

    fn add(sum: &mut LdaParameters, other: &LdaParameters) {
        sum.phi.iter_mut().zip(&other.phi).for_each(|(sum, x)| *sum += x);
    }

    fn scale(sum: &mut LdaParameters, factor: f64) {
        sum.phi.iter_mut().for_each(|x| *x *= factor);
    }
}

/// Checks that a state has that many parameters beside the topics of all tokens.
pub(super) fn check_parameters(state: &State, expected: usize) -> Result<()> {
    match state.parameters.len() {
        found if found != expected => {
            Err(Error::Length { name: "parameters of the state", found, expected })
        }
        _ => Ok(()),
    }
}

/// Checks that assignments fit into 16 bits.
pub(super) fn check_n_topics(n_topics: usize) -> Result<()> {
    match n_topics {
        0 => Err(Error::Empty { name: "n_components" }),
        1..=MAX_TOPICS => Ok(()),
        _ => Err(Error::Parameter {
            name: "n_components",
            index: 0,
            value: n_topics as f64,
            domain: "at most 65535",
        }),
    }
}

//! Latent Dirichlet allocation.

mod globals;

use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::{Error, Result, check_positive};
use crate::rng::{Key, Purpose};
use crate::training::limits::check_n_topics;
use crate::training::schedule::{Sampler, State, TopicStep};
use crate::training::sharded::{Globals, LnDocuments};
use crate::training::sweeps::{Assignments, Scheme};

pub(super) use globals::ln_lengths;
pub use globals::{LdaGlobals, LdaParameters, LdaPrior};

/// Partially collapsed Gibbs sampler of LDA: topics of tokens by the urn given φ, then φ.
pub struct LdaSampler<'a> {
    tokens: Assignments<'a>,
    globals: LdaGlobals,
}

impl<'a> LdaSampler<'a> {
    /// A sampler that starts from uniform topics of tokens, and φ at its mean given them.
    ///
    /// # Errors
    /// No topics or more than 65,535; priors that are not positive.
    pub fn new(counts: &'a CountMatrix, prior: LdaPrior, seed: u64) -> Result<Self> {
        let n_topics = prior.alpha.len();
        check_n_topics(n_topics)?;
        let globals = LdaGlobals::new(counts.n_words(), prior, seed)?;
        let tokens = Assignments::new(counts, n_topics, Key::new(seed, Purpose::Initialise))?;
        let mut sampler = LdaSampler { tokens, globals };
        sampler.update_topics(TopicStep::Mean);
        Ok(sampler)
    }

    /// The same sampler with φ_k ~ Dirichlet(row k of `priors`) instead, which is word-major; β is
    /// then neither used nor learned.
    ///
    /// # Errors
    /// Another size than words x topics; values that are not positive.
    pub fn with_topic_priors(mut self, priors: Vec<f64>) -> Result<Self> {
        let (found, expected) = (priors.len(), self.globals.topics.weights.len());
        if found != expected {
            return Err(Error::Length { name: "topic priors", found, expected });
        }
        check_positive("topic priors", &priors)?;
        self.globals.topics.own_priors = Some(priors.into());
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
        self.globals.topics.scaled()
    }

    /// α of the current state.
    pub fn alpha(&self) -> &[f64] {
        &self.globals.alpha
    }

    /// β of the current state.
    pub fn beta(&self) -> f64 {
        self.globals.topics.prior
    }

    fn update_topics(&mut self, step: TopicStep) {
        self.globals.update_topics(&self.tokens, step);
    }
}

impl Sampler for LdaSampler<'_> {
    type Parameters = LdaParameters;

    fn state(&self) -> State {
        let assignments = self.tokens.topics();
        let parameters = self.globals.parameters();
        State { n_sweeps: self.globals.n_sweeps, assignments, parameters }
    }

    fn resume(&mut self, state: &State, step: TopicStep) -> Result<()> {
        self.tokens.restore(&state.assignments)?;
        self.globals.restore(state.n_sweeps, &state.parameters)?;
        self.update_topics(step);
        Ok(())
    }

    fn ln_joint(&self) -> f64 {
        let ln_lengths = ln_lengths(self.alpha(), self.tokens.lengths());
        let ln_urns = self.tokens.ln_urns(self.alpha());
        self.globals.ln_joint(&self.tokens, LnDocuments { ln_urns, ln_lengths, exposed: &[] })
    }

    fn sweep(&mut self, step: TopicStep, observer: &impl Observer) -> Result<()> {
        let globals = &mut self.globals;
        globals.n_sweeps += 1;
        let learned = globals.prior.learned;
        let n_tables = self.tokens.sweep(globals.step(), Scheme::Collapsed, learned, observer)?;
        globals.draw(&self.tokens, self.tokens.lengths(), &n_tables, step);
        Ok(())
    }

    fn expected_parameters(&self, sum: Option<LdaParameters>) -> Result<LdaParameters> {
        self.globals.expected(&self.tokens, sum)
    }
}

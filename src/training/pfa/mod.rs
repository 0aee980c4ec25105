//! Poisson factor analysis with beta and gamma priors on its probabilities and shapes.

mod exposures;
mod globals;

use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::Result;
use crate::rng::{Key, Purpose};
use crate::training::schedule::{Sampler, State, TopicStep};
use crate::training::sharded::Globals;
use crate::training::sweeps::{Assignments, ExposedPart, ExposedTokens, Scheme};

use exposures::numbered;
pub use globals::{PfaGlobals, PfaParameters, PfaPrior};

/// Gibbs sampler: topics of tokens by the urn with `a = r`, `q = p φ`, or given θ; then φ; p given
/// the tokens of each topic; the tables l ~ CRT(n, r), and r given them.
///
/// Blocked, it is that of the PFA notes (Zhou & Carin 2013): θ, the last draw of their sweep, is here
/// the first of the next, by document, and nowhere stored.
///
/// Documents of different exposures have different urns, `q_kw = φ_kw e/(x_k + e)` with the rate
/// `x_k = (1-p_k)/p_k`: they are drawn one by one, and `ln x_k`, whose density is concave in its
/// logarithm but of no family, by rejection from tangents; the others stay as they are.
pub struct PfaSampler<'a> {
    /// Number of the exposure of each document among the different ones, where they have exposures.
    exposures: Option<Vec<u32>>,
    tokens: Assignments<'a>,
    scheme: Scheme,
    globals: PfaGlobals,
}

impl<'a> PfaSampler<'a> {
    /// A collapsed sampler that starts from uniform topics of tokens and from the given r and p.
    ///
    /// # Errors
    /// No topics or more than 65,535, sizes that disagree, parameters outside their domains.
    pub fn new(
        counts: &'a CountMatrix,
        prior: PfaPrior,
        r: Vec<f64>,
        p: Vec<f64>,
        seed: u64,
    ) -> Result<Self> {
        let n_topics = r.len();
        let mut globals =
            PfaGlobals::new(counts.n_words(), counts.n_documents(), prior, r, p, seed)?;
        let mut exposures = None;
        if let Some((values, numbers)) = counts.exposures().map(numbered) {
            let mut n_documents = vec![0; values.len()];
            numbers.iter().for_each(|&number| n_documents[number as usize] += 1);
            globals = globals.with_exposures(&values, &n_documents)?;
            exposures = Some(numbers);
        }
        let tokens = Assignments::new(counts, n_topics, Key::new(seed, Purpose::Initialise))?;
        let mut sampler = PfaSampler { exposures, tokens, scheme: Scheme::Collapsed, globals };
        sampler.globals.update_topics(&sampler.tokens, TopicStep::Mean);
        Ok(sampler)
    }

    /// The same sampler with another way to draw the topics of tokens.
    #[must_use]
    pub fn with_scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// The same sampler from other topics of tokens, cell after cell, document after document.
    ///
    /// # Errors
    /// Another number of tokens; topics beyond the number of topics.
    pub fn with_assignments(mut self, topics: &[u16]) -> Result<Self> {
        self.tokens.restore(topics)?;
        self.globals.update_topics(&self.tokens, TopicStep::Mean);
        Ok(self)
    }

    /// The topic of every token, cell after cell, document after document.
    pub fn assignments(&self) -> Vec<u16> {
        self.tokens.topics()
    }

    /// r of the current state.
    pub fn shape(&self) -> &[f64] {
        &self.globals.r
    }

    /// p of the current state.
    pub fn probability(&self) -> &[f64] {
        &self.globals.p
    }

    /// φ of the current state times a factor of the topic, which is p where documents have no
    /// exposures; word-major.
    pub fn weights(&self) -> Vec<f64> {
        self.globals.topics.scaled()
    }

    /// The tokens of every topic by exposure; none where documents have no exposures.
    fn exposed(&self) -> Vec<ExposedTokens> {
        self.exposures.as_ref().map_or_else(Vec::new, |exposures| self.tokens.exposed(exposures))
    }
}

impl Sampler for PfaSampler<'_> {
    type Parameters = PfaParameters;

    fn state(&self) -> State {
        let assignments = self.tokens.topics();
        let parameters = self.globals.parameters();
        State { n_sweeps: self.globals.n_sweeps, assignments, parameters }
    }

    fn resume(&mut self, state: &State, step: TopicStep) -> Result<()> {
        self.tokens.restore(&state.assignments)?;
        self.globals.restore(state.n_sweeps, &state.parameters)?;
        self.globals.update_topics(&self.tokens, step);
        Ok(())
    }

    fn ln_joint(&self) -> f64 {
        let ln_urns = self.tokens.ln_urns(self.shape());
        let exposed = self.exposed();
        let exposed: Vec<ExposedPart<'_>> = exposed.iter().map(ExposedTokens::part).collect();
        self.globals.ln_density(&self.tokens, ln_urns, &exposed)
    }

    fn sweep(&mut self, step: TopicStep, observer: &impl Observer) -> Result<()> {
        self.globals.n_sweeps += 1;
        let tables = self.globals.prior.shape.is_some();
        let n_tables = self.tokens.sweep(self.globals.step(), self.scheme, tables, observer)?;
        let learned = self.globals.prior.probability.is_some();
        let exposed = if learned { self.exposed() } else { vec![] };
        let exposed: Vec<ExposedPart<'_>> = exposed.iter().map(ExposedTokens::part).collect();
        self.globals.draw(&self.tokens, &n_tables, &exposed, step);
        Ok(())
    }

    fn expected_parameters(&self, sum: Option<PfaParameters>) -> Result<PfaParameters> {
        self.globals.expected(&self.tokens, sum)
    }
}

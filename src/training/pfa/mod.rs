//! Poisson factor analysis with beta and gamma priors on its probabilities and shapes.

mod exposures;

use rand_distr::Distribution as _;
use rayon::prelude::*;

use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::{Error, Result, check_all, check_drawn, check_positive};
use crate::math::{gamma_law, ln_beta_variate, log_concave};
use crate::rng::{Key, Purpose};
use crate::training::limits::check_n_topics;
use crate::training::schedule::{Averaged, Sampler, State, TopicStep};
use crate::training::sweeps::{Assignments, Scheme, Topics};

use exposures::{Exposures, Tally, softplus};

/// Priors of θ_k ~ Gamma(r_k, scale p_k/(1-p_k)), φ_k ~ Dirichlet(α), y_w ~ Poisson(e Σ θ_k φ_kw)
/// in a document of exposure e.
#[derive(Debug, Clone, PartialEq)]
pub struct PfaPrior {
    /// α.
    pub topic_word: f64,
    /// p_k ~ Beta(first, second), that is (c ε, c (1 - ε)); `None` keeps p where it starts.
    pub probability: Option<(f64, f64)>,
    /// r_k ~ Gamma(shape, rate), that is (c0 r0, c0); `None` keeps r where it starts.
    pub shape: Option<(f64, f64)>,
}

/// Parameters of a gamma-Poisson model.
#[derive(Debug, Clone, PartialEq)]
pub struct PfaParameters {
    /// φ, word-major.
    pub phi: Vec<f64>,
    /// r.
    pub r: Vec<f64>,
    /// p.
    pub p: Vec<f64>,
}

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
    counts: &'a CountMatrix,
    tokens: Assignments<'a>,
    scheme: Scheme,
    exposures: Option<Exposures>,
    /// x = (1-p)/p, where documents have exposures; else empty.
    rates: Vec<f64>,
    topics: Topics,
    prior: PfaPrior,
    r: Vec<f64>,
    p: Vec<f64>,
    /// ln(1 - p), which p itself cannot tell when it is near 1.
    ln_complement: Vec<f64>,
    /// Σ over documents of the tables of each topic.
    n_tables: Vec<u64>,
    seed: u64,
    n_sweeps: u64,
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
        check_n_topics(r.len())?;
        if p.len() != r.len() {
            return Err(Error::Length {
                name: "gamma probability",
                found: p.len(),
                expected: r.len(),
            });
        }
        check_positive("gamma shape", &r)?;
        check_all("gamma probability", &p, "strictly between 0 and 1", |x| x > 0.0 && x < 1.0)?;
        check_positive("Dirichlet prior of words", &[prior.topic_word])?;
        let pair = |(first, second): (f64, f64)| [first, second];
        check_positive(
            "prior of the gamma probability",
            &prior.probability.map_or([1.0; 2], pair),
        )?;
        check_positive("prior of the gamma shape", &prior.shape.map_or([1.0; 2], pair))?;
        let n_topics = r.len();
        let tokens = Assignments::new(counts, n_topics, Key::new(seed, Purpose::Initialise))?;
        let topics = Topics::new(counts.n_words(), n_topics, prior.topic_word)?;
        let ln_complement = p.iter().map(|p| (-p).ln_1p()).collect();
        let n_tables = vec![0; n_topics];
        let mut sampler = PfaSampler {
            counts,
            exposures: Exposures::of(counts),
            rates: vec![],
            tokens,
            scheme: Scheme::Collapsed,
            topics,
            prior,
            r,
            p,
            ln_complement,
            n_tables,
            seed,
            n_sweeps: 0,
        };
        sampler.update_topics(TopicStep::Mean);
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
        self.update_topics(TopicStep::Mean);
        Ok(self)
    }

    /// The topic of every token, cell after cell, document after document.
    pub fn assignments(&self) -> Vec<u16> {
        self.tokens.topics()
    }

    /// r of the current state.
    pub fn shape(&self) -> &[f64] {
        &self.r
    }

    /// p of the current state.
    pub fn probability(&self) -> &[f64] {
        &self.p
    }

    /// φ of the current state times a factor of the topic, which is p where documents have no
    /// exposures; word-major.
    pub fn weights(&self) -> Vec<f64> {
        self.topics.scaled()
    }

    fn parameters_key(&self) -> Key {
        Key::new(self.seed, Purpose::Parameters).unit(self.n_sweeps)
    }

    /// φ given the topics of all tokens, then p: both given the same assignments.
    fn update_topics(&mut self, step: TopicStep) {
        self.topics.update(&self.tokens, step, self.parameters_key());
        if self.n_sweeps > 0 {
            self.update_probability();
        }
        self.scale_topics();
    }

    /// ln x_k.
    fn ln_rate(&self, k: usize) -> f64 {
        self.ln_complement[k] - self.p[k].ln()
    }

    /// Turns φ into p φ; where documents have exposures, finds the rates instead.
    fn scale_topics(&mut self) {
        if self.exposures.is_some() {
            self.rates = (0..self.p.len()).map(|k| self.ln_rate(k).exp()).collect();
            return;
        }
        self.topics.scale.iter_mut().zip(&self.p).for_each(|(scale, p)| *scale *= p);
    }

    /// p_k ~ Beta(c ε + n_k, c (1 - ε) + D r_k).
    fn update_probability(&mut self) {
        let Some((first, second)) = self.prior.probability else {
            return;
        };
        if let Some(exposures) = &self.exposures {
            let tallies = exposures.tally(self.counts, &self.tokens.topics(), self.r.len());
            self.draw_rates(&tallies, (first, second));
            return;
        }
        let mut rng = self.parameters_key().unit(u64::MAX - 2).rng();
        let n_documents = self.tokens.n_documents() as f64;
        for k in 0..self.r.len() {
            let successes = first + self.topics.n_tokens[k] as f64;
            let failures = second + n_documents * self.r[k];
            let (ln_p, ln_complement) = ln_beta_variate(successes, failures, &mut rng);
            self.p[k] = ln_p.exp();
            self.ln_complement[k] = ln_complement;
        }
    }

    /// p_k = 1 / (1 + x_k) given r and the tokens of every topic by exposure.
    fn draw_rates(&mut self, tallies: &[Tally], prior: (f64, f64)) {
        let key = self.parameters_key().unit(u64::MAX - 2);
        let Some(exposures) = &self.exposures else { return };
        let draw = |(k, tally): (usize, &Tally)| {
            let density = |t| exposures.ln_density(tally, self.r[k], prior, t);
            let start = self.ln_rate(k).clamp(-700.0, 700.0);
            log_concave(density, start, &mut key.unit(k as u64).rng())
        };
        let drawn: Vec<f64> = tallies.par_iter().enumerate().map(draw).collect();
        for (k, t) in drawn.into_iter().enumerate() {
            self.p[k] = (-softplus(t)).exp();
            self.ln_complement[k] = -softplus(-t);
        }
    }

    /// r_k ~ Gamma(c0 r0 + Σ_i l_ik, rate c0 - D ln(1 - p_k)).
    fn update_shape(&mut self) {
        let mut rng = self.parameters_key().unit(u64::MAX - 1).rng();
        for k in 0..self.r.len() {
            if let Some((shape, rate)) = self.shape_posterior(k) {
                // An empty topic's shape may underflow; the urn needs it positive.
                self.r[k] = (gamma_law(shape).sample(&mut rng) / rate).max(f64::MIN_POSITIVE);
            }
        }
    }

    /// ln of the probability that no document has a token of the topic, by unit of r.
    fn ln_empty(&self, k: usize) -> f64 {
        match &self.exposures {
            Some(exposures) => -exposures.ln_empty(self.ln_rate(k)),
            None => self.tokens.n_documents() as f64 * self.ln_complement[k],
        }
    }

    /// Shape and rate of r_k given the tables and p_k.
    fn shape_posterior(&self, k: usize) -> Option<(f64, f64)> {
        let (shape, rate) = self.prior.shape?;
        Some((shape + self.n_tables[k] as f64, rate - self.ln_empty(k)))
    }
}

impl Sampler for PfaSampler<'_> {
    type Parameters = PfaParameters;

    fn state(&self) -> State {
        let assignments = self.tokens.topics();
        let parameters = [&self.r[..], &self.p, &self.ln_complement].concat();
        State { n_sweeps: self.n_sweeps, assignments, parameters }
    }

    fn resume(&mut self, state: &State, step: TopicStep) -> Result<()> {
        let n_topics = self.r.len();
        state.check_parameters(3 * n_topics)?;
        let (r, others) = state.parameters.split_at(n_topics);
        let (p, ln_complement) = others.split_at(n_topics);
        check_drawn("gamma shapes of the state", r)?;
        check_all("gamma probabilities of the state", p, "between 0 and 1", |x| {
            (0.0..=1.0).contains(&x)
        })?;
        check_all("logarithms of the state", ln_complement, "at most 0", |x| x <= 0.0)?;
        self.tokens.restore(&state.assignments)?;
        self.n_sweeps = state.n_sweeps;
        let arrays = [&mut self.r, &mut self.p, &mut self.ln_complement];
        for (to, from) in arrays.into_iter().zip(state.parameters.chunks_exact(n_topics)) {
            to.copy_from_slice(from);
        }
        self.topics.update(&self.tokens, step, self.parameters_key());
        self.scale_topics();
        Ok(())
    }

    fn ln_joint(&self) -> f64 {
        let mut ln_value =
            self.tokens.ln_urns(&self.r).value() + self.topics.ln_words(&self.tokens);
        let n_documents = self.tokens.n_documents() as f64;
        let tallies = self
            .exposures
            .as_ref()
            .map(|exposures| exposures.tally(self.counts, &self.tokens.topics(), self.r.len()));
        for (k, (&r, &n)) in self.r.iter().zip(&self.topics.n_tokens).enumerate() {
            let (ln_p, ln_complement) = (self.p[k].ln(), self.ln_complement[k]);
            ln_value += match (&self.exposures, &tallies) {
                (Some(exposures), Some(tallies)) => {
                    exposures.ln_tokens(&tallies[k], self.ln_rate(k)) + r * self.ln_empty(k)
                }
                _ => n as f64 * ln_p + n_documents * r * ln_complement,
            };
            if let Some((first, second)) = self.prior.probability {
                ln_value += (first - 1.0) * ln_p + (second - 1.0) * ln_complement;
            }
            if let Some((shape, rate)) = self.prior.shape {
                ln_value += (shape - 1.0) * r.ln() - rate * r;
            }
        }
        ln_value
    }

    fn sweep(&mut self, step: TopicStep, observer: &impl Observer) -> Result<()> {
        self.n_sweeps += 1;
        let key = Key::new(self.seed, Purpose::Assign).unit(self.n_sweeps);
        let tables = self.prior.shape.is_some();
        let rates = self.exposures.as_ref().map(|_| &self.rates[..]);
        let step_of_tokens = self.topics.step(&self.r, key).with_rates(rates);
        self.n_tables = self.tokens.sweep(step_of_tokens, self.scheme, tables, observer)?;
        self.update_topics(step);
        if tables {
            self.update_shape();
        }
        Ok(())
    }

    fn expected_parameters(&self) -> Result<PfaParameters> {
        let n_documents = self.tokens.n_documents() as f64;
        let p = |k: usize| match self.prior.probability {
            // The mean has no closed form where documents have exposures: the draw stands for it.
            Some((first, second)) if self.exposures.is_none() => {
                let successes = first + self.topics.n_tokens[k] as f64;
                successes / (successes + second + n_documents * self.r[k])
            }
            _ => self.p[k],
        };
        Ok(PfaParameters {
            phi: self.topics.expected(&self.tokens)?,
            r: self.r.clone(),
            p: (0..self.r.len()).map(p).collect(),
        })
    }
}

impl Averaged for PfaParameters {
    fn add(&mut self, other: &Self) {
        let arrays =
            [(&mut self.phi, &other.phi), (&mut self.r, &other.r), (&mut self.p, &other.p)];
        for (sum, other) in arrays {
            sum.iter_mut().zip(other).for_each(|(sum, x)| *sum += x);
        }
    }

    fn scale(&mut self, factor: f64) {
        for array in [&mut self.phi, &mut self.r, &mut self.p] {
            array.iter_mut().for_each(|x| *x *= factor);
        }
    }
}

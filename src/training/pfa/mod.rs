//! Poisson factor analysis with beta and gamma priors on its probabilities and shapes: the parameters
//! that belong to no document, and their draws given the topics of all tokens.
//!
//! A sweep draws these topics by the urn with `a = r`, `q = p φ`; then φ; p given the tokens of each
//! topic; the tables l ~ CRT(n, r), and r given them (Zhou & Carin 2013, with θ integrated out).
//!
//! Documents of different exposures have different urns, `q_kw = φ_kw e/(x_k + e)` with the rate
//! `x_k = (1-p_k)/p_k`, and `ln x_k`, whose density is concave in its
//! logarithm but of no family, by rejection from tangents; the others stay as they are.

mod exposures;

use rand_distr::Distribution as _;
use rayon::prelude::*;

use crate::error::{Error, Result, check_all, check_drawn, check_length, check_positive};
use crate::math::{gamma_law, ln_beta_variate, log_concave};
use crate::regression::{Design, Regression};
use crate::training::globals::{Common, DocumentTotals, Globals, Swept, WordCounts};
use crate::training::limits::check_n_topics;
use crate::training::schedule::TopicStep;
use crate::training::sweeps::{ExposedTokens, Topics, by_exposure};
use crate::training::tokens::ExposureGroups;
use exposures::{Exposures, softplus};

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

/// φ, p and r between two sweeps over the tokens, wherever the tokens are.
pub struct PfaGlobals {
    common: Common,
    prior: PfaPrior,
    p: Vec<f64>,
    /// ln(1 - p), which p itself cannot tell when it is near 1.
    ln_complement: Vec<f64>,
    /// Tokens of each topic.
    n_tokens: Vec<u64>,
    /// Documents of the corpus.
    n_documents: usize,
    exposures: Option<Exposures>,
    /// x = (1-p)/p, where documents have exposures; else empty.
    rates: Vec<f64>,
}

impl PfaGlobals {
    /// r and p as given, for so many documents without exposures; φ is not set.
    ///
    /// # Errors
    /// No topics or more than 65,535, sizes that disagree, parameters outside their domains.
    pub fn new(
        n_words: usize,
        n_documents: usize,
        prior: PfaPrior,
        r: Vec<f64>,
        p: Vec<f64>,
        seed: u64,
    ) -> Result<Self> {
        check_n_topics(r.len())?;
        check_length("probability", p.len(), r.len())?;
        check_positive("shape", &r)?;
        check_all("probability", &p, "strictly between 0 and 1", |x| x > 0.0 && x < 1.0)?;
        check_positive("topic_word_prior", &[prior.topic_word])?;
        let pair = |(first, second): (f64, f64)| [first, second];
        check_positive("probability_prior", &prior.probability.map_or([1.0; 2], pair))?;
        check_positive("shape_prior", &prior.shape.map_or([1.0; 2], pair))?;
        let topics = Topics::new(n_words, r.len(), prior.topic_word)?;
        let ln_complement = p.iter().map(|p| (-p).ln_1p()).collect();
        let (exposures, rates, n_tokens) = (None, vec![], vec![0; r.len()]);
        let common = Common::new(topics, r, seed);
        Ok(PfaGlobals { common, prior, p, ln_complement, n_tokens, n_documents, exposures, rates })
    }

    /// The same parameters for documents of these exposures.
    ///
    /// # Errors
    /// Sizes that disagree, exposures that are not positive.
    pub fn with_exposures(self, exposures: &ExposureGroups) -> Result<Self> {
        let groups = self.common.regression.as_ref().map(Regression::groups);
        Ok(PfaGlobals { exposures: Some(Exposures::new(exposures, groups)?), ..self })
    }

    /// The same parameters with r_dk = exp(x_d·λ_k): the exponential of an intercept has the gamma
    /// prior of a learned r_k, the slopes are normal.
    ///
    /// # Errors
    /// Shapes that are not learned, another number of documents; exposures that were given before, as
    /// they go by covariates; too little memory for r of all documents that differ in it.
    pub fn with_covariates(mut self, design: Design) -> Result<Self> {
        let Some(prior) = self.prior.shape else {
            return Err(Error::Empty { name: "prior of the gamma shape, which covariates need" });
        };
        check_length("documents with covariates", design.n_corpus(), self.n_documents)?;
        if self.exposures.is_some() {
            let (name, domain) = ("exposure", "given after covariates");
            return Err(Error::Parameter { name, index: 0, value: f64::NAN, domain });
        }
        let regression = Regression::new(design, &self.common.a, vec![prior; self.common.a.len()])?;
        self.common.regression = Some(regression);
        Ok(self)
    }

    /// λ of all topics, given tables and ln(1 + e_d/x_k) of the documents, -ln(1 - p_k) without exposures.
    fn update_coefficients(&mut self, n_tables: &[u64]) {
        let key = self.common.key().unit(u64::MAX - 1);
        let ln_rates: Vec<f64> = (0..self.p.len()).map(|k| self.ln_rate(k)).collect();
        let Some(regression) = &mut self.common.regression else { return };
        let n_documents = regression.n_documents();
        let weights = |k: usize| match &self.exposures {
            Some(exposures) => exposures.ln_empty(ln_rates[k]).collect(),
            None => n_documents.iter().map(|n| -self.ln_complement[k] * n).collect(),
        };
        let n_tables: Vec<f64> = n_tables.iter().map(|&n| n as f64).collect();
        regression.draw(&n_tables, weights, key);
        self.common.a = regression.mean();
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
        self.common.topics.scale.iter_mut().zip(&self.p).for_each(|(scale, p)| *scale *= p);
    }

    /// p_k ~ Beta(c ε + n_k, c (1 - ε) + D r_k).
    fn update_probability(&mut self, exposed: &[ExposedTokens]) {
        let Some((first, second)) = self.prior.probability else {
            return;
        };
        if self.exposures.is_some() {
            self.draw_rates(exposed, (first, second));
            return;
        }
        let mut rng = self.common.key().unit(u64::MAX - 2).rng();
        let n_documents = self.n_documents as f64;
        for k in 0..self.common.a.len() {
            let successes = first + self.n_tokens[k] as f64;
            let failures = second + n_documents * self.common.a[k];
            let (ln_p, ln_complement) = ln_beta_variate(successes, failures, &mut rng);
            self.p[k] = ln_p.exp();
            self.ln_complement[k] = ln_complement;
        }
    }

    /// p_k = 1 / (1 + x_k) given r and the tokens of every topic by exposure.
    fn draw_rates(&mut self, exposed: &[ExposedTokens], prior: (f64, f64)) {
        let key = self.common.key().unit(u64::MAX - 2);
        let Some(exposures) = &self.exposures else { return };
        let draw = |k: usize| {
            let tokens = by_exposure(exposed, k, exposures.n());
            let n_tokens: u64 = tokens.iter().sum();
            debug_assert_eq!(n_tokens, self.n_tokens[k], "all tokens have an exposure");
            let density = exposures.density(&tokens, self.pseudo_counts().of_topic(k), prior);
            let start = self.ln_rate(k).clamp(-700.0, 700.0);
            log_concave(|t| density.ln_at(t), start, &mut key.unit(k as u64).rng())
        };
        let drawn: Vec<f64> = (0..self.common.a.len()).into_par_iter().map(draw).collect();
        for (k, t) in drawn.into_iter().enumerate() {
            self.p[k] = (-softplus(t)).exp();
            self.ln_complement[k] = -softplus(-t);
        }
    }

    /// r_k ~ Gamma(c0 r0 + Σ_i l_ik, rate c0 - D ln(1 - p_k)).
    fn update_shape(&mut self, (shape, rate): (f64, f64), n_tables: &[u64]) {
        let mut rng = self.common.key().unit(u64::MAX - 1).rng();
        for (k, &n) in n_tables.iter().enumerate() {
            let law = gamma_law(shape + n as f64);
            // An empty topic's shape may underflow; the urn needs it positive.
            self.common.a[k] =
                (law.sample(&mut rng) / (rate - self.ln_empty(k))).max(f64::MIN_POSITIVE);
        }
    }

    /// ln of the probability that no document has a token of the topic, by unit of r.
    fn ln_empty(&self, k: usize) -> f64 {
        match &self.exposures {
            Some(exposures) => -exposures.ln_empty(self.ln_rate(k)).sum::<f64>(),
            None => self.n_documents as f64 * self.ln_complement[k],
        }
    }
}

impl Globals for PfaGlobals {
    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    /// r, p and ln(1 - p); where documents have covariates, then λ and σ².
    fn parameters(&self) -> Vec<f64> {
        [&self.common.a[..], &self.p, &self.ln_complement, &self.common.of_regression()].concat()
    }

    fn restore(&mut self, n_sweeps: u64, parameters: &[f64]) -> Result<()> {
        let n_topics = self.common.a.len();
        let check = |own: &[f64]| {
            let (r, others) = own.split_at(n_topics);
            let (p, ln_complement) = others.split_at(n_topics);
            check_drawn("gamma shapes of the state", r)?;
            check_all("gamma probabilities of the state", p, "between 0 and 1", |x| {
                (0.0..=1.0).contains(&x)
            })?;
            check_all("logarithms of the state", ln_complement, "at most 0", |x| x <= 0.0)
        };
        let own = self.common.restore(n_sweeps, parameters, 3 * n_topics, check)?;
        self.common.a.copy_from_slice(&own[..n_topics]);
        self.p.copy_from_slice(&own[n_topics..2 * n_topics]);
        self.ln_complement.copy_from_slice(&own[2 * n_topics..]);
        Ok(())
    }

    fn update_topics(&mut self, counts: WordCounts<'_>, step: TopicStep) {
        self.common.topics.update(counts.tables, step, self.common.key());
        self.n_tokens = counts.n_tokens(&self.common.topics);
        self.scale_topics();
    }

    fn needs(&self) -> (bool, bool) {
        (self.prior.shape.is_some(), self.prior.probability.is_some())
    }

    fn update(&mut self, counts: WordCounts<'_>, swept: Swept<'_>, step: TopicStep) {
        self.common.n_sweeps += 1;
        self.common.topics.update(counts.tables, step, self.common.key());
        self.n_tokens = counts.n_tokens(&self.common.topics);
        // Both given the same topics of tokens.
        self.update_probability(swept.exposed);
        self.scale_topics();
        if self.common.regression.is_some() {
            self.update_coefficients(swept.n_tables);
        } else if let Some(prior) = self.prior.shape {
            self.update_shape(prior, swept.n_tables);
        }
    }

    fn ln_joint(&self, documents: DocumentTotals<'_>) -> f64 {
        let mut ln_value = documents.ln_urns.value() + documents.ln_words;
        let n_documents = self.n_documents as f64;
        for (k, (&r, &n)) in self.common.a.iter().zip(&self.n_tokens).enumerate() {
            let (ln_p, ln_complement) = (self.p[k].ln(), self.ln_complement[k]);
            ln_value += match &self.exposures {
                Some(exposures) => {
                    let tokens = by_exposure(documents.exposed, k, exposures.n());
                    let empty = exposures.ln_empty(self.ln_rate(k));
                    let empty = self.pseudo_counts().of_topic(k).zip(empty).map(|(r, x)| r * x);
                    exposures.ln_tokens(&tokens, self.ln_rate(k)) - empty.sum::<f64>()
                }
                None => n as f64 * ln_p + n_documents * r * ln_complement,
            };
            if let Some((first, second)) = self.prior.probability {
                ln_value += (first - 1.0) * ln_p + (second - 1.0) * ln_complement;
            }
            if let (Some((shape, rate)), None) = (self.prior.shape, &self.common.regression) {
                ln_value += (shape - 1.0) * r.ln() - rate * r;
            }
        }
        ln_value + self.common.regression.as_ref().map_or(0.0, Regression::ln_prior)
    }

    fn rates(&self) -> Option<&[f64]> {
        self.exposures.as_ref().map(|_| &self.rates[..])
    }

    fn factors(&self) -> Option<&[f64]> {
        // Where documents have exposures, their rates take the place of p.
        self.exposures.is_none().then_some(&self.p[..])
    }

    fn n_exposures(&self) -> usize {
        self.exposures.as_ref().map_or(0, Exposures::n)
    }

    /// r, then p; where documents have covariates, then λ and σ².
    fn expected(&self) -> Vec<f64> {
        let n_documents = self.n_documents as f64;
        let p = |k: usize| match self.prior.probability {
            // The mean has no closed form where documents have exposures: the draw stands for it.
            Some((first, second)) if self.exposures.is_none() => {
                let successes = first + self.n_tokens[k] as f64;
                successes / (successes + second + n_documents * self.common.a[k])
            }
            _ => self.p[k],
        };
        let regression = self.common.of_regression();
        self.common
            .a
            .iter()
            .copied()
            .chain((0..self.common.a.len()).map(p))
            .chain(regression)
            .collect()
    }
}

//! LDA and gamma-Poisson models: an urn, and the closed-form factor beside it.
//!
//! A gamma-Poisson document of exposure e has rates e Σ_k θ_k φ_kw. Since e θ_k is
//! Gamma(r_k, scale e p_k/(1-p_k)), its urn is that of the model whose odds p/(1-p) are e times as
//! large: every topic's weights take a factor f_k(e), and the factor beside the urn sum follows.

use std::borrow::Cow;

use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::document::laws::vocabularies::{SUM_TOLERANCE, Vocabularies};
use crate::error::{Error, Result, check_all, check_length, check_positive};
use crate::math::{ln_factorial, ln_rising};
use crate::urn::{LocalUrn, TopicBursts, Urn};

/// A topic model whose document likelihood is a closed-form factor times an urn sum.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicModel {
    urn: Urn,
    law: DocumentPrior,
    pub(super) vocabularies: Vocabularies,
    bursts: Option<TopicBursts>,
}

#[derive(Debug, Clone, PartialEq)]
enum DocumentPrior {
    /// θ ~ Dirichlet(α), tokens given.
    Lda { alpha_sum: f64 },
    /// θ_k ~ Gamma(r_k, scale p_k/(1-p_k)), y_w ~ Poisson(e Σ_k θ_k φ_kw).
    GammaPoisson { prior: GammaPrior, lengths: LengthLaw, theta_scale: Vec<f64> },
}

/// Parameters of the law of θ, beside its shapes.
#[derive(Debug, Clone, PartialEq)]
struct GammaPrior {
    /// p_k.
    p: Vec<f64>,
    /// Φ_k = Σ_w φ_kw.
    row_sums: Vec<f64>,
}

impl GammaPrior {
    /// 1 / (1 - p_k + e p_k Φ_k): the posterior scale of θ_k is p_k times this.
    fn shrink(&self, exposure: f64) -> impl Iterator<Item = f64> {
        let topics = self.p.iter().zip(&self.row_sums);
        topics.map(move |(p, sum)| (1.0 - p + exposure * p * sum).recip())
    }

    /// The posterior scales of θ.
    fn theta_scale(&self, exposure: f64) -> Vec<f64> {
        self.p.iter().zip(self.shrink(exposure)).map(|(p, s)| p * s).collect()
    }

    /// f_k(e) = q_kw(e) / q_kw(1).
    fn factors(&self, exposure: f64) -> Vec<f64> {
        let shrinks = self.shrink(exposure).zip(self.shrink(1.0));
        shrinks.map(|(at_exposure, at_one)| exposure * at_exposure / at_one).collect()
    }

    /// Σ_k r_k ln(1 - Q_k).
    fn ln_no_tokens(&self, r: &[f64], exposure: f64) -> f64 {
        let topics = r.iter().zip(&self.p).zip(self.shrink(exposure));
        topics.map(|((r, p), s)| r * ((-p).ln_1p() + s.ln())).sum()
    }

    fn lengths(&self, r: &[f64], exposure: f64) -> LengthLaw {
        let scales = self.theta_scale(exposure).into_iter().zip(&self.row_sums);
        LengthLaw {
            shapes: r.to_vec(),
            totals: scales.map(|(scale, sum)| exposure * scale * sum).collect(),
            ln_no_tokens: self.ln_no_tokens(r, exposure),
        }
    }
}

impl TopicModel {
    /// Latent Dirichlet allocation; `phi` is row-major, topics x words, rows summing to 1.
    ///
    /// # Errors
    /// Sizes that disagree, `alpha` not positive, `phi` negative or not normalised.
    pub fn lda(alpha: Vec<f64>, phi: &[f64]) -> Result<Self> {
        TopicModel::lda_of_vocabularies(alpha, phi, &[])
    }

    /// The same of several vocabularies, whose columns follow one another; rows sum to 1 in each of
    /// them.
    ///
    /// # Errors
    /// The errors of [`lda`](Self::lda), and sizes that are none of the columns.
    pub fn lda_of_vocabularies(alpha: Vec<f64>, phi: &[f64], sizes: &[usize]) -> Result<Self> {
        let n_words = check_topic_word(&alpha, "doc_topic_prior", phi)?;
        let vocabularies = Vocabularies::new(sizes, n_words)?;
        vocabularies.check_rows(phi)?;
        let law = DocumentPrior::Lda { alpha_sum: alpha.iter().sum() };
        let q = word_major(phi, &vec![1.0; alpha.len()]);
        Ok(TopicModel { urn: Urn::new(alpha, q)?, law, vocabularies, bursts: None })
    }

    /// Gamma-Poisson factor analysis; `phi` is row-major, topics x words, not negative.
    ///
    /// # Errors
    /// Sizes that disagree, `r` not positive, `p` outside (0, 1), `phi` negative.
    pub fn gamma_poisson(r: Vec<f64>, p: &[f64], phi: &[f64]) -> Result<Self> {
        let n_words = check_topic_word(&r, "shape", phi)?;
        check_length("probability", p.len(), r.len())?;
        check_all("probability", p, "strictly between 0 and 1", |x| x > 0.0 && x < 1.0)?;
        let row_sums = phi.chunks_exact(n_words).map(|row| row.iter().sum()).collect();
        let prior = GammaPrior { p: p.to_vec(), row_sums };
        let (theta_scale, lengths) = (prior.theta_scale(1.0), prior.lengths(&r, 1.0));
        let q = word_major(phi, &theta_scale);
        let law = DocumentPrior::GammaPoisson { prior, lengths, theta_scale };
        let vocabularies = Vocabularies::new(&[], n_words)?;
        Ok(TopicModel { urn: Urn::new(r, q)?, law, vocabularies, bursts: None })
    }

    /// The same model with bursty topics: each document draws its own version of topic k,
    /// φ_dk ~ Dirichlet(s_k φ_k) (Doyle & Elkan 2009). An infinite s_k is a topic without bursts.
    ///
    /// # Errors
    /// Another number of concentrations than topics, one that is not positive; topics whose words do not
    /// sum to 1; several vocabularies.
    pub fn with_topic_concentration(mut self, concentration: &[f64]) -> Result<Self> {
        let n_topics = self.urn.n_topics();
        check_length("topic_concentration", concentration.len(), n_topics)?;
        check_all("topic_concentration", concentration, "at least 1e-60", |s| s >= 1e-60)?;
        if self.vocabularies.ranges().count() > 1 {
            return Err(Error::BurstyVocabularies);
        }
        let mut sums = vec![0.0; n_topics];
        for word in 0..self.urn.n_words() as u32 {
            sums.iter_mut().zip(self.urn.weights(word)).for_each(|(sum, q)| *sum += q);
        }
        let scale = self.theta_scale(1.0);
        let scale = |k: usize| scale.get(k).copied().unwrap_or(1.0);
        let is_off = |(k, sum): (usize, &f64)| (sum / scale(k) - 1.0).abs() > SUM_TOLERANCE;
        if let Some((topic, sum)) = sums.iter().enumerate().find(|&x| is_off(x)) {
            return Err(Error::NotNormalised { topic, sum: sum / scale(topic) });
        }
        let rates: Vec<f64> = concentration.iter().map(|s| s.recip()).collect();
        let repeats = rates.iter().enumerate().map(|(k, r)| r * scale(k)).collect();
        let is_bursty = rates.iter().any(|&r| r > 0.0);
        self.bursts = is_bursty.then_some(TopicBursts { rates, repeats });
        Ok(self)
    }

    /// The second layer, where topics are bursty.
    pub(super) fn bursts(&self) -> Option<&TopicBursts> {
        self.bursts.as_ref()
    }

    /// The model's urn.
    pub fn urn(&self) -> &Urn {
        &self.urn
    }

    /// The part of the urn that a document touches, at its exposure and under its own prior; `None`
    /// where one of its words has weight zero under every topic.
    pub fn local_urn(&self, document: Document<'_>) -> Option<LocalUrn> {
        let factors = self.topic_factors(document.exposure());
        let cells = document.cells();
        let rows: Vec<_> = cells.map(|(word, count)| (self.urn.weights(word), count)).collect();
        let a = self.pseudo_counts(document);
        LocalUrn::from_scaled_rows(a, &rows, factors.as_deref(), self.bursts())
    }

    /// Pseudo-counts of topics in a document: its own, or those of the model.
    pub fn pseudo_counts<'a>(&'a self, document: Document<'a>) -> &'a [f64] {
        document.prior().unwrap_or_else(|| self.urn.pseudo_counts())
    }

    /// Refuses another number of parameters than topics, negative ones, and rows without a positive
    /// one.
    pub(super) fn check_priors(&self, documents: &CountMatrix) -> Result<()> {
        let Some(priors) = documents.priors() else { return Ok(()) };
        let (n_topics, n_documents) = (self.urn.n_topics(), documents.n_documents());
        check_length("priors of documents", priors.len(), n_topics * n_documents)?;
        let domain = "zero, or between 1e-100 and 1e100";
        check_all("priors of documents", priors, domain, |x| {
            x == 0.0 || (1e-100..=1e100).contains(&x)
        })?;
        match priors.chunks_exact(n_topics).position(|row| row.iter().all(|&x| x == 0.0)) {
            Some(document) => Err(Error::NoTopics { document }),
            None => Ok(()),
        }
    }

    /// Factors by which an exposure multiplies the weights of each topic; `None` where it does not.
    pub fn topic_factors(&self, exposure: f64) -> Option<Vec<f64>> {
        match &self.law {
            DocumentPrior::GammaPoisson { prior, .. } if !is_one(exposure) => {
                Some(prior.factors(exposure))
            }
            _ => None,
        }
    }

    /// Q_k, the weight in each topic of a token of any word at exposure 1; `None` for LDA, in which
    /// it is 1.
    pub fn token_weights(&self) -> Option<&[f64]> {
        match &self.law {
            DocumentPrior::Lda { .. } => None,
            DocumentPrior::GammaPoisson { lengths, .. } => Some(&lengths.totals),
        }
    }

    /// The distribution of the length of a document of that exposure and prior; `None` for LDA,
    /// which takes the length as given.
    pub fn lengths(&self, document: Document<'_>) -> Option<Cow<'_, LengthLaw>> {
        let exposure = document.exposure();
        match &self.law {
            DocumentPrior::Lda { .. } => None,
            DocumentPrior::GammaPoisson { lengths, .. }
                if is_one(exposure) && document.prior().is_none() =>
            {
                Some(Cow::Borrowed(lengths))
            }
            DocumentPrior::GammaPoisson { prior, .. } => {
                Some(Cow::Owned(prior.lengths(self.pseudo_counts(document), exposure)))
            }
        }
    }

    /// Whether the length of a document has a distribution: LDA takes it as given.
    pub fn has_lengths(&self) -> bool {
        matches!(self.law, DocumentPrior::GammaPoisson { .. })
    }

    /// ln of the factor that turns the urn sum of `document` into the probability of its tokens in order.
    ///
    /// `ln_odds` is ln P(N)/P(0) of the document's length where the probability is given the length and
    /// the model does not take it as given by itself.
    pub fn ln_prefactor(&self, document: Document<'_>, ln_odds: Option<f64>) -> f64 {
        let n_tokens = document.n_tokens();
        match &self.law {
            DocumentPrior::Lda { alpha_sum } => {
                let alpha_sum = document.prior().map_or(*alpha_sum, |alpha| alpha.iter().sum());
                -ln_rising(alpha_sum, n_tokens)
            }
            DocumentPrior::GammaPoisson { prior, lengths, .. } => {
                // P(0) is part of P(N) too, and cancels where the length is given.
                let ln_length = match (ln_odds, document.exposure()) {
                    (Some(ln_odds), _) => -ln_odds,
                    (None, exposure) if is_one(exposure) && document.prior().is_none() => {
                        lengths.ln_no_tokens
                    }
                    (None, exposure) => prior.ln_no_tokens(self.pseudo_counts(document), exposure),
                };
                ln_length - ln_factorial(n_tokens)
            }
        }
    }

    /// Turns balls a + n of a posterior sample into the posterior mean of the topic weights θ:
    /// probabilities for LDA, Poisson rates at exposure 1 for gamma-Poisson.
    pub fn topic_weights(&self, balls: &mut [f64], exposure: f64) {
        match &self.law {
            DocumentPrior::Lda { .. } => {
                let total: f64 = balls.iter().sum();
                balls.iter_mut().for_each(|x| *x /= total);
            }
            DocumentPrior::GammaPoisson { .. } => {
                for (x, scale) in balls.iter_mut().zip(self.theta_scale(exposure).iter()) {
                    *x *= scale;
                }
            }
        }
    }

    /// Turns the posterior variances of the balls x = a + n, whose posterior means are `means`,
    /// into posterior standard deviations of the topic weights θ.
    ///
    /// Var θ = E Var[θ | x] + Var E[θ | x]; given x, θ is Dirichlet(x) for LDA, and
    /// Gamma(x_k, scale s_k) for gamma-Poisson.
    pub fn weight_deviations(&self, means: &[f64], variances: &mut [f64], exposure: f64) {
        match &self.law {
            DocumentPrior::Lda { .. } => {
                let total: f64 = means.iter().sum();
                for (variance, mean) in variances.iter_mut().zip(means) {
                    let within = (mean * (total - mean) - *variance) / (total + 1.0);
                    *variance = (within + *variance).max(0.0).sqrt() / total;
                }
            }
            DocumentPrior::GammaPoisson { .. } => {
                let scales = self.theta_scale(exposure);
                for ((variance, mean), scale) in variances.iter_mut().zip(means).zip(scales.iter())
                {
                    *variance = (mean + *variance).sqrt() * scale;
                }
            }
        }
    }

    /// The posterior scales of θ; none for LDA.
    fn theta_scale(&self, exposure: f64) -> Cow<'_, [f64]> {
        match &self.law {
            DocumentPrior::Lda { .. } => Cow::Borrowed(&[]),
            DocumentPrior::GammaPoisson { theta_scale, .. } if is_one(exposure) => {
                Cow::Borrowed(theta_scale)
            }
            DocumentPrior::GammaPoisson { prior, .. } => Cow::Owned(prior.theta_scale(exposure)),
        }
    }
}

/// Whether an exposure is that of documents of which none is given.
fn is_one(exposure: f64) -> bool {
    exposure.to_bits() == 1.0f64.to_bits()
}

/// Distribution of a gamma-Poisson document's length: the sum of NB(r_k, Q_k).
#[derive(Debug, Clone, PartialEq)]
pub struct LengthLaw {
    shapes: Vec<f64>,
    /// Q_k.
    totals: Vec<f64>,
    /// ln P(N = 0) = Σ r_k ln(1 - Q_k).
    ln_no_tokens: f64,
}

impl LengthLaw {
    /// ln P(N = n)/P(N = 0) for each of `lengths`, which must increase, at a cost of the largest
    /// times the number of topics.
    ///
    /// From `P'(z)/P(z) = Σ_k r_k Q_k / (1 - Q_k z)`: with `d_k(n) = Σ_m Q_k^m P(n-m)`, kept by
    /// `d_k(n) = P(n) + Q_k d_k(n-1)`, `n P(n) = Σ_k r_k Q_k d_k(n-1)`. All terms are positive.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub fn ln_odds(&self, lengths: &[u64], observer: &dyn Observer) -> Result<Vec<f64>> {
        let mut sums = vec![1.0; self.shapes.len()];
        let (mut n, mut p, mut ln_scale) = (0, 1.0f64, 0.0);
        let mut odds = Vec::with_capacity(lengths.len());
        for &length in lengths {
            while n < length {
                n += 1;
                if n % 4096 == 0 {
                    observer.check_stop()?;
                }
                let terms = self.shapes.iter().zip(&self.totals).zip(&sums);
                p = terms.map(|((r, q), d)| r * q * d).sum::<f64>() / n as f64;
                let mut largest = 0.0f64;
                for (d, q) in sums.iter_mut().zip(&self.totals) {
                    *d = p + q * *d;
                    largest = largest.max(*d);
                }
                if !(1e-100..1e100).contains(&largest) && largest > 0.0 {
                    sums.iter_mut().for_each(|d| *d /= largest);
                    p /= largest;
                    ln_scale += largest.ln();
                }
            }
            odds.push(p.ln() + ln_scale);
        }
        Ok(odds)
    }
}

/// Checks the prior and the topic-word matrix of a model; returns the number of words.
fn check_topic_word(prior: &[f64], name: &'static str, phi: &[f64]) -> Result<usize> {
    let n_words = check_shape(prior.len(), phi, "topic_word")?;
    check_positive(name, prior)?;
    check_all("topic_word", phi, "finite and not negative", |x| x >= 0.0 && x.is_finite())?;
    Ok(n_words)
}

/// Checks that a matrix has a row for each topic; returns the number of words.
pub(in crate::document::laws) fn check_shape(
    n_topics: usize,
    matrix: &[f64],
    name: &'static str,
) -> Result<usize> {
    if n_topics == 0 {
        return Err(Error::Empty { name: "number of topics" });
    }
    if matrix.is_empty() || !matrix.len().is_multiple_of(n_topics) {
        let expected = (matrix.len() / n_topics).max(1) * n_topics;
        return Err(Error::Length { name, found: matrix.len(), expected });
    }
    Ok(matrix.len() / n_topics)
}

/// Transposes topics x words to words x topics, multiplying topic k by `factors[k]`.
pub(in crate::document::laws) fn word_major(phi: &[f64], factors: &[f64]) -> Vec<f64> {
    let n_topics = factors.len();
    let n_words = phi.len() / n_topics;
    let mut q = vec![0.0; phi.len()];
    for (k, (row, factor)) in phi.chunks_exact(n_words).zip(factors).enumerate() {
        for (to, from) in q[k..].iter_mut().step_by(n_topics).zip(row) {
            *to = from * factor;
        }
    }
    q
}

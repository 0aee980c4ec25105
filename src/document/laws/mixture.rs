//! Documents whose words come from one of finitely many components: exact.
//!
//! Mixtures of multinomials (one topic a document) and of Dirichlet-multinomials (GSDMM: a component's
//! word probabilities integrated out, its parameters the prior plus the counts of its training tokens).

use super::Vocabularies;
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::document::{Law, Method, Score, Settings, WeightMoments};
use crate::error::{Error, Result, check_all, check_length};
use crate::math::{LogSum, ln_rising};
use crate::rng::Rng;

/// A document's distribution of words given its component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// Each row holds the probabilities of words.
    Multinomial,
    /// Each row holds the parameters of a Dirichlet distribution of them.
    DirichletMultinomial,
}

/// p(tokens) = Σ_j π_j p(tokens | j).
#[derive(Debug, Clone, PartialEq)]
pub struct FiniteMixture {
    component: Component,
    /// π, which need not be normalised.
    weights: Vec<f64>,
    /// Components x words.
    rows: Vec<f64>,
    /// Components x vocabularies.
    row_sums: Vec<f64>,
    vocabularies: Vocabularies,
}

impl FiniteMixture {
    /// A mixture; `rows` are components x words, row-major, those of each of the vocabularies of these
    /// `sizes` behind one another; without sizes there is one.
    ///
    /// # Errors
    /// Sizes that disagree, weights or entries that are negative or not finite, weights without a
    /// positive one, and rows of probabilities that do not sum to 1.
    pub fn new(
        component: Component,
        weights: &[f64],
        rows: &[f64],
        sizes: &[usize],
    ) -> Result<Self> {
        if weights.is_empty() {
            return Err(Error::Empty { name: "n_components" });
        }
        if rows.is_empty() || !rows.len().is_multiple_of(weights.len()) {
            let (found, n) = (rows.len(), weights.len());
            let expected = (found / n).max(1) * n;
            return Err(Error::Length { name: "words of components", found, expected });
        }
        let is_valid = |x: f64| x >= 0.0 && x.is_finite();
        check_all("weights of components", weights, "finite and not negative", is_valid)?;
        check_all("words of components", rows, "finite and not negative", is_valid)?;
        check_sum(weights, 0)?;
        let n_words = rows.len() / weights.len();
        let vocabularies = Vocabularies::new(sizes, n_words)?;
        if component == Component::Multinomial {
            vocabularies.check_rows(rows)?;
        }
        let blocks = rows.chunks_exact(n_words).flat_map(|row| vocabularies.cut(row));
        let row_sums: Vec<f64> = blocks.map(|row| row.iter().sum()).collect();
        if let Some(place) = row_sums.iter().position(|&sum| sum == 0.0) {
            let topic = place * weights.len() / row_sums.len();
            return Err(Error::NotNormalised { topic, sum: 0.0 });
        }
        let (weights, rows) = (weights.to_vec(), rows.to_vec());
        Ok(FiniteMixture { component, weights, rows, row_sums, vocabularies })
    }

    fn weights_of<'a>(&'a self, document: Document<'a>) -> &'a [f64] {
        document.prior().unwrap_or(&self.weights)
    }

    /// ln π_j p(tokens | j) of every component, π not normalised.
    fn ln_terms(&self, document: Document<'_>) -> Vec<f64> {
        let rows = self.rows.chunks_exact(self.vocabularies.n_words());
        let sums = self.row_sums.chunks_exact(self.row_sums.len() / self.n_topics());
        let term = |((row, sums), weight): ((&[f64], &[f64]), &f64)| {
            let ln_words: f64 = match self.component {
                Component::Multinomial => {
                    document.cells().map(|(w, n)| f64::from(n) * row[w as usize].ln()).sum()
                }
                Component::DirichletMultinomial => {
                    let ln_word = |(word, n): (u32, u32)| match row[word as usize] {
                        0.0 => f64::NEG_INFINITY,
                        parameter => ln_rising(parameter, u64::from(n)),
                    };
                    let totals = sums.iter().zip(self.vocabularies.n_tokens(document));
                    document.cells().map(ln_word).sum::<f64>()
                        - totals.map(|(&sum, n)| ln_rising(sum, n)).sum::<f64>()
                }
            };
            weight.ln() + ln_words
        };
        rows.zip(sums).zip(self.weights_of(document)).map(term).collect()
    }
}

impl Law for FiniteMixture {
    fn n_topics(&self) -> usize {
        self.weights.len()
    }

    fn vocabularies(&self) -> &Vocabularies {
        &self.vocabularies
    }

    /// The own prior of a document are its weights of the components.
    fn check_documents(&self, documents: &CountMatrix) -> Result<()> {
        let n_words = self.vocabularies.n_words();
        check_length("vocabulary of the documents", documents.n_words(), n_words)?;
        if documents.exposures().is_some() {
            return Err(Error::GivenLength);
        }
        let Some(priors) = documents.priors() else { return Ok(()) };
        let expected = self.n_topics() * documents.n_documents();
        check_length("priors of documents", priors.len(), expected)?;
        check_all("priors of documents", priors, "not negative", |x| x >= 0.0)?;
        let mut rows = priors.chunks_exact(self.n_topics()).enumerate();
        rows.try_for_each(|(document, weights)| check_sum(weights, document))
    }

    fn check_effort(&self, _: Document<'_>, _: usize, settings: &Settings) -> Result<()> {
        match settings.method {
            Method::Auto | Method::Exact => Ok(()),
            _ => Err(Error::NoUrn),
        }
    }

    fn score(
        &self,
        document: Document<'_>,
        _: &Settings,
        _: &mut Rng,
        _: &dyn Observer,
    ) -> Result<Score> {
        let sum: LogSum = self.ln_terms(document).into_iter().collect();
        let total: f64 = self.weights_of(document).iter().sum();
        let is_possible = sum.n_eff() > 0.0;
        let ln_value = if is_possible { sum.ln_sum() - total.ln() } else { f64::NEG_INFINITY };
        Ok(Score::exact(ln_value))
    }

    /// Moments of the components' indicators: probabilities p, and sqrt(p (1 - p)). The prior's own
    /// where no component can produce the document.
    fn moments(
        &self,
        document: Document<'_>,
        _: usize,
        _: &mut Rng,
        _: &dyn Observer,
        moments: WeightMoments<'_>,
    ) -> Result<()> {
        let terms = self.ln_terms(document);
        let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers: Vec<f64> = if largest == f64::NEG_INFINITY {
            self.weights_of(document).to_vec()
        } else {
            terms.iter().map(|x| (x - largest).exp()).collect()
        };
        let total: f64 = powers.iter().sum();
        // The rest is summed, not subtracted, where it is small beside the component.
        let rest = |own: usize| match powers[own] {
            x if 2.0 * x < total => total - x,
            _ => powers[..own].iter().chain(&powers[own + 1..]).sum(),
        };
        for (own, (mean, deviation)) in moments.means.iter_mut().zip(moments.deviations).enumerate()
        {
            *mean = powers[own] / total;
            *deviation = (powers[own] * rest(own)).sqrt() / total;
        }
        Ok(())
    }
}

fn check_sum(weights: &[f64], document: usize) -> Result<()> {
    let is_zero = weights.iter().all(|&x| x == 0.0);
    if is_zero { Err(Error::NoTopics { document }) } else { Ok(()) }
}

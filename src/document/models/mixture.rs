//! Documents whose words come from one of finitely many components: exact.
//!
//! Mixtures of multinomials (one topic a document) and of Dirichlet-multinomials (GSDMM: a component's
//! word probabilities integrated out, its parameters the prior plus the counts of its training tokens).

use super::{Event, Vocabularies};
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::document::{Method, Score, Settings};
use crate::error::{Error, Result, check_all, check_length};
use crate::estimate::Estimate;
use crate::math::{LogSum, ln_rising};

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

    /// Which words are of which vocabulary.
    pub(in crate::document) fn vocabularies(&self) -> &Vocabularies {
        &self.vocabularies
    }

    /// Number of components.
    pub fn n_components(&self) -> usize {
        self.weights.len()
    }

    /// Refuses what [`score`](Self::score) would refuse.
    ///
    /// # Errors
    /// Words outside the vocabulary, exposures, own weights of documents that are none, and methods
    /// other than `auto` and `exact`.
    pub fn check(&self, documents: &CountMatrix, settings: &Settings) -> Result<()> {
        self.check_documents(documents)?;
        settings.check()?;
        match settings.method {
            Method::Auto | Method::Exact => Ok(()),
            _ => Err(Error::NoUrn),
        }
    }

    fn check_documents(&self, documents: &CountMatrix) -> Result<()> {
        let n_words = self.vocabularies.n_words();
        check_length("vocabulary of the documents", documents.n_words(), n_words)?;
        if documents.exposures().is_some() {
            return Err(Error::GivenLength);
        }
        let Some(priors) = documents.priors() else { return Ok(()) };
        let expected = self.n_components() * documents.n_documents();
        check_length("priors of documents", priors.len(), expected)?;
        check_all("priors of documents", priors, "not negative", |x| x >= 0.0)?;
        let mut rows = priors.chunks_exact(self.n_components()).enumerate();
        rows.try_for_each(|(document, weights)| check_sum(weights, document))
    }

    /// ln p of every document. The own prior of a document are its weights of the components.
    ///
    /// # Errors
    /// The errors of [`check`](Self::check).
    pub fn score(
        &self,
        documents: &CountMatrix,
        settings: &Settings,
        observer: &impl Observer,
    ) -> Result<Vec<Option<Score>>> {
        self.check(documents, settings)?;
        let score = |document: Document<'_>| {
            let sum: LogSum = self.ln_terms(document).into_iter().collect();
            let is_bag = settings.query.event == Event::Counts;
            let ln_orders = if is_bag { self.vocabularies.ln_orders(document) } else { 0.0 };
            let total: f64 = self.weights_of(document).iter().sum();
            let ln_value = if sum.n_eff() > 0.0 {
                sum.ln_sum() - total.ln() + ln_orders
            } else {
                f64::NEG_INFINITY
            };
            observer.advance(1);
            Score::of(Estimate::exact(ln_value), Method::Exact.estimator())
        };
        Ok(documents.documents().map(|d| (!observer.stopped()).then(|| score(d))).collect())
    }

    /// Posterior mean and standard deviation of the components' indicators: probabilities p, and
    /// sqrt(p (1 - p)); documents x 2 x components, row-major. The prior's own where no component can
    /// produce a document.
    ///
    /// # Errors
    /// The errors of [`check`](Self::check).
    pub fn transform(&self, documents: &CountMatrix) -> Result<Vec<f64>> {
        self.check_documents(documents)?;
        let mut found = Vec::with_capacity(documents.n_documents() * 2 * self.n_components());
        for document in documents.documents() {
            let terms = self.ln_terms(document);
            let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = if largest == f64::NEG_INFINITY {
                self.weights_of(document).to_vec()
            } else {
                terms.iter().map(|x| (x - largest).exp()).collect()
            };
            let total: f64 = powers.iter().sum();
            found.extend(powers.iter().map(|x| x / total));
            // The rest is summed, not subtracted, where it is small beside the component.
            let rest = |own: usize| match powers[own] {
                x if 2.0 * x < total => total - x,
                _ => powers[..own].iter().chain(&powers[own + 1..]).sum(),
            };
            found.extend((0..powers.len()).map(|own| (powers[own] * rest(own)).sqrt() / total));
        }
        Ok(found)
    }

    fn weights_of<'a>(&'a self, document: Document<'a>) -> &'a [f64] {
        document.prior().unwrap_or(&self.weights)
    }

    /// ln π_j p(tokens | j) of every component, π not normalised.
    fn ln_terms(&self, document: Document<'_>) -> Vec<f64> {
        let rows = self.rows.chunks_exact(self.vocabularies.n_words());
        let sums = self.row_sums.chunks_exact(self.row_sums.len() / self.n_components());
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

fn check_sum(weights: &[f64], document: usize) -> Result<()> {
    let is_zero = weights.iter().all(|&x| x == 0.0);
    if is_zero { Err(Error::NoTopics { document }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Query;

    const ROWS: [f64; 6] = [0.5, 0.25, 0.25, 0.0, 0.5, 0.5];

    fn settings() -> Settings {
        Settings::new(Query { event: Event::Sequence, given_length: true })
    }

    fn values(model: &FiniteMixture, documents: &CountMatrix) -> Vec<f64> {
        let scores = model.score(documents, &settings(), &()).unwrap();
        scores.into_iter().map(|score| score.unwrap().estimate.ln_value).collect()
    }

    #[test]
    fn values_are_sums_over_components() {
        let documents =
            CountMatrix::from_dense(&[vec![1, 1, 0], vec![0, 2, 1], vec![0; 3]]).unwrap();
        let multinomials =
            FiniteMixture::new(Component::Multinomial, &[3.0, 1.0], &ROWS, &[]).unwrap();
        let found = values(&multinomials, &documents);
        let expected = [0.75 * 0.125, 0.75 / 64.0 + 0.25 / 8.0, 1.0];
        assert!(found.iter().zip(expected).all(|(x, p): (_, f64)| (x - p.ln()).abs() < 1e-14));
        let own = documents.with_priors(vec![0.0, 1.0, 1.0, 0.0, 1.0, 1.0]).unwrap();
        let found = values(&multinomials, &own);
        assert!(found[0] == f64::NEG_INFINITY && (found[1] + 64_f64.ln()).abs() < 1e-14);
        let posterior = multinomials.transform(&own).unwrap();
        assert_eq!(posterior[..8], [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn what_is_no_mixture_is_refused() {
        let new = |weights: &[f64], rows: &[f64]| {
            FiniteMixture::new(Component::Multinomial, weights, rows, &[])
        };
        assert!(new(&[], &ROWS).is_err() && new(&[0.0, 0.0], &ROWS).is_err());
        assert!(new(&[1.0, -1.0], &ROWS).is_err() && new(&[1.0], &ROWS).is_err());
    }
}

//! What a distribution of documents is, to whoever scores, completes or transforms a corpus.

use super::laws::Vocabularies;
use super::result::Score;
use super::settings::{Event, Query, Settings};
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Error, Result, check_length};
use crate::estimate::Estimate;
use crate::rng::{Key, Rng};

/// A distribution of documents: a prior of topic weights and a decoder.
///
/// A law answers for one document; [`score`](super::score) and its like run over a corpus, for every
/// law alike.
pub trait Law: Send + Sync {
    /// Number of topics or components.
    fn n_topics(&self) -> usize;

    /// Words of each vocabulary.
    fn vocabularies(&self) -> &Vocabularies;

    /// Refuses documents that are none of the law's: another vocabulary, exposures, priors.
    ///
    /// # Errors
    /// The first of them that is refused, and why.
    fn check_documents(&self, documents: &CountMatrix) -> Result<()>;

    /// Refuses, before any work, a method that the law does not have, and what would make the document
    /// in this row too expensive.
    ///
    /// # Errors
    /// Why it is refused, with the estimate of its cost.
    fn check_effort(&self, document: Document<'_>, row: usize, settings: &Settings) -> Result<()>;

    /// ln of the closed-form factors beside the scores of the documents in these rows.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    fn ln_prefactors(
        &self,
        documents: &CountMatrix,
        rows: &[usize],
        query: Query,
        observer: &dyn Observer,
    ) -> Result<Vec<f64>> {
        let _ = observer;
        Ok(rows.iter().map(|&row| self.ln_orders(documents.document(row), query)).collect())
    }

    /// ln of the number of orders of a bag of words, 0 where the query is about ordered tokens.
    fn ln_orders(&self, document: Document<'_>, query: Query) -> f64 {
        if query.event == Event::Counts { self.vocabularies().ln_orders(document) } else { 0.0 }
    }

    /// ln p of a document, but for the closed-form factor.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop; too little memory.
    fn score(
        &self,
        document: Document<'_>,
        settings: &Settings,
        rng: &mut Rng,
        observer: &dyn Observer,
    ) -> Result<Score>;

    /// Brackets ln p of a document, but for the closed-form factor, from the draw behind it; `None`
    /// where the draw cannot have led to the document.
    ///
    /// # Errors
    /// [`Error::NoReverse`] where the law has no estimates of 1/p.
    fn bracket(
        &self,
        document: Document<'_>,
        draw: Draws<'_>,
        settings: &Settings,
        rng: &mut Rng,
        observer: &dyn Observer,
    ) -> Result<Option<Bounds>> {
        let _ = (document, draw, settings, rng, observer);
        Err(Error::NoReverse)
    }

    /// Moments of a document's topic weights, by so many sweeps of Gibbs sampling where it takes some.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop; too little memory.
    fn moments(
        &self,
        document: Document<'_>,
        n_sweeps: usize,
        rng: &mut Rng,
        observer: &dyn Observer,
        moments: WeightMoments<'_>,
    ) -> Result<()>;

    /// Refuses what [`completion`](Law::completion) would refuse of the document in this row.
    ///
    /// # Errors
    /// Why it is refused.
    fn check_completion(&self, pair: Pair<'_>, row: usize, settings: &Settings) -> Result<()> {
        self.check_effort(pair.observed, row, settings)?;
        self.check_effort(pair.held_out, row, settings)
    }

    /// ln p(held-out tokens in order | observed tokens, numbers of both); NaN where the observed tokens
    /// are impossible. A law without a way of its own takes the difference of two independent
    /// estimates.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop; too little memory.
    fn completion(
        &self,
        pair: Pair<'_>,
        settings: &Settings,
        key: Key,
        observer: &dyn Observer,
    ) -> Result<Score> {
        let both = pair.joined()?;
        let all = both.document(0);
        let mut rng = key.unit(0).document(all).rng();
        let above = self.score(all, settings, &mut rng, observer)?;
        let mut rng = key.unit(1).document(pair.observed).rng();
        let below = self.score(pair.observed, settings, &mut rng, observer)?;
        Ok(Score { estimate: above.estimate.over(below.estimate), ..above })
    }

    /// Factor of the covariance of the latent coordinates, coordinates x rank, row-major: empty where
    /// there are none.
    fn covariance_factor(&self) -> &[f64] {
        &[]
    }
}

/// Moments of the topic weights of a document, to be filled in; all are zero at first.
#[derive(Debug)]
pub struct WeightMoments<'a> {
    /// Posterior means.
    pub means: &'a mut [f64],
    /// Posterior standard deviations.
    pub deviations: &'a mut [f64],
    /// Standard errors of the means, 0 where they are exact.
    pub errors: &'a mut [f64],
}

/// The observed and the held-out tokens of a document.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// The tokens that are given.
    pub observed: Document<'a>,
    /// The tokens whose probability is computed.
    pub held_out: Document<'a>,
}

impl Pair<'_> {
    /// Refuses parts that differ in exposure or prior.
    pub(super) fn check(self, row: usize) -> Result<()> {
        let exposures = [self.observed, self.held_out].map(Document::exposure);
        if exposures[0].to_bits() != exposures[1].to_bits() {
            let (value, domain) = (exposures[1], "that of the observed tokens");
            return Err(Error::Parameter { name: "exposure", index: row, value, domain });
        }
        if self.observed.prior() != self.held_out.prior() {
            return Err(Error::PriorsDiffer { document: row });
        }
        Ok(())
    }

    /// A document of the tokens of both, under the prior of the first.
    pub(super) fn joined(self) -> Result<CountMatrix> {
        let mut cells: Vec<_> = self.observed.cells().chain(self.held_out.cells()).collect();
        cells.sort_unstable();
        let same = || cells.chunk_by(|x, y| x.0 == y.0);
        let words: Vec<i64> = same().map(|cells| i64::from(cells[0].0)).collect();
        let sum = |cells: &[(u32, u32)]| cells.iter().map(|&(_, y)| i64::from(y)).sum();
        let counts: Vec<i64> = same().map(sum).collect();
        let n_words = words.last().map_or(1, |&word| word as usize + 1);
        let both = CountMatrix::new(n_words, &[0, words.len() as i64], &words, &counts)?;
        match self.observed.prior() {
            Some(prior) => both.with_priors(prior.to_vec()),
            None => Ok(both),
        }
    }
}

/// Latent values from which documents of a simulation were drawn.
#[derive(Debug, Clone, Copy)]
pub enum Draws<'a> {
    /// Topics of all tokens, in the order of the documents and of their distinct words.
    Topics(&'a [u16]),
    /// Standard normal coordinates of every document.
    Latent(&'a [f64]),
}

impl<'a> Draws<'a> {
    /// The draws of each of the documents.
    pub(super) fn by_document(self, documents: &CountMatrix) -> Result<Vec<Draws<'a>>> {
        match self {
            Draws::Topics(mut rest) => {
                check_length("topics", rest.len(), documents.n_tokens() as usize)?;
                let own = |document: Document<'_>| {
                    let (own, after) = rest.split_at(document.n_tokens() as usize);
                    rest = after;
                    Draws::Topics(own)
                };
                Ok(documents.documents().map(own).collect())
            }
            Draws::Latent(all) => {
                let n_documents = documents.n_documents();
                let width = all.len() / n_documents.max(1);
                check_length("latent vectors", all.len(), width * n_documents)?;
                Ok((0..n_documents)
                    .map(|row| Draws::Latent(&all[row * width..][..width]))
                    .collect())
            }
        }
    }
}

/// Stochastic bounds of ln p of one document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// ln of an unbiased estimate of p: low on average.
    pub lower: Estimate,
    /// Minus ln of an unbiased estimate of 1/p: high on average.
    pub upper: Estimate,
    /// Particles or temperatures of each replicate; forward runs by draws of topic weights take about
    /// as long.
    pub size: usize,
}

impl Bounds {
    /// Both sides of a value that is known.
    pub(super) fn exact(ln_value: f64) -> Self {
        let exact = Estimate::exact(ln_value);
        Bounds { lower: exact, upper: exact, size: 0 }
    }

    pub(super) fn scaled(self, ln_factor: f64) -> Self {
        let Bounds { lower, upper, size } = self;
        Bounds { lower: lower.scaled(ln_factor), upper: upper.scaled(ln_factor), size }
    }
}

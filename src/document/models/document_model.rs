//! A document model of any prior, and what can be asked of all of them.

use super::mixture::FiniteMixture;
use crate::control::{Observer, Unseen};
use crate::counts::CountMatrix;
use crate::document::gaussian::{self, LogisticNormal};
use crate::document::{
    self, Bounds, Event, Moments, Query, Score, Settings, TopicModel, Vocabularies, scoring,
};
use crate::error::{Error, Result, check_length};
use crate::rng::{Key, Purpose};

/// A prior of topic weights and a decoder.
#[derive(Debug, Clone, PartialEq)]
pub enum DocumentModel {
    /// Dirichlet or gamma weights of a mixture of topics: an urn.
    Urn(TopicModel),
    /// Logistic-normal weights.
    LogisticNormal(LogisticNormal),
    /// One component a document.
    Mixture(FiniteMixture),
}

/// Latent values from which the documents of a simulation were drawn.
#[derive(Debug, Clone, Copy)]
pub enum Draws<'a> {
    /// Topics of all tokens.
    Topics(&'a [u16]),
    /// Standard normal coordinates of every document.
    Latent(&'a [f64]),
}

impl DocumentModel {
    /// ln p of every document; `None` for those not reached when the observer stopped the work.
    ///
    /// # Errors
    /// The errors of the model: see [`score`](crate::document::score), [`gaussian::score`],
    /// [`FiniteMixture::score`].
    pub fn score(
        &self,
        documents: &CountMatrix,
        settings: &Settings,
        seed: u64,
        observer: &impl Observer,
    ) -> Result<Vec<Option<Score>>> {
        self.score_by(documents, settings, Key::new(seed, Purpose::Score), observer)
    }

    fn score_by(
        &self,
        documents: &CountMatrix,
        settings: &Settings,
        key: Key,
        observer: &impl Observer,
    ) -> Result<Vec<Option<Score>>> {
        match self {
            DocumentModel::Urn(model) => scoring::by_key(model, documents, settings, key, observer),
            DocumentModel::LogisticNormal(model) => {
                gaussian::score(model, documents, settings, key, observer)
            }
            DocumentModel::Mixture(model) => model.score(documents, settings, observer),
        }
    }

    /// Scores every document for the sake of their sum: exactly where that is cheap, else through so
    /// many temperatures, with the [spread](Score::spread) of its runs.
    ///
    /// Streams of different numbers of temperatures are independent.
    ///
    /// # Errors
    /// The errors of [`score`](Self::score).
    pub fn score_for_total(
        &self,
        documents: &CountMatrix,
        settings: &Settings,
        n_temperatures: usize,
        seed: u64,
        observer: &impl Observer,
    ) -> Result<Vec<Option<Score>>> {
        let key = Key::new(seed, Purpose::Score).unit(n_temperatures as u64);
        match self {
            DocumentModel::Urn(model) => {
                scoring::score_for_total(model, documents, settings, n_temperatures, key, observer)
            }
            DocumentModel::LogisticNormal(model) => {
                let settings = Settings { n_samples: Some(n_temperatures), ..*settings };
                gaussian::score(model, documents, &settings, key, observer)
            }
            DocumentModel::Mixture(model) => model.score(documents, settings, observer),
        }
    }

    /// ln p(held-out tokens | observed tokens, numbers of both), document by document; of models that
    /// are no urn, the difference of two independent estimates. NaN where the observed tokens are
    /// impossible.
    ///
    /// # Errors
    /// The errors of [`check_completion`](Self::check_completion).
    pub fn completion(
        &self,
        observed: &CountMatrix,
        held_out: &CountMatrix,
        settings: &Settings,
        seed: u64,
        observer: &impl Observer,
    ) -> Result<Vec<Option<Score>>> {
        if let DocumentModel::Urn(model) = self {
            return document::completion(model, observed, held_out, settings, seed, observer);
        }
        self.check_completion(observed, held_out, settings)?;
        let query = Query { event: Event::Sequence, ..settings.query };
        let ordered = Settings { query, ..*settings };
        let all = joined(observed, held_out)?;
        let key = Key::new(seed, Purpose::Score);
        let above = self.score_by(&all, &ordered, key.unit(0), observer)?;
        let below = self.score_by(observed, &ordered, key.unit(1), &Unseen(observer))?;
        let ratio = |(row, (above, below)): (usize, (Option<Score>, Option<Score>))| {
            let (above, below) = (above?, below?);
            let ln_orders = match settings.query.event {
                Event::Counts => self.vocabularies().ln_orders(held_out.document(row)),
                Event::Sequence => 0.0,
            };
            let estimate = above.estimate.over(below.estimate).scaled(ln_orders);
            Some(Score { estimate, ..above })
        };
        Ok(above.into_iter().zip(below).enumerate().map(ratio).collect())
    }

    /// Brackets ln p of documents that were simulated from the model, from the draws of topics or
    /// weights behind them.
    ///
    /// # Errors
    /// The errors of [`bidirectional`](crate::document::bidirectional) and
    /// [`gaussian::bidirectional`]; draws of another kind of model; mixtures, whose documents are
    /// scored exactly.
    pub fn bidirectional(
        &self,
        documents: &CountMatrix,
        draws: Draws<'_>,
        settings: &Settings,
        seed: u64,
        observer: &impl Observer,
    ) -> Result<Vec<Option<Bounds>>> {
        match (self, draws) {
            (DocumentModel::Urn(model), Draws::Topics(topics)) => {
                document::bidirectional(model, documents, topics, settings, seed, observer)
            }
            (DocumentModel::LogisticNormal(model), Draws::Latent(latent)) => {
                gaussian::bidirectional(model, documents, latent, settings, seed, observer)
            }
            _ => Err(Error::NoReverse),
        }
    }

    /// Refuses what [`completion`](Self::completion) would refuse, without any work.
    ///
    /// # Errors
    /// The errors of [`score`](Self::score), and matrices that disagree in size or priors.
    pub fn check_completion(
        &self,
        observed: &CountMatrix,
        held_out: &CountMatrix,
        settings: &Settings,
    ) -> Result<()> {
        if let DocumentModel::Urn(model) = self {
            return document::check_completion(model, observed, held_out, settings);
        }
        let n_documents = observed.n_documents();
        check_length("held-out documents", held_out.n_documents(), n_documents)?;
        self.check(observed, settings)?;
        self.check(held_out, settings)?;
        let differ =
            |row: &usize| observed.document(*row).prior() != held_out.document(*row).prior();
        match (0..n_documents).find(differ) {
            Some(document) => Err(Error::PriorsDiffer { document }),
            None => Ok(()),
        }
    }

    /// Refuses what [`score`](Self::score) would refuse, without any work.
    ///
    /// # Errors
    /// The errors of [`score`](Self::score).
    pub fn check(&self, documents: &CountMatrix, settings: &Settings) -> Result<()> {
        match self {
            DocumentModel::Urn(model) => document::check_score(model, documents, settings),
            DocumentModel::LogisticNormal(model) => gaussian::check(model, documents, settings),
            DocumentModel::Mixture(model) => model.check(documents, settings),
        }
    }

    /// Moments of the topic weights of every document: documents x `moments.n_arrays()` x topics,
    /// row-major.
    ///
    /// # Errors
    /// The errors of the model; [`Error::Stopped`] when the observer asks to stop.
    pub fn transform(
        &self,
        documents: &CountMatrix,
        moments: Moments,
        n_sweeps: usize,
        seed: u64,
        observer: &impl Observer,
    ) -> Result<Vec<f64>> {
        let both = match self {
            DocumentModel::Urn(model) => {
                return document::transform(model, documents, moments, n_sweeps, seed, observer);
            }
            DocumentModel::LogisticNormal(model) => {
                gaussian::transform(model, documents, seed, observer)?
            }
            DocumentModel::Mixture(model) => model.transform(documents)?,
        };
        let width = self.n_topics() * moments.n_arrays();
        Ok(both.chunks_exact(2 * self.n_topics()).flat_map(|row| row[..width].to_vec()).collect())
    }

    /// Number of topics or components.
    pub fn n_topics(&self) -> usize {
        match self {
            DocumentModel::Urn(model) => model.urn().n_topics(),
            DocumentModel::LogisticNormal(model) => model.n_topics(),
            DocumentModel::Mixture(model) => model.n_components(),
        }
    }

    fn vocabularies(&self) -> &Vocabularies {
        match self {
            DocumentModel::Urn(model) => model.vocabularies(),
            DocumentModel::LogisticNormal(model) => model.vocabularies(),
            DocumentModel::Mixture(model) => model.vocabularies(),
        }
    }

    /// Factor of the covariance, coordinates x rank, row-major: empty where the prior is not
    /// logistic normal.
    pub fn covariance_factor(&self) -> &[f64] {
        match self {
            DocumentModel::LogisticNormal(model) => model.factor(),
            _ => &[],
        }
    }
}

/// Documents with the tokens of both, under the priors of the first.
fn joined(first: &CountMatrix, second: &CountMatrix) -> Result<CountMatrix> {
    let (mut offsets, mut words, mut counts) = (vec![0], Vec::new(), Vec::new());
    for (first, second) in first.documents().zip(second.documents()) {
        let mut cells: Vec<(u32, u32)> = first.cells().chain(second.cells()).collect();
        cells.sort_unstable();
        for same in cells.chunk_by(|x, y| x.0 == y.0) {
            words.push(i64::from(same[0].0));
            counts.push(same.iter().map(|&(_, count)| i64::from(count)).sum());
        }
        offsets.push(words.len() as i64);
    }
    let all = CountMatrix::new(first.n_words(), &offsets, &words, &counts)?;
    match first.priors() {
        Some(priors) => all.with_priors(priors.to_vec()),
        None => Ok(all),
    }
}

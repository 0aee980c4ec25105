//! A document model of any prior, and what can be asked of all of them.

use super::gaussian::{self, LogisticNormal};
use super::mixture::FiniteMixture;
use super::{Moments, Score, Settings, TopicModel, scoring};
use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::{Error, Result};
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

impl DocumentModel {
    /// ln p of every document; `None` for those not reached when the observer stopped the work.
    ///
    /// # Errors
    /// Those of the model: see [`score`](super::score), [`gaussian::score`], [`FiniteMixture::score`].
    pub fn score(
        &self,
        documents: &CountMatrix,
        settings: &Settings,
        seed: u64,
        observer: &impl Observer,
    ) -> Result<Vec<Option<Score>>> {
        match self {
            DocumentModel::Urn(model) => super::score(model, documents, settings, seed, observer),
            DocumentModel::LogisticNormal(model) => gaussian::score(
                model,
                documents,
                settings,
                Key::new(seed, Purpose::Score),
                observer,
            ),
            DocumentModel::Mixture(model) => model.score(documents, settings, observer),
        }
    }

    /// Scores every document for the sake of their sum: exactly where that is cheap, else through so
    /// many temperatures, with the [spread](Score::spread) of its runs.
    ///
    /// Streams of different numbers of temperatures are independent.
    ///
    /// # Errors
    /// Those of [`score`](Self::score).
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

    /// Refuses what [`score`](Self::score) would refuse, without any work.
    ///
    /// # Errors
    /// Those of [`score`](Self::score).
    pub fn check(&self, documents: &CountMatrix, settings: &Settings) -> Result<()> {
        match self {
            DocumentModel::Urn(model) => super::check_score(model, documents, settings),
            DocumentModel::LogisticNormal(model) => gaussian::check(model, documents, settings),
            DocumentModel::Mixture(model) => model.check(documents, settings),
        }
    }

    /// Moments of the topic weights of every document: documents x `moments.n_arrays()` x topics,
    /// row-major.
    ///
    /// # Errors
    /// Those of the model; [`Error::Stopped`] when the observer asks to stop.
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
                return super::transform(model, documents, moments, n_sweeps, seed, observer);
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

    /// The model as an urn, which samplers of topic assignments take.
    ///
    /// # Errors
    /// [`Error::NoUrn`] for other models.
    pub fn urn_model(&self) -> Result<&TopicModel> {
        match self {
            DocumentModel::Urn(model) => Ok(model),
            _ => Err(Error::NoUrn),
        }
    }
}

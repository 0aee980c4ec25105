//! The urn as a law of documents.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::completion::SplitDocument;
use super::sampling::totals;
use super::topic_model::TopicModel;
use super::urn_sum::ln_urn_sum;
use super::{bracket, limits, moments};
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::document::laws::Vocabularies;
use crate::document::{Bounds, Draws, Law, Method, Pair, Query, Score, Settings, WeightMoments};
use crate::error::{Error, Result, check_length};
use crate::rng::{Key, Rng};

impl Law for TopicModel {
    fn n_topics(&self) -> usize {
        self.urn().n_topics()
    }

    fn vocabularies(&self) -> &Vocabularies {
        &self.vocabularies
    }

    /// Refuses documents of another vocabulary, with exposures whose length the model takes as
    /// given, or with priors that are none of it.
    fn check_documents(&self, documents: &CountMatrix) -> Result<()> {
        check_length("vocabulary of the documents", documents.n_words(), self.urn().n_words())?;
        if documents.exposures().is_some() && !self.has_lengths() {
            return Err(Error::GivenLength);
        }
        self.check_priors(documents)
    }

    fn check_effort(&self, document: Document<'_>, row: usize, settings: &Settings) -> Result<()> {
        if self.bursts().is_some() && !settings.method.serves_bursts() {
            return Err(Error::BurstyMethod { method: settings.method.estimator().name });
        }
        limits::check_budget(self, document, row, settings)
    }

    fn ln_prefactors(
        &self,
        documents: &CountMatrix,
        rows: &[usize],
        query: Query,
        observer: &dyn Observer,
    ) -> Result<Vec<f64>> {
        let documents = rows.iter().map(|&row| documents.document(row));
        let ln_odds = if self.has_lengths() && query.given_length {
            ln_odds_of_lengths(self, documents.clone(), observer)?
        } else {
            BTreeMap::new()
        };
        let factor = |document: Document<'_>| {
            let ln_odds = ln_odds.get(&length(document)).copied();
            self.ln_prefactor(document, ln_odds) + self.ln_orders(document, query)
        };
        Ok(documents.map(factor).collect())
    }

    fn score(
        &self,
        document: Document<'_>,
        settings: &Settings,
        rng: &mut Rng,
        observer: &dyn Observer,
    ) -> Result<Score> {
        let observer = &observer;
        let Some(urn) = self.local_urn(document) else {
            return Ok(Score::exact(f64::NEG_INFINITY));
        };
        let Some(n_temperatures) = settings.total else {
            let plan = limits::exact_plans([&urn], settings).map(|[plan]| plan);
            return ln_urn_sum(&urn, plan, settings, rng, observer);
        };
        let least = totals::exact_budget(&urn, n_temperatures);
        let budget = settings.budget.unwrap_or(f64::INFINITY).min(least);
        let exactly = Settings { budget: Some(budget), method: Method::Auto, ..*settings };
        let plan = limits::exact_plans([&urn], &exactly).map(|[plan]| plan);
        if urn.n_tokens() == 0 || plan.is_some() {
            return ln_urn_sum(&urn, plan, &exactly, rng, observer);
        }
        totals::estimate(&urn, n_temperatures, rng, observer)
    }

    fn bracket(
        &self,
        document: Document<'_>,
        draw: Draws<'_>,
        settings: &Settings,
        rng: &mut Rng,
        observer: &dyn Observer,
    ) -> Result<Option<Bounds>> {
        let Draws::Topics(topics) = draw else { return Err(Error::NoReverse) };
        let Some(urn) = self.local_urn(document) else { return Ok(None) };
        let Some(path) = bracket::local_topics(&urn, topics) else { return Ok(None) };
        bracket::bounds(&urn, &path, settings, rng, &observer).map(Some)
    }

    fn moments(
        &self,
        document: Document<'_>,
        n_sweeps: usize,
        rng: &mut Rng,
        observer: &dyn Observer,
        mut moments: WeightMoments<'_>,
    ) -> Result<()> {
        moments::average_balls(self, document, n_sweeps, rng, observer, &mut moments)?;
        let WeightMoments { means, deviations, errors } = moments;
        self.weight_deviations(means, deviations, document.exposure());
        // Weights are multiples of the balls.
        errors
            .iter_mut()
            .zip(&*means)
            .for_each(|(error, mean)| *error /= mean.max(f64::MIN_POSITIVE));
        self.topic_weights(means, document.exposure());
        errors.iter_mut().zip(means).for_each(|(error, mean)| *error *= *mean);
        Ok(())
    }

    fn check_completion(&self, pair: Pair<'_>, row: usize, settings: &Settings) -> Result<()> {
        SplitDocument { model: self, pair }.check(row, settings)
    }

    fn completion(
        &self,
        pair: Pair<'_>,
        settings: &Settings,
        key: Key,
        observer: &dyn Observer,
    ) -> Result<Score> {
        SplitDocument { model: self, pair }.score(settings, key, observer)
    }
}

/// Parameters of the distribution of a document's length, as bits, and the length.
type Length = (Vec<u64>, u64);

fn length(document: Document<'_>) -> Length {
    let own = document.prior().into_iter().flatten().map(|x| x.to_bits());
    (own.chain([document.exposure().to_bits()]).collect(), document.n_tokens())
}

/// ln P(N)/P(0) of every length that occurs.
fn ln_odds_of_lengths<'a>(
    model: &TopicModel,
    documents: impl Iterator<Item = Document<'a>>,
    observer: &dyn Observer,
) -> Result<BTreeMap<Length, f64>> {
    let mut lengths: Vec<(Length, Document<'_>)> =
        documents.map(|document| (length(document), document)).collect();
    lengths.sort_unstable_by(|x, y| x.0.cmp(&y.0));
    lengths.dedup_by(|x, y| x.0 == y.0);
    let ln_odds_of_group = |group: &[(Length, Document<'_>)]| {
        let n_tokens: Vec<u64> = group.iter().map(|((_, n), _)| *n).collect();
        model.lengths(group[0].1).map_or(Ok(vec![]), |law| law.ln_odds(&n_tokens, observer))
    };
    let groups: Vec<_> = lengths.chunk_by(|x, y| x.0.0 == y.0.0).collect();
    let ln_odds: Vec<Vec<f64>> =
        groups.into_par_iter().map(ln_odds_of_group).collect::<Result<_>>()?;
    let ln_odds = ln_odds.into_iter().flatten();
    Ok(lengths.into_iter().map(|(length, _)| length).zip(ln_odds).collect())
}

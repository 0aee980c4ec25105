//! Scoring a corpus, its documents in parallel.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::limits::{check, check_budget, exact_plans};
use super::sampling::totals;
use super::settings::{Method, Settings};
use super::urn_sum::ln_urn_sum;
use super::{Score, TopicModel};
use crate::control::{Observer, unless_stopped};
use crate::counts::{CountMatrix, Document};
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::rng::{Key, Purpose, Rng};
use crate::urn::LocalUrn;

/// Scores every document; `None` for those not reached when the observer stopped the work.
///
/// Runs on the current rayon pool. A document's random numbers depend on the seed and on its
/// content only, and equal documents are scored once.
///
/// # Errors
/// Words outside the model's vocabulary, sizes of zero, and, before any work, an exact request
/// beyond the budget.
pub fn score(
    model: &TopicModel,
    documents: &CountMatrix,
    settings: &Settings,
    seed: u64,
    observer: &impl Observer,
) -> Result<Vec<Option<Score>>> {
    by_key(model, documents, settings, Key::new(seed, Purpose::Score), observer)
}

/// [`score`] by the streams of a key.
pub(super) fn by_key(
    model: &TopicModel,
    documents: &CountMatrix,
    settings: &Settings,
    key: Key,
    observer: &impl Observer,
) -> Result<Vec<Option<Score>>> {
    Scoring { model, documents, settings, key, observer }.score_each(|urn, rng| {
        let plan = exact_plans([urn], settings).map(|[plan]| plan);
        ln_urn_sum(urn, plan, settings, rng, observer)
    })
}

/// Scores every document for the sake of the sum over a corpus: exactly where that is as cheap as
/// sampling, else by annealing through so many temperatures, with the [spread](super::Spread) of the
/// runs.
pub(super) fn score_for_total(
    model: &TopicModel,
    documents: &CountMatrix,
    settings: &Settings,
    n_temperatures: usize,
    key: Key,
    observer: &impl Observer,
) -> Result<Vec<Option<Score>>> {
    Scoring { model, documents, settings, key, observer }.score_each(|urn, rng| {
        let least = totals::exact_budget(urn, n_temperatures);
        let budget = settings.budget.unwrap_or(f64::INFINITY).min(least);
        let exactly = Settings { budget: Some(budget), method: Method::Auto, ..*settings };
        let plan = exact_plans([urn], &exactly).map(|[plan]| plan);
        if urn.n_tokens() == 0 || plan.is_some() {
            return ln_urn_sum(urn, plan, &exactly, rng, observer);
        }
        totals::estimate(urn, n_temperatures, rng, observer)
    })
}

/// Documents under a model, and how to score them.
struct Scoring<'a, O> {
    model: &'a TopicModel,
    documents: &'a CountMatrix,
    settings: &'a Settings,
    key: Key,
    observer: &'a O,
}

impl<O: Observer> Scoring<'_, O> {
    /// Scores the different documents by their urns, with the factors that the urn sums lack.
    fn score_each(
        &self,
        score: impl Fn(&LocalUrn, &mut Rng) -> Result<Score> + Sync,
    ) -> Result<Vec<Option<Score>>> {
        let &Scoring { model, documents, settings, key, observer } = self;
        let distinct = documents.distinct();
        check_distinct(model, documents, &distinct.representatives, settings)?;
        let mut multiplicity = vec![0u64; distinct.representatives.len()];
        for &index in &distinct.index {
            multiplicity[index] += 1;
        }
        let ln_odds = match self.ln_odds_of_lengths() {
            Err(Error::Stopped) => return Ok(vec![None; documents.n_documents()]),
            result => result?,
        };
        let score_row = |(&row, &copies): (&usize, &u64)| {
            observer.check_stop()?;
            let document = documents.document(row);
            let Some(urn) = model.local_urn(document) else {
                observer.advance(copies);
                let impossible = Estimate::exact(f64::NEG_INFINITY);
                return Ok(Score::of(impossible, Method::Exact.estimator()));
            };
            let score = score(&urn, &mut key.document(document).rng())?;
            observer.advance(copies);
            if score.estimate.ln_value == f64::NEG_INFINITY {
                return Ok(score);
            }
            let ln_odds = ln_odds.get(&length(document)).copied().unwrap_or(0.0);
            Ok(score.scaled(model.ln_prefactor(document, settings.query, ln_odds)))
        };
        let scores = (distinct.representatives.par_iter().zip(&multiplicity))
            .with_max_len(1)
            .map(|row| unless_stopped(score_row(row)))
            .collect::<Result<Vec<_>>>()?;
        Ok(distinct.index.iter().map(|&index| scores[index].clone()).collect())
    }

    /// ln P(N)/P(0) of every length that occurs, where the query conditions on it.
    fn ln_odds_of_lengths(&self) -> Result<BTreeMap<Length, f64>> {
        let &Scoring { model, documents, settings, observer, .. } = self;
        if !model.has_lengths() || !settings.query.given_length {
            return Ok(BTreeMap::new());
        }
        let mut lengths: Vec<(Length, Document<'_>)> =
            documents.documents().map(|document| (length(document), document)).collect();
        lengths.sort_unstable_by(|x, y| x.0.cmp(&y.0));
        lengths.dedup_by(|x, y| x.0 == y.0);
        let ln_odds_of_group = |group: &[(Length, Document<'_>)]| {
            let n_tokens: Vec<u64> = group.iter().map(|((_, n), _)| *n).collect();
            model.lengths(group[0].1).map_or(Ok(vec![]), |law| law.ln_odds(&n_tokens, observer))
        };
        let groups: Vec<_> = lengths.chunk_by(|x, y| x.0.0 == y.0.0).collect();
        let ln_odds: Vec<Vec<f64>> =
            groups.into_par_iter().map(ln_odds_of_group).collect::<Result<_>>()?;
        Ok(lengths
            .into_iter()
            .map(|(length, _)| length)
            .zip(ln_odds.into_iter().flatten())
            .collect())
    }
}

/// Refuses what [`score`] would refuse, without any work.
///
/// # Errors
/// The errors of [`score`].
pub fn check_score(model: &TopicModel, documents: &CountMatrix, settings: &Settings) -> Result<()> {
    check_distinct(model, documents, &documents.distinct().representatives, settings)
}

fn check_distinct(
    model: &TopicModel,
    documents: &CountMatrix,
    rows: &[usize],
    settings: &Settings,
) -> Result<()> {
    check(model, documents, settings)?;
    check_budget(model, documents, rows, settings)
}

/// What the distribution of a document's length depends on, as bits, and the length.
type Length = (Vec<u64>, u64);

fn length(document: Document<'_>) -> Length {
    let own = document.prior().into_iter().flatten().map(|x| x.to_bits());
    (own.chain([document.exposure().to_bits()]).collect(), document.n_tokens())
}

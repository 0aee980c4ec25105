//! What is asked of a corpus, under any law: its documents in parallel, equal ones once.
//!
//! All run on the current rayon pool. A document's random numbers depend on the seed and on its content
//! only, never on its row.

use rayon::prelude::*;

use super::law::{Bounds, Draws, Law, Pair, WeightMoments};
use super::result::Score;
use super::settings::Settings;
use crate::control::{Observer, unless_stopped};
use crate::counts::{CountMatrix, Document};
use crate::error::{Error, Result, array_of, check_length};
use crate::rng::{Key, Purpose};

/// Moments of a document's topic weights θ that are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moments {
    /// E[θ | document].
    Mean,
    /// The same, sd[θ | document] behind it, and the standard error of the mean.
    All,
}

impl Moments {
    /// Arrays of topic weights a document.
    pub fn n_arrays(self) -> usize {
        match self {
            Moments::Mean => 1,
            Moments::All => 3,
        }
    }
}

/// ln p of every document; `None` for those not reached when the observer stopped the work.
///
/// # Errors
/// The errors of [`check_score`].
pub fn score(
    law: &dyn Law,
    documents: &CountMatrix,
    settings: &Settings,
    seed: u64,
    observer: &dyn Observer,
) -> Result<Vec<Option<Score>>> {
    let distinct = documents.distinct();
    let rows = &distinct.representatives;
    check_rows(law, documents, rows, settings)?;
    let mut key = Key::new(seed, Purpose::Score);
    if let Some(n_temperatures) = settings.total {
        // Streams of different numbers of temperatures are independent.
        key = key.unit(n_temperatures as u64);
    }
    let mut multiplicity = vec![0u64; rows.len()];
    distinct.index.iter().for_each(|&index| multiplicity[index] += 1);
    let factors = match law.ln_prefactors(documents, rows, settings.query, observer) {
        Err(Error::Stopped) => return Ok(vec![None; documents.n_documents()]),
        result => result?,
    };
    let score_row = |((&row, copies), ln_factor): ((&usize, u64), f64)| {
        observer.check_stop()?;
        let score = score_document(law, documents.document(row), row, settings, key, observer)?;
        observer.advance(copies);
        let is_possible = score.estimate.ln_value > f64::NEG_INFINITY;
        Ok(if is_possible { score.scaled(ln_factor) } else { score })
    };
    let scores = (rows.par_iter().zip(multiplicity).zip(factors))
        .with_max_len(1)
        .map(|row| unless_stopped(score_row(row)))
        .collect::<Result<Vec<_>>>()?;
    Ok(distinct.index.iter().map(|&index| scores[index].clone()).collect())
}

/// Scores a document, once more by longer runs, of up to 32 times the samples, where its error rests on few
/// of the replicates: sizes follow from the score alone. A run that would be too expensive is not begun.
fn score_document(
    law: &dyn Law,
    document: Document<'_>,
    row: usize,
    settings: &Settings,
    key: Key,
    observer: &dyn Observer,
) -> Result<Score> {
    let score = law.score(document, settings, &mut key.document(document).rng(), observer)?;
    let Some(size) = settings.longer(&score) else { return Ok(score) };
    let longer = Settings { n_samples: Some(size), ..*settings };
    if law.check_effort(document, row, &longer).is_err() {
        return Ok(score);
    }
    let mut rng = key.unit(size as u64).document(document).rng();
    let longer = law.score(document, &longer, &mut rng, observer)?;
    let estimate = longer.estimate.beside(score.estimate.ln_value);
    Ok(Score { estimate, ..longer })
}

/// Refuses what [`score`] would refuse, without any work.
///
/// # Errors
/// Words outside the model's vocabulary, exposures and priors that are none of the law's, sizes of zero,
/// methods that the law does not have, and an exact request beyond the budget.
pub fn check_score(law: &dyn Law, documents: &CountMatrix, settings: &Settings) -> Result<()> {
    check_rows(law, documents, &documents.distinct().representatives, settings)
}

fn check_rows(
    law: &dyn Law,
    documents: &CountMatrix,
    rows: &[usize],
    settings: &Settings,
) -> Result<()> {
    law.check_documents(documents)?;
    settings.check()?;
    rows.iter().try_for_each(|&row| law.check_effort(documents.document(row), row, settings))
}

/// Brackets ln p of documents whose latent values are known draws of their posterior, as they are where
/// the documents are simulated from the model (bidirectional Monte Carlo; Grosse, Ghahramani & Adams
/// 2015).
///
/// The forward runs do not look at the draws; the reverse runs start from them. `None` for the
/// documents not reached when the observer stopped the work.
///
/// # Errors
/// Draws that disagree with the documents, a method or a law without a reverse, and what [`score`]
/// refuses.
pub fn bidirectional(
    law: &dyn Law,
    documents: &CountMatrix,
    draws: Draws<'_>,
    settings: &Settings,
    seed: u64,
    observer: &dyn Observer,
) -> Result<Vec<Option<Bounds>>> {
    let rows: Vec<usize> = (0..documents.n_documents()).collect();
    check_rows(law, documents, &rows, settings)?;
    let draws = draws.by_document(documents)?;
    let factors = match law.ln_prefactors(documents, &rows, settings.query, observer) {
        Err(Error::Stopped) => return Ok(vec![None; rows.len()]),
        result => result?,
    };
    let key = Key::new(seed, Purpose::Score);
    let bracket_row = |((row, draw), ln_factor): ((usize, Draws<'_>), f64)| {
        let document = documents.document(row);
        let mut rng = key.document(document).unit(row as u64).rng();
        let found = law.bracket(document, draw, settings, &mut rng, observer)?;
        observer.advance(1);
        Ok(found.ok_or(Error::TopicPath { row })?.scaled(ln_factor))
    };
    (rows.into_par_iter().zip(draws).zip(factors))
        .with_max_len(1)
        .map(|row| unless_stopped(bracket_row(row)))
        .collect()
}

/// ln p(held-out tokens | observed tokens, numbers of both), document by document. NaN where the observed
/// tokens are impossible.
///
/// # Errors
/// The errors of [`check_completion`].
pub fn completion(
    law: &dyn Law,
    observed: &CountMatrix,
    held_out: &CountMatrix,
    settings: &Settings,
    seed: u64,
    observer: &dyn Observer,
) -> Result<Vec<Option<Score>>> {
    check_completion(law, observed, held_out, settings)?;
    let key = Key::new(seed, Purpose::Score);
    let complete_row = |row: usize| {
        observer.check_stop()?;
        let pair = Pair { observed: observed.document(row), held_out: held_out.document(row) };
        let score = law.completion(pair, settings, key, observer)?;
        observer.advance(1);
        Ok(score.scaled(law.ln_orders(pair.held_out, settings.query)))
    };
    (0..observed.n_documents())
        .into_par_iter()
        .with_max_len(1)
        .map(|row| unless_stopped(complete_row(row)))
        .collect()
}

/// Refuses what [`completion`] would refuse, without any work.
///
/// # Errors
/// The errors of [`check_score`], and matrices that disagree in size, exposure or priors.
pub fn check_completion(
    law: &dyn Law,
    observed: &CountMatrix,
    held_out: &CountMatrix,
    settings: &Settings,
) -> Result<()> {
    law.check_documents(observed)?;
    law.check_documents(held_out)?;
    settings.check()?;
    check_length("held-out documents", held_out.n_documents(), observed.n_documents())?;
    let mut pairs = observed.documents().zip(held_out.documents()).enumerate();
    pairs.try_for_each(|(row, (observed, held_out))| {
        let pair = Pair { observed, held_out };
        pair.check(row)?;
        law.check_completion(pair, row, settings)
    })
}

/// Moments of the topic weights θ of every document: `n_documents` x `moments.n_arrays()` x `n_topics`
/// (row-major).
///
/// Urns average the conditional moments of θ given the topics of the tokens, which are closed forms, over
/// `n_sweeps` Gibbs sweeps after a burn-in; the variance is the mean of the conditional variance plus the
/// variance of the conditional mean. Cost: sweeps x tokens x topics.
///
/// # Errors
/// Documents that are none of the law's; no room for the result; a stop.
pub fn transform(
    law: &dyn Law,
    documents: &CountMatrix,
    moments: Moments,
    n_sweeps: usize,
    seed: u64,
    observer: &dyn Observer,
) -> Result<Vec<f64>> {
    law.check_documents(documents)?;
    let (n_topics, key) = (law.n_topics(), Key::new(seed, Purpose::Transform));
    let width = moments.n_arrays() * n_topics;
    let size = documents.n_documents() * width;
    let mut weights = array_of("topic weights of all documents", size, 0.0)?;
    weights.par_chunks_exact_mut(width).enumerate().with_max_len(16).try_for_each(
        |(row, out)| -> Result<()> {
            let document = documents.document(row);
            let mut rng = key.document(document).rng();
            let mut unasked = vec![0.0; 3 * n_topics - width];
            let mut arrays =
                (out.chunks_exact_mut(n_topics)).chain(unasked.chunks_exact_mut(n_topics));
            let mut next = || arrays.next().unwrap_or_default();
            let moments = WeightMoments { means: next(), deviations: next(), errors: next() };
            law.moments(document, n_sweeps, &mut rng, observer, moments)?;
            observer.advance(1);
            Ok(())
        },
    )?;
    Ok(weights)
}

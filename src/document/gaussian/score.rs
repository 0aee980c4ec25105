//! Scoring a corpus under a logistic-normal prior, its documents in parallel.

use rayon::prelude::*;

use super::annealing::{Plan, ln_weights};
use super::decoder::weights;
use super::target::Potential;
use super::{LogisticNormal, fit, quadrature};
use crate::control::{Observer, unless_stopped};
use crate::counts::{CountMatrix, Document};
use crate::document::{Event, Method, Sampler, Score, Settings, Spread};
use crate::error::{Error, Result, check_length};
use crate::estimate::Estimate;
use crate::math::LogSum;
use crate::rng::{Key, LANES, Lanes, Purpose, Rng};

/// Runs of [`LANES`] chains of a document at most: 65,536 chains.
const MOST_RUNS: usize = 4096;

/// Steps of the chains behind posterior means, beside those of annealing.
const MOMENT_STEPS: usize = 64;

/// Scores every document; `None` for those not reached when the observer stopped the work. The own
/// prior of a document is its mean, in place of the model's.
///
/// Runs on the current rayon pool. A document's random numbers depend on the key, its content and its
/// mean only, and equal documents with equal means are scored once.
///
/// # Errors
/// Words outside the vocabulary, means of another shape, sizes of zero, methods other than `auto`,
/// `exact` and `annealed`, and an exact request in more than two dimensions.
pub fn score(
    model: &LogisticNormal,
    documents: &CountMatrix,
    settings: &Settings,
    key: Key,
    observer: &impl Observer,
) -> Result<Vec<Option<Score>>> {
    check(model, documents, settings)?;
    let distinct = documents.distinct();
    let mut copies = vec![0; distinct.representatives.len()];
    distinct.index.iter().for_each(|&index| copies[index] += 1);
    let scores = (distinct.representatives.par_iter().zip(copies))
        .with_max_len(1)
        .map(|(&row, copies)| {
            let document = documents.document(row);
            let mut rng = key.document(document).rng();
            let found = observer
                .check_stop()
                .and_then(|()| score_document(model, document, settings, &mut rng, observer))
                .inspect(|_| observer.advance(copies));
            let is_bag = settings.query.event == Event::Counts;
            let ln_orders = if is_bag { model.vocabularies().ln_orders(document) } else { 0.0 };
            unless_stopped(found.map(|score| score.scaled(ln_orders)))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(distinct.index.iter().map(|&index| scores[index].clone()).collect())
}

/// Refuses what [`score`] would refuse, without any work.
///
/// # Errors
/// The errors of [`score`].
pub fn check(model: &LogisticNormal, documents: &CountMatrix, settings: &Settings) -> Result<()> {
    check_documents(model, documents)?;
    settings.check()?;
    match settings.method {
        Method::Auto | Method::Sample(Sampler::Annealed(None)) => Ok(()),
        Method::Exact if model.rank <= quadrature::MOST_DIMENSIONS => Ok(()),
        Method::Exact => {
            Err(Error::Dimensions { found: model.rank, most: quadrature::MOST_DIMENSIONS })
        }
        _ => Err(Error::NoUrn),
    }
}

/// Posterior means and, behind them, standard deviations of the topic weights of every document:
/// `n_documents` x 2 x `n_topics`, row-major.
///
/// # Errors
/// The errors of [`score`]; [`Error::Stopped`] when the observer asks to stop.
pub fn transform(
    model: &LogisticNormal,
    documents: &CountMatrix,
    seed: u64,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    check_documents(model, documents)?;
    let key = Key::new(seed, Purpose::Transform);
    let weights = (0..documents.n_documents())
        .into_par_iter()
        .with_max_len(1)
        .map(|row| {
            let document = documents.document(row);
            let found = moments(model, document, &mut key.document(document).rng(), observer)?;
            observer.advance(1);
            Ok(found)
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(weights.concat())
}

fn check_documents(model: &LogisticNormal, documents: &CountMatrix) -> Result<()> {
    let n_words = model.vocabularies().n_words();
    check_length("vocabulary of the documents", documents.n_words(), n_words)?;
    if documents.exposures().is_some() {
        return Err(Error::GivenLength);
    }
    let expected = model.mean.len() * documents.n_documents();
    let found = documents.priors().map_or(expected, <[f64]>::len);
    check_length("priors of documents", found, expected)
}

/// What is wrong with a covariance whose lattice has too many points.
const TOO_WIDE: &str = "is too wide for quadrature: take \"annealed\"";

fn score_document(
    model: &LogisticNormal,
    document: Document<'_>,
    settings: &Settings,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Score> {
    let exact = |ln_value| Score::of(Estimate::exact(ln_value), Method::Exact.estimator());
    if document.n_tokens() == 0 {
        return Ok(exact(0.0));
    }
    let Some(local) = model.decoder.local(model.n_topics, document) else {
        return Ok(exact(f64::NEG_INFINITY));
    };
    let prior = model.prior(document);
    if model.rank == 0 {
        return Ok(exact(local.at(model.link, prior.mean)));
    }
    let annealed = Method::Sample(Sampler::Annealed(None));
    if settings.method != annealed && model.rank <= quadrature::MOST_DIMENSIONS {
        if let Some((found, change)) =
            quadrature::ln_integral(&local, model.link, &prior, observer)?
        {
            let estimate = Estimate { std_error: change, ..Estimate::exact(found) };
            return Ok(Score::of(estimate, Method::Exact.estimator()));
        }
        if settings.method == Method::Exact {
            return Err(Error::Covariance { problem: TOO_WIDE });
        }
    }
    let path = fit::path(&local, model.link, &prior, rng);
    let target = Potential::new(&local, model.link, &prior, &path.gaussian);
    let plan = match settings.n_samples {
        Some(n) if settings.target_std_error.is_some() => {
            Plan::from_pilot(&target, n, &path, rng, observer)?
        }
        Some(n_temperatures) => Plan { n_temperatures, variance: 0.0 },
        None => Plan::from_pilots(&target, &path, rng, observer)?,
    };
    let mut run = |n_runs: usize| -> Result<Vec<f64>> {
        let mut chains = Vec::with_capacity(n_runs * LANES);
        for _ in 0..n_runs {
            let run = ln_weights(&target, plan.n_temperatures, &path, rng, observer)?;
            chains.extend(run.0);
        }
        Ok(chains)
    };
    let mut n_runs = settings.n_replicates.div_ceil(LANES);
    if let Some(error) = settings.target_std_error {
        // Pilots of ever more chains, until one has the error; the estimate has twice as many.
        loop {
            let ratio = plan.estimate(&run(n_runs)?).std_error / error;
            if ratio <= 1.0 || n_runs >= MOST_RUNS {
                n_runs = (2 * n_runs).min(MOST_RUNS);
                break;
            }
            let necessary = (n_runs as f64 * ratio * ratio).ceil() as usize;
            n_runs = necessary.max(2 * n_runs).min(MOST_RUNS);
        }
    }
    let replicates = run(n_runs)?;
    let estimate = plan.estimate(&replicates);
    let spread = Some(Spread::of(&replicates, estimate.ln_value));
    Ok(Score { size: plan.n_temperatures, spread, ..Score::of(estimate, annealed.estimator()) })
}

/// Means and standard deviations of the topic weights given a document: annealed chains, each by its
/// weight, and steps of theirs at the posterior.
fn moments(
    model: &LogisticNormal,
    document: Document<'_>,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let prior = model.prior(document);
    let local = model.decoder.local(model.n_topics, document);
    let (Some(local), true) = (local, model.rank > 0) else {
        let found = weights(model.link, prior.mean);
        return Ok([found, vec![0.0; model.n_topics]].concat());
    };
    let path = fit::path(&local, model.link, &prior, rng);
    let target = Potential::new(&local, model.link, &prior, &path.gaussian);
    let plan = Plan::from_pilots(&target, &path, rng, observer)?;
    let n = plan.n_temperatures;
    let (ln_weights, mut walk) = ln_weights(&target, n, &path, rng, observer)?;
    let total: LogSum = ln_weights.iter().copied().collect();
    let shares: Lanes = ln_weights.map(|x| (x - total.ln_sum()).exp() / MOMENT_STEPS as f64);
    let (mut first, mut second) = (vec![0.0; model.n_topics], vec![0.0; model.n_topics]);
    for _ in 0..MOMENT_STEPS {
        observer.check_stop()?;
        walk.step(&target, 1.0, path.angle, rng);
        walk.look(&target);
        for (lane, share) in shares.iter().enumerate() {
            let theta = weights(model.link, &target.coordinates(&walk.room, lane));
            for ((first, second), x) in first.iter_mut().zip(&mut second).zip(theta) {
                *first += share * x;
                *second += share * x * x;
            }
        }
    }
    let deviation = |(mean, square): (&f64, &f64)| (square - mean * mean).max(0.0).sqrt();
    second = first.iter().zip(&second).map(deviation).collect();
    first.extend(second);
    Ok(first)
}

//! Scoring a corpus: the choice of an estimator, its size, and documents in parallel.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::exact::Plan;
use super::{Method, Query, Sampler, TopicModel, recursive, smc};
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::rng::{Key, Purpose, Rng};
use crate::urn::LocalUrn;

/// Multiply-adds up to which [`Method::Auto`] computes exactly: some milliseconds.
const AUTO_EXACT: f64 = 1e7;

/// Growth of the sample size between two attempts at a target error.
const GROWTH: std::ops::RangeInclusive<f64> = 2.0..=16.0;

/// Standard deviation of ln Ẑ that a single run of a filter is given particles for: from there on,
/// the mean of some runs is far from normal and its error cannot be read off them.
const RUN_DEVIATION: f64 = 0.4;

/// The pilot that measures it, and the particles it may ask for.
const PILOT_RUNS: usize = 8;
const PILOT_PARTICLES: usize = 50;
const LEAST_PARTICLES: usize = 50;
const MOST_PARTICLES: usize = 5_000;

/// Largest number of replicates.
const MAX_REPLICATES: usize = 10_000;

/// Bytes that the particles of one document may take.
const MAX_PARTICLE_BYTES: usize = 1 << 30;

/// How to score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The estimator.
    pub method: Method,
    /// The probability that is asked for.
    pub query: Query,
    /// Draws, states or temperatures per replicate of the samplers that have those.
    pub n_samples: usize,
    /// Particles per replicate of the samplers that have those; `None` lets the filters choose by
    /// document, and gives the others 10.
    pub n_particles: Option<usize>,
    /// Independent replicates behind the standard error.
    pub n_replicates: usize,
    /// Standard error to reach in every document by larger samples.
    pub target_std_error: Option<f64>,
    /// Multiply-adds that one document may cost, exactly or on the way to a target error.
    pub budget: f64,
}

impl Settings {
    /// Default sizes: particles by document or 1,000 draws in each of 16 replicates, no target
    /// error, and 10^9 multiply-adds a document.
    pub fn new(query: Query) -> Self {
        Settings {
            method: Method::Auto,
            query,
            n_samples: 1000,
            n_particles: None,
            n_replicates: 16,
            target_std_error: None,
            budget: 1e9,
        }
    }
}

/// The estimate of one document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// ln p, its error and effective size.
    pub estimate: Estimate,
    /// The estimator that gave it: never [`Method::Auto`].
    pub method: Method,
}

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
    check(model, documents, settings)?;
    let distinct = documents.distinct();
    let mut multiplicity = vec![0u64; distinct.representatives.len()];
    for &index in &distinct.index {
        multiplicity[index] += 1;
    }
    if settings.method == Method::Exact {
        check_budget(model, documents, &distinct.representatives, settings.budget)?;
    }
    let ln_odds = match ln_odds_of_lengths(model, documents, settings, observer) {
        Err(Error::Stopped) => return Ok(vec![None; documents.n_documents()]),
        result => result?,
    };
    let key = Key::new(seed, Purpose::Score);
    let scores = (distinct.representatives.par_iter().zip(&multiplicity))
        .with_max_len(1)
        .map(|(&row, &copies)| {
            let document = documents.document(row);
            match score_document(model, document, settings, key, observer) {
                Ok(score) => {
                    observer.advance(copies);
                    if score.estimate.ln_value == f64::NEG_INFINITY {
                        return Ok(Some(score));
                    }
                    let ln_odds = ln_odds.get(&document.n_tokens()).copied().unwrap_or(0.0);
                    let ln_factor = model.ln_prefactor(document, settings.query, ln_odds);
                    Ok(Some(Score { estimate: score.estimate.scaled(ln_factor), ..score }))
                }
                Err(Error::Stopped) => Ok(None),
                Err(error) => Err(error),
            }
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(distinct.index.iter().map(|&index| scores[index]).collect())
}

/// ln P(N)/P(0) of every length that occurs, where the query conditions on it.
fn ln_odds_of_lengths(
    model: &TopicModel,
    documents: &CountMatrix,
    settings: &Settings,
    observer: &impl Observer,
) -> Result<BTreeMap<u64, f64>> {
    let Some(law) = model.lengths().filter(|_| settings.query.given_length) else {
        return Ok(BTreeMap::new());
    };
    let mut lengths: Vec<u64> = documents.documents().map(Document::n_tokens).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let ln_odds = law.ln_odds(&lengths, observer)?;
    Ok(lengths.into_iter().zip(ln_odds).collect())
}

fn check(model: &TopicModel, documents: &CountMatrix, settings: &Settings) -> Result<()> {
    let n_words = model.urn().n_words();
    if documents.n_words() != n_words {
        return Err(Error::Length {
            name: "vocabulary of the documents",
            found: documents.n_words(),
            expected: n_words,
        });
    }
    let sizes = [
        ("n_samples", settings.n_samples, 1..=usize::MAX, "at least 1"),
        ("n_particles", settings.n_particles.unwrap_or(1), 1..=usize::MAX, "at least 1"),
        ("n_replicates", settings.n_replicates, 2..=MAX_REPLICATES, "between 2 and 10000"),
    ];
    for (name, size, range, domain) in sizes {
        if !range.contains(&size) {
            return Err(Error::Parameter { name, index: 0, value: size as f64, domain });
        }
    }
    let most = most_particles(settings.n_replicates, model.urn().n_topics());
    let filters = match settings.method {
        Method::Auto => true,
        Method::Exact | Method::Recursive => false,
        Method::Sample(sampler) => sampler.is_filter(),
    };
    let n_particles = settings.n_particles.unwrap_or(1);
    if filters && n_particles > most.max(1) {
        return Err(Error::TooManyParticles { n_particles, most });
    }
    let positive = |name, value: f64| {
        let domain = "positive";
        if value > 0.0 { Ok(()) } else { Err(Error::Parameter { name, index: 0, value, domain }) }
    };
    positive("budget", settings.budget)?;
    positive("target_std_error", settings.target_std_error.unwrap_or(1.0))
}

/// Particles a run of which the memory of one document has room for.
fn most_particles(n_runs: usize, n_topics: usize) -> usize {
    MAX_PARTICLE_BYTES / smc::BYTES_PER_TOPIC / n_runs / n_topics
}

/// Refuses an exact request before any work when one of its documents is beyond the budget.
fn check_budget(
    model: &TopicModel,
    documents: &CountMatrix,
    rows: &[usize],
    budget: f64,
) -> Result<()> {
    for &row in rows {
        let document = documents.document(row);
        let Some(urn) = LocalUrn::new(model.urn(), document) else {
            continue;
        };
        let plan = Plan::new(&urn);
        if urn.n_tokens() > 0 && !plan.within(budget) {
            return Err(Error::Budget {
                document: row,
                n_tokens: urn.n_tokens(),
                n_distinct: urn.n_distinct(),
                n_topics: urn.n_topics(),
                operations: plan.operations,
                bytes: plan.bytes,
                budget,
            });
        }
    }
    Ok(())
}

/// The urn sum of one document.
fn score_document(
    model: &TopicModel,
    document: Document<'_>,
    settings: &Settings,
    key: Key,
    observer: &impl Observer,
) -> Result<Score> {
    let exact = |ln_value| Score { estimate: Estimate::exact(ln_value), method: Method::Exact };
    if observer.stopped() {
        return Err(Error::Stopped);
    }
    let Some(urn) = LocalUrn::new(model.urn(), document) else {
        return Ok(exact(f64::NEG_INFINITY));
    };
    if urn.n_tokens() == 0 {
        return Ok(exact(0.0));
    }
    let sampler = match settings.method {
        Method::Auto | Method::Exact => {
            let plan = Plan::new(&urn);
            if settings.method == Method::Exact || plan.within(AUTO_EXACT.min(settings.budget)) {
                return Ok(exact(plan.run(&urn, observer)?));
            }
            Sampler::SmcLookahead
        }
        Method::Recursive => {
            let estimate = Estimate::without_error(recursive::ln_urn_sum(&urn));
            return Ok(Score { estimate, method: Method::Recursive });
        }
        Method::Sample(sampler) => sampler,
    };
    let mut rng = key.document(document).rng();
    let estimate = sample(&urn, sampler, settings, &mut rng, observer)?;
    Ok(Score { estimate, method: Method::Sample(sampler) })
}

/// Replicates of a sampler, of a size that earlier, independent replicates have chosen where it is
/// not given: the estimate is accepted whatever it is, and so remains unbiased.
fn sample(
    urn: &LocalUrn,
    sampler: Sampler,
    settings: &Settings,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Estimate> {
    let n_runs = settings.n_replicates;
    let mut largest = (settings.budget / (n_runs as f64 * sampler.cost(urn))) as usize;
    if sampler.is_filter() {
        largest = largest.min(most_particles(n_runs, urn.n_topics()));
    }
    let mut size = if let Some(size) = sampler.size(settings) {
        size
    } else {
        let pilot = sampler.ln_urn_sums(urn, PILOT_RUNS, PILOT_PARTICLES, rng, observer)?;
        let share = ln_std_deviation(&pilot) / RUN_DEVIATION;
        let wanted = PILOT_PARTICLES as f64 * share * share;
        (wanted as usize).clamp(LEAST_PARTICLES, MOST_PARTICLES).min(largest.max(1))
    };
    if let Some(target) = settings.target_std_error {
        size = size_for(target, size, largest, |size| {
            let pilot = sampler.ln_urn_sums(urn, n_runs, size, rng, observer)?;
            Ok(Estimate::from_replicates(&pilot, n_runs * size).std_error)
        })?;
    }
    let ln_sums = sampler.ln_urn_sums(urn, n_runs, size, rng, observer)?;
    Ok(Estimate::from_replicates(&ln_sums, n_runs * size))
}

/// Size at which a pilot has reached the target error, and half as much again.
fn size_for(
    target: f64,
    mut size: usize,
    largest: usize,
    mut pilot: impl FnMut(usize) -> Result<f64>,
) -> Result<usize> {
    loop {
        let std_error = pilot(size)?;
        if std_error <= target || size >= largest {
            return Ok((size + size / 2).min(largest.max(size)));
        }
        let growth = (1.3 * (std_error / target).powi(2)).clamp(*GROWTH.start(), *GROWTH.end());
        size = ((size as f64 * growth) as usize).min(largest);
    }
}

/// Standard deviation of the logarithms.
fn ln_std_deviation(ln_values: &[f64]) -> f64 {
    let n = ln_values.len() as f64;
    let mean = ln_values.iter().sum::<f64>() / n;
    (ln_values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

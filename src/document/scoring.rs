//! Scoring a corpus: checks before any work, and documents in parallel.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::annealed::Start;
use super::exact::Plan;
use super::{Method, Query, Sampler, TopicModel, recursive, sampling};
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::rng::{Key, Purpose};
use crate::urn::{Extent, LocalUrn};

/// Multiply-adds up to which [`Method::Auto`] computes exactly: some milliseconds.
pub(super) const AUTO_EXACT: f64 = 1e7;

/// Multiply-adds that one document may cost by default: exactly or on the way to a target error,
/// and by a sampler of a given size.
pub(super) const BUDGET: f64 = 1e9;
const SAMPLING_BUDGET: f64 = 1e11;

/// Largest number of replicates.
const MAX_REPLICATES: usize = 10_000;

/// How to score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The estimator.
    pub method: Method,
    /// The probability that is asked for.
    pub query: Query,
    /// Draws, states or temperatures per replicate of the samplers that have those; `None` lets
    /// annealing choose by document, and the others take their default.
    pub n_samples: Option<usize>,
    /// Particles per replicate of the samplers that have those; `None` lets the filters choose by
    /// document, and gives the others 10.
    pub n_particles: Option<usize>,
    /// Independent replicates behind the standard error.
    pub n_replicates: usize,
    /// Standard error to reach in every document by larger samples.
    pub target_std_error: Option<f64>,
    /// Multiply-adds that one document may cost; by default 10^9 exactly or on the way to a target
    /// error, 10^11 by a sampler of given size.
    pub budget: Option<f64>,
    /// Whether to keep the estimate as a function of the sample size.
    pub trace: bool,
}

impl Settings {
    /// Default sizes and budget, 16 replicates, no target error, no trace.
    pub fn new(query: Query) -> Self {
        Settings {
            method: Method::Auto,
            query,
            n_samples: None,
            n_particles: None,
            n_replicates: 16,
            target_std_error: None,
            budget: None,
            trace: false,
        }
    }
}

/// The estimate of one document.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// ln p, its error and effective size.
    pub estimate: Estimate,
    /// The estimator that gave it: never [`Method::Auto`].
    pub method: Method,
    /// Particles, draws, states or temperatures of each replicate; 0 where there is none.
    pub size: usize,
    /// Whether the target error was reached within the budget; true where there is none.
    pub reached: bool,
    /// Estimates from smaller samples, where the settings ask for them.
    pub trace: Vec<TracePoint>,
}

/// An estimate from part of the samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracePoint {
    /// Samples in all replicates.
    pub n_samples: usize,
    /// The estimate from them.
    pub estimate: Estimate,
}

impl Score {
    /// A value without replicates.
    pub(super) fn of(estimate: Estimate, method: Method) -> Self {
        Score { estimate, method, size: 0, reached: true, trace: Vec::new() }
    }

    /// The score of the probability times exp(`ln_factor`).
    pub(super) fn scaled(mut self, ln_factor: f64) -> Self {
        self.estimate = self.estimate.scaled(ln_factor);
        for point in &mut self.trace {
            point.estimate = point.estimate.scaled(ln_factor);
        }
        self
    }
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
    check_budget(model, documents, &distinct.representatives, settings)?;
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
                    Ok(Some(score.scaled(ln_factor)))
                }
                Err(Error::Stopped) => Ok(None),
                Err(error) => Err(error),
            }
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(distinct.index.iter().map(|&index| scores[index].clone()).collect())
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

pub(super) fn check(
    model: &TopicModel,
    documents: &CountMatrix,
    settings: &Settings,
) -> Result<()> {
    let n_words = model.urn().n_words();
    if documents.n_words() != n_words {
        return Err(Error::Length {
            name: "vocabulary of the documents",
            found: documents.n_words(),
            expected: n_words,
        });
    }
    let sizes = [
        ("n_samples", settings.n_samples.unwrap_or(1), 1..=usize::MAX, "at least 1"),
        ("n_particles", settings.n_particles.unwrap_or(1), 1..=usize::MAX, "at least 1"),
        ("n_replicates", settings.n_replicates, 2..=MAX_REPLICATES, "between 2 and 10000"),
    ];
    for (name, size, range, domain) in sizes {
        if !range.contains(&size) {
            return Err(Error::Parameter { name, index: 0, value: size as f64, domain });
        }
    }
    let positive = |name, value: f64| {
        let domain = "positive";
        if value > 0.0 { Ok(()) } else { Err(Error::Parameter { name, index: 0, value, domain }) }
    };
    positive("budget", settings.budget.unwrap_or(BUDGET))?;
    positive("target_std_error", settings.target_std_error.unwrap_or(1.0))
}

/// Refuses before any work what one of the documents would make too expensive.
fn check_budget(
    model: &TopicModel,
    documents: &CountMatrix,
    rows: &[usize],
    settings: &Settings,
) -> Result<()> {
    let n_topics = model.urn().n_topics();
    rows.iter().try_for_each(|&row| match settings.method {
        Method::Exact => {
            let urn = LocalUrn::new(model.urn(), documents.document(row));
            urn.map_or(Ok(()), |urn| check_exact(&urn, row, settings))
        }
        _ => check_sampler(Extent::of(documents.document(row).counts(), n_topics), row, settings),
    })
}

/// Refuses a sampler of a size beyond the budget or beyond memory.
pub(super) fn check_sampler(extent: Extent, document: usize, settings: &Settings) -> Result<()> {
    let sampler = match settings.method {
        Method::Sample(sampler) => sampler,
        Method::Auto if settings.n_particles.is_some() => Sampler::SmcLookahead,
        Method::Auto if settings.n_samples.is_some() => Sampler::Annealed(Start::MeanField),
        Method::Auto | Method::Exact | Method::Recursive => return Ok(()),
    };
    let size = sampler.size(settings).unwrap_or(1);
    let most = sampling::most(sampler, extent, settings.n_replicates);
    if size > most.max(1) {
        return Err(Error::TooManyParticles { n_particles: size, most });
    }
    if settings.target_std_error.is_some() {
        return Ok(());
    }
    let draws = settings.n_replicates as f64 * size as f64;
    let operations = sampler.fixed_cost(extent) + draws * sampler.cost(extent);
    let budget = match settings.budget {
        // Here the budget says how far to be exact.
        Some(budget) if settings.method == Method::Auto => budget.max(SAMPLING_BUDGET),
        budget => budget.unwrap_or(SAMPLING_BUDGET),
    };
    if operations > budget {
        let Extent { n_tokens, n_topics, .. } = extent;
        return Err(Error::SamplingBudget { document, n_tokens, n_topics, operations, budget });
    }
    Ok(())
}

/// Refuses an exact computation beyond the budget or beyond memory.
pub(super) fn check_exact(urn: &LocalUrn, document: usize, settings: &Settings) -> Result<()> {
    let budget = settings.budget.unwrap_or(BUDGET);
    let plan = Plan::new(urn);
    if urn.n_tokens() == 0 || plan.within(budget) {
        return Ok(());
    }
    let Plan { operations, bytes, .. } = plan;
    let Extent { n_tokens, n_distinct, n_topics, .. } = urn.extent();
    Err(Error::Budget { document, n_tokens, n_distinct, n_topics, operations, bytes, budget })
}

/// The urn sum of one document.
fn score_document(
    model: &TopicModel,
    document: Document<'_>,
    settings: &Settings,
    key: Key,
    observer: &impl Observer,
) -> Result<Score> {
    let exact = |ln_value| Score::of(Estimate::exact(ln_value), Method::Exact);
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
            let budget = AUTO_EXACT.min(settings.budget.unwrap_or(BUDGET));
            if settings.method == Method::Exact || plan.within(budget) {
                return Ok(exact(plan.run(&urn, observer)?));
            }
            None
        }
        Method::Recursive => {
            let estimate = Estimate::without_error(recursive::ln_urn_sum(&urn));
            return Ok(Score::of(estimate, Method::Recursive));
        }
        Method::Sample(sampler) => Some(sampler),
    };
    let mut rng = key.document(document).rng();
    sampling::estimate(&urn, sampler, settings, &mut rng, observer)
}

//! Checks before any work: sizes, budgets and memory.

use super::TopicModel;
use super::estimators::annealed::Start;
use super::estimators::sampler::Sampler;
use super::exact::{Cost, Plan};
use super::settings::{BUDGET, Method, SAMPLING_BUDGET, Settings};
use crate::counts::CountMatrix;
use crate::error::{Error, MAX_EXACT_BYTES, Result};
use crate::urn::{Extent, LocalUrn};

/// Largest number of replicates.
const MAX_REPLICATES: usize = 10_000;

/// Bytes that the particles of one document may take.
const MAX_BYTES: usize = 1 << 30;

/// Refuses another vocabulary than the model's, and settings outside their domains.
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
        ("number of samples", settings.n_samples.unwrap_or(1), 1..=usize::MAX, "at least 1"),
        ("number of particles", settings.n_particles.unwrap_or(1), 1..=usize::MAX, "at least 1"),
        ("number of replicates", settings.n_replicates, 2..=MAX_REPLICATES, "between 2 and 10000"),
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
    positive("target standard error", settings.target_std_error.unwrap_or(1.0))
}

/// Refuses before any work what one of the documents would make too expensive.
pub(super) fn check_budget(
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
    let size = settings.size(sampler).unwrap_or(1);
    let most = most(sampler, extent, settings.n_replicates);
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
    let Cost { operations, bytes } = plan.cost;
    let Extent { n_tokens, n_distinct, n_topics, .. } = urn.extent();
    let most_bytes = MAX_EXACT_BYTES;
    Err(Error::Budget {
        document,
        n_tokens,
        n_distinct,
        n_topics,
        operations,
        bytes,
        budget,
        most_bytes,
    })
}

/// Size of which the memory of one document has room for that many replicates.
pub(super) fn most(sampler: Sampler, extent: Extent, n_runs: usize) -> usize {
    match sampler.bytes(extent) {
        0 => usize::MAX,
        bytes => MAX_BYTES / bytes / n_runs,
    }
}

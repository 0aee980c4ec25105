//! Checks before any work: sizes, budgets and memory.

use super::topic_model::TopicModel;
use crate::counts::Document;
use crate::document::estimators::annealed::rare::{RareTopics, Rarity};
use crate::document::estimators::sampler::Sampler;
use crate::document::exact::{Cost, ExactPlan};
use crate::document::settings::{
    AUTO_EXACT, BUDGET, Method, RARE_EXACT, SAMPLING_BUDGET, Settings,
};
use crate::error::{Error, MAX_EXACT_BYTES, Result};
use crate::urn::{Extent, LocalUrn};

/// Bytes that the particles of one document may take, and the topics of its tokens.
const MAX_BYTES: usize = 1 << 30;
const MAX_BYTES_OF_TOKENS: f64 = (1u64 << 31) as f64;

/// Time of a sampler where topics are bursty, beside that where they are not: 3 to 8 times with 4 to 100 topics
/// and 500 to 10,000 tokens.
const BURSTY: f64 = 6.0;

/// Refuses before any work what the document would make too expensive.
pub(super) fn check_budget(
    model: &TopicModel,
    document: Document<'_>,
    row: usize,
    settings: &Settings,
) -> Result<()> {
    if settings.method == Method::Exact {
        let urn = model.local_urn(document);
        return urn.map_or(Ok(()), |urn| check_exact(&urn, row, settings));
    }
    let extent = Extent::of(document.counts(), model.urn().n_topics());
    let is_bursty = model.bursts().is_some();
    // Fewer topics may matter to the document than there are, or it may be exact.
    check_sampler(extent, is_bursty, row, settings).or_else(|error| {
        match model.local_urn(document) {
            Some(urn) if exact_plans([&urn], settings).is_some() => Ok(()),
            Some(urn) => check_sampler(urn.extent(), is_bursty, row, settings),
            None => Err(error),
        }
    })
}

/// Plans of exact sums, where the settings ask for exact ones, or `auto` finds all of them cheap.
pub(super) fn exact_plans<const N: usize>(
    urns: [&LocalUrn; N],
    settings: &Settings,
) -> Option<[ExactPlan; N]> {
    if !matches!(settings.method, Method::Auto | Method::Exact) {
        return None;
    }
    let plans = urns.map(ExactPlan::new);
    let budget = settings.budget.unwrap_or(BUDGET);
    let is_cheap = |(urn, plan): (&LocalUrn, &ExactPlan)| {
        let most =
            if RareTopics::of(urn, Rarity::EXACT).may_open { RARE_EXACT } else { AUTO_EXACT };
        plan.within(most.min(budget))
    };
    let are_cheap = || urns.into_iter().zip(&plans).all(is_cheap);
    (settings.method == Method::Exact || are_cheap()).then_some(plans)
}

/// Refuses a sampler of a size beyond the budget or beyond memory.
pub(super) fn check_sampler(
    extent: Extent,
    is_bursty: bool,
    document: usize,
    settings: &Settings,
) -> Result<()> {
    let sampler = match settings.method {
        Method::Sample(sampler) => sampler,
        Method::Auto if settings.n_particles.is_some() => Sampler::SmcLookahead,
        Method::Auto => Sampler::Annealed(None),
        Method::Exact => return Ok(()),
        Method::Recursive => {
            let operations = extent.n_tokens as f64 * extent.n_topics as f64;
            return check_operations(operations, extent, document, settings);
        }
    };
    let bytes = sampler.bytes_of_tokens(extent);
    if bytes > MAX_BYTES_OF_TOKENS {
        return Err(Error::Memory { name: "the topics of the tokens of a document", bytes });
    }
    let size = settings.size(sampler).or(sampler.pilot().map(|pilot| pilot.least)).unwrap_or(1);
    let most = most(sampler, extent, settings.n_replicates);
    if size > most.max(1) {
        return Err(Error::TooManyParticles { n_particles: size, most });
    }
    if settings.target_std_error.is_some() {
        return Ok(());
    }
    let draws = settings.n_replicates as f64 * size as f64;
    let operations = sampler.fixed_cost(extent) + draws * sampler.cost(extent);
    let factor = if is_bursty { BURSTY } else { 1.0 };
    check_operations(factor * operations, extent, document, settings)
}

/// Refuses more multiply-adds than the budget.
fn check_operations(
    operations: f64,
    extent: Extent,
    document: usize,
    settings: &Settings,
) -> Result<()> {
    let budget = match settings.budget {
        Some(budget) if settings.is_auto_without_target() => budget.max(SAMPLING_BUDGET),
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
    let plan = ExactPlan::new(urn);
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

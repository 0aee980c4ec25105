//! Choice of the method of the evidence where none is asked for.

use super::samplers;
use super::settings::{Method, Sampler, Settings};
use crate::allocation::exact::enumeration;
use crate::allocation::kernel::splits::MAX_WEIGHED;
use crate::allocation::model::problem::Problem;
use crate::control::{Observer, Unseen};
use crate::error::{Error, Result};

/// Samplers, the first of which has the pilot and is left where the pilot is in doubt.
const SAMPLERS: [Sampler; 2] = [Sampler::Smc, Sampler::Tempered];

/// Particles of a replicate of the pilot, at most.
const MOST_PARTICLES: usize = 256;

/// The pilot takes this part of the draws that are asked for, at most.
const PILOT_PART: usize = 4;

/// The result of the method that was chosen, or the sampler that is to be run.
pub(super) enum Decision {
    /// ln of the exact sum.
    Exact(f64),
    /// Replicates of a sampler.
    Sample(Sampler),
}

/// Exact within a small budget, else smc where a short pilot of it is beyond doubt, or tempered.
///
/// The pilot takes a quarter of the draws of smc, and far less than tempering. It is in doubt where
/// replicates differ or particles descend from few of the first. Cells of very many tokens, of which
/// particles take one after another, have none. Options that one of them does not take speak for the
/// other.
pub(super) fn decide(
    problem: &Problem,
    settings: &Settings,
    seed: u64,
    observer: &impl Observer,
) -> Result<Decision> {
    match enumeration::ln_sum(problem, settings.trial_budget(), observer) {
        Err(Error::EnumerationBudget { .. } | Error::Memory { .. }) => {}
        tried => return tried.map(Decision::Exact),
    }
    let mut samplers = SAMPLERS.into_iter().filter(|sampler| sampler.takes(settings));
    let first = samplers.next().ok_or(Error::NoSampler)?;
    let Some(second) = samplers.next() else { return Ok(Decision::Sample(first)) };
    let is_huge = |&count: &u64| problem.is_heavy(count) && count > MAX_WEIGHED as u64;
    if problem.counts.iter().any(is_huge) {
        return Ok(Decision::Sample(second));
    }
    let mut pilot = Settings::new(Method::Sample(first));
    let n_draws = settings.filter().n_particles.saturating_mul(settings.n_replicates());
    let n_particles = n_draws.div_ceil(PILOT_PART * pilot.n_replicates());
    pilot.n_particles = Some(n_particles.min(MOST_PARTICLES));
    // A seed of its own, so that the choice does not depend on the estimate that follows.
    let (found, _) = samplers::ln_sum(problem, first, &pilot, seed ^ 1, &Unseen(observer))?;
    Ok(Decision::Sample(if found.is_doubtful() { second } else { first }))
}

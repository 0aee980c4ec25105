//! Evidence of a tensor under a network, all tables and allocations summed out.

mod auto;
mod parts;
mod samplers;
mod settings;

use auto::Decision;
pub use parts::Parts;
pub(super) use samplers::{Kept, tempered};
pub use settings::{Method, Sampler, Settings};

use super::exact::enumeration;
use super::model::problem::Problem;
use crate::control::Observer;
use crate::error::Result;
use crate::estimate::Estimate;
use crate::temper::Outcome;

/// ln Pr(X | T), the probability of a tensor given its total, and the method that found it.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The value in nats, and how well it is known.
    pub estimate: Estimate,
    /// [`Method::Exact`] where nothing is hidden, or hidden nodes have one value each, whatever was
    /// asked for; never [`Method::Auto`].
    pub method: Method,
    /// Rounds of tempering.
    pub tempering: Option<Outcome>,
}

impl Evidence {
    fn exact(ln_value: f64) -> Self {
        Evidence { estimate: Estimate::exact(ln_value), method: Method::Exact, tempering: None }
    }
}

/// Evidence that is known already, or the sampler that is to find it.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// It is known.
    Known(Evidence),
    /// Replicates of a sampler.
    Sample(Sampler),
}

/// Evidence of a tensor given its total.
///
/// # Errors
/// [`Error::Range`](crate::Error::Range); those of the method: a budget passed, more than memory
/// holds, a stop.
pub fn evidence(
    problem: &Problem,
    settings: &Settings,
    seed: u64,
    observer: &impl Observer,
) -> Result<Evidence> {
    match choose(problem, settings, seed, observer)? {
        Choice::Known(evidence) => Ok(evidence),
        Choice::Sample(sampler) => {
            let found = samplers::ln_sum(problem, sampler, settings, seed, observer)?;
            Ok(given_visible(problem, sampler, found))
        }
    }
}

/// The sampler of a method, if it takes one; the evidence where it is exact.
///
/// # Errors
/// As of [`evidence()`].
pub fn choose(
    problem: &Problem,
    settings: &Settings,
    seed: u64,
    observer: &impl Observer,
) -> Result<Choice> {
    let constant = constant(problem);
    if problem.n_tokens() == 0 {
        return Ok(Choice::Known(Evidence::exact(constant)));
    }
    if let Some(ln_sum) = problem.ln_only_allocation() {
        return Ok(Choice::Known(Evidence::exact(ln_sum + constant)));
    }
    problem.check_range()?;
    let decision = match settings.method {
        Method::Auto => auto::decide(problem, settings, seed, observer)?,
        Method::Exact => {
            Decision::Exact(enumeration::ln_sum(problem, settings.exact_budget(), observer)?)
        }
        Method::Sample(sampler) => Decision::Sample(sampler),
    };
    Ok(match decision {
        Decision::Exact(ln_sum) => Choice::Known(Evidence::exact(ln_sum + constant)),
        Decision::Sample(sampler) => Choice::Sample(sampler),
    })
}

/// ln of the factor of the evidence beside the sum over allocations.
fn constant(problem: &Problem) -> f64 {
    problem.ln_visible + problem.ln_arrangements
}

/// The evidence by a sampler that has found the sum over allocations.
fn given_visible(
    problem: &Problem,
    sampler: Sampler,
    (estimate, tempering): (Estimate, Option<Outcome>),
) -> Evidence {
    let constant = constant(problem);
    let tempering = tempering.map(|outcome| outcome.raised(constant));
    Evidence { estimate: estimate.scaled(constant), method: Method::Sample(sampler), tempering }
}

//! Evidence of a tensor under a network, all tables and allocations summed out.

mod auto;
mod samplers;
mod settings;

use auto::Decision;
pub(super) use auto::Unseen;
pub(super) use samplers::tempered;
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
    /// [`Method::Exact`] where nothing is hidden, whatever was asked for; never [`Method::Auto`].
    pub method: Method,
    /// Rounds of tempering.
    pub tempering: Option<Outcome>,
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
    let constant = problem.ln_visible + problem.ln_arrangements;
    if problem.n_states() == 0 || problem.n_tokens() == 0 {
        let estimate = Estimate::exact(constant);
        return Ok(Evidence { estimate, method: Method::Exact, tempering: None });
    }
    problem.check_range()?;
    let decision = match settings.method {
        Method::Auto => auto::decide(problem, settings, seed, observer)?,
        Method::Exact => {
            Decision::Exact(enumeration::ln_sum(problem, settings.exact_budget(), observer)?)
        }
        Method::Sample(sampler) => Decision::Sample(sampler),
    };
    let ((estimate, tempering), method) = match decision {
        Decision::Exact(ln_sum) => ((Estimate::exact(ln_sum), None), Method::Exact),
        Decision::Sample(sampler) => {
            let found = samplers::ln_sum(problem, sampler, settings, seed, observer)?;
            (found, Method::Sample(sampler))
        }
    };
    let tempering = tempering.map(|outcome| outcome.raised(constant));
    Ok(Evidence { estimate: estimate.scaled(constant), method, tempering })
}

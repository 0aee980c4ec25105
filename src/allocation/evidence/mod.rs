//! Evidence of a tensor under a network, all tables and allocations summed out.
//!
//! The constants of this room are those with which `benches/evidence.py` made its record.

mod filters;
mod run;
mod settings;
mod task;

pub(super) use filters::{check_memory, key as filter_key};
pub use run::EvidenceRun;
pub(super) use settings::round_plan;
pub use settings::{EvidenceMethod, EvidenceSampler, EvidenceSettings};
pub use task::{Task, TaskResult, from_bytes, to_bytes};

use rayon::prelude::*;

use super::memory::Load;
use super::model::problem::Problem;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::rng::LANES;
use crate::temper::TemperingOutcome;

/// ln Pr(X | T), the probability of a tensor given its total, and the method that found it.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The value in nats, and how well it is known.
    pub estimate: Estimate,
    /// [`EvidenceMethod::Exact`] where nothing is hidden, or hidden nodes have one value each,
    /// whatever was asked for; never [`EvidenceMethod::Auto`].
    pub method: EvidenceMethod,
    /// Whether replicates and sizes agree: a filter with one of a quarter of its particles, rounds of
    /// tempering with each other.
    pub converged: bool,
    /// Rounds of tempering.
    pub tempering: Option<TemperingOutcome>,
}

impl Evidence {
    fn exact(ln_value: f64) -> Self {
        let estimate = Estimate::exact(ln_value);
        Evidence { estimate, method: EvidenceMethod::Exact, converged: true, tempering: None }
    }

    /// The rounds of tempering so far.
    fn tempered(outcome: TemperingOutcome) -> Self {
        Evidence {
            estimate: outcome.estimate(),
            method: EvidenceMethod::Sample(EvidenceSampler::Tempered),
            converged: outcome.converged,
            tempering: Some(outcome),
        }
    }

    /// The evidence times exp of a constant.
    fn scaled(self, constant: f64) -> Self {
        Evidence {
            estimate: self.estimate.scaled(constant),
            tempering: self.tempering.map(|outcome| outcome.raised(constant)),
            ..self
        }
    }
}

/// Evidence of a tensor given its total, by tasks on the threads of this process.
///
/// # Errors
/// [`Error::Range`]; those of the method: a budget passed, more than memory holds, a stop. A stop after
/// the first round of tempering keeps the rounds that are done.
pub fn evidence(
    problem: &Problem,
    settings: &EvidenceSettings,
    seed: u64,
    observer: &dyn Observer,
) -> Result<Evidence> {
    let mut run = EvidenceRun::new(problem, settings, observer)?;
    loop {
        let tasks = run.tasks();
        if tasks.is_empty() {
            return Ok(run.evidence());
        }
        let done = |task: &Task| task.run(problem, settings, seed, observer);
        match tasks.par_iter().map(done).collect::<Result<Vec<_>>>() {
            Ok(results) => observer.advance(run.add(problem, results)?),
            Err(Error::Stopped) if run.stop() => return Ok(run.evidence()),
            Err(error) => return Err(error),
        }
    }
}

/// All replicates of tempering: they are held at the same time, and the weights beside the counts.
pub(super) fn tempered_load(problem: &Problem, n_replicates: usize) -> Load {
    let load = problem.load();
    Load { n_marginals: 3 * load.n_marginals, n_chains: LANES * n_replicates, ..load }
}

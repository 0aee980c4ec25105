//! Work of an evidence for whatever thread or process it runs in.

use serde::{Deserialize, Serialize};

use super::filters::{self, FilterResult};
use super::settings::{EvidenceSettings, round_plan};
use crate::allocation::model::problem::Problem;
use crate::allocation::tempering;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::rng::{Key, Purpose};
use crate::temper::{LadderPart, RoundResult};

/// Cost of a part of a round of one ladder, in draws of one number: some ten seconds.
const PART_COST: f64 = 1e10;

/// One task of an evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Task {
    /// A replicate of a filter.
    Filter {
        /// Particles of the replicate.
        n_particles: usize,
        /// Whether it is one of the smaller size.
        is_small: bool,
        /// Its number.
        replicate: usize,
    },
    /// κ of the reference of all ladders.
    Reference,
    /// Part of a round of a ladder.
    Ladder {
        /// κ of its reference.
        kappa: f64,
        /// Its number.
        replicate: usize,
        /// Scans of the round.
        n_scans: usize,
        /// The ladder so far; none before its first round.
        saved: Option<Vec<u8>>,
    },
}

/// Result of a [`Task`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum TaskResult {
    /// ln Ẑ, and the relative variance of Ẑ that the particles' descent tells.
    Filter(f64, f64),
    /// κ of the reference.
    Reference(f64),
    /// The ladder, and the result of a round that ended.
    Ladder(Vec<u8>, Option<RoundResult>),
}

impl Task {
    /// Does the work, with the same bits wherever it runs.
    ///
    /// # Errors
    /// [`Error::SamplerMemory`](crate::Error::SamplerMemory); [`Error::Saved`] for a ladder of
    /// other work; those of the sampler.
    pub fn run(
        &self,
        problem: &Problem,
        settings: &EvidenceSettings,
        seed: u64,
        observer: &dyn Observer,
    ) -> Result<TaskResult> {
        let key = Key::new(seed, Purpose::Score);
        match *self {
            Task::Filter { n_particles, is_small, replicate } => {
                let key = filters::key(seed, is_small, replicate);
                let (ln_value, variance): FilterResult =
                    filters::replicate(problem, settings, n_particles, key, observer)?;
                Ok(TaskResult::Filter(ln_value, variance))
            }
            Task::Reference => {
                Ok(TaskResult::Reference(tempering::reference(problem, key, observer)?))
            }
            Task::Ladder { kappa, replicate, n_scans, ref saved } => {
                let most = ((PART_COST / tempering::sweep_cost(problem)) as usize).max(1);
                let saved = saved.as_deref();
                let part = LadderPart { replicate, n_scans, most, saved };
                let plan = round_plan(problem, settings);
                let (saved, result) =
                    tempering::run_part(problem, kappa, plan, part, key, observer)?;
                Ok(TaskResult::Ladder(saved, result))
            }
        }
    }
}

/// A [`Task`] or [`TaskResult`] as bytes.
///
/// # Errors
/// [`Error::Saved`]
pub fn to_bytes(work: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_allocvec(work).map_err(|_| Error::Saved)
}

/// The [`Task`] or [`TaskResult`] of some bytes.
///
/// # Errors
/// [`Error::Saved`] for bytes that are none.
pub fn from_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|_| Error::Saved)
}

//! Non-reversible parallel tempering (Syed, Bouchard-Côté, Deligiannidis, Doucet 2022): the ratio
//! of two normalising constants by chains on a ladder of distributions between them.
//!
//! A [`Target`] is a path `γ_β ∝ γ_0 exp(β V)` from a reference γ_0 that can be drawn from to the
//! law γ_1 that is asked for. The engine knows nothing else of it. [`temper`] runs independent
//! replicates in rounds of doubling length, respaces their ladders to equal rejection after each,
//! and ends when two estimates in opposite directions, the rounds and the replicates agree.
//!
//! Results are the same bits for any number of threads.

mod bridge;
mod ladder;
mod outcome;
mod replicate;

use rayon::prelude::*;

pub use outcome::{Outcome, Round};
use replicate::Replicate;

use crate::control::Observer;
use crate::error::{Error, Result};
use crate::rng::{Key, Lanes, Rng};

/// A path from a reference distribution to a law.
pub trait Target: Sync {
    /// Chains in lockstep.
    type Chains<'a>: Chains
    where
        Self: 'a;

    /// Chains drawn from the reference.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop; [`Error::Memory`] for more than memory
    /// holds.
    fn chains(&self, rng: &mut Rng, observer: &impl Observer) -> Result<Self::Chains<'_>>;

    /// Cost of one sweep of the chains in lockstep, in draws of one number.
    fn sweep_cost(&self) -> f64;
}

/// [`LANES`](crate::rng::LANES) chains in lockstep.
pub trait Chains: Send {
    /// Moves every chain by a kernel that leaves γ_β unchanged, β being given for every lane. At
    /// β = 0 the chain is drawn afresh.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    fn sweep(&mut self, betas: &Lanes, observer: &impl Observer) -> Result<()>;

    /// V of every chain: ln γ_1 - ln γ_0.
    fn values(&self) -> Lanes;
}

/// When tempering ends, and by how many replicates it is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Independent ladders, at least two.
    pub n_replicates: usize,
    /// Standard error at which no more rounds are run.
    pub target_std_error: f64,
    /// Cost of all sweeps, in the unit of [`Target::sweep_cost`], beyond which no round is begun.
    pub budget: f64,
    /// Largest number of chains of a ladder.
    pub max_chains: usize,
}

/// Rounds before which nothing can be said of convergence.
const LEAST_ROUNDS: usize = 4;

/// Scans of the first round.
const FIRST_SCANS: usize = 8;

/// ln of the normalising constant of γ_1 over that of γ_0.
///
/// A stop after the first round keeps the last round that all replicates have finished.
///
/// # Errors
/// Those of the target; [`Error::Stopped`] when the observer asks to stop before there is a round.
pub fn temper<T: Target>(
    target: &T,
    options: &Options,
    key: Key,
    observer: &impl Observer,
) -> Result<Outcome> {
    let start = |replicate: usize| {
        Replicate::new(target, key.unit(replicate as u64), options.max_chains, observer)
    };
    let mut replicates: Vec<Replicate<T::Chains<'_>>> =
        (0..options.n_replicates).into_par_iter().map(start).collect::<Result<_>>()?;
    let (mut outcome, mut n_scans) = (Outcome::default(), FIRST_SCANS);
    let scan_cost =
        replicates.iter().map(|r| r.n_groups() as f64).sum::<f64>() * target.sweep_cost();
    let mut spent = 0.0;
    loop {
        let spread = target.sweep_cost();
        let run = |replicate: &mut Replicate<_>| replicate.round(n_scans, spread, observer);
        let found: Result<Vec<_>> = replicates.par_iter_mut().map(run).collect();
        let found = match found {
            Err(Error::Stopped) if !outcome.rounds.is_empty() => {
                outcome.stopped = true;
                return Ok(outcome);
            }
            found => found?,
        };
        outcome.add(&found, n_scans);
        observer.advance(1);
        spent += n_scans as f64 * scan_cost;
        n_scans *= 2;
        let enough = outcome.rounds.len() >= LEAST_ROUNDS;
        outcome.converged = enough && outcome.agrees(options.target_std_error);
        if outcome.converged || (enough && spent + n_scans as f64 * scan_cost > options.budget) {
            return Ok(outcome);
        }
    }
}

//! Replicates of the samplers of allocations.

use rayon::prelude::*;

use super::settings::{Sampler, Settings};
use crate::allocation::kernel::tempered::Allocated;
use crate::allocation::memory::Load;
use crate::allocation::model::problem::Problem;
use crate::allocation::particles::lookahead;
use crate::allocation::particles::responsibilities::Responsibilities;
use crate::allocation::particles::smc::{self, Keep};
use crate::allocation::tempering;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::rng::{Key, LANES, Purpose};
use crate::temper::{Options, Outcome};

/// ln Ẑ of a run, and the relative variance of Ẑ that the run itself knows of.
pub(super) type Run = (f64, f64);

/// ln Z: allocations of all tokens, summed, by independent replicates of a sampler; and the rounds
/// of tempering.
pub(super) fn ln_sum(
    problem: &Problem,
    sampler: Sampler,
    settings: &Settings,
    seed: u64,
    observer: &impl Observer,
) -> Result<(Estimate, Option<Outcome>)> {
    if sampler == Sampler::Tempered {
        let (outcome, _) = tempered(problem, settings, Kept::default(), seed, observer)?;
        return Ok((outcome.estimate(), Some(outcome)));
    }
    check_memory(problem, sampler, settings, settings.n_replicates())?;
    let one = |replicate| {
        let run = filtered(problem, sampler, settings, seed, replicate, observer);
        run.inspect(|_| observer.advance(1))
    };
    let runs: Vec<Run> =
        (0..settings.n_replicates()).into_par_iter().map(one).collect::<Result<_>>()?;
    Ok((of_runs(settings, &runs), None))
}

/// One replicate of a filter, with a stream of its own.
///
/// # Errors
/// [`Error::NoSampler`] for a sampler that is no filter; those of the filter.
pub(super) fn filtered(
    problem: &Problem,
    sampler: Sampler,
    settings: &Settings,
    seed: u64,
    replicate: usize,
    observer: &impl Observer,
) -> Result<Run> {
    let filter = settings.filter();
    let mut rng = Key::new(seed, Purpose::Score).unit(replicate as u64 + 1).rng();
    match sampler {
        Sampler::Smc => Ok(smc::run(problem, &filter, Keep::Used, &mut rng, observer)?.0),
        Sampler::SmcLookahead => {
            check_clique(problem)?;
            // Every run has expectations of its own, as none finds all modes.
            let expected = Responsibilities::new(problem, &mut rng, observer)?;
            Ok((lookahead::ln_sum(problem, &expected, &filter, &mut rng, observer)?, 0.0))
        }
        Sampler::Tempered => Err(Error::NoSampler),
    }
}

/// The estimate of all replicates of a filter.
pub(super) fn of_runs(settings: &Settings, runs: &[Run]) -> Estimate {
    // Particles run in whole groups.
    let n_particles = settings.filter().n_particles.div_ceil(LANES) * LANES;
    Estimate::from_runs(runs, n_particles * runs.len())
}

/// Refuses hidden nodes that are not summed out together.
fn check_clique(problem: &Problem) -> Result<()> {
    if !problem.is_joint() {
        let node = problem.summed().first().copied().unwrap_or(0);
        let problem = "is summed out apart from other nodes, or not by all tokens: smc-lookahead needs \
                       all hidden nodes in one clique, and tokens that show all axes";
        return Err(Error::Graph { node, problem });
    }
    Ok(())
}

/// Refuses more than so many replicates could hold at a time.
pub(super) fn check_memory(
    problem: &Problem,
    sampler: Sampler,
    settings: &Settings,
    n_replicates: usize,
) -> Result<()> {
    let (n_particles, load) = (settings.filter().n_particles, problem.load());
    let load = match sampler {
        Sampler::Smc => Load { n_particles, ..load },
        Sampler::SmcLookahead => {
            let n_shares = LANES * problem.n_cells() * problem.n_states();
            Load { n_particles, n_chains: LANES, n_shares, ..load }
        }
        Sampler::Tempered => return tempered_load(problem, n_replicates).check(1),
    };
    load.check(n_replicates)
}

/// All replicates of tempering: they are held at the same time, and the weights beside the counts.
fn tempered_load(problem: &Problem, n_replicates: usize) -> Load {
    let load = problem.load();
    Load { n_marginals: 3 * load.n_marginals, n_chains: LANES * n_replicates, ..load }
}

/// Draws that tempering keeps.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kept {
    /// Draws of each replicate, at most.
    pub(crate) n_each: usize,
    /// Numbers of four bytes that one of them holds, at most.
    pub(crate) n_of_draw: u64,
}

/// Tempering, and draws from the posterior by each replicate.
///
/// # Errors
/// [`Error::SamplerMemory`]; those of [`tempering::ln_sum`].
pub(crate) fn tempered(
    problem: &Problem,
    settings: &Settings,
    kept: Kept,
    seed: u64,
    observer: &impl Observer,
) -> Result<(Outcome, Vec<Vec<Allocated>>)> {
    let Kept { n_each, n_of_draw } = kept;
    let n_draws = n_each.saturating_mul(settings.n_replicates());
    let load = tempered_load(problem, settings.n_replicates());
    // The draws of two paths may be held.
    Load { n_draws, n_of_draw: n_of_draw.saturating_mul(2), ..load }.check(1)?;
    let mut options = options(problem, settings);
    // Rounds double: one of more than half the scans that are allowed is the longest.
    let longest = options.max_scans.map_or(usize::MAX, |most| most / 2 + 1);
    options.min_scans = options.min_scans.max(n_each.min(longest));
    tempering::ln_sum(problem, &options, n_each, Key::new(seed, Purpose::Score), observer)
}

/// Options of tempering with these settings.
pub(super) fn options(problem: &Problem, settings: &Settings) -> Options {
    let n_replicates = settings.n_replicates();
    Options {
        n_replicates,
        target_std_error: settings.target_std_error(),
        min_scans: tempering::LEAST_SCANS,
        max_scans: settings.n_samples,
        max_chains: tempering::max_chains(problem, n_replicates),
    }
}

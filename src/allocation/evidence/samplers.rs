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
type Run = (f64, f64);

/// ln Z: allocations of all tokens, summed, by independent replicates of a sampler; and the rounds
/// of tempering.
pub(super) fn ln_sum(
    problem: &Problem,
    sampler: Sampler,
    settings: &Settings,
    seed: u64,
    observer: &impl Observer,
) -> Result<(Estimate, Option<Outcome>)> {
    let n_replicates = settings.n_replicates();
    check_memory(problem, sampler, settings)?;
    let replicates =
        Replicates { problem, settings, key: Key::new(seed, Purpose::Score), observer };
    let (runs, n_draws) = match sampler {
        Sampler::Smc => (replicates.smc()?, settings.filter().n_particles),
        Sampler::SmcLookahead => (replicates.lookahead()?, settings.filter().n_particles),
        Sampler::Tempered => {
            let (outcome, _) = tempered(problem, settings, 0, seed, observer)?;
            return Ok((outcome.estimate(), Some(outcome)));
        }
    };
    // Particles and chains run in whole groups.
    let n_draws = n_draws.div_ceil(LANES) * LANES;
    Ok((Estimate::from_runs(&runs, n_draws * n_replicates), None))
}

/// Refuses what the replicates could not hold that run at a time.
fn check_memory(problem: &Problem, sampler: Sampler, settings: &Settings) -> Result<()> {
    let (n_particles, load) = (settings.filter().n_particles, problem.load());
    let load = match sampler {
        Sampler::Smc => Load { n_particles, ..load },
        Sampler::SmcLookahead => {
            let n_shares = LANES * problem.n_cells() * problem.n_states();
            Load { n_particles, n_chains: LANES, n_shares, ..load }
        }
        // All replicates are held at the same time, and the weights beside the counts.
        Sampler::Tempered => {
            let n_chains = LANES * settings.n_replicates();
            let n_marginals = 3 * load.n_marginals;
            return Load { n_marginals, n_chains, ..load }.check(1);
        }
    };
    load.check(settings.n_replicates())
}

struct Replicates<'a, O> {
    problem: &'a Problem,
    settings: &'a Settings,
    key: Key,
    observer: &'a O,
}

impl<O: Observer> Replicates<'_, O> {
    /// All replicates, each with a stream of its own.
    fn all(&self, run: impl Fn(Key) -> Result<Run> + Sync) -> Result<Vec<Run>> {
        let one = |replicate: usize| {
            run(self.key.unit(replicate as u64 + 1)).inspect(|_| self.observer.advance(1))
        };
        (0..self.settings.n_replicates()).into_par_iter().map(one).collect()
    }

    fn smc(&self) -> Result<Vec<Run>> {
        let (problem, filter) = (self.problem, self.settings.filter());
        self.all(|key| Ok(smc::run(problem, &filter, Keep::Used, &mut key.rng(), self.observer)?.0))
    }

    fn lookahead(&self) -> Result<Vec<Run>> {
        let (problem, filter) = (self.problem, self.settings.filter());
        if problem.plan.cliques.len() > 1 {
            let node = problem.plan.cliques[0].nodes[0];
            let problem = "is summed out apart from other hidden nodes: smc-lookahead needs \
                           all of them in one clique";
            return Err(Error::Graph { node, problem });
        }
        // Every run has expectations of its own, as none finds all modes.
        self.all(|key| {
            let mut rng = key.rng();
            let expected = Responsibilities::new(problem, &mut rng, self.observer)?;
            Ok((lookahead::ln_sum(problem, &expected, &filter, &mut rng, self.observer)?, 0.0))
        })
    }
}

/// Tempering, and up to `n_kept` draws from the posterior by each replicate.
///
/// # Errors
/// [`Error::SamplerMemory`]; those of [`tempering::ln_sum`].
pub(crate) fn tempered(
    problem: &Problem,
    settings: &Settings,
    n_kept: usize,
    seed: u64,
    observer: &impl Observer,
) -> Result<(Outcome, Vec<Vec<Allocated>>)> {
    check_memory(problem, Sampler::Tempered, settings)?;
    let n_replicates = settings.n_replicates();
    let options = Options {
        n_replicates,
        target_std_error: settings.target_std_error(),
        max_scans: settings.n_samples,
        max_chains: tempering::max_chains(problem, n_replicates),
    };
    tempering::ln_sum(problem, &options, n_kept, Key::new(seed, Purpose::Score), observer)
}

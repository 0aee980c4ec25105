//! Evidence of a tensor under a network, all tables and allocations summed out.

use rayon::prelude::*;

use super::annealing::chains::Annealing;
use super::exact::enumeration;
use super::model::problem::Problem;
use super::particles::lookahead;
use super::particles::responsibilities::Responsibilities;
use super::particles::smc::{self, Filter, Keep};
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::rng::{Key, LANES, Purpose};

/// How the allocations are summed out.
#[derive(Debug, Clone, PartialEq)]
pub enum Algorithm {
    /// Enumeration of merged allocations, up to a budget of multiply-adds.
    Exact {
        /// The budget.
        budget: f64,
    },
    /// Sequential importance sampling with resampling.
    Filter(Filter),
    /// The same, looking ahead along what a Gibbs run expects of the tokens to come.
    Lookahead(Filter),
    /// Annealed populations of Gibbs chains.
    Annealed {
        /// Chains of a population, rounded up to a multiple of 16.
        n_chains: usize,
        /// Temperatures, one Gibbs sweep each.
        n_temperatures: usize,
    },
}

/// ln Pr(X | T), the probability of the tensor given its total.
///
/// # Errors
/// [`Error::Range`]; those of the algorithm: a budget passed, too many particles, a stop.
pub fn ln_probability(
    problem: &Problem,
    algorithm: &Algorithm,
    n_replicates: usize,
    seed: u64,
    observer: &impl Observer,
) -> Result<Estimate> {
    let constant = problem.ln_visible + problem.ln_arrangements;
    if problem.n_states() == 0 || problem.n_tokens() == 0 {
        return Ok(Estimate::exact(constant));
    }
    problem.check_range()?;
    let key = Key::new(seed, Purpose::Score);
    // ln Ẑ, and the relative variance that a run itself knows of.
    let replicate = |run: &(dyn Fn(usize) -> Result<(f64, f64)> + Sync)| -> Result<Vec<_>> {
        let one = |replicate| run(replicate).inspect(|_| observer.advance(1));
        (0..n_replicates).into_par_iter().map(one).collect()
    };
    let rng = |replicate: usize| key.unit(replicate as u64 + 1).rng();
    let (replicates, n_draws) = match algorithm {
        Algorithm::Exact { budget } => {
            let ln_sum = enumeration::ln_sum(problem, *budget, observer)?;
            return Ok(Estimate::exact(ln_sum + constant));
        }
        Algorithm::Filter(filter) => {
            let run = |r| Ok(smc::run(problem, filter, Keep::Used, &mut rng(r), observer)?.0);
            (replicate(&run)?, whole_groups(filter.n_particles))
        }
        Algorithm::Lookahead(filter) => {
            if problem.plan.cliques.len() > 1 {
                let node = problem.plan.cliques[0].nodes[0];
                let problem = "is summed out apart from other hidden nodes: smc-lookahead needs \
                               all of them in one clique";
                return Err(Error::Graph { node, problem });
            }
            // Every run has expectations of its own, as none finds all modes.
            let run = |r| {
                let mut rng = rng(r);
                let expected = Responsibilities::new(problem, &mut rng, observer)?;
                Ok((lookahead::ln_sum(problem, &expected, filter, &mut rng, observer)?, 0.0))
            };
            (replicate(&run)?, whole_groups(filter.n_particles))
        }
        Algorithm::Annealed { n_chains, n_temperatures } => {
            let annealing = Annealing::new(problem, *n_temperatures, key.unit(0), observer)?;
            let n_groups = n_chains.div_ceil(LANES);
            let run = |r| Ok((annealing.ln_sum(n_groups, key.unit(r as u64 + 1), observer)?, 0.0));
            (replicate(&run)?, whole_groups(*n_chains))
        }
    };
    Ok(Estimate::from_runs(&replicates, n_draws * n_replicates).scaled(constant))
}

/// Particles and chains that run where so many are asked for.
fn whole_groups(n: usize) -> usize {
    n.div_ceil(LANES) * LANES
}

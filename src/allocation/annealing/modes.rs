//! Modes of the posterior of allocations, for annealing to start from.

use super::annealed::Pilot;
use crate::allocation::kernel::chains::Chains;
use crate::allocation::kernel::counts::Target;
use crate::allocation::model::problem::Problem;
use crate::allocation::particles::smc::{self, Filter, Keep, TokenOrder};
use crate::control::Observer;
use crate::error::Result;
use crate::math::Resampling;
use crate::rng::{Key, LANES, Uniforms};
use crate::urn::Order;

/// Sweeps over which chains are cooled, as a share of the temperatures of a replicate.
const COOLING: usize = 4;

/// Temperatures of the first runs, from all candidates, as a share.
const FIRST: usize = 160;

/// Temperatures of the second runs, from the best of them, as a share.
const SECOND: usize = 12;

/// Runs of the filter, each of which proposes one of its particles.
const N_FILTERS: usize = 8;

const FILTER: Filter = Filter {
    n_particles: 128,
    threshold: 1.0,
    resampling: Resampling::Systematic,
    order: TokenOrder::Random,
};

/// Sweeps over which the counts of a chain are averaged, as a share of those of cooling.
const AVERAGED: usize = 20;

/// Share of the tokens that a mode spreads evenly over all hidden values: none is ruled out.
const EVEN_SHARE: f64 = 0.05;

/// A mode by its expected marginal counts, and a population that started from there.
pub(crate) struct Mode<'a> {
    pub(crate) rows: Vec<f64>,
    pub(crate) pilot: Pilot<'a, Uniforms>,
}

/// Up to `n_modes` modes: of chains that were cooled and of filtered particles, those from which a
/// first run finds most. Each then moves to where that run has ended.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub(crate) fn find<'a>(
    problem: &'a Problem,
    n_modes: usize,
    n_temperatures: usize,
    key: Key,
    observer: &impl Observer,
) -> Result<Vec<Mode<'a>>> {
    let average = problem.average();
    let explore = |counts: &[f64], n: usize, key: Key| -> Result<Mode<'a>> {
        let pairs = counts.iter().zip(&average);
        let rows = pairs.map(|(n, even)| (1.0 - EVEN_SHARE) * n + EVEN_SHARE * even);
        let rows: Vec<f64> = rows.collect();
        let pilot =
            Pilot::new(problem, &rows, n_temperatures.div_ceil(n), &mut key.rng(), observer)?;
        Ok(Mode { rows, pilot })
    };
    let n_sweeps = n_temperatures.div_ceil(COOLING);
    let mut candidates = cooled(problem, n_sweeps, key.unit(0), observer)?;
    candidates.extend(filtered(problem, key.unit(1), observer)?);
    let first = |(candidate, counts): (usize, Vec<f64>)| {
        let pilot = explore(&counts, FIRST, key.unit(2).unit(candidate as u64))?.pilot;
        Ok((pilot.ln_value(), pilot.mean_rows()))
    };
    let mut found: Vec<(f64, Vec<f64>)> =
        candidates.into_iter().enumerate().map(first).collect::<Result<_>>()?;
    found.sort_by(|x, y| y.0.total_cmp(&x.0));
    found.truncate(n_modes);
    let second = |(mode, (_, counts)): (usize, &(f64, Vec<f64>))| {
        explore(counts, SECOND, key.unit(3).unit(mode as u64))
    };
    found.iter().enumerate().map(second).collect()
}

/// Counts of chains that are cooled from independent tokens, averaged over some sweeps.
fn cooled(
    problem: &Problem,
    n_sweeps: usize,
    key: Key,
    observer: &impl Observer,
) -> Result<Vec<Vec<f64>>> {
    let alphas = problem.alphas();
    let mut chains = Chains::uniform(problem, &mut key.rng(), observer)?;
    chains.anneal(n_sweeps, || (), observer)?;
    let mut sums = vec![[0.0; LANES]; problem.n_rows];
    let n_averaged = n_sweeps.div_ceil(AVERAGED);
    for _ in 0..n_averaged {
        chains.sweep(Target { base: &alphas, unit: 1.0 }, Order::Forward, observer)?;
        for (sums, counts) in sums.iter_mut().zip(chains.rows()) {
            sums.iter_mut().zip(counts).for_each(|(sum, &n)| *sum += f64::from(n));
        }
    }
    let of_lane = |lane| sums.iter().map(|sums| sums[lane] / n_averaged as f64).collect();
    Ok((0..LANES).map(of_lane).collect())
}

/// Counts of a particle of each of several filters: of equal weight, as all have been resampled before
/// the last token.
fn filtered(problem: &Problem, key: Key, observer: &impl Observer) -> Result<Vec<Vec<f64>>> {
    let run = |filter| {
        let mut rng = key.unit(filter).rng();
        Ok(smc::run(problem, &FILTER, Keep::All, &mut rng, observer)?.1.counts_of(problem, 0))
    };
    (0..N_FILTERS as u64).map(run).collect()
}

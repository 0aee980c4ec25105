//! The start of a ladder: an annealing pass that finds the barrier, and equilibration at the target.

use super::barrier::Barrier;
use super::target::LadderChains;
use crate::control::Observer;
use crate::error::Result;
use crate::rng::{LANES, Lanes};

/// Barrier that a step of the annealing pass crosses.
const PILOT_STEP: f64 = 0.25;

/// Steps of the annealing pass at most.
const MAX_PILOT: usize = 4_000;

/// Sweeps at the target before its values are first compared.
const FIRST_EQUILIBRATION: usize = 8;

/// Anneals chains in lockstep from the reference to the target, in steps that cross equal parts of
/// the barrier: half the mean difference of V between two draws, times the step in β.
pub(super) fn pilot(chains: &mut impl LadderChains, observer: &dyn Observer) -> Result<Barrier> {
    let (mut betas, mut crossed) = (vec![0.0], Vec::new());
    let mut beta = 0.0;
    chains.sweep([beta; LANES], observer)?;
    while beta < 1.0 {
        let slope = 0.5 * mean_difference(chains.values());
        let left = MAX_PILOT - crossed.len();
        let step = (PILOT_STEP / slope).max((1.0 - beta) / left as f64).min(1.0 - beta);
        beta = if step < 1.0 - beta { beta + step } else { 1.0 };
        betas.push(beta);
        crossed.push(slope * step);
        chains.sweep([beta; LANES], observer)?;
    }
    Ok(Barrier::new(&betas, &crossed))
}

/// Sweeps chains in lockstep at the target, in rounds of doubling length, until V rises no more than by
/// chance, `most` times at most.
pub(super) fn equilibrate(
    chains: &mut impl LadderChains,
    most: usize,
    observer: &dyn Observer,
) -> Result<()> {
    let (mut n_sweeps, mut left) = (FIRST_EQUILIBRATION, most);
    let mut before: Option<Lanes> = None;
    while n_sweeps <= left {
        let mut means = [0.0; LANES];
        for _ in 0..n_sweeps {
            chains.sweep([1.0; LANES], observer)?;
            means
                .iter_mut()
                .zip(chains.values())
                .for_each(|(mean, x)| *mean += x / n_sweeps as f64);
        }
        if before.is_some_and(|before| !rises(&before, &means)) {
            break;
        }
        before = Some(means);
        left -= n_sweeps;
        n_sweeps *= 2;
    }
    Ok(())
}

/// Whether numbers have risen by more than the standard error of their mean rise.
fn rises(before: &Lanes, after: &Lanes) -> bool {
    let n = LANES as f64;
    let rise: Lanes = std::array::from_fn(|lane| after[lane] - before[lane]);
    let mean = rise.iter().sum::<f64>() / n;
    let squares: f64 = rise.iter().map(|x| (x - mean).powi(2)).sum();
    mean > (squares / (n * (n - 1.0))).sqrt()
}

/// Mean of |x - y| over pairs of lanes.
fn mean_difference(mut values: Lanes) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = LANES as f64;
    let weight = |rank: usize| 2.0 * rank as f64 - (n - 1.0);
    let sum: f64 = values.iter().enumerate().map(|(rank, value)| weight(rank) * value).sum();
    sum / (0.5 * n * (n - 1.0))
}

//! Sequential importance sampling of allocations, with resampling (Alg. 1 to 3).

use rand::seq::SliceRandom as _;

use super::kernel::{self, Rows, States, Target};
use super::particles::{Particles, moves};
use super::problem::Problem;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::Resampling;
use crate::rng::{LANES, Lanes, Stream};

/// In which order the tokens are drawn. Unbiased for any; the variance depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenOrder {
    /// Shuffled, anew for every replicate.
    Random,
    /// Cell after cell.
    Sorted,
    /// Cells in this order.
    Given(Vec<u32>),
}

/// Options of the particle filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// Particles of a replicate, rounded up to a multiple of 16.
    pub n_particles: usize,
    /// Effective share of the particles below which they are resampled: 0 never (SIS), 1 always.
    pub threshold: f64,
    /// How.
    pub resampling: Resampling,
    /// In which order the tokens come.
    pub order: TokenOrder,
}

/// Cells of the tokens in the order in which they are drawn.
///
/// # Errors
/// Those of [`Problem::tokens`].
pub(super) fn ordered(
    problem: &Problem,
    order: &TokenOrder,
    rng: &mut impl rand::Rng,
) -> Result<Vec<u32>> {
    let mut tokens = problem.tokens()?;
    match order {
        TokenOrder::Random => tokens.shuffle(rng),
        TokenOrder::Sorted => {}
        TokenOrder::Given(cells) => {
            let copies =
                |&cell: &u32| std::iter::repeat_n(cell, problem.counts[cell as usize] as usize);
            tokens = cells.iter().flat_map(copies).collect();
        }
    }
    Ok(tokens)
}

/// What a run keeps of its particles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// All their counts.
    All,
    /// Counts that a later token reads.
    Used,
}

/// ln Ẑ of one run, and its particles. Unbiased.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub(super) fn run(
    problem: &Problem,
    filter: &Filter,
    keep: Keep,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<(f64, Particles)> {
    let plan = &problem.plan;
    let tokens = ordered(problem, &filter.order, rng)?;
    let n_groups = filter.n_particles.div_ceil(LANES);
    let forgets = (keep == Keep::Used).then_some(&tokens[..]);
    let mut particles = Particles::new(problem, n_groups, forgets)?;
    let mut lanes: Vec<_> = (0..n_groups).map(|_| rng.lanes()).collect();
    let mut sums = vec![[0.0; LANES]; plan.n_states];
    let mut states: Vec<States> = vec![[0; LANES]; plan.cliques.len()];
    let mut weights: Vec<Lanes> = vec![[1.0; LANES]; n_groups];
    let mut ln_value = 0.0;
    for (token, &cell) in tokens.iter().enumerate() {
        if observer.stopped() {
            return Err(Error::Stopped);
        }
        particles.open(problem.bases(cell));
        let bases = &particles.bases;
        let target = Target { base: &particles.base, unit: 1.0 };
        for (group, uniforms) in lanes.iter_mut().enumerate() {
            let mut rows = Rows { counts: &mut particles.rows, n_groups, group };
            let weight = kernel::weigh(plan, bases, target, &rows, &mut sums);
            kernel::pick(plan, &sums, uniforms, &mut states);
            kernel::add(plan, bases, &mut rows, &states, 1);
            weights[group].iter_mut().zip(weight).for_each(|(total, x)| *total *= x);
        }
        particles.close(problem.bases(cell), token);
        ln_value += rescale(&mut weights);
        if token + 1 < tokens.len()
            && n_eff(&weights) < filter.threshold * (n_groups * LANES) as f64
        {
            let flat = weights.as_flattened();
            ln_value += (flat.iter().sum::<f64>() / flat.len() as f64).ln();
            particles.resample(&moves(&filter.resampling.ancestors(flat, rng)));
            weights.fill([1.0; LANES]);
        }
    }
    let flat = weights.as_flattened();
    Ok((ln_value + (flat.iter().sum::<f64>() / flat.len() as f64).ln(), particles))
}

/// Multiplies the weights so that the largest is 1; returns ln of what was taken out.
pub(super) fn rescale(weights: &mut [Lanes]) -> f64 {
    let flat = weights.as_flattened_mut();
    let largest = flat.iter().copied().fold(0.0, f64::max);
    let factor = largest.recip();
    flat.iter_mut().for_each(|weight| *weight *= factor);
    largest.ln()
}

/// Effective number of particles (Σw)²/Σw².
pub(super) fn n_eff(weights: &[Lanes]) -> f64 {
    let (mut sum, mut squares) = ([0.0; LANES], [0.0; LANES]);
    for weights in weights {
        for lane in 0..LANES {
            sum[lane] += weights[lane];
            squares[lane] += weights[lane] * weights[lane];
        }
    }
    sum.iter().sum::<f64>().powi(2) / squares.iter().sum::<f64>()
}

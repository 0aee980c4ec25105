//! The integral over one or two dimensions by the trapezoidal rule, which converges faster than any
//! power of its step for integrands that are smooth and fall off on all sides.

use std::collections::HashSet;

use super::decoder::{Link, Local};
use super::fit::laplace;
use super::target::{Gaussian, NormalPrior, Potential, PotentialScratch};
use crate::control::Observer;
use crate::error::Result;
use crate::math::LogSum;
use crate::rng::{LANES, Lanes};

/// Dimensions up to which the lattice is used.
pub(super) const MOST_DIMENSIONS: usize = 2;

/// How far below its largest value, in nats, the integrand is left out: less than rounding.
const DEPTH: f64 = 42.0;

/// Relative change under halved steps at which the integral has converged.
const TOLERANCE: f64 = 1e-11;

/// Points of the finest lattice.
const MOST_POINTS: usize = 1 << 21;

/// Starts of the search for modes: prior mean, and points three deviations off.
const STARTS: [[f64; 2]; 9] = [
    [0.0, 0.0],
    [3.0, 0.0],
    [-3.0, 0.0],
    [0.0, 3.0],
    [0.0, -3.0],
    [3.0, 3.0],
    [3.0, -3.0],
    [-3.0, 3.0],
    [-3.0, -3.0],
];

type Point = [i32; MOST_DIMENSIONS];

/// ln ∫ p(tokens | η) N(z; 0, I) dz, and the change at the last halving of the step. None where the
/// prior is so much wider than the likelihood's modes that the coarsest lattice has too many points.
pub(super) fn ln_integral(
    decoder: &Local<'_>,
    link: Link,
    prior: &NormalPrior<'_>,
    observer: &dyn Observer,
) -> Result<Option<(f64, f64)>> {
    let rank = prior.rank;
    let modes: Vec<Gaussian> = STARTS
        .iter()
        .filter(|start| start[rank..].iter().all(|&x| x == 0.0))
        .map(|start| laplace(decoder, link, prior, &start[..rank]))
        .collect();
    let target = Potential::new(decoder, link, prior, &modes[0]);
    let seeds: Vec<Vec<f64>> = modes.iter().map(|mode| modes[0].coordinates(&mode.mean)).collect();
    let mut step = 0.5;
    let mut before = f64::NAN;
    loop {
        let Some((found, n_points)) = sum(&target, &seeds, step, observer)? else {
            return Ok(None);
        };
        let change = (found - before).abs();
        if change < TOLERANCE || n_points * (1 << rank) > MOST_POINTS {
            return Ok(Some((found, change)));
        }
        (before, step) = (found, 0.5 * step);
    }
}

/// ln of the sum over all lattice points that hang together with the seeds, and their number, unless
/// that is too large.
fn sum(
    target: &Potential<'_>,
    seeds: &[Vec<f64>],
    step: f64,
    observer: &dyn Observer,
) -> Result<Option<(f64, usize)>> {
    let rank = target.rank;
    let mut reached = HashSet::new();
    let mut open: Vec<Point> = Vec::new();
    for seed in seeds {
        let mut point = [0; MOST_DIMENSIONS];
        point.iter_mut().zip(seed).for_each(|(p, u)| *p = (u / step).round() as i32);
        if reached.insert(point) {
            open.push(point);
        }
    }
    let (mut total, mut largest) = (LogSum::default(), f64::NEG_INFINITY);
    let (mut room, mut gradient) = (PotentialScratch::default(), vec![[0.0; LANES]; rank]);
    let mut n_points = 0;
    while !open.is_empty() {
        observer.check_stop()?;
        if n_points > MOST_POINTS {
            return Ok(None);
        }
        let batch = open.split_off(open.len().saturating_sub(LANES));
        // Lanes beyond the batch repeat its first point, and are not read.
        let at = |i: usize| -> Lanes {
            std::array::from_fn(|lane| step * f64::from(batch.get(lane).unwrap_or(&batch[0])[i]))
        };
        let u: Vec<Lanes> = (0..rank).map(at).collect();
        let values = target.evaluate(&u, &mut gradient, &mut room);
        for (lane, point) in batch.iter().enumerate() {
            let ln_density = values[lane] - 0.5 * u.iter().map(|u| u[lane] * u[lane]).sum::<f64>();
            largest = largest.max(ln_density);
            total.push(ln_density);
            n_points += 1;
            if ln_density < largest - DEPTH {
                continue;
            }
            for axis in 0..rank {
                for side in [-1, 1] {
                    let mut neighbour = *point;
                    neighbour[axis] += side;
                    if reached.insert(neighbour) {
                        open.push(neighbour);
                    }
                }
            }
        }
    }
    let ln_cell = rank as f64 * (step.ln() - 0.5 * (2.0 * std::f64::consts::PI).ln());
    Ok(Some((total.ln_sum() + ln_cell, n_points)))
}

//! Annealed importance sampling (Neal 2001) from the fitted Gaussian to the posterior, along
//! N(u; 0, I) exp(β V(u)): sixteen chains at once, unbiased in p for any number of temperatures.

use super::target::Potential;
use super::walk::Walk;
use crate::control::Observer;
use crate::error::Result;
use crate::rng::{LANES, Lanes, Rng};

/// β of the i-th of n temperatures is (i/n)^1.5: finer near the Gaussian, where a few starts lie far
/// out. Of the powers 1, 1.5 and 2, this had the smallest errors with 50 and 100 topics.
const POWER: f64 = 1.5;

/// Temperatures of the first pilot.
const PILOT: usize = 32;

/// Standard deviation of ln of one weight that the number of temperatures is chosen for: with sixteen
/// chains, an error of a twelfth of a nat.
pub(super) const DEVIATION: f64 = 0.33;

/// Deviation above which a pilot tells nothing but that it was too short.
const UNINFORMATIVE: f64 = 2.0;

/// Temperatures at most.
const MOST: usize = 1 << 13;

/// ln of the weights of sixteen chains, and the chains at their ends.
pub(super) fn ln_weights(
    target: &Potential<'_>,
    n_temperatures: usize,
    angle: f64,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<(Lanes, Walk)> {
    let mut walk = Walk::draw(target, rng);
    let mut ln_weights = [0.0; LANES];
    let beta = |i: usize| (i as f64 / n_temperatures as f64).powf(POWER);
    for i in 0..n_temperatures {
        observer.check_stop()?;
        if i > 0 {
            walk.step(target, beta(i), angle, rng);
        }
        let (step, values) = (beta(i + 1) - beta(i), walk.values());
        for lane in 0..LANES {
            ln_weights[lane] += step * values[lane];
        }
    }
    Ok((ln_weights, walk))
}

/// Temperatures after which ln of a weight deviates by [`DEVIATION`]: found by pilots, since the variance
/// falls as the inverse of their number.
pub(super) fn n_temperatures(
    target: &Potential<'_>,
    angle: f64,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<usize> {
    let mut n = PILOT;
    loop {
        let (ln_weights, _) = ln_weights(target, n, angle, rng, observer)?;
        let found = standard_deviation(&ln_weights);
        if found < UNINFORMATIVE || n >= MOST {
            let ratio = found / DEVIATION;
            return Ok(((n as f64 * ratio * ratio) as usize).clamp(PILOT, MOST));
        }
        n *= 4;
    }
}

/// Standard deviation of sixteen numbers.
pub(super) fn standard_deviation(x: &Lanes) -> f64 {
    let mean = x.iter().sum::<f64>() / LANES as f64;
    (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (LANES - 1) as f64).sqrt()
}

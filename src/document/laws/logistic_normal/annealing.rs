//! Annealed importance sampling (Neal 2001) from a Gaussian, fitted or the prior, to the posterior,
//! along N(u; 0, I) exp(β V(u)): sixteen chains at once, unbiased in p for any number of
//! temperatures.

use std::f64::consts::FRAC_PI_2;

use rand::RngExt as _;

use super::target::{Gaussian, Potential};
use super::walk::Walk;
use crate::control::Observer;
use crate::error::Result;
use crate::estimate::Estimate;
use crate::math::variance;
use crate::rng::{LANES, Lanes, Rng};

/// Path of annealing from a Gaussian to the posterior.
pub(super) struct Path {
    pub(super) start: Start,
    pub(super) gaussian: Gaussian,
    /// Turn of a step at the posterior.
    pub(super) angle: f64,
}

/// The Gaussian at which annealing starts.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Start {
    /// Fitted to the posterior.
    Fitted,
    Prior,
}

impl Path {
    /// β of the i-th of n temperatures, a power of i/n: finer near the start, where a few chains
    /// lie far out. Of 1, 1.5 and 2 the second had the smallest errors from a fit (50 and 100
    /// topics), of 1.5, 3 and 5 the second from the prior (3 and 20 topics, variances of 100 and
    /// 10,000).
    fn beta(&self, i: usize, n_temperatures: usize) -> f64 {
        let power = if self.start == Start::Fitted { 1.5 } else { 3.0 };
        (i as f64 / n_temperatures as f64).powf(power)
    }

    /// Turn of a step at β. Where V has a curvature c, steps from the prior have the length of
    /// 1/√(1 + βc), and `angle` tells c; all turns from there to a quarter, which forgets the
    /// state, are as probable: short ones in the directions that tokens tell, long ones from one
    /// topic to another.
    fn turn(&self, beta: f64, rng: &mut Rng) -> f64 {
        match self.start {
            Start::Fitted => self.angle,
            Start::Prior => {
                let curvature = (FRAC_PI_2 / self.angle).powi(2) - 1.0;
                let shrink = 0.5 * (beta * curvature).ln_1p();
                FRAC_PI_2 * (-shrink * rng.random::<f64>()).exp()
            }
        }
    }
}

/// Temperatures of the first pilot.
const PILOT: usize = 32;

/// Standard deviation of ln of one weight that the number of temperatures is chosen for: with sixteen
/// chains, an error of a tenth of a nat.
const DEVIATION: f64 = 0.4;

/// Power of the number of temperatures with which the variance of ln of a weight falls, from 32 to
/// 2,048 of them with 20 and 50 topics; the 1 of theory comes later, where chains pass between
/// modes in time.
const FALL: f64 = 0.8;

/// Deviation above which a pilot tells nothing but that it was too short.
const UNINFORMATIVE: f64 = 2.0;

/// Temperatures at most.
const MOST: usize = 1 << 13;

/// ln of the weights of sixteen chains, and the chains at their ends.
pub(super) fn ln_weights(
    target: &Potential<'_>,
    n_temperatures: usize,
    path: &Path,
    rng: &mut Rng,
    observer: &dyn Observer,
) -> Result<(Lanes, Walk)> {
    let mut walk = Walk::draw(target, rng);
    let mut ln_weights = [0.0; LANES];
    for i in 0..n_temperatures {
        observer.check_stop()?;
        if i > 0 {
            let beta = path.beta(i, n_temperatures);
            let angle = path.turn(beta, rng);
            walk.step(target, beta, angle, rng);
        }
        add_step(&mut ln_weights, path, i, n_temperatures, &walk);
    }
    Ok((ln_weights, walk))
}

/// The same backwards, from chains at the posterior: the inverse weights are unbiased for 1/p.
pub(super) fn ln_weights_reversed(
    target: &Potential<'_>,
    n_temperatures: usize,
    path: &Path,
    mut walk: Walk,
    rng: &mut Rng,
    observer: &dyn Observer,
) -> Result<Lanes> {
    let mut ln_weights = [0.0; LANES];
    for i in (0..n_temperatures).rev() {
        observer.check_stop()?;
        add_step(&mut ln_weights, path, i, n_temperatures, &walk);
        if i > 0 {
            let beta = path.beta(i, n_temperatures);
            let angle = path.turn(beta, rng);
            walk.step(target, beta, angle, rng);
        }
    }
    Ok(ln_weights)
}

/// Adds the change of ln of the density from the i-th temperature to the next.
fn add_step(ln_weights: &mut Lanes, path: &Path, i: usize, n_temperatures: usize, walk: &Walk) {
    let step = path.beta(i + 1, n_temperatures) - path.beta(i, n_temperatures);
    for (ln_weight, value) in ln_weights.iter_mut().zip(walk.value) {
        *ln_weight += step * value;
    }
}

/// How to anneal a document.
pub(super) struct Plan {
    pub(super) n_temperatures: usize,
    /// Variance of ln of one weight; 0 where it is not known.
    pub(super) variance: f64,
}

impl Plan {
    /// Temperatures after which ln of a weight deviates by [`DEVIATION`], found by pilots.
    pub(super) fn from_pilots(
        target: &Potential<'_>,
        path: &Path,
        rng: &mut Rng,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let mut n = PILOT;
        loop {
            let Plan { variance, .. } = Plan::from_pilot(target, n, path, rng, observer)?;
            if variance < UNINFORMATIVE * UNINFORMATIVE || n >= MOST {
                let ratio = (variance / (DEVIATION * DEVIATION)).powf(FALL.recip());
                let n_temperatures = ((n as f64 * ratio) as usize).clamp(PILOT, MOST);
                let fall = (n as f64 / n_temperatures as f64).powf(FALL);
                return Ok(Plan { n_temperatures, variance: variance * fall });
            }
            n *= 4;
        }
    }

    /// So many temperatures, with the variance of a pilot.
    pub(super) fn from_pilot(
        target: &Potential<'_>,
        n_temperatures: usize,
        path: &Path,
        rng: &mut Rng,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let (ln_weights, _) = ln_weights(target, n_temperatures, path, rng, observer)?;
        Ok(Plan { n_temperatures, variance: variance(&ln_weights) })
    }

    /// The mean of weights. Its error is at least that of the plan: where few chains see a mode of
    /// large weight, estimate and spread are both low, and pilots are independent of them.
    pub(super) fn estimate(&self, ln_weights: &[f64]) -> Estimate {
        let n_draws = self.n_temperatures * ln_weights.len();
        let runs: Vec<_> = ln_weights.iter().map(|&x| (x, self.relative_variance())).collect();
        Estimate::from_runs(&runs, n_draws)
    }

    /// Variance of a weight over the mean of its square.
    fn relative_variance(&self) -> f64 {
        -(-self.variance).exp_m1()
    }
}

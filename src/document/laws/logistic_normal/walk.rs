//! Sixteen Markov chains on N(u; 0, I) exp(β V(u)): Hamiltonian steps that turn in the Gaussian
//! exactly (Beskos, Pinski, Sanz-Serna, Stuart 2011), so that a flat V is never refused.

use rand::RngExt as _;
use rand_distr::StandardNormal;

use super::target::{Potential, PotentialScratch};
use crate::rng::{LANES, Lanes, Rng};

/// Acceptance at which an angle is kept while it is tuned (Roberts & Rosenthal 1998, for steps along
/// the gradient).
const ACCEPTANCE: f64 = 0.6;

/// States of the chains, with V and its gradient there.
pub(super) struct Walk {
    pub(super) u: Vec<Lanes>,
    pub(super) value: Lanes,
    gradient: Vec<Lanes>,
    momentum: Vec<Lanes>,
    proposal: Vec<Lanes>,
    slope: Vec<Lanes>,
    pub(super) room: PotentialScratch,
}

impl Walk {
    /// Independent draws of N(0, I).
    pub(super) fn draw(target: &Potential<'_>, rng: &mut Rng) -> Self {
        let u = (0..target.rank).map(|_| normals(rng)).collect();
        Walk::at(target, u)
    }

    /// Chains at given points.
    pub(super) fn at(target: &Potential<'_>, u: Vec<Lanes>) -> Self {
        let zeros = vec![[0.0; LANES]; u.len()];
        let mut walk = Walk {
            value: [0.0; LANES],
            gradient: zeros.clone(),
            momentum: zeros.clone(),
            proposal: zeros.clone(),
            slope: zeros,
            room: PotentialScratch::default(),
            u,
        };
        walk.value = target.evaluate(&walk.u, &mut walk.gradient, &mut walk.room);
        walk
    }

    /// Evaluates the states again, for what [`Potential`] reads off an evaluation.
    pub(super) fn look(&mut self, target: &Potential<'_>) {
        self.value = target.evaluate(&self.u, &mut self.gradient, &mut self.room);
    }

    /// One step of every chain, reversible under N(u; 0, I) exp(β V): half a kick, a turn by `angle`,
    /// half a kick, accepted or refused. Returns the mean probability of acceptance.
    pub(super) fn step(
        &mut self,
        target: &Potential<'_>,
        beta: f64,
        angle: f64,
        rng: &mut Rng,
    ) -> f64 {
        let (sin, cos) = (libm::sin(angle), libm::cos(angle));
        // Exact for V linear in u, to the second order in the angle for others.
        let kick = beta * libm::tan(0.5 * angle);
        let kicks = clipped(kick, &self.gradient);
        let mut energy = [0.0; LANES];
        for (i, momentum) in self.momentum.iter_mut().enumerate() {
            *momentum = normals(rng);
            let (u, slope, proposal) = (&self.u[i], &self.gradient[i], &mut self.proposal[i]);
            for lane in 0..LANES {
                energy[lane] += u[lane] * u[lane] + momentum[lane] * momentum[lane];
                let kicked = momentum[lane] + kicks[lane] * slope[lane];
                proposal[lane] = u[lane] * cos + kicked * sin;
                momentum[lane] = kicked * cos - u[lane] * sin;
            }
        }
        let value = target.evaluate(&self.proposal, &mut self.slope, &mut self.room);
        let kicks = clipped(kick, &self.slope);
        for (i, momentum) in self.momentum.iter().enumerate() {
            let (u, slope) = (&self.proposal[i], &self.slope[i]);
            for lane in 0..LANES {
                let kicked = momentum[lane] + kicks[lane] * slope[lane];
                energy[lane] -= u[lane] * u[lane] + kicked * kicked;
            }
        }
        let mut mean = 0.0;
        for lane in 0..LANES {
            let ln_ratio = beta * (value[lane] - self.value[lane]) + 0.5 * energy[lane];
            // Not a number where the proposal left the range of doubles: refused.
            let probability = if ln_ratio >= 0.0 { 1.0 } else { ln_ratio.exp() };
            mean += if probability.is_nan() { 0.0 } else { probability } / LANES as f64;
            if rng.random::<f64>() < probability {
                self.value[lane] = value[lane];
                for i in 0..self.u.len() {
                    self.u[i][lane] = self.proposal[i][lane];
                    self.gradient[i][lane] = self.slope[i][lane];
                }
            }
        }
        mean
    }
}

/// The angle that keeps acceptance near [`ACCEPTANCE`], by Robbins and Monro's recursion.
pub(super) struct Angle {
    ln_angle: f64,
    n_steps: f64,
}

impl Angle {
    pub(super) fn new() -> Self {
        Angle { ln_angle: 0.0, n_steps: 0.0 }
    }

    pub(super) fn value(&self) -> f64 {
        self.ln_angle.exp()
    }

    pub(super) fn learn(&mut self, acceptance: f64) {
        self.n_steps += 1.0;
        let gain = 2.0 / (1.0 + self.n_steps).powf(0.6);
        // A quarter turn forgets the state: no larger angle is better.
        let largest = std::f64::consts::FRAC_PI_2.ln();
        self.ln_angle = (self.ln_angle + gain * (acceptance - ACCEPTANCE)).min(largest);
    }
}

fn normals(rng: &mut Rng) -> Lanes {
    std::array::from_fn(|_| rng.sample(StandardNormal))
}

/// The factor of the gradient in a kick of every lane: no kick is longer than a typical momentum, since
/// one into a wall would be refused for ever. Kicks by any function of the position keep the step
/// reversible and of volume one.
fn clipped(kick: f64, gradient: &[Lanes]) -> Lanes {
    let mut squares = [0.0; LANES];
    for slope in gradient {
        for lane in 0..LANES {
            squares[lane] += slope[lane] * slope[lane];
        }
    }
    let longest = (gradient.len() as f64).sqrt();
    squares.map(|square| kick.min(longest / square.sqrt()))
}

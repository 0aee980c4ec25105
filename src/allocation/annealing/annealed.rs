//! Annealing from independent tokens to the urn, by populations of collapsed Gibbs chains.
//!
//! `γ_β(h) = Π ((1-β) m + β (α + S))^power`, m being the marginal counts that are expected where
//! the path starts: an urn at every β, whose Gibbs weights are rational.

use rand::RngExt;

use crate::allocation::kernel::chains::{Chains, between, resample};
use crate::allocation::kernel::counts::Target;
use crate::allocation::kernel::law::{ln_independent, ln_law};
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::Result;
use crate::math::LogSum;
use crate::rng::{LANES, Lanes, Stream, UniformLanes};
use crate::urn::Order;

/// Least speed of a schedule, relative to its mean.
const LEAST_SPEED: f64 = 0.1;

/// Temperatures over which the speed of the pilot is averaged, to either side.
const SMOOTHING: usize = 2;

/// Effective share of a population below which it is resampled.
const RESAMPLE_BELOW: f64 = 0.5;

/// A path of distributions.
pub(crate) struct Path<'a> {
    problem: &'a Problem,
    alphas: Vec<f64>,
    /// m.
    start: Vec<f64>,
    /// β from 0 to 1.
    schedule: Vec<f64>,
}

/// What one population found that went along a path in equal steps.
pub(crate) struct Pilot<'a, U> {
    schedule: Vec<f64>,
    /// Standard deviation of the weights of every step.
    drifts: Vec<f64>,
    pub(crate) ln_weights: Lanes,
    /// The population in the end.
    pub(crate) chains: Chains<'a, U>,
}

impl<'a, U: UniformLanes> Pilot<'a, U> {
    /// A population along the path from `start` in `n` equal steps.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub(crate) fn new(
        problem: &'a Problem,
        start: &[f64],
        n: usize,
        rng: &mut impl Stream<Lanes = U>,
        observer: &impl Observer,
    ) -> Result<Self> {
        let schedule = ever_closer(n, problem.total);
        let n = schedule.len() - 1;
        let path = Path {
            problem,
            alphas: problem.alphas(),
            start: start.to_vec(),
            schedule: schedule.clone(),
        };
        let mut chains = Chains::independent(problem, start, rng, observer)?;
        let mut drifts = Vec::with_capacity(n);
        let mut ln_weights = [path.ln_start(); LANES];
        for step in 1..=n {
            let steps = path.ln_step(step, &chains);
            ln_weights.iter_mut().zip(steps).for_each(|(ln_weight, x)| *ln_weight += x);
            drifts.push(deviation(&steps));
            path.sweep(step, &mut chains, Order::Forward, observer)?;
        }
        Ok(Pilot { schedule, drifts, ln_weights, chains })
    }

    /// ln of the mean weight.
    pub(crate) fn ln_value(&self) -> f64 {
        self.ln_weights.into_iter().collect::<LogSum>().ln_mean()
    }

    /// Marginal counts in the end, averaged by weight.
    pub(crate) fn mean_rows(&self) -> Vec<f64> {
        let ln_value = self.ln_value();
        let weights = self.ln_weights.map(|x| (x - ln_value).exp() / LANES as f64);
        let mean = |counts: &[i32; LANES]| {
            counts.iter().zip(weights).map(|(&n, weight)| f64::from(n) * weight).sum()
        };
        self.chains.rows().iter().map(mean).collect()
    }
}

impl<'a> Path<'a> {
    /// A path of `n_temperatures` steps, in all of which the pilot drifted apart by about the same.
    pub(crate) fn new(
        problem: &'a Problem,
        start: Vec<f64>,
        pilot: &Pilot<'_, impl UniformLanes>,
        n_temperatures: usize,
    ) -> Self {
        let schedule = even_drift(&pilot.schedule, &pilot.drifts, n_temperatures);
        Path { problem, alphas: problem.alphas(), start, schedule }
    }

    /// Number of steps.
    fn n_steps(&self) -> usize {
        self.schedule.len() - 1
    }

    fn base(&self, step: usize) -> Vec<f64> {
        between(&self.start, &self.alphas, self.schedule[step])
    }

    /// ln γ after the step over ln γ before it, of every chain.
    fn ln_step(&self, step: usize, chains: &Chains<'_, impl UniformLanes>) -> Lanes {
        let ln_at = |step: usize| {
            let target = Target { base: &self.base(step), unit: self.schedule[step] };
            ln_law(self.problem, target, chains.rows())
        };
        let (before, after) = (ln_at(step - 1), ln_at(step));
        std::array::from_fn(|lane| after[lane] - before[lane])
    }

    fn sweep(
        &self,
        step: usize,
        chains: &mut Chains<'_, impl UniformLanes>,
        order: Order,
        observer: &impl Observer,
    ) -> Result<()> {
        let target = Target { base: &self.base(step), unit: self.schedule[step] };
        chains.sweep(target, order, observer)
    }

    /// ln Σ γ_0.
    fn ln_start(&self) -> f64 {
        ln_independent(self.problem, &self.start)
    }

    /// ln Ẑ of [`LANES`] chains that run the path backwards from draws of the posterior: the mean of
    /// 1/Ẑ is 1/Z.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub(crate) fn ln_sums_reversed(
        &self,
        mut chains: Chains<'_, impl UniformLanes>,
        observer: &impl Observer,
    ) -> Result<[f64; LANES]> {
        let mut ln_values = [self.ln_start(); LANES];
        for step in (1..=self.n_steps()).rev() {
            if step < self.n_steps() {
                self.sweep(step, &mut chains, Order::Backward, observer)?;
            }
            let steps = self.ln_step(step, &chains);
            ln_values.iter_mut().zip(steps).for_each(|(sum, x)| *sum += x);
        }
        Ok(ln_values)
    }

    /// ln Ẑ of one population of `n_groups` times [`LANES`] chains, whose allocations count
    /// exp of `ln_factors` times in the end. Unbiased.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub(crate) fn ln_sum<S: Stream>(
        &self,
        n_groups: usize,
        mut ln_factors: impl FnMut(&Chains<'_, S::Lanes>, &mut S) -> Result<Lanes>,
        rng: &mut S,
        observer: &impl Observer,
    ) -> Result<f64> {
        let mut groups = (0..n_groups)
            .map(|_| Chains::independent(self.problem, &self.start, rng, observer))
            .collect::<Result<Vec<_>>>()?;
        let mut ln_weights = vec![[0.0; LANES]; n_groups];
        let mut ln_value = self.ln_start();
        for step in 1..=self.n_steps() {
            for (chains, ln_weights) in groups.iter_mut().zip(&mut ln_weights) {
                let steps = self.ln_step(step, chains);
                ln_weights.iter_mut().zip(steps).for_each(|(ln_weight, x)| *ln_weight += x);
            }
            if step == self.n_steps() {
                break;
            }
            let sum: LogSum = ln_weights.as_flattened().iter().copied().collect();
            if sum.n_eff() < RESAMPLE_BELOW * (n_groups * LANES) as f64 {
                ln_value += sum.ln_mean();
                resample(&mut groups, ln_weights.as_flattened(), sum.ln_mean(), rng.random());
                ln_weights.fill([0.0; LANES]);
            }
            for chains in &mut groups {
                self.sweep(step, chains, Order::Forward, observer)?;
            }
        }
        for (chains, ln_weights) in groups.iter().zip(&mut ln_weights) {
            let ln_factors = ln_factors(chains, rng)?;
            ln_weights.iter_mut().zip(ln_factors).for_each(|(ln_weight, x)| *ln_weight += x);
        }
        let sum: LogSum = ln_weights.as_flattened().iter().copied().collect();
        Ok(ln_value + sum.ln_mean())
    }
}

/// Standard deviation.
fn deviation(x: &[f64; LANES]) -> f64 {
    let mean = x.iter().sum::<f64>() / LANES as f64;
    (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (LANES - 1) as f64).sqrt()
}

/// Points between 0 and 1 in equal steps, the last of them halved until steps are as small as
/// what a token adds to a row.
fn ever_closer(n: usize, total: u64) -> Vec<f64> {
    let mut points: Vec<f64> = (0..n).map(|t| t as f64 / n as f64).collect();
    let mut left = 0.5 / n as f64;
    while left * total as f64 > 0.5 {
        points.push(1.0 - left);
        left *= 0.5;
    }
    points.push(1.0);
    points
}

/// `n + 1` points between 0 and 1, dense where the drift over intervals is large.
fn even_drift(schedule: &[f64], drifts: &[f64], n: usize) -> Vec<f64> {
    let m = drifts.len();
    let smooth = |index: usize| {
        let window = &drifts[index.saturating_sub(SMOOTHING)..(index + SMOOTHING + 1).min(m)];
        window.iter().sum::<f64>() / window.len() as f64
    };
    let mean = drifts.iter().sum::<f64>() / m as f64;
    let mut sums = vec![0.0];
    for index in 0..m {
        let drift = smooth(index) + LEAST_SPEED * mean + f64::MIN_POSITIVE;
        sums.push(sums[index] + drift);
    }
    let mut interval = 0;
    let mut points: Vec<f64> = (0..n)
        .map(|point| {
            let drift = sums[m] * point as f64 / n as f64;
            while sums[interval + 1] < drift {
                interval += 1;
            }
            let part = (drift - sums[interval]) / (sums[interval + 1] - sums[interval]);
            schedule[interval] + part * (schedule[interval + 1] - schedule[interval])
        })
        .collect();
    points.push(1.0);
    points
}

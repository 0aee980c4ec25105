//! Choice of a document's sampler and of its size.

use super::estimators::annealed::Start;
use super::estimators::runs::Runs;
use super::estimators::sampler::{Pilot, Sampler};
use super::limits::most;
use super::settings::{BUDGET, Settings};
use crate::control::Observer;
use crate::error::Result;
use crate::estimate::Estimate;
use crate::rng::Rng;
use crate::urn::LocalUrn;

/// Growth of the sample size between two attempts at a target error.
const GROWTH: std::ops::RangeInclusive<f64> = 2.0..=16.0;

/// Standard deviation of ln Ẑ that a single run is given its size for: from there on, the mean of
/// some runs is far from normal and its error cannot be read off them.
const RUN_DEVIATION: f64 = 0.4;

/// Largest size that a pilot may choose.
const MOST: usize = 5_000;

/// Share of the size that the smaller run has.
const SHARE_BESIDE: f64 = 0.2;

/// Difference from the smaller run, in standard errors, that is no sign of anything.
const PLAIN_DRIFT: f64 = 2.0;

/// A sampler, its size, and an estimate from fewer samples beside, where there is one.
pub(super) struct Choice {
    pub(super) sampler: Sampler,
    pub(super) size: usize,
    pub(super) beside: Option<Estimate>,
}

impl Choice {
    pub(super) fn new(sampler: Sampler, size: usize) -> Self {
        Choice { sampler, size, beside: None }
    }

    /// The estimate, its error at least as large as the drift from the smaller run beyond what the
    /// errors of both explain: replicates that agree with each other may all have missed something.
    pub(super) fn with_drift(&self, estimate: Estimate) -> Estimate {
        let Some(beside) = self.beside else { return estimate };
        let plain = PLAIN_DRIFT * estimate.std_error.hypot(beside.std_error);
        let drift = (estimate.ln_value - beside.ln_value).abs() - plain;
        let std_error = estimate.std_error.hypot(drift.max(0.0));
        Estimate { std_error, ..estimate }
    }
}

/// Finds sizes by pilots: replicates that are not those of the estimate, which is accepted
/// whatever it is and so remains unbiased.
pub(super) struct Sizing<'a, O> {
    pub(super) urn: &'a LocalUrn,
    pub(super) settings: &'a Settings,
    pub(super) observer: &'a O,
}

impl<O: Observer> Sizing<'_, O> {
    /// Sampler and size of `auto`: annealing, unless the settings ask for particles.
    ///
    /// A first pilot finds a size; where that is far above the pilot's, a run of a fifth of it
    /// measures the deviation again, nearer to where it counts, and stays as the smaller run
    /// beside.
    pub(super) fn best(&self, rng: &mut Rng) -> Result<Choice> {
        let sampler = Sampler::Annealed(Start::MeanField);
        if let Some(n_particles) = self.settings.n_particles {
            return Ok(Choice::new(Sampler::SmcLookahead, n_particles));
        }
        let (None, Some(pilot)) = (self.settings.n_samples, sampler.pilot()) else {
            return Ok(Choice::new(sampler, self.settings.n_samples.unwrap_or(1)));
        };
        let ln_sums = self.pilot_runs(sampler, pilot, rng)?;
        let size = self.size_from(sampler, pilot, deviation(&ln_sums));
        let smaller = (SHARE_BESIDE * size as f64) as usize;
        if smaller <= pilot.size {
            let beside = Some(Estimate::from_replicates(&ln_sums, ln_sums.len() * pilot.size));
            return Ok(Choice { sampler, size, beside });
        }
        let pilot = Pilot { size: smaller, ..pilot };
        let ln_sums = self.pilot_runs(sampler, pilot, rng)?;
        let size = self.size_from(sampler, pilot, deviation(&ln_sums));
        let beside = Some(Estimate::from_replicates(&ln_sums, ln_sums.len() * smaller));
        Ok(Choice { sampler, size: size.max(smaller), beside })
    }

    /// The size asked for, the default, or what a pilot finds.
    pub(super) fn first(&self, sampler: Sampler, rng: &mut Rng) -> Result<usize> {
        match (self.settings.size(sampler), sampler.pilot()) {
            (Some(size), _) => Ok(size),
            (None, Some(pilot)) => {
                let deviation = deviation(&self.pilot_runs(sampler, pilot, rng)?);
                Ok(self.size_from(sampler, pilot, deviation))
            }
            (None, None) => Ok(1),
        }
    }

    /// ln Ẑ of the pilot's runs.
    fn pilot_runs(&self, sampler: Sampler, pilot: Pilot, rng: &mut Rng) -> Result<Vec<f64>> {
        let runs = Runs { n: pilot.n_runs, sizes: &[pilot.size] };
        sampler.ln_urn_sums(self.urn, runs, rng, self.observer)
    }

    /// The variance falls with the size.
    fn size_from(&self, sampler: Sampler, pilot: Pilot, deviation: f64) -> usize {
        let size = pilot.size as f64 * (deviation / RUN_DEVIATION).powi(2);
        let most = self.largest(sampler).clamp(pilot.least, MOST);
        (size as usize).clamp(pilot.least, most)
    }

    /// Size at which a pilot has reached the target error, and half as much again; whether one has.
    pub(super) fn final_size(
        &self,
        sampler: Sampler,
        mut size: usize,
        rng: &mut Rng,
    ) -> Result<(usize, bool)> {
        let Some(target) = self.settings.target_std_error else { return Ok((size, true)) };
        let largest = self.largest(sampler);
        loop {
            let runs = Runs { n: self.settings.n_replicates, sizes: &[size] };
            let pilot = sampler.ln_urn_sums(self.urn, runs, rng, self.observer)?;
            let std_error = Estimate::from_replicates(&pilot, pilot.len() * size).std_error;
            if std_error <= target || size >= largest {
                return Ok(((size + size / 2).min(largest.max(size)), std_error <= target));
            }
            let growth = (1.3 * (std_error / target).powi(2)).clamp(*GROWTH.start(), *GROWTH.end());
            size = ((size as f64 * growth) as usize).min(largest);
        }
    }

    /// Size that the budget and the memory of one document have room for.
    fn largest(&self, sampler: Sampler) -> usize {
        let n_runs = self.settings.n_replicates;
        let cost = n_runs as f64 * sampler.cost(self.urn.extent());
        let budget = self.settings.budget.unwrap_or(BUDGET);
        ((budget / cost) as usize).min(most(sampler, self.urn.extent(), n_runs)).max(1)
    }
}

/// Standard deviation of the ln Ẑ of some runs.
fn deviation(ln_sums: &[f64]) -> f64 {
    let n = ln_sums.len() as f64;
    let mean = ln_sums.iter().sum::<f64>() / n;
    (ln_sums.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

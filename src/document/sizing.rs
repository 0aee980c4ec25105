//! Which sampler a document takes, and of what size.

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

/// Tokens above which annealing is the better choice, whatever a pilot of the filter may say, and
/// the deviation of a pilot run from which it is.
const FILTER_TOKENS: u64 = 150;
const FILTER_DEVIATION: f64 = 0.4;

/// Finds sizes by pilots: replicates that are not those of the estimate, which is accepted
/// whatever it is and so remains unbiased.
pub(super) struct Sizing<'a, O> {
    pub(super) urn: &'a LocalUrn,
    pub(super) settings: &'a Settings,
    pub(super) observer: &'a O,
}

impl<O: Observer> Sizing<'_, O> {
    /// The better of the filter and the annealing, and its size.
    pub(super) fn best(&self, rng: &mut Rng) -> Result<(Sampler, usize)> {
        let filter = Sampler::SmcLookahead;
        let annealed = Sampler::Annealed(Start::MeanField);
        if let Some(n_particles) = self.settings.n_particles {
            return Ok((filter, n_particles));
        }
        if let Some(n_samples) = self.settings.n_samples {
            return Ok((annealed, n_samples));
        }
        if let (true, Some(pilot)) = (self.urn.n_tokens() <= FILTER_TOKENS, filter.pilot()) {
            let deviation = self.deviation(filter, pilot, rng)?;
            if deviation <= FILTER_DEVIATION {
                return Ok((filter, self.size_from(filter, pilot, deviation)));
            }
        }
        Ok((annealed, self.first(annealed, rng)?))
    }

    /// The size asked for, the default, or what a pilot finds.
    pub(super) fn first(&self, sampler: Sampler, rng: &mut Rng) -> Result<usize> {
        match (self.settings.size(sampler), sampler.pilot()) {
            (Some(size), _) => Ok(size),
            (None, Some(pilot)) => {
                let deviation = self.deviation(sampler, pilot, rng)?;
                Ok(self.size_from(sampler, pilot, deviation))
            }
            (None, None) => Ok(1),
        }
    }

    /// Standard deviation of the ln Ẑ of the pilot's runs.
    fn deviation(&self, sampler: Sampler, pilot: Pilot, rng: &mut Rng) -> Result<f64> {
        let runs = Runs { n: pilot.n_runs, sizes: &[pilot.size] };
        let ln_sums = sampler.ln_urn_sums(self.urn, runs, rng, self.observer)?;
        let n = ln_sums.len() as f64;
        let mean = ln_sums.iter().sum::<f64>() / n;
        Ok((ln_sums.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
    }

    /// The variance falls with the size.
    fn size_from(&self, sampler: Sampler, pilot: Pilot, deviation: f64) -> usize {
        let wanted = pilot.size as f64 * (deviation / RUN_DEVIATION).powi(2);
        let most = self.largest(sampler).clamp(pilot.least, MOST);
        (wanted as usize).clamp(pilot.least, most)
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

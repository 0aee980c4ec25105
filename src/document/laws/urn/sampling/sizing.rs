//! Choice of a document's sampler and of its size.
//!
//! The constants are those with which `python -m benches.truth.coverage` made its records.

use super::super::limits::most;
use crate::control::Observer;
use crate::document::estimators::prepared::Prepared;
use crate::document::estimators::runs::Runs;
use crate::document::estimators::sampler::{Pilot, Sampler};
use crate::document::settings::{BUDGET, Method, Settings};
use crate::error::Result;
use crate::estimate::Estimate;
use crate::math::variance;
use crate::rng::Rng;
use crate::urn::LocalUrn;

/// Growth of the sample size between two attempts at a target error.
const GROWTH: std::ops::RangeInclusive<f64> = 2.0..=16.0;

/// Standard deviation of ln Ẑ that a single run is given its size for: from there on, the mean of
/// some runs is far from normal and its error cannot be read off them.
const RUN_DEVIATION: f64 = 0.4;

/// Largest size that a pilot may choose.
const MOST: usize = 5_000;

/// Binary digits of the largest size that a budget may allow.
const LARGEST_BITS: u32 = 31;

/// Share of the size that the smaller run has.
const SHARE_BESIDE: f64 = 0.2;

/// Difference from the smaller run, in standard errors, that is no sign of anything.
const PLAIN_DRIFT: f64 = 2.0;

/// The size of a sampler, and an estimate from fewer samples beside, where there is one.
pub(crate) struct Choice {
    pub(crate) size: usize,
    pub(crate) beside: Option<Estimate>,
}

impl Choice {
    /// The estimate, its error at least as large as the drift from the smaller run beyond what the
    /// errors of both explain: replicates that agree with each other may all have missed something.
    pub(crate) fn with_drift(&self, estimate: Estimate) -> Estimate {
        let Some(beside) = self.beside else { return estimate };
        let plain = PLAIN_DRIFT * estimate.std_error.hypot(beside.std_error);
        let drift = (estimate.ln_value - beside.ln_value).abs() - plain;
        let std_error = estimate.std_error.hypot(drift.max(0.0));
        Estimate { std_error, ..estimate }
    }
}

/// Finds sizes by pilots: replicates that are not those of the estimate, which is accepted
/// whatever it is and so remains unbiased.
pub(crate) struct Sizing<'a, O> {
    pub(crate) urn: &'a LocalUrn,
    pub(crate) settings: &'a Settings,
    pub(crate) observer: &'a O,
}

impl<'a, O: Observer> Sizing<'a, O> {
    /// The sampler made ready for the document, and its size.
    pub(crate) fn ready(&self, rng: &mut Rng) -> Result<(Prepared<'a>, Choice)> {
        let mut prepared = self.prepared(rng)?;
        let mut choice = self.choice(&prepared, rng)?;
        if let Some(lowered) = prepared.lowered(choice.size, rng, self.observer)? {
            prepared = lowered;
            choice = self.choice(&prepared, rng)?;
        }
        let choice = self.for_target(&prepared, choice, rng)?;
        Ok((prepared, choice))
    }

    /// The sampler of the settings, that of `auto` being annealing unless they ask for particles,
    /// made ready for the document.
    fn prepared(&self, rng: &mut Rng) -> Result<Prepared<'a>> {
        let sampler = match self.settings.method {
            Method::Sample(sampler) => sampler,
            _ if self.settings.n_particles.is_some() => Sampler::SmcLookahead,
            _ => Sampler::Annealed(None),
        };
        let effort = self.settings.size(sampler);
        Prepared::new(sampler, self.urn, effort, rng, self.observer)
    }

    /// The size asked for, or the default, or what pilots find.
    fn choice(&self, prepared: &Prepared<'_>, rng: &mut Rng) -> Result<Choice> {
        match (self.settings.size(prepared.sampler), prepared.sampler.pilot()) {
            (Some(size), _) => Ok(Choice { size, beside: None }),
            (None, None) => Ok(Choice { size: 1, beside: None }),
            (None, Some(pilot)) if matches!(self.settings.method, Method::Sample(_)) => {
                let size = self.size_from(prepared, pilot, &self.pilot_runs(prepared, pilot, rng)?);
                Ok(Choice { size, beside: None })
            }
            (None, Some(pilot)) => self.best(prepared, pilot, rng),
        }
    }

    /// Size of `auto`.
    ///
    /// A first pilot finds a size; where that is far above the pilot's, a run of a fifth of it
    /// measures the deviation again, nearer to where it counts, and stays as the smaller run
    /// beside.
    fn best(&self, prepared: &Prepared<'_>, pilot: Pilot, rng: &mut Rng) -> Result<Choice> {
        let ln_sums = self.pilot_runs(prepared, pilot, rng)?;
        let size = self.size_from(prepared, pilot, &ln_sums);
        let smaller = (SHARE_BESIDE * size as f64) as usize;
        if smaller <= pilot.size {
            let beside = Some(Estimate::from_replicates(&ln_sums, ln_sums.len() * pilot.size));
            return Ok(Choice { size, beside });
        }
        let pilot = Pilot { size: smaller, ..pilot };
        let ln_sums = self.pilot_runs(prepared, pilot, rng)?;
        let size = self.size_from(prepared, pilot, &ln_sums);
        let beside = Some(Estimate::from_replicates(&ln_sums, ln_sums.len() * smaller));
        Ok(Choice { size: size.max(smaller), beside })
    }

    /// ln Ẑ of the pilot's runs.
    fn pilot_runs(&self, prepared: &Prepared<'_>, pilot: Pilot, rng: &mut Rng) -> Result<Vec<f64>> {
        let runs = Runs { n: pilot.n_runs, sizes: &[prepared.size_for(pilot.size)] };
        prepared.ln_urn_sums(runs, rng, self.observer)
    }

    /// Particles, draws or steps of a run, given its size in the units of pilots.
    pub(crate) fn made(&self, prepared: &Prepared<'_>, size: usize) -> usize {
        match self.settings.n_samples {
            Some(_) => prepared.size_given(size),
            None => prepared.size_for(size),
        }
    }

    /// Size by the ln Ẑ of a pilot's runs, whose variance falls with it.
    fn size_from(&self, prepared: &Prepared<'_>, pilot: Pilot, ln_sums: &[f64]) -> usize {
        let size = pilot.size as f64 * (variance(ln_sums).sqrt() / RUN_DEVIATION).powi(2);
        let most = self.largest(prepared).clamp(pilot.least, MOST);
        (size as usize).clamp(pilot.least, most)
    }

    /// The choice for a target error: twice the size at which a pilot reaches it. The estimate's own
    /// error is then above the target in a few documents of a hundred.
    ///
    /// The smaller run beside is then the last pilot that missed the target. The first one, far
    /// smaller, would be the drift of every document that needs large sizes.
    fn for_target(
        &self,
        prepared: &Prepared<'_>,
        mut choice: Choice,
        rng: &mut Rng,
    ) -> Result<Choice> {
        let Some(target) = self.settings.target_std_error else { return Ok(choice) };
        let largest = self.largest(prepared);
        loop {
            let size = choice.size;
            let runs = Runs { n: self.settings.n_replicates, sizes: &[self.made(prepared, size)] };
            let pilot = prepared.ln_urn_sums(runs, rng, self.observer)?;
            let pilot = Estimate::from_replicates(&pilot, pilot.len() * size);
            let std_error = choice.with_drift(pilot).std_error;
            if std_error <= target || size >= largest {
                choice.size = (2 * size).min(largest.max(size));
                return Ok(choice);
            }
            let growth = (1.3 * (std_error / target).powi(2)).clamp(*GROWTH.start(), *GROWTH.end());
            choice.size = ((size as f64 * growth) as usize).min(largest);
            choice.beside = choice.beside.map(|_| pilot);
        }
    }

    /// Size that the budget and the memory of one document have room for.
    fn largest(&self, prepared: &Prepared<'_>) -> usize {
        let n_runs = self.settings.n_replicates;
        let budget = match self.settings.budget {
            Some(budget) if self.settings.is_auto_without_target() => budget.max(BUDGET),
            budget => budget.unwrap_or(BUDGET),
        } / n_runs as f64;
        let mut size = 0;
        for bit in (0..LARGEST_BITS).rev() {
            let larger = size | 1 << bit;
            if prepared.cost(larger) <= budget {
                size = larger;
            }
        }
        size.min(most(prepared.sampler, self.urn.extent(), n_runs)).max(1)
    }
}

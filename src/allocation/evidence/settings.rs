//! Methods by which allocations are summed out, and their options.

use serde::{Deserialize, Serialize};

use crate::allocation::model::problem::Problem;
use crate::allocation::particles::smc::{Filter, TokenOrder};
use crate::allocation::tempering;
use crate::math::Resampling;
use crate::temper::RoundPlan;

/// Particles of a replicate of a filter: with moves, and without.
const PARTICLES: [usize; 2] = [256, 1000];

/// Sweeps of smc while the number of tokens grows e-fold.
const SWEEPS: usize = 32;

/// Replicates of a filter: of four, one in ten agrees with three others that miss what it has not seen
/// either. Each run of tempering is long, and its rounds tell as well.
const FILTERS: usize = 16;
const LADDERS: usize = 4;

/// How the allocations are summed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceMethod {
    /// Exact within a small budget, else the sampler that a pilot speaks for.
    Auto,
    /// Enumeration of merged allocations.
    Exact,
    /// Replicates of a sampler.
    Sample(EvidenceSampler),
}

/// Estimators that draw, and whose error comes from replicates. All but tempering are unbiased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EvidenceSampler {
    /// Sequential importance sampling with resampling, and Gibbs moves of the particles.
    Smc,
    /// Parallel tempering of Gibbs chains.
    Tempered,
}

/// A method and its options. `None` leaves an option to the method.
///
/// A method ignores the options of others, except that [`EvidenceMethod::Auto`] chooses only a
/// sampler that takes all that differ from those of [`EvidenceSettings::new`].
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceSettings {
    /// The method.
    pub method: EvidenceMethod,
    /// Particles of a filter in a replicate (256 with moves, 1,000 without).
    pub n_particles: Option<usize>,
    /// Scans of the longest round of tempering (by their cost).
    pub n_samples: Option<usize>,
    /// Independent replicates of a sampler (16 of a filter, 4 of tempering).
    pub n_replicates: Option<usize>,
    /// Effective share of a filter's particles below which they are resampled.
    pub resample_below: f64,
    /// How a filter resamples.
    pub resampling: Resampling,
    /// Order in which a filter draws the tokens.
    pub order: TokenOrder,
    /// Gibbs sweeps of smc while the number of tokens grows e-fold (32); 0 for SIS-R.
    pub n_sweeps: Option<usize>,
    /// Multiply-adds that an exact sum may take (1e9; 1e7 where it is only tried).
    pub budget: Option<f64>,
    /// Standard error at which tempering ends (0.5 nats).
    pub target_std_error: Option<f64>,
}

impl EvidenceSettings {
    /// A method with options of its own choice.
    pub fn new(method: EvidenceMethod) -> Self {
        EvidenceSettings {
            method,
            n_particles: None,
            n_samples: None,
            n_replicates: None,
            resample_below: 0.5,
            resampling: Resampling::Systematic,
            order: TokenOrder::Random,
            n_sweeps: None,
            budget: None,
            target_std_error: None,
        }
    }

    /// The particle filter of these options.
    pub fn filter(&self) -> Filter {
        let n_sweeps = self.n_sweeps.unwrap_or(SWEEPS);
        Filter {
            n_particles: self.n_particles.unwrap_or(PARTICLES[usize::from(n_sweeps == 0)]),
            threshold: self.resample_below,
            resampling: self.resampling,
            order: self.order.clone(),
            n_sweeps,
        }
    }

    /// Independent replicates of a sampler.
    pub fn n_replicates(&self, sampler: EvidenceSampler) -> usize {
        let by_default = if sampler == EvidenceSampler::Tempered { LADDERS } else { FILTERS };
        self.n_replicates.unwrap_or(by_default)
    }

    /// Whether tempering is taken where a filter does not pass.
    pub(super) fn tempers(&self) -> bool {
        self.method == EvidenceMethod::Auto && EvidenceSampler::Tempered.takes(self)
    }

    /// Multiply-adds of an exact sum that is asked for.
    pub(crate) fn exact_budget(&self) -> f64 {
        self.budget.unwrap_or(1e9)
    }

    /// Multiply-adds of an exact sum that is tried: a fraction of a second.
    pub(crate) fn trial_budget(&self) -> f64 {
        self.budget.unwrap_or(1e7)
    }

    /// Whether an option of a filter alone was chosen.
    pub(crate) fn chooses_filter(&self) -> bool {
        let EvidenceSettings { resample_below, resampling, order, .. } =
            EvidenceSettings::new(self.method);
        let other = self.resampling != resampling || self.order != order || self.n_sweeps.is_some();
        other || self.resample_below.to_bits() != resample_below.to_bits()
    }
}

impl EvidenceSampler {
    /// Whether the sampler has all the options that were chosen.
    pub(crate) fn takes(self, settings: &EvidenceSettings) -> bool {
        match self {
            EvidenceSampler::Smc => {
                settings.n_samples.is_none() && settings.target_std_error.is_none()
            }
            EvidenceSampler::Tempered => {
                !settings.chooses_filter() && settings.n_particles.is_none()
            }
        }
    }
}

/// Rounds of tempering with these settings.
pub(crate) fn round_plan(problem: &Problem, settings: &EvidenceSettings) -> RoundPlan {
    let n_replicates = settings.n_replicates(EvidenceSampler::Tempered);
    RoundPlan {
        n_replicates,
        target_std_error: settings.target_std_error.unwrap_or(0.5),
        min_scans: tempering::LEAST_SCANS,
        max_scans: settings.n_samples,
        max_chains: tempering::max_chains(problem, n_replicates),
    }
}

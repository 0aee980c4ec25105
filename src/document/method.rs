//! The estimators by name, with what each is made of.

use super::left_to_right::{self, Form};
use super::{Settings, annealed, chib, direct, harmonic, l2r, mean_field, smc};
use crate::control::Observer;
use crate::error::Result;
use crate::rng::Rng;
use crate::urn::LocalUrn;

/// Particles of a quadratic estimator where none are asked for.
const DEFAULT_PARTICLES: usize = 10;

/// How a document's likelihood is computed or estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Exact where that is cheap, else [`Sampler::SmcLookahead`].
    Auto,
    /// No error; refused above the budget.
    Exact,
    /// The deterministic recursion of Scott and Baldridge: no error is known.
    Recursive,
    /// Replicates of a sampler.
    Sample(Sampler),
}

/// Estimators that draw, and whose error comes from replicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampler {
    /// Topic weights from their prior.
    Direct,
    /// Harmonic mean over posterior samples: biased, for comparison only.
    Harmonic,
    /// Importance sampling by the mean field.
    MeanField,
    /// Left-to-right in one of its forms.
    LeftToRight(Form),
    /// Left-to-right by word type.
    L2r,
    /// Particle filter with the locally optimal proposal.
    Smc,
    /// Particle filter that expects the tokens to come.
    SmcLookahead,
    /// Annealed importance sampling.
    Annealed,
    /// Chib-style estimation.
    Chib,
}

impl Sampler {
    /// Whether the mean of its estimates of p is p, for any sample size.
    pub fn is_unbiased(self) -> bool {
        !matches!(
            self,
            Sampler::Harmonic | Sampler::LeftToRight(Form::ProductOfMeans | Form::Sequential)
        )
    }

    /// Whether it holds all its particles in memory at once.
    pub(super) fn is_filter(self) -> bool {
        matches!(self, Sampler::Smc | Sampler::SmcLookahead)
    }

    /// Its sample size; `None` where it is for a pilot to find.
    pub(super) fn size(self, settings: &Settings) -> Option<usize> {
        match self {
            Sampler::Smc | Sampler::SmcLookahead => settings.n_particles,
            Sampler::LeftToRight(_) | Sampler::L2r => {
                Some(settings.n_particles.unwrap_or(DEFAULT_PARTICLES))
            }
            _ => Some(settings.n_samples),
        }
    }

    /// Multiply-adds of one draw or particle.
    pub(super) fn cost(self, urn: &LocalUrn) -> f64 {
        let (n, k) = (urn.n_tokens() as f64, urn.n_topics() as f64);
        match self {
            Sampler::Direct => urn.n_distinct() as f64 * k,
            Sampler::MeanField | Sampler::Smc | Sampler::SmcLookahead => 8.0 * n,
            Sampler::Harmonic | Sampler::Annealed | Sampler::Chib => 2.0 * n * k,
            Sampler::LeftToRight(_) | Sampler::L2r => n * n * k / 2.0,
        }
    }

    /// ln Ẑ of `n_runs` independent replicates.
    pub(super) fn ln_urn_sums(
        self,
        urn: &LocalUrn,
        n_runs: usize,
        size: usize,
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<Vec<f64>> {
        match self {
            Sampler::Direct => direct::ln_urn_sums(urn, n_runs, size, rng, observer),
            Sampler::Harmonic => harmonic::ln_urn_sums(urn, n_runs, size, rng, observer),
            Sampler::MeanField => mean_field::ln_urn_sums(urn, n_runs, size, rng, observer),
            Sampler::LeftToRight(form) => {
                left_to_right::ln_urn_sums(urn, form, n_runs, size, rng, observer)
            }
            Sampler::L2r => l2r::ln_urn_sums(urn, n_runs, size, rng, observer),
            Sampler::Smc => smc::ln_urn_sums(urn, false, n_runs, size, rng, observer),
            Sampler::SmcLookahead => smc::ln_urn_sums(urn, true, n_runs, size, rng, observer),
            Sampler::Annealed => annealed::ln_urn_sums(urn, n_runs, size, rng, observer),
            Sampler::Chib => chib::ln_urn_sums(urn, n_runs, size, rng, observer),
        }
    }
}

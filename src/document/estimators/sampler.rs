//! The samplers by name: their costs, and the estimates that each makes.

use super::annealed::{self, Start};
use super::l2r::{self, Conditionals};
use super::left_to_right::{self, Form};
use super::mean_field::{self, AT_ONCE, MeanField};
use super::runs::Runs;
use super::{chib, direct, fitted, harmonic, similar, smc};
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::rng::{LANES, Rng};
use crate::urn::{Chains, Extent, LocalUrn};

/// Estimators that draw, and whose error comes from replicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampler {
    /// Topic weights from their prior.
    Direct,
    /// Harmonic mean over posterior samples: biased, for comparison only.
    Harmonic,
    /// Importance sampling by the mean field.
    MeanField(MeanField),
    /// Left-to-right in one of its forms.
    LeftToRight(Form),
    /// Left-to-right by word type.
    L2r(Conditionals),
    /// Particle filter with the locally optimal proposal.
    Smc,
    /// Particle filter that expects the tokens to come.
    SmcLookahead,
    /// Annealed importance sampling.
    Annealed(Start),
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

    /// Whether a replicate can be looked at while it grows.
    pub fn grows(self) -> bool {
        !matches!(self, Sampler::Smc | Sampler::SmcLookahead | Sampler::Annealed(_) | Sampler::Chib)
    }

    /// The pilot that chooses the size; `None` for samplers whose size is given or has a default.
    pub(crate) fn pilot(self) -> Option<Pilot> {
        match self {
            Sampler::Smc | Sampler::SmcLookahead => Some(Pilot { n_runs: 8, size: 50, least: 50 }),
            Sampler::Annealed(_) => Some(Pilot { n_runs: 16, size: 20, least: 100 }),
            _ => None,
        }
    }

    /// Multiply-adds of one draw or particle.
    pub(crate) fn cost(self, extent: Extent) -> f64 {
        let (n, k) = (extent.n_tokens as f64, extent.n_topics as f64);
        let distinct = extent.n_distinct as f64;
        match self {
            Sampler::Direct => distinct * k,
            Sampler::MeanField(_) => {
                // A binomial draw and its weight take as long as some sixteen tokens.
                8.0 * n.min(distinct * k * f64::from(AT_ONCE + 16))
            }
            Sampler::Smc | Sampler::SmcLookahead => 8.0 * n,
            Sampler::Harmonic | Sampler::Annealed(_) => n * k,
            // All lanes go as far as the longest, both ways.
            Sampler::Chib => 4.0 * n * k,
            Sampler::LeftToRight(_) => n * n * k / 2.0,
            Sampler::L2r(Conditionals::Exact) => {
                n * (distinct / 2.0 + 1.0) * k + extent.sum_of_squares
            }
            Sampler::L2r(Conditionals::Sampled(draws)) => {
                let draws = draws as f64;
                n * (distinct / 2.0 + draws) * k + draws * extent.sum_of_squares
            }
        }
    }

    /// Multiply-adds before the first draw.
    pub(crate) fn fixed_cost(self, extent: Extent) -> f64 {
        match self {
            Sampler::MeanField(MeanField { n_iterations, .. }) => {
                4.0 * n_iterations as f64 * (extent.n_distinct * extent.n_topics) as f64
            }
            _ => 0.0,
        }
    }

    /// Bytes that the tokens of a document take, whatever the size.
    pub(crate) fn bytes_of_tokens(self, extent: Extent) -> f64 {
        let n = extent.n_tokens as f64;
        match self {
            Sampler::Direct | Sampler::MeanField(_) => 0.0,
            Sampler::Smc | Sampler::SmcLookahead => 16.0 * n,
            Sampler::Harmonic | Sampler::LeftToRight(_) | Sampler::Annealed(_) => 36.0 * n,
            Sampler::L2r(_) | Sampler::Chib => 132.0 * n,
        }
    }

    /// Bytes that a particle, state or chain takes while the others are there.
    pub(crate) fn bytes(self, extent: Extent) -> usize {
        let tokens = 2 * extent.n_tokens as usize;
        match self {
            Sampler::Smc | Sampler::SmcLookahead => smc::BYTES_PER_TOPIC * extent.n_topics,
            Sampler::LeftToRight(Form::ProductOfMeans) => tokens + 16 * extent.n_topics,
            Sampler::LeftToRight(Form::MeanOfProducts) | Sampler::L2r(_) => 8,
            _ => 0,
        }
    }

    /// ln Ẑ of independent replicates, at each of the sizes; at the last only, where they do not
    /// [grow](Sampler::grows).
    pub(crate) fn ln_urn_sums(
        self,
        urn: &LocalUrn,
        runs: Runs<'_>,
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<Vec<f64>> {
        let (n, size) = (runs.n, runs.size());
        match self {
            Sampler::Direct => direct::ln_urn_sums(urn, runs, rng, observer),
            Sampler::Harmonic => harmonic::ln_urn_sums(urn, runs, rng, observer),
            Sampler::MeanField(mean_field) => {
                mean_field::ln_urn_sums(urn, mean_field, runs, rng, observer)
            }
            Sampler::LeftToRight(form) => {
                left_to_right::ln_urn_sums(urn, form, runs, rng, observer)
            }
            Sampler::L2r(conditionals) => l2r::ln_urn_sums(urn, conditionals, runs, rng, observer),
            Sampler::Smc => smc::ln_urn_sums(urn, false, n, size, rng, observer),
            Sampler::SmcLookahead => smc::ln_urn_sums(urn, true, n, size, rng, observer),
            Sampler::Annealed(start) => {
                if let Some(mixture) = fitted::Mixture::fit(urn, rng, observer)? {
                    mixture.ln_urn_sums(urn, n, size, rng, observer)
                } else if let Some(spread) = similar::spread(urn) {
                    similar::ln_urn_sums(urn, spread, n, size, rng, observer)
                } else {
                    annealed::ln_urn_sums(urn, start, n, size, rng, observer)
                }
            }
            Sampler::Chib => chib::ln_urn_sums(urn, n, size, rng, observer),
        }
    }

    /// ln of estimates of Z whose inverses are unbiased for 1/Z, from topics that are a draw of
    /// their posterior; an error for the samplers that have no reverse.
    pub(crate) fn ln_urn_sums_reversed(
        self,
        urn: &LocalUrn,
        topics: &[u16],
        n: usize,
        size: usize,
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<Vec<f64>> {
        match self {
            Sampler::Smc | Sampler::SmcLookahead => {
                let mut paths = Vec::with_capacity(n);
                while paths.len() < n {
                    let chains = Chains::of_posterior(urn, topics, rng, observer)?;
                    let of_lane = |lane: usize| chains.topics().iter().map(|x| x[lane]).collect();
                    paths.extend((0..LANES.min(n - paths.len())).map(of_lane));
                }
                let lookahead = self == Sampler::SmcLookahead;
                smc::ln_urn_sums_conditional(urn, lookahead, &paths, size, rng, observer)
            }
            Sampler::Annealed(start) => {
                annealed::ln_urn_sums_reversed(urn, start, topics, n, size, rng, observer)
            }
            _ => Err(Error::NoReverse),
        }
    }
}

/// A few small replicates that measure how large the others must be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pilot {
    pub(crate) n_runs: usize,
    pub(crate) size: usize,
    /// Smallest size that it may choose.
    pub(crate) least: usize,
}

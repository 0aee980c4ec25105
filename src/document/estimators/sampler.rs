//! The samplers by name: their costs, and the estimates that each makes.

use super::annealed::urn_path::Start;
use super::l2r::Conditionals;
use super::left_to_right::Form;
use super::mean_field::{AT_ONCE, MeanField};
use super::smc;
use crate::urn::Extent;

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
    /// Annealed importance sampling from a start, or from one chosen by document; there, documents
    /// on which chains would be slow are estimated by draws of their topic weights.
    Annealed(Option<Start>),
    /// Chib-style estimation.
    Chib,
}

impl Sampler {
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
}

/// A few small replicates that measure how large the others must be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pilot {
    pub(crate) n_runs: usize,
    pub(crate) size: usize,
    /// Smallest size that it may choose.
    pub(crate) least: usize,
}

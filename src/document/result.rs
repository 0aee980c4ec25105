//! The estimate of a document.

use super::estimators::table::{EXACT, Estimator};
use crate::estimate::Estimate;
use crate::math::variance;

/// The estimate of one document.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// ln p, its error and effective size.
    pub estimate: Estimate,
    /// The estimator that gave it, whatever was asked for.
    pub estimator: &'static Estimator,
    /// Particles, draws, states or temperatures that each replicate made; 0 where there is none.
    pub size: usize,
    /// Estimates from smaller samples, where the settings ask for them.
    pub trace: Vec<TracePoint>,
    /// Whether longer runs find what these missed. Runs that lower pseudo-counts choose as early, however
    /// long they are.
    pub gains_by_length: bool,
    /// The spread of its runs, where the sum over a corpus is wanted.
    pub spread: Option<Spread>,
}

/// Spread of the runs of a document: what longer runs would change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// How far the mean of ln Ẑ is below ln of the mean.
    pub shortfall: f64,
    /// Variance of ln Ẑ of one run.
    pub variance: f64,
}

impl Spread {
    pub(super) fn of(ln_values: &[f64], ln_mean: f64) -> Self {
        let mean = ln_values.iter().sum::<f64>() / ln_values.len() as f64;
        Spread { shortfall: ln_mean - mean, variance: variance(ln_values) }
    }
}

/// An estimate from part of the samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracePoint {
    /// Samples in all replicates.
    pub n_samples: usize,
    /// The estimate from them.
    pub estimate: Estimate,
}

impl Score {
    /// The exact ln p.
    pub(super) fn exact(ln_value: f64) -> Self {
        Score::of(Estimate::exact(ln_value), &EXACT)
    }

    /// A value without replicates.
    pub(super) fn of(estimate: Estimate, estimator: &'static Estimator) -> Self {
        let (size, trace, gains_by_length, spread) = (0, Vec::new(), true, None);
        Score { estimate, estimator, size, trace, gains_by_length, spread }
    }

    /// The score of the probability times exp(`ln_factor`).
    pub(super) fn scaled(mut self, ln_factor: f64) -> Self {
        self.estimate = self.estimate.scaled(ln_factor);
        for point in &mut self.trace {
            point.estimate = point.estimate.scaled(ln_factor);
        }
        self
    }
}

//! The estimate of a document.

use super::settings::Method;
use crate::estimate::Estimate;

/// The estimate of one document.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// ln p, its error and effective size.
    pub estimate: Estimate,
    /// The estimator that gave it: never [`Method::Auto`].
    pub method: Method,
    /// Particles, draws, states or temperatures of each replicate; 0 where there is none.
    pub size: usize,
    /// Whether the target error was reached within the budget; true where there is none.
    pub reached: bool,
    /// Estimates from smaller samples, where the settings ask for them.
    pub trace: Vec<TracePoint>,
    /// The document's part in the correction of a total, where one is wanted and it is sampled.
    pub share: Option<Share>,
}

/// Part of a document in the correction of a total.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Minus the bias of the value, as the jackknife finds it.
    pub correction: f64,
    /// Variance of ln Ẑ of one run.
    pub variance: f64,
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
    /// A value without replicates.
    pub(super) fn of(estimate: Estimate, method: Method) -> Self {
        Score { estimate, method, size: 0, reached: true, trace: Vec::new(), share: None }
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

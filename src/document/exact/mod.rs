//! The urn sum without error, by whichever of three algorithms is cheapest.
//!
//! Only the number of balls of each colour matters, not which token drew which colour: the K^N
//! paths collapse to C(N+K-1, K-1) states ([`lattice`]), or, whatever K, to Π (y_w + 1) partial
//! documents, by a recursion of positive terms ([`box_recursion`]) or by fast transforms
//! ([`power_series`]).

pub mod box_recursion;
mod cost;
pub mod lattice;
pub mod power_series;

pub use cost::Cost;

use crate::control::Observer;
use crate::error::{MAX_EXACT_BYTES, Result};
use crate::urn::LocalUrn;

/// Algorithm of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Dynamic programme over topic totals.
    Lattice,
    /// Recursion over the partial documents.
    BoxRecursion,
    /// Set power series over the partial documents.
    PowerSeries,
}

/// The cheapest exact algorithm for one document, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExactPlan {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Time and memory of the algorithm.
    pub cost: Cost,
}

impl ExactPlan {
    /// Compares the costs of the algorithms on one document.
    pub fn new(urn: &LocalUrn) -> Self {
        let plan = |algorithm, cost| ExactPlan { algorithm, cost };
        let operations = |plan: &ExactPlan| {
            if plan.cost.bytes > MAX_EXACT_BYTES { f64::INFINITY } else { plan.cost.operations }
        };
        [
            plan(Algorithm::BoxRecursion, box_recursion::cost(urn)),
            plan(Algorithm::PowerSeries, power_series::cost(urn)),
        ]
        .into_iter()
        .fold(plan(Algorithm::Lattice, lattice::cost(urn)), |best, plan| {
            if operations(&plan) < operations(&best) { plan } else { best }
        })
    }

    /// Whether the plan stays within `budget` multiply-adds and within memory.
    pub fn within(&self, budget: f64) -> bool {
        self.cost.operations <= budget && self.cost.bytes <= MAX_EXACT_BYTES
    }

    /// ln Z of the document, with a relative error near 1e-13.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop,
    /// [`Error::Memory`](crate::Error::Memory) where there is no room.
    pub fn run(&self, urn: &LocalUrn, observer: &impl Observer) -> Result<f64> {
        match self.algorithm {
            Algorithm::Lattice => lattice::ln_urn_sum(urn, observer),
            Algorithm::BoxRecursion => box_recursion::ln_urn_sum(urn, observer),
            Algorithm::PowerSeries => power_series::ln_urn_sum(urn, observer),
        }
    }
}

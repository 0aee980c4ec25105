//! The urn sum without error, by whichever algorithm is cheapest.
//!
//! Only the number of balls of each colour matters, not which token drew which colour: the K^N
//! paths collapse to C(N+K-1, K-1) states ([`lattice`]), or, whatever K, to Π (y_w + 1) partial
//! documents, by a recursion of positive terms ([`box_recursion`]) or by fast transforms
//! ([`power_series`]). Bursty topics have algorithms of their own ([`bursty`]).

pub mod box_recursion;
pub mod bursty;
mod cost;
pub mod lattice;
pub mod power_series;
mod real;

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
    /// Convolution of bursty topics over the partial documents.
    BurstyTopics,
    /// Convolution of words over totals of bursty topics.
    BurstyWords,
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
        let urn = &*urn.with_equal_words_merged();
        let plan = |algorithm, cost| ExactPlan { algorithm, cost };
        let operations = |plan: &ExactPlan| {
            if plan.cost.bytes > MAX_EXACT_BYTES { f64::INFINITY } else { plan.cost.operations }
        };
        let plans = if urn.bursts().is_some() {
            vec![
                plan(Algorithm::BurstyTopics, bursty::cost_by_topics(urn)),
                plan(Algorithm::BurstyWords, bursty::cost_by_words(urn)),
            ]
        } else {
            vec![
                plan(Algorithm::Lattice, lattice::cost(urn)),
                plan(Algorithm::BoxRecursion, box_recursion::cost(urn)),
                plan(Algorithm::PowerSeries, power_series::cost(urn)),
            ]
        };
        let first = plans[0];
        let better = |best, plan| if operations(&plan) < operations(&best) { plan } else { best };
        plans.into_iter().fold(first, better)
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
    pub fn run(&self, urn: &LocalUrn, observer: &dyn Observer) -> Result<f64> {
        let urn = &*urn.with_equal_words_merged();
        match (self.algorithm, urn.bursts()) {
            (Algorithm::BurstyTopics, Some(bursts)) => {
                bursty::ln_sum_by_topics(urn, bursts, observer)
            }
            (Algorithm::BurstyWords, Some(bursts)) => {
                bursty::ln_sum_by_words(urn, bursts, observer)
            }
            (Algorithm::BoxRecursion, _) => box_recursion::ln_urn_sum(urn, observer),
            (Algorithm::PowerSeries, _) => power_series::ln_urn_sum(urn, observer),
            _ => lattice::ln_urn_sum(urn, observer),
        }
    }
}

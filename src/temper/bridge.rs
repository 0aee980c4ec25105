//! Ratios of normalising constants from chains at neighbouring temperatures.

use serde::{Deserialize, Serialize};

use crate::math::LogSum;
use crate::math::elementary::exp;

/// Halvings of the interval that holds the bridge estimate.
const HALVINGS: usize = 60;

/// Estimates of one step of the ladder, or of all of them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Steps {
    /// ln of the mean of γ_after/γ_before over draws of γ_before.
    pub(super) forward: f64,
    /// Minus ln of the mean of γ_before/γ_after over draws of γ_after.
    pub(super) backward: f64,
    /// Bennett's acceptance ratio, which uses both.
    pub(super) bridge: f64,
}

impl Steps {
    /// A step of `width` in β, from the values V of draws before and after it, as many of each.
    pub(super) fn between(width: f64, before: &[f64], after: &[f64]) -> Self {
        let forward: LogSum = before.iter().map(|value| width * value).collect();
        let backward: LogSum = after.iter().map(|value| -width * value).collect();
        let (forward, backward) = (forward.ln_mean(), -backward.ln_mean());
        Steps { forward, backward, bridge: bridge(width, before, after) }
    }

    /// Adds a step.
    pub(super) fn add(&mut self, step: Steps) {
        self.forward += step.forward;
        self.backward += step.backward;
        self.bridge += step.bridge;
    }
}

/// The c at which Σ σ(w - c) over draws before equals Σ σ(c - w) over draws after, with w = `width`
/// V and σ the logistic function.
fn bridge(width: f64, before: &[f64], after: &[f64]) -> f64 {
    let all = before.iter().chain(after).map(|value| width * value);
    let (mut low, mut high) =
        all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), w| (low.min(w), high.max(w)));
    for _ in 0..HALVINGS {
        let c = 0.5 * (low + high);
        let logistic = |x: f64| 1.0 / (1.0 + exp(-x));
        let excess: f64 = before.iter().map(|value| logistic(width * value - c)).sum::<f64>()
            - after.iter().map(|value| logistic(c - width * value)).sum::<f64>();
        if excess > 0.0 {
            low = c;
        } else {
            high = c;
        }
        if high - low <= 1e-12 * (1.0 + c.abs()) {
            break;
        }
    }
    0.5 * (low + high)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// V is a normal variable of variance 1 under γ_0 at its quantiles, and shifted by β under γ_β:
    /// the ratio is exp(β²/2).
    #[test]
    fn steps_between_normal_laws_have_their_known_ratio() {
        use rand::RngExt as _;

        let mut rng = crate::rng::Key::new(0, crate::rng::Purpose::Score).rng();
        let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let n = 20_000;
        let before: Vec<f64> = (0..n).map(|_| normal()).collect();
        let after: Vec<f64> = (0..n).map(|_| normal() + 0.8).collect();
        let step = Steps::between(0.8, &before, &after);
        let error = 0.8 / f64::from(n).sqrt();
        for (x, factor) in [(step.forward, 2.0), (step.backward, 2.0), (step.bridge, 1.0)] {
            assert!((x - 0.32).abs() < 4.0 * factor * error, "{step:?}");
        }
    }
}

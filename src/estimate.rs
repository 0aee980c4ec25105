//! What every estimator of a probability returns.

use crate::math::LogSum;

/// Estimate of a probability, on the log scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// ln of the estimate, in nats; `-inf` for an impossible event.
    pub ln_value: f64,
    /// Standard error of `ln_value` (delta method); 0 for exact values.
    pub std_error: f64,
    /// Effective number of replicates behind `std_error`; infinite for exact values.
    pub n_eff: f64,
    /// Number of independent replicates; 0 for exact values.
    pub n_replicates: u32,
}

impl Estimate {
    /// A value without error.
    pub fn exact(ln_value: f64) -> Self {
        Estimate { ln_value, std_error: 0.0, n_eff: f64::INFINITY, n_replicates: 0 }
    }

    /// A value whose error is not known.
    pub fn without_error(ln_value: f64) -> Self {
        Estimate { ln_value, std_error: f64::NAN, n_eff: f64::NAN, n_replicates: 0 }
    }

    /// The mean of independent unbiased replicates given by their logs, of `n_draws` draws in all.
    ///
    /// ln of the mean is low by about half its variance on average (Jensen). The standard error
    /// is that of the replicates and, beside it, of what they could not see: an event that none
    /// of n draws hit has a probability of about 1/(√2 n), the standard deviation under Jeffreys'
    /// prior. It matters where the draws are so sure that all replicates agree. Where they differ
    /// by a nat and more, the largest may still be missing: the spread is then at least that of
    /// log-normal replicates.
    pub fn from_replicates(ln_replicates: &[f64], n_draws: usize) -> Self {
        let sum: LogSum = ln_replicates.iter().copied().collect();
        let ln_value = sum.ln_mean();
        if ln_value == f64::NEG_INFINITY {
            return Estimate { ln_value, std_error: f64::INFINITY, n_eff: 0.0, n_replicates: 0 };
        }
        Estimate {
            ln_value,
            std_error: (sum.std_error().max(tail_error(ln_replicates))).hypot(unseen(n_draws)),
            n_eff: sum.n_eff(),
            n_replicates: ln_replicates.len() as u32,
        }
    }

    /// The ratio of two independent estimates.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Estimate {
            ln_value: self.ln_value - below.ln_value,
            std_error: self.std_error.hypot(below.std_error),
            n_eff: self.n_eff.min(below.n_eff),
            n_replicates: self.n_replicates.max(below.n_replicates),
        }
    }

    /// The estimate of the probability times exp(`ln_factor`).
    #[must_use]
    pub fn scaled(self, ln_factor: f64) -> Self {
        Estimate { ln_value: self.ln_value + ln_factor, ..self }
    }
}

/// Standard error of what none of `n_draws` draws has seen.
fn unseen(n_draws: usize) -> f64 {
    std::f64::consts::FRAC_1_SQRT_2 / n_draws as f64
}

/// Standard error of ln of the mean, were the replicates log-normal: √((exp s² - 1)/R), at most s,
/// s being the standard deviation of their logs. 0 where a replicate is zero.
fn tail_error(ln_replicates: &[f64]) -> f64 {
    let n = ln_replicates.len() as f64;
    let mean = ln_replicates.iter().sum::<f64>() / n;
    let squares: f64 = ln_replicates.iter().map(|x| (x - mean).powi(2)).sum();
    let variance = squares / (n - 1.0);
    if variance.is_finite() { (variance.exp_m1() / n).sqrt().min(variance.sqrt()) } else { 0.0 }
}

//! The estimate that every estimator of a probability returns.

use crate::math::{LogSum, variance};

/// The share of log-normal replicates that is effective when their logs have a standard deviation
/// of 1.
pub(crate) const RELIABLE_SHARE: f64 = 0.37;

/// Estimate of a probability, on the log scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// ln of the estimate, in nats; `-inf` for an impossible event.
    pub ln_value: f64,
    /// Standard error of `ln_value` (delta method); 0 for exact values.
    pub std_error: f64,
    /// Effective number of replicates behind `std_error`; infinite for exact values, NaN where it is
    /// not known.
    pub n_eff: f64,
    /// Number of independent replicates; 0 for exact values.
    pub n_replicates: u32,
}

/// Standard errors that what another estimate finds beyond is.
const ERRORS_MISSED: f64 = 2.0;

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

    /// The estimate beside another unbiased one, which may have found what all replicates missed: by
    /// Markov's inequality, it is e^δ times too high with a probability of at most e^-δ.
    #[must_use]
    pub fn beside(self, ln_other: f64) -> Self {
        let missed = (ln_other - self.ln_value).max(0.0) / ERRORS_MISSED;
        Estimate { std_error: self.std_error.hypot(missed), ..self }
    }

    /// The other side: minus ln of the mean of unbiased replicates of 1/p, given by ln of their
    /// inverses; high on average.
    pub fn from_inverses(ln_replicates: &[f64], n_draws: usize) -> Self {
        let ln_inverses: Vec<f64> = ln_replicates.iter().map(|x| -x).collect();
        let inverse = Estimate::from_replicates(&ln_inverses, n_draws);
        Estimate { ln_value: -inverse.ln_value, ..inverse }
    }

    /// The same from replicates that know of their own relative variance V, or of 0: the error is
    /// at least what they tell together.
    ///
    /// Ẑ² V estimates the variance of one of them and Ẑ² (1 - V) the square of its mean, without
    /// bias: their sums have the ratio exp s² - 1 for log-normal replicates of variance s². Chance
    /// may take V below 0, and above what the draws of a replicate can tell from 1.
    pub fn from_runs(runs: &[(f64, f64)], n_draws: usize) -> Self {
        let (ln_replicates, variances): (Vec<f64>, Vec<f64>) = runs.iter().copied().unzip();
        let found = Estimate::from_replicates(&ln_replicates, n_draws);
        let largest = ln_replicates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let squares = ln_replicates.iter().map(|ln_value| (2.0 * (ln_value - largest)).exp());
        let least = runs.len() as f64 / n_draws as f64;
        let (mut of_mean, mut of_variance) = (0.0, 0.0);
        for (square, variance) in squares.zip(variances).filter(|(square, _)| *square > 0.0) {
            let apart = (1.0 - variance).clamp(least, 1.0);
            of_mean += square * apart;
            of_variance += square * (1.0 - apart);
        }
        let told = log_normal_error((of_variance / of_mean).ln_1p(), runs.len());
        // Not a number where all replicates are zero.
        Estimate { std_error: found.std_error.max(told), ..found }
    }

    /// Whether the replicates tell too little for their standard error to be trusted: few of them
    /// are effective, or their logs deviate by more than 1, so that the largest may still be
    /// missing.
    pub fn is_doubtful(&self) -> bool {
        let n_replicates = f64::from(self.n_replicates);
        let reliable_error = 1_f64.exp_m1().sqrt() / n_replicates.max(1.0).sqrt();
        self.n_eff < RELIABLE_SHARE * n_replicates || self.std_error > reliable_error
    }

    /// The ratio of two independent estimates.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        // An effective number that is not known stays so.
        let is_fewer = self.n_eff <= below.n_eff || self.n_eff.is_nan();
        Estimate {
            ln_value: self.ln_value - below.ln_value,
            std_error: self.std_error.hypot(below.std_error),
            n_eff: if is_fewer { self.n_eff } else { below.n_eff },
            n_replicates: self.n_replicates.max(below.n_replicates),
        }
    }

    /// The same estimate, if each replicate is the mean of so many of those that it was made of.
    #[must_use]
    pub(crate) fn of_means(self, n_each: usize) -> Self {
        let (n_eff, n_replicates) = (self.n_eff / n_each as f64, self.n_replicates / n_each as u32);
        Estimate { n_eff, n_replicates, ..self }
    }

    /// The estimate of the probability times exp(`ln_factor`).
    #[must_use]
    pub fn scaled(self, ln_factor: f64) -> Self {
        Estimate { ln_value: self.ln_value + ln_factor, ..self }
    }
}

/// Standard error of what none of `n_draws` draws has seen.
pub(crate) fn unseen(n_draws: usize) -> f64 {
    std::f64::consts::FRAC_1_SQRT_2 / n_draws as f64
}

/// [`log_normal_error`] of replicates, given their logs. 0 where a replicate is zero.
fn tail_error(ln_replicates: &[f64]) -> f64 {
    let variance = variance(ln_replicates);
    if variance.is_finite() { log_normal_error(variance, ln_replicates.len()) } else { 0.0 }
}

/// Standard error of ln of the mean of R log-normal replicates: √((exp s² - 1)/R), at most s, s²
/// being the variance of their logs.
pub(crate) fn log_normal_error(variance: f64, n_replicates: usize) -> f64 {
    (variance.exp_m1() / n_replicates as f64).sqrt().min(variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_tell_an_error_that_equal_replicates_do_not_show() {
        let told = |variance| Estimate::from_runs(&[(-3.0, variance); 4], 4_000).std_error;
        assert!((told(0.2) - (0.25_f64 / 4.0).sqrt()).abs() < 1e-6);
        // A variance that cannot be told from 1 counts as far as 1,000 draws tell.
        assert!((told(1.0) - 1000_f64.ln().sqrt()).abs() < 1e-6);
        let plain = Estimate::from_replicates(&[-3.0; 4], 4_000).std_error;
        assert_eq!((told(0.0), told(-5.0)), (plain, plain));
    }

    #[test]
    fn what_another_estimate_finds_beyond_is_two_errors() {
        let found = Estimate { std_error: 0.3, ..Estimate::exact(-3.0) };
        assert_eq!(found.beside(-3.5), found);
        assert!((found.beside(-2.2).std_error - 0.5).abs() < 1e-12);
    }

    #[test]
    fn the_larger_error_counts() {
        let apart = [-3.0, -4.0, -5.0, -3.5];
        let plain = Estimate::from_replicates(&apart, 4_000);
        let runs = apart.map(|ln_value| (ln_value, 0.01));
        assert_eq!(Estimate::from_runs(&runs, 4_000), plain);
    }
}

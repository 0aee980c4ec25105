//! Evidence by total, and expected counts of cells that were not observed.

use super::ascent::MissingAscent;
use super::incomplete::Incomplete;
use super::totals::AllocationSums;
use crate::control::Observer;
use crate::error::{Result, array_of};
use crate::estimate::Estimate;
use crate::math::{LogSum, ln_factorial};
use crate::memory::check_bytes;

/// Probability that the totals listed under a bound may leave out.
const LEFT_BY_BOUND: f64 = 1e-9;

/// Bytes that a total takes in all arrays, those of the results included.
const BYTES_OF_A_TOTAL: f64 = 128.0;

/// Totals that are listed between two polls of the observer.
const TOTALS_BETWEEN_POLLS: usize = 1 << 20;

/// Evidence of a tensor by its total, and expected counts of the cells that were not observed.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// ln Pr(X_observed), summed over the totals.
    pub evidence: Estimate,
    /// ln Pr(S_+ = T, X_observed), for T from that of the observed cells on.
    pub ln_joint: Vec<Estimate>,
    /// Pr(S_+ = T | X_observed), and its standard error.
    pub posterior: Vec<(f64, f64)>,
    /// Expected counts of the missing cells given the observed ones, and their standard errors.
    pub expected: Vec<(f64, f64)>,
    /// ln of what the totals beyond the last would add to the evidence, about.
    pub ln_remainder: f64,
    /// ln of what they add at most.
    pub ln_remainder_bound: f64,
}

impl Incomplete {
    pub(super) fn completion(&self, runs: &[AllocationSums], n_draws: usize) -> Completion {
        let n_totals = runs[0].ln_joint.len();
        let estimate = |ln_values: Vec<f64>| Estimate::from_replicates(&ln_values, n_draws);
        let ln_evidences: Vec<f64> = runs.iter().map(AllocationSums::ln_evidence).collect();
        let ln_joint = |total: usize| runs.iter().map(move |run| run.ln_joint[total]);
        let ratio = |ln_parts: Vec<f64>| ratio(&ln_parts, &ln_evidences);
        let ln_counts =
            |cell: usize| runs.iter().map(move |run| run.counts[cell].ln() + run.ln_unit).collect();
        let ln_remainders = || runs.iter().map(|run| run.ln_remainder);
        let ln_remainder = if ln_remainders().all(f64::is_finite) {
            ln_remainders().collect::<LogSum>().ln_mean()
        } else {
            f64::INFINITY
        };
        let bound = self.ln_remainder_bound(n_totals as u64 - 1);
        Completion {
            evidence: estimate(ln_evidences.clone()),
            ln_joint: (0..n_totals).map(|total| estimate(ln_joint(total).collect())).collect(),
            posterior: (0..n_totals).map(|total| ratio(ln_joint(total).collect())).collect(),
            expected: (0..self.problem.missing.len()).map(|cell| ratio(ln_counts(cell))).collect(),
            ln_remainder: ln_remainder.min(bound),
            ln_remainder_bound: bound,
        }
    }
}

impl MissingAscent {
    /// The bound of variational Bayes and its distribution of the total, which is Poisson: without
    /// standard errors, and with totals that leave out less than 1e-9 of the probability.
    ///
    /// # Errors
    /// [`Memory`](crate::Error::Memory) for more totals than memory holds;
    /// [`Stopped`](crate::Error::Stopped) when the observer asks to stop.
    pub fn completion(&self, observer: &dyn Observer) -> Result<Completion> {
        let bound = self.decomposition.trace.last().copied().unwrap_or(f64::NAN);
        let unknown = |value: &f64| (*value, f64::NAN);
        let ln_shares = ln_poisson(self.expected.iter().sum(), observer)?;
        let ln_joint = ln_shares.iter().map(|ln_share| Estimate::without_error(bound + ln_share));
        let posterior = ln_shares.iter().map(|ln_share| (ln_share.exp(), f64::NAN));
        Ok(Completion {
            evidence: Estimate::without_error(bound),
            ln_joint: ln_joint.collect(),
            posterior: posterior.collect(),
            expected: self.expected.iter().map(unknown).collect(),
            ln_remainder: f64::NEG_INFINITY,
            ln_remainder_bound: f64::NEG_INFINITY,
        })
    }
}

/// ln of the probabilities of 0, 1, ... under the Poisson distribution, the last of which leaves
/// out less than [`LEFT_BY_BOUND`].
fn ln_poisson(mean: f64, observer: &dyn Observer) -> Result<Vec<f64>> {
    let ln_share = |n: f64| {
        if n > 0.0 { n * mean.ln() - mean - ln_factorial(n as u64) } else { -mean }
    };
    // Two standard deviations and more beyond what is needed.
    let n_listed = mean + 10.0 * mean.sqrt() + 20.0;
    check_bytes("totals", BYTES_OF_A_TOTAL * n_listed)?;
    let mut ln_shares = array_of("totals", n_listed as usize, 0.0)?;
    for (part, ln_shares) in ln_shares.chunks_mut(TOTALS_BETWEEN_POLLS).enumerate() {
        observer.check_stop()?;
        let totals = part * TOTALS_BETWEEN_POLLS..;
        ln_shares.iter_mut().zip(totals).for_each(|(share, n)| *share = ln_share(n as f64));
    }
    let mut left = 0.0;
    let n_left_out = ln_shares.iter().rev().take_while(|ln_share| {
        left += ln_share.exp();
        left < LEFT_BY_BOUND
    });
    let n_kept = ln_shares.len() - n_left_out.count();
    ln_shares.truncate(n_kept);
    Ok(ln_shares)
}

/// Ratio of the means of two estimates from the same replicates, and its standard error: that of
/// the delta method, and no less than that of the replicates' own ratios, were these independent of
/// their weights. It matters where one replicate has nearly all the weight.
fn ratio(ln_parts: &[f64], ln_wholes: &[f64]) -> (f64, f64) {
    let ln_unit = ln_wholes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let n = ln_parts.len() as f64;
    let in_units = |ln_values: &[f64]| -> Vec<f64> {
        ln_values.iter().map(|ln_value| (ln_value - ln_unit).exp()).collect()
    };
    let (parts, wholes) = (in_units(ln_parts), in_units(ln_wholes));
    let whole = wholes.iter().sum::<f64>();
    let ratio = parts.iter().sum::<f64>() / whole;
    let residual = |(part, whole): (&f64, &f64)| (part - ratio * whole).powi(2);
    let residuals: f64 = parts.iter().zip(&wholes).map(residual).sum();
    let own: Vec<f64> = ln_parts.iter().zip(ln_wholes).map(|(x, y)| (x - y).exp()).collect();
    let mean = own.iter().sum::<f64>() / n;
    let spread: f64 = own.iter().map(|x| (x - mean).powi(2)).sum();
    let squares: f64 = wholes.iter().map(|whole| whole.powi(2)).sum();
    let variance = (residuals * n).max(spread * squares) / (n - 1.0);
    (ratio, variance.sqrt() / whole)
}

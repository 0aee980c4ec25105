//! Sums over the total of a tensor with cells that were not observed.
//!
//! The total T is free. The urn goes on after the observed tokens with tokens that may fall in any
//! missing cell: the sum of its weights after m of them gives Pr(S_+ = T, X_observed) for T = T_o +
//! m, so that one run serves all totals.

use super::incomplete::Incomplete;
use crate::error::Result;
use crate::math::{LogSum, ln_add, ln_factorial, ln_rising};

/// Most missing tokens, where no last total is given.
const MOST_MISSING: u64 = 1_000_000;

/// When no more missing tokens are drawn.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    /// After so many of them.
    Drawn(u64),
    /// When totals beyond have less of the evidence than this, by its ln, or after the most that
    /// may be drawn.
    Remainder { ln_left: f64, most: u64 },
}

/// Sums over allocations.
pub(super) struct AllocationSums {
    /// ln Pr(S_+ = T, X_observed).
    pub(super) ln_joint: Vec<f64>,
    /// E[X_c; X_observed] of every missing cell, over exp `ln_unit`.
    pub(super) counts: Vec<f64>,
    pub(super) ln_unit: f64,
    pub(super) ln_remainder: f64,
}

impl AllocationSums {
    /// Adds the expected counts with one more token, given the intensities without it.
    fn add_counts(&mut self, intensities: &[f64]) {
        let ln_joint = self.ln_joint[self.ln_joint.len() - 1];
        if ln_joint > self.ln_unit {
            let shrink = (self.ln_unit - ln_joint).exp();
            self.counts.iter_mut().for_each(|count| *count *= shrink);
            self.ln_unit = ln_joint;
        }
        let joint = (ln_joint - self.ln_unit).exp();
        self.counts.iter_mut().zip(intensities).for_each(|(count, x)| *count += joint * x);
    }

    pub(super) fn ln_evidence(&self) -> f64 {
        let sum: LogSum = self.ln_joint.iter().copied().collect();
        sum.ln_sum()
    }
}

impl Incomplete {
    pub(super) fn end(&self, max_total: Option<u64>, left: f64) -> End {
        match max_total {
            Some(total) => End::Drawn(total.saturating_sub(self.problem.total)),
            None => End::Remainder { ln_left: left.ln(), most: MOST_MISSING },
        }
    }

    /// Draws missing tokens one by one. `draw` draws one, and tells the weight of every cell
    /// before.
    ///
    /// Pr(T_o + m, X) = NB(T_o + m) (T_o + m)!/(Π X! m!) Z_m, where Z_m = Π Σ weights.
    pub(super) fn sums(
        &self,
        ln_observed: f64,
        end: End,
        mut draw: impl FnMut(&mut [f64]) -> Result<()>,
    ) -> Result<AllocationSums> {
        let problem = &self.problem;
        let mut ln_joint = problem.ln_total(self.rate) + problem.ln_arrangements + ln_observed;
        let mut shares = vec![0.0; problem.missing.len()];
        let mut sums = AllocationSums {
            ln_joint: vec![ln_joint],
            counts: vec![0.0; shares.len()],
            ln_unit: ln_joint,
            ln_remainder: f64::INFINITY,
        };
        let mut ln_evidence = ln_joint;
        for drawn in 0.. {
            let done = match end {
                End::Drawn(n) => drawn >= n,
                End::Remainder { ln_left, most } => {
                    let ln_remainder = sums.ln_remainder.min(self.ln_remainder_bound(drawn));
                    ln_remainder <= ln_evidence + ln_left || drawn >= most
                }
            };
            if done {
                break;
            }
            draw(&mut shares)?;
            // Intensity of every cell, expected with so many tokens.
            let scale = (self.concentration + (problem.total + drawn) as f64) / (self.rate + 1.0);
            shares.iter_mut().for_each(|share| *share *= scale);
            sums.add_counts(&shares);
            let intensity: f64 = shares.iter().sum();
            ln_joint += (intensity / (drawn + 1) as f64).ln();
            sums.ln_joint.push(ln_joint);
            sums.ln_remainder = ln_joint + self.ln_tail(intensity, drawn);
            ln_evidence = ln_add(ln_evidence, ln_joint);
        }
        Ok(sums)
    }

    /// ln Σ over totals beyond `drawn` + 1 missing tokens of their probability over that of this
    /// one, `intensity` being that of the missing cells when one token less is drawn.
    ///
    /// Pr(T + 1, X)/Pr(T, X) = intensity/(m + 1), and an urn's intensity grows by 1/(b + 1) with
    /// every token that it draws.
    fn ln_tail(&self, intensity: f64, drawn: u64) -> f64 {
        let fading = self.rate / (self.rate + 1.0);
        let ratio = (intensity + (self.rate + 1.0).recip()) / (drawn + 2) as f64;
        if ratio < 1.0 { (ratio / fading.min(1.0 - ratio)).ln() } else { f64::INFINITY }
    }

    /// ln of a bound on Pr(S_+ > T, X_observed) after so many missing tokens: the greatest
    /// probability of the observed cells times the tail of the negative binomial.
    pub(super) fn ln_remainder_bound(&self, drawn: u64) -> f64 {
        let (a, b) = (self.concentration, self.rate);
        let next = self.problem.total + drawn + 1;
        let ln_next = ln_rising(a, next)
            - ln_factorial(next)
            - a * b.recip().ln_1p()
            - next as f64 * b.ln_1p();
        let ratio = (a + next as f64) / ((b + 1.0) * (next + 1) as f64);
        let fading = (b / (b + 1.0)).min(1.0 - ratio).max(0.0);
        self.ln_greatest + (ln_next - fading.ln()).min(0.0)
    }
}

//! The distribution of how tokens divide between two states, some of its weights at a time.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use super::counts::CountWeights;
use crate::math::elementary::{exp, ln};
use crate::math::ln_rising;

/// A row whose count changes with each token that moves to the first state of a pair.
pub(crate) struct CountChange {
    pub(crate) row: usize,
    pub(crate) by: i32,
    /// Power of the row in the distribution.
    pub(crate) exponent: i32,
    /// Slot of the row.
    pub(crate) slot: usize,
}

/// Two states, between which tokens of a cell divide in one lane.
#[derive(Clone, Copy)]
pub(crate) struct LanePair {
    pub(crate) states: [usize; 2],
    pub(crate) lane: usize,
}

/// Law of the divisions of a cell's tokens.
pub(crate) trait SplitLaw {
    /// Adds, to ln of the weights of 0, 1, ... tokens in the first state, those of a row that holds
    /// `start` tokens where none is: up to a constant.
    fn add_row(&self, change: &CountChange, start: i32, ln_weights: &mut [f64]);

    /// Takes ln of the distribution's weights of `first`, `first + 1`, ... of `n_tokens` in the
    /// first of two states to those at the place of a lane on a path: up to a constant.
    fn place(&self, pair: LanePair, first: usize, n_tokens: usize, ln_weights: &mut [f64]);

    /// ln of what a row that holds `count` tokens brings to the weight of a division.
    fn ln_row(&self, change: &CountChange, count: i32) -> f64;

    /// ln of the weight at the place of a lane on a path, with so many tokens in the two states.
    fn placed(&self, pair: LanePair, tokens: [i32; 2], ln_weight: f64) -> f64;
}

impl SplitLaw for CountWeights<'_> {
    #[inline(always)]
    fn add_row(&self, change: &CountChange, start: i32, ln_weights: &mut [f64]) {
        add_rising(self.base[change.row], self.unit, change, start, ln_weights);
    }

    #[inline(always)]
    fn place(&self, _: LanePair, _: usize, _: usize, _: &mut [f64]) {}

    fn ln_row(&self, change: &CountChange, count: i32) -> f64 {
        let (base, n) = (self.base[change.row], f64::from(count));
        let ln_rising = if self.unit == 0.0 {
            n * base.ln()
        } else {
            n * self.unit.ln() + ln_rising(base / self.unit, count as u64)
        };
        f64::from(change.exponent) * ln_rising
    }

    fn placed(&self, _: LanePair, _: [i32; 2], ln_weight: f64) -> f64 {
        ln_weight
    }
}

/// Adds ln of `base (base + unit) ...` of a row to ln of the weights.
#[inline(always)]
pub(crate) fn add_rising(
    base: f64,
    unit: f64,
    change: &CountChange,
    start: i32,
    ln_weights: &mut [f64],
) {
    let exponent = f64::from(change.exponent * change.by.signum());
    let (first, by) = (f64::from(start.min(start + change.by.signum())), f64::from(change.by));
    // Beyond the last division a row may hold less than nothing.
    let term = |count: f64| exponent * ln((base + unit * count).max(f64::MIN_POSITIVE));
    if change.by.abs() == 1 {
        add_sums(ln_weights, |n| term(first + by * n));
    } else {
        let hits = |n: f64| {
            (0..change.by.abs()).map(move |hit| first + by * n + by.signum() * f64::from(hit))
        };
        add_sums(ln_weights, |n| hits(n).map(term).sum());
    }
}

/// Adds, to the number at each n, the sum of the terms before it: some at a time, in vector registers.
#[inline(always)]
pub(crate) fn add_sums(numbers: &mut [f64], term: impl Fn(f64) -> f64) {
    const PART: usize = 64;
    let mut sum = 0.0;
    for (part, numbers) in (0..).zip(numbers.chunks_mut(PART)) {
        let mut terms = [0.0; PART];
        for (n, x) in terms.iter_mut().enumerate() {
            *x = term((part * PART + n) as f64);
        }
        for (number, x) in numbers.iter_mut().zip(terms) {
            *number += sum;
            sum += x;
        }
    }
}

/// Draws an index with these ln of weights, the largest of which is `most`; they become cumulative
/// sums.
#[inline(always)]
pub(crate) fn pick(ln_weights: &mut [f64], most: f64, dart: f64) -> i32 {
    for weight in &mut *ln_weights {
        *weight = exp(*weight - most);
    }
    let mut total = 0.0;
    for weight in &mut *ln_weights {
        total += *weight;
        *weight = total;
    }
    let passed = ln_weights.partition_point(|&sum| sum <= dart * total);
    passed.min(ln_weights.len() - 1) as i32
}

//! Sums that do not depend on the order of their terms.

use std::iter::Sum;
use std::ops::AddAssign;

/// Fraction of a unit to which a term is rounded.
const PARTS: f64 = (1u64 << 48) as f64;

/// Sum of finite numbers below 10^15 in size, each rounded to a multiple of 2^-48: equal bits for any
/// order and any grouping of the terms, as long as there are fewer than 2^29 of the largest of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExactSum(i128);

impl ExactSum {
    /// The sum of multiples of 2^-48 that [`parts`](Self::parts) gave.
    pub fn from_parts(parts: i128) -> Self {
        ExactSum(parts)
    }

    /// The sum as a multiple of 2^-48.
    pub fn parts(self) -> i128 {
        self.0
    }

    /// Adds a term so many times.
    pub fn add_times(&mut self, n: u32, term: f64) {
        self.0 += i128::from(n) * (term * PARTS).round() as i128;
    }

    /// The nearest double.
    pub fn value(self) -> f64 {
        self.0 as f64 / PARTS
    }
}

impl AddAssign<f64> for ExactSum {
    #[inline]
    fn add_assign(&mut self, term: f64) {
        self.add_times(1, term);
    }
}

impl AddAssign for ExactSum {
    fn add_assign(&mut self, other: ExactSum) {
        self.0 += other.0;
    }
}

impl Sum for ExactSum {
    fn sum<I: Iterator<Item = ExactSum>>(sums: I) -> Self {
        ExactSum(sums.map(|sum| sum.0).sum())
    }
}

impl Sum<f64> for ExactSum {
    fn sum<I: Iterator<Item = f64>>(terms: I) -> Self {
        let mut sum = ExactSum::default();
        terms.for_each(|term| sum += term);
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_order_nor_grouping_matters() {
        let terms: Vec<f64> = (0..1_000).map(|i| f64::from(i).sin() * 1e6).collect();
        let forward: ExactSum = terms.iter().copied().sum();
        let backward: ExactSum = terms.iter().rev().copied().sum();
        let part = |part: &[f64]| part.iter().copied().sum::<ExactSum>().parts();
        let in_parts = ExactSum::from_parts(terms.chunks(7).map(part).sum());
        assert_eq!(forward, backward);
        assert_eq!(forward, in_parts);
        let plain: f64 = terms.iter().sum();
        assert!((forward.value() - plain).abs() < 1e-7, "{} {plain}", forward.value());
        let inexact: f64 = terms.iter().rev().sum();
        assert!(plain.to_bits() != inexact.to_bits());
    }
}

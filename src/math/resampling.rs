//! Resampling schemes of particle filters.

use rand::{Rng, RngExt};

use super::systematic_offspring;

/// How ancestors are drawn: each particle has n w_i / Σw children on average.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resampling {
    /// Independent draws.
    Multinomial,
    /// The whole part of every expected number, and independent draws of the rest.
    Residual,
    /// One draw in each of n equal parts of the total weight.
    Stratified,
    /// The same point in each of n equal parts.
    Systematic,
}

impl Resampling {
    /// Number of children of every particle, n in all.
    pub fn offspring<R: Rng + ?Sized>(self, weights: &[f64], rng: &mut R) -> Vec<u32> {
        let n = weights.len();
        let mut offspring = vec![0u32; n];
        match self {
            Resampling::Systematic => systematic_offspring(weights, &mut offspring, rng.random()),
            Resampling::Stratified => {
                let darts = (0..n).map(|part| (part as f64 + rng.random::<f64>()) / n as f64);
                throw(weights, darts, &mut offspring);
            }
            Resampling::Multinomial => multinomial(weights, n, &mut offspring, rng),
            Resampling::Residual => {
                let scale = n as f64 / weights.iter().sum::<f64>();
                let whole = weights.iter().map(|weight| (weight * scale).floor());
                offspring.iter_mut().zip(whole).for_each(|(children, n)| *children = n as u32);
                let left = n - offspring.iter().sum::<u32>() as usize;
                let rest: Vec<f64> = weights.iter().map(|x| (x * scale).fract()).collect();
                multinomial(&rest, left, &mut offspring, rng);
            }
        }
        offspring
    }
}

fn multinomial<R: Rng + ?Sized>(weights: &[f64], n: usize, offspring: &mut [u32], rng: &mut R) {
    let mut darts: Vec<f64> = (0..n).map(|_| rng.random()).collect();
    darts.sort_unstable_by(f64::total_cmp);
    throw(weights, darts.into_iter(), offspring);
}

/// Adds the children that increasing darts, as shares of the total weight, fall on.
fn throw(weights: &[f64], darts: impl Iterator<Item = f64>, offspring: &mut [u32]) {
    let total: f64 = weights.iter().sum();
    let last = weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0);
    let (mut i, mut upto) = (0, weights[0]);
    for dart in darts {
        while upto <= dart * total && i < last {
            i += 1;
            upto += weights[i];
        }
        offspring[i] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    #[test]
    fn every_scheme_keeps_the_size_and_the_mean() {
        let weights = [0.1, 0.0, 2.0, 0.7, 0.2];
        let total: f64 = weights.iter().sum();
        let runs = 40_000;
        for (seed, scheme) in (0..).zip([
            Resampling::Multinomial,
            Resampling::Residual,
            Resampling::Stratified,
            Resampling::Systematic,
        ]) {
            let mut rng = Key::new(seed, Purpose::Score).rng();
            let mut mean = [0.0; 5];
            for _ in 0..runs {
                let offspring = scheme.offspring(&weights, &mut rng);
                assert_eq!(offspring.iter().sum::<u32>() as usize, weights.len());
                for (mean, children) in mean.iter_mut().zip(offspring) {
                    *mean += f64::from(children) / f64::from(runs);
                }
            }
            for (mean, weight) in mean.iter().zip(weights) {
                let expected = 5.0 * weight / total;
                // No scheme has more variance than independent draws.
                let error = (expected / f64::from(runs)).sqrt();
                assert!((mean - expected).abs() < 4.0 * error + 1e-12, "{scheme:?}");
            }
        }
    }
}

//! Documents of different sizes: what p and r depend on, beside the topics of the tokens.
//!
//! With x = (1-p)/p, the rate of the gamma law of θ, a topic has n of the tokens of a document of
//! exposure e with probability ∝ x^r e^n / (x + e)^(r + n), θ integrated out.

use std::collections::BTreeMap;

use crate::error::{Result, check_length, check_positive};
use crate::math::elementary::{exp, ln};
use crate::math::ln_add;
use crate::training::tokens::ExposureGroups;

/// Exposures that are summed over side by side.
const LANES: usize = 8;

/// The different exposures of the documents of a corpus, and of each group that has gamma shapes of
/// its own.
pub(super) struct Exposures {
    ln_values: Vec<f64>,
    /// First cell of each group, and the end. A cell is an exposure of a group.
    starts: Vec<usize>,
    /// Number of the exposure of each cell, its logarithm, and the documents that have it.
    numbers: Vec<u32>,
    ln_cells: Vec<f64>,
    n_documents: Vec<f64>,
}

/// Dependence of the rate x of a topic on its tokens, those of each exposure, given r of all groups.
pub(super) struct RateDensity<'a> {
    ln_exposures: &'a [f64],
    /// Sum of r over the documents, and tokens, of each exposure.
    weights: Vec<f64>,
    n_tokens: f64,
    /// p ~ Beta(first, second).
    prior: (f64, f64),
}

impl Exposures {
    /// Documents are in these groups; `None` is one group of all.
    pub(super) fn new(exposures: &ExposureGroups, groups: Option<&[u32]>) -> Result<Self> {
        let ExposureGroups { values, numbers } = exposures;
        check_positive("exposure", values)?;
        check_length("exposure", numbers.len(), groups.map_or(numbers.len(), <[u32]>::len))?;
        let mut documents = BTreeMap::new();
        for (doc_ix, &number) in numbers.iter().enumerate() {
            let group = groups.map_or(0, |groups| groups[doc_ix]);
            *documents.entry((group, number)).or_insert(0.0) += 1.0;
        }
        let (cells, n_documents): (Vec<_>, Vec<f64>) = documents.into_iter().unzip();
        let n_groups = cells.last().map_or(0, |&(group, _)| group + 1);
        let start = |group| cells.partition_point(|&(own, _)| own < group);
        let starts = (0..=n_groups).map(start).collect();
        let numbers: Vec<u32> = cells.iter().map(|&(_, number)| number).collect();
        let ln_values: Vec<f64> = values.iter().map(|e| e.ln()).collect();
        let ln_cells = numbers.iter().map(|&number| ln_values[number as usize]).collect();
        Ok(Exposures { ln_values, starts, numbers, ln_cells, n_documents })
    }

    /// Number of different exposures.
    pub(super) fn n(&self) -> usize {
        self.ln_values.len()
    }

    /// Σ over the documents of each group of ln(1 + e/x), which is -ln of P(no token of the topic) by
    /// unit of r.
    pub(super) fn ln_empty(&self, ln_x: f64) -> impl Iterator<Item = f64> {
        let cells = self.starts.windows(2).map(|ends| ends[0]..ends[1]);
        cells.map(move |own| sums(&self.ln_cells[own.clone()], &self.n_documents[own], ln_x).0)
    }

    /// Σ over the tokens of a topic, those of each exposure, of ln(e / (x + e)).
    pub(super) fn ln_tokens(&self, tokens: &[u64], ln_x: f64) -> f64 {
        let ln_share = |ln_e: f64| -softplus(ln_x - ln_e);
        tokens.iter().zip(&self.ln_values).map(|(&n, &ln_e)| n as f64 * ln_share(ln_e)).sum()
    }

    /// The density of ln x given r of each group and the tokens of a topic, those of each exposure;
    /// p ~ Beta(first, second).
    pub(super) fn density(
        &self,
        tokens: &[u64],
        r: impl Iterator<Item = f64>,
        prior: (f64, f64),
    ) -> RateDensity<'_> {
        let mut weights = vec![0.0; tokens.len()];
        for (own, r) in self.starts.windows(2).zip(r) {
            for cell in own[0]..own[1] {
                weights[self.numbers[cell] as usize] += r * self.n_documents[cell];
            }
        }
        weights.iter_mut().zip(tokens).for_each(|(weight, &n)| *weight += n as f64);
        let n_tokens = tokens.iter().sum::<u64>() as f64;
        RateDensity { ln_exposures: &self.ln_values, weights, n_tokens, prior }
    }
}

impl RateDensity<'_> {
    /// ln of the density at t = ln x, up to a constant, and its slope. Concave in t.
    pub(super) fn ln_at(&self, t: f64) -> (f64, f64) {
        // x^second / (1 + x)^(first + second), and for every document, of n tokens,
        // x^r e^n / (x + e)^(r + n) = e^n (1 + e/x)^-(r + n) x^-n.
        let (first, second) = self.prior;
        let (value, slope) = sums(self.ln_exposures, &self.weights, t);
        (
            -second * softplus(-t) - first * softplus(t) - value - self.n_tokens * t,
            second * logistic(-t) - first * logistic(t) + slope - self.n_tokens,
        )
    }
}

/// Σ w ln(1 + e/x) and Σ w e/(x + e) over exposures e, of which as of x the logarithms are given.
#[polyabayes_macros::vectorised]
fn sums(ln_exposures: &[f64], weights: &[f64], ln_x: f64) -> (f64, f64) {
    let (mut values, mut slopes) = ([0.0; LANES], [0.0; LANES]);
    let chunks = ln_exposures.chunks(LANES).zip(weights.chunks(LANES));
    for (ln_exposures, weights) in chunks {
        let (mut distances, mut own) = ([0.0; LANES], [0.0; LANES]);
        distances.iter_mut().zip(ln_exposures).for_each(|(to, ln_e)| *to = ln_e - ln_x);
        own[..weights.len()].copy_from_slice(weights);
        for lane in 0..LANES {
            let distance = distances[lane];
            let power = exp(-distance.abs());
            let sum = 1.0 + power;
            // The sum has lost this part of the power, to first order.
            let ln_1p = ln(sum) + (power - (sum - 1.0)) / sum;
            let larger = if distance > 0.0 { 1.0 } else { power };
            values[lane] += own[lane] * (distance.max(0.0) + ln_1p);
            slopes[lane] += own[lane] * (larger / sum);
        }
    }
    (values.iter().sum(), slopes.iter().sum())
}

/// ln(1 + exp x).
pub(super) fn softplus(x: f64) -> f64 {
    ln_add(x, 0.0)
}

/// 1 / (1 + exp(-x)).
fn logistic(x: f64) -> f64 {
    (1.0 + (-x).exp()).recip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_exposures_are_those_of_their_terms() {
        let values: Vec<f64> = (0..19).map(|i| (f64::from(i) - 9.0).exp()).collect();
        let numbers = (0..19).flat_map(|i| vec![i; 1 + i as usize]).collect();
        let groups = ExposureGroups { values, numbers };
        let exposures = Exposures::new(&groups, None).unwrap();
        let tokens: Vec<u64> = (0..19).map(|i| i * i % 7).collect();
        let (r, prior) = (0.3, (0.1, 0.9));
        let density = exposures.density(&tokens, std::iter::once(r), prior);
        for t in [-800.0, -30.0, -2.5, 0.0, 0.1, 7.0, 60.0, 800.0] {
            let distances = || exposures.ln_values.iter().map(|ln_e| ln_e - t);
            let empty: f64 =
                distances().zip(&exposures.n_documents).map(|(x, n)| n * softplus(x)).sum();
            let close = |x: f64, y: f64| (x - y).abs() <= 1e-13 * y.abs();
            assert!(close(exposures.ln_empty(t).sum(), empty), "{t}: {empty}");
            let mut expected = (
                -prior.1 * softplus(-t) - prior.0 * softplus(t) - r * empty,
                prior.1 * logistic(-t) - prior.0 * logistic(t),
            );
            for ((x, documents), &n) in distances().zip(&exposures.n_documents).zip(&tokens) {
                expected.0 -= n as f64 * (softplus(-x) + x + t);
                expected.1 += r * documents * logistic(x) - n as f64 * logistic(-x);
            }
            let found = density.ln_at(t);
            assert!((found.0 - expected.0).abs() <= 1e-11 * expected.0.abs().max(1.0), "{t}");
            assert!((found.1 - expected.1).abs() <= 1e-12 * density.n_tokens, "{t}: {found:?}");
        }
    }
}

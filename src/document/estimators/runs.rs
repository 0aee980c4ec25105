//! Replicates of an estimator, and the sample sizes at which they are looked at.

use crate::error::Result;
use crate::math::LogSum;
use crate::rng::Lanes;

/// Independent replicates of one estimator.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a> {
    /// Number of replicates.
    pub n: usize,
    /// Sample sizes at which a replicate is looked at, increasing; the last is its whole size.
    /// Results have one value for each, replicate after replicate.
    pub sizes: &'a [usize],
}

impl Runs<'_> {
    /// Draws, particles or sweeps of a replicate.
    pub fn size(&self) -> usize {
        self.sizes[self.sizes.len() - 1]
    }

    /// A mean that is looked at when it has each of the sizes.
    pub(super) fn growing(&self) -> Growing<'_> {
        Growing { sizes: self.sizes, sum: LogSum::default(), ln_means: Vec::new() }
    }

    /// ln of the mean of the first terms of every replicate, for each of the sizes; `ln_terms` has
    /// the terms of one replicate after the other.
    pub(super) fn ln_means(&self, ln_terms: &[f64]) -> Vec<f64> {
        let replicates = ln_terms.chunks_exact(self.size());
        replicates
            .flat_map(|terms| {
                let mut mean = self.growing();
                terms.iter().for_each(|&ln_x| mean.push(ln_x));
                mean.ln_means
            })
            .collect()
    }
}

/// Mean of terms known by their logarithms, with its values on the way.
pub(super) struct Growing<'a> {
    sizes: &'a [usize],
    sum: LogSum,
    /// ln of the mean at each of the sizes reached so far.
    pub(super) ln_means: Vec<f64>,
}

impl Growing<'_> {
    /// Adds the term exp(`ln_x`).
    pub(super) fn push(&mut self, ln_x: f64) {
        self.sum.push(ln_x);
        if self.sizes.get(self.ln_means.len()) == Some(&(self.sum.n_terms() as usize)) {
            self.ln_means.push(self.sum.ln_mean());
        }
    }
}

/// Values of `n` replicates, those of one after those of the other, from batches that compute all
/// lanes at a time.
pub(super) fn in_lanes(
    n: usize,
    mut batch: impl FnMut() -> Result<Vec<Lanes>>,
) -> Result<Vec<f64>> {
    let mut values = Vec::new();
    let mut done = 0;
    while done < n {
        let lanes = batch()?;
        let replicates = (0..lanes[0].len()).take(n - done);
        done += replicates.len();
        values.extend(replicates.flat_map(|lane| lanes.iter().map(move |x| x[lane])));
    }
    Ok(values)
}

/// Adds to the numbers of all lanes.
pub(super) fn add(sums: &mut Lanes, terms: Lanes) {
    sums.iter_mut().zip(terms).for_each(|(sum, x)| *sum += x);
}

//! Replicates of an estimator, and the sample sizes at which they are looked at.

use crate::error::Result;
use crate::math::{LogSum, has_heavy_tail};
use crate::rng::Lanes;

/// Weights whose tail is looked at, at most.
const MOST_WEIGHTS: usize = 1 << 16;

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

    /// Replicates that average independent weights, whose logarithms come one after the other.
    pub(super) fn averages(
        &self,
        mut ln_weights: impl Iterator<Item = Result<f64>>,
    ) -> Result<Replicates> {
        let (mut ln_values, mut pool) = (Vec::with_capacity(self.n * self.sizes.len()), Vec::new());
        for _ in 0..self.n {
            let mut mean = self.growing();
            for (draw, ln_x) in ln_weights.by_ref().take(self.size()).enumerate() {
                let ln_x = ln_x?;
                mean.push(ln_x);
                if draw < MOST_WEIGHTS / self.n {
                    pool.push(ln_x);
                }
            }
            ln_values.append(&mut mean.ln_means);
        }
        Ok(Replicates { ln_values, is_heavy: has_heavy_tail(&mut pool) })
    }
}

/// Values of replicates.
#[derive(Debug)]
pub struct Replicates {
    /// ln of each value, at each of the sizes.
    pub ln_values: Vec<f64>,
    /// Whether the independent weights that they average have a [heavy tail](has_heavy_tail): the
    /// replicates then agree on values that are too low. False where they average others.
    pub is_heavy: bool,
}

impl From<Vec<f64>> for Replicates {
    fn from(ln_values: Vec<f64>) -> Self {
        Replicates { ln_values, is_heavy: false }
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

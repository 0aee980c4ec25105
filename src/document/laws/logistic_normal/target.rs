//! The posterior of a document's latent vector beside a Gaussian, in the Gaussian's own coordinates.
//!
//! The prior is η = μ + L z with z ~ N(0, I), which leaves zero eigenvalues of the covariance out.
//! With a Gaussian g = N(m, A Aᵀ) of z and z = m + A u,
//! V(u) = ln p(tokens | η) + ln N(z; 0, I) - ln g(z): the mean of exp V over u ~ N(0, I) is p(tokens).

use super::decoder::{DecoderScratch, Link, Local, evaluate};
use crate::rng::{LANES, Lanes};

/// η as a function of z.
pub(super) struct NormalPrior<'a> {
    pub(super) mean: &'a [f64],
    /// L, coordinates x rank.
    pub(super) factor: &'a [f64],
    pub(super) rank: usize,
}

impl NormalPrior<'_> {
    /// The largest variance of a coordinate.
    pub(super) fn largest_variance(&self) -> f64 {
        let variances = self.factor.chunks(self.rank).map(|row| row.iter().map(|l| l * l).sum());
        variances.fold(0.0, f64::max)
    }

    /// η = μ + L z.
    pub(super) fn coordinates(&self, z: &[f64]) -> Vec<f64> {
        let row = |j: usize| &self.factor[j * self.rank..][..self.rank];
        let shift = |j: usize| row(j).iter().zip(z).map(|(l, z)| l * z).sum::<f64>();
        self.mean.iter().enumerate().map(|(j, mean)| mean + shift(j)).collect()
    }
}

/// N(m, A Aᵀ) over z.
#[derive(Debug, Clone)]
pub(super) struct Gaussian {
    pub(super) mean: Vec<f64>,
    /// A, rank x rank.
    pub(super) factor: Vec<f64>,
    /// ln |det A|.
    pub(super) ln_det: f64,
}

impl Gaussian {
    /// N(0, I), the prior of z itself.
    pub(super) fn standard(rank: usize) -> Self {
        let mut factor = vec![0.0; rank * rank];
        factor.iter_mut().step_by(rank + 1).for_each(|x| *x = 1.0);
        Gaussian { mean: vec![0.0; rank], factor, ln_det: 0.0 }
    }

    /// u with m + A u = z, by back substitution: A is upper triangular.
    pub(super) fn coordinates(&self, z: &[f64]) -> Vec<f64> {
        let rank = z.len();
        let mut u = vec![0.0; rank];
        for i in (0..rank).rev() {
            let row = &self.factor[i * rank..][..rank];
            let sum: f64 = (i + 1..rank).map(|j| row[j] * u[j]).sum();
            u[i] = (z[i] - self.mean[i] - sum) / row[i];
        }
        u
    }
}

/// V and its gradient.
pub(super) struct Potential<'a> {
    decoder: &'a Local<'a>,
    link: Link,
    /// Rows of η, then rows of z, as functions of u.
    offsets: Vec<f64>,
    matrix: Vec<f64>,
    transposed: Vec<f64>,
    ln_det: f64,
    pub(super) rank: usize,
}

/// Memory that evaluations share.
#[derive(Default)]
pub(super) struct PotentialScratch {
    positions: Vec<Lanes>,
    slopes: Vec<Lanes>,
    decoder: DecoderScratch,
}

impl<'a> Potential<'a> {
    pub(super) fn new(
        decoder: &'a Local<'a>,
        link: Link,
        prior: &NormalPrior<'_>,
        gaussian: &Gaussian,
    ) -> Self {
        let rank = prior.rank;
        let mut offsets = prior.coordinates(&gaussian.mean);
        let mut matrix = Vec::with_capacity((offsets.len() + rank) * rank);
        for row in prior.factor.chunks_exact(rank) {
            let start = matrix.len();
            matrix.resize(start + rank, 0.0);
            for (l, a) in row.iter().zip(gaussian.factor.chunks_exact(rank)) {
                for (to, a) in matrix[start..].iter_mut().zip(a) {
                    *to += l * a;
                }
            }
        }
        offsets.extend(&gaussian.mean);
        matrix.extend(&gaussian.factor);
        let n_rows = offsets.len();
        let transposed = (0..rank)
            .flat_map(|i| (0..n_rows).map(move |j| (i, j)))
            .map(|(i, j)| matrix[j * rank + i]);
        let transposed = transposed.collect();
        Potential { decoder, link, offsets, transposed, matrix, ln_det: gaussian.ln_det, rank }
    }

    /// V of sixteen u, and its gradient.
    pub(super) fn evaluate(
        &self,
        u: &[Lanes],
        gradient: &mut [Lanes],
        room: &mut PotentialScratch,
    ) -> Lanes {
        let n_rows = self.offsets.len();
        let n_coordinates = n_rows - self.rank;
        room.positions.resize(n_rows, [0.0; LANES]);
        room.slopes.resize(n_rows, [0.0; LANES]);
        product(&self.matrix, &self.offsets, u, &mut room.positions);
        let (eta, z) = room.positions.split_at(n_coordinates);
        let (eta_slopes, z_slopes) = room.slopes.split_at_mut(n_coordinates);
        let mut value = evaluate(self.decoder, self.link, eta, eta_slopes, &mut room.decoder);
        for (slope, z) in z_slopes.iter_mut().zip(z) {
            *slope = z.map(|z| -z);
            for lane in 0..LANES {
                value[lane] -= 0.5 * z[lane] * z[lane];
            }
        }
        product(&self.transposed, &[], &room.slopes, gradient);
        for (slope, u) in gradient.iter_mut().zip(u) {
            for lane in 0..LANES {
                slope[lane] += u[lane];
                value[lane] += 0.5 * u[lane] * u[lane];
            }
        }
        value.map(|value| value + self.ln_det)
    }

    /// η of a lane of the last evaluation.
    pub(super) fn coordinates(&self, room: &PotentialScratch, lane: usize) -> Vec<f64> {
        room.positions[..self.offsets.len() - self.rank].iter().map(|x| x[lane]).collect()
    }
}

/// offsets + M x in every lane.
#[polyabayes_macros::vectorised]
fn product(matrix: &[f64], offsets: &[f64], x: &[Lanes], out: &mut [Lanes]) {
    for (j, (row, out)) in matrix.chunks_exact(x.len()).zip(out.iter_mut()).enumerate() {
        let mut sum = [offsets.get(j).copied().unwrap_or(0.0); LANES];
        for (&m, x) in row.iter().zip(x) {
            for lane in 0..LANES {
                sum[lane] += m * x[lane];
            }
        }
        *out = sum;
    }
}

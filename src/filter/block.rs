//! Weights of particles, one by one or in lanes.

use crate::rng::{LANES, Lanes};

/// The weights of particles that are drawn together.
pub trait Block: Copy {
    /// Number of particles.
    const N: usize;

    /// All weights one.
    const ONE: Self;

    /// The weights of some blocks, one after the other.
    fn flat(blocks: &[Self]) -> &[f64];

    /// The same, to change them.
    fn flat_mut(blocks: &mut [Self]) -> &mut [f64];

    /// Σ w and Σ w² of some blocks.
    fn sums(blocks: &[Self]) -> (f64, f64);
}

impl Block for f64 {
    const N: usize = 1;
    const ONE: Self = 1.0;

    fn flat(blocks: &[Self]) -> &[f64] {
        blocks
    }

    fn flat_mut(blocks: &mut [Self]) -> &mut [f64] {
        blocks
    }

    fn sums(blocks: &[Self]) -> (f64, f64) {
        blocks.iter().fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w))
    }
}

impl Block for Lanes {
    const N: usize = LANES;
    const ONE: Self = [1.0; LANES];

    fn flat(blocks: &[Self]) -> &[f64] {
        blocks.as_flattened()
    }

    fn flat_mut(blocks: &mut [Self]) -> &mut [f64] {
        blocks.as_flattened_mut()
    }

    fn sums(blocks: &[Self]) -> (f64, f64) {
        sums_of_lanes(blocks)
    }
}

#[polyabayes_macros::vectorised]
fn sums_of_lanes(blocks: &[Lanes]) -> (f64, f64) {
    let (mut sums, mut squares) = ([0.0; LANES], [0.0; LANES]);
    for weights in blocks {
        for lane in 0..LANES {
            sums[lane] += weights[lane];
            squares[lane] += weights[lane] * weights[lane];
        }
    }
    (sums.iter().sum(), squares.iter().sum())
}

/// Multiplies weights so that the largest is 1; returns ln of the factor taken out.
#[polyabayes_macros::vectorised]
pub(super) fn rescale(blocks: &mut [Lanes]) -> f64 {
    let mut largest = [0.0; LANES];
    for weights in &*blocks {
        for lane in 0..LANES {
            largest[lane] =
                if weights[lane] > largest[lane] { weights[lane] } else { largest[lane] };
        }
    }
    let largest = largest.into_iter().fold(0.0, f64::max);
    let factor = largest.recip();
    blocks.as_flattened_mut().iter_mut().for_each(|weight| *weight *= factor);
    largest.ln()
}

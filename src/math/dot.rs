//! Scalar products.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

/// Partial sums: a fixed order that leaves room for vector registers.
const LANES: usize = 8;

/// Σ x y, in eight partial sums.
#[inline(always)]
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    let ((x_blocks, x_rest), (y_blocks, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (x, y) in x_blocks.iter().zip(y_blocks) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let rest: f64 = x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_whole_numbers_are_exact_at_any_length() {
        for n in 0..40 {
            let x: Vec<f64> = (0..n).map(f64::from).collect();
            let expected: u32 = (0..n as u32).map(|i| i * i).sum();
            assert!((dot(&x, &x) - f64::from(expected)).abs() < 0.5, "{n}");
        }
    }
}

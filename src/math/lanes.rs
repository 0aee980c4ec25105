//! Functions of all lanes at a time, without branches, so that they run in vector registers.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use super::elementary::ln;
use crate::rng::{LANES, Lanes};

/// Steps by which the argument of ln Γ is moved up, and terms of Stirling's series that are exact
/// to double precision from there.
const SHIFT: usize = 10;
const STIRLING: [f64; 7] = [
    1.0 / 156.0,
    -691.0 / 360_360.0,
    1.0 / 1188.0,
    -1.0 / 1680.0,
    1.0 / 1260.0,
    -1.0 / 360.0,
    1.0 / 12.0,
];

/// ln Γ(x) for x between 1e-25 and 1e25, to a relative error of 1e-14 of its largest term.
#[inline(always)]
pub fn ln_gamma(x: Lanes) -> Lanes {
    let (mut product, mut shifted, mut correction) = (x, x, [0.0; LANES]);
    for lane in 0..LANES {
        for step in 1..SHIFT {
            product[lane] *= x[lane] + step as f64;
        }
        shifted[lane] = x[lane] + SHIFT as f64;
        let inverse = 1.0 / shifted[lane];
        let square = inverse * inverse;
        for term in STIRLING {
            correction[lane] = correction[lane] * square + term;
        }
        correction[lane] *= inverse;
    }
    let (ln_product, ln_shifted) = (product.map(ln), shifted.map(ln));
    let mut result = [0.0; LANES];
    for lane in 0..LANES {
        let stirling = (shifted[lane] - 0.5) * ln_shifted[lane] - shifted[lane];
        result[lane] = stirling + HALF_LN_TAU + correction[lane] - ln_product[lane];
    }
    result
}

/// ln(2π)/2.
const HALF_LN_TAU: f64 = 0.918_938_533_204_672_7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_gammas_are_those_of_the_library() {
        for power in -20..20 {
            let x: Lanes =
                std::array::from_fn(|lane| 10f64.powi(power) * (1.0 + 0.61 * lane as f64));
            for (x, y) in x.into_iter().zip(ln_gamma(x)) {
                let exact = libm::lgamma(x);
                assert!((exact - y).abs() < 2e-14 * exact.abs().max(20.0), "{x}: {y} {exact}");
            }
        }
    }
}

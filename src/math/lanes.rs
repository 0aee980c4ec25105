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

/// ln(1 + x) of numbers that are not negative, to some units in the last place.
#[inline(always)]
fn ln_1p(x: Lanes) -> Lanes {
    let sums = x.map(|x| 1.0 + x);
    let mut result = sums.map(ln);
    for lane in 0..LANES {
        // The loss of the sum by rounding is made good in proportion (Kahan).
        let rounded = sums[lane] - 1.0;
        result[lane] = if rounded == 0.0 { x[lane] } else { result[lane] * (x[lane] / rounded) };
    }
    result
}

/// ln Γ(x + n) - ln Γ(x) for x between 1e-25 and 1e25 and n ≥ 0, to a relative error of 1e-14 of
/// n ln(x + n): no difference of large numbers is taken where n is small beside x.
#[inline(always)]
pub fn ln_gamma_ratio(x: f64, n: Lanes) -> Lanes {
    let (mut ratio, mut correction) = ([1.0; LANES], [0.0; LANES]);
    let start = x + SHIFT as f64;
    let start_product: f64 = (0..SHIFT).map(|step| x + step as f64).product();
    let (ends, growth) = (n.map(|n| start + n), n.map(|n| n / start));
    let start_correction = stirling(start);
    for lane in 0..LANES {
        for step in 0..SHIFT {
            ratio[lane] *= x + n[lane] + step as f64;
        }
        ratio[lane] /= start_product;
        correction[lane] = stirling(ends[lane]) - start_correction;
    }
    let (ln_ratio, ln_ends, ln_growth) = (ratio.map(ln), ends.map(ln), ln_1p(growth));
    let mut result = [0.0; LANES];
    for lane in 0..LANES {
        let end = (start - 0.5) * ln_growth[lane] + n[lane] * ln_ends[lane] - n[lane];
        result[lane] = end + correction[lane] - ln_ratio[lane];
    }
    result
}

/// Terms of Stirling's series for ln Γ(x) beyond (x - 1/2) ln x - x + ln(2π)/2.
#[inline(always)]
fn stirling(x: f64) -> f64 {
    let inverse = 1.0 / x;
    let mut sum = 0.0;
    for term in STIRLING {
        sum = sum * inverse * inverse + term;
    }
    sum * inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_of_gammas_lose_no_digits_where_the_argument_is_large() {
        for power in -20..15 {
            let x = 1.37 * 10f64.powi(power);
            let n: Lanes = std::array::from_fn(|lane| (lane * lane) as f64);
            for (n, y) in n.into_iter().zip(ln_gamma_ratio(x, n)) {
                let exact: f64 = (0..n as u32).map(|step| (x + f64::from(step)).ln()).sum();
                let scale = n * (x + n).ln().abs().max(1.0) + x.ln().abs();
                assert!((exact - y).abs() < 2e-14 * scale, "{x} {n}: {y} {exact}");
            }
        }
    }
}

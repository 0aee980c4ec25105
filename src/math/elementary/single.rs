//! exp and ln in single precision without branches, so that loops over them run in vector
//! registers (the polynomials of Cephes).
//!
//! Products and sums are rounded one by one: the results are the same bits on every processor.

// Each loop that calls them is compiled for several instruction sets, with these in it.
#![allow(clippy::inline_always)]

/// Rounding of a number to single precision, relative to it.
pub const ROUNDING: f32 = 1.0 / (1 << 24) as f32;

/// 1.5 x 2^23: adding it rounds to a whole number, which its low bits then hold.
const ROUNDER: f32 = 12_582_912.0;

/// ln 2, its upper 9 bits and the rest.
const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);

/// e^x to a relative error of 2e-7 for x in [-87, 88]; zero below.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let clamped = if x < -87.0 { -87.0 } else { x };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUNDER;
    let n = shifted - ROUNDER;
    let r = (clamped - n * LN_2.0) - n * LN_2.1;
    let r2 = r * r;
    let low = (0.5 + 1.666_666_5e-1 * r) + r2 * (4.166_579_6e-2 + 8.333_452e-3 * r);
    let sum = low + r2 * r2 * (1.398_199_9e-3 + 1.987_569_1e-4 * r);
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if x < -87.0 { 0.0 } else { (sum * r2 + r + 1.0) * power }
}

/// ln x to an error of 2e-7 times its size, or times 1, for x positive, finite and normal.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    /// Bits of the square root of one half: the mantissa comes to lie between it and its double.
    const HALF_ROOT: u32 = 0x3f35_04f3;
    let shifted = x.to_bits().wrapping_sub(HALF_ROOT);
    let e = ((shifted as i32) >> 23) as f32;
    let f = f32::from_bits((shifted & 0x007f_ffff) + HALF_ROOT) - 1.0;
    let z = f * f;
    // The parts do not wait for each other.
    let low = (3.333_333e-1 - 2.499_999_4e-1 * f) + z * (2.000_071_5e-1 - 1.666_805_8e-1 * f);
    let high = (1.424_932_3e-1 - 1.242_014_1e-1 * f) + z * (1.167_699_9e-1 - 1.151_461e-1 * f);
    let z2 = z * z;
    let sum = low + z2 * (high + z2 * 7.037_683_6e-2);
    let tail = (sum * f) * z + e * LN_2.1;
    (tail - 0.5 * z + f) + e * LN_2.0
}

/// x^power to a relative error of 3e-7 times 1 + |ln x^power|, for x and x^power positive, finite and
/// normal.
#[inline(always)]
pub fn power(x: f32, power: f32) -> f32 {
    /// Bits of the square root of one half.
    const HALF_ROOT: u32 = 0x3f35_04f3;
    let shifted = x.to_bits().wrapping_sub(HALF_ROOT);
    let whole = ((shifted as i32) >> 23) as f32;
    let mantissa = f32::from_bits((shifted & 0x007f_ffff) + HALF_ROOT);
    // log2 of the mantissa by the series of the inverse hyperbolic tangent.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let t2 = t * t;
    let sum = (2.885_39 + 0.961_798_85 * t2) + (t2 * t2) * (0.576_714_4 + 0.431_735_87 * t2);
    let log2 = power * (whole + t * sum);
    let shifted = log2 + ROUNDER;
    let r = log2 - (shifted - ROUNDER);
    let r2 = r * r;
    let high = (2.402_224_2e-1 + 5.550_733_7e-2 * r) + r2 * (9.671_513e-3 + 1.326_472_7e-3 * r);
    let sum = (1.0 + std::f32::consts::LN_2 * r) + r2 * high;
    sum * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_those_of_double_precision() {
        for i in -8_000..8_000 {
            let x = (i as f32 * 0.01).exp();
            for beta in [1e-6, 0.013, 0.3, 0.77, 1.0] {
                let exact = f64::from(beta) * f64::from(x).ln();
                let error = f64::from(power(x, beta)) / exact.exp() - 1.0;
                assert!(error.abs() < 3e-7 * (1.0 + exact.abs()), "{x:e}^{beta}: {error:e}");
            }
        }
    }

    #[test]
    fn exp_and_ln_are_those_of_double_precision() {
        for i in -8_699..8_799 {
            let x = i as f32 * 0.01;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 2e-7, "exp {x}");
            let y = exact as f32;
            let exact = f64::from(y).ln();
            let error = f64::from(ln(y)) - exact;
            assert!(error.abs() < 2e-7 * exact.abs().max(1.0), "ln {y:e}: {error:e}");
        }
        for i in 0..100_000 {
            let x = 0.5 + i as f32 * 2e-5;
            let error = f64::from(ln(x)) - f64::from(x).ln();
            assert!(error.abs() < 1e-7, "ln {x}: {error:e}");
        }
        assert_eq!((power(3.7, 0.0), power(1.0, 0.3), power(2.0, 1.0)), (1.0, 1.0, 2.0));
        assert_eq!((exp(-88.0), exp(f32::NEG_INFINITY), exp(0.0), ln(1.0)), (0.0, 0.0, 1.0, 0.0));
    }
}

//! exp and ln without branches, so that loops over them run in vector registers.
//!
//! Products and sums are rounded one by one: the results are the same bits on every processor.

// Each loop that calls them is compiled for several instruction sets, with these in it.
#![allow(clippy::inline_always)]

pub mod single;

/// 1.5 x 2^52: adding it rounds to a whole number, which its low bits then hold.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// ln 2, its upper 32 bits and the rest.
const LN_2: (f64, f64) = (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10);

/// e^x to within two units in the last place for x in [-708, 709]; zero below.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    let clamped = if x < -708.0 { -708.0 } else { x };
    let shifted = clamped * std::f64::consts::LOG2_E + ROUNDER;
    let n = shifted - ROUNDER;
    let r = (clamped - n * LN_2.0) - n * LN_2.1;
    let sum = taylor(r);
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    if x < -708.0 { 0.0 } else { sum * power }
}

/// e^-x for x in [0, 1].
#[inline(always)]
pub fn exp_minus(x: f64) -> f64 {
    let eighth = taylor_short(-0.125 * x);
    let quarter = eighth * eighth;
    let half = quarter * quarter;
    half * half
}

/// e^r for |r| up to ln(2)/2: the series up to r^13, in parts that do not wait for each other.
#[inline(always)]
fn taylor(r: f64) -> f64 {
    let r2 = r * r;
    let r4 = r2 * r2;
    let low = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6.0));
    let middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5_040.0));
    let high = (1.0 / 40_320.0 + r * (1.0 / 362_880.0))
        + r2 * (1.0 / 3_628_800.0 + r * (1.0 / 39_916_800.0));
    let top = 1.0 / 479_001_600.0 + r * (1.0 / 6_227_020_800.0);
    low + r4 * (middle + r4 * (high + r4 * top))
}

/// e^r for |r| up to 1/8: the series up to r^9.
#[inline(always)]
fn taylor_short(r: f64) -> f64 {
    let r2 = r * r;
    let r4 = r2 * r2;
    let low = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6.0));
    let middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5_040.0));
    let top = 1.0 / 40_320.0 + r * (1.0 / 362_880.0);
    low + r4 * (middle + r4 * top)
}

/// ln x to within a unit in the last place, for x positive, finite and normal (fdlibm's form).
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    /// Bits of 2^52: a number below 2^52 in its low bits makes a float of it.
    const WHOLE: u64 = 0x4330_0000_0000_0000;
    let bits = x.to_bits();
    let m = f64::from_bits(bits & MANTISSA | 0x3ff0_0000_0000_0000);
    let e = f64::from_bits(bits >> 52 | WHOLE) - (4_503_599_627_370_496.0 + 1023.0);
    let high = m > std::f64::consts::SQRT_2;
    let f = if high { 0.5 * m - 1.0 } else { m - 1.0 };
    let e = if high { e + 1.0 } else { e };
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w
        * (3.999_999_999_940_942e-1
            + w * (2.222_219_843_214_978_4e-1 + w * 1.531_383_769_920_937_3e-1));
    let odd = z
        * (6.666_666_666_666_735e-1
            + w * (2.857_142_874_366_239e-1
                + w * (1.818_357_216_161_805e-1 + w * 1.479_819_860_511_658_6e-1)));
    let half = 0.5 * f * f;
    e * LN_2.0 - ((half - (s * (half + (even + odd)) + e * LN_2.1)) - f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_and_ln_are_those_of_the_standard_library() {
        for i in -70_700..70_900 {
            let x = f64::from(i) * 0.01 + 0.003;
            let error = exp(x) / x.exp() - 1.0;
            assert!(error.abs() < 4.5e-16, "exp {x}: {error:e}");
            let y = x.exp();
            let error = ln(y) - y.ln();
            assert!(error.abs() <= 2.3e-16 * y.ln().abs(), "ln {y:e}: {error:e}");
        }
        for i in 0..100_000 {
            let x = 0.5 + f64::from(i) * 1e-5 + 3e-6;
            assert!((ln(x) - x.ln()).abs() <= 2.3e-16 * x.ln().abs(), "{x}");
        }
        for i in 0..=1_000 {
            let x = f64::from(i) * 1e-3;
            assert!((exp_minus(x) / (-x).exp() - 1.0).abs() < 4e-15, "exp -{x}");
        }
        assert!(exp(-708.5) == 0.0 && exp(f64::NEG_INFINITY) == 0.0);
        assert_eq!((exp(0.0).to_bits(), ln(1.0).to_bits()), (1.0f64.to_bits(), 0.0f64.to_bits()));
    }
}

//! Positive numbers for sums of many magnitudes: plain doubles, and doubles with a wide exponent.

/// Largest value of a level of plain doubles after scaling: e^600.
pub(super) const TARGET: f64 = 3.773_020_300_9e260;

/// A non-negative number.
pub(super) trait Real: Copy {
    const ZERO: Self;
    /// Value of the only state of level 0: the top of the range.
    const START: Self;
    /// Whether levels must be rescaled to stay in range.
    const NEEDS_SCALING: bool;

    fn times(self, factor: f64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn magnitude(self) -> f64;
    fn ln(self) -> f64;
}

impl Real for f64 {
    const ZERO: f64 = 0.0;
    const START: f64 = TARGET;
    const NEEDS_SCALING: bool = true;

    #[inline]
    fn times(self, factor: f64) -> f64 {
        self * factor
    }

    #[inline]
    fn plus(self, other: f64) -> f64 {
        self + other
    }

    fn magnitude(self) -> f64 {
        self
    }

    fn ln(self) -> f64 {
        f64::ln(self)
    }
}

/// `mantissa * 2^(512 exponent)`, the mantissa of a non-zero number within [2^-256, 2^256).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Wide {
    mantissa: f64,
    exponent: i64,
}

const STEP: f64 = two_to(512);
const UPPER: f64 = two_to(256);
const LOWER: f64 = two_to(-256);

/// 2^power for powers of normal numbers.
const fn two_to(power: i64) -> f64 {
    f64::from_bits(((power + 1023) as u64) << 52)
}

impl Wide {
    /// The product of two numbers.
    #[inline]
    pub(super) fn product(self, other: Self) -> Self {
        let exponent = self.exponent.saturating_add(other.exponent);
        Wide { mantissa: self.mantissa * other.mantissa, exponent }.normalised()
    }

    #[inline]
    fn normalised(self) -> Self {
        let Wide { mut mantissa, mut exponent } = self;
        if mantissa >= UPPER {
            mantissa /= STEP;
            exponent += 1;
        } else if mantissa <= 0.0 {
            return Self::ZERO;
        }
        while mantissa < LOWER {
            mantissa *= STEP;
            exponent -= 1;
        }
        Wide { mantissa, exponent }
    }
}

impl Real for Wide {
    const ZERO: Wide = Wide { mantissa: 0.0, exponent: i64::MIN / 2 };
    const START: Wide = Wide { mantissa: 1.0, exponent: 0 };
    const NEEDS_SCALING: bool = false;

    #[inline]
    fn times(self, factor: f64) -> Wide {
        Wide { mantissa: self.mantissa * factor, exponent: self.exponent }.normalised()
    }

    #[inline]
    fn plus(self, other: Wide) -> Wide {
        let (high, low) =
            if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let mantissa = match high.exponent - low.exponent {
            0 => high.mantissa + low.mantissa,
            1 => high.mantissa + low.mantissa / STEP,
            _ => return high,
        };
        Wide { mantissa, exponent: high.exponent }.normalised()
    }

    fn magnitude(self) -> f64 {
        self.mantissa
    }

    fn ln(self) -> f64 {
        self.mantissa.ln() + 512.0 * std::f64::consts::LN_2 * self.exponent as f64
    }
}

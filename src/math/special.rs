//! Gamma-function ratios, by logarithms that are the same bits whatever the C library does.

use super::elementary::ln;

/// Length up to which a rising factorial is a plain product.
const PRODUCT_LIMIT: u64 = 64;

/// Argument from which four terms of Stirling's series are exact to double precision.
const STIRLING_FROM: f64 = 16.0;

/// Argument from which the series of ψ and ψ' are exact to double precision.
const SERIES_FROM: f64 = 10.0;

/// ln Γ(x) for x > 0.
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// ψ(x), the derivative of ln Γ, for x > 0.
///
/// Short of where the series holds, Σ 1/(x+i) is carried as one fraction: a single division.
pub fn digamma(mut x: f64) -> f64 {
    let (mut numerator, mut denominator) = (0.0, 1.0);
    while x < SERIES_FROM {
        numerator = numerator * x + denominator;
        denominator *= x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = [691.0 / 32760.0, -1.0 / 132.0, 1.0 / 240.0, -1.0 / 252.0, 1.0 / 120.0];
    let tail = y * (1.0 / 12.0 - series.iter().fold(0.0, |sum, term| y * (sum + term)));
    ln(x) - 0.5 / x - tail - numerator / denominator
}

/// ψ'(x), the second derivative of ln Γ, for x > 0.
pub fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < SERIES_FROM {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series =
        [7.0 / 6.0, -691.0 / 2730.0, 5.0 / 66.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 1.0 / 6.0];
    let tail = series.iter().fold(0.0, |sum, term| y * (sum + term));
    sum + (1.0 + tail) / x + 0.5 * y
}

/// ln n!
pub fn ln_factorial(n: u64) -> f64 {
    ln_rising(1.0, n)
}

/// ln of the rising factorial (x)_n = x (x+1) ... (x+n-1) = Γ(x+n)/Γ(x), for x > 0.
///
/// Never a difference of two log-gammas, which would cancel: short products are multiplied out,
/// and of long ones the first factors, the rest by Stirling's series for the ratio.
pub fn ln_rising(x: f64, n: u64) -> f64 {
    if n <= PRODUCT_LIMIT {
        return ln_rising_by(x, 1.0, n);
    }
    let head = if x < STIRLING_FROM { STIRLING_FROM as u64 } else { 0 };
    ln_rising_by(x, 1.0, head) + ln_ratio(x + head as f64, (n - head) as f64)
}

/// ln x (x+1) ... (x+n-1) of one x, those of small n from a table.
pub struct RisingTable {
    x: f64,
    values: Vec<f64>,
}

impl RisingTable {
    /// The n below `n_values` are in the table.
    pub fn new(x: f64, n_values: u64) -> Self {
        RisingTable { x, values: (0..n_values).map(|n| ln_rising(x, n)).collect() }
    }

    /// The logarithm for n.
    #[inline]
    pub fn at(&self, n: u64) -> f64 {
        self.values.get(n as usize).copied().unwrap_or_else(|| ln_rising(self.x, n))
    }
}

/// ln Γ(x+d)/Γ(x) for x > 0 and d >= 0, without the cancellation of two large log-gammas.
pub fn ln_gamma_ratio(x: f64, d: f64) -> f64 {
    if x >= STIRLING_FROM { ln_ratio(x, d) } else { ln_gamma(x + d) - ln_gamma(x) }
}

/// ln x (x + step) ... (x + (n-1) step), for x >= 0 and step >= 0. Cost: n.
pub fn ln_rising_by(x: f64, step: f64, n: u64) -> f64 {
    let mut ln_value = 0.0;
    let mut product = 1.0;
    for i in 0..n {
        product *= x + step * i as f64;
        if !(1e-200..1e200).contains(&product) {
            ln_value += libm::log(product);
            product = 1.0;
        }
    }
    ln_value + libm::log(product)
}

/// ln Γ(x+n)/Γ(x) for x >= [`STIRLING_FROM`], by Stirling's series with its large terms combined.
fn ln_ratio(x: f64, n: f64) -> f64 {
    let correction = |x: f64| {
        let inverse = 1.0 / (x * x);
        (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / x
    };
    n * libm::log(x + n) + (x - 0.5) * libm::log1p(n / x) - n + (correction(x + n) - correction(x))
}

/// ln of the binomial coefficient, for real n >= k >= 0.
pub fn ln_binomial(n: f64, k: f64) -> f64 {
    ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rising_factorials_of_integers_are_products() {
        assert!(ln_rising(3.0, 0).abs() < 1e-300);
        assert!((ln_rising(3.0, 4) - f64::ln(360.0)).abs() < 1e-14);
        assert!((ln_factorial(20) - f64::ln(2_432_902_008_176_640_000.0)).abs() < 1e-13);
    }

    #[test]
    fn both_branches_agree_where_they_meet() {
        for x in [1e-8, 0.1, 2.5, 1e3, 1e8] {
            let longer = ln_rising(x, PRODUCT_LIMIT + 1);
            let exact = ln_rising(x, PRODUCT_LIMIT) + f64::ln(x + PRODUCT_LIMIT as f64);
            assert!((longer - exact).abs() < 1e-14 * exact.abs(), "{x}: {longer} {exact}");
        }
    }

    #[test]
    fn derivatives_have_their_known_values_and_recurrences() {
        let (euler, pi) = (0.577_215_664_901_532_9, std::f64::consts::PI);
        let close = |x: f64, y: f64| assert!((x - y).abs() < 4e-15 * y.abs().max(1.0), "{x} {y}");
        close(digamma(1.0), -euler);
        close(digamma(0.5), -euler - 2.0 * f64::ln(2.0));
        close(trigamma(1.0), pi * pi / 6.0);
        close(trigamma(0.5), pi * pi / 2.0);
        for x in [1e-100, 1e-3, 0.7, 8.9, 9.5, 10.0, 12.3, 1e6] {
            close(digamma(x), digamma(x + 1.0) - 1.0 / x);
            close(trigamma(x), trigamma(x + 1.0) + 1.0 / (x * x));
        }
    }

    #[test]
    fn tiny_and_huge_arguments_stay_finite() {
        assert!((ln_rising(1e-300, 3) - (1e-300f64.ln() + 2f64.ln())).abs() < 1e-12);
        assert!(ln_rising(1e300, 3).is_finite());
    }
}

//! Sums of positive numbers known by their logarithms.

/// ln(exp x + exp y).
pub fn ln_add(x: f64, y: f64) -> f64 {
    x.max(y) + (-(x - y).abs()).exp().ln_1p()
}

/// Σ x_i and Σ x_i² of positive terms given as ln x_i, in one pass and without overflow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogSum {
    n: u64,
    ln_max: f64,
    sum: f64,
    sum_of_squares: f64,
}

impl Default for LogSum {
    fn default() -> Self {
        LogSum { n: 0, ln_max: f64::NEG_INFINITY, sum: 0.0, sum_of_squares: 0.0 }
    }
}

impl LogSum {
    /// Adds the term exp(`ln_x`); `-inf` is a term of zero.
    pub fn push(&mut self, ln_x: f64) {
        self.n += 1;
        if ln_x == f64::NEG_INFINITY {
            return;
        }
        if ln_x > self.ln_max {
            let shrink = (self.ln_max - ln_x).exp();
            self.sum *= shrink;
            self.sum_of_squares *= shrink * shrink;
            self.ln_max = ln_x;
        }
        let x = (ln_x - self.ln_max).exp();
        self.sum += x;
        self.sum_of_squares += x * x;
    }

    /// Number of terms.
    pub fn n_terms(&self) -> u64 {
        self.n
    }

    /// ln of the mean of the terms.
    pub fn ln_mean(&self) -> f64 {
        self.ln_max + (self.sum / self.n as f64).ln()
    }

    /// ln of the sum of the terms.
    pub fn ln_sum(&self) -> f64 {
        self.ln_mean() + (self.n as f64).ln()
    }

    /// Standard error of [`ln_mean`](LogSum::ln_mean) by the delta method: the coefficient of
    /// variation of the mean. NaN for fewer than two terms.
    pub fn std_error(&self) -> f64 {
        let n = self.n as f64;
        let mean = self.sum / n;
        let variance = (self.sum_of_squares - n * mean * mean).max(0.0) / (n - 1.0);
        (variance / n).sqrt() / mean
    }

    /// Effective number of terms (Σx)²/Σx², between 1 and n.
    pub fn n_eff(&self) -> f64 {
        self.sum * self.sum / self.sum_of_squares
    }
}

impl FromIterator<f64> for LogSum {
    fn from_iter<I: IntoIterator<Item = f64>>(ln_terms: I) -> Self {
        let mut sum = LogSum::default();
        for ln_x in ln_terms {
            sum.push(ln_x);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_direct_formulas_at_any_scale() {
        let x = [1.0, 2.0, 4.0, 0.0, 3.0];
        for shift in [0.0, -1e4, 1e4] {
            let s: LogSum = x.iter().map(|x: &f64| x.ln() + shift).collect();
            assert!((s.ln_mean() - (2f64.ln() + shift)).abs() < 1e-11);
            assert!((s.ln_sum() - (10f64.ln() + shift)).abs() < 1e-11);
            assert!((ln_add(shift, 3f64.ln() + shift) - (4f64.ln() + shift)).abs() < 1e-11);
            assert!((s.std_error() - (2.5f64 / 5.0).sqrt() / 2.0).abs() < 1e-12);
            assert!((s.n_eff() - 100.0 / 30.0).abs() < 1e-12);
        }
    }
}

//! Means of samples, and their errors.

/// Variance of the distribution of which these are independent draws.
pub fn variance(draws: &[f64]) -> f64 {
    let n = draws.len() as f64;
    let mean = draws.iter().sum::<f64>() / n;
    draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)
}

/// Mean of independent draws, and its standard error.
pub fn mean_and_error(draws: &[f64]) -> (f64, f64) {
    let n = draws.len() as f64;
    (draws.iter().sum::<f64>() / n, (variance(draws) / n).sqrt())
}

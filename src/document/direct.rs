//! Direct sampling: topic weights from their prior (L2R eq. 9).

use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::{LogSum, dirichlet, ln_rising};
use crate::rng::Rng;
use crate::urn::LocalUrn;

/// ln Ẑ of `n_runs` independent means over `n_samples` draws each.
///
/// With θ_k ~ Gamma(a_k, 1), `Z = E Π_l Σ_k θ_k q_{k w_l}`. The product is homogeneous of degree
/// N, so the total of θ integrates out: `Z = (a_+)_N E_{Dirichlet(a)} Π_l Σ_k θ_k q_{k w_l}`.
/// Unbiased; the variance grows exponentially with N. Cost: samples x distinct words x topics.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub fn ln_urn_sums(
    urn: &LocalUrn,
    n_runs: usize,
    n_samples: usize,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let a = urn.pseudo_counts();
    let ln_factor = ln_rising(a.iter().sum(), urn.n_tokens()) + urn.ln_scale();
    let mut theta = vec![0.0; a.len()];
    let mut runs = Vec::with_capacity(n_runs);
    for _ in 0..n_runs {
        let mut sum = LogSum::default();
        for _ in 0..n_samples {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            dirichlet(a, &mut theta, rng);
            sum.push(urn.cells().map(|(q, y)| f64::from(y) * ln_mixture(&theta, q)).sum());
        }
        runs.push(ln_factor + sum.ln_mean());
    }
    Ok(runs)
}

fn ln_mixture(theta: &[f64], q: &[f64]) -> f64 {
    theta.iter().zip(q).map(|(t, q)| t * q).sum::<f64>().ln()
}

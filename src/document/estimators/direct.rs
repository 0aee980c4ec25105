//! Direct sampling: topic weights from their prior (L2R eq. 9).

use std::iter::repeat_with;

use super::runs::{Replicates, Runs};
use crate::control::Observer;
use crate::error::Result;
use crate::math::{dirichlet, ln_rising};
use crate::rng::Stream;
use crate::urn::LocalUrn;

/// ln Ẑ of independent means over some draws, at each of the sizes.
///
/// Let θ_k ~ Gamma(a_k, 1): `Z = E Π_l Σ_k θ_k q_{k w_l}`. The product is homogeneous of degree
/// N, so the total of θ integrates out: `Z = (a_+)_N E_{Dirichlet(a)} Π_l Σ_k θ_k q_{k w_l}`.
/// Unbiased; the variance grows exponentially with N. Cost: samples x distinct words x topics.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn replicates(
    urn: &LocalUrn,
    runs: Runs<'_>,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<Replicates> {
    let a = urn.pseudo_counts();
    let ln_factor = ln_rising(a.iter().sum(), urn.n_tokens()) + urn.ln_scale();
    let mut theta = vec![0.0; a.len()];
    runs.averages(repeat_with(|| {
        observer.check_stop()?;
        dirichlet(a, &mut theta, rng);
        let ln_product: f64 = urn.cells().map(|(q, y)| f64::from(y) * ln_mixture(&theta, q)).sum();
        Ok(ln_factor + ln_product)
    }))
}

fn ln_mixture(theta: &[f64], q: &[f64]) -> f64 {
    theta.iter().zip(q).map(|(t, q)| t * q).sum::<f64>().ln()
}

//! The harmonic mean over posterior samples of the topics (ELTM 3.2), for comparison only.

use super::chain::Chain;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::{LogSum, ln_rising};
use crate::rng::Rng;
use crate::urn::LocalUrn;

/// ln Ẑ of `n_runs` independent harmonic means over `n_samples` Gibbs sweeps, after a fifth as
/// many that are left out.
///
/// `(a_+)_N / Z` is the posterior mean of `1 / Π_l q_{k_l w_l}`, whose variance is infinite for
/// practical purposes: the estimate is too high by many nats. Cost: samples x tokens x topics.
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
    let ln_factor = urn.ln_scale() + ln_rising(urn.pseudo_counts().iter().sum(), urn.n_tokens());
    let mut runs = Vec::with_capacity(n_runs);
    for _ in 0..n_runs {
        let mut chain = Chain::sequence(urn, rng);
        let mut inverse = LogSum::default();
        for sweep in 0..n_samples + n_samples.div_ceil(5) {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            chain.sweep(rng);
            if sweep >= n_samples.div_ceil(5) {
                inverse.push(-ln_emission(urn, chain.topics()));
            }
        }
        runs.push(ln_factor - inverse.ln_mean());
    }
    Ok(runs)
}

/// Σ_l ln q_{k_l w_l} for the topics of all tokens.
pub(super) fn ln_emission(urn: &LocalUrn, topics: &[u16]) -> f64 {
    let weights = urn.cells().flat_map(|(q, count)| std::iter::repeat_n(q, count as usize));
    weights.zip(topics).map(|(q, &topic)| q[usize::from(topic)].ln()).sum()
}

//! The harmonic mean over posterior samples of the topics (ELTM 3.2), for comparison only.

use super::runs::{Replicates, Runs, in_lanes};
use crate::control::Observer;
use crate::error::Result;
use crate::math::ln_rising;
use crate::rng::{LANES, Stream};
use crate::urn::{LocalUrn, SweepOrder, TopicChains, UrnTarget};

/// ln Ẑ of independent harmonic means over some Gibbs sweeps, after a fifth as many that are left
/// out.
///
/// `(a_+)_N / Z` is the posterior mean of `1 / Π_l q_{k_l w_l}`, whose variance is infinite for
/// practical purposes: the estimate is too high by many nats. Cost: samples x tokens x topics.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn replicates(
    urn: &LocalUrn,
    runs: Runs<'_>,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<Replicates> {
    let ln_factor = urn.ln_scale() + ln_rising(urn.pseudo_counts().iter().sum(), urn.n_tokens());
    let ln_q: Vec<f64> = urn.all_weights().iter().map(|q| q.ln()).collect();
    let target = UrnTarget::of(urn);
    let ln_values = in_lanes(runs.n, || {
        let mut chains = TopicChains::sequence(urn, rng, observer)?;
        let mut inverse: [_; LANES] = std::array::from_fn(|_| runs.growing());
        for sweep in 0..runs.size() + runs.size().div_ceil(5) {
            chains.sweep(target, SweepOrder::Forward, observer)?;
            if sweep >= runs.size().div_ceil(5) {
                let ln_emission = chains.ln_emission(&ln_q);
                inverse.iter_mut().zip(ln_emission).for_each(|(mean, x)| mean.push(-x));
            }
        }
        let at = |size: usize| inverse.each_ref().map(|mean| ln_factor - mean.ln_means[size]);
        Ok((0..runs.sizes.len()).map(at).collect())
    })?;
    Ok(Replicates { ln_values, is_heavy: urn.n_topics() > 1 })
}

//! Chib-style estimation with an unbiased chain (Murray & Salakhutdinov 2009).

use rand::RngExt;

use super::runs::in_lanes;
use crate::control::Observer;
use crate::error::Result;
use crate::math::{LogSum, ln_rising};
use crate::rng::{LANES, Lanes, Stream, UniformLanes};
use crate::urn::{LocalUrn, SweepOrder, TopicChains, UrnTarget};

/// Sweeps that look for a probable state k*.
const SEARCH_SWEEPS: usize = 20;

/// ln Ẑ of `n_runs` independent runs over chains of `n_samples` states.
///
/// `Ẑ = γ(k*) / mean_s T(k* <- k^(s))`, T a Gibbs sweep. The chain runs both ways from a uniformly
/// drawn position, where the state is one reversed sweep away from k*: unbiased for any length.
/// Cost: samples x tokens x topics.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn ln_urn_sums(
    urn: &LocalUrn,
    n_runs: usize,
    n_samples: usize,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let ln_q: Vec<f64> = urn.all_weights().iter().map(|q| q.ln()).collect();
    let target = UrnTarget::of(urn);
    in_lanes(n_runs, || {
        let mut chains = TopicChains::sequence(urn, rng, observer)?;
        let starts: [usize; LANES] = std::array::from_fn(|_| rng.random_range(0..n_samples));
        for _ in 0..SEARCH_SWEEPS {
            chains.sweep(target, SweepOrder::Forward, observer)?;
        }
        let probable = chains.topics().to_vec();
        let ln_joint = match urn.bursts() {
            None => ln_joint(urn, &chains, &ln_q),
            Some(_) => chains.ln_joint(target),
        };
        chains.sweep(target, SweepOrder::Backward, observer)?;
        let middle = chains.topics().to_vec();
        let mut transitions = chains
            .ln_transition(target, &probable)
            .map(|ln_probability| [ln_probability].into_iter().collect::<LogSum>());
        // All lanes go as far as the longest; each counts its own steps.
        for (order, n_steps) in [
            (SweepOrder::Forward, starts.map(|start| n_samples - 1 - start)),
            (SweepOrder::Backward, starts),
        ] {
            chains.refill(&middle);
            for step in 0..n_steps.into_iter().max().unwrap_or(0) {
                chains.sweep(target, order, observer)?;
                let ln_transition = chains.ln_transition(target, &probable);
                for lane in (0..LANES).filter(|&lane| step < n_steps[lane]) {
                    transitions[lane].push(ln_transition[lane]);
                }
            }
        }
        let ln_value = |lane: usize| urn.ln_scale() + ln_joint[lane] - transitions[lane].ln_mean();
        Ok(vec![std::array::from_fn(ln_value)])
    })
}

/// ln of the unnormalised probability of the topics of all tokens, in closed forms.
fn ln_joint<U: UniformLanes>(urn: &LocalUrn, chains: &TopicChains<U>, ln_q: &[f64]) -> Lanes {
    let mut ln_joint = chains.ln_emission(ln_q);
    for (&a, balls) in urn.pseudo_counts().iter().zip(chains.balls()) {
        for (ln_joint, &n) in ln_joint.iter_mut().zip(balls) {
            *ln_joint += ln_rising(a, n as u64);
        }
    }
    ln_joint
}

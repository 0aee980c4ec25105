//! Direct sampling: topic weights from their prior (L2R eq. 9).

use std::iter::repeat_with;

use rand_distr::Distribution as _;

use super::runs::{Replicates, Runs};
use crate::control::Observer;
use crate::error::Result;
use crate::math::{dirichlet, gamma_law, ln_rising};
use crate::rng::Stream;
use crate::urn::{Bursts, LocalUrn};

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
        let drawn = urn.bursts().map(|bursts| draw_words(urn, bursts, rng));
        let words = drawn.as_deref().unwrap_or(urn.all_weights()).chunks_exact(a.len());
        let terms = words.zip(urn.counts()).map(|(q, &y)| f64::from(y) * ln_mixture(&theta, q));
        Ok(ln_factor + terms.sum::<f64>())
    }))
}

/// Weights of the document's words under its own version of every topic: φ_dk ~ Dirichlet(s_k φ_k), words
/// that it does not have being one.
fn draw_words(urn: &LocalUrn, bursts: &Bursts, rng: &mut impl Stream) -> Vec<f64> {
    let (n_topics, mut words) = (urn.n_topics(), urn.all_weights().to_vec());
    for (k, rate) in bursts.rates().iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
        let mut total = 0.0;
        let mut left = rate.recip();
        for cell in 0..urn.n_distinct() {
            let repeat = bursts.repeats(cell)[k];
            let shape = urn.weights(cell)[k] / repeat;
            left -= shape;
            let drawn = if shape > 0.0 { gamma_law(shape).sample(rng) } else { 0.0 };
            total += drawn;
            words[cell * n_topics + k] = drawn * repeat / rate;
        }
        if left > 0.0 {
            total += gamma_law(left).sample(rng);
        }
        words[k..].iter_mut().step_by(n_topics).for_each(|word| *word /= total);
    }
    words
}

fn ln_mixture(theta: &[f64], q: &[f64]) -> f64 {
    theta.iter().zip(q).map(|(t, q)| t * q).sum::<f64>().ln()
}

//! Documents whose topics can hardly be told apart.
//!
//! Chains that move one token at a time do not mix there: balls wander between nearly equal topics
//! for as many sweeps as there are tokens. The integral over the topic weights does not mind:
//! Z = Γ(A + N)/Γ(A) E[Π_w (θ·q_w)^y_w], θ ~ Dirichlet(a), whose integrand is nearly flat.

use rand::RngExt;

use crate::control::Observer;
use crate::error::Result;
use crate::math::{LogSum, dot, ln_dirichlet, ln_gamma_ratio, ln_rising};
use crate::rng::Stream;
use crate::urn::LocalUrn;

/// Least weight of a word under any topic, relative to its largest, for topics to be similar.
const LEAST_RATIO: f64 = 0.5;
/// Balls of two similar topics, pseudo-counts included, below which chains need not part them.
const LEAST_HELD: f64 = 1.0;
/// Largest range of the logarithm of the integrand.
const MOST_SPREAD: f64 = 300.0;
/// Least draws of a replicate are so many a topic, within limits.
const DRAWS_PER_TOPIC: usize = 8;
const LEAST_DRAWS: std::ops::RangeInclusive<usize> = 64..=2_000;
pub(super) const MOST_DRAWS: usize = 200_000;
const OVERHEAD: usize = 16;
/// Largest exponent and least base of a power that joins a product, and the least product.
const MOST_POWER: u32 = 8;
const LEAST_FACTOR: f64 = 1e-12;
const LEAST_PRODUCT: f64 = 1e-150;
const POLL_EVERY: usize = 1 << 10;

/// Bound on the range of Σ y ln(θ·q) over all θ, where the topics are similar.
pub fn spread(urn: &LocalUrn) -> Option<f64> {
    let mut spread = 0.0;
    for (q, count) in urn.cells() {
        let least = q.iter().fold(1.0, |least, &x| f64::min(least, x));
        if least < LEAST_RATIO {
            return None;
        }
        spread -= f64::from(count) * least.ln();
    }
    (spread <= MOST_SPREAD && urn.n_topics() > 1).then_some(spread)
}

/// Whether two topics have weights within a factor of two of each other for every word, and are
/// expected to hold [`LEAST_HELD`] balls together: those that hold none may be as alike as they
/// please.
pub(super) fn has_similar_topics(urn: &LocalUrn, expected_balls: &[f64]) -> bool {
    let n_topics = urn.n_topics();
    (1..n_topics).any(|second| {
        (0..second).any(|first| {
            expected_balls[first] + expected_balls[second] >= LEAST_HELD
                && urn.cells().all(|(q, _)| {
                    let (x, y) = (q[first], q[second]);
                    x.min(y) >= LEAST_RATIO * x.max(y)
                })
        })
    })
}

/// Draws that take about as long as annealing through so many temperatures, where a draw itself
/// takes as long as `overhead` distinct words.
pub(super) fn equal_work(urn: &LocalUrn, n_temperatures: usize, overhead: usize) -> usize {
    n_temperatures.saturating_mul(urn.n_tokens() as usize) / (urn.n_distinct() + overhead)
}

/// The same, within limits.
pub(super) fn n_draws(urn: &LocalUrn, n_temperatures: usize) -> usize {
    stratified(urn, equal_work(urn, n_temperatures, OVERHEAD).min(MOST_DRAWS))
}

/// So many draws, or one more, but enough for all topics.
pub(super) fn stratified(urn: &LocalUrn, n_draws: usize) -> usize {
    let least = DRAWS_PER_TOPIC * urn.n_topics();
    n_draws.max(least.clamp(*LEAST_DRAWS.start(), *LEAST_DRAWS.end())).next_multiple_of(2)
}

/// ln of the integrand at topic weights. One logarithm serves many words.
#[polyabayes_macros::vectorised]
pub(super) fn ln_product(urn: &LocalUrn, theta: &[f64]) -> f64 {
    let (mut sum, mut product) = (0.0, 1.0);
    for (q, count) in urn.cells() {
        let mixed = dot(q, theta);
        if count <= MOST_POWER && mixed > LEAST_FACTOR {
            product *= mixed.powi(count as i32);
            if product < LEAST_PRODUCT {
                sum += product.ln();
                product = 1.0;
            }
        } else {
            sum += f64::from(count) * mixed.ln();
        }
    }
    sum + product.ln()
}

/// ln Ẑ of independent means over so many importance samples of θ, an even number.
///
/// Every other draw is from the prior; those between lean towards one topic each, in turn from a
/// random first one, by as many pseudo-counts as the integrand can lean, so that weights are bounded
/// where one topic is best. Unbiased. Cost: draws x (distinct words + 16) x topics.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn ln_urn_sums(
    urn: &LocalUrn,
    spread: f64,
    n_runs: usize,
    n_draws: usize,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let a = urn.pseudo_counts();
    let (n_topics, total) = (a.len(), a.iter().sum::<f64>());
    let ln_constant = ln_rising(total, urn.n_tokens()) + urn.ln_scale();
    // ln E[θ_k^spread] under the prior.
    let ln_norms: Vec<f64> =
        a.iter().map(|&a| ln_gamma_ratio(a, spread) - ln_gamma_ratio(total, spread)).collect();
    let (mut shapes, mut theta) = (a.to_vec(), vec![0.0; n_topics]);
    let mut ln_theta = theta.clone();
    let mut ln_values = Vec::with_capacity(n_runs);
    for _ in 0..n_runs {
        let mut mean = LogSum::default();
        let first = rng.random_range(0..n_topics);
        for draw in 0..n_draws {
            if draw % POLL_EVERY == 0 {
                observer.check_stop()?;
            }
            if draw % 2 == 1 {
                shapes[(first + draw / 2) % n_topics] += spread;
            }
            ln_dirichlet(&shapes, &mut ln_theta, rng);
            for (theta, ln) in theta.iter_mut().zip(&ln_theta) {
                *theta = ln.exp();
            }
            shapes.copy_from_slice(a);
            let ln_product = ln_product(urn, &theta);
            let leanings = ln_theta.iter().zip(&ln_norms);
            let leant: f64 = leanings.map(|(ln, norm)| (spread * ln - norm).exp()).sum();
            mean.push(ln_constant + ln_product - (0.5 + 0.5 * leant / n_topics as f64).ln());
        }
        ln_values.push(mean.ln_mean());
    }
    Ok(ln_values)
}

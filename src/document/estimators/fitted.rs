//! Importance sampling of topic weights from a mixture that is fitted to their posterior.
//!
//! A document of many tokens and few distinct words says little about topics whose weights for
//! these words are near each other or near mixtures of each other: its posterior is a long ridge,
//! along which chains that move one token at a time wander for as many sweeps as there are tokens,
//! and estimates that agree with one another may all be wrong. Over the topic weights
//! Z = Γ(A + N)/Γ(A) E[Π_w (θ·q_w)^y_w], θ ~ Dirichlet(a), the logarithm of the integrand is
//! concave, so that a few rounds of population Monte Carlo (Cappé, Guillin, Marin & Robert 2004)
//! find the ridge: Dirichlet(a + c) laws whose pseudo-counts c are expected topics of the tokens at
//! draws of the round before. The prior stays in the mixture, which bounds the weights. The fit is
//! apart from the draws that are averaged: these are unbiased for any mixture.
//!
//! The constants are those with which `benches/truth/coverage.py` made its records.

use rand::RngExt;

use super::mean_field::{self, MeanField};
use super::similar;
use crate::control::Observer;
use crate::error::Result;
use crate::math::{LogSum, ln_dirichlet, ln_gamma_ratio, ln_rising};
use crate::rng::Stream;
use crate::urn::LocalUrn;

/// Least tokens of a document, and of a distinct word on average, where no two topics are similar.
const LEAST_TOKENS: u64 = 64;
const LEAST_REPEATS: u64 = 8;
/// Most topics of a document: a mixture of this many laws does not cover more dimensions.
const MOST_TOPICS: usize = 32;
/// Mean-field sweeps that tell which topics hold tokens.
const ITERATIONS: usize = 20;
const ROUNDS: usize = 4;
/// Draws of a round, which are the least of a replicate, and the laws fitted to them.
pub(super) const DRAWS: usize = 2_000;
const LAWS: usize = 64;
/// Laws of the mixture that are the prior.
const PRIORS: usize = 16;
/// Tokens of the first laws, each of which leans towards one topic.
const LEAN: f64 = 5.0;
/// Share of the expected tokens in the fitted laws, which are wider than the posterior by that.
const TRUST: f64 = 0.5;
/// Least effective draws of a last round for the mixture to be taken.
const LEAST_EFFECTIVE: f64 = 60.0;
/// Factor between the powers of the weights that are tried.
const COOLING: f64 = 0.7;
const LEAST_POWER: f64 = 1e-4;
/// Distinct words that cost as much as a draw and the densities of the laws at it.
const OVERHEAD: usize = 2 * (PRIORS + LAWS);
const POLL_EVERY: usize = 1 << 8;

/// Equally likely laws Dirichlet(a + c) of the topic weights.
pub struct DirichletMixture {
    /// c of each law, one after the other.
    pseudo_counts: Vec<f64>,
    /// ln E[Π θ^c] of each law under Dirichlet(a).
    ln_norms: Vec<f64>,
}

/// Draws of topic weights, and the logarithms of their importance weights.
struct WeightedDraws {
    theta: Vec<f64>,
    ln_weights: Vec<f64>,
}

/// Draws that take about as long as annealing through so many temperatures, within limits.
pub(super) fn n_draws(urn: &LocalUrn, n_temperatures: usize) -> usize {
    similar::equal_work(urn, n_temperatures, OVERHEAD).clamp(DRAWS, similar::MOST_DRAWS)
}

/// Whether chains over the tokens may be slow: many tokens of few words, or two similar topics.
fn is_hard(urn: &LocalUrn, observer: &impl Observer) -> Result<bool> {
    let n_tokens = urn.n_tokens();
    if !(2..=MOST_TOPICS).contains(&urn.n_topics()) || n_tokens < LEAST_TOKENS {
        return Ok(false);
    }
    if n_tokens >= LEAST_REPEATS * urn.n_distinct() as u64 {
        return Ok(true);
    }
    let g = mean_field::responsibilities(urn, MeanField::first_order(ITERATIONS), observer)?;
    Ok(similar::has_similar_topics(urn, &mean_field::expected_balls(urn, &g)))
}

impl DirichletMixture {
    /// A mixture for a document on which chains may be slow, if one fits its posterior.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
    pub fn fit(
        urn: &LocalUrn,
        rng: &mut impl Stream,
        observer: &impl Observer,
    ) -> Result<Option<Self>> {
        if !is_hard(urn, observer)? {
            return Ok(None);
        }
        let k = urn.n_topics();
        let leaning = (0..k * k).map(|i| if i / k == i % k { LEAN } else { 0.0 });
        let mut mixture =
            DirichletMixture::new(urn, std::iter::repeat_n(0.0, 2 * k).chain(leaning).collect());
        for _ in 0..ROUNDS {
            let draws = mixture.draws(urn, DRAWS, rng, observer)?;
            mixture = DirichletMixture::around(urn, &draws, rng);
        }
        let draws = mixture.draws(urn, DRAWS, rng, observer)?;
        Ok((n_effective(&draws.ln_weights, 1.0) >= LEAST_EFFECTIVE).then_some(mixture))
    }

    /// ln Ẑ of independent means over so many draws. Unbiased.
    /// Cost: draws x (distinct words + 160) x topics.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
    pub fn ln_urn_sums(
        &self,
        urn: &LocalUrn,
        n_runs: usize,
        n_draws: usize,
        rng: &mut impl Stream,
        observer: &impl Observer,
    ) -> Result<Vec<f64>> {
        let total = urn.pseudo_counts().iter().sum::<f64>();
        let ln_constant = ln_rising(total, urn.n_tokens()) + urn.ln_scale();
        let mut run = || {
            let draws = self.draws(urn, n_draws, rng, observer)?;
            let sum: LogSum = draws.ln_weights.iter().map(|x| ln_constant + x).collect();
            Ok(sum.ln_mean())
        };
        (0..n_runs).map(|_| run()).collect()
    }

    fn new(urn: &LocalUrn, pseudo_counts: Vec<f64>) -> Self {
        let a = urn.pseudo_counts();
        let total = a.iter().sum::<f64>();
        let ln_norms = pseudo_counts
            .chunks_exact(a.len())
            .map(|law| {
                let each = law.iter().zip(a).map(|(&c, &a)| ln_gamma_ratio(a, c));
                each.sum::<f64>() - ln_gamma_ratio(total, law.iter().sum())
            })
            .collect();
        DirichletMixture { pseudo_counts, ln_norms }
    }

    /// The prior, and laws around draws that are chosen by their weights; the weights are raised to
    /// a power at which enough draws are effective, and the laws are the wider the less that is.
    fn around(urn: &LocalUrn, draws: &WeightedDraws, rng: &mut impl Stream) -> Self {
        let k = urn.n_topics();
        let mut power = 1.0;
        while power > LEAST_POWER && n_effective(&draws.ln_weights, power) < LAWS as f64 {
            power *= COOLING;
        }
        let top = draws.ln_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> =
            draws.ln_weights.iter().map(|ln_weight| (power * (ln_weight - top)).exp()).collect();
        let step = weights.iter().sum::<f64>() / LAWS as f64;
        let mut next = step * rng.random::<f64>();
        let mut passed = 0.0;
        let mut pseudo_counts = vec![0.0; PRIORS * k];
        for (weight, theta) in weights.iter().zip(draws.theta.chunks_exact(k)) {
            passed += weight;
            while next < passed {
                next += step;
                let expected = expected_tokens(urn, theta);
                pseudo_counts.extend(expected.iter().map(|n| TRUST * power * n));
            }
        }
        DirichletMixture::new(urn, pseudo_counts)
    }

    /// Independent draws of the mixture.
    fn draws(
        &self,
        urn: &LocalUrn,
        n_draws: usize,
        rng: &mut impl Stream,
        observer: &impl Observer,
    ) -> Result<WeightedDraws> {
        let k = urn.n_topics();
        let (mut shapes, mut ln_theta) = (vec![0.0; k], vec![0.0; k]);
        let mut draws = WeightedDraws { theta: vec![0.0; n_draws * k], ln_weights: Vec::new() };
        for (draw, theta) in draws.theta.chunks_exact_mut(k).enumerate() {
            if draw % POLL_EVERY == 0 {
                observer.check_stop()?;
            }
            let law = (rng.random::<f64>() * self.ln_norms.len() as f64) as usize;
            let law = &self.pseudo_counts[law * k..][..k];
            for (shape, (a, c)) in shapes.iter_mut().zip(urn.pseudo_counts().iter().zip(law)) {
                *shape = a + c;
            }
            ln_dirichlet(&shapes, &mut ln_theta, rng);
            for (theta, ln) in theta.iter_mut().zip(&ln_theta) {
                *theta = ln.exp();
            }
            draws.ln_weights.push(similar::ln_product(urn, theta) - self.ln_density(&ln_theta));
        }
        Ok(draws)
    }

    /// ln of the density at topic weights, relative to that of Dirichlet(a).
    fn ln_density(&self, ln_theta: &[f64]) -> f64 {
        let laws = self.pseudo_counts.chunks_exact(ln_theta.len()).zip(&self.ln_norms);
        let ln_laws = laws.map(|(law, ln_norm)| {
            law.iter().zip(ln_theta).map(|(c, ln)| c * ln).sum::<f64>() - ln_norm
        });
        ln_laws.collect::<LogSum>().ln_mean()
    }
}

/// Expected tokens of each topic, given the topic weights.
fn expected_tokens(urn: &LocalUrn, theta: &[f64]) -> Vec<f64> {
    let mut expected = vec![0.0; theta.len()];
    for (q, count) in urn.cells() {
        let mixed: f64 = q.iter().zip(theta).map(|(q, theta)| q * theta).sum();
        let share = f64::from(count) / mixed;
        for (sum, (q, theta)) in expected.iter_mut().zip(q.iter().zip(theta)) {
            *sum += share * q * theta;
        }
    }
    expected
}

/// Effective number of draws whose weights are raised to a power.
fn n_effective(ln_weights: &[f64], power: f64) -> f64 {
    let top = ln_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (sum, squares) = ln_weights.iter().fold((0.0, 0.0), |(sum, squares), ln_weight| {
        let weight = (power * (ln_weight - top)).exp();
        (sum + weight, squares + weight * weight)
    });
    sum * sum / squares
}

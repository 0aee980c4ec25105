//! Mean-field responsibilities of a document's tokens, and importance sampling by them (ELTM 3.3).

use std::iter::repeat_with;

use rand::RngExt;
use rand_distr::{Binomial, Distribution};

use super::runs::{Replicates, Runs};
use crate::control::Observer;
use crate::error::{Result, array_of};
use crate::math::{Cumulative, ln_rising};
use crate::rng::Stream;
use crate::urn::LocalUrn;

/// Least second-order term: beyond it the expansion means nothing, and a topic that is possible
/// must keep a responsibility.
const LARGEST_CORRECTION: f64 = -1.0;

/// Products outside are carried on as logarithms.
const RANGE: std::ops::Range<f64> = 1e-200..1e200;

/// Tokens of a word, for each topic, from which on they are drawn all at once.
pub(in crate::document) const AT_ONCE: u32 = 64;

/// Distinct words between two looks at the observer.
const POLL_EVERY: usize = 1 << 12;

/// How the responsibilities are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeanField {
    /// The rule of an update.
    pub order: UpdateRule,
    /// Number of updates of every token.
    pub n_iterations: usize,
}

/// Update of the responsibilities g of a token, given x = a_k + Σ_{l' ≠ l} g_{l'}(k), the balls
/// that the other tokens are expected to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateRule {
    /// g ∝ q x.
    First,
    /// g ∝ q x exp(-σ²/(2x²)), σ² = Σ_{l' ≠ l} g_{l'} (1 - g_{l'}): the mean of ln x to the second
    /// order, the exponent cut at -1.
    Second,
}

impl MeanField {
    /// Updates of the first order.
    pub(in crate::document) fn first_order(n_iterations: usize) -> Self {
        MeanField { order: UpdateRule::First, n_iterations }
    }
}

/// ln Ẑ of independent importance samples of some draws, at each of the sizes: the tokens' topics
/// are drawn independently by their responsibilities.
///
/// Unbiased. Cost: (iterations + samples) x distinct words x topics, and samples x tokens of words
/// that have no more than 64 for each topic.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn replicates(
    urn: &LocalUrn,
    mean_field: MeanField,
    runs: Runs<'_>,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<Replicates> {
    let n_topics = urn.n_topics();
    let g = responsibilities(urn, mean_field, observer)?;
    let proposals: Vec<TopicProposal> = g
        .chunks_exact(n_topics)
        .zip(urn.cells())
        .map(|(g, (q, _))| TopicProposal::new(g, q))
        .collect();
    let mut balls = vec![0.0; n_topics];
    runs.averages(repeat_with(|| {
        observer.check_stop()?;
        balls.copy_from_slice(urn.pseudo_counts());
        let (mut ln_weight, mut product) = (urn.ln_scale(), 1.0);
        for (cell, (proposal, &count)) in proposals.iter().zip(urn.counts()).enumerate() {
            if cell % POLL_EVERY == POLL_EVERY - 1 {
                observer.check_stop()?;
            }
            if count / AT_ONCE >= n_topics as u32 {
                ln_weight += proposal.draw_all(count, &mut balls, rng);
                continue;
            }
            for _ in 0..count {
                let topic = proposal.draw(rng);
                product *= balls[topic] * proposal.ratios[topic];
                balls[topic] += 1.0;
                if !RANGE.contains(&product) {
                    ln_weight += f64::ln(product);
                    product = 1.0;
                }
            }
        }
        Ok(ln_weight + product.ln())
    }))
}

/// The topics of a word's tokens, drawn by their responsibilities.
struct TopicProposal {
    cumulative: Cumulative,
    total: f64,
    /// q / g.
    ratios: Vec<f64>,
    /// Probability of each topic for a token that has none of those before it.
    hazards: Vec<f64>,
}

impl TopicProposal {
    fn new(g: &[f64], q: &[f64]) -> Self {
        let mut cumulative = Cumulative::new(g.len());
        let total = cumulative.fill(g, &vec![1.0; g.len()]);
        let mut rest = 0.0;
        let mut hazards: Vec<f64> = g
            .iter()
            .rev()
            .map(|&g| {
                rest += g;
                if g > 0.0 { g / rest } else { 0.0 }
            })
            .collect();
        hazards.reverse();
        let ratios = q.iter().zip(g).map(|(q, g)| q * total / g).collect();
        TopicProposal { cumulative, total, ratios, hazards }
    }

    /// Draws the topics of so many tokens by binomial laws, adds them to the balls, and gives the
    /// ln of their weight.
    fn draw_all(&self, count: u32, balls: &mut [f64], rng: &mut impl Stream) -> f64 {
        let (mut left, mut ln_weight) = (u64::from(count), 0.0);
        for ((&hazard, ratio), ball) in self.hazards.iter().zip(&self.ratios).zip(balls) {
            // The last possible topic has a hazard of exactly 1, and takes the rest.
            let n = Binomial::new(left, hazard).map_or(left, |law| law.sample(rng));
            if n > 0 {
                ln_weight += ln_rising(*ball, n) + n as f64 * ratio.ln();
                *ball += n as f64;
                left -= n;
            }
        }
        ln_weight
    }

    fn draw(&self, rng: &mut impl Stream) -> usize {
        let dart = (rng.random::<f64>() * self.total).min(self.total.next_down());
        self.cumulative.find(dart)
    }
}

/// Responsibilities g of the topics for each distinct word, `n_distinct` x `n_topics`, word by
/// word; tokens of one word share theirs.
///
/// The start looks at the pseudo-counts only. Cost: iterations x distinct words x topics.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop,
/// [`Error::Memory`](crate::Error::Memory) where there is no room.
pub fn responsibilities(
    urn: &LocalUrn,
    mean_field: MeanField,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let n_topics = urn.n_topics();
    let mut g = array_of("responsibilities of a document", urn.n_distinct() * n_topics, 0.0)?;
    for (g, (q, _)) in g.chunks_exact_mut(n_topics).zip(urn.cells()) {
        update(g, urn.pseudo_counts(), q);
    }
    let mut balls = expected_balls(urn, &g);
    let mut spread = vec![0.0; n_topics];
    if mean_field.order == UpdateRule::Second {
        for (g, &count) in g.chunks_exact(n_topics).zip(urn.counts()) {
            add_spread(&mut spread, g, f64::from(count));
        }
    }
    let mut others = vec![0.0; n_topics];
    for _ in 0..mean_field.n_iterations {
        observer.check_stop()?;
        for (g, (q, count)) in g.chunks_exact_mut(n_topics).zip(urn.cells()) {
            for ((other, ball), g) in others.iter_mut().zip(&balls).zip(&*g) {
                *other = (ball - g).max(f64::MIN_POSITIVE);
            }
            if mean_field.order == UpdateRule::Second {
                add_spread(&mut spread, g, -1.0);
                for (x, variance) in others.iter_mut().zip(&spread) {
                    let ratio = variance.max(0.0).sqrt() / *x;
                    *x *= (-0.5 * ratio * ratio).max(LARGEST_CORRECTION).exp();
                }
                add_spread(&mut spread, g, 1.0 - f64::from(count));
            }
            add(&mut balls, g, -f64::from(count));
            update(g, &others, q);
            add(&mut balls, g, f64::from(count));
            if mean_field.order == UpdateRule::Second {
                add_spread(&mut spread, g, f64::from(count));
            }
        }
    }
    Ok(g)
}

/// Balls that tokens of these responsibilities are expected to leave: `a_k + Σ_l g_l(k)`.
pub(in crate::document) fn expected_balls(urn: &LocalUrn, g: &[f64]) -> Vec<f64> {
    let mut balls = urn.pseudo_counts().to_vec();
    for (g, &count) in g.chunks_exact(urn.n_topics()).zip(urn.counts()) {
        add(&mut balls, g, f64::from(count));
    }
    balls
}

/// Sets g to the normalised product of `balls` and q.
fn update(g: &mut [f64], balls: &[f64], q: &[f64]) {
    let mut sum = 0.0;
    for ((g, x), q) in g.iter_mut().zip(balls).zip(q) {
        *g = x * q;
        sum += *g;
    }
    let scale = sum.recip();
    for g in g {
        *g *= scale;
    }
}

fn add(balls: &mut [f64], g: &[f64], count: f64) {
    for (x, g) in balls.iter_mut().zip(g) {
        *x += count * g;
    }
}

/// Adds g (1 - g) for `count` tokens.
fn add_spread(spread: &mut [f64], g: &[f64], count: f64) {
    for (x, g) in spread.iter_mut().zip(g) {
        *x += count * g * (1.0 - g);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::CountMatrix;
    use crate::urn::Urn;

    #[test]
    fn is_a_fixed_point_of_its_rule() {
        let a = vec![0.3, 0.8, 1.1];
        let q = vec![0.5, 0.1, 0.2, 0.1, 0.6, 0.0, 0.4, 0.3, 0.8];
        let counts = CountMatrix::from_dense(&[vec![3, 1, 2]]).unwrap();
        let urn = LocalUrn::new(&Urn::new(a.clone(), q).unwrap(), counts.document(0)).unwrap();
        for order in [UpdateRule::First, UpdateRule::Second] {
            let g = responsibilities(&urn, MeanField { order, n_iterations: 2_000 }, &()).unwrap();
            let over_others = |cell: usize, k: usize, term: fn(f64) -> f64| {
                let all: f64 =
                    (0..3).map(|c| f64::from(urn.counts()[c]) * term(g[c * 3 + k])).sum();
                all - term(g[cell * 3 + k])
            };
            for (cell, (q, _)) in urn.cells().enumerate() {
                let expected: Vec<f64> = (0..3)
                    .map(|k| {
                        let x = a[k] + over_others(cell, k, |g| g);
                        let variance = over_others(cell, k, |g| g * (1.0 - g));
                        let correction = (-variance / (2.0 * x * x)).max(LARGEST_CORRECTION);
                        let second = order == UpdateRule::Second;
                        q[k] * x * if second { correction.exp() } else { 1.0 }
                    })
                    .collect();
                let sum: f64 = expected.iter().sum();
                for (g, x) in g[cell * 3..][..3].iter().zip(expected) {
                    assert!((g - x / sum).abs() < 1e-8, "{order:?}: {g} {}", x / sum);
                }
            }
        }
    }
}

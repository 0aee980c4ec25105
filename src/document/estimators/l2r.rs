//! Left-to-right by word type (L2R, algorithm 1).
//!
//! All tokens of a word are one step. Their partition over topics has, given the other words', the
//! law of K independent negative binomials conditioned on their sum (L2R eqs. 17 and 19). With
//! `b = a + n`, the generating function Π_k (1 - q_k z)^{-b_k} has coefficients
//! `m e_m = Σ_j s_j e_{m-j}`, `s_j = Σ_k b_k q_k^j`: `WordGroups` with x = b q and g = q.

use rand::{Rng, RngExt};

use super::runs::{Replicates, Runs, in_lanes};
use super::word_groups::WordGroups;
use crate::control::Observer;
use crate::error::{Result, array_of};
use crate::rng::{LANES, Lanes, Stream, UniformLanes};
use crate::urn::{LocalUrn, SweepOrder, TopicChains, UrnTarget};

/// Weights above this are scaled down.
const LARGE: f64 = 1e200;

/// How the weight and the partition of a word's tokens are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conditionals {
    /// Exactly, by the power series.
    Exact,
    /// From this number of draws of the multinomial with probabilities ∝ (a_k + n_k) q_k, which
    /// ignores what the word's tokens add to each other (L2R eq. 20): their mean weight is the
    /// word's, and one of them, by its weight, its partition.
    Sampled(usize),
}

/// ln Ẑ of independent means over some particles, at each of the sizes.
///
/// A particle goes through the distinct words; at each it sweeps the topics of the tokens before
/// it, given each other only, takes the word's weight, and draws its partition. The mean of the
/// products is unbiased, with sampled conditionals too. Cost: particles x distinct words x (tokens
/// + y) x topics.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn replicates(
    urn: &LocalUrn,
    conditionals: Conditionals,
    runs: Runs<'_>,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<Replicates> {
    let target = UrnTarget::of(urn);
    let ln_products = in_lanes(runs.n * runs.size(), || {
        let mut chains = TopicChains::new(urn, rng)?;
        let mut ln_product = [urn.ln_scale(); LANES];
        for (cell, &count) in urn.counts().iter().enumerate() {
            chains.sweep(target, SweepOrder::Forward, observer)?;
            let q = urn.weights(cell);
            let ln_weights = match conditionals {
                _ if count == 1 => chains.extend(target).map(f64::ln),
                Conditionals::Exact => {
                    let a = urn.pseudo_counts();
                    extend_exactly(&mut chains, a, q, count, rng, observer)?
                }
                Conditionals::Sampled(n_draws) => {
                    extend_by_draws(&mut chains, target, count, n_draws)
                }
            };
            ln_product.iter_mut().zip(ln_weights).for_each(|(sum, x)| *sum += x);
        }
        Ok(vec![ln_product])
    })?;
    runs.averages(ln_products.into_iter().map(Ok))
}

/// Draws the partition of a word's tokens; returns ln of their weight.
fn extend_exactly<U: UniformLanes>(
    chains: &mut TopicChains<U>,
    a: &[f64],
    q: &[f64],
    count: u32,
    rng: &mut impl Rng,
    observer: &impl Observer,
) -> Result<Lanes> {
    let mut topics = array_of("topics of the tokens of a word", count as usize, [0; LANES])?;
    let mut ln_weights = [0.0; LANES];
    let mut partition = vec![0; count as usize];
    for lane in 0..LANES {
        let balls = chains.balls().iter().zip(a).map(|(balls, a)| a + f64::from(balls[lane]));
        let first = balls.zip(q).map(|(b, q)| b * q).collect();
        let word = WordGroups::new(first, q.to_vec(), count as usize, observer)?;
        ln_weights[lane] = word.ln_sum;
        let mut rest = &mut partition[..];
        while !rest.is_empty() {
            observer.check_stop()?;
            let (size, topic) = word.draw_group(rest.len(), rng.random(), rng.random());
            let (group, after) = rest.split_at_mut(size);
            group.fill(topic as u16);
            rest = after;
        }
        // Groups come in no exchangeable order; the tokens' topics must.
        for last in (1..partition.len()).rev() {
            partition.swap(last, rng.random_range(0..=last));
        }
        topics.iter_mut().zip(&partition).for_each(|(to, &topic)| to[lane] = topic);
    }
    topics.into_iter().for_each(|topics| chains.put(topics));
    Ok(ln_weights)
}

/// The same by draws from the multinomial; the mean of their weights, one of them taken by weight.
fn extend_by_draws<U: UniformLanes>(
    chains: &mut TopicChains<U>,
    target: UrnTarget<'_>,
    count: u32,
    n_draws: usize,
) -> Lanes {
    let totals = chains.weigh(target);
    let mut taken = vec![[0; LANES]; count as usize];
    let mut draw = taken.clone();
    // Sums and weights are divided by LARGE as often as their exponents say.
    let (mut sums, mut sum_exponents) = ([0.0; LANES], [0; LANES]);
    for _ in 0..n_draws {
        let (mut weights, mut exponents) = ([1.0; LANES], [0; LANES]);
        for token in 0..draw.len() {
            draw[token] = chains.pick();
            for lane in 0..LANES {
                let topic = draw[token][lane];
                let earlier = draw[..token].iter().filter(|topics| topics[lane] == topic).count();
                let drawn = f64::from(chains.balls()[usize::from(topic)][lane]);
                let balls = target.base[usize::from(topic)] + drawn;
                weights[lane] *= 1.0 + earlier as f64 / balls;
                if weights[lane] > LARGE {
                    weights[lane] /= LARGE;
                    exponents[lane] += 1;
                }
            }
        }
        let uniforms = chains.uniforms();
        for lane in 0..LANES {
            let exponent = sum_exponents[lane].max(exponents[lane]);
            let weight = weights[lane] * LARGE.powi(exponents[lane] - exponent);
            sums[lane] = sums[lane] * LARGE.powi(sum_exponents[lane] - exponent) + weight;
            sum_exponents[lane] = exponent;
            if uniforms[lane] * sums[lane] < weight {
                taken.iter_mut().zip(&draw).for_each(|(taken, draw)| taken[lane] = draw[lane]);
            }
        }
    }
    taken.into_iter().for_each(|topics| chains.put(topics));
    std::array::from_fn(|lane| {
        let ln_sum = f64::ln(sums[lane]) + f64::from(sum_exponents[lane]) * LARGE.ln();
        f64::from(count) * f64::ln(totals[lane]) + ln_sum - (n_draws as f64).ln()
    })
}

//! Left-to-right by word type, with exact conditionals (L2R, algorithm 1, eqs. 17 and 19).
//!
//! All tokens of a word are one step: their partition over topics has, given the other words', the
//! law of K independent negative binomials conditioned on their sum. With `b = a + n`, the generating
//! function Π_k (1 - q_k z)^{-b_k} has coefficients `m e_m = Σ_j s_j e_{m-j}`, `s_j = Σ_k b_k q_k^j`;
//! y! e_y is the weight of y tokens. Read as cluster sizes, the same sum draws the partition: a
//! cluster of j tokens has probability s_j e_{m-j} / (m e_m), and topic k with b_k q_k^j / s_j.

use rand::RngExt;

use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::{LogSum, ln_factorial};
use crate::rng::Rng;
use crate::urn::{Balls, LocalUrn};

/// Coefficients above this are scaled down together.
const LARGE: f64 = 1e200;

/// ln Ẑ of `n_runs` independent means over `n_particles` particles.
///
/// A particle goes through the distinct words; at each it draws the partitions of the words before
/// it again, given each other only, takes the word's weight, and draws its partition. The mean of
/// the products is unbiased. Cost: particles x distinct words² x (K + y) y.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub fn ln_urn_sums(
    urn: &LocalUrn,
    n_runs: usize,
    n_particles: usize,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let mut runs = Vec::with_capacity(n_runs);
    let mut particle = Particle::new(urn);
    for _ in 0..n_runs {
        let mut products = LogSum::default();
        for _ in 0..n_particles {
            products.push(particle.ln_product(rng, observer)?);
        }
        runs.push(urn.ln_scale() + products.ln_mean());
    }
    Ok(runs)
}

struct Particle<'a> {
    urn: &'a LocalUrn,
    balls: Balls,
    /// The topics of all tokens, word after word.
    topics: Vec<u16>,
    series: Series,
}

impl<'a> Particle<'a> {
    fn new(urn: &'a LocalUrn) -> Self {
        Particle {
            urn,
            balls: Balls::new(urn.pseudo_counts()),
            topics: vec![0; urn.n_tokens() as usize],
            series: Series::default(),
        }
    }

    fn ln_product(&mut self, rng: &mut Rng, observer: &impl Observer) -> Result<f64> {
        self.balls.refill(&[]);
        let mut ln_value = 0.0;
        let mut end = 0;
        for (cell, (q, count)) in self.urn.cells().enumerate() {
            let mut start = 0;
            for earlier in 0..cell {
                if observer.stopped() {
                    return Err(Error::Stopped);
                }
                let (q, y) = (self.urn.weights(earlier), self.urn.counts()[earlier] as usize);
                let topics = &mut self.topics[start..start + y];
                topics.iter().for_each(|&topic| self.balls.remove(usize::from(topic)));
                self.series.expand(self.balls.totals(), q, y);
                self.series.draw(self.balls.totals(), q, topics, rng);
                topics.iter().for_each(|&topic| self.balls.add(usize::from(topic)));
                start += y;
            }
            let topics = &mut self.topics[end..end + count as usize];
            self.series.expand(self.balls.totals(), q, topics.len());
            ln_value += ln_factorial(u64::from(count)) + self.series.ln_last();
            self.series.draw(self.balls.totals(), q, topics, rng);
            topics.iter().for_each(|&topic| self.balls.add(usize::from(topic)));
            end += count as usize;
        }
        Ok(ln_value)
    }
}

/// The power series of one word given the balls of the others.
#[derive(Default)]
struct Series {
    /// s_1, s_2, ...
    sums: Vec<f64>,
    /// e_0, e_1, ... times exp(-`ln_scale`).
    coefficients: Vec<f64>,
    ln_scale: f64,
}

impl Series {
    fn expand(&mut self, b: &[f64], q: &[f64], y: usize) {
        self.sums.clear();
        self.coefficients.clear();
        self.coefficients.push(1.0);
        self.ln_scale = 0.0;
        for m in 1..=y {
            self.sums.push(b.iter().zip(q).map(|(b, q)| b * q.powi(m as i32)).sum());
            let products = self.sums.iter().zip(self.coefficients.iter().rev());
            let coefficient = products.map(|(s, e)| s * e).sum::<f64>() / m as f64;
            self.coefficients.push(coefficient);
            if coefficient > LARGE {
                self.coefficients.iter_mut().for_each(|e| *e /= LARGE);
                self.ln_scale += LARGE.ln();
            }
        }
    }

    /// ln e_y.
    fn ln_last(&self) -> f64 {
        self.coefficients[self.coefficients.len() - 1].ln() + self.ln_scale
    }

    /// Draws the topics of the y tokens, cluster by cluster.
    fn draw(&self, b: &[f64], q: &[f64], topics: &mut [u16], rng: &mut Rng) {
        let mut rest = topics;
        while !rest.is_empty() {
            let m = rest.len();
            let clusters = self.sums[..m].iter().zip(self.coefficients[..m].iter().rev());
            let size = 1 + choose(clusters.map(|(s, e)| s * e), rng);
            let weights = b.iter().zip(q).map(|(b, q)| b * q.powi(size as i32));
            let topic = choose(weights, rng) as u16;
            let (cluster, after) = rest.split_at_mut(size);
            cluster.fill(topic);
            rest = after;
        }
    }
}

/// Index drawn with probability proportional to the weights, never one of weight zero.
fn choose(weights: impl Iterator<Item = f64> + Clone, rng: &mut Rng) -> usize {
    let mut u = rng.random::<f64>() * weights.clone().sum::<f64>();
    let mut chosen = 0;
    for (index, weight) in weights.enumerate() {
        if weight > 0.0 {
            chosen = index;
            if u < weight {
                break;
            }
            u -= weight;
        }
    }
    chosen
}

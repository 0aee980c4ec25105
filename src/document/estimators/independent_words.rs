//! Bursty topics whose balls are fixed: the words of a document are then independent.
//!
//! The tokens of word w have the weights m_k (q_kw + e_kw c_kw) in topic k, whose sum over all topics of y
//! tokens is y! C_y, the coefficients being those of Π_k (1 - m_k e_kw t)^{-q_kw / e_kw}:
//!
//! ```text
//! j C_j = Σ_{i=1..j} p_i C_{j-i},   p_i = Σ_k m_k q_kw (m_k e_kw)^{i-1}.
//! ```
//!
//! A term of p_i is a group of i tokens in one topic, which is how the topics are drawn.

use crate::math::{ln_factorial, pick};
use crate::rng::{LANES, UniformLanes};
use crate::urn::{Bursts, LocalUrn, TopicChains};

/// The words of a document, each by itself.
pub(super) struct IndependentWords {
    words: Vec<Word>,
    /// ln of the sum of the weights of all topics of all tokens.
    pub(super) ln_sum: f64,
}

/// One word: its weights are divided by their largest growth, the i-th by its power i.
struct Word {
    /// m_k q_kw of each topic.
    first: Vec<f64>,
    /// m_k e_kw of each topic over the largest of them.
    growth: Vec<f64>,
    /// p_1, p_2, ..., p_y.
    groups: Vec<f64>,
    /// C_0, C_1, ..., C_y.
    coefficients: Vec<f64>,
}

impl IndependentWords {
    pub(super) fn new(urn: &LocalUrn, bursts: &Bursts, balls: &[f64]) -> Self {
        let mut ln_sum = 0.0;
        let mut words = Vec::with_capacity(urn.n_distinct());
        for (cell, (q, y)) in urn.cells().enumerate() {
            let growth = (0..q.len()).map(|k| balls[k] * bursts.repeat(cell, k));
            let growth: Vec<f64> = growth.collect();
            let possible = growth.iter().zip(q).filter(|(_, q)| **q > 0.0);
            // Powers of the largest growth and the total of the weights stay out of the recursion.
            let first: Vec<f64> = balls.iter().zip(q).map(|(m, q)| m * q).collect();
            let total: f64 = first.iter().sum();
            let scale = possible.fold(total, |most, (growth, _)| growth.max(most));
            let word = Word::new(
                first.iter().map(|x| x / scale).collect(),
                growth.iter().map(|x| x / scale).collect(),
                y as usize,
            );
            let ln_coefficient = word.coefficients[y as usize].ln() + f64::from(y) * scale.ln();
            ln_sum += ln_coefficient + ln_factorial(u64::from(y));
            words.push(word);
        }
        IndependentWords { words, ln_sum }
    }

    /// Puts the topics of all tokens into empty chains.
    pub(super) fn draw<U: UniformLanes>(&self, chains: &mut TopicChains<U>) {
        for word in &self.words {
            let y = word.groups.len();
            let mut topics = vec![[0; LANES]; y];
            let mut left = [y; LANES];
            while left.iter().any(|&n| n > 0) {
                let (sizes, darts) = (chains.uniforms(), chains.uniforms());
                for lane in 0..LANES {
                    if left[lane] == 0 {
                        continue;
                    }
                    let (size, topic) = word.draw_group(left[lane], sizes[lane], darts[lane]);
                    let end = left[lane];
                    topics[end - size..end].iter_mut().for_each(|t| t[lane] = topic as u16);
                    left[lane] -= size;
                }
            }
            topics.into_iter().for_each(|topics| chains.put(topics));
        }
    }
}

impl Word {
    fn new(first: Vec<f64>, growth: Vec<f64>, y: usize) -> Self {
        let mut powers = first.clone();
        let mut groups = Vec::with_capacity(y);
        for _ in 0..y {
            groups.push(powers.iter().sum());
            powers.iter_mut().zip(&growth).for_each(|(power, growth)| *power *= growth);
        }
        let mut coefficients = vec![1.0];
        for j in 1..=y {
            let terms = groups[..j].iter().zip(coefficients.iter().rev());
            let sum: f64 = terms.map(|(p, c): (&f64, &f64)| p * c).sum();
            coefficients.push(sum / j as f64);
        }
        Word { first, growth, groups, coefficients }
    }

    /// The group of the last of n tokens: its size and topic.
    fn draw_group(&self, n: usize, u_size: f64, u_topic: f64) -> (usize, usize) {
        let sizes = self.groups[..n].iter().zip(self.coefficients[..n].iter().rev());
        let sizes = sizes.map(|(p, c)| p * c);
        let size =
            pick(sizes, u_size * self.coefficients[n] * n as f64).map_or(n, |place| place + 1);
        let topics = self.first.iter().zip(&self.growth);
        let weights = topics.map(|(first, growth)| first * growth.powi(size as i32 - 1));
        let total: f64 = weights.clone().sum();
        let topic = pick(weights, u_topic * total);
        let possible = || self.first.iter().rposition(|&x| x > 0.0);
        (size, topic.or_else(possible).unwrap_or(0))
    }
}

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

/// One word: its weights are divided by a scale, the i-th by its power i. Coefficients themselves would
/// leave the range of numbers where a word has hundreds of tokens.
struct Word {
    /// m_k q_kw of each topic.
    first: Vec<f64>,
    /// m_k e_kw of each topic over the largest of them.
    growth: Vec<f64>,
    /// p_1, p_2, ..., p_y.
    groups: Vec<f64>,
    /// C_j / C_{j-1} for j = 1, ..., y.
    ratios: Vec<f64>,
}

impl IndependentWords {
    pub(super) fn new(urn: &LocalUrn, bursts: &Bursts, balls: &[f64]) -> Self {
        let mut ln_sum = 0.0;
        let mut words = Vec::with_capacity(urn.n_distinct());
        for (cell, (q, y)) in urn.cells().enumerate() {
            let growth = q.iter().enumerate().map(|(k, &q)| {
                // A topic that cannot produce the word has none of its tokens, however many.
                if q > 0.0 { balls[k] * bursts.repeat(cell, k) } else { 0.0 }
            });
            let growth: Vec<f64> = growth.collect();
            let first: Vec<f64> = balls.iter().zip(q).map(|(m, q)| m * q).collect();
            let total: f64 = first.iter().sum();
            let scale = growth.iter().fold(total / f64::from(y), |most, growth| growth.max(most));
            let word = Word::new(
                first.iter().map(|x| x / scale).collect(),
                growth.iter().map(|x| x / scale).collect(),
                y as usize,
            );
            let ln_coefficient: f64 = word.ratios.iter().map(|ratio| ratio.ln()).sum();
            ln_sum += ln_coefficient + f64::from(y) * scale.ln() + ln_factorial(u64::from(y));
            words.push(word);
        }
        IndependentWords { words, ln_sum }
    }

    /// Adds the expected tokens of each word in each topic to a table with a row for each word.
    pub(super) fn add_expected(&self, expected: &mut [f64]) {
        let n_topics = expected.len() / self.words.len();
        for (word, expected) in self.words.iter().zip(expected.chunks_mut(n_topics)) {
            word.add_expected(expected);
        }
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
        let mut word = Word { first, growth, groups, ratios: Vec::with_capacity(y) };
        for j in 1..=y {
            let sum: f64 = word.terms(j).sum();
            word.ratios.push(sum / j as f64);
        }
        word
    }

    /// p_i C_{n-i} / C_{n-1} for i = 1, ..., n, up to those that vanish.
    fn terms(&self, n: usize) -> impl Iterator<Item = f64> {
        let mut below = 1.0;
        let groups = self.groups[..n].iter().take_while(|group| **group > 0.0);
        groups.enumerate().map(move |(place, group)| {
            below /= if place > 0 { self.ratios[n - place - 1] } else { 1.0 };
            group * below
        })
    }

    /// Σ_i m_k q_kw (m_k e_kw)^{i-1} C_{y-i} / C_y of each topic.
    fn add_expected(&self, expected: &mut [f64]) {
        let mut powers = self.first.clone();
        let mut share = 1.0;
        for ratio in self.ratios.iter().rev() {
            share /= ratio;
            for ((expected, power), growth) in
                expected.iter_mut().zip(&mut powers).zip(&self.growth)
            {
                *expected += share * *power;
                *power *= growth;
            }
        }
    }

    /// The group of the last of n tokens: its size and topic.
    fn draw_group(&self, n: usize, u_size: f64, u_topic: f64) -> (usize, usize) {
        let dart = u_size * self.ratios[n - 1] * n as f64;
        let size = pick(self.terms(n), dart).map_or(n, |place| place + 1);
        let topics = self.first.iter().zip(&self.growth);
        let weights = topics.map(|(first, growth)| first * growth.powi(size as i32 - 1));
        let total: f64 = weights.clone().sum();
        let topic = pick(weights, u_topic * total);
        let possible = || self.first.iter().rposition(|&x| x > 0.0);
        (size, topic.or_else(possible).unwrap_or(0))
    }
}

//! The tokens of one word in topics that take them with weights of their own.
//!
//! The token that joins c others of the word in topic k has the weight x_k + g_k c, whatever the other topics
//! hold. The sum of the products over all topics of y tokens is y! C_y, the coefficients being those of
//! Π_k (1 - g_k t)^{-x_k / g_k}:
//!
//! ```text
//! j C_j = Σ_{i=1..j} p_i C_{j-i},   p_i = Σ_k x_k g_k^{i-1}.
//! ```
//!
//! A term of p_i is a group of i tokens in one topic, which is how the topics are drawn.

use crate::control::Observer;
use crate::error::Result;
use crate::math::{ln_factorial, pick};

/// Tokens between two looks at the observer.
const POLL_EVERY: usize = 256;

/// One word: its weights are divided by a scale, the i-th by its power i. Coefficients themselves would
/// leave the range of numbers where a word has hundreds of tokens.
pub(super) struct WordGroups {
    /// x_k, the weight of a first token of the word in each topic.
    first: Vec<f64>,
    /// g_k over the largest of them.
    growth: Vec<f64>,
    /// p_1, p_2, ..., p_y.
    groups: Vec<f64>,
    /// C_j / C_{j-1} for j = 1, ..., y.
    ratios: Vec<f64>,
    /// ln y! C_y.
    pub(super) ln_sum: f64,
}

impl WordGroups {
    pub(super) fn new(
        mut first: Vec<f64>,
        mut growth: Vec<f64>,
        y: usize,
        observer: &impl Observer,
    ) -> Result<Self> {
        let mean = first.iter().sum::<f64>() / y as f64;
        let scale = growth.iter().copied().fold(mean, f64::max);
        first.iter_mut().chain(&mut growth).for_each(|x| *x /= scale);
        let mut powers = first.clone();
        let mut groups = Vec::with_capacity(y);
        for _ in 0..y {
            groups.push(powers.iter().sum());
            powers.iter_mut().zip(&growth).for_each(|(power, growth)| *power *= growth);
        }
        let ln_sum = ln_factorial(y as u64) + y as f64 * scale.ln();
        let mut word = WordGroups { first, growth, groups, ratios: Vec::with_capacity(y), ln_sum };
        for j in 1..=y {
            if j.is_multiple_of(POLL_EVERY) {
                observer.check_stop()?;
            }
            let ratio = word.terms(j).sum::<f64>() / j as f64;
            word.ratios.push(ratio);
            word.ln_sum += ratio.ln();
        }
        Ok(word)
    }

    pub(super) fn n_tokens(&self) -> usize {
        self.groups.len()
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

    /// Σ_i x_k g_k^{i-1} C_{y-i} / C_y of each topic.
    pub(super) fn add_expected(&self, expected: &mut [f64]) {
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
    pub(super) fn draw_group(&self, n: usize, u_size: f64, u_topic: f64) -> (usize, usize) {
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

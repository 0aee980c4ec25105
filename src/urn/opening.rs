//! Moves that open a topic for some tokens, or close it for all of its.

use std::ops::Range;

use super::chains::TopicChains;
use super::{Counts, UrnTarget};
use crate::math::pick;
use crate::rng::{LANES, UniformLanes};

/// Balls with which a topic that opens is proposed its first token, whatever its pseudo-count: as
/// many as a second token finds.
const FIRST_BALLS: f64 = 1.0;

/// Product of probabilities below which its logarithm is taken.
const LEAST_PRODUCT: f64 = 1e-200;

impl<U: UniformLanes> TopicChains<U> {
    /// Makes one Metropolis move in every chain, of a topic drawn by its share of `shares`.
    ///
    /// A topic without tokens is offered each token in turn, beside the topic that holds it; a topic
    /// that holds some gives them to the others in turn. Either is the other's reversal. Moves of
    /// single tokens pass states that are e^14 times rarer where pseudo-counts are 1e-6.
    pub fn open_or_close(&mut self, target: UrnTarget<'_>, shares: &[f64]) {
        let total: f64 = shares.iter().sum();
        let darts = self.uniforms();
        let chances = self.uniforms();
        let uniforms: Vec<_> = (0..self.topics().len()).map(|_| self.uniforms()).collect();
        let before = self.topics().to_vec();
        let words = words(self.cells());
        for lane in 0..LANES {
            let Some(topic) = pick(shares.iter().copied(), darts[lane] * total) else { return };
            let mut one = OneChain { chains: self, target, words: &words, lane, topic };
            let ln_chance = (1.0 - chances[lane]).ln();
            let old = |token: usize| usize::from(before[token][lane]);
            if one.n_tokens() == 0 {
                let (members, ln_opening) = one.open(|token, share| uniforms[token][lane] < share);
                let ln_closing = one.close(&members, |token, _, _| Some(old(token)));
                if ln_closing.is_some_and(|ln_closing| ln_chance < -ln_closing - ln_opening) {
                    members.into_iter().for_each(|token| one.give(token, topic));
                }
            } else {
                let members: Vec<usize> =
                    (0..before.len()).filter(|&token| old(token) == topic).collect();
                let ln_closing = one.close(&members, |token, weights, total| {
                    pick(weights.iter().copied(), uniforms[token][lane] * total)
                });
                let after: Vec<usize> = members.iter().map(|&token| one.topic_of(token)).collect();
                let Some(ln_closing) = ln_closing else {
                    members.into_iter().for_each(|token| one.give(token, topic));
                    continue;
                };
                let (_, ln_opening) = one.open(|token, _| old(token) == topic);
                if ln_chance < ln_closing + ln_opening {
                    members.into_iter().zip(after).for_each(|(token, k)| one.give(token, k));
                }
            }
        }
    }
}

/// A chain and the topic that opens or closes in it.
struct OneChain<'c, 't, U> {
    chains: &'c mut TopicChains<U>,
    target: UrnTarget<'t>,
    /// The tokens of the word of each token.
    words: &'t [Range<usize>],
    lane: usize,
    topic: usize,
}

impl<U: UniformLanes> OneChain<'_, '_, U> {
    fn n_tokens(&self) -> i32 {
        self.chains.balls()[self.topic][self.lane]
    }

    fn topic_of(&self, token: usize) -> usize {
        usize::from(self.chains.topics()[token][self.lane])
    }

    fn give(&mut self, token: usize, topic: usize) {
        self.chains.give(token, self.lane, topic as u16);
    }

    /// Weight of a token in a topic, besides one token of its own there.
    #[inline]
    fn weight(&self, token: usize, topic: usize, own: f64) -> f64 {
        let n = f64::from(self.chains.balls()[topic][self.lane]) - own;
        let word = &self.words[token];
        let has_others = word.len() > 1 && self.target.bursts.is_some();
        let c = if has_others { self.n_held(word.clone(), topic) - own } else { 0.0 };
        self.target.weight(self.chains.cells()[token], topic, n, c)
    }

    /// How many of some tokens a topic holds.
    fn n_held(&self, tokens: Range<usize>, topic: usize) -> f64 {
        let mut n = 0;
        for topics in &self.chains.topics()[tokens] {
            n += u32::from(usize::from(topics[self.lane]) == topic);
        }
        f64::from(n)
    }

    /// Offers the topic, which holds none, each token in turn; the tokens that it got, and ln of the
    /// probability of these.
    fn open(&mut self, mut takes: impl FnMut(usize, f64) -> bool) -> (Vec<usize>, f64) {
        let (mut members, mut ln_probability, mut product) = (Vec::new(), 0.0, 1.0);
        for token in 0..self.chains.topics().len() {
            let q = self.target.row(self.chains.cells()[token])[self.topic];
            let moved = (FIRST_BALLS + members.len() as f64) * q;
            let share = moved / (moved + self.weight(token, self.topic_of(token), 1.0));
            if takes(token, share) {
                product *= share;
                self.give(token, self.topic);
                members.push(token);
            } else {
                product *= 1.0 - share;
            }
            if product < LEAST_PRODUCT {
                ln_probability += f64::ln(product);
                product = 1.0;
            }
        }
        (members, ln_probability + f64::ln(product))
    }

    /// Gives the tokens of the topic, all that it holds, to others in turn; ln of the ratio of the
    /// weight of the chain after to that before, by the probability of what was chosen. `None` where
    /// no other topic can have a token.
    fn close(
        &mut self,
        members: &[usize],
        mut choose: impl FnMut(usize, &[f64], f64) -> Option<usize>,
    ) -> Option<f64> {
        let (mut ln_ratio, mut weights) = (0.0, vec![0.0; self.target.base.len()]);
        for &token in members {
            let own = self.weight(token, self.topic, 1.0);
            if self.target.bursts.is_some() {
                let all = weights.iter_mut().enumerate();
                all.for_each(|(topic, weight)| *weight = self.weight(token, topic, 0.0));
            } else {
                let q = self.target.row(self.chains.cells()[token]);
                weigh(&mut weights, self.target, q, self.chains.balls(), self.lane);
            }
            weights[self.topic] = 0.0;
            let total: f64 = weights.iter().sum();
            let chosen = choose(token, &weights, total)?;
            ln_ratio += (total / own).ln();
            self.give(token, chosen);
        }
        Some(ln_ratio)
    }
}

/// The weight of a token in every topic of a chain, where none is bursty.
#[polyabayes_macros::vectorised]
fn weigh(weights: &mut [f64], target: UrnTarget<'_>, q: &[f64], balls: &[Counts], lane: usize) {
    for ((weight, balls), (base, q)) in weights.iter_mut().zip(balls).zip(target.base.iter().zip(q))
    {
        *weight = (base + target.unit * f64::from(balls[lane])) * q;
    }
}

/// Range of the tokens of each token's word, which stand side by side.
fn words(cells: &[u32]) -> Vec<Range<usize>> {
    let mut words = Vec::with_capacity(cells.len());
    for word in cells.chunk_by(|one, other| one == other) {
        let start = words.len();
        words.resize(start + word.len(), start..start + word.len());
    }
    words
}

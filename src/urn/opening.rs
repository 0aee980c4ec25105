//! Moves that open a topic for some tokens, close it for all of its, or do both at once.

use std::ops::Range;

use super::chains::{MODERATE, TopicChains};
use super::{Counts, UrnTarget};
use crate::math::pick;
use crate::rng::{LANES, UniformLanes};

/// The golden ratio.
const GOLDEN: f64 = 1.618_033_988_749_895;

impl<U: UniformLanes> TopicChains<U> {
    /// Makes one Metropolis move in every chain, at even turns of one topic that may hold a random token,
    /// at odd turns of two.
    ///
    /// A topic without tokens is offered each token in turn, beside the topic that holds it; a topic
    /// that holds some gives them to the others in turn. Either is the other's reversal; of two topics,
    /// one with tokens and one without, one closes as the other opens. Moves of single tokens pass
    /// states that are e^14 times rarer where pseudo-counts are 1e-6.
    pub fn open_or_close(&mut self, target: UrnTarget<'_>, turn: usize) {
        let n_tokens = self.topics().len();
        let is_pair = turn % 2 == 1;
        // The fractions of multiples of the golden ratio are spread evenly, however many there are.
        let first_balls = (n_tokens as f64).powf(turn as f64 * GOLDEN % 1.0);
        let darts = self.uniforms();
        let others = if is_pair { self.uniforms() } else { darts };
        let uniforms: Vec<_> = (0..n_tokens).map(|_| self.uniforms()).collect();
        let chances = self.uniforms();
        let before = self.topics().to_vec();
        let mut weights = vec![0.0; target.base.len()];
        let words = words(self.cells());
        let mut chain = OneChain { chains: self, target, words: &words, lane: 0, first_balls };
        for lane in 0..LANES {
            chain.lane = lane;
            // A dart among all tokens, and where it is in that token.
            let dart = darts[lane] * n_tokens as f64;
            let q = target.row(chain.chains.cells()[dart as usize]);
            let total: f64 = q.iter().sum();
            let topic = |dart: f64| pick(q.iter().copied(), dart % 1.0 * total);
            let (Some(one), Some(other)) = (topic(dart), topic(others[lane])) else { continue };
            let holds = |topic: usize| chain.n_tokens(topic) > 0;
            let (from, to) = match (is_pair, holds(one), holds(other)) {
                (false, true, _) => (Some(one), None),
                (false, false, _) => (None, Some(one)),
                (true, true, false) => (Some(one), Some(other)),
                (true, false, true) => (Some(other), Some(one)),
                _ => continue,
            };
            let forwards = chain.give_out(from, to, &mut weights, |token, weights, _| {
                let total: f64 = weights.iter().sum();
                pick(weights.iter().copied(), uniforms[token][lane] * total)
            });
            let after: Vec<usize> = (0..n_tokens).map(|token| chain.topic_of(token)).collect();
            // A topic that closes while none opens is closed by a move of one topic.
            let has_reversal = from.is_none() || to.is_none_or(|to| chain.n_tokens(to) > 0);
            let old = |token: usize| usize::from(before[token][lane]);
            let backwards = chain.give_out(to, from, &mut weights, |token, _, offered| {
                Some(offered.map_or(old(token), |topic| usize::from(old(token) == topic)))
            });
            let is_taken = match (forwards, backwards) {
                (Some([chance, ratio]), Some([back, _])) if has_reversal => {
                    (1.0 - chances[lane]).ln() < ratio.ln() - chance.ln() + back.ln()
                }
                _ => false,
            };
            for (token, new) in after.into_iter().enumerate() {
                chain.give(token, if is_taken { new } else { old(token) });
            }
        }
    }
}

/// A chain in which topics open and close.
struct OneChain<'c, 't, U> {
    chains: &'c mut TopicChains<U>,
    target: UrnTarget<'t>,
    /// The tokens of the word of each token.
    words: &'t [Range<usize>],
    lane: usize,
    /// Balls with which a topic that opens is proposed its first token, whatever its pseudo-count.
    first_balls: f64,
}

/// A product whose logarithm is taken where it is no longer moderate.
struct Product {
    ln: f64,
    rest: f64,
}

impl Product {
    const ONE: Self = Product { ln: 0.0, rest: 1.0 };

    #[inline]
    fn times(&mut self, factor: f64) {
        self.rest *= factor;
        if !MODERATE.contains(&self.rest) {
            self.ln += self.rest.ln();
            self.rest = 1.0;
        }
    }

    fn ln(&self) -> f64 {
        self.ln + self.rest.ln()
    }
}

impl<U: UniformLanes> OneChain<'_, '_, U> {
    fn n_tokens(&self, topic: usize) -> i32 {
        self.chains.balls()[topic][self.lane]
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

    /// Gives all tokens of a topic to others in turn, and offers the others' tokens to a topic that
    /// holds none; the probability of what was chosen, by weights of all topics or of the token's own and
    /// the offered one, and the ratio of the weights of the chain after and before. `None` where no
    /// other topic can have a token.
    fn give_out(
        &mut self,
        from: Option<usize>,
        to: Option<usize>,
        all: &mut [f64],
        mut choose: impl FnMut(usize, &[f64], Option<usize>) -> Option<usize>,
    ) -> Option<[Product; 2]> {
        let (mut chance, mut ratio) = (Product::ONE, Product::ONE);
        for token in 0..self.words.len() {
            let old = self.topic_of(token);
            let must_leave = Some(old) == from;
            if !must_leave && to.is_none() {
                continue;
            }
            let own = self.weight(token, old, 1.0);
            let q = self.target.row(self.chains.cells()[token]);
            let offered =
                to.map(|to| (to, (self.first_balls + f64::from(self.n_tokens(to))) * q[to]));
            let (new, weight, total) = if must_leave {
                self.weigh(token, all);
                all[old] = 0.0;
                if let Some((to, weight)) = offered {
                    all[to] = weight;
                }
                let new = choose(token, all, None)?;
                (new, all[new], all.iter().sum::<f64>())
            } else {
                let (to, weight) = offered?;
                let two = [own, weight];
                let index = choose(token, &two, Some(to))?;
                ([old, to][index], two[index], own + weight)
            };
            chance.times(weight / total);
            if new != old {
                ratio.times(self.weight(token, new, 0.0) / own);
                self.give(token, new);
            }
        }
        Some([chance, ratio])
    }

    /// The weight of a token in every topic, besides those where it is.
    fn weigh(&self, token: usize, weights: &mut [f64]) {
        if self.target.bursts.is_some() {
            let topics = weights.iter_mut().enumerate();
            topics.for_each(|(topic, weight)| *weight = self.weight(token, topic, 0.0));
        } else {
            let q = self.target.row(self.chains.cells()[token]);
            weigh(weights, self.target, q, self.chains.balls(), self.lane);
        }
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

//! Steps of chains whose topics are bursty: the weights of [`super::kernels`] and [`super::sweeps`] with
//! the second layer of the urn.
//!
//! The tokens of a document stand word by word, so that a step needs the tokens of one word alone, by
//! topic.

// Each kernel is compiled for several instruction sets, with all its parts in it.
#![allow(clippy::inline_always)]

use std::ops::Range;

use super::kernels::{put, take};
use super::sweeps::{Singles, pick, pick_exactly};
use crate::rng::{LANES, Lanes, UniformLanes, map_lanes};
use crate::urn::{BurstTarget, Counts, Shortlists, SweepOrder, UrnTarget};

/// Roundings of a draw beside those of its sums: 7 of the balls over 1 + r n and 4 of the word, twice, and
/// those of the dart; see [`super::sweeps::pick`].
const ROUNDINGS: f32 = 48.0;

/// Buffers of a step.
#[derive(Debug, Clone, Default)]
pub(super) struct BurstBuffers {
    /// Balls of each topic over 1 + r n.
    factors: Vec<Singles>,
    /// Weights of a word in each topic, with those of its other tokens there.
    words: Vec<Singles>,
    /// All topics, where there are no lists.
    all: Vec<u16>,
    sums: Vec<Singles>,
    /// Tokens of one word in each topic.
    held: Vec<Counts>,
}

/// The tokens of a document, what a sweep over some of them changes, and its buffers.
pub(super) struct BurstyTokens<'a, U> {
    /// Distinct word of each token.
    pub cells: &'a [u32],
    pub topics: &'a mut [[u16; LANES]],
    pub balls: &'a mut [Counts],
    pub buffers: &'a mut BurstBuffers,
    pub uniforms: &'a mut U,
}

/// Single-precision parts of a topic's weight that do not change within a sweep.
#[derive(Clone, Copy)]
struct Parts<'a> {
    base: &'a [f64],
    rates: &'a [f64],
    unit: f32,
    heat: f32,
}

impl Parts<'_> {
    #[inline(always)]
    fn factor(self, topic: usize, n: i32) -> f32 {
        let n = n as f32;
        (self.base[topic] as f32 + self.unit * n) / (1.0 + self.heat * self.rates[topic] as f32 * n)
    }

    /// Sets the factors of the topics that each lane's token left or joined.
    #[inline(always)]
    fn set(self, factors: &mut [Singles], balls: &[Counts], topics: &[u16; LANES]) {
        for (lane, &topic) in topics.iter().enumerate() {
            let topic = usize::from(topic);
            factors[topic][lane] = self.factor(topic, balls[topic][lane]);
        }
    }
}

/// Weights of a word in all topics.
#[derive(Clone, Copy)]
struct Word<'a> {
    q: &'a [f64],
    repeats: &'a [f64],
    heat: f32,
}

impl Word<'_> {
    /// Sets the weights of the topics that each lane's token left or joined.
    #[inline(always)]
    fn set(self, words: &mut [Singles], held: &[Counts], topics: &[u16; LANES]) {
        for (lane, &topic) in topics.iter().enumerate() {
            let topic = usize::from(topic);
            let repeat = self.heat * self.repeats[topic] as f32;
            words[topic][lane] = self.q[topic] as f32 + repeat * held[topic][lane] as f32;
        }
    }
}

/// The tokens of the same word as one, which stand beside it.
fn same_word(cells: &[u32], token: usize) -> Range<usize> {
    let is_same = |other: &&u32| **other == cells[token];
    let before = cells[..token].iter().rev().take_while(is_same).count();
    let after = cells[token..].iter().take_while(is_same).count();
    token - before..token + after
}

/// One sweep over a part of the tokens, among all topics or those on the lists of their words.
#[polyabayes_macros::vectorised]
pub(super) fn sweep<U: UniformLanes>(
    tokens: BurstyTokens<'_, U>,
    part: Range<usize>,
    lists: Option<&Shortlists>,
    target: UrnTarget<'_>,
    second: BurstTarget<'_>,
    order: SweepOrder,
) {
    let BurstyTokens { cells, topics, balls, buffers, uniforms } = tokens;
    let BurstBuffers { factors, words, all, sums, held } = buffers;
    let n_topics = target.base.len();
    let parts = Parts {
        base: target.base,
        rates: second.bursts.rates(),
        unit: target.unit as f32,
        heat: second.heat as f32,
    };
    factors.clear();
    factors.extend((0..n_topics).map(|k| map_lanes(balls[k], |n| parts.factor(k, n))));
    words.resize(n_topics, [0.0; LANES]);
    sums.resize(n_topics, [0.0; LANES]);
    held.resize(n_topics, [0; LANES]);
    all.clear();
    all.extend(0..n_topics as u16);
    let (mut row_of, mut same) = (None, 0..0);
    for step in 0..part.len() {
        let token = part.start + order.nth(step, part.len());
        let cell = cells[token];
        let list = lists.map(|lists| lists.list(cell));
        let among = list.as_ref().map_or(&all[..], |list| list.topics);
        if list.is_some() && among.len() < 2 {
            continue;
        }
        let word = Word {
            q: target.row(cell),
            repeats: second.bursts.repeats(cell as usize),
            heat: second.heat as f32,
        };
        if row_of != Some(cell) {
            row_of = Some(cell);
            same = same_word(cells, token);
            for (weights, &q) in words.iter_mut().zip(word.q) {
                *weights = [q as f32; LANES];
            }
            if same.len() > 1 {
                held.fill([0; LANES]);
                for topics in &topics[same.clone()] {
                    put(held, topics);
                    word.set(words, held, topics);
                }
            }
        }
        let (old, repeated) = (topics[token], same.len() > 1);
        take(balls, &old);
        parts.set(factors, balls, &old);
        if repeated {
            take(held, &old);
            word.set(words, held, &old);
        }
        let mut total = [0.0; LANES];
        for (sums, &topic) in sums.iter_mut().zip(among) {
            let (factors, words) = (&factors[usize::from(topic)], &words[usize::from(topic)]);
            for lane in 0..LANES {
                total[lane] += factors[lane] * words[lane];
            }
            *sums = total;
        }
        let uniform = uniforms.next();
        let names = among.iter().map(|&topic| i32::from(topic));
        let compared = &sums[..among.len() - 1];
        let (mut new, is_open) = pick(compared, &total, names, &uniform, ROUNDINGS);
        if is_open != [0; LANES] {
            let (balls, held) = (&*balls, &*held);
            let weights = |lane: usize| {
                among.iter().map(move |&topic| {
                    let k = usize::from(topic);
                    let c = if repeated { held[k][lane] } else { 0 };
                    target.weight(cell, k, f64::from(balls[k][lane]), f64::from(c))
                })
            };
            pick_exactly(&mut new, &is_open, &uniform, weights, |place| i32::from(among[place]));
        }
        let mut new = map_lanes(new, |topic| topic as u16);
        if let Some(list) = &list {
            for lane in 0..LANES {
                if !list.is_listed[usize::from(old[lane])] {
                    new[lane] = old[lane];
                }
            }
        }
        topics[token] = new;
        put(balls, &new);
        parts.set(factors, balls, &new);
        if repeated {
            put(held, &new);
            word.set(words, held, &new);
        }
    }
}

impl BurstBuffers {
    /// Counts the tokens of one word by topic.
    pub(super) fn hold(&mut self, n_topics: usize, topics: &[[u16; LANES]]) {
        self.held.clear();
        self.held.resize(n_topics, [0; LANES]);
        topics.iter().for_each(|topics| put(&mut self.held, topics));
    }

    pub(super) fn held(&mut self) -> &mut [Counts] {
        &mut self.held
    }

    /// Fills the cumulative weights of the topics for a token of a word, whose other tokens are held;
    /// returns the totals.
    pub(super) fn accumulate(
        &self,
        sums: &mut [Lanes],
        balls: &[Counts],
        target: UrnTarget<'_>,
        second: BurstTarget<'_>,
        cell: u32,
    ) -> Lanes {
        accumulate(sums, balls, &self.held, target, second, cell)
    }
}

#[polyabayes_macros::vectorised]
fn accumulate(
    sums: &mut [Lanes],
    balls: &[Counts],
    held: &[Counts],
    target: UrnTarget<'_>,
    second: BurstTarget<'_>,
    cell: u32,
) -> Lanes {
    let mut total = [0.0; LANES];
    let (rates, repeats) = (second.bursts.rates(), second.bursts.repeats(cell as usize));
    let topics = target.base.iter().zip(target.row(cell)).zip(rates.iter().zip(repeats));
    let counts = balls.iter().zip(held);
    for ((sums, (balls, held)), ((base, q), (rate, repeat))) in
        sums.iter_mut().zip(counts).zip(topics)
    {
        let (rate, repeat) = (second.heat * rate, second.heat * repeat);
        for lane in 0..LANES {
            let n = f64::from(balls[lane]);
            let word = q + repeat * f64::from(held[lane]);
            total[lane] += (base + target.unit * n) * word / (1.0 + rate * n);
        }
        *sums = total;
    }
    total
}

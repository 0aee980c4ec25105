//! A word whose tokens move: one token, and two at once.

// Each kernel is compiled for several instruction sets, with all its parts in it.
// The compiler makes vectors of selected numbers, and not of converted truth values.
#![allow(clippy::inline_always, clippy::bool_to_int_with_if)]

use super::buffers::BurstBuffers;
use crate::rng::{LANES, UniformLanes, map_lanes};
use crate::urn::chains::kernels::{put, take};
use crate::urn::chains::sweeps::{LEAST_TOTAL, Singles, pick, pick_exactly};
use crate::urn::{BurstTarget, Counts, UrnTarget};

/// Roundings of a draw beside those of its sums: 12 of a weight, twice, and those of the dart; see
/// [`pick`].
const ROUNDINGS: f32 = 52.0;

/// The same for two tokens: 16 of a weight and 35 of its product with that which the second meets, twice;
/// beside those of the total in it.
const PAIR_ROUNDINGS: f32 = 108.0;

/// A word whose tokens move.
pub(super) struct Word<'s, 't> {
    pub(super) cell: u32,
    /// Topics among which they move, and the word's weight in each.
    pub(super) among: &'s [u16],
    pub(super) q: &'s [f32],
    pub(super) target: UrnTarget<'t>,
    pub(super) second: BurstTarget<'t>,
    pub(super) balls: &'s mut [Counts],
    pub(super) buffers: &'s mut BurstBuffers,
}

impl Word<'_, '_> {
    /// Weight of the word in a topic, and what an earlier token of it adds.
    #[inline(always)]
    pub(super) fn of_word(&self, topic: usize) -> (f64, f64) {
        let q = self.target.row(self.cell)[topic];
        (q, repeat_of(q, self.second.repeat(self.cell, topic)))
    }

    /// Takes a token out. One that is alone is not counted among those of its word.
    #[inline(always)]
    pub(super) fn take<C: Company>(&mut self, topics: &[u16; LANES], _: &C) {
        take(self.balls, topics);
        if !C::IS_ALONE {
            take(&mut self.buffers.held, topics);
        }
    }

    #[inline(always)]
    pub(super) fn put<C: Company>(&mut self, topics: &[u16; LANES], _: &C) {
        put(self.balls, topics);
        if !C::IS_ALONE {
            put(&mut self.buffers.held, topics);
        }
    }

    /// Fills the weights of the first of two tokens, and how they grow for the second where it joins, in
    /// single precision; returns the totals, and the least growth. Growth is not negative, but where
    /// topics of an early temperature let a word repeat less than they fill up.
    #[inline(always)]
    fn fill_pair(&mut self) -> [Singles; 2] {
        let (n_topics, scale) = (self.balls.len(), self.second.scales[self.cell as usize] as f32);
        let BurstBuffers { single, single_weights, single_gains, .. } = &mut *self.buffers;
        // Slices of one length, so that a topic is looked for in one of them.
        let (single, balls) = (&single[..n_topics], &self.balls[..n_topics]);
        let unit = self.target.unit as f32;
        let (mut total, mut least) = ([0.0; LANES], [0.0; LANES]);
        let buffers = single_weights.iter_mut().zip(single_gains);
        for ((&topic, &q), (weights, gains)) in self.among.iter().zip(self.q).zip(buffers) {
            let k = usize::from(topic);
            let ([base, rate, repeat], balls) = (single[k], &balls[k]);
            let twice = q + repeat * scale;
            for lane in 0..LANES {
                let n = balls[lane] as f32;
                let weight = (base + unit * n) * q / (1.0 + rate * n);
                let n = n + 1.0;
                let gain = (base + unit * n) * twice / (1.0 + rate * n) - weight;
                weights[lane] = weight;
                gains[lane] = gain;
                least[lane] = if gain < least[lane] { gain } else { least[lane] };
                total[lane] += weight;
            }
        }
        [total, least]
    }

    /// Topics on which darts fall, given the cumulative weights of a token, or where another is to follow,
    /// their products with what it meets; and their places.
    #[inline(always)]
    fn pick(
        &mut self,
        total: &Singles,
        roundings: f32,
        uniforms: &mut impl UniformLanes,
        is_followed: bool,
    ) -> ([u16; LANES], Counts) {
        let (uniform, n_listed) = (uniforms.next(), self.among.len());
        let compared = &self.buffers.single_sums[..n_listed - 1];
        let roundings = (n_listed - 1, roundings);
        let (mut places, is_open) = pick(compared, total, 0..n_listed as i32, &uniform, roundings);
        if is_open != [0; LANES] {
            let weight = |lane: usize, topic: u16, more: f64| {
                let k = usize::from(topic);
                let [n, c] = [&*self.balls, &self.buffers.held[..]].map(|x| f64::from(x[k][lane]));
                self.target.weight(self.cell, k, n + more, c + more)
            };
            let weights = |lane: usize| {
                let first: f64 = self.among.iter().map(|&topic| weight(lane, topic, 0.0)).sum();
                self.among.iter().map(move |&topic| {
                    let own = weight(lane, topic, 0.0);
                    let met =
                        if is_followed { first - own + weight(lane, topic, 1.0) } else { 1.0 };
                    own * met
                })
            };
            pick_exactly(&mut places, &is_open, &uniform, weights, |place| place as i32);
        }
        (map_lanes(places, |place| self.among[place as usize]), places)
    }
}

/// Whether a token is the only one of its word, which each kernel is compiled for.
pub(super) trait Company {
    const IS_ALONE: bool;
}

pub(super) struct Alone;
pub(super) struct Beside;

impl Company for Alone {
    const IS_ALONE: bool = true;
}

impl Company for Beside {
    const IS_ALONE: bool = false;
}

/// The topic of one token, which is out.
#[inline(always)]
pub(super) fn draw_one<C: Company, U: UniformLanes>(
    word: &mut Word<'_, '_>,
    _: &C,
    uniforms: &mut U,
) -> [u16; LANES] {
    let (n_topics, scale) = (word.balls.len(), word.second.scales[word.cell as usize] as f32);
    let BurstBuffers { single, single_sums, held, .. } = &mut *word.buffers;
    // Slices of one length, so that a topic is looked for in one of them.
    let (single, balls, held) = (&single[..n_topics], &word.balls[..n_topics], &held[..n_topics]);
    let unit = word.target.unit as f32;
    let mut total = [0.0; LANES];
    let topics = word.among.iter().zip(word.q);
    for (sums, (&topic, &q)) in single_sums.iter_mut().zip(topics) {
        let k = usize::from(topic);
        let ([base, rate, repeat], balls, held) = (single[k], &balls[k], &held[k]);
        for lane in 0..LANES {
            let n = balls[lane] as f32;
            let weight = if C::IS_ALONE { q } else { q + repeat * (scale * held[lane] as f32) };
            total[lane] += (base + unit * n) * weight / (1.0 + rate * n);
        }
        *sums = total;
    }
    word.pick(&total, ROUNDINGS, uniforms, false).0
}

/// Moves the two tokens of a word by their conditional: the first by its weight times what the second then
/// meets.
#[polyabayes_macros::vectorised]
pub(super) fn redraw_pair<U: UniformLanes>(
    word: &mut Word<'_, '_>,
    topics: &mut [[u16; LANES]; 2],
    is_listed: &impl Fn(u16) -> bool,
    uniforms: &mut U,
) {
    topics.iter().for_each(|topics| word.take(topics, &Alone));
    let n_listed = word.among.len();
    let [first_total, least_gain] = word.fill_pair();
    // Totals are set to zero where single precision may be wrong: `pick` then draws in double.
    let (mut inverse, mut is_kept) = ([1.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        inverse[lane] /= first_total[lane];
        let has_parts = if first_total[lane] > LEAST_TOTAL { 1.0 } else { 0.0 };
        is_kept[lane] = if least_gain[lane] < 0.0 { 0.0 } else { has_parts };
    }
    let BurstBuffers { single_weights, single_gains, single_sums, .. } = &mut *word.buffers;
    let mut total = [0.0; LANES];
    for place in 0..n_listed {
        let (weights, gains) = (&single_weights[place], &single_gains[place]);
        for lane in 0..LANES {
            total[lane] += weights[lane] * (1.0 + gains[lane] * inverse[lane]);
        }
        single_sums[place] = total;
    }
    for lane in 0..LANES {
        total[lane] *= is_kept[lane];
    }
    let roundings = 2.02 * n_listed as f32 + PAIR_ROUNDINGS;
    let (first, places) = word.pick(&total, roundings, uniforms, true);
    word.put(&first, &Beside);
    let BurstBuffers { single_weights, single_gains, single_sums, .. } = &mut *word.buffers;
    total = [0.0; LANES];
    for place in 0..n_listed {
        let (weights, gains) = (&single_weights[place], &single_gains[place]);
        for lane in 0..LANES {
            let is_first = if places[lane] == place as i32 { 1.0 } else { 0.0 };
            total[lane] += weights[lane] + is_first * gains[lane];
        }
        single_sums[place] = total;
    }
    for lane in 0..LANES {
        total[lane] *= is_kept[lane];
    }
    let second = word.pick(&total, PAIR_ROUNDINGS, uniforms, false).0;
    word.take(&first, &Beside);
    for lane in 0..LANES {
        if topics.iter().all(|topics| is_listed(topics[lane])) {
            topics[0][lane] = first[lane];
            topics[1][lane] = second[lane];
        }
    }
    topics.iter().for_each(|topics| word.put(topics, &Alone));
}

/// Weight that an earlier token of the word adds; none in a topic that cannot produce the word.
#[inline(always)]
fn repeat_of(q: f64, repeat: f64) -> f64 {
    if q > 0.0 { repeat } else { 0.0 }
}

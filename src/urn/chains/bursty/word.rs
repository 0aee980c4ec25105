//! The moves of the tokens of one word.

// Each kernel is compiled for several instruction sets, with all its parts in it.
// The compiler makes vectors of selected numbers, and not of converted truth values.
#![allow(clippy::inline_always, clippy::bool_to_int_with_if)]

use super::buffers::BurstBuffers;
use super::layers::{Layers, ahead};
use crate::math::pick_lanes;
use crate::rng::{LANES, Lanes, UniformLanes, map_lanes};
use crate::urn::chains::kernels::{put, take};
use crate::urn::chains::sweeps::{LEAST_TOTAL, Singles, pick, pick_exactly};
use crate::urn::{BurstTarget, Counts, UrnTarget};

/// Roundings of a draw beside those of its sums: 10 of a weight, twice, and those of the dart; see
/// [`pick`].
const ROUNDINGS: f32 = 48.0;

/// The same for two tokens: 14 of a weight and 31 of its product with that which the second meets, twice;
/// beside those of the total in it.
const PAIR_ROUNDINGS: f32 = 96.0;

/// A word whose tokens move.
pub(super) struct Word<'s, 't> {
    pub(super) cell: u32,
    /// Topics among which they move.
    pub(super) among: &'s [u16],
    pub(super) target: UrnTarget<'t>,
    pub(super) second: BurstTarget<'t>,
    pub(super) balls: &'s mut [Counts],
    pub(super) buffers: &'s mut BurstBuffers,
}

impl Word<'_, '_> {
    /// Fills the weights of a token, and how they grow with one of the word, in single precision; returns
    /// the totals, and the least growth. Growth is not negative, but where topics of an early temperature
    /// let a word repeat less than they fill up.
    #[inline(always)]
    fn fill_singles(&mut self) -> [Singles; 2] {
        let BurstBuffers { single, single_weights, single_gains, held, .. } = &mut *self.buffers;
        let (q, unit) = (self.target.row(self.cell), self.target.unit as f32);
        let (mut total, mut least) = ([0.0; LANES], [0.0; LANES]);
        for (&topic, (weights, gains)) in
            self.among.iter().zip(single_weights.iter_mut().zip(single_gains))
        {
            let k = usize::from(topic);
            let repeat = repeat_of(q[k], self.second.repeat(self.cell, k)) as f32;
            let ((base, rate), q, balls, held) = (single[k], q[k] as f32, &self.balls[k], &held[k]);
            for lane in 0..LANES {
                let (n, c) = (balls[lane] as f32, held[lane] as f32);
                let weight = (base + unit * n) * (q + repeat * c) / (1.0 + rate * n);
                let (n, c) = (n + 1.0, c + 1.0);
                let next = (base + unit * n) * (q + repeat * c) / (1.0 + rate * n);
                weights[lane] = weight;
                let gain = next - weight;
                gains[lane] = gain;
                least[lane] = if gain < least[lane] { gain } else { least[lane] };
                total[lane] += weight;
            }
        }
        [total, least]
    }

    /// Places among the topics on which darts fall, given the cumulative weights of a token, or where
    /// another is to follow, their products with what it meets.
    #[inline(always)]
    fn pick(
        &mut self,
        total: &Singles,
        roundings: f32,
        uniforms: &mut impl UniformLanes,
        is_followed: bool,
    ) -> Counts {
        let (uniform, n_listed) = (uniforms.next(), self.among.len());
        let compared = &self.buffers.single_sums[..n_listed - 1];
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
        places
    }

    /// Gives a token of one lane another topic.
    #[inline(always)]
    fn exchange(&mut self, lane: usize, topics: &mut [u16; LANES], topic: u16) {
        for counts in [&mut *self.balls, &mut self.buffers.held[..]] {
            counts[usize::from(topics[lane])][lane] -= 1;
            counts[usize::from(topic)][lane] += 1;
        }
        topics[lane] = topic;
    }

    /// Parts of a token's weight in one topic of each lane.
    #[inline(always)]
    pub(super) fn layers(&self, topics: &[u16; LANES]) -> Layers<Lanes> {
        let mut layers = Layers::<Lanes> { unit: self.target.unit, ..Layers::default() };
        let (row, scale) = (self.target.row(self.cell), self.second.scales[self.cell as usize]);
        for (lane, &topic) in topics.iter().enumerate() {
            let k = usize::from(topic);
            layers.base[lane] = self.target.base[k];
            layers.rate[lane] = self.second.rates[k];
            layers.q[lane] = row[k];
            layers.repeat[lane] = repeat_of(row[k], self.second.repeats[k] * scale);
            layers.n[lane] = f64::from(self.balls[k][lane]);
            layers.c[lane] = f64::from(self.buffers.held[k][lane]);
        }
        layers
    }

    /// The same in one topic of all lanes.
    #[inline(always)]
    fn layer(&self, topic: u16) -> Layers<f64> {
        let k = usize::from(topic);
        let q = self.target.row(self.cell)[k];
        Layers {
            unit: self.target.unit,
            base: self.target.base[k],
            rate: self.second.rates[k],
            q,
            repeat: repeat_of(q, self.second.repeat(self.cell, k)),
            n: map_lanes(self.balls[k], f64::from),
            c: map_lanes(self.buffers.held[k], f64::from),
        }
    }

    #[inline(always)]
    fn take(&mut self, topics: &[u16; LANES]) {
        take(self.balls, topics);
        take(&mut self.buffers.held, topics);
    }

    #[inline(always)]
    fn put(&mut self, topics: &[u16; LANES]) {
        put(self.balls, topics);
        put(&mut self.buffers.held, topics);
    }

    /// Adds a token; weights of its topics before and after.
    #[inline(always)]
    fn add(&mut self, topics: &[u16; LANES]) -> [Lanes; 2] {
        let weights = self.layers(topics).pair(0.0);
        self.put(topics);
        weights
    }

    /// Weights that the tokens after the first meet if all join its topic; see [`ahead`].
    #[inline(always)]
    fn ahead_of(&self, topics: &[u16; LANES], inverse: &Lanes, n_tokens: usize) -> Lanes {
        ahead(&self.layers(topics).gains().0, inverse, n_tokens)
    }

    /// Fills the weights of the first token, and how they grow; returns the totals.
    #[inline(always)]
    fn fill_weights(&mut self) -> Lanes {
        let mut total = [0.0; LANES];
        for (place, &topic) in self.among.iter().enumerate() {
            let (gains, weights) = self.layer(topic).gains();
            self.buffers.gains[place] = gains;
            self.buffers.weights[place] = weights;
        }
        for weights in &self.buffers.weights[..self.among.len()] {
            for lane in 0..LANES {
                total[lane] += weights[lane];
            }
        }
        total
    }

    /// Fills the total weights that each of these tokens meets after the first, for which they are given.
    #[inline(always)]
    fn fill_totals(&mut self, topics: &[[u16; LANES]], first: &Lanes) {
        self.buffers.totals.clear();
        let (mut total, sequence) = (*first, &topics[..topics.len() - 1]);
        for topics in sequence {
            let [before, after] = self.add(topics);
            for lane in 0..LANES {
                total[lane] = (total[lane] + after[lane] - before[lane]).max(f64::MIN_POSITIVE);
            }
            self.buffers.totals.push(total);
        }
        sequence.iter().for_each(|topics| self.take(topics));
    }

    /// Fills the cumulative weights of the first token, times what those after it meet.
    #[inline(always)]
    fn accumulate_ahead(&mut self, inverse: &Lanes, n_tokens: usize) {
        let BurstBuffers { weights, gains, sums, .. } = &mut *self.buffers;
        let mut total = [0.0; LANES];
        for ((sums, weights), gains) in
            sums.iter_mut().zip(weights).zip(gains).take(self.among.len())
        {
            let ahead = ahead(gains, inverse, n_tokens);
            for lane in 0..LANES {
                total[lane] += weights[lane] * ahead[lane];
            }
            *sums = total;
        }
    }

    /// Fills the cumulative weights of the next token; returns the totals.
    #[inline(always)]
    fn accumulate(&mut self) -> Lanes {
        let BurstBuffers { weights, sums, .. } = &mut *self.buffers;
        let mut total = [0.0; LANES];
        for (sums, weights) in sums.iter_mut().zip(&weights[..self.among.len()]) {
            for lane in 0..LANES {
                total[lane] += weights[lane];
            }
            *sums = total;
        }
        total
    }
}

/// The topic of the only token, which is out.
#[polyabayes_macros::vectorised]
pub(super) fn draw_single(
    word: &mut Word<'_, '_>,
    uniforms: &mut impl UniformLanes,
) -> [u16; LANES] {
    let BurstBuffers { single, single_sums: sums, .. } = &mut *word.buffers;
    let (q, unit) = (word.target.row(word.cell), word.target.unit as f32);
    let mut total = [0.0; LANES];
    for (sums, &topic) in sums.iter_mut().zip(word.among) {
        let k = usize::from(topic);
        let ((base, rate), q, balls) = (single[k], q[k] as f32, &word.balls[k]);
        for lane in 0..LANES {
            let n = balls[lane] as f32;
            total[lane] += (base + unit * n) * q / (1.0 + rate * n);
        }
        *sums = total;
    }
    let places = word.pick(&total, ROUNDINGS, uniforms, false);
    map_lanes(places, |place| word.among[place as usize])
}

/// Moves two tokens by their conditional: the first by its weight times what the second then meets.
#[polyabayes_macros::vectorised]
pub(super) fn redraw_pair<U: UniformLanes>(
    word: &mut Word<'_, '_>,
    topics: [&mut [u16; LANES]; 2],
    is_listed: &impl Fn(u16) -> bool,
    uniforms: &mut U,
) {
    let before = [*topics[0], *topics[1]];
    before.iter().for_each(|topics| word.take(topics));
    let n_listed = word.among.len();
    let [first_total, least_gain] = word.fill_singles();
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
    let [first, second] = topics;
    let places = word.pick(&total, 2.02 * n_listed as f32 + PAIR_ROUNDINGS, uniforms, true);
    *first = map_lanes(places, |place| word.among[place as usize]);
    word.put(first);
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
    let places = word.pick(&total, PAIR_ROUNDINGS, uniforms, false);
    *second = map_lanes(places, |place| word.among[place as usize]);
    word.put(second);
    for lane in 0..LANES {
        if !before.iter().all(|topics| is_listed(topics[lane])) {
            word.exchange(lane, first, before[0][lane]);
            word.exchange(lane, second, before[1][lane]);
        }
    }
}

/// Moves some tokens: the first by its weight times those that the others then meet, the others in
/// sequence, as the proposal of a Metropolis move.
#[polyabayes_macros::vectorised]
pub(super) fn redraw_together<U: UniformLanes>(
    word: &mut Word<'_, '_>,
    topics: &mut [[u16; LANES]],
    is_listed: &impl Fn(u16) -> bool,
    uniforms: &mut U,
) {
    let mut before = std::mem::take(&mut word.buffers.before);
    before.clear();
    before.extend_from_slice(topics);
    before.iter().for_each(|topics| word.take(topics));
    let n_tokens = topics.len();
    let first = word.fill_weights();
    let inverse = map_lanes(first, f64::recip);
    let mut chance = word.ahead_of(&before[0], &inverse, n_tokens);
    word.fill_totals(&before, &first);
    word.accumulate_ahead(&inverse, n_tokens);
    for (token, topics) in topics.iter_mut().enumerate() {
        if token > 0 {
            let totals = word.accumulate();
            let met = &word.buffers.totals[token - 1];
            for lane in 0..LANES {
                chance[lane] *= totals[lane] / met[lane];
            }
        }
        let places = pick_lanes(&word.buffers.sums[..word.among.len()], uniforms.next());
        *topics = map_lanes(places, |place| word.among[place as usize]);
        if token == 0 {
            let ahead = word.ahead_of(topics, &inverse, n_tokens);
            for lane in 0..LANES {
                chance[lane] /= ahead[lane];
            }
        }
        if token + 1 == n_tokens {
            word.put(topics);
        } else {
            let [_, weights] = word.add(topics);
            for lane in 0..LANES {
                word.buffers.weights[places[lane] as usize][lane] = weights[lane];
            }
        }
    }
    let darts = uniforms.next();
    for lane in 0..LANES {
        let is_moved =
            darts[lane] < chance[lane] && before.iter().all(|topics| is_listed(topics[lane]));
        if !is_moved {
            for (topics, old) in topics.iter_mut().zip(&before) {
                word.exchange(lane, topics, old[lane]);
            }
        }
    }
    word.buffers.before = before;
}

/// Weight that an earlier token of the word adds; none in a topic that cannot produce the word.
#[inline(always)]
fn repeat_of(q: f64, repeat: f64) -> f64 {
    if q > 0.0 { repeat } else { 0.0 }
}

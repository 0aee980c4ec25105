//! The moves of the tokens of one word.

// Each kernel is compiled for several instruction sets, with all its parts in it.
#![allow(clippy::inline_always)]

use super::buffers::BurstBuffers;
use super::layers::Layers;
use crate::math::pick_lanes;
use crate::rng::{LANES, Lanes, UniformLanes, map_lanes};
use crate::urn::chains::kernels::{put, take};
use crate::urn::chains::sweeps::{pick, pick_exactly};
use crate::urn::{BurstTarget, Counts, SweepOrder, UrnTarget};

/// Roundings of a draw beside those of its sums: 10 of a weight, twice, and those of the dart; see
/// [`pick`].
const ROUNDINGS: f32 = 48.0;

/// Tokens of a word from which on it moves in parts, too.
const MANY: usize = 4;

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
    /// The topic of the only token, which is out.
    #[inline(always)]
    pub(super) fn draw_single(&mut self, uniforms: &mut impl UniformLanes) -> [u16; LANES] {
        let BurstBuffers { single, single_sums: sums, .. } = &mut *self.buffers;
        let (q, unit) = (self.target.row(self.cell), self.target.unit as f32);
        let mut total = [0.0; LANES];
        for (sums, &topic) in sums.iter_mut().zip(self.among) {
            let k = usize::from(topic);
            let ((base, rate), q, balls) = (single[k], q[k] as f32, &self.balls[k]);
            for lane in 0..LANES {
                let n = balls[lane] as f32;
                total[lane] += (base + unit * n) * q / (1.0 + rate * n);
            }
            *sums = total;
        }
        let uniform = uniforms.next();
        let names = self.among.iter().map(|&topic| i32::from(topic));
        let compared = &sums[..self.among.len() - 1];
        let (mut new, is_open) = pick(compared, &total, names, &uniform, ROUNDINGS);
        if is_open != [0; LANES] {
            let (balls, among) = (&*self.balls, self.among);
            let (target, cell) = (self.target, self.cell);
            let weights = |lane: usize| {
                among.iter().map(move |&topic| {
                    let k = usize::from(topic);
                    target.weight(cell, k, f64::from(balls[k][lane]), 0.0)
                })
            };
            pick_exactly(&mut new, &is_open, &uniform, weights, |place| i32::from(among[place]));
        }
        map_lanes(new, |topic| topic as u16)
    }

    /// Moves all tokens together; where they are many, then two at a time, as divisions of a word among
    /// topics are hard to propose. Backward, in reverse.
    #[inline(always)]
    pub(super) fn redraw(
        &mut self,
        topics: &mut [[u16; LANES]],
        order: SweepOrder,
        is_listed: impl Fn(u16) -> bool,
        uniforms: &mut impl UniformLanes,
    ) {
        let is_divided = topics.len() >= MANY && self.among.len() > 1;
        let n_pairs = if is_divided { topics.len() / 2 } else { 0 };
        topics.iter().for_each(|topics| put(&mut self.buffers.held, topics));
        if order == SweepOrder::Backward && is_divided {
            self.divide(topics, uniforms);
        }
        for step in 0..=n_pairs {
            let moved = match order.nth(step, n_pairs + 1) {
                0 => &mut topics[..],
                pair => &mut topics[2 * pair - 2..2 * pair],
            };
            self.redraw_together(moved, &is_listed, uniforms);
        }
        if order == SweepOrder::Forward && is_divided {
            self.divide(topics, uniforms);
        }
        topics.iter().for_each(|topics| take(&mut self.buffers.held, topics));
    }

    /// Moves some tokens: the first by its weight times those that the others then meet, the others in
    /// sequence. That is the conditional of two tokens, else the proposal of a Metropolis move.
    #[inline(always)]
    fn redraw_together(
        &mut self,
        topics: &mut [[u16; LANES]],
        is_listed: &impl Fn(u16) -> bool,
        uniforms: &mut impl UniformLanes,
    ) {
        let mut before = std::mem::take(&mut self.buffers.before);
        before.clear();
        before.extend_from_slice(topics);
        before.iter().for_each(|topics| self.take(topics));
        let n_tokens = topics.len();
        let first = self.fill_weights();
        let mut chance = [1.0; LANES];
        if n_tokens > 2 {
            chance = self.layers(&before[0]).ahead(&first, n_tokens);
            self.fill_totals(&before, &first);
        }
        self.accumulate_ahead(&first, n_tokens);
        for (token, topics) in topics.iter_mut().enumerate() {
            if token > 0 {
                let totals = self.accumulate();
                if n_tokens > 2 {
                    let met = &self.buffers.totals[token - 1];
                    for lane in 0..LANES {
                        chance[lane] *= totals[lane] / met[lane];
                    }
                }
            }
            let places = pick_lanes(&self.buffers.sums[..self.among.len()], uniforms.next());
            *topics = map_lanes(places, |place| self.among[place as usize]);
            if token == 0 && n_tokens > 2 {
                let ahead = self.layers(topics).ahead(&first, n_tokens);
                for lane in 0..LANES {
                    chance[lane] /= ahead[lane];
                }
            }
            let (_, weights) = self.add(topics);
            for lane in 0..LANES {
                self.buffers.weights[places[lane] as usize][lane] = weights[lane];
            }
        }
        let darts = if n_tokens > 2 { uniforms.next() } else { [0.0; LANES] };
        for lane in 0..LANES {
            let is_moved =
                darts[lane] < chance[lane] && before.iter().all(|topics| is_listed(topics[lane]));
            if !is_moved {
                for (topic, old) in topics.iter_mut().zip(&before) {
                    let [new, old] = [topic[lane], old[lane]].map(usize::from);
                    for counts in [&mut *self.balls, &mut self.buffers.held[..]] {
                        counts[new][lane] -= 1;
                        counts[old][lane] += 1;
                    }
                    topic[lane] = old as u16;
                }
            }
        }
        self.buffers.before = before;
    }

    /// Parts of a token's weight in one topic of each lane.
    #[inline(always)]
    pub(super) fn layers(&self, topics: &[u16; LANES]) -> Layers {
        let mut layers = Layers { unit: self.target.unit, ..Layers::default() };
        let (row, scale) = (self.target.row(self.cell), self.second.scales[self.cell as usize]);
        for (lane, &topic) in topics.iter().enumerate() {
            let k = usize::from(topic);
            layers.base[lane] = self.target.base[k];
            layers.rate[lane] = self.second.rates[k];
            layers.q[lane] = row[k];
            layers.repeat[lane] = self.second.repeats[k] * scale;
            layers.n[lane] = f64::from(self.balls[k][lane]);
            layers.c[lane] = f64::from(self.buffers.held[k][lane]);
        }
        layers
    }

    /// The same in one topic of all lanes.
    #[inline(always)]
    fn layer(&self, topic: u16) -> Layers {
        let k = usize::from(topic);
        Layers {
            unit: self.target.unit,
            base: [self.target.base[k]; LANES],
            rate: [self.second.rates[k]; LANES],
            q: [self.target.row(self.cell)[k]; LANES],
            repeat: [self.second.repeat(self.cell, k); LANES],
            n: map_lanes(self.balls[k], f64::from),
            c: map_lanes(self.buffers.held[k], f64::from),
        }
    }

    #[inline(always)]
    fn take(&mut self, topics: &[u16; LANES]) {
        take(self.balls, topics);
        take(&mut self.buffers.held, topics);
    }

    /// Adds a token; weights of its topics before and after.
    #[inline(always)]
    fn add(&mut self, topics: &[u16; LANES]) -> (Lanes, Lanes) {
        let layers = self.layers(topics);
        put(self.balls, topics);
        put(&mut self.buffers.held, topics);
        (layers.weights(0.0), layers.weights(1.0))
    }

    /// Fills the weights of the first token; returns the totals.
    #[inline(always)]
    fn fill_weights(&mut self) -> Lanes {
        let mut total = [0.0; LANES];
        for (place, &topic) in self.among.iter().enumerate() {
            let weights = self.layer(topic).weights(0.0);
            for lane in 0..LANES {
                total[lane] += weights[lane];
            }
            self.buffers.weights[place] = weights;
        }
        total
    }

    /// Fills the total weights that each of these tokens meets after the first, for which they are given.
    #[inline(always)]
    fn fill_totals(&mut self, topics: &[[u16; LANES]], first: &Lanes) {
        self.buffers.totals.clear();
        let (mut total, sequence) = (*first, &topics[..topics.len() - 1]);
        for topics in sequence {
            let (before, after) = self.add(topics);
            for lane in 0..LANES {
                total[lane] = (total[lane] + after[lane] - before[lane]).max(f64::MIN_POSITIVE);
            }
            self.buffers.totals.push(total);
        }
        sequence.iter().for_each(|topics| self.take(topics));
    }

    /// Fills the cumulative weights of the first token, times what those after it meet.
    #[inline(always)]
    fn accumulate_ahead(&mut self, first: &Lanes, n_tokens: usize) {
        let mut total = [0.0; LANES];
        for (place, &topic) in self.among.iter().enumerate() {
            let ahead = self.layer(topic).ahead(first, n_tokens);
            for lane in 0..LANES {
                total[lane] += self.buffers.weights[place][lane] * ahead[lane];
            }
            self.buffers.sums[place] = total;
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

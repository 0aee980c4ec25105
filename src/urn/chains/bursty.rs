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
use crate::math::pick_lanes;
use crate::rng::{LANES, Lanes, UniformLanes, map_lanes};
use crate::urn::{BurstTarget, Counts, Shortlists, SweepOrder, UrnTarget};

/// Roundings of a draw beside those of its sums: 10 of a weight, twice, and those of the dart; see
/// [`super::sweeps::pick`].
const ROUNDINGS: f32 = 48.0;

/// Tokens of a word that the draw of its first looks ahead to, one by one; and further ones, as if each
/// met what the last of these does.
const LOOKAHEAD: usize = 3;
const BEYOND: usize = 16;

/// Tokens of a word from which on it moves in parts, too.
const MANY: usize = 4;

/// Tokens of a word that are divided anew at most, and the least share of a division of those up to it: of
/// so many tokens, halves may be 2^-512 times as likely as all or none.
const MOST_DIVIDED: usize = 512;
const RAREST: f64 = 1e300;

/// Buffers of a step.
#[derive(Debug, Clone, Default)]
pub(super) struct BurstBuffers {
    /// Balls of each topic before the first draw, and r.
    single: Vec<(f32, f32)>,
    single_sums: Vec<Singles>,
    /// All topics, where there are no lists.
    all: Vec<u16>,
    /// Tokens of one word in each topic.
    held: Vec<Counts>,
    weights: Vec<Lanes>,
    sums: Vec<Lanes>,
    /// Topics of the tokens of a word before a move, and the total weights that they met.
    before: Vec<[u16; LANES]>,
    totals: Vec<Lanes>,
    /// Of each division of a word between two topics: the weights up to it, over its own.
    divisions: Vec<Lanes>,
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

/// The tokens of the same word as one, which stand beside it.
fn same_word(cells: &[u32], token: usize) -> Range<usize> {
    let is_same = |other: &&u32| **other == cells[token];
    let before = cells[..token].iter().rev().take_while(is_same).count();
    let after = cells[token..].iter().take_while(is_same).count();
    token - before..token + after
}

/// One sweep over a part of the tokens, one by one.
#[polyabayes_macros::vectorised]
pub(super) fn sweep<U: UniformLanes>(
    tokens: BurstyTokens<'_, U>,
    part: Range<usize>,
    target: UrnTarget<'_>,
    second: BurstTarget<'_>,
    order: SweepOrder,
) {
    let BurstyTokens { cells, topics, balls, buffers, uniforms } = tokens;
    let n_topics = target.base.len();
    let mut row_of = None;
    for step in 0..part.len() {
        let token = part.start + order.nth(step, part.len());
        let cell = cells[token];
        if row_of != Some(cell) {
            row_of = Some(cell);
            buffers.hold(n_topics, &topics[same_word(cells, token)]);
        }
        let BurstBuffers { held, sums, .. } = &mut *buffers;
        sums.resize(n_topics, [0.0; LANES]);
        take(balls, &topics[token]);
        take(held, &topics[token]);
        accumulate(sums, balls, held, target, second, cell);
        topics[token] = map_lanes(pick_lanes(sums, uniforms.next()), |topic| topic as u16);
        put(balls, &topics[token]);
        put(held, &topics[token]);
    }
}

/// The next words of a sweep, about as many tokens as asked for, taken from those that are left.
pub(super) fn whole_words(
    cells: &[u32],
    left: &mut Range<usize>,
    order: SweepOrder,
    n_tokens: usize,
) -> Range<usize> {
    let cut = match order {
        SweepOrder::Forward => same_word(cells, (left.start + n_tokens).min(left.end) - 1).end,
        SweepOrder::Backward => {
            same_word(cells, left.end.saturating_sub(n_tokens).max(left.start)).start
        }
    };
    let cut = cut.clamp(left.start, left.end);
    match order {
        SweepOrder::Forward => std::mem::replace(&mut left.start, cut)..cut,
        SweepOrder::Backward => cut..std::mem::replace(&mut left.end, cut),
    }
}

/// A sweep over whole words, among all topics or those on their lists.
#[polyabayes_macros::vectorised]
pub(super) fn sweep_words<U: UniformLanes>(
    tokens: BurstyTokens<'_, U>,
    part: Range<usize>,
    lists: Option<&Shortlists>,
    target: UrnTarget<'_>,
    second: BurstTarget<'_>,
    order: SweepOrder,
) {
    let BurstyTokens { cells, topics, balls, buffers, uniforms } = tokens;
    let all = buffers.take_up(target, second);
    let mut left = part;
    while !left.is_empty() {
        let word = whole_words(cells, &mut left, order, 1);
        let cell = cells[word.start];
        let list = lists.map(|lists| lists.list(cell));
        let among = list.as_ref().map_or(&all[..], |list| list.topics);
        if list.is_some() && among.len() < 2 {
            continue;
        }
        let topics = &mut topics[word];
        let is_listed =
            |topic: u16| list.as_ref().is_none_or(|list| list.is_listed[usize::from(topic)]);
        let (balls, buffers) = (&mut *balls, &mut *buffers);
        let mut state = Word { cell, among, target, second, balls, buffers };
        if let [topic] = topics {
            take(state.balls, topic);
            let new = state.draw_single(uniforms);
            for lane in 0..LANES {
                topic[lane] = if is_listed(topic[lane]) { new[lane] } else { topic[lane] };
            }
            put(state.balls, topic);
        } else {
            state.redraw(topics, order, is_listed, uniforms);
        }
    }
    buffers.all = all;
}

/// A word whose tokens move.
struct Word<'s, 't> {
    cell: u32,
    /// Topics among which they move.
    among: &'s [u16],
    target: UrnTarget<'t>,
    second: BurstTarget<'t>,
    balls: &'s mut [Counts],
    buffers: &'s mut BurstBuffers,
}

impl Word<'_, '_> {
    /// The topic of the only token, which is out.
    #[inline(always)]
    fn draw_single(&mut self, uniforms: &mut impl UniformLanes) -> [u16; LANES] {
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
    fn redraw(
        &mut self,
        topics: &mut [[u16; LANES]],
        order: SweepOrder,
        is_listed: impl Fn(u16) -> bool,
        uniforms: &mut impl UniformLanes,
    ) {
        let n_pairs = if topics.len() < MANY { 0 } else { topics.len() / 2 };
        topics.iter().for_each(|topics| put(&mut self.buffers.held, topics));
        if order == SweepOrder::Backward && n_pairs > 0 {
            self.divide(topics, uniforms);
        }
        for step in 0..=n_pairs {
            let moved = match order.nth(step, n_pairs + 1) {
                0 => &mut topics[..],
                pair => &mut topics[2 * pair - 2..2 * pair],
            };
            self.redraw_together(moved, &is_listed, uniforms);
        }
        if order == SweepOrder::Forward && n_pairs > 0 {
            self.divide(topics, uniforms);
        }
        topics.iter().for_each(|topics| take(&mut self.buffers.held, topics));
    }

    /// Divides the tokens that two topics hold anew between them, by the conditional of the division: where
    /// a topic likes to hold all tokens of a word or none, the ways between are rare. One topic is that
    /// of any token, the other any on the list: so likely before as after.
    #[inline(always)]
    fn divide(&mut self, topics: &mut [[u16; LANES]], uniforms: &mut impl UniformLanes) {
        let n_moved = topics.len().min(MOST_DIVIDED);
        let topics = &mut topics[..n_moved];
        let (darts, others) = (uniforms.next(), uniforms.next());
        let mut pair = [[0; LANES]; 2];
        let mut is_still = [false; LANES];
        for lane in 0..LANES {
            let one = topics[(darts[lane] * n_moved as f64) as usize][lane];
            let place = (others[lane] * (self.among.len() - 1) as f64) as usize;
            let own = self.among.binary_search(&one);
            let other = self.among[place + usize::from(own.is_ok_and(|own| own <= place))];
            pair[0][lane] = one.min(other);
            pair[1][lane] = one.max(other);
            is_still[lane] = own.is_err();
        }
        let [one, other] = pair;
        let mut held = [[0; LANES]; 2];
        for topics in topics.iter() {
            for lane in 0..LANES {
                held[0][lane] += i32::from(topics[lane] == one[lane]);
                held[1][lane] += i32::from(topics[lane] == other[lane]);
            }
        }
        for (pair, held) in pair.iter().zip(&held) {
            self.give(pair, &map_lanes(*held, |n| -n));
        }
        let mut total = held[0];
        for lane in 0..LANES {
            total[lane] += held[1][lane];
        }
        let new = self.draw_division(&one, &other, &total, uniforms.next());
        let mut left = [[0; LANES]; 2];
        for lane in 0..LANES {
            let first = if is_still[lane] { held[0][lane] } else { new[lane] };
            left[0][lane] = first;
            left[1][lane] = total[lane] - first;
        }
        for (pair, held) in pair.iter().zip(&left) {
            self.give(pair, held);
        }
        if left == held {
            return;
        }
        for topics in topics {
            let darts = uniforms.next();
            for lane in 0..LANES {
                let is_one = topics[lane] == one[lane];
                if left[0][lane] + left[1][lane] == 0
                    || is_still[lane]
                    || !(is_one || topics[lane] == other[lane])
                {
                    continue;
                }
                let [first, second] = [0, 1].map(|i| left[i][lane]);
                let place =
                    usize::from(darts[lane] * f64::from(first + second) >= f64::from(first));
                left[place][lane] -= 1;
                topics[lane] = pair[place][lane];
            }
        }
    }

    /// Adds tokens of the word to one topic of each lane.
    #[inline(always)]
    fn give(&mut self, topics: &[u16; LANES], n: &Counts) {
        for counts in [&mut *self.balls, &mut self.buffers.held[..]] {
            for lane in 0..LANES {
                counts[usize::from(topics[lane])][lane] += n[lane];
            }
        }
    }

    /// Tokens of the first of two topics, of so many in both, which are out.
    #[inline(always)]
    fn draw_division(
        &mut self,
        one: &[u16; LANES],
        other: &[u16; LANES],
        total: &Counts,
        mut darts: Lanes,
    ) -> Counts {
        let (one, other) = (self.layers(one), self.layers(other));
        let most = total.iter().copied().fold(0, i32::max);
        let divisions = &mut self.buffers.divisions;
        divisions.clear();
        let mut last = [1.0; LANES];
        divisions.push(last);
        for m in 1..=most {
            let left = map_lanes(*total, |total| f64::from((total - m).max(0)));
            let (gained, lost) = (one.weights(f64::from(m - 1)), other.weights_beside(&left));
            for lane in 0..LANES {
                let ratio = (left[lane] + 1.0) * gained[lane]
                    / (f64::from(m) * lost[lane].max(f64::MIN_POSITIVE));
                last[lane] = (1.0 + last[lane] / ratio.max(f64::MIN_POSITIVE)).min(RAREST);
            }
            divisions.push(last);
        }
        let mut drawn = [-1; LANES];
        for m in (0..=most).rev() {
            let share = map_lanes(divisions[m as usize], f64::recip);
            for lane in 0..LANES {
                let is_open = drawn[lane] < 0 && m <= total[lane];
                let is_drawn = is_open && (darts[lane] < share[lane] || m == 0);
                drawn[lane] = if is_drawn { m } else { drawn[lane] };
                let rest = (darts[lane] - share[lane]) / (1.0 - share[lane]);
                darts[lane] = if is_open && !is_drawn { rest } else { darts[lane] };
            }
        }
        drawn
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
    fn layers(&self, topics: &[u16; LANES]) -> Layers {
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

/// Parts of the weight of a word's token in one topic of each lane.
#[derive(Default)]
struct Layers {
    unit: f64,
    base: Lanes,
    rate: Lanes,
    q: Lanes,
    repeat: Lanes,
    /// Tokens in the topic, and those of the word.
    n: Lanes,
    c: Lanes,
}

impl Layers {
    /// Weights beside the tokens that are there, and so many more of the word.
    #[inline(always)]
    fn weights(&self, more: f64) -> Lanes {
        self.weights_beside(&[more; LANES])
    }

    #[inline(always)]
    fn weights_beside(&self, more: &Lanes) -> Lanes {
        let mut weights = [0.0; LANES];
        for lane in 0..LANES {
            let (n, c) = (self.n[lane] + more[lane], self.c[lane] + more[lane]);
            let word = self.q[lane] + self.repeat[lane] * c;
            weights[lane] = (self.base[lane] + self.unit * n) * word / (1.0 + self.rate[lane] * n);
        }
        weights
    }

    /// Product over the tokens after the first of the total weights that they meet, over that which the first
    /// does, where all join it: to [`LOOKAHEAD`] tokens, and about beyond.
    #[inline(always)]
    fn ahead(&self, first: &Lanes, n_tokens: usize) -> Lanes {
        let (mut product, mut last) = ([1.0; LANES], [1.0; LANES]);
        let (own, n_ahead) = (self.weights(0.0), n_tokens - 1);
        for token in 1..=n_ahead.min(LOOKAHEAD) {
            let weights = self.weights(token as f64);
            for lane in 0..LANES {
                last[lane] = (first[lane] - own[lane] + weights[lane]) / first[lane];
                product[lane] *= last[lane];
            }
        }
        for _ in LOOKAHEAD..n_ahead.min(LOOKAHEAD + BEYOND) {
            for lane in 0..LANES {
                product[lane] *= last[lane];
            }
        }
        product
    }
}

impl BurstBuffers {
    /// Makes room, and takes up what sweeps need; returns all topics.
    fn take_up(&mut self, target: UrnTarget<'_>, second: BurstTarget<'_>) -> Vec<u16> {
        let n_topics = target.base.len();
        let single = target.base.iter().zip(second.rates);
        self.single.clear();
        self.single.extend(single.map(|(&base, &rate)| (base as f32, rate as f32)));
        self.single_sums.resize(n_topics, [0.0; LANES]);
        self.weights.resize(n_topics, [0.0; LANES]);
        self.sums.resize(n_topics, [0.0; LANES]);
        self.hold(n_topics, &[]);
        let mut all = std::mem::take(&mut self.all);
        all.clear();
        all.extend(0..n_topics as u16);
        all
    }

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
    let scale = second.scales[cell as usize];
    let layer = second.rates.iter().zip(second.repeats);
    let topics = target.base.iter().zip(target.row(cell)).zip(layer);
    let counts = balls.iter().zip(held);
    for ((sums, (balls, held)), ((base, q), (rate, repeat))) in
        sums.iter_mut().zip(counts).zip(topics)
    {
        let repeat = repeat * scale;
        for lane in 0..LANES {
            let n = f64::from(balls[lane]);
            let word = q + repeat * f64::from(held[lane]);
            total[lane] += (base + target.unit * n) * word / (1.0 + rate * n);
        }
        *sums = total;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::pick;
    use crate::rng::{Key, Purpose};
    use crate::urn::{LocalUrn, TopicBursts, TopicChains};

    /// Words of tokens: one of many, which moves in parts, too; and one of two.
    const DOCUMENTS: [[usize; 5]; 2] = [[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]];
    const N_STATES: usize = 243;

    fn urn(cells: [usize; 5]) -> LocalUrn {
        let q: [&[f64]; 2] = [&[0.5, 0.2, 0.3], &[0.3, 0.0, 0.4]];
        let bursts = TopicBursts { rates: vec![2.0, 0.3, 0.0], repeats: vec![2.0, 0.3, 0.0] };
        let n_first = cells.iter().filter(|&&cell| cell == 0).count() as u32;
        let rows = [(q[0], n_first), (q[1], 5 - n_first)];
        LocalUrn::from_scaled_rows(&[0.5, 0.3, 0.8], &rows, None, Some(&bursts)).unwrap()
    }

    fn state(index: usize) -> [usize; 5] {
        [index / 81, index / 27 % 3, index / 9 % 3, index / 3 % 3, index % 3]
    }

    /// Unnormalised probability of the topics of all tokens, token by token.
    fn mass(urn: &LocalUrn, cells: [usize; 5], topics: [usize; 5]) -> f64 {
        let target = UrnTarget::of(urn);
        let weight = |token: usize| {
            let (k, cell) = (topics[token], cells[token]);
            let earlier = || (0..token).filter(|&other| topics[other] == k);
            let c = earlier().filter(|&other| cells[other] == cell).count();
            target.weight(cell as u32, k, earlier().count() as f64, c as f64)
        };
        (0..5).map(weight).product()
    }

    /// Chains drawn from a distribution are still drawn from it after a sweep, and have moved.
    fn check(sweep: impl Fn(&mut TopicChains<crate::rng::Uniforms>, &LocalUrn, SweepOrder)) {
        let mut rng = Key::new(5, Purpose::Score).rng();
        let orders = [SweepOrder::Forward, SweepOrder::Backward];
        for (cells, order) in DOCUMENTS.iter().flat_map(|x| orders.map(|order| (*x, order))) {
            let urn = urn(cells);
            let mass: Vec<f64> =
                (0..N_STATES).map(|index| mass(&urn, cells, state(index))).collect();
            let total: f64 = mass.iter().sum();
            let mut chains = TopicChains::new(&urn, &mut rng).unwrap();
            let (mut after, mut n_moved, n_sweeps) = (vec![0.0; N_STATES], 0, 20_000);
            for _ in 0..n_sweeps {
                let darts =
                    chains.uniforms().map(|u| pick(mass.iter().copied(), u * total).unwrap());
                let tokens = [0, 1, 2, 3, 4];
                let topics = tokens.map(|token| darts.map(|index| state(index)[token] as u16));
                chains.refill(&topics);
                sweep(&mut chains, &urn, order);
                for lane in 0..LANES {
                    let topics = chains.topics().iter();
                    let now = topics.fold(0, |sum, x| 3 * sum + usize::from(x[lane]));
                    after[now] += 1.0;
                    n_moved += usize::from(now / 9 != darts[lane] / 9);
                }
            }
            let n = (n_sweeps * LANES) as f64;
            assert!(n_moved as f64 > 0.4 * n, "{n_moved}");
            let (mut chi2, mut n_possible) = (0.0, 0.0);
            for (after, mass) in after.iter().zip(&mass).filter(|(_, mass)| **mass > 0.0) {
                let expected = n * mass / total;
                chi2 += (after - expected).powi(2) / expected;
                n_possible += 1.0;
            }
            assert!(chi2 < n_possible + 4.0 * f64::sqrt(2.0 * n_possible), "{chi2} {n_possible}");
        }
    }

    #[test]
    fn sweeps_keep_the_distribution() {
        check(|chains, urn, order| chains.sweep(UrnTarget::of(urn), order, &()).unwrap());
        check(|chains, urn, order| {
            chains.sweep_words(None, UrnTarget::of(urn), order, &()).unwrap();
        });
        check(|chains, urn, order| {
            let lists = Shortlists::new(urn, &[1.0; 3], 0.25);
            chains.sweep_words(Some(&lists), UrnTarget::of(urn), order, &()).unwrap();
        });
    }
}

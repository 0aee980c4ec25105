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
    /// The first two and the sums in double precision.
    whole_factors: Vec<Lanes>,
    whole_words: Vec<Lanes>,
    whole_sums: Vec<Lanes>,
    /// Topics of the tokens of a word before a move.
    before: Vec<[u16; LANES]>,
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
}

impl Parts<'_> {
    #[inline(always)]
    fn factor(self, topic: usize, n: i32) -> f32 {
        let n = n as f32;
        (self.base[topic] as f32 + self.unit * n) / (1.0 + self.rates[topic] as f32 * n)
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
    scale: f32,
}

impl Word<'_> {
    /// Sets the weights of the topics that each lane's token left or joined.
    #[inline(always)]
    fn set(self, words: &mut [Singles], held: &[Counts], topics: &[u16; LANES]) {
        for (lane, &topic) in topics.iter().enumerate() {
            let topic = usize::from(topic);
            let repeat = self.scale * self.repeats[topic] as f32;
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
    let BurstBuffers { factors, words, all, sums, held, .. } = buffers;
    let n_topics = target.base.len();
    let parts = Parts { base: target.base, rates: second.rates, unit: target.unit as f32 };
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
            repeats: second.repeats,
            scale: second.scales[cell as usize] as f32,
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

/// A sweep over whole words.
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
    let n_topics = target.base.len();
    let BurstBuffers { all, held, whole_factors, whole_words, whole_sums, before, .. } = buffers;
    all.clear();
    all.extend(0..n_topics as u16);
    held.resize(n_topics, [0; LANES]);
    whole_words.resize(n_topics, [0.0; LANES]);
    whole_sums.resize(n_topics, [0.0; LANES]);
    let mut state =
        WordState { target, second, balls, held, factors: whole_factors, words: whole_words };
    state.fill_factors();
    let mut left = part;
    while !left.is_empty() {
        let word = match order {
            SweepOrder::Forward => same_word(cells, left.start),
            SweepOrder::Backward => same_word(cells, left.end - 1),
        };
        let word = word.start.max(left.start)..word.end.min(left.end);
        match order {
            SweepOrder::Forward => left.start = word.end,
            SweepOrder::Backward => left.end = word.start,
        }
        let cell = cells[word.start];
        let list = lists.map(|lists| lists.list(cell));
        let among = list.as_ref().map_or(&all[..], |list| list.topics);
        if list.is_some() && among.len() < 2 {
            continue;
        }
        before.clear();
        before.extend_from_slice(&topics[word.clone()]);
        let is_moved = |lane: usize| {
            list.as_ref().is_none_or(|list| {
                before.iter().all(|topics| list.is_listed[usize::from(topics[lane])])
            })
        };
        state.begin(cell, before);
        let is_one = before.len() == 1;
        let mut ln_chance = [0.0; LANES];
        let mut first = [0.0; LANES];
        for (place, token) in word.clone().enumerate() {
            let total = state.accumulate(whole_sums, among);
            if place == 0 {
                first = total;
            } else {
                for lane in 0..LANES {
                    ln_chance[lane] += total[lane].ln();
                }
            }
            let picked = pick_lanes(&whole_sums[..among.len()], uniforms.next());
            topics[token] = map_lanes(picked, |place| among[place as usize]);
            state.put(cell, &topics[token]);
        }
        if !is_one {
            let mut totals = first;
            let after = &topics[word.clone()];
            state.take_all(cell, after);
            for topics in &before[..before.len() - 1] {
                state.put_counting(cell, topics, &mut totals);
                for lane in 0..LANES {
                    ln_chance[lane] -= totals[lane].max(f64::MIN_POSITIVE).ln();
                }
            }
            state.put(cell, &before[before.len() - 1]);
        }
        let chances = if is_one { [0.0; LANES] } else { uniforms.next() };
        for lane in 0..LANES {
            let stays = !is_moved(lane) || (!is_one && chances[lane].ln() >= ln_chance[lane]);
            // One token has moved already; of more, the earlier topics are those that count now.
            if stays != is_one {
                continue;
            }
            for (place, token) in word.clone().enumerate() {
                let (old, new) = (before[place][lane], topics[token][lane]);
                let (from, to) = if is_one { (new, old) } else { (old, new) };
                state.give(cell, lane, from, to);
            }
        }
        for (place, token) in word.enumerate() {
            for lane in 0..LANES {
                let stays = !is_moved(lane) || (!is_one && chances[lane].ln() >= ln_chance[lane]);
                if stays {
                    topics[token][lane] = before[place][lane];
                }
            }
        }
    }
}

/// Weights of one word in all topics, in double precision, as its tokens come and go.
struct WordState<'s, 't> {
    target: UrnTarget<'t>,
    second: BurstTarget<'t>,
    balls: &'s mut [Counts],
    held: &'s mut [Counts],
    factors: &'s mut Vec<Lanes>,
    words: &'s mut [Lanes],
}

impl WordState<'_, '_> {
    #[inline(always)]
    fn factor(&self, topic: usize, n: i32) -> f64 {
        let n = f64::from(n);
        (self.target.base[topic] + self.target.unit * n) / (1.0 + self.second.rates[topic] * n)
    }

    #[inline(always)]
    fn fill_factors(&mut self) {
        self.factors.clear();
        for k in 0..self.target.base.len() {
            let factors = map_lanes(self.balls[k], |n| self.factor(k, n));
            self.factors.push(factors);
        }
    }

    /// Sets the weight of a topic in one lane.
    #[inline(always)]
    fn set(&mut self, cell: u32, lane: usize, topic: usize) {
        self.factors[topic][lane] = self.factor(topic, self.balls[topic][lane]);
        self.words[topic][lane] = self.target.word(cell, topic, f64::from(self.held[topic][lane]));
    }

    /// Takes all tokens of a word out.
    #[inline(always)]
    fn begin(&mut self, cell: u32, topics: &[[u16; LANES]]) {
        self.held.fill([0; LANES]);
        for (words, &q) in self.words.iter_mut().zip(self.target.row(cell)) {
            *words = [q; LANES];
        }
        for topics in topics {
            take(self.balls, topics);
        }
        for topics in topics {
            for (lane, &topic) in topics.iter().enumerate() {
                self.set(cell, lane, usize::from(topic));
            }
        }
    }

    #[inline(always)]
    fn take_all(&mut self, cell: u32, topics: &[[u16; LANES]]) {
        for topics in topics {
            take(self.balls, topics);
            take(self.held, topics);
        }
        for topics in topics {
            for (lane, &topic) in topics.iter().enumerate() {
                self.set(cell, lane, usize::from(topic));
            }
        }
    }

    #[inline(always)]
    fn put(&mut self, cell: u32, topics: &[u16; LANES]) {
        put(self.balls, topics);
        put(self.held, topics);
        for (lane, &topic) in topics.iter().enumerate() {
            self.set(cell, lane, usize::from(topic));
        }
    }

    /// The same, with the total weight that changes by it.
    #[inline(always)]
    fn put_counting(&mut self, cell: u32, topics: &[u16; LANES], totals: &mut Lanes) {
        for (lane, &topic) in topics.iter().enumerate() {
            let topic = usize::from(topic);
            totals[lane] -= self.factors[topic][lane] * self.words[topic][lane];
        }
        self.put(cell, topics);
        for (lane, &topic) in topics.iter().enumerate() {
            let topic = usize::from(topic);
            totals[lane] += self.factors[topic][lane] * self.words[topic][lane];
        }
    }

    /// Moves a token of one lane.
    #[inline(always)]
    fn give(&mut self, cell: u32, lane: usize, from: u16, to: u16) {
        for (topic, change) in [(usize::from(from), -1), (usize::from(to), 1)] {
            self.balls[topic][lane] += change;
            self.held[topic][lane] += change;
            self.set(cell, lane, topic);
        }
    }

    /// Fills the cumulative weights of some topics; returns the totals.
    #[inline(always)]
    fn accumulate(&self, sums: &mut [Lanes], among: &[u16]) -> Lanes {
        let mut total = [0.0; LANES];
        for (sums, &topic) in sums.iter_mut().zip(among) {
            let topic = usize::from(topic);
            let (factors, words) = (&self.factors[topic], &self.words[topic]);
            for lane in 0..LANES {
                total[lane] += factors[lane] * words[lane];
            }
            *sums = total;
        }
        total
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

    const CELLS: [usize; 5] = [0, 0, 0, 1, 2];
    const N_STATES: usize = 243;

    fn urn() -> LocalUrn {
        let q: [&[f64]; 3] = [&[0.5, 0.2, 0.3], &[0.2, 0.6, 0.1], &[0.3, 0.0, 0.4]];
        let bursts = TopicBursts { rates: vec![2.0, 0.3, 0.0], repeats: vec![2.0, 0.3, 0.0] };
        let rows = [(q[0], 3), (q[1], 1), (q[2], 1)];
        LocalUrn::from_scaled_rows(&[0.5, 0.3, 0.8], &rows, None, Some(&bursts)).unwrap()
    }

    fn state(index: usize) -> [usize; 5] {
        [index / 81, index / 27 % 3, index / 9 % 3, index / 3 % 3, index % 3]
    }

    /// Unnormalised probability of the topics of all tokens, token by token.
    fn mass(urn: &LocalUrn, topics: [usize; 5]) -> f64 {
        let target = UrnTarget::of(urn);
        let weight = |token: usize| {
            let (k, cell) = (topics[token], CELLS[token]);
            let earlier = || (0..token).filter(|&other| topics[other] == k);
            let c = earlier().filter(|&other| CELLS[other] == cell).count();
            target.weight(cell as u32, k, earlier().count() as f64, c as f64)
        };
        (0..5).map(weight).product()
    }

    /// Chains drawn from a distribution are still drawn from it after a sweep, and have moved.
    fn check(sweep: impl Fn(&mut TopicChains<crate::rng::Uniforms>, &LocalUrn, SweepOrder)) {
        let urn = urn();
        let mass: Vec<f64> = (0..N_STATES).map(|index| mass(&urn, state(index))).collect();
        let total: f64 = mass.iter().sum();
        let mut rng = Key::new(5, Purpose::Score).rng();
        for order in [SweepOrder::Forward, SweepOrder::Backward] {
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

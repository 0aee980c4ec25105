//! Gibbs chains over the tokens of one document, many in lockstep.
//!
//! The chains share the document, so that a step reads each weight once for all of them, and the
//! arithmetic of a step has no branch: it runs in vector registers, as wide as the processor has
//! them. The results are the same bits whatever their width.

mod bursty;
mod kernels;
mod sweeps;

use std::ops::Range;

use bursty::{BurstBuffers, BurstyTokens};
use kernels::{accumulate, balls_ratio, draw, pick, put, take};
use sweeps::{SinglePrecision, SweptTokens, sweep, sweep_within};

use super::{BurstTarget, Counts, LocalUrn, Shortlists, SweepOrder, UrnTarget};
use crate::control::Observer;
use crate::error::{Result, room_for};
use crate::rng::{LANES, Lanes, Stream, UniformLanes};

/// Sweeps after which a chain is taken to have forgotten its start.
const FORGETTING_SWEEPS: usize = 50;

/// Products whose logarithms need not be taken yet.
pub(super) const MODERATE: std::ops::RangeInclusive<f64> = 1e-100..=1e100;

/// Weights of all lanes between two looks at the observer.
const POLL_EVERY: usize = 1 << 20;

/// The topics of the first tokens of a document, in [`LANES`] independent chains.
#[derive(Debug, Clone)]
pub struct TopicChains<U> {
    /// Distinct word of each token.
    cells: Vec<u32>,
    /// Topics of the tokens so far.
    topics: Vec<[u16; LANES]>,
    /// Tokens so far of each topic.
    balls: Vec<Counts>,
    /// Cumulative weights of the topics, the buffer of a draw.
    sums: Vec<Lanes>,
    /// Buffers of a sweep.
    single: SinglePrecision,
    bursty: BurstBuffers,
    uniforms: U,
}

impl<U: UniformLanes> TopicChains<U> {
    /// Chains without tokens.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) where there is no room for all tokens of the document.
    pub fn new(urn: &LocalUrn, rng: &mut impl Stream<Lanes = U>) -> Result<Self> {
        TopicChains::with_uniforms(urn, rng.lanes())
    }

    /// Chains without tokens that draw by these numbers.
    fn with_uniforms(urn: &LocalUrn, uniforms: U) -> Result<Self> {
        // Counts have 31 bits.
        let n_tokens = i32::try_from(urn.n_tokens()).map_or(usize::MAX, |n| n as usize);
        let mut cells = room_for("words of the tokens of a document", n_tokens)?;
        for (cell, &y) in (0..).zip(urn.counts()) {
            cells.extend(std::iter::repeat_n(cell, y as usize));
        }
        Ok(TopicChains {
            cells,
            topics: room_for("topics of the tokens of a document", n_tokens)?,
            balls: vec![[0; LANES]; urn.n_topics()],
            sums: vec![[0.0; LANES]; urn.n_topics()],
            single: SinglePrecision::default(),
            bursty: BurstBuffers::default(),
            uniforms,
        })
    }

    /// Chains of all tokens, drawn in sequence.
    ///
    /// # Errors
    /// The errors of [`new`](TopicChains::new), and [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
    pub fn sequence(
        urn: &LocalUrn,
        rng: &mut impl Stream<Lanes = U>,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let mut chains = TopicChains::new(urn, rng)?;
        chains.extend_all(UrnTarget::of(urn), observer, |_| ())?;
        Ok(chains)
    }

    /// Draws the topics of all tokens that are not there yet, and passes on the weights of each.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
    pub fn extend_all(
        &mut self,
        target: UrnTarget<'_>,
        observer: &dyn Observer,
        mut each: impl FnMut(Lanes),
    ) -> Result<()> {
        let every = self.tokens_between_looks();
        while self.topics.len() < self.cells.len() {
            if self.topics.len().is_multiple_of(every) {
                observer.check_stop()?;
            }
            each(self.extend(target));
        }
        Ok(())
    }

    fn tokens_between_looks(&self) -> usize {
        (POLL_EVERY / LANES / self.balls.len()).max(1)
    }

    /// Chains of all tokens that start from one draw of their posterior and go on for some sweeps,
    /// so that each is a draw of the posterior, and they hardly depend on each other.
    ///
    /// # Errors
    /// The errors of [`sequence`](TopicChains::sequence).
    pub fn from_draw(
        urn: &LocalUrn,
        draw: &[u16],
        rng: &mut impl Stream<Lanes = U>,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let mut chains = TopicChains::new(urn, rng)?;
        draw.iter().for_each(|&topic| chains.put([topic; LANES]));
        for _ in 0..FORGETTING_SWEEPS {
            chains.sweep_words(None, UrnTarget::of(urn), SweepOrder::Forward, observer)?;
        }
        Ok(chains)
    }

    /// Takes all tokens out.
    pub fn clear(&mut self) {
        self.topics.clear();
        self.balls.fill([0; LANES]);
    }

    /// Distinct word of each token of the document.
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// Topics of the tokens so far.
    pub fn topics(&self) -> &[[u16; LANES]] {
        &self.topics
    }

    /// The same, of chains that go no further.
    pub fn into_topics(self) -> Vec<[u16; LANES]> {
        self.topics
    }

    /// Tokens so far of each topic.
    pub fn balls(&self) -> &[Counts] {
        &self.balls
    }

    /// Gives the next token these topics.
    pub fn put(&mut self, topics: [u16; LANES]) {
        put(&mut self.balls, &topics);
        self.topics.push(topics);
    }

    /// Puts these topics in the place of those of all tokens.
    pub fn refill(&mut self, topics: &[[u16; LANES]]) {
        self.clear();
        topics.iter().for_each(|&topics| self.put(topics));
    }

    /// Σ_l x_{k_l w_l} over the tokens so far, x being a table with a row for each distinct word.
    pub fn ln_emission(&self, ln_q: &[f64]) -> Lanes {
        let n_topics = self.balls.len();
        let mut sum = [0.0; LANES];
        for (&cell, topics) in self.cells.iter().zip(&self.topics) {
            let row = &ln_q[cell as usize * n_topics..][..n_topics];
            for (sum, &topic) in sum.iter_mut().zip(topics) {
                *sum += row[usize::from(topic)];
            }
        }
        sum
    }

    /// ln Π of the ratios of the balls at each draw of a topic, base + unit n, at the second target to
    /// those at the first; of a second layer, of whole weights.
    pub fn ln_ratio(&self, from: UrnTarget<'_>, to: UrnTarget<'_>) -> Lanes {
        let mut ln_ratio = [0.0; LANES];
        let units = [from.unit, to.unit].map(|unit| vec![unit; self.balls.len()]);
        let [before, after] = [(from.base, &units[0][..]), (to.base, &units[1][..])];
        balls_ratio(&self.balls, before, after, &mut ln_ratio);
        if let (Some(before), Some(after)) = (from.bursts, to.bursts) {
            let ones = vec![1.0; self.balls.len()];
            balls_ratio(&self.balls, (&ones, after.rates), (&ones, before.rates), &mut ln_ratio);
            if before.repeats != after.repeats || !std::ptr::eq(from.q, to.q) {
                self.add_words_ratio(from, to, &mut ln_ratio);
            }
        }
        ln_ratio
    }

    /// Adds ln Π of the ratios of the weights of words, with their earlier tokens in each topic.
    fn add_words_ratio(&self, from: UrnTarget<'_>, to: UrnTarget<'_>, ln_ratio: &mut Lanes) {
        let is_same = std::ptr::eq(from.q, to.q);
        let mut held = vec![[0; LANES]; self.balls.len()];
        let mut tokens = self.cells.iter().zip(&self.topics);
        for same in self.cells[..self.topics.len()].chunk_by(|x, y| x == y) {
            let word: Vec<_> = tokens.by_ref().take(same.len()).map(|(_, topics)| topics).collect();
            if is_same && same.len() == 1 {
                continue;
            }
            let mut products = [1.0; LANES];
            for topics in &word {
                for (lane, &topic) in topics.iter().enumerate() {
                    let (k, held) = (usize::from(topic), &mut held[usize::from(topic)][lane]);
                    let c = f64::from(*held);
                    let ratio = to.word(same[0], k, c) / from.word(same[0], k, c);
                    products[lane] *= ratio;
                    if !MODERATE.contains(&products[lane]) {
                        ln_ratio[lane] += products[lane].ln();
                        products[lane] = 1.0;
                    }
                    *held += 1;
                }
            }
            for lane in 0..LANES {
                ln_ratio[lane] += products[lane].ln();
            }
            for topics in word {
                for (lane, &topic) in topics.iter().enumerate() {
                    held[usize::from(topic)][lane] = 0;
                }
            }
        }
    }

    /// ln of the unnormalised probability of the topics under a target: Σ_l of ln of their weights.
    pub fn ln_joint(&self, target: UrnTarget<'_>) -> Lanes {
        let ones = vec![1.0; target.q.len()];
        let bases = vec![1.0; self.balls.len()];
        let flat = UrnTarget { base: &bases, unit: 0.0, q: &ones, ..target };
        let none = vec![0.0; self.balls.len()];
        let plain = |second| BurstTarget { rates: &none, repeats: &none, ..second };
        self.ln_ratio(UrnTarget { bursts: target.bursts.map(plain), ..flat }, target)
    }

    /// Adds the tokens of each distinct word in each topic, times a factor, to a table with a row for each
    /// word; over all chains.
    pub fn add_tokens(&self, factor: f64, tokens: &mut [f64]) {
        let n_topics = self.balls.len();
        for (&cell, topics) in self.cells.iter().zip(&self.topics) {
            let row = &mut tokens[cell as usize * n_topics..][..n_topics];
            topics.iter().for_each(|&topic| row[usize::from(topic)] += factor);
        }
    }

    /// Weight of the next token, without drawing its topic.
    pub fn weigh(&mut self, target: UrnTarget<'_>) -> Lanes {
        let token = self.topics.len();
        let cell = self.cells[token];
        let Some(second) = target.bursts else {
            return accumulate(&mut self.sums, &self.balls, target, cell);
        };
        let n_earlier =
            self.cells[..token].iter().rev().take_while(|other| **other == cell).count();
        self.bursty.hold(self.balls.len(), &self.topics[token - n_earlier..]);
        bursty::accumulate(&mut self.sums, &self.balls, &self.bursty.held, target, second, cell)
    }

    /// ln of the probability that a forward sweep from the present topics leads to these.
    pub fn ln_transition(&mut self, target: UrnTarget<'_>, to: &[[u16; LANES]]) -> Lanes {
        let balls = self.balls.clone();
        let mut ln_value = [0.0; LANES];
        let mut row_of = None;
        for (token, (old, new)) in self.topics.iter().zip(to).enumerate() {
            let cell = self.cells[token];
            take(&mut self.balls, old);
            let totals = match target.bursts {
                None => accumulate(&mut self.sums, &self.balls, target, cell),
                Some(second) => {
                    if row_of != Some(cell) {
                        let same = self.cells[token..].iter().take_while(|other| **other == cell);
                        let same = token..(token + same.count()).min(self.topics.len());
                        self.bursty.hold(balls.len(), &self.topics[same]);
                        row_of = Some(cell);
                    }
                    take(&mut self.bursty.held, old);
                    let held = &self.bursty.held;
                    bursty::accumulate(&mut self.sums, &self.balls, held, target, second, cell)
                }
            };
            for (lane, ln_value) in ln_value.iter_mut().enumerate() {
                let topic = usize::from(new[lane]);
                let c = if row_of.is_some() { self.bursty.held[topic][lane] } else { 0 };
                let n = f64::from(self.balls[topic][lane]);
                let weight = target.weight(cell, topic, n, f64::from(c));
                *ln_value += (weight / totals[lane]).ln();
            }
            put(&mut self.balls, new);
            if row_of.is_some() {
                put(&mut self.bursty.held, new);
            }
        }
        self.balls = balls;
        ln_value
    }

    /// Draws topics in proportion to the weights last computed, without putting them in.
    pub fn pick(&mut self) -> [u16; LANES] {
        pick(&self.sums, &mut self.uniforms)
    }

    /// Gives all tokens of a topic of one chain to a topic that holds none there.
    pub(super) fn rename(&mut self, lane: usize, old: u16, new: u16) {
        if old == new {
            return;
        }
        for topics in self.topics.iter_mut().filter(|topics| topics[lane] == old) {
            topics[lane] = new;
        }
        self.balls[usize::from(new)][lane] = self.balls[usize::from(old)][lane];
        self.balls[usize::from(old)][lane] = 0;
    }

    /// Moves a token of one chain to another topic.
    pub(super) fn give(&mut self, token: usize, lane: usize, topic: u16) {
        let old = std::mem::replace(&mut self.topics[token][lane], topic);
        self.balls[usize::from(old)][lane] -= 1;
        self.balls[usize::from(topic)][lane] += 1;
    }

    /// A uniform number for every chain.
    pub fn uniforms(&mut self) -> Lanes {
        self.uniforms.next()
    }

    /// Draws the topic of the next token, which must be there; returns the weights of the token.
    pub fn extend(&mut self, target: UrnTarget<'_>) -> Lanes {
        if target.bursts.is_some() {
            let weights = self.weigh(target);
            let topics = self.pick();
            self.put(topics);
            return weights;
        }
        let cell = self.cells[self.topics.len()];
        let (topics, weights) =
            draw(&mut self.sums, &mut self.balls, target, cell, &mut self.uniforms);
        self.topics.push(topics);
        weights
    }

    /// One Gibbs sweep over the tokens so far.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
    pub fn sweep(
        &mut self,
        target: UrnTarget<'_>,
        order: SweepOrder,
        observer: &dyn Observer,
    ) -> Result<()> {
        self.sweep_parts(order, observer, |chains, part| match target.bursts {
            None => sweep(chains.swept(part), target, order),
            Some(second) => bursty::sweep(chains.bursty(), part, target, second, order),
        })
    }

    /// One sweep, word after word, that also redraws the topics of all tokens of a word at once, where topics
    /// are bursty: single tokens hardly ever leave the others of their word. Two tokens of a word are drawn
    /// by their conditional; more are drawn together where one topic holds them all, then one by one. With
    /// lists, tokens move from topics on the list of their word to topics on it, and the others stay where
    /// they are: the same distribution, in less time. Without a second layer, tokens move one by one.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
    pub fn sweep_words(
        &mut self,
        lists: Option<&Shortlists>,
        target: UrnTarget<'_>,
        order: SweepOrder,
        observer: &dyn Observer,
    ) -> Result<()> {
        let Some(second) = target.bursts else {
            let Some(lists) = lists else { return self.sweep(target, order, observer) };
            return self.sweep_parts(order, observer, |chains, part| {
                sweep_within(chains.swept(part), lists, target, order);
            });
        };
        let every = self.tokens_between_looks();
        let mut tokens = 0..self.topics.len();
        while !tokens.is_empty() {
            observer.check_stop()?;
            let part = bursty::whole_words(&self.cells, &mut tokens, order, every);
            bursty::sweep_words(self.bursty(), part, lists, target, second, order);
        }
        Ok(())
    }

    /// Sweeps parts of the tokens, in order, with a look at the observer between them.
    fn sweep_parts(
        &mut self,
        order: SweepOrder,
        observer: &dyn Observer,
        mut sweep: impl FnMut(&mut Self, Range<usize>),
    ) -> Result<()> {
        let (n, every) = (self.topics.len(), self.tokens_between_looks());
        for done in (0..n).step_by(every) {
            observer.check_stop()?;
            let end = (done + every).min(n);
            let part = match order {
                SweepOrder::Forward => done..end,
                SweepOrder::Backward => n - end..n - done,
            };
            sweep(self, part);
        }
        Ok(())
    }

    fn bursty(&mut self) -> BurstyTokens<'_, U> {
        BurstyTokens {
            cells: &self.cells[..self.topics.len()],
            topics: &mut self.topics,
            balls: &mut self.balls,
            buffers: &mut self.bursty,
            uniforms: &mut self.uniforms,
        }
    }

    fn swept(&mut self, part: Range<usize>) -> SweptTokens<'_, U> {
        SweptTokens {
            cells: &self.cells[part.clone()],
            topics: &mut self.topics[part],
            balls: &mut self.balls,
            single: &mut self.single,
            uniforms: &mut self.uniforms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::CountMatrix;
    use crate::rng::{Key, Purpose};
    use crate::urn::Urn;

    const TOPICS: usize = 3;

    #[test]
    fn ratios_of_balls_are_products_over_draws_of_any_size() {
        let counts = CountMatrix::from_dense(&[vec![900, 1]]).unwrap();
        let urn = Urn::new(vec![0.2, 0.3, 0.5], vec![0.7, 0.4, 0.1, 0.3, 0.6, 0.9]).unwrap();
        let urn = LocalUrn::new(&urn, counts.document(0)).unwrap();
        let mut rng = Key::new(1, Purpose::Score).rng();
        let chains = TopicChains::sequence(&urn, &mut rng, &()).unwrap();
        let from = ([0.3, 2.0, 1e-3], 0.0);
        for to in [([0.2, 1.9, 1e-3], 0.1), ([1e90, 1e-90, 1e-100], 1.0)] {
            let [before, after] = [&from, &to].map(|(base, unit)| UrnTarget {
                base,
                unit: *unit,
                ..UrnTarget::of(&urn)
            });
            let found = chains.ln_ratio(before, after);
            for (lane, found) in found.into_iter().enumerate() {
                let draws = (0..TOPICS).flat_map(|k| {
                    let n = chains.balls()[k][lane] as usize;
                    (0..n).map(move |n| (k, n as f64))
                });
                let ln_draw = |(k, n): (usize, f64)| {
                    (to.0[k] + to.1 * n).ln() - (from.0[k] + from.1 * n).ln()
                };
                let expected: f64 = draws.map(ln_draw).sum();
                assert!((found - expected).abs() < 1e-11 * expected.abs(), "{found} {expected}");
            }
        }
    }
}

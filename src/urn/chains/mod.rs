//! Gibbs chains over the tokens of one document, many in lockstep.
//!
//! The chains share the document, so that a step reads each weight once for all of them, and the
//! arithmetic of a step has no branch: it runs in vector registers, as wide as the processor has
//! them. The results are the same bits whatever their width.

mod kernels;
mod sweeps;

use std::ops::Range;

use kernels::{accumulate, balls_ratio, draw, pick, put, take};
use sweeps::{SinglePrecision, SweptTokens, sweep, sweep_within};

use super::{Counts, LocalUrn, Shortlists, SweepOrder, UrnTarget};
use crate::control::Observer;
use crate::error::{Result, room_for};
use crate::rng::{LANES, Lanes, Stream, UniformLanes};

/// Sweeps after which a chain is taken to have forgotten its start.
const FORGETTING_SWEEPS: usize = 50;

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
        observer: &impl Observer,
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
        observer: &impl Observer,
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
        observer: &impl Observer,
    ) -> Result<Self> {
        let mut chains = TopicChains::new(urn, rng)?;
        draw.iter().for_each(|&topic| chains.put([topic; LANES]));
        for _ in 0..FORGETTING_SWEEPS {
            chains.sweep(UrnTarget::of(urn), SweepOrder::Forward, observer)?;
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

    /// ln Π of the ratios of the balls at each draw of a topic, `base + unit n`, at the second base
    /// and unit to those at the first.
    pub fn ln_balls_ratio(&self, from: (&[f64], f64), to: (&[f64], f64)) -> Lanes {
        let mut ln_ratio = [0.0; LANES];
        balls_ratio(&self.balls, from, to, &mut ln_ratio);
        ln_ratio
    }

    /// Weight of the next token, without drawing its topic.
    pub fn weigh(&mut self, target: UrnTarget<'_>) -> Lanes {
        accumulate(&mut self.sums, &self.balls, target, self.cells[self.topics.len()])
    }

    /// ln of the probability that a forward sweep from the present topics leads to these.
    pub fn ln_transition(&mut self, target: UrnTarget<'_>, to: &[[u16; LANES]]) -> Lanes {
        let balls = self.balls.clone();
        let mut ln_value = [0.0; LANES];
        for ((&cell, old), new) in self.cells.iter().zip(&self.topics).zip(to) {
            take(&mut self.balls, old);
            let totals = accumulate(&mut self.sums, &self.balls, target, cell);
            let q = target.row(cell);
            for (lane, ln_value) in ln_value.iter_mut().enumerate() {
                let topic = usize::from(new[lane]);
                let weight = target.base[topic] + target.unit * f64::from(self.balls[topic][lane]);
                *ln_value += (weight * q[topic] / totals[lane]).ln();
            }
            put(&mut self.balls, new);
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
        observer: &impl Observer,
    ) -> Result<()> {
        self.sweep_parts(order, observer, |tokens| sweep(tokens, target, order))
    }

    /// One sweep that moves tokens from topics on the list of their word to topics on it, by their
    /// conditional probabilities there, and leaves the others where they are. It keeps the same
    /// distribution as [`sweep`](TopicChains::sweep), in less time.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
    pub fn sweep_within(
        &mut self,
        lists: &Shortlists,
        target: UrnTarget<'_>,
        order: SweepOrder,
        observer: &impl Observer,
    ) -> Result<()> {
        self.sweep_parts(order, observer, |tokens| sweep_within(tokens, lists, target, order))
    }

    /// Sweeps parts of the tokens, in order, with a look at the observer between them.
    fn sweep_parts(
        &mut self,
        order: SweepOrder,
        observer: &impl Observer,
        mut sweep: impl FnMut(SweptTokens<'_, U>),
    ) -> Result<()> {
        let (n, every) = (self.topics.len(), self.tokens_between_looks());
        for done in (0..n).step_by(every) {
            observer.check_stop()?;
            let end = (done + every).min(n);
            let part = match order {
                SweepOrder::Forward => done..end,
                SweepOrder::Backward => n - end..n - done,
            };
            sweep(self.swept(part));
        }
        Ok(())
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
            let found = chains.ln_balls_ratio((&from.0, from.1), (&to.0, to.1));
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

//! A Gibbs chain over the topics of a document's first tokens.

use crate::rng::Rng;
use crate::urn::{Balls, LocalUrn, Sweeper};

/// Topics of the first tokens of a document, and the urn that they leave behind.
///
/// Tokens are in the order of the document's distinct words, which exchangeability allows.
pub(super) struct Chain<'a> {
    urn: &'a LocalUrn,
    sweeper: Sweeper,
    topics: Vec<u16>,
    balls: Balls,
}

impl<'a> Chain<'a> {
    /// A chain without tokens.
    pub(super) fn new(urn: &'a LocalUrn) -> Self {
        Chain {
            urn,
            sweeper: Sweeper::new(urn.n_topics()),
            topics: Vec::with_capacity(urn.n_tokens() as usize),
            balls: Balls::new(urn.pseudo_counts()),
        }
    }

    /// A chain of all tokens, drawn in sequence.
    pub(super) fn sequence(urn: &'a LocalUrn, rng: &mut Rng) -> Self {
        let mut chain = Chain::new(urn);
        for (q, count) in urn.cells() {
            for _ in 0..count {
                chain.extend(q, rng);
            }
        }
        chain
    }

    /// Σ_k (a_k + n_k) q_k: the weight of the next token.
    pub(super) fn predictive(&self, q: &[f64]) -> f64 {
        self.balls.weigh(q)
    }

    /// Draws the topic of the next token.
    pub(super) fn extend(&mut self, q: &[f64], rng: &mut Rng) {
        let topic = self.sweeper.draw(self.balls.totals(), q, rng);
        self.balls.add(topic);
        self.topics.push(topic as u16);
    }

    /// One Gibbs sweep over the tokens so far.
    pub(super) fn sweep(&mut self, rng: &mut Rng) {
        let mut rest = self.topics.len() as u32;
        let cells = self.urn.cells().map_while(|(q, count)| {
            let taken = count.min(rest);
            rest -= taken;
            (taken > 0).then_some((q, taken))
        });
        self.sweeper.sweep(cells, &mut self.topics, &mut self.balls, rng);
    }

    /// The balls that the tokens so far leave behind.
    pub(super) fn balls(&self) -> &Balls {
        &self.balls
    }

    /// The topics of the tokens so far.
    pub(super) fn topics(&self) -> &[u16] {
        &self.topics
    }
}

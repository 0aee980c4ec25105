//! What Gibbs sweeps over the tokens of a document leave invariant.

use super::LocalUrn;
use super::bursts::{BurstTarget, Bursts};
use crate::rng::LANES;

/// Distribution that a sweep leaves invariant: `Π_l (base_k + unit n_k) q_{k w_l}`, and where topics are
/// bursty the [second layer](super::Bursts) on it.
#[derive(Debug, Clone, Copy)]
pub struct UrnTarget<'a> {
    /// Balls of each topic before the first draw.
    pub base: &'a [f64],
    /// Balls that a token adds.
    pub unit: f64,
    /// Weights of the distinct words, one row each.
    pub q: &'a [f64],
    /// The second layer, if there is one.
    pub bursts: Option<BurstTarget<'a>>,
}

impl<'a> UrnTarget<'a> {
    /// The urn itself.
    pub fn of(urn: &'a LocalUrn) -> Self {
        let bursts = urn.bursts().map(Bursts::target);
        UrnTarget { base: urn.pseudo_counts(), unit: 1.0, q: urn.all_weights(), bursts }
    }

    #[inline]
    pub(super) fn row(&self, cell: u32) -> &'a [f64] {
        let n_topics = self.base.len();
        &self.q[cell as usize * n_topics..][..n_topics]
    }

    /// Weight of a token of a word in a topic that holds n other tokens, c of them of this word.
    #[inline]
    pub(super) fn weight(&self, cell: u32, topic: usize, n: f64, c: f64) -> f64 {
        let balls = (self.base[topic] + self.unit * n) * self.word(cell, topic, c);
        self.bursts.map_or(balls, |second| balls / (1.0 + second.rates[topic] * n))
    }

    /// The word's part of this weight.
    #[inline]
    pub(super) fn word(&self, cell: u32, topic: usize, c: f64) -> f64 {
        let q = self.row(cell)[topic];
        self.bursts.map_or(q, |second| q + second.repeat(cell, topic) * c)
    }
}

/// A count of every lane.
pub type Counts = [i32; LANES];

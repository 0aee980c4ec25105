//! What Gibbs sweeps over the tokens of a document leave invariant.

use super::LocalUrn;
use crate::rng::LANES;

/// Distribution that a sweep leaves invariant: `Π_l (base_k + unit n_k) q_{k w_l}`.
#[derive(Debug, Clone, Copy)]
pub struct UrnTarget<'a> {
    /// Balls of each topic before the first draw.
    pub base: &'a [f64],
    /// Balls that a token adds.
    pub unit: f64,
    /// Weights of the distinct words, one row each.
    pub q: &'a [f64],
}

impl<'a> UrnTarget<'a> {
    /// The urn itself.
    pub fn of(urn: &'a LocalUrn) -> Self {
        UrnTarget { base: urn.pseudo_counts(), unit: 1.0, q: urn.all_weights() }
    }

    pub(super) fn row(&self, cell: u32) -> &'a [f64] {
        let n_topics = self.base.len();
        &self.q[cell as usize * n_topics..][..n_topics]
    }
}

/// A count of every lane.
pub type Counts = [i32; LANES];

//! The Pólya urn, the distribution of document likelihoods, and the chains of one document's
//! topics.
//!
//! An urn holds `a[k]` balls of every colour (topic) k. A token of word w draws colour k with
//! weight `(a[k] + n[k]) q[w][k]`, n being the colours drawn so far, and adds one ball of it. The
//! *urn sum* over all colourings of a document's tokens,
//!
//! ```text
//! Z(w_1..w_N; a, q) = Σ_{k_1..k_N} Π_l (a_{k_l} + n^{<l}_{k_l}) q_{k_l w_l},
//! ```
//!
//! is its likelihood under LDA and gamma-Poisson models up to a closed-form factor.
//!
//! The chains of a document ([`TopicChains`]) and those of an allocation model share the order of a
//! sweep ([`SweepOrder`]) and the draw from cumulative weights in lanes
//! ([`pick_lanes`](crate::math::pick_lanes)), but not the weights. A document's weight is one count
//! times one q in one row, which sweeps sum in single precision; an allocation's is a product over
//! the margins of a network, of counts in scattered rows. A common loop would bring the loop over
//! margins into every draw of a document.

mod bursts;
mod chains;
mod local;
mod opening;
mod order;
mod relabel;
mod shortlists;
mod target;

pub use bursts::{BurstTarget, Bursts, TopicBursts};
pub use chains::TopicChains;
pub use local::{Extent, LocalUrn};
pub use order::SweepOrder;
pub use shortlists::{LEFT_OUT, Shortlists};
pub use target::{Counts, UrnTarget};

use crate::error::{Error, Result, check_all, check_positive};

/// Largest number of topics: assignments, and numbers of topics used, are stored in 16 bits.
pub const MAX_TOPICS: usize = u16::MAX as usize;

/// Least value of a learned Dirichlet prior: the prior of a topic without tokens would underflow.
pub(crate) const LEAST_PRIOR: f64 = 1e-100;

/// Pseudo-counts and weights of an urn over a vocabulary.
#[derive(Debug, Clone, PartialEq)]
pub struct Urn {
    a: Vec<f64>,
    /// Word-major, `n_words` x `n_topics`: the weights of one word are contiguous.
    q: Vec<f64>,
}

impl Urn {
    /// An urn with pseudo-counts `a` (positive) and word-major weights `q` (not negative).
    ///
    /// # Errors
    /// No topics or more than [`MAX_TOPICS`], a length of `q` that is no multiple of that of `a`,
    /// values outside their domain.
    pub fn new(a: Vec<f64>, q: Vec<f64>) -> Result<Self> {
        if a.is_empty() {
            return Err(Error::Empty { name: "number of topics" });
        }
        if a.len() > MAX_TOPICS {
            let (found, expected) = (a.len(), MAX_TOPICS);
            return Err(Error::Length { name: "pseudo-counts", found, expected });
        }
        if q.is_empty() || !q.len().is_multiple_of(a.len()) {
            let expected = (q.len() / a.len()).max(1) * a.len();
            return Err(Error::Length { name: "weights", found: q.len(), expected });
        }
        check_positive("pseudo-counts", &a)?;
        check_all("weights", &q, "finite and not negative", |x| x >= 0.0 && x.is_finite())?;
        Ok(Urn { a, q })
    }

    /// Number of colours.
    pub fn n_topics(&self) -> usize {
        self.a.len()
    }

    /// Size of the vocabulary.
    pub fn n_words(&self) -> usize {
        self.q.len() / self.a.len()
    }

    /// Balls of each colour before the first draw.
    pub fn pseudo_counts(&self) -> &[f64] {
        &self.a
    }

    /// The weights of one word, one per topic.
    pub fn weights(&self, word: u32) -> &[f64] {
        let k = self.a.len();
        &self.q[word as usize * k..][..k]
    }
}

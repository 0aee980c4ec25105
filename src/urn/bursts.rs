//! The second layer of an urn: topics whose words come in bursts (Doyle & Elkan 2009).
//!
//! Every document draws its own version of topic k, φ_dk ~ Dirichlet(s_k φ_k). With φ_dk integrated out,
//! an urn of words stands in each topic: a token of word w in topic k has the weight
//!
//! ```text
//! (a_k + n_k) (q_kw + e_kw c_kw) / (1 + r_k n_k),   r_k = 1 / s_k,   e_kw = r_k q_kw / φ_kw,
//! ```
//!
//! c_kw being the tokens of w in the topic so far. r = 0 is the plain urn. The product over the tokens
//! of a document does not depend on their order, so that a document's tokens can be taken word by word:
//! c_kw is then a matter of one word at a time.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

/// The second layer over all topics of an urn.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicBursts {
    /// r_k, 0 where the topic is not bursty.
    pub rates: Vec<f64>,
    /// r_k times the factor by which the weights of the topic exceed its word probabilities.
    pub repeats: Vec<f64>,
}

/// The second layer of the part of an urn that a document touches: e_kw is a factor of the topic times one of
/// the word.
#[derive(Debug, Clone, PartialEq)]
pub struct Bursts {
    /// r_k of each topic of the document.
    pub rates: Vec<f64>,
    /// Factor of e_kw of each topic.
    pub repeats: Vec<f64>,
    /// Factor of e_kw of each distinct word.
    pub scales: Vec<f64>,
}

impl Bursts {
    /// e_kw: what an earlier token of a distinct word adds to the word's weight in a topic.
    pub fn repeat(&self, cell: usize, topic: usize) -> f64 {
        self.repeats[topic] * self.scales[cell]
    }

    /// The layer as part of a target.
    pub fn target(&self) -> BurstTarget<'_> {
        BurstTarget { rates: &self.rates, repeats: &self.repeats, scales: &self.scales }
    }
}

/// A second layer that sweeps leave invariant; see [`Bursts`].
#[derive(Debug, Clone, Copy)]
pub struct BurstTarget<'a> {
    /// r_k of each topic.
    pub rates: &'a [f64],
    /// Factor of e_kw of each topic.
    pub repeats: &'a [f64],
    /// Factor of e_kw of each distinct word.
    pub scales: &'a [f64],
}

impl BurstTarget<'_> {
    /// e_kw.
    #[inline(always)]
    pub(super) fn repeat(&self, cell: u32, topic: usize) -> f64 {
        self.repeats[topic] * self.scales[cell as usize]
    }
}

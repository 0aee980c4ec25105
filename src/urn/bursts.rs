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

/// The second layer over all topics of an urn.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicBursts {
    /// r_k, 0 where the topic is not bursty.
    pub rates: Vec<f64>,
    /// r_k times the factor by which the weights of the topic exceed its word probabilities.
    pub repeats: Vec<f64>,
}

/// The second layer of the part of an urn that a document touches.
#[derive(Debug, Clone, PartialEq)]
pub struct Bursts {
    /// r_k of each topic of the document.
    pub(super) rates: Vec<f64>,
    /// e_kw, a row for each distinct word.
    pub(super) repeats: Vec<f64>,
}

impl Bursts {
    /// 1/s_k of each topic.
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// What an earlier token of a distinct word adds to the word's weight in each topic.
    pub fn repeats(&self, cell: usize) -> &[f64] {
        &self.repeats[cell * self.rates.len()..][..self.rates.len()]
    }
}

/// A second layer on the way from the plain urn, heat 0, to itself, heat 1: r and e are multiplied by
/// the heat.
#[derive(Debug, Clone, Copy)]
pub struct BurstTarget<'a> {
    /// The layer.
    pub bursts: &'a Bursts,
    /// Factor of r and e.
    pub heat: f64,
}

impl BurstTarget<'_> {
    /// r_k times the heat.
    #[inline]
    pub(super) fn rate(&self, topic: usize) -> f64 {
        self.heat * self.bursts.rates[topic]
    }

    /// What an earlier token of a word adds to its weight in a topic.
    #[inline]
    pub(super) fn repeat(&self, cell: u32, topic: usize) -> f64 {
        self.heat * self.bursts.repeats(cell as usize)[topic]
    }
}

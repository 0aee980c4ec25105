//! The part of an urn that one document touches.

use super::Urn;
use crate::counts::Document;

/// An urn restricted to the words of a document, and to the topics that can produce any of them.
///
/// Every word's weights are scaled to a maximum of 1; [`ln_scale`](LocalUrn::ln_scale) holds what
/// was taken out, so that ln Z of the document is that of the scaled urn plus `ln_scale`.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalUrn {
    topics: Vec<u32>,
    a: Vec<f64>,
    q: Vec<f64>,
    counts: Vec<u32>,
    n_tokens: u64,
    ln_scale: f64,
}

impl LocalUrn {
    /// Restricts `urn` to `document`; `None` where a word has weight zero under every topic.
    ///
    /// A topic that cannot produce any of the words never gets a ball and drops out of Z.
    pub fn new(urn: &Urn, document: Document<'_>) -> Option<Self> {
        let mut reachable = vec![false; urn.n_topics()];
        for &word in document.words() {
            for (reached, &q) in reachable.iter_mut().zip(urn.weights(word)) {
                *reached |= q > 0.0;
            }
        }
        let topics: Vec<u32> = (0..).zip(&reachable).filter(|(_, r)| **r).map(|(k, _)| k).collect();
        let mut q = Vec::with_capacity(topics.len() * document.n_distinct());
        let mut ln_scale = 0.0;
        for (word, count) in document.cells() {
            let weights = urn.weights(word);
            let top = topics.iter().map(|&k| weights[k as usize]).fold(0.0, f64::max);
            if top == 0.0 {
                return None;
            }
            ln_scale += f64::from(count) * top.ln();
            q.extend(topics.iter().map(|&k| weights[k as usize] / top));
        }
        Some(LocalUrn {
            a: topics.iter().map(|&k| urn.pseudo_counts()[k as usize]).collect(),
            q,
            counts: document.counts().to_vec(),
            n_tokens: document.n_tokens(),
            ln_scale,
            topics,
        })
    }

    /// Number of topics that can produce a word of the document.
    pub fn n_topics(&self) -> usize {
        self.a.len()
    }

    /// Index of each such topic in the whole urn.
    pub fn topics(&self) -> &[u32] {
        &self.topics
    }

    /// Number of distinct words of the document.
    pub fn n_distinct(&self) -> usize {
        self.counts.len()
    }

    /// Number of tokens of the document.
    pub fn n_tokens(&self) -> u64 {
        self.n_tokens
    }

    /// How often each distinct word occurs.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Balls of each colour before the first draw.
    pub fn pseudo_counts(&self) -> &[f64] {
        &self.a
    }

    /// Scaled weights of the distinct word `cell`, one per topic; their maximum is 1.
    pub fn weights(&self, cell: usize) -> &[f64] {
        &self.q[cell * self.a.len()..][..self.a.len()]
    }

    /// (scaled weights, count) of every distinct word.
    pub fn cells(&self) -> impl Iterator<Item = (&[f64], u32)> {
        (0..self.n_distinct()).map(|cell| (self.weights(cell), self.counts[cell]))
    }

    /// ln of the factor taken out of the weights.
    pub fn ln_scale(&self) -> f64 {
        self.ln_scale
    }
}

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

/// How large the urn sum of a document is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extent {
    /// Number of tokens.
    pub n_tokens: u64,
    /// Number of distinct words.
    pub n_distinct: usize,
    /// Number of topics.
    pub n_topics: usize,
    /// Σ y² over the distinct words.
    pub sum_of_squares: f64,
}

impl Extent {
    /// The extent of a document of these counts.
    pub fn of(counts: &[u32], n_topics: usize) -> Self {
        Extent {
            n_tokens: counts.iter().map(|&y| u64::from(y)).sum(),
            n_distinct: counts.len(),
            n_topics,
            sum_of_squares: counts.iter().map(|&y| f64::from(y) * f64::from(y)).sum(),
        }
    }
}

impl LocalUrn {
    /// Restricts `urn` to `document`; `None` where a word has weight zero under every topic.
    ///
    /// A topic that cannot produce any of the words never gets a ball and drops out of Z.
    pub fn new(urn: &Urn, document: Document<'_>) -> Option<Self> {
        let rows: Vec<_> = document.cells().map(|(w, count)| (urn.weights(w), count)).collect();
        Self::of_rows(urn.pseudo_counts(), &rows)
    }

    /// As [`new`](LocalUrn::new), from the weights and the count of each distinct word.
    pub fn of_rows(a: &[f64], rows: &[(&[f64], u32)]) -> Option<Self> {
        let mut reachable = vec![false; a.len()];
        for (weights, _) in rows {
            for (reached, &q) in reachable.iter_mut().zip(*weights) {
                *reached |= q > 0.0;
            }
        }
        let topics: Vec<u32> = (0..).zip(&reachable).filter(|(_, r)| **r).map(|(k, _)| k).collect();
        let mut q = Vec::with_capacity(topics.len() * rows.len());
        let mut ln_scale = 0.0;
        for &(weights, count) in rows {
            let top = topics.iter().map(|&k| weights[k as usize]).fold(0.0, f64::max);
            if top == 0.0 {
                return None;
            }
            ln_scale += f64::from(count) * top.ln();
            q.extend(topics.iter().map(|&k| weights[k as usize] / top));
        }
        Some(LocalUrn {
            a: topics.iter().map(|&k| a[k as usize]).collect(),
            q,
            counts: rows.iter().map(|&(_, count)| count).collect(),
            n_tokens: rows.iter().map(|&(_, count)| u64::from(count)).sum(),
            ln_scale,
            topics,
        })
    }

    /// How large the urn sum is.
    pub fn extent(&self) -> Extent {
        Extent::of(&self.counts, self.n_topics())
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

    /// Scaled weights of all distinct words, one row after the other.
    pub fn all_weights(&self) -> &[f64] {
        &self.q
    }

    /// (scaled weights, count) of every distinct word.
    pub fn cells(&self) -> impl Iterator<Item = (&[f64], u32)> {
        (0..self.n_distinct()).map(|cell| (self.weights(cell), self.counts[cell]))
    }

    /// First token of each distinct word, the tokens being in the order of the words.
    pub fn starts(&self) -> Vec<usize> {
        let mut next = 0;
        let start = |&count: &u32| {
            next += count as usize;
            next - count as usize
        };
        self.counts.iter().map(start).collect()
    }

    /// ln of the factor taken out of the weights.
    pub fn ln_scale(&self) -> f64 {
        self.ln_scale
    }
}

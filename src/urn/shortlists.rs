//! The topics that are likely for each word of a document.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::LocalUrn;

/// Share of a word's probability that the topics may have that are not on its list. Runs vary as
/// much as with sweeps over all topics; with larger shares they vary more than shorter lists save.
pub const LEFT_OUT: f64 = 0.005;

/// Cost of a sweep within lists, as a share of that of one over all topics, up to which they pay.
const MOST_WITHIN: f64 = 0.75;

/// Topics that take as long as what every token of a sweep takes besides.
const TOKEN_COST: f64 = 15.0;

/// Topics among which sweeps mostly move the tokens of each distinct word of a document.
#[derive(Debug, Clone)]
pub struct Shortlists {
    /// Where each word's list starts in `topics` and `q`, and at the end where the last list ends.
    starts: Vec<usize>,
    topics: Vec<u16>,
    /// Weight of the word under each topic of its list.
    q: Vec<f32>,
    /// Whether each topic is on the list of each word.
    is_listed: Vec<bool>,
    n_topics: usize,
}

/// The topics that are likely for one word.
pub(super) struct Shortlist<'a> {
    pub(super) topics: &'a [u16],
    pub(super) q: &'a [f32],
    /// Whether each topic is on the list.
    pub(super) is_listed: &'a [bool],
}

impl Shortlists {
    /// The fewest topics, for each word, that together have all of its probability but the share
    /// `left_out`, where each topic holds as many balls as `balls` says.
    pub fn new(urn: &LocalUrn, balls: &[f64], left_out: f64) -> Self {
        let rows = urn.all_weights().chunks(balls.len());
        let weights: Vec<f64> =
            rows.flat_map(|q| q.iter().zip(balls).map(|(q, balls)| q * balls)).collect();
        Shortlists::of_weights(urn, &weights, |_| left_out)
    }

    /// The same, of bursty topics, by the expected tokens of each word in each topic: all but so many of the
    /// tokens of a word, as those in one topic come together.
    pub fn of_tokens(urn: &LocalUrn, tokens: &[f64], left_out: f64) -> Self {
        Shortlists::of_weights(urn, tokens, |y| left_out / f64::from(y))
    }

    fn of_weights(urn: &LocalUrn, weights: &[f64], left_out: impl Fn(u32) -> f64) -> Self {
        let n_topics = urn.n_topics();
        let q = urn.all_weights();
        let mut lists = Shortlists {
            starts: vec![0],
            topics: Vec::new(),
            q: Vec::new(),
            is_listed: vec![false; q.len()],
            n_topics,
        };
        let words = weights.chunks(n_topics).zip(lists.is_listed.chunks_mut(n_topics));
        for ((weights, is_listed), (q, y)) in words.zip(urn.cells()) {
            let total: f64 = weights.iter().sum();
            let (mut rest, most_left) = (total, left_out(y) * total);
            // The bits of weights are in their order; the first of equal topics comes first.
            let weighted = (0u16..).zip(weights).filter(|(_, weight)| **weight > 0.0);
            let mut heap: BinaryHeap<_> =
                weighted.map(|(topic, weight)| (weight.to_bits(), Reverse(topic))).collect();
            while rest > most_left {
                let Some((weight, Reverse(topic))) = heap.pop() else { break };
                rest -= f64::from_bits(weight);
                is_listed[usize::from(topic)] = true;
            }
            for (topic, q) in (0..).zip(q).filter(|(topic, _)| is_listed[usize::from(*topic)]) {
                lists.topics.push(topic);
                lists.q.push(*q as f32);
            }
            lists.starts.push(lists.topics.len());
        }
        lists
    }

    /// The topics that are likely for a distinct word.
    pub(super) fn list(&self, cell: u32) -> Shortlist<'_> {
        let cell = cell as usize;
        let range = self.starts[cell]..self.starts[cell + 1];
        Shortlist {
            topics: &self.topics[range.clone()],
            q: &self.q[range],
            is_listed: &self.is_listed[cell * self.n_topics..][..self.n_topics],
        }
    }

    /// Multiply-adds of a sweep of one chain within the lists, about.
    pub fn cost(&self, urn: &LocalUrn) -> f64 {
        let lengths = self.starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64);
        let moved = lengths.zip(urn.counts()).filter(|(length, _)| *length > 1.0);
        moved.map(|(length, &count)| (length + TOKEN_COST) * f64::from(count)).sum()
    }

    /// The lists, where sweeps within them take less time than those over all topics.
    pub fn if_short(self, urn: &LocalUrn) -> Option<Self> {
        let n_choices = urn.n_tokens() as f64 * urn.n_topics() as f64;
        (self.cost(urn) <= MOST_WITHIN * n_choices).then_some(self)
    }
}

//! The part of an urn that one document touches.

use std::borrow::Cow;

use super::Urn;
use super::bursts::{Bursts, TopicBursts};
use crate::counts::Document;

/// Place of a topic that cannot produce any word of a document.
const NOWHERE: u32 = u32::MAX;

/// An urn restricted to the words of a document, and to the topics that can produce any of them.
///
/// Topics with equal weights for all words of the document are one, whose pseudo-count is the sum
/// of theirs: the total of some weights of a Dirichlet distribution is a weight of a Dirichlet
/// distribution. Bursty topics are not: each has words of its own in the document.
///
/// Every word's weights are scaled to a maximum of 1; [`ln_scale`](LocalUrn::ln_scale) holds what
/// was taken out, so that ln Z of the document is that of the scaled urn plus `ln_scale`.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalUrn {
    /// Place among the topics of the document of each topic of the whole urn.
    places: Vec<u32>,
    a: Vec<f64>,
    q: Vec<f64>,
    counts: Vec<u32>,
    n_tokens: u64,
    ln_scale: f64,
    bursts: Option<Bursts>,
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
        Self::from_rows(urn.pseudo_counts(), &rows)
    }

    /// Does the same as [`new`](LocalUrn::new), from the weights and the count of each distinct
    /// word.
    pub fn from_rows(a: &[f64], rows: &[(&[f64], u32)]) -> Option<Self> {
        Self::from_scaled_rows(a, rows, None, None)
    }

    /// Does the same as [`from_rows`](LocalUrn::from_rows), the weights of each topic multiplied by its
    /// factor, with a second layer where topics are bursty.
    pub fn from_scaled_rows(
        a: &[f64],
        rows: &[(&[f64], u32)],
        factors: Option<&[f64]>,
        bursts: Option<&TopicBursts>,
    ) -> Option<Self> {
        let scaled = |weights: &[f64], k: u32| match factors {
            Some(factors) => weights[k as usize] * factors[k as usize],
            None => weights[k as usize],
        };
        let mut reachable = vec![false; a.len()];
        for (weights, _) in rows {
            for ((reached, &q), &a) in reachable.iter_mut().zip(*weights).zip(a) {
                // Topics that a document's own prior leaves out have a pseudo-count of zero.
                *reached |= q > 0.0 && a > 0.0;
            }
        }
        let mut topics: Vec<u32> =
            (0..).zip(&reachable).filter(|(_, r)| **r).map(|(k, _)| k).collect();
        let mut places = vec![NOWHERE; a.len()];
        let mut sums = Vec::with_capacity(topics.len());
        let firsts = first_equal(&topics, rows, factors, bursts);
        for (&topic, &first) in topics.iter().zip(&firsts) {
            if topic == first {
                places[topic as usize] = sums.len() as u32;
                sums.push(a[topic as usize]);
            } else {
                places[topic as usize] = places[first as usize];
                sums[places[first as usize] as usize] += a[topic as usize];
            }
        }
        let mut firsts = firsts.into_iter();
        topics.retain(|&topic| firsts.next() == Some(topic));
        let rate = |k: u32| bursts.map_or(0.0, |bursts| bursts.rates[k as usize]);
        let mut own = bursts.filter(|_| topics.iter().any(|&k| rate(k) > 0.0)).map(|_| Bursts {
            rates: topics.iter().map(|&k| rate(k)).collect(),
            repeats: bursts
                .map_or(vec![], |all| topics.iter().map(|&k| scaled(&all.repeats, k)).collect()),
            scales: Vec::with_capacity(rows.len()),
        });
        let mut q = Vec::with_capacity(topics.len() * rows.len());
        let mut ln_scale = 0.0;
        for &(weights, count) in rows {
            let top = topics.iter().map(|&k| scaled(weights, k)).fold(0.0, f64::max);
            if top == 0.0 {
                return None;
            }
            ln_scale += f64::from(count) * top.ln();
            q.extend(topics.iter().map(|&k| scaled(weights, k) / top));
            if let Some(own) = &mut own {
                own.scales.push(top.recip());
            }
        }
        Some(LocalUrn {
            a: sums,
            q,
            counts: rows.iter().map(|&(_, count)| count).collect(),
            n_tokens: rows.iter().map(|&(_, count)| u64::from(count)).sum(),
            ln_scale,
            places,
            bursts: own,
        })
    }

    /// How large the urn sum is.
    pub fn extent(&self) -> Extent {
        Extent::of(&self.counts, self.n_topics())
    }

    /// The urn with words of equal weights made one, whose count is the sum of theirs, where there are any: Z
    /// is that of the tokens, which have no names. Bursty topics know the words of their tokens, and a
    /// count must have room for the tokens.
    pub fn with_equal_words_merged(&self) -> Cow<'_, Self> {
        let bits = |cell: usize| self.weights(cell).iter().map(|q| q.to_bits());
        let mut order: Vec<usize> = (0..self.n_distinct()).collect();
        order.sort_by(|&x, &y| bits(x).cmp(bits(y)).then(x.cmp(&y)));
        let mut groups: Vec<&[usize]> = order.chunk_by(|&x, &y| bits(x).eq(bits(y))).collect();
        let is_kept = self.bursts.is_some() || u32::try_from(self.n_tokens).is_err();
        if is_kept || groups.len() == self.n_distinct() {
            return Cow::Borrowed(self);
        }
        groups.sort_unstable_by_key(|cells| cells[0]);
        let count = |cells: &&[usize]| cells.iter().map(|&cell| self.counts[cell]).sum();
        Cow::Owned(LocalUrn {
            q: groups.iter().flat_map(|cells| self.weights(cells[0])).copied().collect(),
            counts: groups.iter().map(count).collect(),
            ..self.clone()
        })
    }

    /// Number of topics that can produce a word of the document.
    pub fn n_topics(&self) -> usize {
        self.a.len()
    }

    /// Place of a topic of the whole urn among those of the document, which it may share with
    /// topics of equal weights; `None` for topics that cannot produce any of its words.
    pub fn place(&self, topic: u32) -> Option<usize> {
        let place = *self.places.get(topic as usize)?;
        (place != NOWHERE).then_some(place as usize)
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

    /// The second layer, where topics are bursty.
    pub fn bursts(&self) -> Option<&Bursts> {
        self.bursts.as_ref()
    }

    /// ln of the factor taken out of the weights.
    pub fn ln_scale(&self) -> f64 {
        self.ln_scale
    }
}

/// The first topic that has the same weights in all rows, and the same factor, for each topic: itself for
/// a bursty one.
fn first_equal(
    topics: &[u32],
    rows: &[(&[f64], u32)],
    factors: Option<&[f64]>,
    bursts: Option<&TopicBursts>,
) -> Vec<u32> {
    let is_bursty = |topic: u32| bursts.is_some_and(|bursts| bursts.rates[topic as usize] > 0.0);
    let rows = || rows.iter().map(|&(weights, _)| weights).chain(factors);
    let mut hashes = vec![0u64; topics.len()];
    for weights in rows() {
        for (hash, &topic) in hashes.iter_mut().zip(topics) {
            let bits = weights[topic as usize].to_bits();
            *hash = (hash.rotate_left(5) ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
    let mut order: Vec<usize> = (0..topics.len()).collect();
    order.sort_by_key(|&index| (hashes[index], index));
    let mut firsts = topics.to_vec();
    for group in order.chunk_by(|&i, &j| hashes[i] == hashes[j]) {
        for (position, &index) in group.iter().enumerate() {
            let equal = |&&other: &&usize| {
                let same = |weights: &[f64], i: usize| weights[topics[i] as usize].to_bits();
                rows().all(|weights| same(weights, index) == same(weights, other))
            };
            if is_bursty(topics[index]) {
                continue;
            }
            let plain = group[..position].iter().filter(|&&other| !is_bursty(topics[other]));
            if let Some(&other) = plain.clone().find(equal) {
                firsts[index] = firsts[other];
            }
        }
    }
    firsts
}

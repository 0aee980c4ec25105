//! A list of topics and counts for every document.

// The loops are compiled for several instruction sets, with all their parts in them.
#![allow(clippy::inline_always)]

use std::ops::Range;

use super::tallies::{BATCH, Tallies, Word};

/// Places of a list whose weights are summed side by side: place i is in lane i mod [`LANES`].
const LANES: usize = 8;

/// No topic: of a place in a list that is not taken.
const NONE: u16 = u16::MAX;

type Lanes = [f64; LANES];

/// 6 bytes a token of a block at most; a draw costs a pass over the document's topics, and
/// one over all topics where the pseudo-counts take it.
pub(super) struct Sparse {
    n_topics: usize,
    /// First place of each document, and the end.
    starts: Vec<usize>,
    /// Places that a document has taken. Those whose count has fallen to zero are taken again first.
    taken: Vec<u32>,
    topics: Vec<u16>,
    counts: Vec<u32>,
    /// Weights q of the word, filled up with zeros to a power of two.
    q: Vec<f64>,
    /// Of the weights a q, by lane so far.
    prior_sums: Vec<f64>,
    /// Weights q of the topics of a document.
    weights: Vec<f64>,
    /// Of the weights n q, by lane so far, for every token of a batch.
    sums: Vec<f64>,
}

impl Sparse {
    pub(super) fn new(n_topics: usize) -> Self {
        let size = n_topics.next_multiple_of(LANES);
        Sparse {
            n_topics,
            starts: Vec::new(),
            taken: Vec::new(),
            topics: Vec::new(),
            counts: Vec::new(),
            q: vec![0.0; n_topics.next_power_of_two()],
            prior_sums: vec![0.0; size],
            weights: vec![0.0; size],
            sums: vec![0.0; BATCH * size],
        }
    }

    /// The places that a document has taken, and some more to fill the lanes.
    fn places(&self, document: u32) -> Range<usize> {
        let start = self.starts[document as usize];
        start..start + (self.taken[document as usize] as usize).next_multiple_of(LANES)
    }
}

/// Where a token goes.
#[derive(Clone, Copy)]
enum Drawn {
    /// It stays: all weights have underflown.
    None,
    /// To a place of its document's list.
    Place(usize),
    /// To a topic that the pseudo-counts have drawn.
    Topic(u16),
}

impl Tallies for Sparse {
    fn reset(&mut self, lengths: impl Iterator<Item = usize>) {
        self.starts.clear();
        self.starts.push(0);
        let mut end = 0;
        for length in lengths {
            end += length.min(self.n_topics).next_multiple_of(LANES);
            self.starts.push(end);
        }
        self.taken.clear();
        self.taken.resize(self.starts.len() - 1, 0);
        self.topics.clear();
        self.topics.resize(end, NONE);
        self.counts.clear();
        self.counts.resize(end, 0);
    }

    #[inline]
    fn add(&mut self, document: u32, topic: u16) {
        let document = document as usize;
        let places = self.starts[document]..self.starts[document + 1];
        let taken = &mut self.taken[document];
        let topics = &mut self.topics[places.clone()];
        let counts = &mut self.counts[places];
        let n = *taken as usize;
        let place = (topics[..n].iter().position(|&x| x == topic))
            .or_else(|| counts[..n].iter().position(|&n| n == 0))
            .unwrap_or_else(|| {
                *taken += 1;
                n
            });
        topics[place] = topic;
        counts[place] += 1;
    }

    fn remove(&mut self, documents: &[u32], topics: &[u16]) {
        for (&document, &topic) in documents.iter().zip(topics) {
            let places = self.places(document);
            self.counts[places.start + place_of(&self.topics[places.clone()], topic)] -= 1;
        }
    }

    fn take_up(&mut self, word: &Word<'_>) {
        weigh_prior(&mut self.q, &mut self.prior_sums, word);
    }

    #[inline]
    fn draw(
        &mut self,
        _: &Word<'_>,
        documents: &[u32],
        topics: &mut [u16],
        uniforms: &[f64; BATCH],
    ) {
        let stride = self.weights.len();
        for (slot, &document) in documents.iter().enumerate() {
            let places = self.places(document);
            look_up(&mut self.weights, &self.topics[places.clone()], &self.q);
            let sums = &mut self.sums[slot * stride..][..places.len()];
            weigh_own(sums, &self.counts[places], &self.weights);
        }
        let prior_lanes = cumulate(&self.prior_sums);
        let mut drawn = [Drawn::None; BATCH];
        for (slot, (&document, u)) in documents.iter().zip(uniforms).enumerate() {
            let sums = &self.sums[slot * stride..][..self.places(document).len()];
            let lanes = cumulate(sums);
            let dart = u * (lanes[LANES] + prior_lanes[LANES]);
            let own = if dart < lanes[LANES] { locate(sums, &lanes, dart) } else { None };
            let from_prior = || locate(&self.prior_sums, &prior_lanes, dart - lanes[LANES]);
            drawn[slot] = match own {
                Some(place) => Drawn::Place(place),
                None => from_prior().map_or(Drawn::None, |topic| Drawn::Topic(topic as u16)),
            };
        }
        for (slot, (&document, topic)) in documents.iter().zip(topics).enumerate() {
            let start = self.starts[document as usize];
            match drawn[slot] {
                Drawn::None => self.add(document, *topic),
                Drawn::Place(place) => {
                    self.counts[start + place] += 1;
                    *topic = self.topics[start + place];
                }
                Drawn::Topic(new) => {
                    self.add(document, new);
                    *topic = new;
                }
            }
        }
    }

    fn counts(&self, document: usize) -> impl Iterator<Item = (usize, u32)> {
        let places = self.starts[document]..self.starts[document] + self.taken[document] as usize;
        let topics = self.topics[places.clone()].iter().map(|&topic| usize::from(topic));
        topics.zip(self.counts[places].iter().copied())
    }
}

/// Where a topic stands in a list that has it once.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512bw", "x86_64+avx2"))]
fn place_of(topics: &[u16], topic: u16) -> usize {
    let mut place = 0;
    for (i, &x) in (0..=u16::MAX).zip(topics) {
        place |= if x == topic { i } else { 0 };
    }
    usize::from(place)
}

/// Weights of the topics of a list.
#[multiversion::multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn look_up(weights: &mut [f64], topics: &[u16], q: &[f64]) {
    // Places that are not taken have no count, whatever their weight. Of a power of two this is the
    // remainder.
    let mask = q.len() - 1;
    for (weight, &topic) in weights.iter_mut().zip(topics) {
        *weight = q[usize::from(topic) & mask];
    }
}

/// Weights q of a word, and the sums by lane so far of a q.
#[multiversion::multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn weigh_prior(q: &mut [f64], sums: &mut [f64], word: &Word<'_>) {
    let parts = word.a.iter().zip(word.weights).zip(word.scale);
    for ((q, sum), ((a, weight), scale)) in q.iter_mut().zip(&mut *sums).zip(parts) {
        *q = weight * scale;
        *sum = a * *q;
    }
    sums[word.a.len()..].fill(0.0);
    let mut lanes = [0.0; LANES];
    for sum in sums.as_chunks_mut::<LANES>().0 {
        lanes = add(&lanes, sum);
        *sum = lanes;
    }
}

/// Sums by lane so far of the weights n q of some topics.
#[multiversion::multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn weigh_own(sums: &mut [f64], counts: &[u32], q: &[f64]) {
    let (sums, counts) = (sums.as_chunks_mut::<LANES>().0, counts.as_chunks::<LANES>().0);
    let mut lanes = [0.0; LANES];
    for ((sum, n), q) in sums.iter_mut().zip(counts).zip(q.as_chunks::<LANES>().0) {
        lanes = add(&lanes, &multiply(&n.map(f64::from), q));
        *sum = lanes;
    }
}

#[inline(always)]
fn add(x: &Lanes, y: &Lanes) -> Lanes {
    let mut sums = *x;
    for lane in 0..LANES {
        sums[lane] += y[lane];
    }
    sums
}

#[inline(always)]
fn multiply(x: &Lanes, y: &Lanes) -> Lanes {
    let mut products = *x;
    for lane in 0..LANES {
        products[lane] *= y[lane];
    }
    products
}

/// Sums over the lanes before each, and over all.
#[inline]
fn cumulate(sums: &[f64]) -> [f64; LANES + 1] {
    let mut cumulative = [0.0; LANES + 1];
    if let Some(lanes) = sums.as_chunks::<LANES>().0.last() {
        for lane in 0..LANES {
            cumulative[lane + 1] = cumulative[lane] + lanes[lane];
        }
    }
    cumulative
}

/// The positive weight on which a dart in [0, total) falls, lane after lane; `None` where there is
/// none.
#[inline]
fn locate(sums: &[f64], lanes: &[f64; LANES + 1], dart: f64) -> Option<usize> {
    let mut lane = 0;
    for &sum in &lanes[1..LANES] {
        lane += usize::from(sum <= dart);
    }
    let rest = dart - lanes[lane];
    let groups = sums.as_chunks::<LANES>().0;
    let passed = groups.iter().map(|sums| usize::from(sums[lane] <= rest)).sum::<usize>();
    // Rounding may carry the dart out of the lane.
    if passed == groups.len() { last_positive(sums) } else { Some(passed * LANES + lane) }
}

/// The last place whose weight is positive.
#[cold]
fn last_positive(sums: &[f64]) -> Option<usize> {
    (0..sums.len()).rev().find(|&place| {
        let before = place.checked_sub(LANES).map_or(0.0, |place| sums[place]);
        sums[place] > before
    })
}

//! Topics of the tokens of many documents, counted, and the draw of one token given the others.

use std::ops::Range;

use super::lanes::{LANES, Row, cumulate, locate, weigh_all, weigh_own};

/// Most tokens that are drawn side by side.
pub(super) const BATCH: usize = 8;

/// No topic: of a place in a list that is not taken.
const NONE: u16 = u16::MAX;

/// Counts of topics by document.
pub(super) trait Tallies {
    /// Starts again, with documents of these lengths.
    fn reset(&mut self, lengths: impl Iterator<Item = usize>);

    /// Counts a token.
    fn add(&mut self, document: usize, topic: u16);

    /// Draws the topics of up to [`BATCH`] tokens of one word and of different documents.
    ///
    /// Each in turn leaves its document and is drawn with probability proportional to
    /// (a_k + n_k) q_k, the word's `row`; `uniforms` are its numbers in [0, 1). First all counts are
    /// read, at last all are written: the processor works on the tokens side by side only as long
    /// as none reads near where another has written.
    fn draw(&mut self, documents: &[u32], topics: &mut [u16], row: &Row<'_>, uniforms: &[f64]);

    /// The topics of a document and their counts, of which some may be zero.
    fn counts(&self, document: usize) -> impl Iterator<Item = (usize, u32)>;
}

/// A count of every topic for every document.
///
/// 8 bytes a document and topic of a block; a draw costs a pass over all topics.
pub(super) struct Dense {
    n_topics: usize,
    /// Whole numbers, ready to be multiplied.
    counts: Vec<f64>,
    /// Of the weights, by lane so far, for every token of a batch.
    sums: Vec<f64>,
    indices: Vec<f64>,
}

impl Dense {
    pub(super) fn new(n_topics: usize) -> Self {
        let size = n_topics.next_multiple_of(LANES);
        let indices = (0..size).map(|topic| topic as f64).collect();
        Dense { n_topics, counts: Vec::new(), sums: vec![0.0; BATCH * size], indices }
    }
}

impl Tallies for Dense {
    fn reset(&mut self, lengths: impl Iterator<Item = usize>) {
        self.counts.clear();
        self.counts.resize(lengths.count() * self.indices.len(), 0.0);
    }

    fn add(&mut self, document: usize, topic: u16) {
        self.counts[document * self.indices.len() + usize::from(topic)] += 1.0;
    }

    #[inline]
    fn draw(&mut self, documents: &[u32], topics: &mut [u16], row: &Row<'_>, uniforms: &[f64]) {
        let size = self.indices.len();
        let tokens = self.sums.chunks_exact_mut(size).zip(documents).zip(&*topics);
        for ((sums, &document), &old) in tokens {
            let counts = &self.counts[document as usize * size..][..size];
            weigh_all(sums, counts, &self.indices, f64::from(old), row);
        }
        let mut drawn = [0; BATCH];
        let tokens = self.sums.chunks_exact(size).zip(&uniforms[..documents.len()]);
        for (new, (sums, u)) in drawn.iter_mut().zip(tokens) {
            let lanes = cumulate(sums);
            *new = locate(sums, &lanes, u * lanes[LANES]).unwrap_or(usize::MAX);
        }
        for ((&document, topic), new) in documents.iter().zip(topics).zip(drawn) {
            if new < size {
                let counts = &mut self.counts[document as usize * size..][..size];
                counts[usize::from(*topic)] -= 1.0;
                counts[new] += 1.0;
                *topic = new as u16;
            }
        }
    }

    fn counts(&self, document: usize) -> impl Iterator<Item = (usize, u32)> {
        let counts = &self.counts[document * self.indices.len()..][..self.n_topics];
        counts.iter().map(|&n| n as u32).enumerate()
    }
}

/// A list of topics and counts for every document.
///
/// 10 bytes a token of a block at most; a draw costs a pass over the document's topics, and
/// one over all topics where the pseudo-counts take it.
pub(super) struct Sparse {
    n_topics: usize,
    /// First place of each document, and the end.
    starts: Vec<usize>,
    /// Places that a document has taken. Those whose count has fallen to zero are taken again first.
    taken: Vec<u32>,
    topics: Vec<u16>,
    counts: Vec<f64>,
    weights: Vec<f64>,
    /// Of the weights, by lane so far, for every token of a batch.
    sums: Vec<f64>,
    indices: Vec<f64>,
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
            weights: vec![0.0; size],
            sums: vec![0.0; BATCH * size],
            indices: (0..size).map(|place| place as f64).collect(),
        }
    }

    /// The places that a document has taken, and some more to fill the lanes.
    fn places(&self, document: usize) -> Range<usize> {
        let start = self.starts[document];
        start..start + (self.taken[document] as usize).next_multiple_of(LANES)
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
        self.counts.resize(end, 0.0);
    }

    #[inline]
    fn add(&mut self, document: usize, topic: u16) {
        let places = self.starts[document]..self.starts[document + 1];
        let taken = &mut self.taken[document];
        let topics = &mut self.topics[places.clone()];
        let counts = &mut self.counts[places];
        let n = *taken as usize;
        let place = (topics[..n].iter().position(|&x| x == topic))
            .or_else(|| counts[..n].iter().position(|&n| n < 0.5))
            .unwrap_or_else(|| {
                *taken += 1;
                n
            });
        topics[place] = topic;
        counts[place] += 1.0;
    }

    #[inline]
    fn draw(&mut self, documents: &[u32], topics: &mut [u16], row: &Row<'_>, uniforms: &[f64]) {
        let stride = self.indices.len();
        let mut old_places = [0; BATCH];
        for (slot, (&document, &topic)) in documents.iter().zip(&*topics).enumerate() {
            let places = self.places(document as usize);
            old_places[slot] = place_of(&self.topics[places.clone()], topic);
            for (weight, &topic) in self.weights.iter_mut().zip(&self.topics[places.clone()]) {
                *weight = row.q.get(usize::from(topic)).copied().unwrap_or(0.0);
            }
            let sums = &mut self.sums[slot * stride..][..places.len()];
            let old = old_places[slot] as f64;
            weigh_own(sums, &self.counts[places], &self.indices, old, &self.weights);
        }
        let prior_lanes = cumulate(&row.prior.sums);
        let mut drawn = [Drawn::None; BATCH];
        for (slot, (&document, u)) in documents.iter().zip(uniforms).enumerate() {
            let sums = &self.sums[slot * stride..][..self.places(document as usize).len()];
            let lanes = cumulate(sums);
            let dart = u * (lanes[LANES] + prior_lanes[LANES]);
            let own = if dart < lanes[LANES] { locate(sums, &lanes, dart) } else { None };
            let from_prior = || locate(&row.prior.sums, &prior_lanes, dart - lanes[LANES]);
            drawn[slot] = match own {
                Some(place) => Drawn::Place(place),
                None => from_prior().map_or(Drawn::None, |topic| Drawn::Topic(topic as u16)),
            };
        }
        for (slot, (&document, topic)) in documents.iter().zip(topics).enumerate() {
            let start = self.starts[document as usize];
            match drawn[slot] {
                Drawn::None => {}
                Drawn::Place(place) => {
                    self.counts[start + old_places[slot]] -= 1.0;
                    self.counts[start + place] += 1.0;
                    *topic = self.topics[start + place];
                }
                Drawn::Topic(new) => {
                    self.counts[start + old_places[slot]] -= 1.0;
                    self.add(document as usize, new);
                    *topic = new;
                }
            }
        }
    }

    fn counts(&self, document: usize) -> impl Iterator<Item = (usize, u32)> {
        let places = self.starts[document]..self.starts[document] + self.taken[document] as usize;
        let topics = self.topics[places.clone()].iter().map(|&topic| usize::from(topic));
        topics.zip(self.counts[places].iter().map(|&n| n as u32))
    }
}

/// Where a topic stands in a list that has it once.
#[inline]
fn place_of(topics: &[u16], topic: u16) -> usize {
    let mut place = 0;
    for (i, &x) in (0u16..).zip(topics) {
        place |= if x == topic { i } else { 0 };
    }
    usize::from(place)
}

#[cfg(test)]
mod tests {
    use super::super::lanes::Prior;
    use super::*;

    const N_TOPICS: usize = 21;

    /// Two documents, of which the first is the one to look at.
    fn filled<T: Tallies>(mut tallies: T) -> T {
        tallies.reset([40, 40].into_iter());
        for token in 0..30 {
            tallies.add(0, token * token % 11);
            tallies.add(1, token % 21);
        }
        tallies
    }

    fn counts(tallies: &impl Tallies, document: usize) -> Vec<u32> {
        let mut counts = vec![0; N_TOPICS];
        tallies.counts(document).for_each(|(topic, n)| counts[topic] += n);
        counts
    }

    /// Topics drawn for all numbers of a fine grid fill shares that are those of the weights.
    fn check_shares<T: Tallies>(new: impl Fn() -> T) {
        const GRID: u32 = 20_000;
        const OLD: usize = 4;
        let a: Vec<f64> = (0..N_TOPICS).map(|k| 0.02 * (k + 1) as f64).collect();
        let q: Vec<f64> = (0..N_TOPICS).map(|k| (k * 7 % 5) as f64 * 0.1).collect();
        let mut prior = Prior::new(&a);
        let row = prior.row(&q);
        let mut rest = counts(&filled(new()), 0);
        rest[OLD] -= 1;
        let weights: Vec<f64> = (0..N_TOPICS).map(|k| (a[k] + f64::from(rest[k])) * q[k]).collect();
        let total: f64 = weights.iter().sum();
        let mut drawn = [0; N_TOPICS];
        for i in 0..GRID {
            let mut tallies = filled(new());
            let mut topics = [OLD as u16];
            tallies.draw(&[0], &mut topics, &row, &[(f64::from(i) + 0.5) / f64::from(GRID)]);
            let mut expected = rest.clone();
            expected[usize::from(topics[0])] += 1;
            assert_eq!(counts(&tallies, 0), expected);
            drawn[usize::from(topics[0])] += 1;
        }
        for (k, (&n, weight)) in drawn.iter().zip(&weights).enumerate() {
            let expected = f64::from(GRID) * weight / total;
            // A topic has one share in the document and one in the pseudo-counts.
            assert!((f64::from(n) - expected).abs() <= 2.0, "{k}: {n} {expected}");
            assert!(*weight > 0.0 || n == 0);
        }
    }

    #[test]
    fn draws_have_the_shares_of_their_weights() {
        check_shares(|| Dense::new(N_TOPICS));
        check_shares(|| Sparse::new(N_TOPICS));
    }

    /// Two tokens drawn side by side, and one after the other.
    fn check_batch<T: Tallies>(new: impl Fn() -> T) {
        let mut prior = Prior::new(&[0.3; N_TOPICS]);
        let row = prior.row(&[0.2; N_TOPICS]);
        let (mut together, mut one_by_one) = (filled(new()), filled(new()));
        let (mut both, mut first, mut second) = ([4, 20], [4], [20]);
        together.draw(&[0, 1], &mut both, &row, &[0.3, 0.8]);
        one_by_one.draw(&[0], &mut first, &row, &[0.3]);
        one_by_one.draw(&[1], &mut second, &row, &[0.8]);
        assert_eq!(both, [first[0], second[0]]);
        for document in 0..2 {
            assert_eq!(counts(&together, document), counts(&one_by_one, document));
        }
    }

    #[test]
    fn a_batch_is_the_same_as_its_tokens_one_by_one() {
        check_batch(|| Dense::new(N_TOPICS));
        check_batch(|| Sparse::new(N_TOPICS));
    }

    #[test]
    fn a_list_takes_up_the_places_of_topics_that_have_gone() {
        let mut tallies = Sparse::new(N_TOPICS);
        tallies.reset([3].into_iter());
        [5, 6, 7].into_iter().for_each(|topic| tallies.add(0, topic));
        let mut prior = Prior::new(&[1.0; N_TOPICS]);
        let mut topics = [5u16];
        // Only one topic has any weight, and it changes from draw to draw.
        for to in (8..21).chain(0..5) {
            let mut q = [0.0; N_TOPICS];
            q[to] = 1.0;
            tallies.draw(&[0], &mut topics, &prior.row(&q), &[0.5]);
            assert_eq!(usize::from(topics[0]), to);
        }
        let mut expected = vec![0; N_TOPICS];
        [4, 6, 7].into_iter().for_each(|topic: usize| expected[topic] = 1);
        assert_eq!(counts(&tallies, 0), expected);
    }
}

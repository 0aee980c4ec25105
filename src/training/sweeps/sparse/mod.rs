//! A list of topics and counts for every document, and draws in single precision that come out as
//! in double precision.

// The loops are compiled for several instruction sets, with all their parts in them.
#![allow(clippy::inline_always)]

mod lists;

use lists::Lists;

use crate::math::elementary::single::ROUNDING;
use crate::training::sweeps::blocks::TopicWeights;
use crate::training::sweeps::cells::Cells;
#[cfg(target_arch = "x86_64")]
use crate::training::sweeps::inverse_cdf::throw_avx512;
use crate::training::sweeps::inverse_cdf::{
    LANES, LaneBlock, LaneDraw, LaneSums, in_order, pass, throw, weigh,
};
use crate::training::sweeps::tallies::{BATCH, Batch, Tallies, Word};

/// Values of a topic, and of a place that has none: a table of that size has them all.
const ALL_TOPICS: usize = 1 << 16;

/// 4 bytes a token of a block, and 96 for every 16 topics that a document may have, whole or begun, 160
/// where topics are bursty; a draw costs a pass over the document's topics, and one over all topics where the pseudo-counts
/// take it.
///
/// The weights n q of the document's places are accumulated first, then the weights a q of all topics;
/// where single precision leaves open which is drawn, they are summed again in double precision, those
/// of all topics once for all tokens of a word.
pub(super) struct Sparse {
    n_topics: usize,
    lists: Lists,
    prior: PriorWeights,
    /// Sums of the weights n q, by lane before each line and in all, for every token of a batch.
    sums: Vec<LaneBlock>,
}

/// Parts of the weights of a word, beside the counts.
struct PriorWeights {
    /// q, filled up with zeros to [`ALL_TOPICS`].
    q: Vec<f32>,
    /// Sums of a q, by lane before each line and in all.
    sums: Vec<LaneBlock>,
    /// Sums of a q so far in double precision, and the topics; empty until a draw needs them.
    exact: Vec<(f64, u16)>,
}

/// The place or topic that is drawn for a token.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drawn {
    /// Single precision cannot tell.
    Open,
    /// A place of its document's list.
    Place(usize),
    /// A topic drawn by the pseudo-counts.
    Topic(u16),
}

impl Sparse {
    /// The weights of a document's places, in the order in which they are accumulated.
    fn weights<'a>(
        &'a self,
        word: &'a Word<'_>,
        cells: &'a Cells,
        (document, in_run): (u32, usize),
        (old, share): (u16, f64),
    ) -> impl Iterator<Item = (usize, f64)> + Clone + 'a {
        let lines = self.lists.documents[document as usize].lines();
        let topics = self.lists.topics[lines.clone()].as_flattened();
        let counts = self.lists.counts[lines].as_flattened();
        let taken = in_order(topics.len()).filter(|&place| counts[place] > 0);
        taken.map(move |place| {
            let (topic, n, topic_ix) = (topics[place], counts[place], usize::from(topics[place]));
            if self.lists.gains.is_empty() {
                return (place, f64::from(n) * word.q(topic_ix));
            }
            let gain = self.lists.bursty.gain(topic, n) * if topic == old { share } else { 1.0 };
            let mut weight = gain * word.q(topic_ix);
            if in_run < cells.len() {
                let repeated = cells.repeat[topic_ix] * cells.n_tokens(in_run, topic_ix);
                weight += (word.a[topic_ix] + gain) * repeated;
            }
            (place, weight)
        })
    }

    /// Place or topic at u, in double precision; `None` where all weights have
    /// underflown.
    #[cold]
    fn draw_exactly(
        &mut self,
        word: &Word<'_>,
        cells: &Cells,
        token: (u32, usize),
        old: (u16, f64),
        u: f64,
    ) -> Option<Drawn> {
        if self.prior.exact.is_empty() {
            let mut sum = 0.0;
            self.prior.exact.extend(in_order(self.n_topics).map(|topic| {
                sum += word.a[topic] * word.q(topic);
                (sum, topic as u16)
            }));
        }
        let (own, exact) = (self.weights(word, cells, token, old), &self.prior.exact);
        let (sum, beside) = (own.clone().map(|(_, weight)| weight).sum::<f64>(), exact.last()?.0);
        let dart = u * (sum + beside);
        if dart < sum || beside <= 0.0 {
            return pass(own, dart).map(Drawn::Place);
        }
        // Rounding may carry it past all of them.
        let index = exact.partition_point(|it| it.0 <= dart - sum && it.0 < beside);
        Some(Drawn::Topic(exact[index].1))
    }

    /// Takes up the concentrations of the topics, if any is bursty; none is below its pseudo-count.
    pub(super) fn take_bursts(&mut self, urns: TopicWeights<'_>) {
        self.lists.take_bursts(urns);
    }
}

impl Tallies for Sparse {
    fn new(n_topics: usize) -> Self {
        let n_lines = n_topics.div_ceil(LANES);
        Sparse {
            n_topics,
            lists: Lists::default(),
            prior: PriorWeights {
                q: vec![0.0; ALL_TOPICS],
                sums: vec![LaneBlock::ZERO; n_lines + 1],
                exact: Vec::with_capacity(n_topics),
            },
            sums: vec![LaneBlock::ZERO; BATCH * (n_lines + 1)],
        }
    }

    fn fill(&mut self, lengths: &[usize], documents: &[u32], topics: &[u16]) {
        self.lists.gains.clear();
        self.lists.fill(lengths, self.n_topics, documents, topics);
    }

    fn remove(&mut self, tokens: Batch<'_>, _: &[u16]) {
        self.lists.remove(tokens);
    }

    fn put(&mut self, tokens: Batch<'_>, topics: &[u16]) {
        for (token, (&document, &topic)) in
            (tokens.first..).zip(tokens.documents.iter().zip(topics))
        {
            let place = self.lists.place_for(document, topic);
            self.lists.add(token, document, place);
        }
    }

    fn own(&self, _: usize) -> (&[f64], &[f64]) {
        (&self.lists.bursty.a, &[])
    }

    fn take_up(&mut self, word: &Word<'_>) {
        take_up(&mut self.prior, word);
    }

    fn draw(
        &mut self,
        word: &Word<'_>,
        tokens: Batch<'_>,
        topics: &mut [u16],
        cells: &Cells,
        uniforms: &[f64; BATCH],
    ) {
        let documents = tokens.documents;
        let (mut drawn, mut shares) = ([Drawn::Open; BATCH], [1.0; BATCH]);
        if cells.without_own {
            // The weights a q, which all documents share, have all tables.
            for (slot, (&document, &topic)) in documents.iter().zip(&*topics).enumerate() {
                shares[slot] = word.share_beside(cells, tokens.place + slot, topic);
                self.lists.scale(tokens.first + slot, document, shares[slot]);
            }
        }
        let parts = (&self.prior, &self.lists, cells);
        propose(parts, &mut self.sums, tokens, uniforms, &mut drawn);
        for (slot, (&document, topic)) in documents.iter().zip(topics).enumerate() {
            let (token, old) = ((document, tokens.place + slot), (*topic, shares[slot]));
            if cells.without_own {
                self.lists.scale(tokens.first + slot, document, 1.0);
            }
            let drawn = match drawn[slot] {
                Drawn::Open => self.draw_exactly(word, cells, token, old, uniforms[slot]),
                decided => Some(decided),
            };
            let place = match drawn {
                Some(Drawn::Place(place)) => place,
                Some(Drawn::Topic(new)) => self.lists.place_for(document, new),
                // The token stays.
                Some(Drawn::Open) | None => self.lists.place_for(document, *topic),
            };
            *topic = self.lists.add(tokens.first + slot, document, place);
        }
    }

    fn counts(&self, document: usize) -> impl Iterator<Item = (usize, u32)> {
        let list = self.lists.documents[document];
        let topics = self.lists.topics[list.lines()].as_flattened();
        let counts = self.lists.counts[list.lines()].as_flattened();
        let taken = topics.iter().zip(counts).take(list.taken as usize);
        taken.map(|(&topic, &n)| (usize::from(topic), n))
    }
}

/// Weights q of a word, and the sums by lane so far of a q.
#[polyabayes_macros::vectorised]
fn take_up(prior: &mut PriorWeights, word: &Word<'_>) {
    prior.exact.clear();
    let (q, sums) = (prior.q.as_chunks_mut::<LANES>().0, &mut prior.sums[1..]);
    let mut lanes = LaneBlock::ZERO;
    weigh(word, |line, weights, prior| {
        for lane in 0..LANES {
            lanes.0[lane] += prior.0[lane];
        }
        (q[line], sums[line]) = (weights.0, lanes);
    });
}

/// Draws for some tokens of different documents, or [`Drawn::Open`].
///
/// A limit has an error of as many roundings as there are lines summed up to it, and 10 more: 5 for
/// a weight, 4 for the halvings of the lanes, one where the weights a q follow those of the
/// document. The draw has 16 more: those of the total, of u and its product, and of up to 5
/// differences. A repetition has 2 more than another weight, and a lane may have as many as lines.
/// Roundings of the document's sums are in units of the total, those of the lines of a
/// q in units of their sum.
#[polyabayes_macros::vectorised(throw = throw_avx512)]
fn propose(
    (prior, lists, cells): (&PriorWeights, &Lists, &Cells),
    sums: &mut [LaneBlock],
    Batch { place, documents, .. }: Batch<'_>,
    uniforms: &[f64; BATCH],
    drawn: &mut [Drawn; BATCH],
) {
    let n_lines = prior.sums.len() - 1;
    let Some(q) = prior.q.first_chunk::<ALL_TOPICS>() else { return };
    let mut own_lines = [0; BATCH];
    let tokens = (place..).zip(documents).zip(&mut own_lines);
    for (sums, ((place, &document), own_lines)) in sums.chunks_exact_mut(n_lines + 1).zip(tokens) {
        let lines = lists.documents[document as usize].lines();
        *own_lines = lines.len();
        let topics = &lists.topics[lines.clone()];
        if lists.gains.is_empty() {
            accumulate(&mut sums[1..], topics, &lists.counts[lines], |n| n as f32, q);
            continue;
        }
        let gains = &lists.gains[lines];
        accumulate(&mut sums[1..], topics, gains, |gain| gain, q);
        for &(topic, n) in cells.of(place) {
            let Some(place) = topics.as_flattened().iter().position(|&it| it == topic) else {
                continue;
            };
            let (line, lane, topic) = (place / LANES, place % LANES, usize::from(topic));
            let weight = gains[line][lane] + lists.bursty.a[topic] as f32;
            let weight = weight * (cells.repeat[topic] as f32 * f32::from(n));
            sums[line + 1..=*own_lines].iter_mut().for_each(|sum| sum.0[lane] += weight);
        }
    }
    let prior_sums = LaneSums::new(&prior.sums[n_lines]);
    let tokens = || sums.chunks_exact(n_lines + 1).zip(own_lines).take(documents.len());
    // Step by step for all tokens: the parts of a step wait for each other.
    let mut draws = [(LaneDraw::ZERO, false); BATCH];
    for (draw, ((sums, own_lines), &u)) in draws.iter_mut().zip(tokens().zip(uniforms)) {
        let u = u as f32;
        let own = throw(&sums[own_lines], u, prior_sums.total);
        let total = own.total + prior_sums.total;
        let thrown = u * total;
        let from_prior = thrown >= own.total;
        let rest = if from_prior { thrown - own.total } else { own.rest };
        *draw = (LaneDraw { lane: own.lane, rest, total }, from_prior);
    }
    let choices = tokens().zip(draws);
    for (drawn, ((own_sums, own_lines), (mut draw, from_prior))) in drawn.iter_mut().zip(choices) {
        let sums = if from_prior {
            (draw.lane, draw.rest) = prior_sums.choose(draw.rest);
            &prior.sums[..]
        } else {
            &own_sums[..=own_lines]
        };
        let most = if lists.gains.is_empty() { 2 } else { 4 };
        let margin = ((most * own_lines + 46) as f32 * draw.total
            + (2 * n_lines) as f32 * prior_sums.total)
            * ROUNDING;
        if let Some(place) = draw.decide(sums, draw.line(sums), margin) {
            *drawn = if from_prior { Drawn::Topic(place as u16) } else { Drawn::Place(place) };
        }
    }
}

/// Sums by lane so far of the weights n q of a list, or of gains instead of counts.
#[inline(always)]
fn accumulate<T: Copy>(
    sums: &mut [LaneBlock],
    topics: &[[u16; LANES]],
    counts: &[[T; LANES]],
    single: impl Fn(T) -> f32,
    q: &[f32; ALL_TOPICS],
) {
    let mut lanes = LaneBlock::ZERO;
    for (sum, (topics, counts)) in sums.iter_mut().zip(topics.iter().zip(counts)) {
        let weights = topics.map(|topic| q[usize::from(topic)]);
        for ((sum, weight), &n) in lanes.0.iter_mut().zip(weights).zip(counts) {
            *sum += single(n) * weight;
        }
        *sum = lanes;
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::rng::{Key, Purpose};
    use crate::training::pseudo_counts::PseudoCounts;
    use crate::training::sweeps::BurstWeights;
    use crate::training::sweeps::tests::{row, uniforms};

    /// Draws near limits and far from them, with weights over many orders of magnitude.
    #[test]
    fn single_precision_never_decides_otherwise_than_double_precision() {
        let mut rng = Key::new(1, Purpose::Assign).rng();
        let (mut n_open, mut n_decided, mut n_prior) = (0, 0, 0);
        let cases = [1, 16, 20, 300, 1_000].into_iter().flat_map(|n| [(n, false), (n, true)]);
        for (n_topics, is_bursty) in cases {
            let mut sparse = Sparse::new(n_topics);
            for _ in 0..20 {
                let topics: Vec<u16> =
                    (0..60).map(|_| rng.random_range(0..n_topics) as u16).collect();
                sparse.fill(&[60], &[0; 60], &topics);
                let [a, weights, inverse] = [(); 3].map(|()| row(n_topics, &mut rng));
                let a: Vec<f64> = a.iter().map(|x| 0.1 * x).collect();
                let weights: Vec<f64> = weights.iter().map(|x| x.powi(20)).collect();
                let word = Word { a: &a, weights: &weights, scale: &vec![1.0; n_topics] };
                sparse.take_up(&word);
                let old = (topics[0], if is_bursty { rng.random() } else { 1.0 });
                let mut cells = Cells::default();
                if is_bursty {
                    let bursts = BurstWeights {
                        inverse: &inverse,
                        factor: &vec![0.7; n_topics],
                        without_own: true,
                    };
                    cells = Cells::new(bursts);
                    cells.take_up(&[0; 6], &topics[..6]);
                    let (a, bursts) = (PseudoCounts::shared(&a), Some(bursts));
                    let (weights, scale) = (word.weights, word.scale);
                    sparse.take_bursts(TopicWeights { a, weights, scale, rates: None, bursts });
                    sparse.lists.scale(0, 0, old.1);
                }
                let own = sparse.weights(&word, &cells, (0, 0), old).map(|(_, weight)| weight);
                let others = in_order(n_topics).map(|topic| a[topic] * word.q(topic));
                for u in uniforms(own.chain(others), &mut rng) {
                    let (uniforms, mut drawn) = ([u; BATCH], [Drawn::Open; BATCH]);
                    let parts = (&sparse.prior, &sparse.lists, &cells);
                    let token = Batch { first: 0, place: 0, documents: &[0] };
                    propose(parts, &mut sparse.sums, token, &uniforms, &mut drawn);
                    let exact = sparse
                        .draw_exactly(&word, &cells, (0, 0), old, u)
                        .expect("weights are positive");
                    let decided = drawn[0] != Drawn::Open;
                    assert!(!decided || drawn[0] == exact, "{n_topics}: {u}");
                    *if decided { &mut n_decided } else { &mut n_open } += 1;
                    n_prior += u32::from(decided && matches!(exact, Drawn::Topic(_)));
                }
            }
        }
        let enough = n_open.min(n_decided) > 5_000 && n_prior > 2_500;
        assert!(enough, "{n_open}, {n_decided} and {n_prior}");
    }
}

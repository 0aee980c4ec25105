//! A count of every topic for every document, and draws in single precision that come out as in
//! double precision.

// The loops are compiled for several instruction sets, with all their parts in them.
#![allow(clippy::inline_always)]

use std::ops::Range;

use super::blocks::TopicWeights;
use super::cells::Cells;
#[cfg(target_arch = "x86_64")]
use super::inverse_cdf::throw_avx512;
use super::inverse_cdf::{
    LANES, LEAST, LaneBlock, LaneDraw, OPEN, in_order, invert_exactly, throw, weigh,
};
#[cfg(target_arch = "x86_64")]
use super::sixteen;
use super::tallies::{BATCH, Batch, Tallies, Word};
use crate::math::elementary::single::ROUNDING;

/// Tokens from which draws side by side, all sixteen, take no longer than one after the other.
#[cfg(target_arch = "x86_64")]
const SIDE_BY_SIDE: usize = 10;

/// Most tokens of a document.
pub(super) const MAX_COUNT: u64 = u16::MAX as u64;

/// Counts of [`LANES`] neighbouring topics.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct TopicCounts([u16; LANES]);

/// 2 bytes a document and topic of a block; a draw costs a pass over all topics.
///
/// Sums in single precision tell which topic is drawn, unless u is so near to a limit that their
/// rounding might matter: then the weights are summed again in double precision.
pub(super) struct Dense {
    n_topics: usize,
    /// Lines of a document.
    n_lines: usize,
    counts: Vec<TopicCounts>,
    own: Own,
    row: Row,
    /// Sums of the weights, by lane before each line and in all, for every token of a batch.
    sums: Vec<LaneBlock>,
}

/// Parts of the weights (a + n) q of a word's tokens, beside the counts n.
struct Row {
    q: Vec<LaneBlock>,
    /// a q.
    base: Vec<LaneBlock>,
}

/// Parts of the weights that documents or topics have of their own, beside counts and the words'
/// shared pseudo-counts: a topic's weight is (a + n) f / (1 + n/s) for each unit of q.
#[derive(Default)]
struct Own {
    /// Pseudo-counts, a row for each document or one for all.
    a: Vec<f64>,
    /// Numbers between the rows of two documents.
    stride: usize,
    /// Factors of the topics, a row for each document; none where they are 1.
    factors: Vec<f64>,
    /// 1/s of each topic; none where no topic is bursty.
    inverse: Vec<f64>,
    /// The weights in single precision, filled up with zeros; none where nothing is the documents' own.
    lines: Vec<LaneBlock>,
}

impl Own {
    fn weight(&self, n_topics: usize, document: usize, topic: usize, n: u16) -> f64 {
        let n = f64::from(n);
        let factor = self.factors.get(document * n_topics + topic).copied().unwrap_or(1.0);
        let weight = (self.a[document * self.stride + topic] + n) * factor;
        self.inverse.get(topic).map_or(weight, |inverse| weight / (1.0 + n * inverse))
    }

    /// Takes a document's weight of a topic times a share.
    fn scale(&mut self, (document, n_lines): (u32, usize), topic: u16, share: f64) {
        let topic = usize::from(topic);
        let line = &mut self.lines[document as usize * n_lines + topic / LANES];
        line.0[topic % LANES] = single(f64::from(line.0[topic % LANES]) * share);
    }
}

/// A weight in single precision. Numbers below the normal ones would make sums slow; without them these
/// miss nothing.
fn single(weight: f64) -> f32 {
    if weight < f64::from(LEAST) { 0.0 } else { weight as f32 }
}

impl Dense {
    fn count(&mut self, document: u32, topic: u16) -> &mut u16 {
        let topic = usize::from(topic);
        &mut self.counts[document as usize * self.n_lines + topic / LANES].0[topic % LANES]
    }

    /// Takes or gives a document one token of a topic.
    #[inline(always)]
    fn shift(&mut self, document: u32, topic: u16, change: u16) {
        let (place, lane) = (document as usize * self.n_lines, usize::from(topic) % LANES);
        let place = place + usize::from(topic) / LANES;
        let n = &mut self.counts[place].0[lane];
        *n = n.wrapping_add(change);
        let n = *n;
        if !self.own.lines.is_empty() {
            let (document, topic) = (document as usize, usize::from(topic));
            let weight = self.own.weight(self.n_topics, document, topic, n);
            self.own.lines[place].0[lane] = single(weight);
        }
    }

    /// Takes up what these documents of the corpus, all that are counted, have of their own, and their
    /// exposures where they have any: factors are then 1 over the sum of rate and exposure, up to a
    /// factor of the document.
    pub(super) fn take_own(
        &mut self,
        urns: TopicWeights<'_>,
        documents: Range<usize>,
        exposures: impl Iterator<Item = f64>,
    ) {
        let (own, n_topics) = (&mut self.own, self.n_topics);
        own.lines.clear();
        if !urns.a.is_grouped() && urns.rates.is_none() && urns.bursts.is_none() {
            return;
        }
        let rows = if urns.a.is_grouped() { documents.clone() } else { 0..1 };
        own.stride = if urns.a.is_grouped() { n_topics } else { 0 };
        own.a.clear();
        rows.for_each(|doc_ix| own.a.extend_from_slice(urns.a.row(doc_ix)));
        own.factors.clear();
        let rates = urns.rates.unwrap_or_default();
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        for exposure in exposures {
            own.factors.extend(rates.iter().map(|rate| (least + exposure) / (rate + exposure)));
        }
        own.inverse.clear();
        own.inverse.extend_from_slice(urns.bursts.map_or(&[], |bursts| bursts.inverse));
        let mut lines = std::mem::take(&mut own.lines);
        for (place, counts) in self.counts.iter().enumerate() {
            let (document, first) = (place / self.n_lines, place % self.n_lines * LANES);
            let mut line = LaneBlock::ZERO;
            for topic in first..n_topics.min(first + LANES) {
                let weight = own.weight(n_topics, document, topic, counts.0[topic - first]);
                line.0[topic - first] = single(weight);
            }
            lines.push(line);
        }
        own.lines = lines;
    }

    /// The topic at u, in double precision; `None` where no weight is positive.
    #[cold]
    fn draw_exactly(
        &self,
        word: &Word<'_>,
        cells: &Cells,
        (document, place): (u32, usize),
        (old, share): (u16, f64),
        u: f64,
    ) -> Option<u16> {
        let counts = &self.counts[document as usize * self.n_lines..][..self.n_lines];
        let weight = |k: usize| {
            let n = counts[k / LANES].0[k % LANES];
            if self.own.lines.is_empty() {
                return (word.a[k] + f64::from(n)) * word.q(k);
            }
            let weight = self.own.weight(self.n_topics, document as usize, k, n);
            let weight = if k == usize::from(old) { weight * share } else { weight };
            if place >= cells.len() {
                return weight * word.q(k);
            }
            weight * (word.q(k) + cells.repeat[k] * cells.n_tokens(place, k))
        };
        invert_exactly(in_order(self.n_topics).map(|k| (k as u16, weight(k))), u)
    }
}

impl Tallies for Dense {
    fn new(n_topics: usize) -> Self {
        let n_lines = n_topics.div_ceil(LANES);
        Dense {
            n_topics,
            n_lines,
            counts: Vec::new(),
            own: Own::default(),
            row: Row { q: vec![LaneBlock::ZERO; n_lines], base: vec![LaneBlock::ZERO; n_lines] },
            sums: vec![LaneBlock::ZERO; BATCH * (n_lines + 1)],
        }
    }

    fn fill(&mut self, lengths: &[usize], documents: &[u32], topics: &[u16]) {
        self.counts.clear();
        self.counts.resize(lengths.len() * self.n_lines, TopicCounts([0; LANES]));
        for (&document, &topic) in documents.iter().zip(topics) {
            *self.count(document, topic) += 1;
        }
    }

    fn remove(&mut self, tokens: Batch<'_>, topics: &[u16]) {
        for (&document, &topic) in tokens.documents.iter().zip(topics) {
            self.shift(document, topic, 1u16.wrapping_neg());
        }
    }

    fn put(&mut self, tokens: Batch<'_>, topics: &[u16]) {
        for (&document, &topic) in tokens.documents.iter().zip(topics) {
            self.shift(document, topic, 1);
        }
    }

    fn own(&self, document: usize) -> (&[f64], &[f64]) {
        let (own, n_topics) = (&self.own, self.n_topics);
        let factors = own.factors.get(document * n_topics..).unwrap_or_default();
        (&own.a[document * own.stride..][..n_topics], &factors[..factors.len().min(n_topics)])
    }

    fn take_up(&mut self, word: &Word<'_>) {
        take_up(&mut self.row, word);
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
        let (mut drawn, mut shares) = ([OPEN; BATCH], [1.0; BATCH]);
        if cells.without_own {
            for (slot, (&document, &topic)) in documents.iter().zip(&*topics).enumerate() {
                shares[slot] = word.share_beside(cells, tokens.place + slot, topic);
                self.own.scale((document, self.n_lines), topic, shares[slot]);
            }
        }
        let parts = (&self.row, &self.own.lines[..], &self.counts[..], cells);
        propose(parts, &mut self.sums, tokens, uniforms, &mut drawn);
        for (slot, (&document, topic)) in documents.iter().zip(topics).enumerate() {
            let (place, u) = ((document, tokens.place + slot), uniforms[slot]);
            let old = (*topic, shares[slot]);
            if cells.without_own {
                // The whole weight is set again.
                self.shift(document, *topic, 0);
            }
            if drawn[slot] < self.n_topics as u32 {
                *topic = drawn[slot] as u16;
            } else if let Some(exact) = self.draw_exactly(word, cells, place, old, u) {
                *topic = exact;
            }
            self.shift(document, *topic, 1);
        }
    }

    fn counts(&self, document: usize) -> impl Iterator<Item = (usize, u32)> {
        let counts = &self.counts[document * self.n_lines..][..self.n_lines];
        let counts = counts.iter().flat_map(|line| &line.0).take(self.n_topics);
        counts.map(|&n| u32::from(n)).enumerate()
    }

    fn spread(&self, document: usize, counts: &mut [f64]) {
        let lines = &self.counts[document * self.n_lines..][..self.n_lines];
        for (to, line) in counts.chunks_mut(LANES).zip(lines) {
            to.iter_mut().zip(&line.0).for_each(|(to, &n)| *to = f64::from(n));
        }
    }
}

/// Takes up the weights of a word.
#[polyabayes_macros::vectorised]
fn take_up(row: &mut Row, word: &Word<'_>) {
    weigh(word, |line, q, base| (row.q[line], row.base[line]) = (q, base));
}

/// The topics of some tokens of different documents, or [`OPEN`] where single precision cannot
/// tell.
///
/// A limit between topics has an error, in units of the total, of as many roundings as there are
/// lines and 9 more: 5 for a weight, one for each line and each halving of the lanes. The draw has
/// 14 more: those of the total, of u and its product, and of 4 differences. Their distance has two
/// of its own. Weights of a document's own and repetitions change none of these numbers, but that a
/// lane may have as many repetitions as lines.
#[polyabayes_macros::vectorised(invert = invert_avx512)]
fn propose(
    (row, own, counts, cells): (&Row, &[LaneBlock], &[TopicCounts], &Cells),
    sums: &mut [LaneBlock],
    Batch { place, documents, .. }: Batch<'_>,
    uniforms: &[f64; BATCH],
    drawn: &mut [u32; BATCH],
) {
    let n_lines = row.q.len();
    let tokens = sums.chunks_exact_mut(n_lines + 1).zip((place..).zip(documents));
    for (sums, (place, &document)) in tokens {
        let first = document as usize * n_lines;
        if own.is_empty() {
            accumulate(&mut sums[1..], &counts[first..][..n_lines], row);
            continue;
        }
        let own = &own[first..][..n_lines];
        accumulate_own(&mut sums[1..], own, row);
        for &(topic, n) in cells.of(place) {
            let topic = usize::from(topic);
            let (line, lane) = (topic / LANES, topic % LANES);
            let weight = own[line].0[lane] * (cells.repeat[topic] as f32 * f32::from(n));
            sums[line + 1..].iter_mut().for_each(|sum| sum.0[lane] += weight);
        }
    }
    let most = if place < cells.len() { 4 } else { 2 };
    let margin = (most * n_lines + 38) as f32 * ROUNDING;
    invert(sums, n_lines, uniforms, margin, &mut drawn[..documents.len()]);
}

/// The weight at u of every token, or [`OPEN`] where one of its limits is not further away than
/// `margin`, in units of the total. `sums` holds one token after the other.
#[inline(always)]
fn invert(
    sums: &[LaneBlock],
    n_lines: usize,
    uniforms: &[f64; BATCH],
    margin: f32,
    drawn: &mut [u32],
) {
    invert_each(sums, n_lines, uniforms, margin, drawn, throw);
}

/// [`invert`], with all tokens side by side where they are many.
#[polyabayes_macros::avx512]
fn invert_avx512(
    sums: &[LaneBlock],
    n_lines: usize,
    uniforms: &[f64; BATCH],
    margin: f32,
    drawn: &mut [u32],
) {
    if drawn.len() < SIDE_BY_SIDE {
        let throw = |lanes: &LaneBlock, u, beside| throw_avx512(lanes, u, beside);
        return invert_each(sums, n_lines, uniforms, margin, drawn, throw);
    }
    let found = sixteen::invert(sums, n_lines, uniforms, margin);
    drawn.copy_from_slice(&found[..drawn.len()]);
}

#[inline(always)]
fn invert_each(
    sums: &[LaneBlock],
    n_lines: usize,
    uniforms: &[f64; BATCH],
    margin: f32,
    drawn: &mut [u32],
    throw: impl Fn(&LaneBlock, f32, f32) -> LaneDraw,
) {
    // Step by step for all tokens: the parts of a step wait for each other.
    let mut draws = [LaneDraw::ZERO; BATCH];
    let tokens = || sums.chunks_exact(n_lines + 1).take(drawn.len());
    for ((draw, sums), &u) in draws.iter_mut().zip(tokens()).zip(uniforms) {
        *draw = throw(&sums[n_lines], u as f32, 0.0);
    }
    for (drawn, (sums, draw)) in drawn.iter_mut().zip(sums.chunks_exact(n_lines + 1).zip(&draws)) {
        let topic = draw.decide(sums, draw.line(sums), margin * draw.total);
        *drawn = topic.map_or(OPEN, |topic| topic as u32);
    }
}

/// Sums by lane so far of the weights (a + n) q.
#[inline(always)]
fn accumulate(sums: &mut [LaneBlock], counts: &[TopicCounts], row: &Row) {
    let mut lanes = [0.0; LANES];
    let parts = counts.iter().zip(row.q.iter().zip(&row.base));
    for (sum, (n, (q, base))) in sums.iter_mut().zip(parts) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += base.0[lane] + f32::from(n.0[lane]) * q.0[lane];
        }
        *sum = LaneBlock(lanes);
    }
}

/// The same of weights that are the document's own.
#[inline(always)]
fn accumulate_own(sums: &mut [LaneBlock], own: &[LaneBlock], row: &Row) {
    let mut lanes = [0.0; LANES];
    for (sum, (own, q)) in sums.iter_mut().zip(own.iter().zip(&row.q)) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += own.0[lane] * q.0[lane];
        }
        *sum = LaneBlock(lanes);
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
        let (mut n_open, mut n_decided) = (0, 0);
        let kinds = [(false, false), (true, false), (false, true), (true, true)];
        let cases = [1, 7, 16, 20, 100, 257].into_iter().flat_map(|n| kinds.map(|kind| (n, kind)));
        for (n_topics, (is_exposed, is_bursty)) in cases {
            let mut dense = Dense::new(n_topics);
            dense.fill(&[0], &[], &[]);
            let scale = vec![1.0; n_topics];
            for _ in 0..40 {
                let [a, weights, rates, inverse, factors] =
                    [(); 5].map(|()| row(n_topics, &mut rng));
                let weights: Vec<f64> = weights.iter().map(|x| x.powi(20)).collect();
                let rates: Vec<f64> = rates.iter().map(|x| x.recip()).collect();
                (0..5).for_each(|_| *dense.count(0, rng.random_range(0..n_topics) as u16) += 1);
                let word = Word { a: &a, weights: &weights, scale: &scale };
                dense.take_up(&word);
                let bursts =
                    BurstWeights { inverse: &inverse, factor: &factors, without_own: true };
                let share = if is_bursty { rng.random() } else { 1.0 };
                let old = (rng.random_range(0..n_topics) as u16, share);
                let mut cells = Cells::default();
                if is_bursty {
                    let topics: Vec<u16> =
                        (0..6).map(|_| rng.random_range(0..n_topics) as u16).collect();
                    cells = Cells::new(bursts);
                    // All tokens of a batch see what this document repeats.
                    let documents: Vec<u32> = (0..6).flat_map(|_| 0..BATCH as u32).collect();
                    let topics = topics.iter().flat_map(|&topic| [topic; BATCH]);
                    cells.take_up(&documents, &topics.collect::<Vec<_>>());
                }
                if is_exposed || is_bursty {
                    let urns = TopicWeights {
                        a: PseudoCounts::shared(&a),
                        weights: &weights,
                        scale: &scale,
                        rates: is_exposed.then_some(&rates[..]),
                        bursts: is_bursty.then_some(bursts),
                    };
                    dense.take_own(urns, 0..1, is_exposed.then_some(0.3).into_iter());
                    dense.own.scale((0, dense.n_lines), old.0, old.1);
                }
                let factor = |k: usize| if is_exposed { 1.0 / (rates[k] + 0.3) } else { 1.0 };
                let n = |k: usize| f64::from(dense.counts[k / LANES].0[k % LANES]);
                let weight = |k: usize| {
                    let mut weight = (a[k] + n(k)) * factor(k) * word.q(k);
                    if is_bursty {
                        let repeated = factors[k] * cells.n_tokens(0, k) * inverse[k];
                        weight = (a[k] + n(k)) * factor(k) * (word.q(k) + repeated)
                            / (1.0 + n(k) * inverse[k]);
                    }
                    if k == usize::from(old.0) { weight * old.1 } else { weight }
                };
                let draws = uniforms(in_order(n_topics).map(weight), &mut rng);
                // Batches that are full, and such as are drawn one by one.
                let (full, few) = draws.split_at(draws.len() / 2);
                for draws in full.chunks(BATCH).chain(few.chunks(3)) {
                    let (mut uniforms, mut drawn) = ([0.0; BATCH], [OPEN; BATCH]);
                    uniforms[..draws.len()].copy_from_slice(draws);
                    let parts = (&dense.row, &dense.own.lines[..], &dense.counts[..], &cells);
                    let tokens =
                        Batch { first: 0, place: 0, documents: &[0; BATCH][..draws.len()] };
                    propose(parts, &mut dense.sums, tokens, &uniforms, &mut drawn);
                    for (&u, drawn) in draws.iter().zip(drawn) {
                        let exact = dense.draw_exactly(&word, &cells, (0, 0), old, u);
                        let exact = exact.expect("weights are positive");
                        assert!(drawn == OPEN || drawn == u32::from(exact), "{n_topics}: {u}");
                        *if drawn == OPEN { &mut n_open } else { &mut n_decided } += 1;
                    }
                }
            }
        }
        assert!(n_open > 10_000 && n_decided > 10_000, "{n_open} and {n_decided}");
    }
}

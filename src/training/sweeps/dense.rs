//! A count of every topic for every document, and draws in single precision that come out as in
//! double precision.

// The loops are compiled for several instruction sets, with all their parts in them.
#![allow(clippy::inline_always)]

#[cfg(target_arch = "x86_64")]
use super::inverse_cdf::throw_avx512;
use super::inverse_cdf::{
    LANES, LEAST, LaneBlock, LaneDraw, OPEN, in_order, invert_exactly, throw, weigh,
};
#[cfg(target_arch = "x86_64")]
use super::sixteen;
use super::tallies::{BATCH, Batch, Tallies, Word};
use crate::math::single::ROUNDING;

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

/// What the weights of a document have of its own, beside its counts.
#[derive(Default)]
enum Own {
    #[default]
    Nothing,
    /// Pseudo-counts, in place of those of the words.
    PseudoCounts(Rows),
    /// A factor of each topic, and the pseudo-counts that all documents share.
    Factors(Rows, Vec<LaneBlock>),
}

/// A row of numbers for each document, one for each topic.
#[derive(Default)]
struct Rows {
    exact: Vec<f64>,
    lines: Vec<LaneBlock>,
}

impl Rows {
    fn push(&mut self, row: &[f64]) {
        self.exact.extend_from_slice(row);
        self.lines.extend(lines(row));
    }

    /// Keeps the room of earlier documents.
    fn cleared(mut self) -> Self {
        self.exact.clear();
        self.lines.clear();
        self
    }
}

/// Numbers in single precision, filled up with zeros.
fn lines(row: &[f64]) -> impl Iterator<Item = LaneBlock> {
    row.chunks(LANES).map(|row| {
        let mut line = LaneBlock::ZERO;
        // Numbers below the normal ones would make sums slow; without them these miss nothing.
        let lanes = line.0.iter_mut().zip(row).filter(|(_, x)| **x >= f64::from(LEAST));
        lanes.for_each(|(lane, &x)| *lane = x as f32);
        line
    })
}

impl Dense {
    pub(super) fn new(n_topics: usize) -> Self {
        let n_lines = n_topics.div_ceil(LANES);
        Dense {
            n_topics,
            n_lines,
            counts: Vec::new(),
            own: Own::Nothing,
            row: Row { q: vec![LaneBlock::ZERO; n_lines], base: vec![LaneBlock::ZERO; n_lines] },
            sums: vec![LaneBlock::ZERO; BATCH * (n_lines + 1)],
        }
    }

    fn count(&mut self, document: u32, topic: u16) -> &mut u16 {
        let topic = usize::from(topic);
        &mut self.counts[document as usize * self.n_lines + topic / LANES].0[topic % LANES]
    }

    /// Takes up the documents' own pseudo-counts, a row a document, in place of those of the words.
    pub(super) fn take_rows<'a>(&mut self, rows: impl Iterator<Item = &'a [f64]>) {
        let mut own = self.spare_rows();
        rows.for_each(|row| own.push(row));
        self.own = Own::PseudoCounts(own);
    }

    /// Takes up factors of the weights of documents whose gamma distributions have these rates: 1 over
    /// the sum of rate and exposure, up to a factor of the document. All documents share the
    /// pseudo-counts `a`.
    pub(super) fn take_exposures(
        &mut self,
        a: &[f64],
        rates: &[f64],
        exposures: impl Iterator<Item = f64>,
    ) {
        let mut own = self.spare_rows();
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let mut factors = vec![0.0; rates.len()];
        for exposure in exposures {
            let of_rate = |rate: &f64| (least + exposure) / (rate + exposure);
            factors.iter_mut().zip(rates).for_each(|(factor, rate)| *factor = of_rate(rate));
            own.push(&factors);
        }
        self.own = Own::Factors(own, lines(a).collect());
    }

    fn spare_rows(&mut self) -> Rows {
        match std::mem::take(&mut self.own) {
            Own::Nothing => Rows::default(),
            Own::PseudoCounts(rows) | Own::Factors(rows, _) => rows.cleared(),
        }
    }

    /// The topic at u, in double precision; `None` where no weight is positive.
    #[cold]
    fn draw_exactly(&self, word: &Word<'_>, document: u32, u: f64) -> Option<u16> {
        let counts = &self.counts[document as usize * self.n_lines..][..self.n_lines];
        let row = |rows: &Rows, k: usize| rows.exact[document as usize * self.n_topics + k];
        let weight = |k: usize| {
            let n = f64::from(counts[k / LANES].0[k % LANES]);
            match &self.own {
                Own::Nothing => (word.a[k] + n) * word.q(k),
                Own::PseudoCounts(rows) => (row(rows, k) + n) * word.q(k),
                Own::Factors(rows, _) => (word.a[k] + n) * row(rows, k) * word.q(k),
            }
        };
        invert_exactly(in_order(self.n_topics).map(|k| (k as u16, weight(k))), u)
    }
}

impl Tallies for Dense {
    fn fill(&mut self, lengths: &[usize], documents: &[u32], topics: &[u16]) {
        self.counts.clear();
        self.counts.resize(lengths.len() * self.n_lines, TopicCounts([0; LANES]));
        for (&document, &topic) in documents.iter().zip(topics) {
            *self.count(document, topic) += 1;
        }
    }

    fn remove(&mut self, tokens: Batch<'_>, topics: &[u16]) {
        for (&document, &topic) in tokens.documents.iter().zip(topics) {
            *self.count(document, topic) -= 1;
        }
    }

    fn take_up(&mut self, word: &Word<'_>) {
        take_up(&mut self.row, word);
    }

    fn draw(
        &mut self,
        word: &Word<'_>,
        tokens: Batch<'_>,
        topics: &mut [u16],
        uniforms: &[f64; BATCH],
    ) {
        let documents = tokens.documents;
        let mut drawn = [OPEN; BATCH];
        let parts = (&self.row, &self.own, &self.counts[..]);
        propose(parts, &mut self.sums, documents, uniforms, &mut drawn);
        for (slot, (&document, topic)) in documents.iter().zip(topics).enumerate() {
            if drawn[slot] < self.n_topics as u32 {
                *topic = drawn[slot] as u16;
            } else if let Some(exact) = self.draw_exactly(word, document, uniforms[slot]) {
                *topic = exact;
            }
            *self.count(document, *topic) += 1;
        }
    }

    fn counts(&self, document: usize) -> impl Iterator<Item = (usize, u32)> {
        let counts = &self.counts[document * self.n_lines..][..self.n_lines];
        let counts = counts.iter().flat_map(|line| line.0).take(self.n_topics);
        counts.map(u32::from).enumerate()
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
/// lines and 8 more: 4 for a weight, one for each line and each halving of the lanes. The draw has
/// 14 more: those of the total, of u and its product, and of 4 differences. Their distance has two
/// of its own. Pseudo-counts of a document's own change none of these numbers; factors of its own add 2
/// to a weight, and 4 to the distance of two limits.
#[polyabayes_macros::vectorised(invert = invert_avx512)]
fn propose(
    (row, own, counts): (&Row, &Own, &[TopicCounts]),
    sums: &mut [LaneBlock],
    documents: &[u32],
    uniforms: &[f64; BATCH],
    drawn: &mut [u32; BATCH],
) {
    let n_lines = row.q.len();
    for (sums, &document) in sums.chunks_exact_mut(n_lines + 1).zip(documents) {
        let first = document as usize * n_lines;
        let (sums, counts) = (&mut sums[1..], &counts[first..][..n_lines]);
        match own {
            Own::Nothing => accumulate(sums, counts, row),
            Own::PseudoCounts(own) => {
                accumulate_own(sums, counts, &own.lines[first..][..n_lines], row);
            }
            Own::Factors(own, a) => {
                let factors = &own.lines[first..][..n_lines];
                accumulate_scaled(sums, counts, (a, factors), row);
            }
        }
    }
    let margin = (2 * n_lines + 36) as f32 * ROUNDING;
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

/// The same for a document whose pseudo-counts are its own.
#[inline(always)]
fn accumulate_own(sums: &mut [LaneBlock], counts: &[TopicCounts], own: &[LaneBlock], row: &Row) {
    let mut lanes = [0.0; LANES];
    let parts = counts.iter().zip(row.q.iter().zip(own));
    for (sum, (n, (q, a))) in sums.iter_mut().zip(parts) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += (a.0[lane] + f32::from(n.0[lane])) * q.0[lane];
        }
        *sum = LaneBlock(lanes);
    }
}

/// The same for a document with a factor of each topic.
#[inline(always)]
fn accumulate_scaled(
    sums: &mut [LaneBlock],
    counts: &[TopicCounts],
    (a, factors): (&[LaneBlock], &[LaneBlock]),
    row: &Row,
) {
    let mut lanes = [0.0; LANES];
    let parts = counts.iter().zip(factors).zip(a.iter().zip(&row.q));
    for (sum, ((n, factor), (a, q))) in sums.iter_mut().zip(parts) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += (a.0[lane] + f32::from(n.0[lane])) * factor.0[lane] * q.0[lane];
        }
        *sum = LaneBlock(lanes);
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::rng::{Key, Purpose};

    /// Draws near limits and far from them, with weights over many orders of magnitude.
    #[test]
    fn single_precision_never_decides_otherwise_than_double_precision() {
        let mut rng = Key::new(1, Purpose::Assign).rng();
        let (mut n_open, mut n_decided) = (0, 0);
        let cases = [1, 7, 16, 20, 100, 257].into_iter().flat_map(|n| [(n, false), (n, true)]);
        for (n_topics, is_exposed) in cases {
            let mut dense = Dense::new(n_topics);
            dense.fill(&[0], &[], &[]);
            let scale = vec![1.0; n_topics];
            for _ in 0..40 {
                let a: Vec<f64> = (0..n_topics).map(|_| rng.random::<f64>()).collect();
                let weights: Vec<f64> =
                    (0..n_topics).map(|_| rng.random::<f64>().powi(20)).collect();
                (0..5).for_each(|_| *dense.count(0, rng.random_range(0..n_topics) as u16) += 1);
                let word = Word { a: &a, weights: &weights, scale: &scale };
                dense.take_up(&word);
                let rates: Vec<f64> = (0..n_topics).map(|_| 1.0 / rng.random::<f64>()).collect();
                if is_exposed {
                    dense.take_exposures(&a, &rates, [0.3].into_iter());
                }
                let factor = |k: usize| if is_exposed { 1.0 / (rates[k] + 0.3) } else { 1.0 };
                // Draws on the limits themselves, to within a few roundings, and anywhere.
                let n = |k: usize| f64::from(dense.counts[k / LANES].0[k % LANES]);
                let mut sums = vec![0.0];
                for k in in_order(n_topics) {
                    sums.push(sums[sums.len() - 1] + (a[k] + n(k)) * factor(k) * word.q(k));
                }
                let near =
                    |sum: &f64, off: f64| (sum / sums[n_topics] + off).clamp(0.0, 1.0 - 1e-16);
                let mut draws: Vec<f64> = (0..200).map(|_| rng.random()).collect();
                for off in [-1e-6, -1e-7, -1e-8, 0.0, 1e-8, 1e-7, 1e-6] {
                    draws.extend(sums.iter().map(|sum| near(sum, off)));
                }
                // Batches that are full, and such as are drawn one by one.
                let (full, few) = draws.split_at(draws.len() / 2);
                for draws in full.chunks(BATCH).chain(few.chunks(3)) {
                    let (mut uniforms, mut drawn) = ([0.0; BATCH], [OPEN; BATCH]);
                    uniforms[..draws.len()].copy_from_slice(draws);
                    let parts = (&dense.row, &dense.own, &dense.counts[..]);
                    let documents = &[0; BATCH][..draws.len()];
                    propose(parts, &mut dense.sums, documents, &uniforms, &mut drawn);
                    for (&u, drawn) in draws.iter().zip(drawn) {
                        let exact = dense.draw_exactly(&word, 0, u).expect("weights are positive");
                        assert!(drawn == OPEN || drawn == u32::from(exact), "{n_topics}: {u}");
                        *if drawn == OPEN { &mut n_open } else { &mut n_decided } += 1;
                    }
                }
            }
        }
        assert!(n_open > 10_000 && n_decided > 10_000, "{n_open} and {n_decided}");
    }
}

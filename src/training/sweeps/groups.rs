//! All tokens of a word in a document, moved to another topic together.
//!
//! Where topics are bursty, a word's tokens in a document hold each other in their topic, and a sweep
//! that draws them one by one hardly ever moves them all.

// The loop is compiled for several instruction sets, with all its parts in it.
#![allow(clippy::inline_always)]

use super::cells::BurstWeights;
use super::tallies::Word;
use crate::math::pick;

/// Share of the groups that a sweep moves: more cost more than they gain (`benches/bursty.py sweeps`).
pub(super) const SHARE: f64 = 0.5;

/// Numbers that are weighed side by side.
const LANES: usize = 8;

/// Draws of the topic of a group, given all other tokens: of the topics that may hold it whole.
#[derive(Default)]
pub(super) struct GroupDraws {
    /// 1/s of each topic, all rows filled up with zeros to whole lanes.
    inverse: Row,
    /// Weight of a repetition, f/s.
    repeat: Row,
    /// Weight of the word.
    q: Row,
    /// Other tokens of the document in each topic.
    counts: Row,
    /// Those and the pseudo-counts.
    balls: Row,
    /// Factors of the document.
    factors: Row,
    weights: Row,
}

type Row = Vec<[f64; LANES]>;

fn fill(row: &mut Row, n_topics: usize, values: impl IntoIterator<Item = f64>) {
    row.clear();
    row.resize(n_topics.div_ceil(LANES), [0.0; LANES]);
    row.as_flattened_mut().iter_mut().zip(values).for_each(|(to, value)| *to = value);
}

impl GroupDraws {
    pub(super) fn new(weights: BurstWeights<'_>, repeat: &[f64]) -> Self {
        let mut draws = GroupDraws::default();
        fill(&mut draws.inverse, repeat.len(), weights.inverse.iter().copied());
        fill(&mut draws.repeat, repeat.len(), repeat.iter().copied());
        draws
    }

    pub(super) fn take_up(&mut self, word: &Word<'_>) {
        fill(&mut self.q, word.a.len(), (0..word.a.len()).map(|topic| word.q(topic)));
    }

    /// Topic at u of a group of `n_tokens` that is in topic `old`, in a document with these pseudo-counts,
    /// topics and counts, and factors of its own where there are any; `None` where no weight is positive.
    pub(super) fn draw(
        &mut self,
        (a, factors): (&[f64], &[f64]),
        counts: impl Iterator<Item = (usize, u32)>,
        (old, n_tokens): (u16, u16),
        u: f64,
    ) -> Option<u16> {
        fill(&mut self.counts, a.len(), []);
        let others = self.counts.as_flattened_mut();
        counts.for_each(|(topic, n)| others[topic] += f64::from(n));
        others[usize::from(old)] -= f64::from(n_tokens);
        fill(&mut self.balls, a.len(), a.iter().zip(&*others).map(|(a, n)| a + n));
        let shared = std::iter::repeat_n(1.0, a.len());
        fill(&mut self.factors, a.len(), factors.iter().copied().chain(shared));
        fill(&mut self.weights, a.len(), []);
        let lanes = self.weigh(n_tokens);
        let total = lanes.iter().sum::<f64>();
        if !total.is_finite() {
            return None;
        }
        let dart = u * total;
        let lane = pick(lanes, dart)?;
        let rest = dart - lanes[..lane].iter().sum::<f64>();
        let line = pick(self.weights.iter().map(|weights| weights[lane]), rest)?;
        Some((line * LANES + lane) as u16)
    }

    /// Finds the weights of so many tokens up to a factor, and their sums by lane.
    fn weigh(&mut self, n_tokens: u16) -> [f64; LANES] {
        let GroupDraws { balls, counts, q, repeat, inverse, factors, weights } = self;
        weigh(weights, (balls, counts, q, repeat, inverse, factors), n_tokens)
    }
}

type Rows<'a> = &'a [[f64; LANES]];

#[polyabayes_macros::vectorised]
fn weigh(
    weights: &mut [[f64; LANES]],
    (balls, counts, q, repeat, inverse, factors): (
        Rows<'_>,
        Rows<'_>,
        Rows<'_>,
        Rows<'_>,
        Rows<'_>,
        Rows<'_>,
    ),
    n_tokens: u16,
) -> [f64; LANES] {
    weights.iter_mut().for_each(|weights| *weights = [1.0; LANES]);
    let mut scale = 1.0;
    let mut sums = [0.0; LANES];
    for n_before in 0..n_tokens {
        let n_before = f64::from(n_before);
        let mut most = [0.0f64; LANES];
        sums = [0.0; LANES];
        for (line, weights) in weights.iter_mut().enumerate() {
            let (balls, counts, q) = (&balls[line], &counts[line], &q[line]);
            let (repeat, inverse, factors) = (&repeat[line], &inverse[line], &factors[line]);
            for lane in 0..LANES {
                let own = (balls[lane] + n_before) * (q[lane] + repeat[lane] * n_before);
                let own = own * factors[lane] / (1.0 + (counts[lane] + n_before) * inverse[lane]);
                weights[lane] *= own * scale;
                most[lane] = most[lane].max(weights[lane]);
                sums[lane] += weights[lane];
            }
        }
        // Else many small factors would underflow.
        scale = most.into_iter().fold(0.0, f64::max).recip();
    }
    sums
}

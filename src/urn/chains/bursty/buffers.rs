//! Buffers of a step of bursty topics, and the weights of a token with the second layer of the urn.

use crate::rng::{LANES, Lanes};
use crate::urn::chains::kernels::put;
use crate::urn::chains::sweeps::Singles;
use crate::urn::{BurstTarget, Counts, UrnTarget};

/// Buffers of a step.
#[derive(Debug, Clone, Default)]
pub(in crate::urn::chains) struct BurstBuffers {
    /// Balls of each topic before the first draw, r and the factor of the topic in what an earlier token of a
    /// word adds.
    pub(super) single: Vec<[f32; 3]>,
    /// Weights of a word in all topics, where there are no lists.
    pub(super) q: Vec<f32>,
    /// Weights of a token in single precision, how much they grow with it, and cumulative ones.
    pub(super) single_weights: Vec<Singles>,
    pub(super) single_gains: Vec<Singles>,
    pub(super) single_sums: Vec<Singles>,
    /// All topics, where there are no lists.
    pub(super) all: Vec<u16>,
    /// Tokens of one word in each topic.
    pub(in crate::urn::chains) held: Vec<Counts>,
    pub(super) weights: Vec<Lanes>,
    pub(super) sums: Vec<Lanes>,
    /// Sum of the weights of the divisions of a word between two topics up to each, over its own.
    pub(super) divisions: Vec<Lanes>,
}

impl BurstBuffers {
    /// Makes room, and takes up what sweeps need; returns all topics.
    pub(super) fn take_up(&mut self, target: UrnTarget<'_>, second: BurstTarget<'_>) -> Vec<u16> {
        let n_topics = target.base.len();
        let single = target.base.iter().zip(second.rates).zip(second.repeats);
        let single = single.map(|((base, rate), repeat)| [base, rate, repeat].map(|x| *x as f32));
        self.single.clear();
        self.single.extend(single);
        for single in [&mut self.single_weights, &mut self.single_gains, &mut self.single_sums] {
            single.resize(n_topics, [0.0; LANES]);
        }
        self.weights.resize(n_topics, [0.0; LANES]);
        self.sums.resize(n_topics, [0.0; LANES]);
        self.hold(n_topics, &[]);
        let mut all = std::mem::take(&mut self.all);
        all.clear();
        all.extend(0..n_topics as u16);
        all
    }

    /// Counts the tokens of one word by topic.
    pub(in crate::urn::chains) fn hold(&mut self, n_topics: usize, topics: &[[u16; LANES]]) {
        self.held.clear();
        self.held.resize(n_topics, [0; LANES]);
        topics.iter().for_each(|topics| put(&mut self.held, topics));
    }
}

/// Fills the cumulative weights of the topics for a token, given the tokens of each topic and those of its
/// word; returns the totals.
#[polyabayes_macros::vectorised]
pub(in crate::urn::chains) fn accumulate(
    sums: &mut [Lanes],
    balls: &[Counts],
    held: &[Counts],
    target: UrnTarget<'_>,
    second: BurstTarget<'_>,
    cell: u32,
) -> Lanes {
    let mut total = [0.0; LANES];
    let scale = second.scales[cell as usize];
    let layer = second.rates.iter().zip(second.repeats);
    let topics = target.base.iter().zip(target.row(cell)).zip(layer);
    let counts = balls.iter().zip(held);
    for ((sums, (balls, held)), ((base, q), (rate, repeat))) in
        sums.iter_mut().zip(counts).zip(topics)
    {
        let repeat = repeat * scale;
        for lane in 0..LANES {
            let n = f64::from(balls[lane]);
            let word = q + repeat * f64::from(held[lane]);
            total[lane] += (base + target.unit * n) * word / (1.0 + rate * n);
        }
        *sums = total;
    }
    total
}

//! Label symmetry of hidden nodes: allocations that differ by the names of values are counted once.

use crate::allocation::kernel::counts::States;
use crate::allocation::model::problem::Problem;
use crate::math::Move;
use crate::rng::{LANES, Lanes};

/// Values of the hidden nodes that the particles have used.
///
/// The values of a hidden node are exchangeable, but the expectations name them: particles would
/// see one of K! equal modes. Allocations that differ by the names of a node's values are therefore
/// counted once: the first token of a value has the weight of all u unused values, and which of them
/// it takes is drawn by the token's responsibilities, as a part of the extended target.
pub(crate) struct UsedLabels {
    nodes: Vec<UsedNode>,
    n_groups: usize,
}

/// Values of one hidden node: of the clique's states, state / `stride` mod `size`.
struct UsedNode {
    stride: usize,
    size: usize,
    /// Tokens of every value, value after value, group after group.
    tokens: Vec<Lanes>,
    /// Share of every value in the responsibilities of the token.
    shares: Vec<f64>,
    /// Factor of the weight of a state with each value.
    factors: Vec<Lanes>,
}

impl UsedLabels {
    pub(crate) fn new(problem: &Problem, n_groups: usize) -> Self {
        let digits = problem.plan.cliques[0].digits().iter();
        let renamed = digits.filter(|(node, ..)| problem.renames(*node));
        let node = |&(_, stride, size): &(usize, usize, usize)| UsedNode {
            stride,
            size,
            tokens: vec![[0.0; LANES]; size * n_groups],
            shares: vec![0.0; size],
            factors: vec![[1.0; LANES]; size],
        };
        UsedLabels { nodes: renamed.map(node).collect(), n_groups }
    }

    /// Sets the shares of the values by the responsibilities of a token; without any, all are alike.
    pub(crate) fn set_shares(&mut self, responsibilities: Option<&[f64]>) {
        for node in &mut self.nodes {
            let Some(responsibilities) = responsibilities else {
                node.shares.fill(1.0);
                continue;
            };
            node.shares.fill(0.0);
            for (state, share) in responsibilities.iter().enumerate() {
                node.shares[state / node.stride % node.size] += share;
            }
        }
    }

    /// Applies the factors of unused values to the cumulative weights of states; returns their totals.
    pub(crate) fn weigh_labels(&mut self, group: usize, sums: &mut [Lanes]) -> Lanes {
        for node in &mut self.nodes {
            node.set_factors(group, self.n_groups);
        }
        let (mut before, mut total) = ([0.0; LANES], [0.0; LANES]);
        for (state, sum) in sums.iter_mut().enumerate() {
            let mut weight = *sum;
            weight.iter_mut().zip(before).for_each(|(weight, before)| *weight -= before);
            for node in &self.nodes {
                let factor = &node.factors[state / node.stride % node.size];
                weight.iter_mut().zip(factor).for_each(|(weight, factor)| *weight *= factor);
            }
            total.iter_mut().zip(weight).for_each(|(total, weight)| *total += weight);
            (before, *sum) = (*sum, total);
        }
        total
    }

    pub(crate) fn add(&mut self, group: usize, states: &States) {
        for node in &mut self.nodes {
            for (lane, &state) in states.iter().enumerate() {
                let value = state as usize / node.stride % node.size;
                node.tokens[value * self.n_groups + group][lane] += 1.0;
            }
        }
    }

    pub(crate) fn resample(&mut self, moves: &[Move]) {
        for node in &mut self.nodes {
            for value in node.tokens.chunks_exact_mut(self.n_groups) {
                let value = value.as_flattened_mut();
                moves.iter().for_each(|&(to, from)| value[to as usize] = value[from as usize]);
            }
        }
    }
}

impl UsedNode {
    /// Sets the factors: 1 for values in use; for an unused value, the number of unused values
    /// times its part of their shares.
    fn set_factors(&mut self, group: usize, n_groups: usize) {
        let tokens = &self.tokens;
        let unused = |value: usize, lane: usize| {
            f64::from(u8::from(tokens[value * n_groups + group][lane] == 0.0))
        };
        let (mut n_unused, mut share_unused) = ([0.0; LANES], [0.0; LANES]);
        for (value, share) in self.shares.iter().enumerate() {
            for lane in 0..LANES {
                n_unused[lane] += unused(value, lane);
                share_unused[lane] += unused(value, lane) * share;
            }
        }
        for (value, factors) in self.factors.iter_mut().enumerate() {
            for lane in 0..LANES {
                let is_new = unused(value, lane);
                // The share of unused values is zero where there is none.
                let name =
                    n_unused[lane] * self.shares[value] / (share_unused[lane] + (1.0 - is_new));
                factors[lane] = is_new * name + (1.0 - is_new);
            }
        }
    }
}

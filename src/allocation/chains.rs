//! Collapsed Gibbs chains over the hidden values of all tokens, [`LANES`] in lockstep.

use super::kernel::{self, Rows, States, Target};
use super::problem::Problem;
use crate::math::{lanes, systematic_offspring};
use crate::rng::{LANES, Lanes, Stream, UniformLanes};

/// The order in which a sweep visits the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// From the first to the last.
    Forward,
    /// From the last to the first: the reversal of a forward sweep.
    Backward,
}

/// Hidden values of all tokens in [`LANES`] chains.
pub(super) struct Chains<'a, U> {
    problem: &'a Problem,
    cells: Vec<u32>,
    /// States of all cliques, token after token.
    states: Vec<States>,
    /// Marginal counts, row after row.
    rows: Vec<Lanes>,
    sums: Vec<Lanes>,
    uniforms: U,
}

impl<'a, U: UniformLanes> Chains<'a, U> {
    /// Chains without tokens, which will come from `cells` in this order.
    pub(super) fn empty(
        problem: &'a Problem,
        cells: Vec<u32>,
        rng: &mut impl Stream<Lanes = U>,
    ) -> Self {
        Chains {
            problem,
            states: Vec::with_capacity(cells.len() * problem.plan.cliques.len()),
            cells,
            rows: vec![[0.0; LANES]; problem.n_rows],
            sums: vec![[0.0; LANES]; problem.plan.n_states],
            uniforms: rng.lanes(),
        }
    }

    /// Chains in which every joint state of every token's hidden nodes is equally likely.
    pub(super) fn uniform(problem: &'a Problem, rng: &mut impl Stream<Lanes = U>) -> Self {
        let mut chains = Chains::empty(problem, problem.tokens(), rng);
        // With base counts of one and nothing added, all states weigh the same.
        let ones = vec![1.0; problem.n_rows];
        for _ in 0..chains.cells.len() {
            chains.extend(Target { base: &ones, unit: 0.0 });
        }
        chains
    }

    /// Chains of all tokens, every one with these states of all cliques, token after token.
    pub(super) fn of_states(
        problem: &'a Problem,
        states: &[u32],
        rng: &mut impl Stream<Lanes = U>,
    ) -> Self {
        let mut chains = Chains::empty(problem, problem.tokens(), rng);
        chains.states = states.iter().map(|&state| [state; LANES]).collect();
        let n_cliques = problem.plan.cliques.len();
        for (&cell, states) in chains.cells.iter().zip(chains.states.chunks_exact(n_cliques)) {
            let mut rows = Rows { counts: &mut chains.rows, n_groups: 1, group: 0 };
            kernel::add(&problem.plan, problem.bases(cell), &mut rows, states, 1.0);
        }
        chains
    }

    /// Draws the next token, which must be there; returns its weights.
    pub(super) fn extend(&mut self, target: Target<'_>) -> Lanes {
        let plan = &self.problem.plan;
        let start = self.states.len();
        let bases = self.problem.bases(self.cells[start / plan.cliques.len()]);
        self.states.resize(start + plan.cliques.len(), [0; LANES]);
        let mut rows = Rows { counts: &mut self.rows, n_groups: 1, group: 0 };
        let weights = kernel::weigh(plan, bases, target, &rows, &mut self.sums);
        let states = &mut self.states[start..];
        kernel::pick(plan, &self.sums, &mut self.uniforms, states);
        kernel::add(plan, bases, &mut rows, states, 1.0);
        weights
    }

    /// One Gibbs sweep over all tokens.
    pub(super) fn sweep(&mut self, target: Target<'_>, order: Order) {
        let n = self.cells.len();
        self.redraw(
            (0..n).map(|step| if order == Order::Forward { step } else { n - 1 - step }),
            target,
        );
    }

    /// Gibbs draws of these tokens.
    pub(super) fn redraw(&mut self, tokens: impl Iterator<Item = usize>, target: Target<'_>) {
        kernel::sweep(
            &self.problem.plan,
            self.problem.all_bases(),
            tokens,
            &self.cells,
            target,
            &mut Rows { counts: &mut self.rows, n_groups: 1, group: 0 },
            &mut self.states,
            &mut self.sums,
            &mut self.uniforms,
        );
    }

    /// Marginal counts, row after row.
    pub(super) fn rows(&self) -> &[Lanes] {
        &self.rows
    }

    /// The allocation of one chain.
    pub(super) fn take(&self, lane: usize) -> Allocation {
        Allocation {
            states: self.states.iter().map(|states| states[lane]).collect(),
            rows: self.rows.iter().map(|row| row[lane]).collect(),
        }
    }

    /// Replaces the allocation of one chain.
    pub(super) fn put(&mut self, lane: usize, allocation: &Allocation) {
        for (states, &state) in self.states.iter_mut().zip(&allocation.states) {
            states[lane] = state;
        }
        self.rows.iter_mut().zip(&allocation.rows).for_each(|(row, &n)| row[lane] = n);
    }
}

/// Hidden values of all tokens in one chain.
pub(super) struct Allocation {
    states: Vec<u32>,
    rows: Vec<f64>,
}

/// Replaces allocations of low weight by copies of those of high weight.
pub(super) fn resample<U: UniformLanes>(
    groups: &mut [Chains<'_, U>],
    ln_weights: &[f64],
    ln_mean: f64,
    start: f64,
) {
    let weights: Vec<f64> = ln_weights.iter().map(|x| (x - ln_mean).exp()).collect();
    let mut offspring = vec![0; weights.len()];
    systematic_offspring(&weights, &mut offspring, start);
    let mut free = (0..offspring.len()).filter(|&chain| offspring[chain] == 0);
    for (chain, &n) in offspring.iter().enumerate().filter(|(_, n)| **n > 1) {
        let allocation = groups[chain / LANES].take(chain % LANES);
        for to in free.by_ref().take(n as usize - 1) {
            groups[to / LANES].put(to % LANES, &allocation);
        }
    }
}

/// ln Π_rows base (base + unit) ... (base + unit (S-1)), to the rows' powers: the law of
/// allocations under a target.
pub(super) fn ln_law(problem: &Problem, target: Target<'_>, rows: &[Lanes]) -> Lanes {
    let mut ln_values = [0.0; LANES];
    for laid in &problem.margins {
        let range = laid.rows();
        let power = f64::from(laid.margin.exponent);
        let of_margin = ln_rows(&target.base[range.clone()], target.unit, &rows[range]);
        ln_values.iter_mut().zip(of_margin).for_each(|(sum, x)| *sum += power * x);
    }
    ln_values
}

#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn ln_rows(base: &[f64], unit: f64, rows: &[Lanes]) -> Lanes {
    let mut ln_values = [0.0; LANES];
    if unit == 0.0 {
        for (base, counts) in base.iter().zip(rows) {
            let ln_base = base.ln();
            for lane in 0..LANES {
                ln_values[lane] += counts[lane] * ln_base;
            }
        }
        return ln_values;
    }
    let ln_unit = unit.ln();
    for (base, counts) in base.iter().zip(rows) {
        let mut ends = *counts;
        for end in &mut ends {
            *end += base / unit;
        }
        let (ln_ends, ln_start) = (lanes::ln_gamma(ends), lanes::ln_gamma([base / unit; LANES]));
        for lane in 0..LANES {
            ln_values[lane] += counts[lane] * ln_unit + (ln_ends[lane] - ln_start[lane]);
        }
    }
    ln_values
}

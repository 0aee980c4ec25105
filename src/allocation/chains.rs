//! Collapsed Gibbs chains over the hidden values of all tokens, [`LANES`] in lockstep.

use super::kernel::{self, Rows, States, Target};
use super::problem::Problem;
use crate::math::ln_gamma_ratio;
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
    /// Chains in which every joint state of every token's hidden nodes is equally likely.
    pub(super) fn uniform(problem: &'a Problem, rng: &mut impl Stream<Lanes = U>) -> Self {
        let plan = &problem.plan;
        let cells = problem.tokens();
        let mut chains = Chains {
            problem,
            states: vec![[0; LANES]; cells.len() * plan.cliques.len()],
            cells,
            rows: vec![[0.0; LANES]; problem.n_rows],
            sums: vec![[0.0; LANES]; plan.n_states],
            uniforms: rng.lanes(),
        };
        // With base counts of one and nothing added, all states weigh the same.
        let ones = vec![1.0; problem.n_rows];
        chains.fill(Target { base: &ones, unit: 0.0 });
        chains
    }

    /// Draws all tokens in sequence, from no tokens; returns ln of the product of their weights.
    pub(super) fn fill(&mut self, target: Target<'_>) -> Lanes {
        self.rows.fill([0.0; LANES]);
        let plan = &self.problem.plan;
        let n_cliques = plan.cliques.len();
        let mut ln_weights = [0.0; LANES];
        for (token, &cell) in self.cells.iter().enumerate() {
            let bases = self.problem.bases(cell);
            let mut rows = Rows { counts: &mut self.rows, n_groups: 1, group: 0 };
            let weights = kernel::weigh(plan, bases, target, &rows, &mut self.sums);
            let states = &mut self.states[token * n_cliques..][..n_cliques];
            kernel::pick(plan, &self.sums, &mut self.uniforms, states);
            kernel::add(plan, bases, &mut rows, states, 1.0);
            ln_weights.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight.ln());
        }
        ln_weights
    }

    /// One Gibbs sweep over all tokens.
    pub(super) fn sweep(&mut self, target: Target<'_>, order: Order) {
        let n = self.cells.len();
        let token = |step| if order == Order::Forward { step } else { n - 1 - step };
        kernel::sweep(
            &self.problem.plan,
            self.problem.all_bases(),
            (0..n).map(token),
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

/// ln Π_rows (base/unit)_S unit^S, to the rows' powers: the law of allocations under a target.
pub(super) fn ln_law(problem: &Problem, target: Target<'_>, rows: &[Lanes]) -> Lanes {
    let mut ln_values = [0.0; LANES];
    for laid in &problem.margins {
        let power = f64::from(laid.margin.exponent);
        let range = laid.rows();
        for (counts, &base) in rows[range.clone()].iter().zip(&target.base[range]) {
            for (ln_value, &n) in ln_values.iter_mut().zip(counts) {
                if n > 0.0 {
                    *ln_value += power * ln_scaled_rising(base, target.unit, n);
                }
            }
        }
    }
    ln_values
}

/// ln base (base + unit) ... (base + unit (n-1)).
fn ln_scaled_rising(base: f64, unit: f64, n: f64) -> f64 {
    if unit == 0.0 { n * base.ln() } else { n * unit.ln() + ln_gamma_ratio(base / unit, n) }
}

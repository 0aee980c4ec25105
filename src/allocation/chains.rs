//! Collapsed Gibbs chains over the hidden values of all tokens, [`LANES`] in lockstep.

use super::kernel::{self, Counts, Rows, States, Target};
use super::problem::Problem;
use crate::control::Observer;
use crate::error::{Error, Result, array_of};
use crate::math::{lanes, systematic_offspring};
use crate::rng::{LANES, Lanes, Stream, UniformLanes};

/// States of tokens that are weighed between two looks at the observer: some tens of milliseconds.
const STATES_BETWEEN_LOOKS: usize = 1 << 20;

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
    rows: Vec<Counts>,
    sums: Vec<Lanes>,
    uniforms: U,
}

impl<'a, U: UniformLanes> Chains<'a, U> {
    /// Chains without tokens, which will come from `cells` in this order.
    fn empty(
        problem: &'a Problem,
        cells: Vec<u32>,
        rng: &mut impl Stream<Lanes = U>,
    ) -> Result<Self> {
        let mut states = array_of("chains", cells.len() * problem.plan.cliques.len(), [0; LANES])?;
        states.clear();
        Ok(Chains {
            problem,
            states,
            cells,
            rows: array_of("marginal counts of chains", problem.n_rows, [0; LANES])?,
            sums: vec![[0.0; LANES]; problem.plan.n_states],
            uniforms: rng.lanes(),
        })
    }

    /// Chains in which every joint state of every token's hidden nodes is equally likely.
    ///
    /// # Errors
    /// [`Error::Memory`] for more tokens than memory holds; [`Error::Stopped`] when the observer
    /// asks to stop.
    pub(super) fn uniform(
        problem: &'a Problem,
        rng: &mut impl Stream<Lanes = U>,
        observer: &impl Observer,
    ) -> Result<Self> {
        // With base counts of one and nothing added, all states weigh the same.
        Chains::independent(problem, &vec![1.0; problem.n_rows], rng, observer)
    }

    /// Chains of independent tokens, `rows` being the weights of the rows.
    ///
    /// # Errors
    /// [`Error::Memory`] for more tokens than memory holds; [`Error::Stopped`] when the observer
    /// asks to stop.
    pub(super) fn independent(
        problem: &'a Problem,
        rows: &[f64],
        rng: &mut impl Stream<Lanes = U>,
        observer: &impl Observer,
    ) -> Result<Self> {
        let mut chains = Chains::empty(problem, problem.tokens()?, rng)?;
        let part = chains.tokens_between_looks();
        for token in 0..chains.cells.len() {
            if token % part == 0 && observer.stopped() {
                return Err(Error::Stopped);
            }
            chains.extend(Target { base: rows, unit: 0.0 });
        }
        Ok(chains)
    }

    fn tokens_between_looks(&self) -> usize {
        STATES_BETWEEN_LOOKS.div_ceil(self.problem.plan.n_states)
    }

    /// Chains of all tokens, with these states of all cliques, token after token.
    ///
    /// # Errors
    /// [`Error::Memory`] for more tokens than memory holds.
    pub(super) fn of_states(
        problem: &'a Problem,
        states: Vec<States>,
        rng: &mut impl Stream<Lanes = U>,
    ) -> Result<Self> {
        let mut chains = Chains::empty(problem, problem.tokens()?, rng)?;
        chains.states = states;
        let n_cliques = problem.plan.cliques.len();
        for (&cell, states) in chains.cells.iter().zip(chains.states.chunks_exact(n_cliques)) {
            let (bases, target) = (problem.bases(cell), Target { base: &[], unit: 0.0 });
            let mut token = Rows { counts: &mut chains.rows, bases, target };
            kernel::add(&problem.plan, &mut token, states, 1);
        }
        Ok(chains)
    }

    /// Draws the next token, which must be there; returns its weights.
    fn extend(&mut self, target: Target<'_>) -> Lanes {
        let plan = &self.problem.plan;
        let start = self.states.len();
        let bases = self.problem.bases(self.cells[start / plan.cliques.len()]);
        self.states.resize(start + plan.cliques.len(), [0; LANES]);
        let mut token = Rows { counts: &mut self.rows, bases, target };
        let weights = kernel::weigh(plan, &token, &mut self.sums);
        let states = &mut self.states[start..];
        kernel::pick(plan, &self.sums, &mut self.uniforms, states);
        kernel::add(plan, &mut token, states, 1);
        weights
    }

    /// One Gibbs sweep over all tokens.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub(super) fn sweep(
        &mut self,
        target: Target<'_>,
        order: Order,
        observer: &impl Observer,
    ) -> Result<()> {
        let (n, part) = (self.cells.len(), self.tokens_between_looks());
        for start in (0..n).step_by(part) {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            let steps = start..(start + part).min(n);
            let token = |step| if order == Order::Forward { step } else { n - 1 - step };
            self.redraw(steps.map(token), target);
        }
        Ok(())
    }

    /// Gibbs draws of these tokens.
    fn redraw(&mut self, tokens: impl Iterator<Item = usize>, target: Target<'_>) {
        kernel::sweep(
            &self.problem.plan,
            self.problem.all_bases(),
            tokens,
            &self.cells,
            target,
            &mut self.rows,
            &mut self.states,
            &mut self.sums,
            &mut self.uniforms,
        );
    }

    /// Marginal counts, row after row.
    pub(super) fn rows(&self) -> &[Counts] {
        &self.rows
    }

    /// Cell of every token.
    pub(super) fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// States of all cliques, token after token.
    pub(super) fn states(&self) -> &[States] {
        &self.states
    }

    /// States of one chain, token after token.
    pub(super) fn states_of(&self, lane: usize) -> impl Iterator<Item = u32> {
        self.states.iter().map(move |states| states[lane])
    }

    /// States of one clique in one chain, token after token.
    pub(super) fn states_of_clique(&self, clique: usize, lane: usize) -> impl Iterator<Item = u32> {
        let n_cliques = self.problem.plan.cliques.len();
        self.states.iter().skip(clique).step_by(n_cliques).map(move |states| states[lane])
    }

    /// The allocation of one chain.
    pub(super) fn take(&self, lane: usize) -> Allocation {
        Allocation {
            states: self.states_of(lane).collect(),
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
    rows: Vec<i32>,
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
pub(super) fn ln_law(problem: &Problem, target: Target<'_>, rows: &[Counts]) -> Lanes {
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
fn ln_rows(base: &[f64], unit: f64, rows: &[Counts]) -> Lanes {
    let mut ln_values = [0.0; LANES];
    if unit == 0.0 {
        for (base, counts) in base.iter().zip(rows) {
            let ln_base = base.ln();
            for lane in 0..LANES {
                ln_values[lane] += f64::from(counts[lane]) * ln_base;
            }
        }
        return ln_values;
    }
    let ln_unit = unit.ln();
    for (base, counts) in base.iter().zip(rows) {
        let ln_ratios = lanes::ln_gamma_ratio(base / unit, counts.map(f64::from));
        for lane in 0..LANES {
            ln_values[lane] += f64::from(counts[lane]) * ln_unit + ln_ratios[lane];
        }
    }
    ln_values
}

//! Tokens of all cells in lockstep chains, and how those of heavy cells divide among hidden states.
//!
//! Tokens and tables hold each other: drawn in turn, a cell of n tokens moves its shares of the states
//! by some 1/√n at a time. Given the number of tokens in each cell, missing cells included, allocations
//! have the distribution of whole tables, at every β: the tokens in pairs of states divide anew,
//! with the tables integrated out.

use super::incomplete::joined;
use crate::allocation::ascent::decomposition::Tables;
use crate::allocation::kernel::counts::{CountWeights, Counts};
use crate::allocation::kernel::rounds::n_rounds;
use crate::allocation::kernel::splits::{Cell, Splits, n_weighed};
use crate::allocation::model::plan::Clique;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::Result;
use crate::rng::{LANES, Rng, Stream as _, UniformLanes as _};
use crate::urn::SweepOrder;

/// A marginal count of a lane, at most, that may divide anew.
const MOST_TOKENS: u64 = 1 << 28;

/// Tokens that a lane divides anew in a sweep, on average at most, and in those observed.
const USUAL: [f64; 2] = [1e3, 2.0];

/// Margins of the distribution, in which the tokens of heavy cells divide.
pub(super) struct GroupedMargins {
    /// All cells, with all hidden nodes in one clique.
    problem: Problem,
    alphas: Vec<f64>,
    /// Tokens of a lane, at most, that divide anew: each adds to a row by every slot of its margin.
    most_tokens: u64,
    /// State of this clique for each state of that of the tables.
    state_of: Vec<usize>,
}

impl GroupedMargins {
    /// The distribution of allocations of the cells of `tables`.
    pub(super) fn new(problem: &Problem, tables: &Tables) -> Result<Self> {
        let problem = joined(problem.clone())?;
        let (own, clique) = (&problem.plan.cliques[0], &tables.problem.plan.cliques[0]);
        let state_of = (0..clique.n_states).map(|state| same_state(clique, state, own)).collect();
        let n_slots = problem.margins.iter().map(|laid| laid.margin.slots.len() as u64).max();
        let most_tokens = MOST_TOKENS / n_slots.unwrap_or(1).max(1);
        Ok(GroupedMargins { alphas: problem.alphas(), most_tokens, state_of, problem })
    }

    fn n_states(&self) -> usize {
        self.problem.plan.n_states
    }

    /// Whether tokens of a cell divide anew.
    fn is_heavy(&self, tokens: &Counts) -> bool {
        tokens.iter().any(|&n| self.problem.is_heavy(n as u64))
    }

    /// Numbers of eight bytes that the heavy cells of a chain take: those of a cell are held for
    /// all lanes where one of them has it heavy.
    pub(super) fn n_held(&self) -> usize {
        let n_grouped = (self.n_heavy() * self.n_states() as f64) as usize;
        (self.problem.n_rows() + n_grouped).div_ceil(2)
    }

    /// Heavy cells: those observed, and of those missing as many as the tokens that lanes divide may
    /// fill.
    fn n_heavy(&self) -> f64 {
        if self.problem.total > self.most_tokens {
            return 0.0;
        }
        let filled = LANES as f64 * self.usual() / self.problem.least_heavy() as f64;
        self.heavy().count() as f64 + filled.min(self.problem.missing.len() as f64)
    }

    /// Tokens that a lane divides anew in a sweep, on average at most.
    fn usual(&self) -> f64 {
        let [least, times] = USUAL;
        times.mul_add(self.problem.total as f64, least)
    }

    /// Divisions that are weighed of the heavy cells that were observed.
    pub(super) fn n_weighed(&self) -> f64 {
        if self.problem.total > self.most_tokens {
            return 0.0;
        }
        self.heavy().map(|count| n_weighed(count, self.n_states())).sum()
    }

    fn heavy(&self) -> impl Iterator<Item = u64> {
        self.problem.counts.iter().copied().filter(|&count| self.problem.is_heavy(count))
    }
}

/// The joint state of another clique in which all nodes have the values that they have in this one.
fn same_state(clique: &Clique, state: usize, other: &Clique) -> usize {
    let digit = |&(node, stride, _): &(usize, usize, usize)| {
        clique.value(node, state).unwrap_or(0) * stride
    };
    other.digits().iter().map(digit).sum()
}

/// Tokens of heavy cells, and marginal counts of all.
pub(super) struct GroupedCells<'a> {
    law: &'a GroupedMargins,
    heavy: Vec<u32>,
    /// Tokens in every state, heavy cell after heavy cell.
    tokens: Vec<Counts>,
    /// Tokens of one cell in every state.
    cell: Vec<Counts>,
    rows: Vec<Counts>,
    splits: Splits,
}

impl<'a> GroupedCells<'a> {
    pub(super) fn new(law: &'a GroupedMargins) -> Self {
        GroupedCells {
            law,
            heavy: Vec::new(),
            tokens: Vec::new(),
            cell: vec![[0; LANES]; law.n_states()],
            rows: vec![[0; LANES]; law.problem.n_rows()],
            splits: Splits::default(),
        }
    }

    /// Probability with which a lane of so many tokens divides them anew: it costs as much as they are.
    pub(super) fn share(&self, n_tokens: u64) -> f64 {
        if n_tokens > self.law.most_tokens { 0.0 } else { self.law.usual() / n_tokens as f64 }
    }

    pub(super) fn clear(&mut self) {
        self.heavy.clear();
        self.tokens.clear();
        self.rows.fill([0; LANES]);
    }

    /// Adds tokens of the next cell, in a state of the tables' clique.
    pub(super) fn add(&mut self, state: usize, lane: usize, n: u64) {
        self.cell[self.law.state_of[state]][lane] += n as i32;
    }

    /// Ends a cell: its tokens have all been added.
    pub(super) fn end(&mut self, cell: u32) {
        let (problem, mut n_tokens) = (&self.law.problem, [0; LANES]);
        let (clique, bases) = (&problem.plan.cliques[0], problem.bases(cell));
        for (state, counts) in
            self.cell.iter().enumerate().filter(|(_, counts)| **counts != [0; LANES])
        {
            n_tokens.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
            for factor in 0..clique.factors.len() {
                let row = &mut self.rows[clique.row(factor, state, bases)];
                row.iter_mut().zip(counts).for_each(|(count, n)| *count += n);
            }
        }
        if self.law.is_heavy(&n_tokens) {
            self.heavy.push(cell);
            self.tokens.extend_from_slice(&self.cell);
        }
        self.cell.fill([0; LANES]);
    }

    /// Divides the tokens of heavy cells anew. Calls with each of these cells, a state of the tables'
    /// clique, a lane, and how many tokens more it has there.
    pub(super) fn divide(
        &mut self,
        rng: &mut Rng,
        observer: &impl Observer,
        mut moved: impl FnMut(u32, usize, usize, i32),
    ) -> Result<()> {
        let GroupedMargins { problem, alphas, state_of, .. } = self.law;
        let (n_states, mut uniforms) = (self.law.n_states(), rng.lanes());
        let target = CountWeights { base: alphas, unit: 1.0 };
        for (&number, by_state) in self.heavy.iter().zip(self.tokens.chunks_exact_mut(n_states)) {
            let (bases, rows) = (problem.bases(number), &mut self.rows);
            self.cell.copy_from_slice(by_state);
            let mut cell = Cell { clique: &problem.plan.cliques[0], bases, by_state, rows };
            let [dart, ..] = uniforms.next();
            let round = (dart * n_rounds(n_states) as f64) as usize;
            let order = SweepOrder::Forward;
            self.splits.draw(&mut cell, round, order, &target, &mut uniforms, observer)?;
            for (state, &own) in state_of.iter().enumerate() {
                for (lane, (after, before)) in by_state[own].iter().zip(&self.cell[own]).enumerate()
                {
                    if after != before {
                        moved(number, state, lane, after - before);
                    }
                }
            }
        }
        self.cell.fill([0; LANES]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::Incomplete;
    use crate::allocation::model::network::{Network, Prior};
    use crate::counts::CountTensor;

    const STATES: usize = 64;

    /// A matrix under a mixture, of which all cells but the first are missing.
    fn incomplete() -> Incomplete {
        let prior = Prior { concentration: 1.0, tables: None };
        let (sizes, parents) = (vec![40, 40, STATES], vec![vec![2], vec![2], vec![]]);
        let network = Network::new(sizes, parents, vec![0, 1], &[], prior).unwrap();
        let data = CountTensor::new(vec![40, 40], &[0, 0], &[100]).unwrap();
        let missing: Vec<u32> = (1..1600).flat_map(|cell| [cell / 40, cell % 40]).collect();
        Incomplete::new(&network, &data, &missing, 1.0, None).unwrap()
    }

    #[test]
    fn what_is_priced_holds_all_tokens_that_usually_divide_and_not_all_cells() {
        let incomplete = incomplete();
        let law = GroupedMargins::new(&incomplete.problem, &incomplete.tables().unwrap()).unwrap();
        let mut by_state = GroupedCells::new(&law);
        by_state.clear();
        by_state.add(0, 0, 100);
        by_state.end(0);
        // The cells of each lane hold just enough tokens, and no two lanes fill the same one.
        let heavy = law.problem.least_heavy();
        let mut left = [law.usual() as u64 - 100; LANES];
        for cell in law.problem.missing.clone() {
            let lane = cell as usize % LANES;
            if left[lane] >= heavy {
                left[lane] -= heavy;
                by_state.add(cell as usize % STATES, lane, heavy);
            }
            by_state.end(cell);
        }
        assert!(by_state.heavy.len() > 200);
        let bytes = size_of::<Counts>() * (by_state.tokens.len() + by_state.rows.len());
        let priced = LANES * 8 * law.n_held();
        assert!(bytes <= priced, "{bytes} {priced}");
        assert!(priced < 3 * bytes / 2, "{bytes} {priced}");
    }
}

//! Exact enumeration: token by token, allocations merged where their future is the same.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::joint::{Joint, Symmetry};
use crate::allocation::model::plan::{EliminationPlan, Factor};
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::{Error, MAX_ENUMERATION_BYTES, Result};
use crate::math::ln_factorial;

/// Branches between two checks of the budget and the observer.
const BRANCHES_BETWEEN_POLLS: u64 = 1024;

/// Bytes that an allocation takes beside its counts: its mass, a place in a hash table of twice its
/// size and in a list, and what the allocator adds.
const ENTRY: usize = 128;

/// ln Z: allocations of all tokens, summed.
pub(crate) fn ln_sum(problem: &Problem, budget: f64, observer: &dyn Observer) -> Result<f64> {
    Ok(Enumeration::over_tokens(problem, budget, observer)?.ln_sum())
}

/// All allocations of some tokens, with their masses.
pub(crate) struct Enumeration<'a> {
    problem: &'a Problem,
    joint: Joint<'a>,
    symmetry: Symmetry,
    alphas: Vec<f64>,
    /// The last token that can read each row.
    last: Vec<usize>,
    /// Masses by marginal counts, where only rows that a later token reads tell allocations apart.
    allocations: HashMap<Vec<u32>, f64>,
    ln_scale: f64,
    n_drawn: usize,
    /// Joint states that tokens have taken in allocations.
    n_branches: u64,
    /// Multiply-adds of one joint state of a token: its factors, and the counts that are copied and
    /// compared.
    branch_cost: f64,
    budget: f64,
    observer: &'a dyn Observer,
}

impl<'a> Enumeration<'a> {
    /// Allocations of the tokens of the data.
    pub(crate) fn over_tokens(
        problem: &'a Problem,
        budget: f64,
        observer: &'a dyn Observer,
    ) -> Result<Self> {
        let joint = Joint::new(problem)?;
        let n_factors =
            |plan: &EliminationPlan| plan.cliques.iter().map(|clique| clique.factors.len()).sum();
        let n_factors: usize = problem.plans().map(n_factors).max().unwrap_or(0);
        let mut enumeration = Enumeration {
            problem,
            joint,
            symmetry: Symmetry { nodes: problem.rows_by_value() },
            alphas: problem.alphas(),
            last: last_use(problem),
            allocations: HashMap::from([(vec![0; problem.n_rows], 1.0)]),
            ln_scale: 0.0,
            n_drawn: 0,
            n_branches: 0,
            branch_cost: (n_factors + problem.n_rows) as f64,
            budget,
            observer,
        };
        // Every token meets one allocation at least.
        let joint = &enumeration.joint;
        let of_cell = |(cell, &n): (u32, &u64)| n as f64 * joint.n(cell) as f64;
        enumeration.check((0..).zip(&problem.counts).map(of_cell).sum(), 1.0)?;
        let (n_branches, n_allocations) = enumeration.least_work()?;
        enumeration.check(n_branches, n_allocations)?;
        for cell in problem.tokens()? {
            enumeration.draw(cell..cell + 1, &mut [0.0])?;
        }
        Ok(enumeration)
    }

    /// Refuses missing tokens to come, each in one of so many cells, whose least cost passes the
    /// budget: none of them makes allocations fewer, as what it adds to is read by all later ones.
    pub(crate) fn foresee(&self, n_cells: usize, n_tokens: u64) -> Result<()> {
        let n_allocations = self.allocations.len() as f64;
        let to_come = n_allocations * (n_cells * self.joint.most()) as f64 * n_tokens as f64;
        self.check(to_come, n_allocations)
    }

    /// So many missing tokens to come are refused for their least cost alone.
    pub(crate) fn too_many(&self, n_cells: usize) -> u64 {
        let n_left = self.budget / self.branch_cost - self.n_branches as f64;
        let a_token = (self.allocations.len() * n_cells * self.joint.most()) as f64;
        (n_left / a_token) as u64 + 1
    }

    /// Joint states that tokens of the data take in allocations at least, and allocations that
    /// there are at some time: they are told apart by every margin alone, in whose blocks tokens
    /// take all joint states independently.
    fn least_work(&self) -> Result<(f64, f64)> {
        let orders = |values: &Vec<_>| ln_factorial(values.len() as u64);
        let ln_symmetries: f64 = self.symmetry.nodes.iter().map(orders).sum();
        let tokens = self.problem.tokens()?;
        let (mut least, mut most) = (0.0_f64, 1.0_f64);
        // Tokens of other patterns may add to fewer margins: only the first is foreseen.
        let cliques = self.problem.is_uniform().then_some(&self.problem.plan.cliques);
        for clique in cliques.into_iter().flatten() {
            for factor in clique.factors.iter().filter(|factor| !factor.tied) {
                let mut n_branches = 0.0;
                for ln_n in self.ln_compositions(factor, &tokens) {
                    let n_allocations = (ln_n - ln_symmetries).exp().max(1.0);
                    n_branches += n_allocations * self.joint.most() as f64;
                    most = most.max(n_allocations);
                }
                least = least.max(n_branches);
            }
        }
        Ok((least, most))
    }

    /// ln of the number of counts that a factor's blocks may have before every token: compositions
    /// of their tokens, where a later one reads them.
    fn ln_compositions(&self, factor: &Factor, tokens: &[u32]) -> impl Iterator<Item = f64> {
        let n_rows = factor.rows.iter().collect::<HashSet<_>>().len() as u64;
        let mut of_blocks: HashMap<u32, (u64, f64)> = HashMap::new();
        let mut ln_n = 0.0;
        tokens.iter().enumerate().map(move |(token, &cell)| {
            let before = ln_n;
            let base = self.problem.bases(cell)[factor.slot];
            let (n_tokens, ln_own) = of_blocks.entry(base).or_default();
            *n_tokens += 1;
            let growth = ((*n_tokens + n_rows - 1) as f64 / *n_tokens as f64).ln();
            *ln_own += growth;
            ln_n += growth;
            if self.last[base as usize] <= token {
                ln_n -= *ln_own;
            }
            before
        })
    }

    fn check(&self, branches_to_come: f64, n_allocations: f64) -> Result<()> {
        self.observer.check_stop()?;
        let operations = (self.n_branches as f64 + branches_to_come) * self.branch_cost;
        let bytes = n_allocations * (size_of::<u32>() * self.problem.n_rows + ENTRY) as f64;
        let (n_tokens, budget) = (self.problem.total, self.budget);
        if operations <= budget && bytes <= MAX_ENUMERATION_BYTES {
            return Ok(());
        }
        let has_missing = !self.problem.missing.is_empty();
        let most_bytes = MAX_ENUMERATION_BYTES;
        Err(Error::EnumerationBudget {
            n_tokens,
            operations,
            bytes,
            budget,
            most_bytes,
            has_missing,
        })
    }

    /// ln of the sum of all masses.
    pub(crate) fn ln_sum(&self) -> f64 {
        let mut masses: Vec<f64> = self.allocations.values().copied().collect();
        masses.sort_unstable_by(f64::total_cmp);
        self.ln_scale + masses.iter().sum::<f64>().ln()
    }

    /// Adds a token that falls in one of these cells; fills the weight that each of them has on
    /// average over the allocations before.
    pub(crate) fn draw(&mut self, cells: Range<u32>, shares: &mut [f64]) -> Result<()> {
        let mut next: HashMap<Vec<u32>, f64> = HashMap::with_capacity(2 * self.allocations.len());
        let mut sorted: Vec<(Vec<u32>, f64)> =
            std::mem::take(&mut self.allocations).into_iter().collect();
        // The sum must not depend on the order of a hash map.
        sorted.sort_unstable_by(|x, y| x.0.cmp(&y.0));
        let total: f64 = sorted.iter().map(|(_, mass)| mass).sum();
        shares.fill(0.0);
        let n_before = sorted.len();
        for (rows, mass) in sorted {
            for (share, cell) in shares.iter_mut().zip(cells.clone()) {
                *share += self.branch(cell, &rows, mass, n_before, &mut next)? / total;
            }
        }
        let largest: f64 = next.values().copied().fold(0.0, f64::max);
        next.values_mut().for_each(|mass| *mass /= largest);
        self.ln_scale += largest.ln();
        self.allocations = next;
        self.n_drawn += 1;
        Ok(())
    }

    /// Adds a token of a cell to an allocation, in every joint state; returns their mass.
    fn branch(
        &mut self,
        cell: u32,
        rows: &[u32],
        mass: f64,
        n_before: usize,
        next: &mut HashMap<Vec<u32>, f64>,
    ) -> Result<f64> {
        let mut sum = 0.0;
        for state in 0..self.joint.n(cell) {
            if self.n_branches.is_multiple_of(BRANCHES_BETWEEN_POLLS) {
                self.check(0.0, (n_before + next.len()) as f64)?;
            }
            self.n_branches += 1;
            let mass = mass * self.joint.weight(cell, state, &self.alphas, rows);
            let mut rows = rows.to_vec();
            self.joint.add(cell, state, 1, &mut rows);
            for (row, &last) in rows.iter_mut().zip(&self.last) {
                if last <= self.n_drawn {
                    *row = 0;
                }
            }
            self.symmetry.sort(&mut rows);
            *next.entry(rows).or_default() += mass;
            sum += mass;
        }
        Ok(sum)
    }
}

/// The last token that can read each row: tokens that were not observed have no last.
fn last_use(problem: &Problem) -> Vec<usize> {
    let mut last = vec![0; problem.n_rows];
    let mut n_tokens = 0;
    for (cell, &count) in (0..).zip(&problem.counts) {
        n_tokens += count as usize;
        let last_token = if count == 0 { usize::MAX } else { n_tokens - 1 };
        let bases = problem.bases(cell);
        for clique in &problem.plan(cell).cliques {
            for factor in &clique.factors {
                for &row in &factor.rows {
                    last[(bases[factor.slot] + row) as usize] = last_token;
                }
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::model::examples::{MIXTURE, table_under};

    #[test]
    fn no_enumeration_takes_less_than_the_least_work() {
        let tables =
            [[3, 0, 1, 2, 2, 0], [1, 1, 1, 1, 1, 1], [0, 5, 0, 0, 4, 0], [2, 2, 2, 3, 0, 0]];
        let parents: [&[&[usize]]; 2] = [MIXTURE, &[&[2], &[2, 0], &[]]];
        for (counts, parents, size) in
            tables.iter().flat_map(|x| parents.iter().flat_map(move |p| [(x, p, 2), (x, p, 3)]))
        {
            let cells: Vec<(i64, i64)> = (0..).zip(*counts).filter(|(_, n)| *n > 0).collect();
            let places: Vec<i64> =
                cells.iter().flat_map(|(cell, _)| [cell / 3, cell % 3]).collect();
            let counts: Vec<i64> = cells.iter().map(|(_, n)| *n).collect();
            let problem = table_under((&[2, 3, size], parents), &[], 1.0, (&places, &counts));
            let done = Enumeration::over_tokens(&problem, 1e9, &()).unwrap();
            let (least, _) = done.least_work().unwrap();
            assert!(least <= done.n_branches as f64, "{least} {}", done.n_branches);
            // It is of use: within a factor of the permutations of two hidden values and of
            // merging.
            assert!(least > 0.02 * done.n_branches as f64, "{least} {}", done.n_branches);
        }
    }
}

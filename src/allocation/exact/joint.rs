//! Joint states of hidden nodes, and the permutations of their values.

use std::collections::HashMap;

use crate::allocation::model::plan::{Clique, EliminationPlan, Factor};
use crate::allocation::model::problem::Problem;
use crate::error::{Error, Result};

/// Joint states of hidden nodes that are enumerated for every token.
const MAX_JOINT: f64 = 1e6;

/// Joint states of the nodes that tokens are summed over.
pub(super) struct Joint<'a> {
    problem: &'a Problem,
    /// Number of joint states, and the state of each clique for each of them, by pattern of unknown
    /// axes.
    patterns: Vec<(usize, Vec<Vec<usize>>)>,
}

impl<'a> Joint<'a> {
    pub(super) fn new(problem: &'a Problem) -> Result<Self> {
        let patterns = problem.plans().map(joint_states).collect::<Result<_>>()?;
        Ok(Joint { problem, patterns })
    }

    /// Joint states of a token of a cell.
    pub(super) fn n(&self, cell: u32) -> usize {
        self.patterns[self.problem.pattern(cell)].0
    }

    /// Joint states of any token, at most.
    pub(super) fn most(&self) -> usize {
        self.patterns.iter().map(|(n, _)| *n).max().unwrap_or(1)
    }

    /// Factors of a joint state of a cell, with their rows.
    fn factors(&self, cell: u32, joint: usize) -> impl Iterator<Item = (&Factor, usize)> {
        let bases = self.problem.bases(cell);
        let states = &self.patterns[self.problem.pattern(cell)].1;
        let cliques = self.problem.plan(cell).cliques.iter().zip(states);
        cliques.flat_map(move |(clique, states)| {
            let state = states[joint];
            let row = move |factor: &Factor| (bases[factor.slot] + factor.rows[state]) as usize;
            clique.factors.iter().map(move |factor| (factor, row(factor)))
        })
    }

    /// Weight of the next token of a cell in a joint state.
    pub(super) fn weight(&self, cell: u32, joint: usize, alphas: &[f64], rows: &[u32]) -> f64 {
        let mut hits: Vec<usize> = Vec::new();
        let mut weight = 1.0;
        for (factor, row) in self.factors(cell, joint) {
            let own = hits.iter().filter(|&&hit| hit == row).count();
            weight *= (alphas[row] + f64::from(rows[row]) + own as f64).powi(factor.exponent);
            hits.push(row);
        }
        weight
    }

    /// Adds tokens of a cell in a joint state to the counts.
    pub(super) fn add(&self, cell: u32, joint: usize, n_tokens: u32, rows: &mut [u32]) {
        self.factors(cell, joint).for_each(|(_, row)| rows[row] += n_tokens);
    }
}

/// Number of joint states of the nodes of a plan, and the state of each clique for each of them.
fn joint_states(plan: &EliminationPlan) -> Result<(usize, Vec<Vec<usize>>)> {
    let n_joint: f64 = plan.cliques.iter().map(|clique| clique.n_inner as f64).product();
    if n_joint > MAX_JOINT {
        let bytes = n_joint * size_of::<usize>() as f64;
        return Err(Error::Memory { name: "joint states of the hidden nodes", bytes });
    }
    let n = n_joint as usize;
    let mut strides = HashMap::new();
    let mut stride = 1;
    for &(node, _, size) in plan.cliques.iter().flat_map(Clique::inner) {
        strides.insert(node, (stride, size));
        stride *= size;
    }
    let state = |digits: &[(usize, usize, usize)], joint: usize| -> usize {
        let part = |&(node, own, _): &(usize, usize, usize)| {
            let (stride, size) = strides[&node];
            joint / stride % size * own
        };
        digits.iter().map(part).sum()
    };
    let of_clique = |clique: &Clique| (0..n).map(|joint| state(&clique.digits, joint)).collect();
    Ok((n, plan.cliques.iter().map(of_clique).collect()))
}

/// Permutations of the values of hidden nodes: they change no probability.
pub(super) struct Symmetry {
    /// Rows of each value of every hidden node, in corresponding order.
    pub(super) nodes: Vec<Vec<Vec<usize>>>,
}

impl Symmetry {
    /// Brings the values of every hidden node in turn into decreasing order of their counts.
    pub(super) fn sort(&self, rows: &mut [u32]) {
        for values in &self.nodes {
            let key = |rows: &[u32], value: &[usize]| -> Vec<u32> {
                value.iter().map(|&row| rows[row]).collect()
            };
            let mut counts: Vec<Vec<u32>> = values.iter().map(|value| key(rows, value)).collect();
            counts.sort_unstable_by(|x, y| y.cmp(x));
            for (value, counts) in values.iter().zip(counts) {
                value.iter().zip(counts).for_each(|(&row, n)| rows[row] = n);
            }
        }
    }
}

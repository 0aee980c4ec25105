//! All allocations of a small tensor, cell by cell, those that are alike counted together.

use std::collections::HashMap;

use super::joint::{Joint, Symmetry};
use crate::allocation::model::margins::{Cells, MarginForm};
use crate::allocation::model::network::Network;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::counts::CountTensor;
use crate::error::{Error, MAX_ENUMERATION_BYTES, Result};
use crate::math::{ln_factorial, ln_rising};

/// Bytes that a group of allocations takes beside its counts, in a hash table and in a list.
const ENTRY: usize = 128;

/// Ways to allocate a cell between two polls of the observer and at the memory.
const WAYS_BETWEEN_POLLS: usize = 1024;

/// Sums of the same terms in another order differ in their last digits: values are equal to so many
/// parts of a nat.
const PARTS: f64 = (1u64 << 32) as f64;

/// All allocations of a tensor, those of equal probability and number of parameters together, in
/// increasing order of these numbers, then of the probability.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocations {
    /// ln π(S | T) of an allocation of each group.
    pub ln_probabilities: Vec<f64>,
    /// Allocations in each group.
    pub multiplicities: Vec<f64>,
    /// Number of parameters that an allocation of each group makes use of: cells of the tables that
    /// hold tokens, less values of their parents that do.
    pub n_parameters: Vec<i64>,
}

/// Enumerates all allocations of a tensor.
///
/// # Errors
/// The errors of [`Problem::new`]; [`Error::AllocationsBudget`] for more than `budget` marginal
/// counts to add, or more than memory holds; [`Error::Stopped`] when the observer asks to stop.
pub fn allocations(
    network: &Network,
    data: &CountTensor,
    budget: f64,
    observer: &impl Observer,
) -> Result<Allocations> {
    let problem =
        Problem::lay_out(network, &Cells { data, missing: &[] }, None, MarginForm::WHOLE)?;
    problem.check_total()?;
    let joint = Joint::new(&problem)?;
    let branch_cost = (problem.n_rows + joint.most()) as f64;
    let walk = AllocationWalk {
        symmetry: Symmetry::new(&problem),
        problem: &problem,
        joint,
        budget,
        observer,
    };
    let mut groups =
        vec![(AllocationKey { rows: vec![0; problem.n_rows], parts: 0 }, Alike::one())];
    let mut operations = 0.0;
    for (cell, &count) in (0..).zip(&problem.counts) {
        operations += groups.len() as f64 * walk.n_ways(cell, count) * branch_cost;
        walk.check(operations, groups.len())?;
        groups = walk.allocate(&groups, cell, count as u32, operations)?;
    }
    Ok(collect(&problem, &groups))
}

/// Counts that tell allocations apart so far.
#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct AllocationKey {
    rows: Vec<u32>,
    /// Σ ln S!, in [`PARTS`] of a nat.
    parts: i64,
}

/// Allocations that are alike.
struct Alike {
    ln_factorials: f64,
    n: f64,
}

impl Alike {
    fn one() -> Self {
        Alike { ln_factorials: 0.0, n: 1.0 }
    }
}

struct AllocationWalk<'a, O> {
    problem: &'a Problem,
    joint: Joint<'a>,
    symmetry: Symmetry,
    budget: f64,
    observer: &'a O,
}

impl<O: Observer> AllocationWalk<'_, O> {
    /// Ways to share the tokens of a cell out to the joint hidden states.
    fn n_ways(&self, cell: u32, count: u64) -> f64 {
        let others = self.joint.n(cell) as u64 - 1;
        (ln_factorial(count + others) - ln_factorial(others) - ln_factorial(count)).exp()
    }

    fn check(&self, operations: f64, n_groups: usize) -> Result<()> {
        self.observer.check_stop()?;
        let (n_tokens, budget) = (self.problem.total, self.budget);
        let bytes = n_groups as f64 * (size_of::<u32>() * self.problem.n_rows + ENTRY) as f64;
        if operations <= budget && bytes <= MAX_ENUMERATION_BYTES {
            return Ok(());
        }
        let most_bytes = MAX_ENUMERATION_BYTES;
        Err(Error::AllocationsBudget { n_tokens, operations, bytes, budget, most_bytes })
    }

    /// Adds the tokens of a cell in every way to all groups.
    fn allocate(
        &self,
        groups: &[(AllocationKey, Alike)],
        cell: u32,
        count: u32,
        operations: f64,
    ) -> Result<Vec<(AllocationKey, Alike)>> {
        let mut next: HashMap<AllocationKey, Alike> = HashMap::new();
        let mut n_ways = 0;
        for (group, alike) in groups {
            let mut shares = Composition::first(count, self.joint.n(cell));
            loop {
                if n_ways % WAYS_BETWEEN_POLLS == 0 {
                    self.check(operations, groups.len() + next.len())?;
                }
                n_ways += 1;
                let (mut rows, mut ln_factorials) = (group.rows.clone(), alike.ln_factorials);
                for (state, &n) in shares.0.iter().enumerate().filter(|(_, n)| **n > 0) {
                    self.joint.add(cell, state, n, &mut rows);
                    ln_factorials += ln_factorial(u64::from(n));
                }
                self.symmetry.sort(&mut rows);
                let parts = (ln_factorials * PARTS).round() as i64;
                let merged = next.entry(AllocationKey { rows, parts });
                merged.or_insert(Alike { ln_factorials, n: 0.0 }).n += alike.n;
                if !shares.advance(count) {
                    break;
                }
            }
        }
        let mut next: Vec<(AllocationKey, Alike)> = next.into_iter().collect();
        // Results must not depend on the order of a hash map.
        next.sort_unstable_by(|x, y| x.0.cmp(&y.0));
        Ok(next)
    }
}

/// Shares of the joint states in the tokens of a cell, one way after the other.
struct Composition(Vec<u32>);

impl Composition {
    fn first(count: u32, n_states: usize) -> Self {
        let mut shares = vec![0; n_states];
        shares[0] = count;
        Composition(shares)
    }

    /// The next way, if there is one (NEXCOM: Nijenhuis and Wilf 1978, chapter 5).
    fn advance(&mut self, count: u32) -> bool {
        let shares = &mut self.0;
        if shares[shares.len() - 1] == count {
            return false;
        }
        let Some(first) = shares.iter().position(|&n| n > 0) else { return false };
        let n = std::mem::take(&mut shares[first]);
        shares[0] = n - 1;
        shares[first + 1] += 1;
        true
    }
}

/// Probabilities and numbers of parameters of all groups; those that are equal are merged.
fn collect(problem: &Problem, groups: &[(AllocationKey, Alike)]) -> Allocations {
    let constant = problem.ln_labelled;
    let mut found: Vec<(i64, i64, f64, f64)> = Vec::with_capacity(groups.len());
    for (group, alike) in groups {
        let (mut ln_law, mut n_parameters) = (0.0, 0);
        for laid in &problem.margins {
            let (alpha, power) = (laid.margin.alpha, laid.margin.exponent);
            let used = group.rows[laid.rows()].iter().filter(|&&n| n > 0);
            n_parameters += i64::from(power) * used.clone().count() as i64;
            let ln_rows: f64 = used.map(|&n| ln_rising(alpha, u64::from(n))).sum();
            ln_law += f64::from(power) * ln_rows;
        }
        let ln_probability = ln_law + constant - alike.ln_factorials;
        let parts = (ln_probability * PARTS).round() as i64;
        found.push((n_parameters, parts, ln_probability, alike.n));
    }
    found.sort_by_key(|&(n_parameters, parts, ..)| (n_parameters, parts));
    let same = |x: &(i64, i64, f64, f64), y: &(i64, i64, f64, f64)| (x.0, x.1) == (y.0, y.1);
    let (mut ln_probabilities, mut multiplicities, mut parameters) = (vec![], vec![], vec![]);
    for alike in found.chunk_by(same) {
        ln_probabilities.push(alike[0].2);
        multiplicities.push(alike.iter().map(|(.., n)| n).sum());
        parameters.push(alike[0].0);
    }
    Allocations { ln_probabilities, multiplicities, n_parameters: parameters }
}

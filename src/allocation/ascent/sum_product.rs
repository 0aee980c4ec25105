//! Sums over the hidden values of one token at a time, given a weight for every row.

use crate::allocation::model::plan::{Clique, EliminationPlan};
use crate::allocation::model::problem::Problem;

/// Buffers of the sums of one token.
pub(crate) struct SumProduct<'a> {
    problem: &'a Problem,
    /// Plan of the cell last collected.
    plan: &'a EliminationPlan,
    /// Weight of every state of every clique, messages from below included.
    weights: Vec<f64>,
    /// Sum of the weights of each separator's states.
    messages: Vec<Vec<f64>>,
    /// Probability of every state.
    beliefs: Vec<f64>,
}

impl<'a> SumProduct<'a> {
    pub(crate) fn new(problem: &'a Problem) -> Self {
        let n_separators = |plan: &EliminationPlan, index: usize| {
            plan.cliques.get(index).map_or(0, Clique::n_separators)
        };
        let most = |index: usize| problem.plans().map(|plan| n_separators(plan, index)).max();
        SumProduct {
            problem,
            plan: &problem.plan,
            weights: vec![0.0; problem.n_states()],
            messages: (0..problem.n_cliques()).map(|c| vec![0.0; most(c).unwrap_or(0)]).collect(),
            beliefs: vec![0.0; problem.n_states()],
        }
    }

    /// Weight of a token of this cell: Σ over hidden values of the product of the rows' weights.
    pub(crate) fn collect(&mut self, cell: u32, rows: &[f64]) -> f64 {
        let bases = self.problem.bases(cell);
        self.plan = self.problem.plan(cell);
        for (index, clique) in self.plan.cliques.iter().enumerate() {
            let weights = &mut self.weights[clique.start..][..clique.n_states];
            weights.fill(1.0);
            for factor in &clique.factors {
                let base = bases[factor.slot];
                for (weight, &row) in weights.iter_mut().zip(&factor.rows) {
                    *weight *= rows[(base + row) as usize];
                }
            }
            for (child, separators) in &clique.children {
                let message = &self.messages[*child];
                for (weight, &separator) in weights.iter_mut().zip(separators) {
                    *weight *= message[separator as usize];
                }
            }
            let sums = weights.chunks_exact(clique.n_inner).map(|inner| inner.iter().sum());
            self.messages[index].iter_mut().zip(sums).for_each(|(message, sum)| *message = sum);
        }
        self.plan.roots.iter().map(|&root| self.messages[root][0]).product()
    }

    /// Adds `count` times the probability of every state, given the cell, to the rows of `sums`;
    /// [`collect`](SumProduct::collect) comes first.
    pub(crate) fn distribute(&mut self, cell: u32, count: f64, sums: &mut [f64]) {
        self.believe();
        let bases = self.problem.bases(cell);
        for clique in &self.plan.cliques {
            let beliefs = &self.beliefs[clique.start..][..clique.n_states];
            for factor in &clique.factors {
                let base = bases[factor.slot];
                for (&belief, &row) in beliefs.iter().zip(&factor.rows) {
                    sums[(base + row) as usize] += count * belief;
                }
            }
        }
    }

    /// Finds the probability of every state, given the cell last collected.
    pub(crate) fn believe(&mut self) {
        for index in (0..self.plan.cliques.len()).rev() {
            let clique = &self.plan.cliques[index];
            let above = self.above(index);
            let range = clique.start..clique.start + clique.n_states;
            let weights = &self.weights[range.clone()];
            let beliefs = &mut self.beliefs[range];
            for (separator, (beliefs, weights)) in beliefs
                .chunks_exact_mut(clique.n_inner)
                .zip(weights.chunks_exact(clique.n_inner))
                .enumerate()
            {
                let message = self.messages[index][separator];
                // The reciprocal of a smaller one may be infinite.
                let some = message >= f64::MIN_POSITIVE;
                let scale = if some { above[separator] / message } else { 0.0 };
                beliefs
                    .iter_mut()
                    .zip(weights)
                    .for_each(|(belief, weight)| *belief = weight * scale);
            }
        }
    }

    /// Probability of each state of a clique's separator.
    fn above(&self, index: usize) -> Vec<f64> {
        let n_separators = self.messages[index].len();
        let mut above = vec![0.0; n_separators];
        match self.plan.above(index) {
            None => above.fill(1.0),
            Some((parent, separators)) => {
                let clique = &self.plan.cliques[parent];
                let beliefs = &self.beliefs[clique.start..][..clique.n_states];
                for (&separator, belief) in separators.iter().zip(beliefs) {
                    above[separator as usize] += belief;
                }
            }
        }
        above
    }

    /// Expected counts of all rows, `sums`, and Σ over observed cells of count times ln weight.
    pub(crate) fn expect(&mut self, rows: &[f64], sums: &mut [f64]) -> f64 {
        sums.fill(0.0);
        let mut ln_weight = 0.0;
        for cell in 0..self.problem.missing.start {
            let count = self.problem.counts[cell as usize] as f64;
            ln_weight += count * self.collect(cell, rows).ln();
            self.distribute(cell, count, sums);
        }
        ln_weight
    }

    /// Counts of the mode of the multinomial of every cell's tokens over hidden values, and ln of
    /// the number of arrangements within cells: Σ ln X! - Σ ln S!.
    ///
    /// Tokens go one by one to argmax p_k/(s_k + 1), which is the mode (Finucan 1964).
    pub(crate) fn mode(&mut self, rows: &[f64], sums: &mut [f64]) -> f64 {
        sums.fill(0.0);
        let mut tokens = vec![0u64; self.problem.n_states()];
        let mut ln_arrangements = 0.0;
        for cell in 0..self.problem.n_cells() as u32 {
            let total = self.collect(cell, rows);
            let count = self.problem.counts[cell as usize];
            let Some(clique) = self.plan.cliques.first() else { continue };
            let (weights, tokens) =
                (&self.weights[..clique.n_states], &mut tokens[..clique.n_states]);
            place(weights, total, count, tokens);
            ln_arrangements += crate::math::ln_factorial(count);
            for (state, &n) in tokens.iter().enumerate().filter(|(_, n)| **n > 0) {
                ln_arrangements -= crate::math::ln_factorial(n);
                for factor in &clique.factors {
                    let row = self.problem.bases(cell)[factor.slot] + factor.rows[state];
                    sums[row as usize] += n as f64;
                }
            }
        }
        ln_arrangements
    }
}

/// The mode of Multinomial(count, weights/total): floors first, which the mode is never below by
/// more than the number of states, then one by one.
fn place(weights: &[f64], total: f64, count: u64, tokens: &mut [u64]) {
    let k = weights.len() as f64;
    let share = |weight: f64| (weight / total * count as f64 - k).max(0.0).floor();
    tokens.iter_mut().zip(weights).for_each(|(n, &weight)| *n = share(weight) as u64);
    for _ in tokens.iter().sum::<u64>()..count {
        let gain = |state: &usize| weights[*state] / (tokens[*state] + 1) as f64;
        let best = (0..weights.len()).rev().max_by(|a, b| gain(a).total_cmp(&gain(b)));
        tokens[best.unwrap_or(0)] += 1;
    }
}

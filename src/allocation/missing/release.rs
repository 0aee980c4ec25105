//! The way from empty cells to missing ones: a path of tempering.
//!
//! Given the tables θ and the allocation S of the T observed tokens, with λ integrated out, cells that
//! are missing at a share β of the shape of λ, and empty at the rest, leave
//!
//! γ_β(S, θ) ∝ p(θ) Π θ^S (b + 1)^-(1-β)(a + T) (b + 1 - ρ)^-β(a + T),
//!
//! where ρ is the probability of all missing cells under θ. At β = 0 they are empty cells, at β = 1
//! missing ones. A sweep draws an intensity λ ~ Gamma(β (a + T), b + 1 - ρ), of every missing cell
//! Poisson(λ p) tokens, the allocation given the tables, with the tokens of heavy
//! [`grouped_cells`](super::grouped_cells) anew, and the tables given all tokens. Many missing
//! tokens hold the tables, and these their number: single probabilities of missing cells therefore
//! move by Metropolis steps, too, with λ and the missing tokens summed out.

use std::ops::RangeInclusive;

use rand::RngExt as _;
use rand_distr::{Distribution as _, Poisson, StandardNormal};
use serde::{Deserialize, Serialize};

use super::grouped_cells::{GroupedCells, GroupedMargins};
use crate::allocation::ascent::decomposition::Tables;
use crate::allocation::ascent::sum_product::SumProduct;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::Result;
use crate::math::ln_gamma_variate;
use crate::rng::{LANES, Lanes, Rng};
use crate::temper::{LadderChains, LadderTarget};

/// Standard deviations of the Metropolis steps, in ln of odds.
const STEPS: [f64; 3] = [0.1, 0.5, 2.0];

/// ln of the odds between which they move: beyond, a probability and the sum of all others have lost
/// each other's digits.
const LN_ODDS: RangeInclusive<f64> = -600.0..=20.0;

/// Metropolis steps in a sweep, the least and the most: they may take as long as the rest of it.
const N_STEPS: [usize; 2] = [4, 32];

/// Cost of weighing a cell and of dividing its tokens, in draws of one number by other kernels.
const CELL_COST: f64 = 1e3;

/// Cost of a token of a heavy cell, in the same.
const TOKEN_COST: f64 = 20.0;

/// The path, and draws at its start.
pub(super) struct Release<'a> {
    tables: &'a Tables,
    law: &'a GroupedMargins,
    /// a + T.
    shape: f64,
    /// b.
    rate: f64,
    /// Allocations with empty cells, row after row: those of each replicate.
    starts: Vec<Vec<Vec<f64>>>,
    /// Rows that missing cells have.
    rows: Vec<u32>,
    /// Rows of every conditional distribution.
    members: Vec<Vec<u32>>,
    n_steps: usize,
}

impl<'a> Release<'a> {
    /// A path for a + T and b, from allocations with empty cells, row after row, of each replicate.
    pub(super) fn new(
        tables: &'a Tables,
        law: &'a GroupedMargins,
        shape: f64,
        rate: f64,
        starts: Vec<Vec<Vec<f64>>>,
    ) -> Self {
        let problem = &tables.problem;
        let mut rows: Vec<u32> =
            problem.missing.clone().flat_map(|cell| rows_of(problem, cell)).collect();
        rows.sort_unstable();
        rows.dedup();
        let [least, most] = N_STEPS;
        let n_steps = cost_without_steps(problem, law) / cost_of_step(problem);
        let n_steps = if rows.is_empty() { 0 } else { (n_steps as usize).clamp(least, most) };
        let members = tables.members();
        Release { tables, law, shape, rate, starts, rows, members, n_steps }
    }
}

/// Cost of the sweep of a chain, but for its Metropolis steps.
fn cost_without_steps(problem: &Problem, law: &GroupedMargins) -> f64 {
    let cell = CELL_COST + problem.n_states() as f64;
    problem.counts.len() as f64 * cell + TOKEN_COST * law.n_weighed()
}

/// Cost of one of these.
fn cost_of_step(problem: &Problem) -> f64 {
    problem.missing.len() as f64 * (CELL_COST + problem.n_states() as f64)
}

/// Rows that a token of a cell may fall in.
fn rows_of(problem: &Problem, cell: u32) -> impl Iterator<Item = u32> {
    let bases = problem.bases(cell);
    let factors = problem.plan.cliques.iter().flat_map(|clique| &clique.factors);
    factors.flat_map(move |factor| factor.rows.iter().map(move |row| bases[factor.slot] + row))
}

/// Tables.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct ReleaseState {
    /// Conditional probabilities, row after row.
    weights: Vec<f64>,
    /// Probability of every missing cell.
    cells: Vec<f64>,
}

impl AllocatedTokens {
    /// Adds tokens of a cell in a joint state of the hidden nodes.
    fn add(&mut self, problem: &Problem, cell: u32, state: usize, n: f64) {
        let (bases, is_observed) = (problem.bases(cell), cell < problem.missing.start);
        for factor in &problem.plan.cliques[0].factors {
            let row = (bases[factor.slot] + factor.rows[state]) as usize;
            self.all[row] += n;
            if is_observed {
                self.observed[row] += n;
            }
        }
    }
}

impl ReleaseState {
    fn share(&self) -> f64 {
        self.cells.iter().sum::<f64>().min(1.0)
    }
}

/// States in lockstep, a level for each.
pub(super) struct ReleaseChains<'a> {
    release: &'a Release<'a>,
    starts: &'a [Vec<f64>],
    states: Vec<ReleaseState>,
    sum_product: SumProduct<'a>,
    /// Buffers: the tokens of every lane, and those of heavy cells.
    tokens: Vec<AllocatedTokens>,
    grouped: GroupedCells<'a>,
    /// Buffers: the state before a step.
    kept_cells: Vec<f64>,
    kept_weights: Vec<f64>,
    rng: Rng,
}

/// Allocated tokens.
#[derive(Clone)]
struct AllocatedTokens {
    /// Marginal counts of all cells, and of those that were observed, row after row.
    all: Vec<f64>,
    observed: Vec<f64>,
    /// Tokens of every missing cell.
    missing: Vec<u64>,
    /// Whether heavy cells divide anew.
    divide: bool,
}

impl LadderTarget for Release<'_> {
    type Level = f64;
    type Chains<'b>
        = ReleaseChains<'b>
    where
        Self: 'b;

    fn level(&self, beta: f64) -> f64 {
        beta
    }

    fn chains(
        &self,
        replicate: usize,
        rng: &mut Rng,
        _: &impl Observer,
    ) -> Result<ReleaseChains<'_>> {
        let problem = &self.tables.problem;
        let (zeros, n_missing) = (|| vec![0.0; problem.n_rows], problem.missing.len());
        let state = ReleaseState { weights: zeros(), cells: vec![0.0; n_missing] };
        let tokens = AllocatedTokens {
            all: zeros(),
            observed: zeros(),
            missing: vec![0; n_missing],
            divide: false,
        };
        Ok(ReleaseChains {
            release: self,
            starts: &self.starts[replicate % self.starts.len()],
            states: vec![state; LANES],
            sum_product: SumProduct::new(problem),
            tokens: vec![tokens; LANES],
            grouped: GroupedCells::new(self.law),
            kept_cells: vec![0.0; n_missing],
            kept_weights: Vec::new(),
            rng: rng.clone(),
        })
    }

    // Tables of few missing tokens are the start: those of very many are forgotten slowly.
    fn starts_at_target(&self) -> bool {
        false
    }

    fn sweep_cost(&self) -> f64 {
        let problem = &self.tables.problem;
        let steps = self.n_steps as f64 * cost_of_step(problem);
        LANES as f64 * (cost_without_steps(problem, self.law) + steps)
    }
}

impl LadderChains for ReleaseChains<'_> {
    type Level = f64;
    /// Probability of every missing cell.
    type State = Vec<f64>;

    fn sweep(&mut self, betas: &[&f64; LANES], observer: &impl Observer) -> Result<()> {
        let betas = betas.map(|beta| *beta);
        self.allocate(betas, observer)?;
        for (lane, beta) in betas.into_iter().enumerate() {
            observer.check_stop()?;
            if beta == 0.0 {
                self.start(lane);
            } else {
                let (state, tokens) = (&mut self.states[lane], &self.tokens[lane]);
                self.release.tables.draw(&tokens.all, &mut state.weights, &mut self.rng);
                self.weigh(lane);
                (0..self.release.n_steps).for_each(|_| self.step(lane, beta));
            }
        }
        Ok(())
    }

    fn copy(&mut self, other: &Self) {
        self.states.clone_from(&other.states);
    }

    fn values(&self) -> Lanes {
        let Release { shape, rate, .. } = *self.release;
        let value = |state: &ReleaseState| -shape * (-state.share() / (rate + 1.0)).ln_1p();
        std::array::from_fn(|lane| value(&self.states[lane]))
    }

    fn state(&self, lane: usize) -> Vec<f64> {
        self.states[lane].cells.clone()
    }
}

impl ReleaseChains<'_> {
    /// A draw with empty cells.
    fn start(&mut self, lane: usize) {
        let drawn = self.rng.random_range(0..self.starts.len());
        let weights = &mut self.states[lane].weights;
        self.release.tables.draw(&self.starts[drawn], weights, &mut self.rng);
        self.weigh(lane);
    }

    /// Draws the missing tokens and the allocation of all at β, given the tables.
    fn allocate(&mut self, betas: Lanes, observer: &impl Observer) -> Result<()> {
        let problem = &self.release.tables.problem;
        self.grouped.clear();
        for (lane, beta) in betas.into_iter().enumerate() {
            self.count(lane, beta);
        }
        for cell in 0..problem.n_cells() as u32 {
            for lane in (0..LANES).filter(|&lane| betas[lane] > 0.0) {
                let tokens = &mut self.tokens[lane];
                let missing = cell.checked_sub(problem.missing.start);
                let n = match missing {
                    Some(nth) => tokens.missing[nth as usize],
                    None => problem.counts[cell as usize],
                };
                if n == 0 {
                    continue;
                }
                self.sum_product.collect(cell, &self.states[lane].weights);
                self.sum_product.draw(n, &mut self.rng, |state, n| {
                    tokens.add(problem, cell, state, n as f64);
                    if tokens.divide {
                        self.grouped.add(state, lane, n);
                    }
                });
            }
            observer.check_stop()?;
            self.grouped.end(cell);
        }
        let tokens = &mut self.tokens;
        self.grouped.divide(&mut self.rng, observer, |cell, state, lane, moved| {
            tokens[lane].add(problem, cell, state, f64::from(moved));
        })
    }

    /// Draws how many tokens missing cells hold, given the tables.
    fn count(&mut self, lane: usize, beta: f64) {
        let Release { tables, shape, rate, .. } = self.release;
        let (state, tokens, rng) = (&self.states[lane], &mut self.tokens[lane], &mut self.rng);
        tokens.all.fill(0.0);
        tokens.observed.fill(0.0);
        if beta == 0.0 {
            return;
        }
        let left = rate + 1.0 - state.share();
        let intensity = ln_gamma_variate(beta * shape, rng).exp() / left;
        for (n, &probability) in tokens.missing.iter_mut().zip(&state.cells) {
            let mean = intensity * probability;
            // Beyond what the sampler takes, numbers are their mean but for parts in 10^9.
            *n = match Poisson::new(mean) {
                Ok(law) => law.sample(rng) as u64,
                Err(_) => mean as u64,
            };
        }
        let n_missing = tokens.missing.iter().fold(0, |sum: u64, &n| sum.saturating_add(n));
        let n_tokens = n_missing.saturating_add(tables.problem.total);
        tokens.divide = rng.random::<f64>() < self.grouped.share(n_tokens);
    }

    /// One Metropolis step at β: the probability of a row against all others of its distribution, given
    /// the allocation. It is Beta, but for the factor of γ_β.
    fn step(&mut self, lane: usize, beta: f64) {
        let Release { tables, shape, rate, rows, members, .. } = self.release;
        let row = rows[self.rng.random_range(0..rows.len())] as usize;
        let (group, alpha, whole) = tables.group(row);
        let (members, state) = (&members[group], &mut self.states[lane]);
        let observed = &self.tokens[lane].observed;
        let tokens: f64 = members.iter().map(|&member| observed[member as usize]).sum();
        let shape_of_row = alpha + observed[row];
        let (x, shape_of_others) = (state.weights[row], whole + tokens - shape_of_row);
        let step: f64 = self.rng.sample(StandardNormal);
        let ln_odds = (x / (1.0 - x)).ln();
        let moved = ln_odds + step * STEPS[self.rng.random_range(0..STEPS.len())];
        // No distributions of one value, and no probabilities beyond double precision.
        let may_move = [ln_odds, moved].iter().all(|ln_odds| LN_ODDS.contains(ln_odds));
        if !(may_move && shape_of_others > 1e-9 * whole) {
            return;
        }
        let [ln_x, ln_others] = [1.0, -1.0].map(|sign: f64| {
            // ln of the probability at the new odds over that at the old.
            let ln_share = |ln_odds: f64| -(-sign * ln_odds).exp().ln_1p();
            ln_share(moved) - ln_share(ln_odds)
        });
        let before = state.share();
        self.kept_cells.copy_from_slice(&state.cells);
        self.kept_weights.clear();
        self.kept_weights.extend(members.iter().map(|&member| state.weights[member as usize]));
        for &member in members {
            state.weights[member as usize] *= ln_others.exp();
        }
        state.weights[row] = x * ln_x.exp();
        self.weigh(lane);
        let after = self.states[lane].share();
        let ln_accept = shape_of_row * ln_x + shape_of_others * ln_others
            - beta * shape * ((rate + 1.0 - after) / (rate + 1.0 - before)).ln();
        if self.rng.random::<f64>().ln() >= ln_accept {
            let state = &mut self.states[lane];
            state.cells.copy_from_slice(&self.kept_cells);
            for (&member, weight) in members.iter().zip(&self.kept_weights) {
                state.weights[member as usize] = *weight;
            }
        }
    }

    fn weigh(&mut self, lane: usize) {
        let ReleaseState { weights, cells, .. } = &mut self.states[lane];
        for (cell, probability) in self.release.tables.problem.missing.clone().zip(cells) {
            *probability = self.sum_product.collect(cell, weights);
        }
    }
}

//! The way from empty cells to missing ones: a path of tempering.
//!
//! Given the tables θ and the allocation S of the T observed tokens, with λ integrated out, cells that
//! are missing at a share β of the shape of λ, and empty at the rest, leave
//!
//! γ_β(S, θ) ∝ p(θ) Π θ^S (b + 1)^-(1-β)(a + T) (b + 1 - ρ)^-β(a + T),
//!
//! where ρ is the probability of all missing cells under θ. At β = 0 they are empty cells, at β = 1
//! missing ones. A sweep draws an intensity λ ~ Gamma(β (a + T), b + 1 - ρ), of every missing cell
//! Poisson(λ p) tokens, the tables given all tokens, and the allocation given the tables. Many missing
//! tokens hold the tables, and these their number: single probabilities of missing cells therefore move
//! by Metropolis steps, too, with λ and the missing tokens summed out.

use rand::RngExt as _;
use rand_distr::{Distribution as _, Poisson, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::allocation::ascent::decomposition::Tables;
use crate::allocation::ascent::sum_product::SumProduct;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::ln_gamma_variate;
use crate::rng::{LANES, Lanes, Rng};
use crate::temper;

/// Standard deviations of the Metropolis steps, in ln of odds.
const STEPS: [f64; 3] = [0.1, 0.5, 2.0];

/// Metropolis steps in a sweep, the least and the most.
const N_STEPS: [usize; 2] = [4, 32];

/// Time of them, in that of the rest of the sweep: what moves them moves little else.
const STEPS_SHARE: usize = 8;

/// Cost of weighing a cell and of dividing its tokens, in draws of one number by other kernels.
const CELL_COST: f64 = 1e3;

/// The path, and draws at its start.
pub(super) struct Release<'a> {
    tables: &'a Tables,
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
        let n_steps = STEPS_SHARE * problem.counts.len() / problem.missing.len().max(1);
        let n_steps = if rows.is_empty() { 0 } else { n_steps.clamp(least, most) };
        Release { tables, shape, rate, starts, rows, members: tables.members(), n_steps }
    }
}

/// Rows that a token of a cell may fall in.
fn rows_of(problem: &Problem, cell: u32) -> impl Iterator<Item = u32> {
    let bases = problem.bases(cell);
    let factors = problem.plan.cliques.iter().flat_map(|clique| &clique.factors);
    factors.flat_map(move |factor| factor.rows.iter().map(move |row| bases[factor.slot] + row))
}

/// Tables and the allocation of the observed tokens.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct State {
    /// Observed tokens, row after row.
    counts: Vec<f64>,
    /// Conditional probabilities, row after row.
    weights: Vec<f64>,
    /// Probability of every missing cell.
    cells: Vec<f64>,
}

impl State {
    fn share(&self) -> f64 {
        self.cells.iter().sum::<f64>().min(1.0)
    }
}

/// Replicate, states and generator of chains.
type Saved = (usize, Vec<State>, Rng);

/// States in lockstep, a level for each.
pub(super) struct Chains<'a> {
    release: &'a Release<'a>,
    replicate: usize,
    starts: &'a [Vec<f64>],
    states: Vec<State>,
    sum_product: SumProduct<'a>,
    /// Buffer: all tokens, row after row.
    total: Vec<f64>,
    rng: Rng,
}

impl temper::Target for Release<'_> {
    type Level = f64;
    type Chains<'b>
        = Chains<'b>
    where
        Self: 'b;

    fn level(&self, beta: f64) -> f64 {
        beta
    }

    fn chains(&self, replicate: usize, rng: &mut Rng, _: &impl Observer) -> Result<Chains<'_>> {
        let problem = &self.tables.problem;
        let zeros = || vec![0.0; problem.n_rows];
        let state =
            State { counts: zeros(), weights: zeros(), cells: vec![0.0; problem.missing.len()] };
        Ok(Chains {
            release: self,
            replicate,
            starts: &self.starts[replicate % self.starts.len()],
            states: vec![state; LANES],
            sum_product: SumProduct::new(problem),
            total: zeros(),
            rng: rng.clone(),
        })
    }

    fn restore(&self, (replicate, states, rng): Saved) -> Result<Chains<'_>> {
        let mut chains = self.chains(replicate, &mut rng.clone(), &())?;
        let problem = &self.tables.problem;
        let fits = |state: &State| {
            [state.counts.len(), state.weights.len()] == [problem.n_rows(); 2]
                && state.cells.len() == problem.missing.len()
        };
        if states.len() != LANES || !states.iter().all(fits) {
            return Err(Error::Saved);
        }
        (chains.states, chains.rng) = (states, rng);
        Ok(chains)
    }

    fn sweep_cost(&self) -> f64 {
        let problem = &self.tables.problem;
        let n_weighed = problem.counts.len() + self.n_steps * problem.missing.len();
        LANES as f64 * n_weighed as f64 * (CELL_COST + problem.n_states() as f64)
    }
}

impl temper::Chains for Chains<'_> {
    type Level = f64;
    /// Probability of every missing cell.
    type State = Vec<f64>;
    type Saved = Saved;

    fn sweep(&mut self, betas: &[&f64; LANES], observer: &impl Observer) -> Result<()> {
        for (lane, &&beta) in betas.iter().enumerate() {
            observer.check_stop()?;
            if beta == 0.0 {
                self.start(lane);
            } else {
                self.redraw(lane, beta);
                (0..self.release.n_steps).for_each(|_| self.step(lane, beta));
            }
        }
        Ok(())
    }

    fn values(&self) -> Lanes {
        let Release { shape, rate, .. } = *self.release;
        let value = |state: &State| -shape * (-state.share() / (rate + 1.0)).ln_1p();
        std::array::from_fn(|lane| value(&self.states[lane]))
    }

    fn state(&self, lane: usize) -> Vec<f64> {
        self.states[lane].cells.clone()
    }

    fn save(&self) -> Saved {
        (self.replicate, self.states.clone(), self.rng.clone())
    }
}

impl Chains<'_> {
    /// A draw with empty cells.
    fn start(&mut self, lane: usize) {
        let drawn = self.rng.random_range(0..self.starts.len());
        let state = &mut self.states[lane];
        state.counts.copy_from_slice(&self.starts[drawn]);
        self.release.tables.draw(&state.counts, &mut state.weights, &mut self.rng);
        self.weigh(lane);
    }

    /// One Gibbs step at β.
    fn redraw(&mut self, lane: usize, beta: f64) {
        let Release { tables, shape, rate, .. } = self.release;
        let (problem, state, rng) = (&tables.problem, &mut self.states[lane], &mut self.rng);
        self.total.copy_from_slice(&state.counts);
        let left = rate + 1.0 - state.share();
        let intensity = ln_gamma_variate(beta * shape, rng).exp() / left;
        for (cell, &probability) in problem.missing.clone().zip(&state.cells) {
            let tokens = Poisson::new(intensity * probability).map_or(0.0, |law| law.sample(rng));
            if tokens > 0.0 {
                self.sum_product.collect(cell, &state.weights);
                self.sum_product.draw(cell, tokens as u64, &mut self.total, rng);
            }
        }
        tables.draw(&self.total, &mut state.weights, rng);
        state.counts.fill(0.0);
        for cell in 0..problem.missing.start {
            self.sum_product.collect(cell, &state.weights);
            self.sum_product.draw(cell, problem.counts[cell as usize], &mut state.counts, rng);
        }
        self.weigh(lane);
    }

    /// One Metropolis step at β: the probability of a row against all others of its distribution, given
    /// the allocation. It is Beta, but for the factor of γ_β.
    fn step(&mut self, lane: usize, beta: f64) {
        let Release { tables, shape, rate, rows, members, .. } = self.release;
        let row = rows[self.rng.random_range(0..rows.len())] as usize;
        let (group, alpha, whole) = tables.group(row);
        let (members, state) = (&members[group], &mut self.states[lane]);
        let tokens: f64 = members.iter().map(|&member| state.counts[member as usize]).sum();
        let shape_of_row = alpha + state.counts[row];
        let (x, shape_of_others) = (state.weights[row], whole + tokens - shape_of_row);
        // Distributions of one value, and probabilities that have left double precision.
        if !(x > 0.0 && x < 1.0 && shape_of_others > 1e-9 * whole) {
            return;
        }
        let step: f64 = self.rng.sample(StandardNormal);
        let ln_odds = (x / (1.0 - x)).ln();
        let moved = ln_odds + step * STEPS[self.rng.random_range(0..STEPS.len())];
        let [ln_x, ln_others] = [1.0, -1.0].map(|sign: f64| {
            // ln of the probability at the new odds over that at the old.
            let ln_share = |ln_odds: f64| -(-sign * ln_odds).exp().ln_1p();
            ln_share(moved) - ln_share(ln_odds)
        });
        let before = state.share();
        let cells = state.cells.clone();
        let weights: Vec<f64> =
            members.iter().map(|&member| state.weights[member as usize]).collect();
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
            state.cells = cells;
            for (&member, weight) in members.iter().zip(weights) {
                state.weights[member as usize] = weight;
            }
        }
    }

    fn weigh(&mut self, lane: usize) {
        let State { weights, cells, .. } = &mut self.states[lane];
        for (cell, probability) in self.release.tables.problem.missing.clone().zip(cells) {
            *probability = self.sum_product.collect(cell, weights);
        }
    }
}

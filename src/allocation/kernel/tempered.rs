//! Collapsed Gibbs chains on the power path γ_β ∝ π^β u^(1-β), a β for every lane: π is the law of
//! allocations, and under u the tokens of each cell are draws from an urn of its own.

use std::collections::BTreeMap;
use std::ops::Range;

use rand::RngExt as _;
use rand_distr::{Binomial, Distribution as _};

use super::chains::{Chains, Place, STATES_A_ROUND};
use super::counts::{self, Counts, Rows, States, Target};
use super::law::ln_independent;
use super::powered::{Path, PoweredMixture, PoweredRows, redraw};
use super::risings::{Risings, ln_urn_rising};
use super::rounds::n_rounds;
use super::splits::Cell;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::ln_beta_variate;
use crate::rng::{LANES, Lanes, Rng, UniformLanes as _, Uniforms};
use crate::urn::Order;

/// Chains that are swept at a β of their own.
pub(crate) struct Tempered<'a> {
    chains: Chains<'a, Uniforms>,
    mixture: Option<PoweredMixture>,
    problem: &'a Problem,
    risings: &'a Risings,
    /// Pseudo-counts, row after row.
    alphas: &'a [f64],
    /// The part of ln u that is the same for all allocations, and the whole.
    ln_constant: f64,
    ln_references: Lanes,
    betas: Lanes,
    /// Tokens of a cell in every state.
    held: Vec<Counts>,
    rng: Rng,
}

impl<'a> Tempered<'a> {
    /// Chains that have not been swept.
    ///
    /// # Errors
    /// [`Error::Memory`] for more tokens than memory holds; [`Error::Stopped`] when the observer
    /// asks to stop.
    pub(crate) fn new(
        problem: &'a Problem,
        risings: &'a Risings,
        alphas: &'a [f64],
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<Self> {
        let chains = Chains::uniform(problem, rng, observer)?;
        let ln_uniform = -ln_independent(problem, &vec![1.0; problem.n_rows]);
        let n_states = problem.plan.n_states as f64;
        let ln_urn = |&n: &u64| ln_urn_rising(risings.kappa * n_states, n);
        Ok(Tempered {
            chains,
            mixture: PoweredMixture::new(problem),
            problem,
            risings,
            alphas,
            ln_constant: ln_uniform - problem.counts.iter().map(ln_urn).sum::<f64>(),
            ln_references: [0.0; LANES],
            betas: [0.0; LANES],
            held: Vec::new(),
            rng: rng.clone(),
        })
    }

    /// One Gibbs sweep over all tokens, at a β for every lane.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub(crate) fn sweep(&mut self, betas: Lanes, observer: &impl Observer) -> Result<()> {
        self.betas = betas;
        self.ln_references = [self.ln_constant; LANES];
        self.sweep_light(observer)?;
        self.sweep_heavy(observer)
    }

    /// Redraws the tokens of light cells.
    fn sweep_light(&mut self, observer: &impl Observer) -> Result<()> {
        let (part, mut n_drawn) = (self.chains.tokens_between_polls(), 0);
        let n_cliques = self.problem.plan.cliques.len();
        for cell in 0..self.problem.n_cells() {
            let Place::States(start) = self.chains.places[cell] else { continue };
            let n_tokens = self.problem.counts[cell] as usize;
            if n_drawn == 0 || n_drawn > part {
                n_drawn = 0;
                if observer.stopped() {
                    return Err(Error::Stopped);
                }
            }
            n_drawn += n_tokens;
            let tokens = start..start + n_tokens * n_cliques;
            self.held.clear();
            if self.risings.kappa.is_finite() && n_tokens > 1 {
                let states = &self.chains.states[tokens.clone()];
                tally(&mut self.held, states, self.problem.plan.n_states);
                let betas = self.betas;
                for lane in (0..LANES).filter(|&lane| betas[lane] == 0.0) {
                    self.refresh(cell, tokens.clone(), lane);
                }
            }
            self.redraw(cell, tokens);
            for held in &self.held {
                add_risings(&mut self.ln_references, self.risings, held);
            }
        }
        Ok(())
    }

    /// Gibbs draws of the tokens of one cell.
    fn redraw(&mut self, cell: usize, tokens: Range<usize>) {
        let (plan, chains) = (&self.problem.plan, &mut self.chains);
        let path = Path { betas: &self.betas, kappa: self.risings.kappa };
        let (bases, tokens) = (self.problem.bases(cell as u32), &mut chains.states[tokens]);
        if let Some(mixture) = &mut self.mixture {
            let (clique, rows) = (&plan.cliques[0], &mut chains.rows);
            let uniforms = &mut chains.uniforms;
            redraw(mixture, clique, bases, tokens, path, rows, &mut self.held, uniforms);
            return;
        }
        let target = Target { base: self.alphas, unit: 1.0 };
        let rows = Rows { counts: &mut chains.rows, bases, target };
        let mut token = PoweredRows { rows, held: &mut self.held, path };
        for states in tokens.chunks_exact_mut(plan.cliques.len()) {
            counts::add(plan, &mut token, states, -1);
            counts::weigh(plan, &token, &mut chains.sums);
            counts::pick(plan, &chains.sums, &mut chains.uniforms, states);
            counts::add(plan, &mut token, states, 1);
        }
    }

    /// Draws the tokens of a cell in one lane from the urn.
    fn refresh(&mut self, cell: usize, tokens: Range<usize>, lane: usize) {
        let (clique, bases) = (&self.problem.plan.cliques[0], self.problem.bases(cell as u32));
        let states = &mut self.chains.states[tokens];
        let urn = self.risings.kappa * clique.n_states as f64;
        for nth in 0..states.len() {
            let dart = self.rng.random::<f64>() * (urn + nth as f64) - urn;
            let drawn = if dart < 0.0 {
                self.rng.random_range(0..clique.n_states as u32)
            } else {
                states[(dart as usize).min(nth - 1)][lane]
            };
            let before = std::mem::replace(&mut states[nth][lane], drawn);
            for (state, x) in [(before, -1), (drawn, 1)] {
                self.held[state as usize][lane] += x;
                for factor in 0..clique.factors.len() {
                    self.chains.rows[clique.row(factor, state as usize, bases)][lane] += x;
                }
            }
        }
    }

    /// Redraws the tokens of heavy cells, in pairs of states.
    fn sweep_heavy(&mut self, observer: &impl Observer) -> Result<()> {
        let n_states = self.problem.plan.n_states;
        let path = Path { betas: &self.betas, kappa: self.risings.kappa };
        for index in 0..self.chains.heavy.len() {
            let mut cell = Cell {
                clique: &self.problem.plan.cliques[0],
                bases: self.problem.bases(self.chains.heavy[index]),
                target: Target { base: self.alphas, unit: 1.0 },
                piles: &mut self.chains.piles[index * n_states..][..n_states],
                rows: &mut self.chains.rows,
            };
            for _ in 0..n_states.div_ceil(STATES_A_ROUND) {
                if observer.stopped() {
                    return Err(Error::Stopped);
                }
                let (splits, uniforms) = (&mut self.chains.splits, &mut self.chains.uniforms);
                let [dart, ..] = uniforms.next();
                let round = (dart * n_rounds(n_states) as f64) as usize;
                splits.draw(&mut cell, round, Order::Forward, Some(path), uniforms, observer)?;
            }
            for lane in (0..LANES).filter(|&lane| self.betas[lane] == 0.0) {
                draw_cell(&mut cell, lane, self.risings.kappa, &mut self.rng);
            }
            for pile in &*cell.piles {
                add_risings(&mut self.ln_references, self.risings, pile);
            }
        }
        Ok(())
    }

    /// How many states of a cell hold n tokens, for all n and over all cells and lanes.
    pub(crate) fn occupancies(&self) -> BTreeMap<i32, u64> {
        let n_states = self.problem.plan.n_states;
        let (mut held, mut n_holding) = (Vec::new(), BTreeMap::new());
        for (&place, &count) in self.chains.places.iter().zip(&self.problem.counts) {
            let piles = match place {
                Place::States(start) => {
                    tally(&mut held, &self.chains.states[start..][..count as usize], n_states);
                    &held[..]
                }
                Place::Piles(start) => &self.chains.piles[start..][..n_states],
            };
            for n in piles.as_flattened() {
                *n_holding.entry(*n).or_default() += 1;
            }
        }
        n_holding
    }

    /// V = ln π - ln u of every lane.
    pub(crate) fn values(&self) -> Lanes {
        let mut values = self.ln_references.map(|ln_reference| -ln_reference);
        for (margin, laid) in self.problem.margins.iter().enumerate() {
            for counts in &self.chains.rows[laid.rows()] {
                for lane in 0..LANES {
                    values[lane] += self.risings.of_row(margin, counts[lane]);
                }
            }
        }
        values
    }
}

/// Counts the tokens of a cell by their states.
fn tally(held: &mut Vec<Counts>, tokens: &[States], n_states: usize) {
    held.clear();
    held.resize(n_states, [0; LANES]);
    for states in tokens {
        for (lane, &state) in states.iter().enumerate() {
            held[state as usize][lane] += 1;
        }
    }
}

/// Adds what a state of a cell adds to ln u: nothing for a single token.
fn add_risings(ln_references: &mut Lanes, risings: &Risings, held: &Counts) {
    if held.iter().any(|&n| n > 1) {
        for (ln_reference, &n) in ln_references.iter_mut().zip(held) {
            *ln_reference += risings.of_pile(n);
        }
    }
}

/// Draws the tokens of a cell from its urn, in one lane.
fn draw_cell(cell: &mut Cell<'_>, lane: usize, kappa: f64, rng: &mut Rng) {
    let n_states = cell.piles.len();
    let mut left: i32 = cell.piles.iter().map(|pile| pile[lane]).sum();
    for state in 0..n_states {
        let share = match n_states - 1 - state {
            0 => 1.0,
            n_others => ln_beta_variate(kappa, kappa * n_others as f64, rng).0.exp(),
        };
        let drawn = Binomial::new(left as u64, share).map_or(left, |law| law.sample(rng) as i32);
        left -= drawn;
        let moved = drawn - cell.piles[state][lane];
        cell.piles[state][lane] = drawn;
        for factor in 0..cell.clique.factors.len() {
            cell.rows[cell.clique.row(factor, state, cell.bases)][lane] += moved;
        }
    }
}

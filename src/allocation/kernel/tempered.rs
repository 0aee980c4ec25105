//! Collapsed Gibbs chains on the power path γ_β ∝ π^β u^(1-β), a β for every lane: π is the law of
//! allocations, and under u the tokens of each cell are draws from an urn of its own.

// Compiled for several instruction sets, with all its parts in it.
#![allow(clippy::inline_always)]

use std::collections::BTreeMap;
use std::ops::Range;

use rand::RngExt as _;
use rand_distr::{Binomial, Distribution as _};

use super::chains::{Chains, Place, STATES_A_ROUND};
use super::counts::{self, Counts, States};
use super::law::ln_independent;
use super::powers::{Level, Margins, PoweredRows, ln_urn_rising};
use super::rounds::n_rounds;
use super::splits::{Cell, Path};
use crate::allocation::model::plan::Clique;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::{ln_beta_variate, pick_lanes};
use crate::rng::{LANES, Lanes, Rng, UniformLanes, Uniforms};
use crate::urn::Order;

/// Chains and the powers of their marginal counts.
pub(crate) struct Tempered<'a> {
    chains: Chains<'a, Uniforms>,
    problem: &'a Problem,
    margins: &'a Margins,
    /// Pseudo-counts, row after row.
    alphas: &'a [f64],
    /// The part of ln u that is the same for all allocations, and the whole.
    ln_constant: f64,
    ln_references: Lanes,
    betas: Lanes,
    /// (α + S)^(eβ), row after row.
    powers: Vec<Lanes>,
    cell: CellWeights,
    rng: Rng,
}

/// The margins, and the level of every lane.
type Law<'a> = (&'a Margins, &'a [&'a Level; LANES]);

/// States of a cell's tokens.
#[derive(Default)]
struct CellWeights {
    /// Tokens in every state.
    held: Vec<Counts>,
    /// ((κ + n)/κ)^(1-β) of them.
    urn: Vec<Lanes>,
    /// Weights of the states, where no two of them share a row.
    weights: Vec<Lanes>,
    /// Row of every factor of every state, factors varying fastest.
    rows: Vec<u32>,
    /// Margin of every factor.
    margins: Vec<usize>,
}

impl<'a> Tempered<'a> {
    /// Chains that have not been swept.
    ///
    /// # Errors
    /// [`Error::Memory`] for more tokens than memory holds; [`Error::Stopped`] when the observer
    /// asks to stop.
    pub(crate) fn new(
        problem: &'a Problem,
        margins: &'a Margins,
        alphas: &'a [f64],
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<Self> {
        let chains = Chains::uniform(problem, rng, observer)?;
        let powers = crate::error::array_of("chains", problem.n_rows, [1.0; LANES])?;
        let ln_uniform = -ln_independent(problem, &vec![1.0; problem.n_rows]);
        let n_states = problem.plan.n_states as f64;
        let ln_urn = |&n: &u64| ln_urn_rising(margins.kappa * n_states, n);
        Ok(Tempered {
            chains,
            problem,
            margins,
            alphas,
            ln_constant: ln_uniform - problem.counts.iter().map(ln_urn).sum::<f64>(),
            ln_references: [0.0; LANES],
            betas: [0.0; LANES],
            powers,
            cell: CellWeights::default(),
            rng: rng.clone(),
        })
    }

    /// Whether tokens of a cell have urns of their own.
    fn has_urns(&self) -> bool {
        self.margins.kappa.is_finite()
    }

    /// One Gibbs sweep over all tokens, at a level for every lane.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub(crate) fn sweep(
        &mut self,
        levels: &[&Level; LANES],
        observer: &impl Observer,
    ) -> Result<()> {
        for (lane, level) in levels.iter().enumerate() {
            if level.beta.to_bits() != self.betas[lane].to_bits() {
                self.betas[lane] = level.beta;
                self.raise_lane(lane, level);
            }
        }
        self.ln_references = [self.ln_constant; LANES];
        self.sweep_light(levels, observer)?;
        self.sweep_heavy(levels, observer)
    }

    /// Fills the powers of a lane whose β has changed.
    fn raise_lane(&mut self, lane: usize, level: &Level) {
        for (margin, laid) in self.problem.margins.iter().enumerate() {
            let range = laid.rows();
            let rows = self.powers[range.clone()].iter_mut().zip(&self.chains.rows[range]);
            rows.for_each(|(power, counts)| {
                power[lane] = level.power(self.margins, margin, counts[lane]);
            });
        }
    }

    /// Redraws the tokens of light cells.
    fn sweep_light(&mut self, levels: &[&Level; LANES], observer: &impl Observer) -> Result<()> {
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
            let has_urn = self.has_urns() && n_tokens > 1;
            if has_urn {
                self.cell.tally(&self.chains.states[tokens.clone()], self.problem.plan.n_states);
                let betas = self.betas;
                for lane in (0..LANES).filter(|&lane| betas[lane] == 0.0) {
                    self.refresh(cell, tokens.clone(), lane, levels);
                }
            } else {
                self.cell.held.clear();
            }
            if self.chains.mixture.is_some() {
                redraw(
                    &mut self.cell,
                    &self.problem.plan.cliques[0],
                    self.problem.bases(cell as u32),
                    &mut self.chains.states[tokens],
                    (self.margins, levels),
                    &mut self.chains.rows,
                    &mut self.powers,
                    &mut self.chains.sums,
                    &mut self.chains.uniforms,
                );
            } else {
                self.redraw_any(cell, tokens, levels);
            }
            for held in &self.cell.held {
                add_risings(&mut self.ln_references, self.margins, held);
            }
        }
        Ok(())
    }

    /// Gibbs draws of the tokens of one cell, where states share rows.
    fn redraw_any(&mut self, cell: usize, tokens: Range<usize>, levels: &[&Level; LANES]) {
        let (plan, chains) = (&self.problem.plan, &mut self.chains);
        self.cell.urn.resize(self.cell.held.len(), [1.0; LANES]);
        let mut token = PoweredRows {
            counts: &mut chains.rows,
            powers: &mut self.powers,
            bases: self.problem.bases(cell as u32),
            margins: self.margins,
            levels,
            held: &mut self.cell.held,
            urn: &mut self.cell.urn,
        };
        token.fill_urn();
        for states in chains.states[tokens].chunks_exact_mut(plan.cliques.len()) {
            counts::add(plan, &mut token, states, -1);
            counts::weigh(plan, &token, &mut chains.sums);
            counts::pick(plan, &chains.sums, &mut chains.uniforms, states);
            counts::add(plan, &mut token, states, 1);
        }
    }

    /// Draws the tokens of a cell in one lane from the urn.
    fn refresh(
        &mut self,
        cell: usize,
        tokens: Range<usize>,
        lane: usize,
        levels: &[&Level; LANES],
    ) {
        let (clique, bases) = (&self.problem.plan.cliques[0], self.problem.bases(cell as u32));
        let states = &mut self.chains.states[tokens];
        let urn = self.margins.kappa * clique.n_states as f64;
        for nth in 0..states.len() {
            let dart = self.rng.random::<f64>() * (urn + nth as f64) - urn;
            let drawn = if dart < 0.0 {
                self.rng.random_range(0..clique.n_states as u32)
            } else {
                states[(dart as usize).min(nth - 1)][lane]
            };
            let before = std::mem::replace(&mut states[nth][lane], drawn);
            for (state, x) in [(before, -1), (drawn, 1)] {
                self.cell.held[state as usize][lane] += x;
                for factor in 0..clique.factors.len() {
                    let row = clique.row(factor, state as usize, bases);
                    let count = &mut self.chains.rows[row][lane];
                    *count += x;
                    let margin = self.margins.margin(clique, factor);
                    self.powers[row][lane] = levels[lane].power(self.margins, margin, *count);
                }
            }
        }
    }

    /// Redraws the tokens of heavy cells, in pairs of states.
    fn sweep_heavy(&mut self, levels: &[&Level; LANES], observer: &impl Observer) -> Result<()> {
        let n_states = self.problem.plan.n_states;
        for index in 0..self.chains.heavy.len() {
            let bases = self.problem.bases(self.chains.heavy[index]);
            let clique = &self.problem.plan.cliques[0];
            let mut cell = Cell {
                clique,
                bases,
                target: counts::Target { base: self.alphas, unit: 1.0 },
                piles: &mut self.chains.piles[index * n_states..][..n_states],
                rows: &mut self.chains.rows,
            };
            for _ in 0..n_states.div_ceil(STATES_A_ROUND) {
                if observer.stopped() {
                    return Err(Error::Stopped);
                }
                let uniforms = &mut self.chains.uniforms;
                let [dart, ..] = uniforms.next();
                let round = (dart * n_rounds(n_states) as f64) as usize;
                let path = Path { betas: &self.betas, kappa: self.margins.kappa };
                self.chains.splits.draw(
                    &mut cell,
                    round,
                    Order::Forward,
                    Some(path),
                    uniforms,
                    observer,
                )?;
            }
            for lane in (0..LANES).filter(|&lane| self.betas[lane] == 0.0) {
                draw_cell(&mut cell, lane, self.margins.kappa, &mut self.rng);
            }
            for pile in &*cell.piles {
                add_risings(&mut self.ln_references, self.margins, pile);
            }
            for factor in 0..clique.factors.len() {
                let margin = self.margins.margin(clique, factor);
                for state in 0..n_states {
                    let row = clique.row(factor, state, bases);
                    for (lane, level) in levels.iter().enumerate() {
                        let count = self.chains.rows[row][lane];
                        self.powers[row][lane] = level.power(self.margins, margin, count);
                    }
                }
            }
        }
        Ok(())
    }

    /// How many states of a cell hold n tokens, for all n and over all cells and lanes.
    pub(crate) fn occupancies(&self) -> BTreeMap<i32, u64> {
        let n_states = self.problem.plan.n_states;
        let (mut cell, mut n_holding) = (CellWeights::default(), BTreeMap::new());
        for (&place, &count) in self.chains.places.iter().zip(&self.problem.counts) {
            let piles = match place {
                Place::States(start) => {
                    cell.tally(&self.chains.states[start..][..count as usize], n_states);
                    &cell.held[..]
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
                    values[lane] += self.margins.ln_rising(margin, counts[lane]);
                }
            }
        }
        values
    }
}

/// Adds what a state of a cell adds to ln u.
fn add_risings(ln_references: &mut Lanes, margins: &Margins, held: &Counts) {
    for (ln_reference, &n) in ln_references.iter_mut().zip(held) {
        *ln_reference += margins.urn_rising(n);
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

impl CellWeights {
    /// Counts the tokens of a cell by their states.
    fn tally(&mut self, tokens: &[States], n_states: usize) {
        self.held.clear();
        self.held.resize(n_states, [0; LANES]);
        for states in tokens {
            for (lane, &state) in states.iter().enumerate() {
                self.held[state as usize][lane] += 1;
            }
        }
    }

    #[inline(always)]
    fn load(&mut self, clique: &Clique, bases: &[u32], law: Law<'_>, powers: &[Lanes]) {
        let (margins, levels) = law;
        let n_factors = clique.factors.len();
        self.margins.clear();
        self.margins.extend((0..n_factors).map(|factor| margins.margin(clique, factor)));
        self.rows.clear();
        self.weights.resize(clique.n_states, [1.0; LANES]);
        for (state, weights) in self.weights.iter_mut().enumerate() {
            *weights = [1.0; LANES];
            for factor in 0..n_factors {
                let row = clique.row(factor, state, bases);
                self.rows.push(row as u32);
                let powers = &powers[row];
                for lane in 0..LANES {
                    weights[lane] *= powers[lane];
                }
            }
        }
        for (weights, held) in self.weights.iter_mut().zip(&self.held) {
            for lane in 0..LANES {
                weights[lane] *= levels[lane].urn(margins, held[lane]);
            }
        }
    }

    /// Weight that a state has without one of its tokens.
    #[inline(always)]
    fn without(&self, state: u32, lane: usize, law: Law<'_>, counts: &[Counts]) -> f64 {
        let (n_factors, mut product) = (self.margins.len(), 1.0);
        let rows = &self.rows[state as usize * n_factors..][..n_factors];
        for (&row, &margin) in rows.iter().zip(&self.margins) {
            product *= law.1[lane].power(law.0, margin, counts[row as usize][lane] - 1);
        }
        if let Some(held) = self.held.get(state as usize) {
            product *= law.1[lane].urn(law.0, held[lane] - 1);
        }
        product
    }

    /// Adds to the counts of a state, and returns its weight.
    #[inline(always)]
    fn add(
        &mut self,
        state: u32,
        lane: usize,
        x: i32,
        law: Law<'_>,
        counts: &mut [Counts],
        powers: &mut [Lanes],
    ) -> f64 {
        let (n_factors, mut product) = (self.margins.len(), 1.0);
        let rows = &self.rows[state as usize * n_factors..][..n_factors];
        for (&row, &margin) in rows.iter().zip(&self.margins) {
            let row = row as usize;
            let n = counts[row][lane] + x;
            let power = law.1[lane].power(law.0, margin, n);
            counts[row][lane] = n;
            powers[row][lane] = power;
            product *= power;
        }
        if let Some(held) = self.held.get_mut(state as usize) {
            held[lane] += x;
            product *= law.1[lane].urn(law.0, held[lane]);
        }
        product
    }

    /// Fills the cumulative weights, those of the token's own states being replaced.
    #[inline(always)]
    fn accumulate(&self, states: &States, own: &Lanes, sums: &mut [Lanes]) {
        let mut total = [0.0; LANES];
        for (state, (weights, sums)) in (0..).zip(self.weights.iter().zip(sums)) {
            for lane in 0..LANES {
                let (weight, own) = (weights[lane], own[lane]);
                total[lane] += if states[lane] == state { own } else { weight };
            }
            *sums = total;
        }
    }
}

/// Gibbs draws of the tokens of one cell.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
#[expect(clippy::too_many_arguments, reason = "the parts of the chains, borrowed apart")]
fn redraw(
    cell: &mut CellWeights,
    clique: &Clique,
    bases: &[u32],
    tokens: &mut [States],
    law: Law<'_>,
    counts: &mut [Counts],
    powers: &mut [Lanes],
    sums: &mut [Lanes],
    uniforms: &mut Uniforms,
) {
    cell.load(clique, bases, law, powers);
    for states in tokens {
        let mut own = [0.0; LANES];
        for lane in 0..LANES {
            own[lane] = cell.without(states[lane], lane, law, counts);
        }
        cell.accumulate(states, &own, sums);
        let drawn = pick_lanes(sums, uniforms.next());
        for lane in 0..LANES {
            let (before, after) = (states[lane], drawn[lane]);
            if before != after {
                cell.weights[before as usize][lane] =
                    cell.add(before, lane, -1, law, counts, powers);
                cell.weights[after as usize][lane] = cell.add(after, lane, 1, law, counts, powers);
            }
        }
        *states = drawn;
    }
}

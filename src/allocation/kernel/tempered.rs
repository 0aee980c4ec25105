//! Collapsed Gibbs chains on the power path γ_β ∝ π^β u^(1-β), a β for every lane: π is the
//! distribution of allocations, and under u the tokens of each cell, or of all of them, are draws
//! from an urn.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::chains::{StateChains, TokenPlace};
use super::counts::{self, CountWeights, Counts, Rows, States};
use super::law::ln_independent;
use super::log_risings::{LogRisings, PoweredSplitLaw, ln_urn_rising};
use super::powered::{PathPoint, PoweredMixture, PoweredRows, redraw};
use super::rounds::n_rounds;
use super::splits::Cell;
use super::urns::{self, tally};
use super::weights::{add, subtract};
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::Result;
use crate::math::ln_beta_variate;
use crate::rng::{LANES, Lanes, Rng, UniformLanes as _, Uniforms};
use crate::temper::LadderChains;
use crate::urn::SweepOrder;

/// Rounds of pairs of a heavy cell in a sweep, for so many states: more where heavy cells are few,
/// fewer where the others move the tokens' names as well, and sweeps bring more in the same time.
const STATES_A_ROUND: [usize; 2] = [3, 16];

/// An allocation: groups of all tokens of one cell that share the states of all cliques.
pub(crate) struct GroupedAllocation {
    /// ln π of the allocation of labelled tokens.
    pub(crate) ln_law: f64,
    /// Cell and number of tokens of each group.
    pub(crate) groups: Vec<(u32, u32)>,
    /// States of all cliques, group after group.
    pub(crate) states: Vec<u32>,
}

/// Chains after a sweep, to go on from: all else follows from these.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedChains {
    states: Vec<States>,
    by_state: Vec<Counts>,
    uniforms: Uniforms,
    rng: Rng,
}

/// Chains that are swept at a β of their own.
pub(crate) struct Tempered<'a> {
    chains: StateChains<'a, Uniforms>,
    mixture: Option<PoweredMixture>,
    risings: &'a LogRisings,
    /// Pseudo-counts, row after row.
    alphas: &'a [f64],
    /// The part of ln u that is the same for all allocations, and the whole.
    ln_constant: f64,
    ln_references: Lanes,
    betas: Lanes,
    /// Tokens of an urn in every state.
    held: Vec<Counts>,
    /// Tokens of it in other cells than a heavy one, where all cells share an urn.
    others: Vec<Counts>,
    rng: Rng,
}

impl<'a> Tempered<'a> {
    /// Chains that have not been swept.
    pub(crate) fn new(
        chains: StateChains<'a, Uniforms>,
        risings: &'a LogRisings,
        alphas: &'a [f64],
        rng: &Rng,
    ) -> Self {
        let problem = chains.problem;
        let ln_uniform = -ln_independent(problem, &vec![1.0; problem.n_rows]);
        let n_states = problem.n_states() as f64;
        let ln_urn = |n: u64| ln_urn_rising(risings.urns.kappa * n_states, n);
        let ln_urns: f64 = if risings.urns.is_shared {
            ln_urn(problem.total)
        } else {
            problem.counts.iter().map(|&n| ln_urn(n)).sum()
        };
        Tempered {
            chains,
            mixture: PoweredMixture::new(problem, risings.urns),
            risings,
            alphas,
            ln_constant: ln_uniform - ln_urns,
            ln_references: [0.0; LANES],
            betas: [0.0; LANES],
            held: Vec::new(),
            others: Vec::new(),
            rng: rng.clone(),
        }
    }

    /// Chains as they were when they were saved, to be swept before they are looked at.
    pub(crate) fn restored(
        saved: SavedChains,
        problem: &'a Problem,
        risings: &'a LogRisings,
        alphas: &'a [f64],
    ) -> Result<Self> {
        let SavedChains { states, by_state, uniforms, rng } = saved;
        let chains = StateChains::from_parts(problem, states, by_state, uniforms)?;
        Ok(Tempered::new(chains, risings, alphas, &rng))
    }

    /// One Gibbs sweep over all tokens, at a β for every lane; backwards, its reversal. At β = 0
    /// chains are drawn afresh.
    pub(crate) fn sweep(
        &mut self,
        betas: Lanes,
        order: SweepOrder,
        observer: &dyn Observer,
    ) -> Result<()> {
        self.betas = betas;
        self.ln_references = [self.ln_constant; LANES];
        if self.risings.urns.is_shared {
            urns::tally_all(&mut self.held, &self.chains);
            for lane in at_reference(&betas) {
                let (kappa, chains) = (self.risings.urns.kappa, &mut self.chains);
                urns::deal_all(&mut self.held, chains, kappa, lane, &mut self.rng);
            }
        }
        if order == SweepOrder::Backward {
            self.sweep_heavy(order, observer)?;
        }
        self.sweep_light(order, observer)?;
        if order == SweepOrder::Forward {
            self.sweep_heavy(order, observer)?;
        }
        if self.risings.urns.is_shared {
            add_risings(&mut self.ln_references, self.risings, &self.held);
        }
        Ok(())
    }

    /// Redraws the tokens of light cells.
    fn sweep_light(&mut self, order: SweepOrder, observer: &dyn Observer) -> Result<()> {
        let (part, mut n_drawn) = (self.chains.tokens_between_polls(), 0);
        let n_cliques = self.chains.problem.n_cliques();
        let (n_cells, urns) = (self.chains.problem.n_cells(), self.risings.urns);
        for step in 0..n_cells {
            let cell = order.nth(step, n_cells);
            let TokenPlace::States(start) = self.chains.places[cell] else { continue };
            let n_tokens = self.chains.problem.counts[cell] as usize;
            if n_drawn == 0 || n_drawn > part {
                n_drawn = 0;
                observer.check_stop()?;
            }
            n_drawn += n_tokens;
            let tokens = start..start + n_tokens * n_cliques;
            if urns.is_shared {
                self.redraw(cell, tokens, order);
                continue;
            }
            self.held.clear();
            if urns.kappa.is_finite() && n_tokens > 1 {
                let states = &self.chains.states[tokens.clone()];
                tally(&mut self.held, states, self.chains.problem.plan.n_states);
                let betas = self.betas;
                for lane in at_reference(&betas) {
                    let (held, chains, rng) = (&mut self.held, &mut self.chains, &mut self.rng);
                    urns::deal_cell(held, chains, urns.kappa, (cell, lane), rng);
                }
            }
            self.redraw(cell, tokens, order);
            add_risings(&mut self.ln_references, self.risings, &self.held);
        }
        Ok(())
    }

    /// Gibbs draws of the tokens of one cell.
    fn redraw(&mut self, cell: usize, tokens: Range<usize>, order: SweepOrder) {
        let (problem, chains) = (self.chains.problem, &mut self.chains);
        let plan = problem.plan(cell as u32);
        let path = PathPoint { betas: &self.betas, kappa: self.risings.urns.kappa };
        let (bases, tokens) = (problem.bases(cell as u32), &mut chains.states[tokens]);
        if let Some(mixture) = &mut self.mixture {
            let (clique, rows) = (&plan.cliques[0], &mut chains.rows);
            let uniforms = &mut chains.uniforms;
            redraw(mixture, clique, bases, tokens, order, path, rows, &mut self.held, uniforms);
            return;
        }
        let target = CountWeights { base: self.alphas, unit: 1.0 };
        let rows = Rows { counts: &mut chains.rows, bases, target };
        let mut token = PoweredRows { rows, held: &mut self.held, path };
        let n_cliques = problem.n_cliques();
        let n_tokens = tokens.len() / n_cliques.max(1);
        for step in 0..n_tokens {
            let states = &mut tokens[order.nth(step, n_tokens) * n_cliques..][..n_cliques];
            counts::add(plan, &mut token, states, -1);
            counts::weigh(plan, &token, &mut chains.sums);
            counts::pick(plan, &chains.sums, &mut chains.uniforms, states);
            counts::add(plan, &mut token, states, 1);
        }
    }

    /// Redraws the tokens of heavy cells, in pairs of states.
    fn sweep_heavy(&mut self, order: SweepOrder, observer: &dyn Observer) -> Result<()> {
        let n_states = self.chains.problem.plan.n_states;
        let (n_heavy, urns) = (self.chains.heavy.len(), self.risings.urns);
        let [most, least] = STATES_A_ROUND.map(|n| n_states.div_ceil(n));
        // All heavy cells together have as many as it takes for each state to meet each other.
        let n_rounds_a_cell = n_rounds(n_states).div_ceil(n_heavy.max(1)).clamp(least, most);
        for step in 0..n_heavy {
            let index = order.nth(step, n_heavy);
            let heavy = self.chains.heavy[index];
            let mut cell = Cell {
                clique: &self.chains.problem.plan.cliques[0],
                bases: self.chains.problem.bases(heavy),
                by_state: &mut self.chains.by_state[index * n_states..][..n_states],
                rows: &mut self.chains.rows,
            };
            if urns.is_shared {
                self.others.clone_from(&self.held);
                self.others
                    .iter_mut()
                    .zip(&*cell.by_state)
                    .for_each(|(held, counts)| subtract(held, counts));
            }
            let law =
                PoweredSplitLaw { risings: self.risings, betas: &self.betas, others: &self.others };
            for _ in 0..n_rounds_a_cell {
                let (splits, uniforms) = (&mut self.chains.splits, &mut self.chains.uniforms);
                let [dart, ..] = uniforms.next();
                let round = (dart * n_rounds(n_states) as f64) as usize;
                splits.draw(&mut cell, round, order, &law, uniforms, observer)?;
            }
            if urns.is_shared {
                self.held.clone_from(&self.others);
                self.held
                    .iter_mut()
                    .zip(&*cell.by_state)
                    .for_each(|(held, counts)| add(held, counts));
                continue;
            }
            for lane in at_reference(&self.betas) {
                let (kappa, n_tokens) = (urns.kappa, self.chains.problem.counts[heavy as usize]);
                let of_urn = |n_others: usize, rng: &mut Rng| {
                    ln_beta_variate(kappa, kappa * n_others as f64, rng).0.exp()
                };
                cell.deal(lane, n_tokens, of_urn, &mut self.rng);
            }
            add_risings(&mut self.ln_references, self.risings, cell.by_state);
        }
        Ok(())
    }

    /// How many states of a cell hold n tokens, for all n and over all cells and lanes.
    pub(crate) fn occupancies(&self) -> BTreeMap<i32, u64> {
        let n_states = self.chains.problem.plan.n_states;
        let (mut held, mut n_holding) = (Vec::new(), BTreeMap::new());
        for (&place, &count) in self.chains.places.iter().zip(&self.chains.problem.counts) {
            let by_state = match place {
                TokenPlace::States(start) => {
                    tally(&mut held, &self.chains.states[start..][..count as usize], n_states);
                    &held[..]
                }
                TokenPlace::Grouped(start) => &self.chains.by_state[start..][..n_states],
            };
            for n in by_state.as_flattened() {
                *n_holding.entry(*n).or_default() += 1;
            }
        }
        n_holding
    }

    /// The chains, to go on from.
    pub(crate) fn save(&self) -> SavedChains {
        let StateChains { states, by_state, uniforms, .. } = &self.chains;
        let (states, by_state, uniforms) = (states.clone(), by_state.clone(), uniforms.clone());
        SavedChains { states, by_state, uniforms, rng: self.rng.clone() }
    }

    /// `values` with ln π added.
    fn ln_laws(&self, mut values: Lanes) -> Lanes {
        for (margin, laid) in self.chains.problem.margins.iter().enumerate() {
            for counts in &self.chains.rows[laid.rows()] {
                for lane in 0..LANES {
                    values[lane] += self.risings.ln_row(margin, counts[lane]);
                }
            }
        }
        values
    }
}

impl LadderChains for Tempered<'_> {
    type State = GroupedAllocation;

    fn sweep(&mut self, betas: Lanes, observer: &dyn Observer) -> Result<()> {
        Tempered::sweep(self, betas, SweepOrder::Forward, observer)
    }

    fn copy(&mut self, other: &Self) {
        let (chains, others) = (&mut self.chains, &other.chains);
        chains.states.copy_from_slice(&others.states);
        chains.by_state.copy_from_slice(&others.by_state);
        chains.rows.copy_from_slice(&others.rows);
    }

    // V = ln π - ln u.
    fn values(&self) -> Lanes {
        self.ln_laws(self.ln_references.map(|ln_reference| -ln_reference))
    }

    fn state(&self, lane: usize) -> GroupedAllocation {
        let (groups, states) = self.chains.groups(lane);
        GroupedAllocation { ln_law: self.ln_laws([0.0; LANES])[lane], groups, states }
    }
}

/// Lanes at β = 0.
fn at_reference(betas: &Lanes) -> impl Iterator<Item = usize> {
    (0..LANES).filter(|&lane| betas[lane] == 0.0)
}

/// Adds what the tokens of an urn add to ln u: nothing for a single one in a state.
fn add_risings(ln_references: &mut Lanes, risings: &LogRisings, held: &[Counts]) {
    for held in held.iter().filter(|held| held.iter().any(|&n| n > 1)) {
        for (ln_reference, &n) in ln_references.iter_mut().zip(held) {
            *ln_reference += risings.ln_state(n);
        }
    }
}

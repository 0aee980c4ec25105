//! The urns of the reference u: draws of tokens from them, and the tokens that they hold.

use rand::RngExt as _;

use super::chains::{StateChains, TokenPlace};
use super::counts::{Counts, States};
use super::splits::Cell;
use super::weights::add;
use crate::math::ln_beta_variate;
use crate::rng::{LANES, Rng, Uniforms};

/// The urns of the reference u: every joint state of the hidden nodes weighs κ before tokens are in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ReferenceUrns {
    /// κ; infinite where all states of all tokens are equally likely.
    pub(crate) kappa: f64,
    /// Whether the tokens of all cells come from one urn, rather than those of each from its own.
    pub(crate) is_shared: bool,
}

impl ReferenceUrns {
    /// An urn for each cell.
    pub(crate) fn per_cell(kappa: f64) -> Self {
        ReferenceUrns { kappa, is_shared: false }
    }
}

/// Counts the tokens of a cell by their states.
pub(super) fn tally(held: &mut Vec<Counts>, tokens: &[States], n_states: usize) {
    held.clear();
    held.resize(n_states, [0; LANES]);
    for states in tokens {
        for (lane, &state) in states.iter().enumerate() {
            held[state as usize][lane] += 1;
        }
    }
}

/// Counts all tokens by their states, for the urn that cells share.
pub(super) fn tally_all(held: &mut Vec<Counts>, chains: &StateChains<'_, Uniforms>) {
    let n_states = chains.problem.plan.n_states;
    tally(held, &chains.states, n_states);
    for by_state in chains.by_state.chunks_exact(n_states) {
        held.iter_mut().zip(by_state).for_each(|(held, counts)| add(held, counts));
    }
}

/// Draws the tokens of a cell in one lane from its urn.
pub(super) fn deal_cell(
    held: &mut [Counts],
    chains: &mut StateChains<'_, Uniforms>,
    kappa: f64,
    (cell, lane): (usize, usize),
    rng: &mut Rng,
) {
    let (TokenPlace::States(start), problem) = (chains.places[cell], chains.problem) else {
        return;
    };
    let n_states = problem.plan.n_states;
    let urn = kappa * n_states as f64;
    for nth in 0..problem.counts[cell] as usize {
        let dart = rng.random::<f64>() * (urn + nth as f64) - urn;
        let drawn = if dart < 0.0 {
            rng.random_range(0..n_states as u32)
        } else {
            chains.states[start + (dart as usize).min(nth - 1)][lane]
        };
        let before = move_token(chains, (cell, start + nth, lane), drawn);
        held[before as usize][lane] -= 1;
        held[drawn as usize][lane] += 1;
    }
}

/// Draws all tokens of one lane from the urn that cells share: its shares first.
pub(super) fn deal_all(
    held: &mut [Counts],
    chains: &mut StateChains<'_, Uniforms>,
    kappa: f64,
    lane: usize,
    rng: &mut Rng,
) {
    let (problem, n_states) = (chains.problem, chains.problem.plan.n_states);
    // Share of each state among the tokens that no state before it holds.
    let share = |state: usize, rng: &mut Rng| match n_states - 1 - state {
        0 => 1.0,
        n_after => ln_beta_variate(kappa, kappa * n_after as f64, rng).0.exp(),
    };
    let shares: Vec<f64> = (0..n_states).map(|state| share(state, rng)).collect();
    for held in &mut *held {
        held[lane] = 0;
    }
    for (cell, &n_tokens) in problem.counts.iter().enumerate() {
        match chains.places[cell] {
            TokenPlace::States(start) => {
                for token in start..start + n_tokens as usize {
                    let is_here = |share: &f64| rng.random::<f64>() < *share;
                    let drawn = shares.iter().position(is_here).unwrap_or(n_states - 1) as u32;
                    move_token(chains, (cell, token, lane), drawn);
                    held[drawn as usize][lane] += 1;
                }
            }
            TokenPlace::Grouped(start) => {
                let mut cell = Cell {
                    clique: &problem.plan.cliques[0],
                    bases: problem.bases(cell as u32),
                    by_state: &mut chains.by_state[start..][..n_states],
                    rows: &mut chains.rows,
                };
                let share = |n_after: usize, _: &mut Rng| shares[n_states - 1 - n_after];
                cell.deal(lane, n_tokens, share, rng);
                for (held, counts) in held.iter_mut().zip(&*cell.by_state) {
                    held[lane] += counts[lane];
                }
            }
        }
    }
}

/// Moves a token of a cell to a state of the only clique, in one lane; the state that it was in.
fn move_token(
    chains: &mut StateChains<'_, Uniforms>,
    (cell, token, lane): (usize, usize, usize),
    drawn: u32,
) -> u32 {
    let (clique, bases) = (&chains.problem.plan.cliques[0], chains.problem.bases(cell as u32));
    let before = std::mem::replace(&mut chains.states[token][lane], drawn);
    for (state, x) in [(before, -1), (drawn, 1)] {
        for factor in 0..clique.factors.len() {
            chains.rows[clique.row(factor, state as usize, bases)][lane] += x;
        }
    }
    before
}

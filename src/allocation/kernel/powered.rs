//! Weights of a token on the power path γ_β ∝ π^β u^(1-β), a β for every lane.
//!
//! Under u the tokens of a cell are draws from a Pólya urn of its own, in which every joint state of
//! the hidden nodes weighs κ: the larger κ, the more evenly they spread. A token's weight of a state is
//! `(Π_U (α_U + S_U)^e)^β ((κ + n)/κ)^(1-β)`, n tokens of the cell being in that state.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use std::ops::Range;

use super::counts::{Counts, Rows, States, Token};
use crate::allocation::model::plan::{Clique, Factor};
use crate::allocation::model::problem::{MarginLayout, Problem};
use crate::math::elementary::{exp, ln};
use crate::math::single;
use crate::rng::{LANES, Lanes, Uniforms};
use crate::urn::Order;

/// ln of products in single precision that are still normal numbers.
const LN_RANGE: f64 = 80.0;

/// Numbers in single precision, one for every lane.
type Singles = [f32; LANES];

/// Places on the path: β of every lane, and κ of the urns of u; infinite where there are none.
#[derive(Clone, Copy)]
pub(crate) struct Path<'a> {
    pub(crate) betas: &'a Lanes,
    pub(crate) kappa: f64,
}

/// Marginal counts as a token sees them, and the tokens of its cell in every state of the only
/// clique, or nothing.
pub(crate) struct PoweredRows<'a> {
    pub(crate) rows: Rows<'a>,
    pub(crate) held: &'a mut [Counts],
    pub(crate) path: Path<'a>,
}

impl Token for PoweredRows<'_> {
    #[inline(always)]
    fn product(&self, clique: &Clique, state: usize) -> Lanes {
        let mut product = self.rows.product(clique, state);
        let Path { betas, kappa } = self.path;
        let held = self.held.get(state);
        for lane in 0..LANES {
            let urn = held.map_or(0.0, |held| ln(1.0 + f64::from(held[lane]) / kappa));
            let law = ln(product[lane]);
            product[lane] = exp(urn + betas[lane] * (law - urn));
        }
        product
    }

    #[inline(always)]
    fn add(&mut self, clique: &Clique, factor: usize, state: usize, lane: usize, x: i32) {
        self.rows.add(clique, factor, state, lane, x);
        // Once for all factors.
        if let (0, Some(held)) = (factor, self.held.get_mut(state)) {
            held[lane] += x;
        }
    }

    #[inline(always)]
    fn add_all(&mut self, clique: &Clique, factor: usize, state: usize, x: &Counts) {
        self.rows.add_all(clique, factor, state, x);
        if let (0, Some(held)) = (factor, self.held.get_mut(state)) {
            (0..LANES).for_each(|lane| held[lane] += x[lane]);
        }
    }
}

/// Gibbs draws in single precision, a cell at a time, where no two states of a token share a row.
///
/// Weights are off by some 1e-7 of themselves: beside what a token weighs in ln γ, nothing.
pub(crate) struct PoweredMixture {
    /// Pseudo-count and exponent of every factor, those of positive power first.
    factors: Vec<(f32, i32)>,
    n_above: usize,
    /// Whether products of factors may leave the range of single precision.
    is_wide: bool,
    /// Row of every factor of every state, factors varying fastest.
    rows: Vec<u32>,
    /// ln of the weights, then their cumulative sums.
    sums: Vec<Singles>,
}

impl PoweredMixture {
    /// None where states share rows.
    pub(crate) fn new(problem: &Problem) -> Option<Self> {
        let [clique] = &problem.plan.cliques[..] else { return None };
        let slots =
            |laid: &MarginLayout| std::iter::repeat_n(laid.margin.alpha, laid.margin.slots.len());
        let of_slots: Vec<f64> = problem.margins.iter().flat_map(slots).collect();
        let factor = |factor: &Factor| (of_slots[factor.slot], factor.exponent);
        let factors: Vec<(f64, i32)> = clique.factors.iter().map(factor).collect();
        let most_ln = |&(alpha, exponent): &(f64, i32)| {
            let ends = [alpha, alpha + problem.total as f64].map(|size| size.ln().abs());
            f64::from(exponent.abs()) * ends[0].max(ends[1])
        };
        clique.states_are_apart().then(|| PoweredMixture {
            is_wide: factors.iter().map(most_ln).sum::<f64>() > LN_RANGE,
            factors: factors.iter().map(|&(alpha, power)| (alpha as f32, power)).collect(),
            n_above: clique.n_above,
            rows: vec![0; clique.factors.len() * clique.n_states],
            sums: vec![[0.0; LANES]; clique.n_states],
        })
    }

    /// Takes a token out of its states, and fills the law's weights without it, or ln of them.
    #[inline(always)]
    fn weigh<const IS_WIDE: bool>(&mut self, states: &States, counts: &mut [Counts]) {
        let n_factors = self.factors.len();
        for state in 0..self.sums.len() {
            let own = matching(states, state);
            let rows = &self.rows[state * n_factors..][..n_factors];
            let (above, below) = (0..self.n_above, self.n_above..n_factors);
            let mut law = product::<IS_WIDE>(&self.factors, rows, above, &own, counts);
            if self.n_above < n_factors {
                let divisor = product::<IS_WIDE>(&self.factors, rows, below, &own, counts);
                for lane in 0..LANES {
                    let (over, under) = (law[lane], divisor[lane]);
                    law[lane] = if IS_WIDE { over - under } else { over / under };
                }
            }
            self.sums[state] = law;
        }
    }

    /// Takes weights to the power β, in ln; returns the largest.
    #[inline(always)]
    fn power<const IS_WIDE: bool>(&mut self, betas: &Singles) -> Singles {
        let mut most = [f32::NEG_INFINITY; LANES];
        for state in 0..self.sums.len() {
            let mut law = self.sums[state];
            for lane in 0..LANES {
                let ln_law = if IS_WIDE { law[lane] } else { single::ln(law[lane]) };
                law[lane] = betas[lane] * ln_law;
                most[lane] = if law[lane] > most[lane] { law[lane] } else { most[lane] };
            }
            self.sums[state] = law;
        }
        most
    }

    /// Takes a token out of its cell, adds the urn's factors to ln of the weights; returns the largest.
    #[inline(always)]
    fn add_urn(
        &mut self,
        states: &States,
        (betas, kappa): (&Singles, f32),
        held: &mut [Counts],
    ) -> Singles {
        let (mut most, scale) = ([f32::NEG_INFINITY; LANES], 1.0 / kappa);
        for (state, (held, sums)) in held.iter_mut().zip(&mut self.sums).enumerate() {
            let (own, mut n, mut law) = (matching(states, state), *held, *sums);
            for lane in 0..LANES {
                n[lane] += own[lane];
            }
            *held = n;
            for lane in 0..LANES {
                law[lane] += (1.0 - betas[lane]) * single::ln(1.0 + n[lane] as f32 * scale);
                most[lane] = if law[lane] > most[lane] { law[lane] } else { most[lane] };
            }
            *sums = law;
        }
        most
    }

    /// Turns ln of the weights into their cumulative sums.
    #[inline(always)]
    fn accumulate(&mut self, most: &Singles) {
        let mut total = [0.0; LANES];
        for state in 0..self.sums.len() {
            let law = &mut self.sums[state];
            for lane in 0..LANES {
                total[lane] += single::exp(law[lane] - most[lane]);
            }
            *law = total;
        }
    }

    /// Draws states from the cumulative weights.
    #[inline(always)]
    fn pick(&self, uniforms: &mut Uniforms) -> States {
        let Some((totals, sums)) = self.sums.split_last() else { return [0; LANES] };
        let (bits, mut darts) = (uniforms.next_bits(), [0.0; LANES]);
        for lane in 0..LANES {
            // The upper 24 bits: no dart reaches the total.
            darts[lane] = (bits[lane] >> 40) as u32 as f32 * (1.0 / 16_777_216.0) * totals[lane];
        }
        let mut drawn = [0; LANES];
        for sums in sums {
            for lane in 0..LANES {
                drawn[lane] += u32::from(sums[lane] <= darts[lane]);
            }
        }
        drawn
    }

    /// Puts a token into its states.
    #[inline(always)]
    fn add(&self, states: &States, counts: &mut [Counts], held: &mut [Counts]) {
        let n_factors = self.factors.len();
        for state in 0..self.sums.len() {
            let own = matching(states, state);
            for factor in 0..n_factors {
                let counts = &mut counts[self.rows[state * n_factors + factor] as usize];
                for lane in 0..LANES {
                    counts[lane] -= own[lane];
                }
            }
            if state < held.len() {
                for lane in 0..LANES {
                    held[state][lane] -= own[lane];
                }
            }
        }
    }
}

/// -1 in the lanes that are in a state, and 0 elsewhere.
#[inline(always)]
fn matching(states: &States, state: usize) -> Counts {
    let mut matching = [0; LANES];
    for lane in 0..LANES {
        matching[lane] = ((states[lane] ^ state as u32) as i32 - 1) >> 31;
    }
    matching
}

/// Takes a token out of rows of counts, and returns their product to the powers of the factors, or
/// ln of it.
#[inline(always)]
fn product<const IS_WIDE: bool>(
    factors: &[(f32, i32)],
    rows: &[u32],
    range: Range<usize>,
    own: &Counts,
    counts: &mut [Counts],
) -> Singles {
    let mut product = if IS_WIDE { [0.0; LANES] } else { [1.0; LANES] };
    for factor in range {
        let ((alpha, exponent), row) = (factors[factor], rows[factor] as usize);
        let (mut n, mut size) = (counts[row], [0.0; LANES]);
        for lane in 0..LANES {
            n[lane] += own[lane];
        }
        counts[row] = n;
        for lane in 0..LANES {
            size[lane] = alpha + n[lane] as f32;
        }
        if IS_WIDE {
            let exponent = exponent.unsigned_abs() as f32;
            for lane in 0..LANES {
                product[lane] += exponent * single::ln(size[lane]);
            }
            continue;
        }
        for lane in 0..LANES {
            product[lane] *= size[lane];
        }
        for _ in 1..exponent.unsigned_abs() {
            for lane in 0..LANES {
                product[lane] *= size[lane];
            }
        }
    }
    product
}

/// Gibbs draws of the tokens of one cell.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
#[expect(clippy::too_many_arguments, reason = "the parts of the chains, borrowed apart")]
pub(crate) fn redraw(
    mixture: &mut PoweredMixture,
    clique: &Clique,
    bases: &[u32],
    tokens: &mut [States],
    order: Order,
    path: Path<'_>,
    counts: &mut [Counts],
    held: &mut [Counts],
    uniforms: &mut Uniforms,
) {
    let (betas, kappa) = (path.betas.map(|beta| beta as f32), path.kappa as f32);
    let n_factors = clique.factors.len();
    for state in 0..clique.n_states {
        for factor in 0..n_factors {
            mixture.rows[state * n_factors + factor] = clique.row(factor, state, bases) as u32;
        }
    }
    let n = tokens.len();
    for step in 0..n {
        let states = &mut tokens[order.nth(step, n)];
        let mut most = if mixture.is_wide {
            mixture.weigh::<true>(states, counts);
            mixture.power::<true>(&betas)
        } else {
            mixture.weigh::<false>(states, counts);
            mixture.power::<false>(&betas)
        };
        if !held.is_empty() {
            most = mixture.add_urn(states, (&betas, kappa), held);
        }
        mixture.accumulate(&most);
        *states = mixture.pick(uniforms);
        mixture.add(states, counts, held);
    }
}

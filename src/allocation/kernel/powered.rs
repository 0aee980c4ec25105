//! Weights of a token on the power path γ_β ∝ π^β u^(1-β), a β for every lane.
//!
//! Under u the tokens of a cell, or all tokens, are draws from a Pólya urn, in which every joint
//! state of the hidden nodes weighs κ: the larger κ, the more evenly they spread. A token's weight
//! of a state is `(Π_U (α_U + S_U)^e)^β ((κ + n)/κ)^(1-β)`, n tokens of its urn being in that
//! state.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use super::counts::{Counts, Rows, States, Token};
use super::urns::ReferenceUrns;
use super::weights::{Seen, Singles, StateWeights, add, matching, replace, subtract};
use crate::allocation::model::margins::MarginLayout;
use crate::allocation::model::plan::{Clique, Factor};
use crate::allocation::model::problem::Problem;
use crate::math::elementary::single;
use crate::math::elementary::{exp, ln};
use crate::rng::{LANES, Lanes, Uniforms};
use crate::urn::SweepOrder;

/// ln of products in single precision that, times the weights of urns and summed over states, are
/// still normal numbers.
const LN_RANGE: f64 = 70.0;

/// Places on the path: β of every lane, and κ of the urns of u; infinite where there are none.
#[derive(Clone, Copy)]
pub(crate) struct PathPoint<'a> {
    pub(crate) betas: &'a Lanes,
    pub(crate) kappa: f64,
}

/// Marginal counts as a token sees them, and the tokens of its urn in every state of the only
/// clique, or nothing.
pub(crate) struct PoweredRows<'a> {
    pub(crate) rows: Rows<'a>,
    pub(crate) held: &'a mut [Counts],
    pub(crate) path: PathPoint<'a>,
}

impl Token for PoweredRows<'_> {
    #[inline(always)]
    fn product(&self, clique: &Clique, state: usize) -> Lanes {
        let mut product = self.rows.product(clique, state);
        let PathPoint { betas, kappa } = self.path;
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
/// Weights are off by some 1e-7 of themselves: beside what a token weighs in ln γ, nothing. All weights
/// of a cell's first token are computed; after it only those of the states that a token has left or
/// entered since, which are two in each lane.
pub(crate) struct PoweredMixture {
    /// Pseudo-count and exponent of every factor, filled up with factors of exponent 0.
    factors: Vec<(f32, u32)>,
    /// Number of factors that multiply the weight: those after them divide it.
    n_above: usize,
    /// Number of factors of the distribution.
    n_factors: usize,
    /// Whether products of factors may leave the range of single precision.
    is_wide: bool,
    /// Row of every factor of every state, after the first of its slot; factors vary fastest.
    rows: Vec<u32>,
    /// Counts of these rows without the tokens of the urn: below zero where it holds those of other
    /// rows, too, and right in the sum.
    others: Vec<Counts>,
    /// Tokens of the urn in every state.
    here: Vec<Counts>,
    /// Weights of the states, or ln of them where they are wide.
    weights: Vec<Singles>,
    /// Cumulative sums of the weights.
    sums: Vec<Singles>,
}

/// 2^23: whole numbers that are added to it stand in the low bits.
const WHOLE: f32 = 8_388_608.0;

/// Numbers of factors that kernels are compiled for.
const N_FACTORS: [usize; 3] = [3, 4, 8];

impl PoweredMixture {
    /// None where states share rows, or of more factors than kernels are compiled for.
    pub(crate) fn new(problem: &Problem, urns: ReferenceUrns) -> Option<Self> {
        let clique = problem.is_joint().then(|| &problem.plan.cliques[0])?;
        let slots =
            |laid: &MarginLayout| std::iter::repeat_n(laid.margin.alpha, laid.margin.slots.len());
        let of_slots: Vec<f64> = problem.margins.iter().flat_map(slots).collect();
        let factor = |factor: &Factor| (of_slots[factor.slot], factor.exponent);
        let factors: Vec<(f64, i32)> = clique.factors.iter().map(factor).collect();
        let most_ln = |&(alpha, exponent): &(f64, i32)| {
            let ends = [alpha, alpha + problem.total as f64].map(|size| size.ln().abs());
            f64::from(exponent.abs()) * ends[0].max(ends[1])
        };
        // Urns of single cells hold few tokens.
        let most_urn = if urns.is_shared { problem.total as f64 / urns.kappa } else { 0.0 };
        let most = factors.iter().map(most_ln).sum::<f64>() + most_urn.ln_1p();
        let is_wide = most > LN_RANGE;
        let n_factors = factors.len();
        let n_filled = N_FACTORS.into_iter().find(|&n| n >= n_factors)?;
        let single = |(alpha, exponent): (f64, i32)| (alpha as f32, exponent.unsigned_abs());
        let mut factors: Vec<(f32, u32)> = factors.into_iter().map(single).collect();
        factors.resize(n_filled, (1.0, 0));
        let n_states = clique.n_states;
        let row = |index: usize| {
            let factor = clique.factors.get(index % n_filled);
            factor.map_or(0, |factor| factor.rows[index / n_filled])
        };
        let is_apart = clique.is_apart && clique.factors.iter().all(|factor| !factor.is_constant);
        is_apart.then(|| PoweredMixture {
            factors,
            n_above: clique.n_above,
            n_factors,
            is_wide,
            rows: (0..n_filled * n_states).map(row).collect(),
            others: vec![[0; LANES]; n_filled * n_states],
            here: vec![[0; LANES]; n_states],
            weights: vec![[0.0; LANES]; n_states],
            sums: vec![[0.0; LANES]; n_states],
        })
    }

    /// Draws the tokens of a cell one by one, and puts them into the counts.
    #[inline(always)]
    fn draw<const N: usize, const IS_WIDE: bool>(
        &mut self,
        tokens: &mut [States],
        order: SweepOrder,
        (clique, of_slots): (&Clique, &[u32]),
        (betas, kappa): (&Singles, f32),
        (counts, held): (&mut [Counts], &mut [Counts]),
        uniforms: &mut Uniforms,
    ) {
        let (mut factors, mut bases) = ([(1.0, 0); N], [0; N]);
        factors.copy_from_slice(&self.factors);
        for (base, factor) in bases.iter_mut().zip(&clique.factors) {
            *base = of_slots[factor.slot];
        }
        let law = StateWeights { factors, n_above: self.n_above, betas, scale: 1.0 / kappa };
        let (n, mut last) = (tokens.len(), [0; LANES]);
        for step in 0..n {
            let states = &mut tokens[order.nth(step, n)];
            if step == 0 {
                self.weigh::<N, IS_WIDE>(&law, states, &bases, (counts, held));
            } else {
                self.weigh_moved::<N, IS_WIDE>(&law, [states, &last], !held.is_empty());
            }
            if IS_WIDE {
                self.add_up_wide();
            }
            last = self.pick(uniforms);
            *states = last;
        }
        self.put_back::<N>(&last, &bases, (counts, held));
    }

    /// Takes the tokens of an urn out of the counts and the first of them out of its states, and
    /// weighs all states without it.
    #[inline(always)]
    fn weigh<const N: usize, const IS_WIDE: bool>(
        &mut self,
        law: &StateWeights<'_, N>,
        states: &States,
        bases: &[u32; N],
        (counts, held): (&[Counts], &[Counts]),
    ) {
        let (rows, others) = (self.rows.as_chunks::<N>().0, self.others.as_chunks_mut::<N>().0);
        let of_states = rows.iter().zip(others);
        let of_states = of_states.zip(self.here.iter_mut().zip(&mut self.weights));
        for (state, ((rows, others), (here, weight))) in of_states.enumerate() {
            let held = held.get(state);
            let mut seen = Seen { others: [[0; LANES]; N], here: matching(states, state) };
            for factor in 0..N {
                let mut apart = counts[(bases[factor] + rows[factor]) as usize];
                if let Some(held) = held {
                    subtract(&mut apart, held);
                }
                others[factor] = apart;
                seen.others[factor] = apart;
            }
            if let Some(held) = held {
                add(&mut seen.here, held);
            }
            *here = seen.here;
            *weight = law.ratio::<IS_WIDE>(&seen, held.is_some());
        }
        // These loops are apart, so that states do not wait for each other.
        let has_urn = !held.is_empty();
        for (weight, here) in self.weights.iter_mut().zip(&self.here) {
            *weight = law.weight::<IS_WIDE>(&*weight, here, has_urn);
        }
        let mut total = [0.0; LANES];
        for (weight, sums) in self.weights.iter().zip(&mut self.sums) {
            for lane in 0..LANES {
                total[lane] += weight[lane];
            }
            *sums = total;
        }
    }

    /// Takes a token out of its states, puts the one before into its own, and weighs these states anew.
    #[inline(always)]
    fn weigh_moved<const N: usize, const IS_WIDE: bool>(
        &mut self,
        law: &StateWeights<'_, N>,
        [left, entered]: [&States; 2],
        has_urn: bool,
    ) {
        let nothing = Seen { others: [[0; LANES]; N], here: [0; LANES] };
        let (mut before, mut after) = (nothing, nothing);
        let of_states = self.here.iter_mut().zip(self.others.as_chunks::<N>().0);
        for (state, (here, others)) in of_states.enumerate() {
            let (out, into) = (matching(left, state), matching(entered, state));
            // Lane by lane with all factors inside: the other order is not vectorised.
            let mut now = *here;
            for lane in 0..LANES {
                now[lane] += out[lane] - into[lane];
                before.here[lane] |= now[lane] & out[lane];
                after.here[lane] |= now[lane] & into[lane];
                for (factor, counts) in others.iter().enumerate() {
                    before.others[factor][lane] |= counts[lane] & out[lane];
                    after.others[factor][lane] |= counts[lane] & into[lane];
                }
            }
            *here = now;
        }
        let ratio = law.ratio::<IS_WIDE>(&before, has_urn);
        let ratio_after = law.ratio::<IS_WIDE>(&after, has_urn);
        let before = law.weight::<IS_WIDE>(&ratio, &before.here, has_urn);
        let after = law.weight::<IS_WIDE>(&ratio_after, &after.here, has_urn);
        let mut total = [0.0; LANES];
        for (state, (weight, sums)) in self.weights.iter_mut().zip(&mut self.sums).enumerate() {
            let mut changed = *weight;
            replace(&mut changed, &before, &matching(left, state));
            replace(&mut changed, &after, &matching(entered, state));
            *weight = changed;
            for lane in 0..LANES {
                total[lane] += changed[lane];
            }
            *sums = total;
        }
    }

    /// Adds up weights of which ln are known, the largest being 1.
    #[inline(always)]
    fn add_up_wide(&mut self) {
        let (mut most, mut total) = ([f32::NEG_INFINITY; LANES], [0.0; LANES]);
        for ln_weights in &self.weights {
            for lane in 0..LANES {
                most[lane] =
                    if ln_weights[lane] > most[lane] { ln_weights[lane] } else { most[lane] };
            }
        }
        for (ln_weights, sums) in self.weights.iter().zip(&mut self.sums) {
            for lane in 0..LANES {
                total[lane] += single::exp(ln_weights[lane] - most[lane]);
            }
            *sums = total;
        }
    }

    /// Draws states from the cumulative weights.
    #[inline(always)]
    fn pick(&self, uniforms: &mut Uniforms) -> States {
        let Some(totals) = self.sums.last() else { return [0; LANES] };
        let (bits, mut darts) = (uniforms.next_bits(), [0.0; LANES]);
        for lane in 0..LANES {
            // The upper 24 bits: no dart reaches the total.
            darts[lane] = (bits[lane] >> 40) as i32 as f32 * (1.0 / 16_777_216.0) * totals[lane];
        }
        let (mut drawn, states) = ([WHOLE; LANES], 0..self.sums.len() - 1);
        // Sums of floats have an order, so that the compiler keeps lanes together: whole numbers it
        // adds up over states, and gathers.
        for sums in &self.sums[states] {
            for lane in 0..LANES {
                drawn[lane] += if sums[lane] <= darts[lane] { 1.0 } else { 0.0 };
            }
        }
        drawn.map(|state| state.to_bits() ^ WHOLE.to_bits())
    }

    /// Puts the last token into its states, and all of the urn into the counts.
    #[inline(always)]
    fn put_back<const N: usize>(
        &self,
        last: &States,
        bases: &[u32; N],
        (counts, held): (&mut [Counts], &mut [Counts]),
    ) {
        let (rows, others) = (self.rows.as_chunks::<N>().0, self.others.as_chunks::<N>().0);
        let of_states = rows.iter().zip(others);
        for (state, ((rows, others), here)) in of_states.zip(&self.here).enumerate() {
            let mut here = *here;
            subtract(&mut here, &matching(last, state));
            for factor in 0..self.n_factors {
                let mut all = others[factor];
                add(&mut all, &here);
                counts[(bases[factor] + rows[factor]) as usize] = all;
            }
            if let Some(held) = held.get_mut(state) {
                *held = here;
            }
        }
    }
}

/// Gibbs draws of the tokens of one cell.
#[polyabayes_macros::vectorised]
#[expect(clippy::too_many_arguments, reason = "the parts of the chains, borrowed apart")]
pub(crate) fn redraw(
    mixture: &mut PoweredMixture,
    clique: &Clique,
    bases: &[u32],
    tokens: &mut [States],
    order: SweepOrder,
    path: PathPoint<'_>,
    counts: &mut [Counts],
    held: &mut [Counts],
    uniforms: &mut Uniforms,
) {
    let (betas, kappa) = (path.betas.map(|beta| beta as f32), path.kappa as f32);
    let (cell, path, counts) = ((clique, bases), (&betas, kappa), (counts, held));
    match (mixture.factors.len(), mixture.is_wide) {
        (3, false) => mixture.draw::<3, false>(tokens, order, cell, path, counts, uniforms),
        (3, true) => mixture.draw::<3, true>(tokens, order, cell, path, counts, uniforms),
        (4, false) => mixture.draw::<4, false>(tokens, order, cell, path, counts, uniforms),
        (4, true) => mixture.draw::<4, true>(tokens, order, cell, path, counts, uniforms),
        (_, false) => mixture.draw::<8, false>(tokens, order, cell, path, counts, uniforms),
        (_, true) => mixture.draw::<8, true>(tokens, order, cell, path, counts, uniforms),
    }
}

//! Weights of a token on the power path γ_β ∝ π^β u^(1-β), a β for every lane.
//!
//! Under u the tokens of a cell are draws from a Pólya urn of its own, in which every joint state of
//! the hidden nodes weighs κ: the larger κ, the more evenly they spread. A token's weight of a state is
//! `(Π_U (α_U + S_U)^e)^β ((κ + n)/κ)^(1-β)`, n tokens of the cell being in that state.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

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
/// Weights are off by some 1e-7 of themselves: beside what a token weighs in ln γ, nothing. All weights
/// of a cell's first token are computed; after it only those of the states that a token has left or
/// entered since, which are two in each lane.
pub(crate) struct PoweredMixture {
    /// Pseudo-count and exponent of every factor, filled up with factors of exponent 0.
    factors: Vec<(f32, i32)>,
    /// Number of factors of the law.
    n_factors: usize,
    /// Whether products of factors may leave the range of single precision.
    is_wide: bool,
    /// Row of every factor of every state, factors varying fastest.
    rows: Vec<u32>,
    /// By how many the tokens in each state have become more since the cell was begun.
    moved: Vec<Counts>,
    ln_weights: Vec<Singles>,
    /// Cumulative sums of the weights.
    sums: Vec<Singles>,
}

/// Numbers of factors that kernels are compiled for.
const N_FACTORS: [usize; 3] = [3, 4, 8];

/// State of the token before the first of a cell: that of no token.
const NOWHERE: u32 = u32::MAX >> 1;

impl PoweredMixture {
    /// None where states share rows, or of more factors than kernels are compiled for.
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
        let is_wide = factors.iter().map(most_ln).sum::<f64>() > LN_RANGE;
        let n_factors = factors.len();
        let n_filled = N_FACTORS.into_iter().find(|&n| n >= n_factors)?;
        let mut factors: Vec<(f32, i32)> =
            factors.into_iter().map(|(alpha, exponent)| (alpha as f32, exponent)).collect();
        factors.resize(n_filled, (1.0, 0));
        let n_states = clique.n_states;
        clique.states_are_apart().then(|| PoweredMixture {
            factors,
            n_factors,
            is_wide,
            rows: vec![0; n_filled * n_states],
            moved: vec![[0; LANES]; n_states],
            ln_weights: vec![[0.0; LANES]; n_states],
            sums: vec![[0.0; LANES]; n_states],
        })
    }

    /// Looks up the rows of a cell.
    fn start(&mut self, clique: &Clique, bases: &[u32]) {
        let of_states = self.rows.chunks_exact_mut(self.factors.len());
        for (state, rows) in of_states.enumerate() {
            for (factor, row) in rows.iter_mut().enumerate().take(self.n_factors) {
                *row = clique.row(factor, state, bases) as u32;
            }
        }
        self.moved.fill([0; LANES]);
    }

    /// Draws the tokens of a cell one by one, and puts them into the counts.
    #[inline(always)]
    fn draw<const N: usize, const IS_WIDE: bool>(
        &mut self,
        tokens: &mut [States],
        order: Order,
        (betas, kappa): (&Singles, f32),
        (counts, held): (&mut [Counts], &mut [Counts]),
        uniforms: &mut Uniforms,
    ) {
        let mut law = Law { factors: [(1.0, 0); N], betas, scale: 1.0 / kappa };
        law.factors.copy_from_slice(&self.factors);
        let (n, mut last) = (tokens.len(), [NOWHERE; LANES]);
        for step in 0..n {
            let states = &mut tokens[order.nth(step, n)];
            if step == 0 {
                self.weigh::<N, IS_WIDE>(&law, states, (counts, held));
            } else {
                self.weigh_moved::<N, IS_WIDE>(&law, [states, &last], (counts, held));
            }
            self.accumulate();
            last = self.pick(uniforms);
            *states = last;
        }
        for state in 0..self.moved.len() {
            let (mut moved, entered) = (self.moved[state], matching(&last, state));
            subtract(&mut moved, &entered);
            for &row in &self.rows[state * N..][..self.n_factors] {
                add(&mut counts[row as usize], &moved);
            }
            if let Some(held) = held.get_mut(state) {
                add(held, &moved);
            }
        }
    }

    /// Takes the first token of a cell out of its states, and computes ln of all weights without it.
    #[inline(always)]
    fn weigh<const N: usize, const IS_WIDE: bool>(
        &mut self,
        law: &Law<'_, N>,
        states: &States,
        (counts, held): (&[Counts], &[Counts]),
    ) {
        for state in 0..self.moved.len() {
            let own = matching(states, state);
            let mut seen = Seen { rows: [own; N], held: own };
            for (seen, &row) in seen.rows.iter_mut().zip(&self.rows[state * N..][..N]) {
                add(seen, &counts[row as usize]);
            }
            let held = held.get(state);
            if let Some(held) = held {
                add(&mut seen.held, held);
            }
            self.ln_weights[state] = law.ln_weight::<IS_WIDE>(&seen, held.is_some());
            self.moved[state] = own;
        }
    }

    /// Takes a token out of its states, puts the one before into its own, and computes ln of the weights
    /// of these states anew.
    #[inline(always)]
    fn weigh_moved<const N: usize, const IS_WIDE: bool>(
        &mut self,
        law: &Law<'_, N>,
        [left, entered]: [&States; 2],
        (counts, held): (&[Counts], &[Counts]),
    ) {
        let nothing = Seen { rows: [[0; LANES]; N], held: [0; LANES] };
        let (mut before, mut after) = (nothing, nothing);
        let mut moved = [[0; LANES]; 2];
        for state in 0..self.moved.len() {
            let (out, into) = (matching(left, state), matching(entered, state));
            for factor in 0..N {
                let counts = &counts[self.rows[state * N + factor] as usize];
                keep(&mut before.rows[factor], counts, &out);
                keep(&mut after.rows[factor], counts, &into);
            }
            if let Some(held) = held.get(state) {
                keep(&mut before.held, held, &out);
                keep(&mut after.held, held, &into);
            }
            keep(&mut moved[0], &self.moved[state], &out);
            keep(&mut moved[1], &self.moved[state], &into);
        }
        for lane in 0..LANES {
            let changed = i32::from(left[lane] != entered[lane]);
            moved[0][lane] -= changed;
            moved[1][lane] += changed;
        }
        before.shift(&moved[0]);
        after.shift(&moved[1]);
        let before = law.ln_weight::<IS_WIDE>(&before, !held.is_empty());
        let after = law.ln_weight::<IS_WIDE>(&after, !held.is_empty());
        for state in 0..self.moved.len() {
            let (out, into) = (matching(left, state), matching(entered, state));
            let (mut ln_weights, mut moved) = (self.ln_weights[state], self.moved[state]);
            replace(&mut ln_weights, &before, &out);
            replace(&mut ln_weights, &after, &into);
            self.ln_weights[state] = ln_weights;
            add(&mut moved, &out);
            subtract(&mut moved, &into);
            self.moved[state] = moved;
        }
    }

    /// Adds up the weights, the largest being 1.
    #[inline(always)]
    fn accumulate(&mut self) {
        let (mut most, mut total) = ([f32::NEG_INFINITY; LANES], [0.0; LANES]);
        for ln_weights in &self.ln_weights {
            for lane in 0..LANES {
                most[lane] =
                    if ln_weights[lane] > most[lane] { ln_weights[lane] } else { most[lane] };
            }
        }
        for (ln_weights, sums) in self.ln_weights.iter().zip(&mut self.sums) {
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
            darts[lane] = (bits[lane] >> 40) as u32 as f32 * (1.0 / 16_777_216.0) * totals[lane];
        }
        let (mut drawn, states) = ([0.0_f32; LANES], 0..self.sums.len() - 1);
        // Sums of floats have an order, so that the compiler keeps lanes together: whole numbers it
        // adds up over states, and gathers.
        for sums in &self.sums[states] {
            for lane in 0..LANES {
                drawn[lane] += if sums[lane] <= darts[lane] { 1.0 } else { 0.0 };
            }
        }
        drawn.map(|state| state as u32)
    }
}

/// Counts that a token meets in a state of every lane: those of all factors, and of its cell.
#[derive(Clone, Copy)]
struct Seen<const N: usize> {
    rows: [Counts; N],
    held: Counts,
}

impl<const N: usize> Seen<N> {
    #[inline(always)]
    fn shift(&mut self, by: &Counts) {
        self.rows.iter_mut().for_each(|counts| add(counts, by));
        add(&mut self.held, by);
    }
}

/// Weights of states by their counts.
struct Law<'a, const N: usize> {
    factors: [(f32, i32); N],
    betas: &'a Singles,
    /// 1/κ.
    scale: f32,
}

impl<const N: usize> Law<'_, N> {
    /// ln of a state's weight at β.
    #[inline(always)]
    fn ln_weight<const IS_WIDE: bool>(&self, seen: &Seen<N>, has_urn: bool) -> Singles {
        let betas = *self.betas;
        let mut ln_weight = self.ln_law::<IS_WIDE>(&seen.rows);
        for lane in 0..LANES {
            ln_weight[lane] *= betas[lane];
        }
        if has_urn {
            for lane in 0..LANES {
                let urn = 1.0 + seen.held[lane] as f32 * self.scale;
                ln_weight[lane] += (1.0 - betas[lane]) * single::ln(urn);
            }
        }
        ln_weight
    }

    /// ln of the product of the factors.
    #[inline(always)]
    fn ln_law<const IS_WIDE: bool>(&self, rows: &[Counts; N]) -> Singles {
        let one = if IS_WIDE { [0.0; LANES] } else { [1.0; LANES] };
        let (mut above, mut below) = (one, one);
        for (&(alpha, exponent), counts) in self.factors.iter().zip(rows) {
            let (mut sizes, times) = ([0.0; LANES], exponent.unsigned_abs());
            for lane in 0..LANES {
                sizes[lane] = alpha + counts[lane] as f32;
            }
            if exponent > 0 {
                multiply::<IS_WIDE>(&mut above, &sizes, times);
            } else {
                multiply::<IS_WIDE>(&mut below, &sizes, times);
            }
        }
        for lane in 0..LANES {
            let (over, under) = (above[lane], below[lane]);
            above[lane] = if IS_WIDE { over - under } else { single::ln(over / under) };
        }
        above
    }
}

/// Multiplies by a power of sizes, or adds ln of it.
#[inline(always)]
fn multiply<const IS_WIDE: bool>(product: &mut Singles, sizes: &Singles, times: u32) {
    if IS_WIDE {
        for lane in 0..LANES {
            product[lane] += times as f32 * single::ln(sizes[lane]);
        }
        return;
    }
    for _ in 0..times {
        for lane in 0..LANES {
            product[lane] *= sizes[lane];
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

#[inline(always)]
fn add(counts: &mut Counts, by: &Counts) {
    for lane in 0..LANES {
        counts[lane] += by[lane];
    }
}

#[inline(always)]
fn subtract(counts: &mut Counts, by: &Counts) {
    for lane in 0..LANES {
        counts[lane] -= by[lane];
    }
}

/// Takes over counts in the lanes that match, where there was nothing.
#[inline(always)]
fn keep(kept: &mut Counts, counts: &Counts, matching: &Counts) {
    for lane in 0..LANES {
        kept[lane] |= counts[lane] & matching[lane];
    }
}

/// Puts other numbers into the lanes that match.
#[inline(always)]
fn replace(numbers: &mut Singles, others: &Singles, matching: &Counts) {
    for lane in 0..LANES {
        let mask = matching[lane] as u32;
        let bits = numbers[lane].to_bits() & !mask | others[lane].to_bits() & mask;
        numbers[lane] = f32::from_bits(bits);
    }
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
    mixture.start(clique, bases);
    let (path, counts) = ((&betas, kappa), (counts, held));
    match (mixture.factors.len(), mixture.is_wide) {
        (3, false) => mixture.draw::<3, false>(tokens, order, path, counts, uniforms),
        (3, true) => mixture.draw::<3, true>(tokens, order, path, counts, uniforms),
        (4, false) => mixture.draw::<4, false>(tokens, order, path, counts, uniforms),
        (4, true) => mixture.draw::<4, true>(tokens, order, path, counts, uniforms),
        (_, false) => mixture.draw::<8, false>(tokens, order, path, counts, uniforms),
        (_, true) => mixture.draw::<8, true>(tokens, order, path, counts, uniforms),
    }
}

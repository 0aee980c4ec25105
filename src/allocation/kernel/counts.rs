//! The urn of a network, many particles or chains at a time.
//!
//! A token of visible values v draws the values h of the hidden nodes with weight
//! `Π_U (base_U + unit S_U)^power` over the margins U at (v, h), and adds one to each of them. The
//! arithmetic has no branch that depends on a lane: it runs in vector registers, as wide as the
//! processor has them, and its results are the same bits whatever their width.

// Each kernel is compiled for several instruction sets, with all its parts in it.
#![allow(clippy::inline_always)]

use std::ops::Range;

use crate::allocation::model::plan::{Clique, EliminationPlan};
use crate::allocation::model::problem::Problem;
use crate::math::pick_lanes;
use crate::rng::{LANES, Lanes, UniformLanes};

/// Weights that draws are proportional to: base counts of all rows, and how much a token adds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountWeights<'a> {
    pub(crate) base: &'a [f64],
    pub(crate) unit: f64,
}

/// One marginal count, in every lane.
pub(crate) type Counts = [i32; LANES];

/// Joint state of every clique, in every lane.
pub(crate) type States = [u32; LANES];

/// Marginal counts of [`LANES`] particles or chains, as a token sees them: by the factors of a
/// clique at its joint states.
pub(crate) trait Token {
    /// Product of all factors of a clique in a state, in every lane.
    fn product(&self, clique: &Clique, state: usize) -> Lanes;

    /// Adds to the count in one lane.
    fn add(&mut self, clique: &Clique, factor: usize, state: usize, lane: usize, x: i32);

    /// Adds to the counts in all lanes.
    fn add_all(&mut self, clique: &Clique, factor: usize, state: usize, x: &Counts);
}

/// Marginal counts row after row, and the first row of each slot of a token.
pub(crate) struct Rows<'a> {
    pub(crate) counts: &'a mut [Counts],
    pub(crate) bases: &'a [u32],
    pub(crate) target: CountWeights<'a>,
}

/// Sizes of factors, base + unit S, in every lane. A trait and not a closure, which the compiler may
/// leave out of the kernels that call it.
pub(crate) trait Sizes {
    /// Size of a factor in a state.
    fn sizes(&self, clique: &Clique, factor: usize, state: usize) -> Lanes;
}

impl Sizes for Rows<'_> {
    #[inline(always)]
    fn sizes(&self, clique: &Clique, factor: usize, state: usize) -> Lanes {
        let row = clique.row(factor, state, self.bases);
        let mut base = self.target.base[row];
        if clique.factors[factor].tied {
            base += self.target.unit * f64::from(clique.own_hits(factor, state, self.bases));
        }
        let (counts, mut sizes) = (&self.counts[row], [0.0; LANES]);
        for lane in 0..LANES {
            sizes[lane] = base + self.target.unit * f64::from(counts[lane]);
        }
        sizes
    }
}

impl Token for Rows<'_> {
    #[inline(always)]
    fn product(&self, clique: &Clique, state: usize) -> Lanes {
        quotient(clique, state, self)
    }

    #[inline(always)]
    fn add(&mut self, clique: &Clique, factor: usize, state: usize, lane: usize, x: i32) {
        self.counts[clique.row(factor, state, self.bases)][lane] += x;
    }

    #[inline(always)]
    fn add_all(&mut self, clique: &Clique, factor: usize, state: usize, x: &Counts) {
        let counts = &mut self.counts[clique.row(factor, state, self.bases)];
        for lane in 0..LANES {
            counts[lane] += x[lane];
        }
    }
}

/// Fills the cumulative weights of all cliques' states; returns the weights of the token.
#[polyabayes_macros::vectorised]
pub(crate) fn weigh(plan: &EliminationPlan, token: &impl Token, sums: &mut [Lanes]) -> Lanes {
    weigh_token(plan, token, sums)
}

/// Draws the states of a token from the weights last computed.
#[polyabayes_macros::vectorised]
pub(crate) fn pick(
    plan: &EliminationPlan,
    sums: &[Lanes],
    uniforms: &mut impl UniformLanes,
    states: &mut [States],
) {
    pick_token(plan, sums, uniforms, states);
}

/// Adds `x` to the counts of a token's states.
#[polyabayes_macros::vectorised]
pub(crate) fn add(plan: &EliminationPlan, token: &mut impl Token, states: &[States], x: i32) {
    add_token(plan, token, states, x);
}

/// Adds one to the counts of a token's states in one lane.
pub(crate) fn add_lane(
    plan: &EliminationPlan,
    token: &mut impl Token,
    states: &[States],
    lane: usize,
) {
    for (clique, states) in plan.cliques.iter().zip(states) {
        add_clique(clique, token, states[lane] as usize, lane, 1);
    }
}

/// Adds tokens of these cells, in their states, to the counts.
#[polyabayes_macros::vectorised]
pub(crate) fn add_tokens(
    problem: &Problem,
    cells: &[u32],
    states: &[States],
    target: CountWeights<'_>,
    counts: &mut [Counts],
) {
    for (&cell, states) in cells.iter().zip(states.chunks_exact(problem.n_cliques())) {
        let mut token = Rows { counts, bases: problem.bases(cell), target };
        add_token(problem.plan(cell), &mut token, states, 1);
    }
}

/// One Gibbs sweep over tokens of these cells.
#[polyabayes_macros::vectorised]
#[expect(clippy::too_many_arguments, reason = "the parts of the chains, borrowed apart")]
pub(crate) fn sweep(
    problem: &Problem,
    tokens: impl Iterator<Item = usize>,
    cells: &[u32],
    target: CountWeights<'_>,
    counts: &mut [Counts],
    states: &mut [States],
    sums: &mut [Lanes],
    uniforms: &mut impl UniformLanes,
) {
    let n_cliques = problem.n_cliques();
    for token in tokens {
        let (plan, bases) = (problem.plan(cells[token]), problem.bases(cells[token]));
        let states = &mut states[token * n_cliques..][..n_cliques];
        let mut token = Rows { counts, bases, target };
        if let Some(clique) = plan.mixture() {
            redraw_apart(clique, &mut token, &mut states[0], sums, uniforms);
            continue;
        }
        add_token(plan, &mut token, states, -1);
        weigh_token(plan, &token, sums);
        pick_token(plan, sums, uniforms, states);
        add_token(plan, &mut token, states, 1);
    }
}

/// Counts without a token that is in one state of each lane. Rows that all states share are left
/// out: they scale all weights alike.
struct Without<'a> {
    rows: &'a Rows<'a>,
    /// 1 in the lanes where the token is in the state that is weighed.
    taken: Counts,
}

impl Sizes for Without<'_> {
    #[inline(always)]
    fn sizes(&self, clique: &Clique, factor: usize, state: usize) -> Lanes {
        let Rows { counts, bases, target } = self.rows;
        if clique.factors[factor].is_constant {
            return [1.0; LANES];
        }
        let row = clique.row(factor, state, bases);
        let (base, counts, mut sizes) = (target.base[row], &counts[row], [0.0; LANES]);
        for lane in 0..LANES {
            sizes[lane] = base + target.unit * f64::from(counts[lane] - self.taken[lane]);
        }
        sizes
    }
}

/// A Gibbs draw of a token whose states share no rows, but those that all share: their counts are
/// read once, and written only where a lane leaves its state.
#[inline(always)]
fn redraw_apart(
    clique: &Clique,
    rows: &mut Rows<'_>,
    states: &mut States,
    sums: &mut [Lanes],
    uniforms: &mut impl UniformLanes,
) {
    let mut total = [0.0; LANES];
    for (state, sums) in sums[..clique.n_states].iter_mut().enumerate() {
        let taken = in_state(states, state);
        let weight = quotient(clique, state, &Without { rows, taken });
        for lane in 0..LANES {
            total[lane] += weight[lane];
        }
        *sums = total;
    }
    let drawn = pick_lanes(&sums[..clique.n_states], uniforms.next());
    for state in 0..clique.n_states {
        let (mut moved, taken) = (in_state(&drawn, state), in_state(states, state));
        for lane in 0..LANES {
            moved[lane] -= taken[lane];
        }
        if moved != [0; LANES] {
            for factor in 0..clique.factors.len() {
                if !clique.factors[factor].is_constant {
                    rows.add_all(clique, factor, state, &moved);
                }
            }
        }
    }
    *states = drawn;
}

/// 1 in the lanes that are in a state.
#[inline(always)]
fn in_state(states: &States, state: usize) -> Counts {
    let mut found = [0; LANES];
    for lane in 0..LANES {
        found[lane] = i32::from(states[lane] == state as u32);
    }
    found
}

#[inline(always)]
fn weigh_token(plan: &EliminationPlan, token: &impl Token, sums: &mut [Lanes]) -> Lanes {
    for clique in &plan.cliques {
        let mut total = [0.0; LANES];
        for state in 0..clique.n_states {
            if state % clique.n_inner == 0 {
                total = [0.0; LANES];
            }
            let weight = weigh_state(plan, clique, state, token, sums);
            for lane in 0..LANES {
                total[lane] += weight[lane];
            }
            sums[clique.start + state] = total;
        }
    }
    let mut weight = [1.0; LANES];
    for &root in &plan.roots {
        let clique = &plan.cliques[root];
        let total = &sums[clique.start + clique.n_states - 1];
        for lane in 0..LANES {
            weight[lane] *= total[lane];
        }
    }
    weight
}

#[inline(always)]
fn weigh_state(
    plan: &EliminationPlan,
    clique: &Clique,
    state: usize,
    token: &impl Token,
    sums: &[Lanes],
) -> Lanes {
    let mut above = token.product(clique, state);
    for (child, separators) in &clique.children {
        let child = &plan.cliques[*child];
        let end = (separators[state] as usize + 1) * child.n_inner;
        let message = &sums[child.start + end - 1];
        for lane in 0..LANES {
            above[lane] *= message[lane];
        }
    }
    above
}

/// Product of the factors of a clique to their powers, given their sizes.
#[inline(always)]
pub(crate) fn quotient(clique: &Clique, state: usize, token: &impl Sizes) -> Lanes {
    let (n_above, n_factors) = (clique.n_above, clique.factors.len());
    let mut above = product(clique, state, 0..n_above, token);
    if n_above < n_factors {
        let below = product(clique, state, n_above..n_factors, token);
        for lane in 0..LANES {
            above[lane] /= below[lane];
        }
    }
    above
}

/// Product of factors, whatever the sign of their power.
#[inline(always)]
fn product(clique: &Clique, state: usize, factors: Range<usize>, token: &impl Sizes) -> Lanes {
    let mut product = [1.0; LANES];
    for factor in factors {
        let mut power = token.sizes(clique, factor, state);
        let mut left = clique.factors[factor].exponent.unsigned_abs();
        while left > 0 {
            if left % 2 == 1 {
                for lane in 0..LANES {
                    product[lane] *= power[lane];
                }
            }
            left /= 2;
            if left > 0 {
                for x in &mut power {
                    *x *= *x;
                }
            }
        }
    }
    product
}

#[inline(always)]
fn pick_token(
    plan: &EliminationPlan,
    sums: &[Lanes],
    uniforms: &mut impl UniformLanes,
    states: &mut [States],
) {
    // A clique's separator is known when the clique above has its state.
    for index in (0..plan.cliques.len()).rev() {
        let clique = &plan.cliques[index];
        let darts = uniforms.next();
        states[index] = match plan.above(index) {
            None => pick_lanes(&sums[clique.start..][..clique.n_inner], darts),
            Some((above, separators)) => {
                let separator = states[above].map(|state| separators[state as usize]);
                pick_below(clique, sums, separator, darts)
            }
        };
    }
}

#[inline(always)]
fn pick_below(clique: &Clique, sums: &[Lanes], separator: States, darts: Lanes) -> States {
    let mut states = [0; LANES];
    for lane in 0..LANES {
        let first = separator[lane] as usize * clique.n_inner;
        let sums = &sums[clique.start + first..][..clique.n_inner];
        let total = sums[sums.len() - 1][lane];
        let dart = (darts[lane] * total).min(total.next_down());
        let passed = sums.iter().filter(|sums| sums[lane] <= dart).count();
        states[lane] = (first + passed) as u32;
    }
    states
}

#[inline(always)]
fn add_token(plan: &EliminationPlan, token: &mut impl Token, states: &[States], x: i32) {
    for (clique, states) in plan.cliques.iter().zip(states) {
        if clique.n_states > LANES {
            for (lane, &state) in states.iter().enumerate() {
                add_clique(clique, token, state as usize, lane, x);
            }
            continue;
        }
        for state in 0..clique.n_states {
            let mut added = [0; LANES];
            for lane in 0..LANES {
                added[lane] = if states[lane] == state as u32 { x } else { 0 };
            }
            for factor in 0..clique.factors.len() {
                token.add_all(clique, factor, state, &added);
            }
        }
    }
}

#[inline(always)]
fn add_clique(clique: &Clique, token: &mut impl Token, state: usize, lane: usize, x: i32) {
    for factor in 0..clique.factors.len() {
        token.add(clique, factor, state, lane, x);
    }
}

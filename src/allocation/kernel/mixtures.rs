//! Gibbs draws where no two states of a token share a row of counts: in mixtures, a cell at a time.
//!
//! The weights of a cell's tokens are built from the same rows, which are looked up once.

// Compiled for several instruction sets, with all its parts in it.
#![allow(clippy::inline_always)]

use super::counts::{CountWeights, Counts, States};
use crate::allocation::model::plan::Clique;
use crate::allocation::model::problem::Problem;
use crate::math::pick_lanes;
use crate::rng::{LANES, Lanes, UniformLanes};

/// Buffers of the draws.
pub(crate) struct MixtureScratch {
    /// base + unit S of all factors of a state, state after state.
    sizes: Vec<Lanes>,
    /// By how much the tokens of each state have become more.
    moved: Vec<Counts>,
}

impl MixtureScratch {
    /// None where states share rows.
    pub(crate) fn new(problem: &Problem) -> Option<Self> {
        let clique = problem.is_joint().then(|| &problem.plan.cliques[0])?;
        clique.is_apart.then(|| MixtureScratch {
            sizes: vec![[0.0; LANES]; clique.factors.len() * clique.n_states],
            moved: vec![[0; LANES]; clique.n_states],
        })
    }

    #[inline(always)]
    fn load(&mut self, clique: &Clique, bases: &[u32], target: CountWeights<'_>, rows: &[Counts]) {
        let n_factors = clique.factors.len();
        for (state, sizes) in self.sizes.chunks_exact_mut(n_factors).enumerate() {
            for (factor, sizes) in sizes.iter_mut().enumerate() {
                let row = clique.row(factor, state, bases);
                let (base, counts) = (target.base[row], &rows[row]);
                for lane in 0..LANES {
                    sizes[lane] = base + target.unit * f64::from(counts[lane]);
                }
            }
        }
        self.moved.fill([0; LANES]);
    }

    #[inline(always)]
    fn store(&self, clique: &Clique, bases: &[u32], rows: &mut [Counts]) {
        for (state, moved) in self.moved.iter().enumerate() {
            for factor in 0..clique.factors.len() {
                let counts = &mut rows[clique.row(factor, state, bases)];
                for lane in 0..LANES {
                    counts[lane] += moved[lane];
                }
            }
        }
    }

    /// Takes a token out of its states, and fills the cumulative weights without it.
    #[inline(always)]
    fn weigh(&mut self, clique: &Clique, unit: f64, states: &States, sums: &mut [Lanes]) {
        let mut total = [0.0; LANES];
        let of_states = self.sizes.chunks_exact_mut(clique.factors.len()).zip(&mut self.moved);
        for (state, ((sizes, moved), sums)) in (0..).zip(of_states.zip(sums)) {
            let mut taken = [0.0; LANES];
            for lane in 0..LANES {
                taken[lane] = if states[lane] == state { unit } else { 0.0 };
                moved[lane] -= i32::from(states[lane] == state);
            }
            let (mut above, mut below) = ([1.0; LANES], [1.0; LANES]);
            for (factor, sizes) in clique.factors.iter().zip(sizes) {
                for lane in 0..LANES {
                    sizes[lane] -= taken[lane];
                }
                let product = if factor.exponent > 0 { &mut above } else { &mut below };
                for _ in 0..factor.exponent.unsigned_abs() {
                    multiply(product, sizes);
                }
            }
            for lane in 0..LANES {
                total[lane] += above[lane] / below[lane];
            }
            *sums = total;
        }
    }

    /// Puts a token into its states.
    #[inline(always)]
    fn add(&mut self, clique: &Clique, unit: f64, states: &States) {
        let of_states = self.sizes.chunks_exact_mut(clique.factors.len()).zip(&mut self.moved);
        for (state, (sizes, moved)) in (0..).zip(of_states) {
            let mut put = [0.0; LANES];
            for lane in 0..LANES {
                put[lane] = if states[lane] == state { unit } else { 0.0 };
                moved[lane] += i32::from(states[lane] == state);
            }
            for sizes in sizes {
                for lane in 0..LANES {
                    sizes[lane] += put[lane];
                }
            }
        }
    }
}

#[inline(always)]
fn multiply(product: &mut Lanes, sizes: &Lanes) {
    for lane in 0..LANES {
        product[lane] *= sizes[lane];
    }
}

/// Gibbs draws of the tokens of one cell.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
#[expect(clippy::too_many_arguments, reason = "the parts of the chains, borrowed apart")]
pub(crate) fn redraw(
    mixture: &mut MixtureScratch,
    clique: &Clique,
    bases: &[u32],
    tokens: &mut [States],
    target: CountWeights<'_>,
    rows: &mut [Counts],
    sums: &mut [Lanes],
    uniforms: &mut impl UniformLanes,
) {
    mixture.load(clique, bases, target, rows);
    for states in tokens {
        mixture.weigh(clique, target.unit, states, sums);
        *states = pick_lanes(sums, uniforms.next());
        mixture.add(clique, target.unit, states);
    }
    mixture.store(clique, bases, rows);
}

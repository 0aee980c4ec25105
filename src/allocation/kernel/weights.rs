//! Weights of a token's states on the power path, in single precision, a lane for every chain.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use super::counts::{Counts, States};
use crate::math::elementary::single;
use crate::rng::LANES;

/// Numbers in single precision, one for every lane.
pub(super) type Singles = [f32; LANES];

/// Counts that a token meets in a state of every lane.
#[derive(Clone, Copy)]
pub(super) struct Seen<const N: usize> {
    /// Tokens that are not in its urn, factor after factor.
    pub(super) others: [Counts; N],
    /// Tokens of its urn.
    pub(super) here: Counts,
}

/// Weights of states by their counts.
pub(super) struct StateWeights<'a, const N: usize> {
    pub(super) factors: [(f32, u32); N],
    pub(super) n_above: usize,
    pub(super) betas: &'a Singles,
    /// 1/κ.
    pub(super) scale: f32,
}

impl<const N: usize> StateWeights<'_, N> {
    /// The distribution of a state over its weight in the urn, or ln of it.
    #[inline(always)]
    pub(super) fn ratio<const IS_WIDE: bool>(&self, seen: &Seen<N>, has_urn: bool) -> Singles {
        let (mut above, mut below) = self.law::<IS_WIDE>(seen);
        if has_urn {
            multiply::<IS_WIDE>(&mut below, &self.urn(&seen.here), 1);
        }
        for lane in 0..LANES {
            let (over, under) = (above[lane], below[lane]);
            above[lane] = if IS_WIDE { over - under } else { over / under };
        }
        above
    }

    /// The weight at β of a state with such a ratio, or ln of it.
    #[inline(always)]
    pub(super) fn weight<const IS_WIDE: bool>(
        &self,
        ratio: &Singles,
        here: &Counts,
        has_urn: bool,
    ) -> Singles {
        let mut weight = [0.0; LANES];
        for lane in 0..LANES {
            weight[lane] = if IS_WIDE {
                self.betas[lane] * ratio[lane]
            } else {
                single::power(ratio[lane], self.betas[lane])
            };
        }
        if has_urn {
            let urn = self.urn(here);
            for lane in 0..LANES {
                weight[lane] = if IS_WIDE {
                    weight[lane] + single::ln(urn[lane])
                } else {
                    weight[lane] * urn[lane]
                };
            }
        }
        weight
    }

    /// Weight of a state in the urn: 1 without tokens.
    #[inline(always)]
    fn urn(&self, here: &Counts) -> Singles {
        let mut urn = [0.0; LANES];
        for lane in 0..LANES {
            urn[lane] = 1.0 + here[lane] as f32 * self.scale;
        }
        urn
    }

    /// The products of the factors above and below the line of the distribution, or ln of them.
    #[inline(always)]
    fn law<const IS_WIDE: bool>(&self, seen: &Seen<N>) -> (Singles, Singles) {
        let one = [if IS_WIDE { 0.0 } else { 1.0 }; LANES];
        let (mut above, mut below) = (one, one);
        for factor in 0..N {
            let (mut sizes, others) = ([0.0; LANES], &seen.others[factor]);
            let (alpha, times) = self.factors[factor];
            for lane in 0..LANES {
                sizes[lane] = alpha + (others[lane] + seen.here[lane]) as f32;
            }
            if factor < self.n_above {
                multiply::<IS_WIDE>(&mut above, &sizes, times);
            } else {
                multiply::<IS_WIDE>(&mut below, &sizes, times);
            }
        }
        (above, below)
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
pub(super) fn matching(states: &States, state: usize) -> Counts {
    let mut matching = [0; LANES];
    for lane in 0..LANES {
        matching[lane] = if states[lane] == state as u32 { -1 } else { 0 };
    }
    matching
}

#[inline(always)]
pub(super) fn add(counts: &mut Counts, by: &Counts) {
    for lane in 0..LANES {
        counts[lane] += by[lane];
    }
}

#[inline(always)]
pub(super) fn subtract(counts: &mut Counts, by: &Counts) {
    for lane in 0..LANES {
        counts[lane] -= by[lane];
    }
}

/// Puts other numbers into the lanes that match.
#[inline(always)]
pub(super) fn replace(numbers: &mut Singles, others: &Singles, matching: &Counts) {
    for lane in 0..LANES {
        let mask = matching[lane] as u32;
        let bits = numbers[lane].to_bits() & !mask | others[lane].to_bits() & mask;
        numbers[lane] = f32::from_bits(bits);
    }
}

//! Categorical draws: one by one, and in all lanes at a time.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use crate::rng::{LANES, Lanes, map_lanes};

/// Index of the weight on which a dart falls that was thrown between 0 and the sum of the weights:
/// never a weight of zero; `None` where no weight is positive.
///
/// Rounding may carry the dart past the end: the last positive weight takes it.
#[inline]
pub fn pick(weights: impl IntoIterator<Item = f64>, mut dart: f64) -> Option<usize> {
    let mut chosen = None;
    for (index, weight) in weights.into_iter().enumerate() {
        if weight > 0.0 {
            chosen = Some(index);
            if dart < weight {
                break;
            }
            dart -= weight;
        }
    }
    chosen
}

/// Index drawn in every lane with probability proportional to weights whose cumulative sums are
/// given, from one uniform number a lane.
///
/// The last sum is not compared: no uniform number times the total reaches it.
#[inline(always)]
pub fn pick_lanes(sums: &[Lanes], mut uniforms: Lanes) -> [u32; LANES] {
    let Some((totals, sums)) = sums.split_last() else { return [0; LANES] };
    for lane in 0..LANES {
        uniforms[lane] *= totals[lane];
    }
    // Counted in doubles: whole numbers take half as many instructions again without AVX-512.
    let mut passed = [0.0; LANES];
    for sums in sums {
        for lane in 0..LANES {
            passed[lane] += if sums[lane] <= uniforms[lane] { 1.0 } else { 0.0 };
        }
    }
    map_lanes(passed, |n| n as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dart_falls_on_a_positive_weight_however_it_is_rounded() {
        let weights = [0.0, 1.0, 0.0, 2.0, 0.0];
        for (dart, index) in [(0.0, 1), (0.5, 1), (1.0, 3), (2.9, 3), (3.0, 3), (3.1, 3)] {
            assert_eq!(pick(weights, dart), Some(index), "{dart}");
        }
        assert_eq!(pick([0.0, 0.0], 0.0), None);
        assert_eq!(pick([], 0.0), None);
    }
}

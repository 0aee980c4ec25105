//! Draws by the inverse of a cumulative distribution that is summed in single precision.
//!
//! Weight k is in lane k mod [`LANES`] of line k / [`LANES`]. The weights are accumulated lane by lane
//! in the order of [`in_order`], and within a lane line by line. A draw is the weight at which the sum
//! passes u times the total.

// Inlined into loops that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use super::tallies::Word;
use crate::math::elementary::single::ROUNDING;

/// Weights that are summed side by side.
pub(super) const LANES: usize = 16;

/// Topic that stands for a draw that single precision cannot tell.
pub(super) const OPEN: u32 = u32::MAX;

/// Total weight below which single precision may have lost some of its parts.
pub(super) const LEAST_TOTAL: f32 = 1e-15;

/// Weights that are left out of sums in single precision, where they would make it slow.
pub(super) const LEAST: f32 = 1e-33;

// However many tokens there are, the weights left out sum to less than a rounding of the total.
const _: () = assert!(u32::MAX as f64 * LEAST as f64 / (LEAST_TOTAL as f64) < ROUNDING as f64);

/// Numbers for [`LANES`] neighbouring weights, which never lie across two cache lines.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct LaneBlock(pub(super) [f32; LANES]);

impl LaneBlock {
    pub(super) const ZERO: LaneBlock = LaneBlock([0.0; LANES]);
}

/// Weights in the order in which they are accumulated.
pub(super) fn in_order(n: usize) -> impl Iterator<Item = usize> + Clone {
    let lanes = (0..LANES).map(|i| i.reverse_bits() >> (usize::BITS - LANES.ilog2()));
    lanes.flat_map(move |lane| (lane..n).step_by(LANES))
}

/// The item at u, its weights summed in double precision; `None` where no weight is positive. Rounding
/// may carry u past all of them: then it is the last that is possible.
pub(super) fn invert_exactly<T>(
    weights: impl Iterator<Item = (T, f64)> + Clone,
    u: f64,
) -> Option<T> {
    let total = weights.clone().map(|(_, weight)| weight).sum::<f64>();
    pass(weights, u * total)
}

/// The item at which the sum of the weights passes `rest`, or the last that is possible.
pub(super) fn pass<T>(weights: impl Iterator<Item = (T, f64)>, mut rest: f64) -> Option<T> {
    let mut last = None;
    for (item, weight) in weights.filter(|(_, weight)| *weight > 0.0) {
        last = Some(item);
        rest -= weight;
        if rest < 0.0 {
            break;
        }
    }
    last
}

/// Lane of a draw, and what is left of u there.
#[derive(Clone, Copy)]
pub(super) struct LaneDraw {
    pub(super) lane: usize,
    /// Rest of u times the total in its lane.
    pub(super) rest: f32,
    /// Sum of all weights.
    pub(super) total: f32,
}

impl LaneDraw {
    pub(super) const ZERO: LaneDraw = LaneDraw { lane: 0, rest: 0.0, total: 0.0 };

    /// The line of its lane, given the sums by lane before each line and in all.
    #[inline(always)]
    pub(super) fn line(&self, sums: &[LaneBlock]) -> usize {
        let (mut line, mut n_left) = (0, sums.len() - 1);
        while n_left > 1 {
            let half = n_left / 2;
            let is_beyond = sums[line + half].0[self.lane % LANES] <= self.rest;
            line += std::hint::select_unpredictable(is_beyond, half, 0);
            n_left -= half;
        }
        line
    }

    /// The weight of this line, if both its limits are further away than `margin`.
    #[inline(always)]
    pub(super) fn decide(&self, sums: &[LaneBlock], line: usize, margin: f32) -> Option<usize> {
        let lane = self.lane % LANES;
        let above = sums.get(line + 1)?.0[lane] - self.rest;
        let below = self.rest - sums[line].0[lane];
        let inside = below.min(above) > margin && self.total > LEAST_TOTAL;
        inside.then_some(line * LANES + lane)
    }
}

/// Lane of u times the sum of all weights, which are those of some lanes and others `beside`, where it
/// is in these lanes; its `total` is that of the lanes.
#[inline(always)]
pub(super) fn throw(lanes: &LaneBlock, u: f32, beside: f32) -> LaneDraw {
    let sums = LaneSums::new(lanes);
    let (lane, rest) = sums.choose(u * (sums.total + beside));
    LaneDraw { lane, rest, total: sums.total }
}

/// [`throw`] without steps that wait for each other: the sums before all lanes, and how many of them
/// are beyond the number.
#[polyabayes_macros::avx512]
pub(super) fn throw_avx512(lanes: &LaneBlock, u: f32, beside: f32) -> LaneDraw {
    use std::arch::x86_64::{
        _mm256_add_ps, _mm256_castps_si256, _mm256_cvtss_f32, _mm256_mask_add_ps,
        _mm256_maskz_mov_ps, _mm256_movepi32_mask, _mm256_permute_ps, _mm256_permute2f128_ps,
        _mm256_permutex2var_ps, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setr_ps, _mm256_sub_ps,
    };
    /// The lane that so many lanes are beyond.
    const LANE: [u8; LANES] = [15, 7, 11, 3, 13, 5, 9, 1, 14, 6, 10, 2, 12, 4, 8, 0];
    let [a, b, c, d, e, f, g, h, ..] = lanes.0;
    let low = _mm256_setr_ps(a, b, c, d, e, f, g, h);
    let [.., a, b, c, d, e, f, g, h] = lanes.0;
    let high = _mm256_setr_ps(a, b, c, d, e, f, g, h);
    // Every lane has the sum of those that are the same modulo 8, 4, 2 and 1, beside another such sum.
    let eight = _mm256_add_ps(low, high);
    let other_eight = _mm256_permute2f128_ps::<0x01>(eight, eight);
    let four = _mm256_add_ps(eight, other_eight);
    let other_four = _mm256_permute_ps::<0b01_00_11_10>(four);
    let two = _mm256_add_ps(four, other_four);
    let other_two = _mm256_permute_ps::<0b10_11_00_01>(two);
    let total = _mm256_cvtss_f32(_mm256_add_ps(two, other_two));
    let before = _mm256_maskz_mov_ps(0b1010_1010, other_two);
    let before = _mm256_mask_add_ps(before, 0b1100_1100, before, other_four);
    let before = _mm256_mask_add_ps(before, 0b1111_0000, before, other_eight);
    let rest = _mm256_sub_ps(_mm256_set1_ps(u * (total + beside)), before);
    let high_rest = _mm256_sub_ps(rest, low);
    let are_negative = |x| u32::from(_mm256_movepi32_mask(_mm256_castps_si256(x)));
    let n_beyond = (are_negative(rest) << 8 | are_negative(high_rest)).count_ones();
    let lane = LANE[n_beyond as usize % LANES];
    let place = _mm256_set1_epi32(i32::from(lane));
    let rest = _mm256_cvtss_f32(_mm256_permutex2var_ps(rest, place, high_rest));
    LaneDraw { lane: usize::from(lane), rest, total }
}

/// Sums over the lanes that are the same modulo 8, 4, 2 and 1.
///
/// A sum over lanes has at most 4 roundings beside those of the lanes, and so has the rest of a draw.
pub(super) struct LaneSums<'a> {
    lanes: &'a [f32; LANES],
    eight: [f32; 8],
    four: [f32; 4],
    two: [f32; 2],
    pub(super) total: f32,
}

impl<'a> LaneSums<'a> {
    #[inline(always)]
    pub(super) fn new(lanes: &'a LaneBlock) -> Self {
        let lanes = &lanes.0;
        let eight = fold(lanes);
        let four = fold(&eight);
        let two: [f32; 2] = fold(&four);
        LaneSums { lanes, eight, four, two, total: two[0] + two[1] }
    }

    /// The lane of a number in [0, total), and what is left of it there.
    #[inline(always)]
    pub(super) fn choose(&self, at: f32) -> (usize, f32) {
        let (mut rest, mut lane) = (at, 0);
        for (step, sums) in [(1, &self.two[..]), (2, &self.four), (4, &self.eight), (8, self.lanes)]
        {
            let beyond = sums[lane] <= rest;
            rest -= if beyond { sums[lane] } else { 0.0 };
            lane += if beyond { step } else { 0 };
        }
        (lane, rest)
    }
}

/// Sums of the first N numbers and the N after them.
#[inline(always)]
fn fold<const N: usize>(numbers: &[f32]) -> [f32; N] {
    let mut sums = [0.0; N];
    for i in 0..N {
        sums[i] = numbers[i] + numbers[i + N];
    }
    sums
}

/// The lines of a word's weights q and a q, filled up with zeros.
#[inline(always)]
pub(super) fn weigh(word: &Word<'_>, mut take: impl FnMut(usize, LaneBlock, LaneBlock)) {
    let parts = word.weights.chunks(LANES).zip(word.scale.chunks(LANES));
    for (line, (a, (weights, scale))) in word.a.chunks(LANES).zip(parts).enumerate() {
        // One call of `take`, or it would not be inlined; arrays, or the lanes would go one by one.
        let arrays = (
            a.first_chunk::<LANES>(),
            weights.first_chunk::<LANES>(),
            scale.first_chunk::<LANES>(),
        );
        let (q, prior) = match arrays {
            (Some(a), Some(weights), Some(scale)) => products(a, weights, scale),
            _ => products(a, weights, scale),
        };
        take(line, q, prior);
    }
}

#[inline(always)]
fn products(a: &[f64], weights: &[f64], scale: &[f64]) -> (LaneBlock, LaneBlock) {
    let (mut q, mut prior) = (LaneBlock::ZERO, LaneBlock::ZERO);
    let lanes = q.0.iter_mut().zip(&mut prior.0).zip(a.iter().zip(weights.iter().zip(scale)));
    // Single precision from here on takes half of the registers.
    let kept = |x: f32| if x < LEAST { 0.0 } else { x };
    for ((q, prior), (a, (weight, scale))) in lanes {
        *q = kept((weight * scale) as f32);
        *prior = kept(*a as f32 * *q);
    }
    (q, prior)
}

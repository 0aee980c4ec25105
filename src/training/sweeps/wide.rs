//! Draws on processors with registers of 512 bits: a line of weights in each.

use std::arch::x86_64::*;

use bytemuck::must_cast;

use super::darts::{LANES, LEAST_TOTAL, Line, ROUNDING};
use super::dense::{Counts, OPEN};
use super::tallies::BATCH;

/// Lanes whose number has the bit that two partners differ in.
const LATER: [u16; 4] = [0xff00, 0xf0f0, 0xcccc, 0xaaaa];

#[inline]
#[target_feature(enable = "avx512f")]
fn load(line: &Line) -> __m512 {
    must_cast(line.0)
}

/// Sums of the lanes that a dart meets before each lane, and the sum of all in every lane.
#[inline]
#[target_feature(enable = "avx512f")]
fn scan(lanes: __m512) -> (__m512, __m512) {
    let partner = _mm512_shuffle_f32x4::<0b01_00_11_10>(lanes, lanes);
    let before = _mm512_maskz_mov_ps(LATER[0], partner);
    let sums = _mm512_add_ps(lanes, partner);
    let partner = _mm512_shuffle_f32x4::<0b10_11_00_01>(sums, sums);
    let before = _mm512_mask_add_ps(before, LATER[1], before, partner);
    let sums = _mm512_add_ps(sums, partner);
    let partner = _mm512_permute_ps::<0b01_00_11_10>(sums);
    let before = _mm512_mask_add_ps(before, LATER[2], before, partner);
    let sums = _mm512_add_ps(sums, partner);
    let partner = _mm512_permute_ps::<0b10_11_00_01>(sums);
    let before = _mm512_mask_add_ps(before, LATER[3], before, partner);
    (before, _mm512_add_ps(sums, partner))
}

/// Sums by lane so far of the weights (a + n) q; returns those of all.
#[inline]
#[target_feature(enable = "avx512f")]
fn accumulate(sums: &mut [Line], counts: &[Counts], q: &[Line], base: &[Line]) -> __m512 {
    let mut lanes = _mm512_setzero_ps();
    let parts = counts.iter().zip(q.iter().zip(base));
    for (sum, (n, (q, base))) in sums.iter_mut().zip(parts) {
        let n = _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(must_cast(n.0)));
        lanes = _mm512_add_ps(lanes, _mm512_fmadd_ps(n, load(q), load(base)));
        sum.0 = must_cast(lanes);
    }
    lanes
}

/// The weights on which the darts u of a batch fall, where both limits are further away than
/// `margin` times the total; `order` are all weights as a dart meets them.
#[inline]
#[target_feature(enable = "avx512f,popcnt")]
pub(super) fn propose(
    sums: &mut [Line],
    counts: &[Counts],
    q: &[Line],
    base: &[Line],
    order: &[u16],
    documents: &[u32],
    uniforms: &[f64; BATCH],
    drawn: &mut [u32; BATCH],
) {
    let n_lines = q.len();
    let margin = (2 * n_lines + 32) as f32 * ROUNDING;
    let mut lanes = [_mm512_setzero_ps(); BATCH];
    let tokens = lanes.iter_mut().zip(documents);
    for (sums, (lanes, &document)) in sums.chunks_exact_mut(n_lines + 1).zip(tokens) {
        let counts = &counts[document as usize * n_lines..][..n_lines];
        *lanes = accumulate(&mut sums[1..], counts, q, base);
    }
    let mut rests = [Line::ZERO; BATCH];
    let mut totals = [0.0; BATCH];
    let tokens = lanes.iter().zip(uniforms).take(documents.len());
    for ((rests, total), (&lanes, &u)) in rests.iter_mut().zip(&mut totals).zip(tokens) {
        let (before, all) = scan(lanes);
        *total = _mm512_cvtss_f32(all);
        rests.0 = must_cast(_mm512_sub_ps(_mm512_set1_ps(u as f32 * *total), before));
    }
    let mut ranks = [0; BATCH];
    let tokens = sums.chunks_exact(n_lines + 1).take(documents.len()).zip(&rests);
    for (rank, (sums, rests)) in ranks.iter_mut().zip(tokens.clone()) {
        for sum in &sums[1..] {
            *rank += _mm512_cmp_ps_mask::<_CMP_LE_OQ>(load(sum), load(rests)).count_ones();
        }
    }
    let ranks = ranks.iter().zip(&totals);
    for (drawn, ((rank, total), (sums, rests))) in drawn.iter_mut().zip(ranks.zip(tokens)) {
        let topic = order.get(*rank as usize).copied().unwrap_or(0);
        let (line, lane) = (topic as usize / LANES, topic as usize % LANES);
        let rest = rests.0[lane];
        let above = sums[line + 1].0[lane] - rest;
        let below = rest - sums[line].0[lane];
        let inside = below.min(above) > margin * total && *total > LEAST_TOTAL;
        *drawn = if inside { u32::from(topic) } else { OPEN };
    }
}

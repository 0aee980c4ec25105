//! Sixteen draws by the inverse of their cumulative distributions side by side, for AVX-512: a step
//! of one draw waits for the step before, but not for those of the other draws.

use std::arch::x86_64::{
    __m512, __m512i, _CMP_GT_OQ, _CMP_LE_OQ, _mm512_add_epi32, _mm512_add_ps,
    _mm512_castps256_ps512, _mm512_cmp_ps_mask, _mm512_cvtpd_ps, _mm512_insertf32x8,
    _mm512_mask_add_epi32, _mm512_mask_mov_epi32, _mm512_mask_mov_ps, _mm512_mask_sub_ps,
    _mm512_maskz_set1_epi32, _mm512_min_ps, _mm512_mul_ps, _mm512_mullo_epi32, _mm512_or_si512,
    _mm512_permutex2var_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setr_epi32, _mm512_setr_pd,
    _mm512_setr_ps, _mm512_setzero_si512, _mm512_shuffle_f32x4, _mm512_shuffle_ps,
    _mm512_slli_epi32, _mm512_sub_ps,
};

use super::inverse_cdf::{LEAST_TOTAL, LaneBlock, OPEN};
use super::tallies::BATCH;

polyabayes_macros::array!();
polyabayes_macros::gather!(LaneBlock);

/// A number for every token.
type Numbers = [f64; BATCH];

/// The lane of every token in which u times its total lies, and what is left of it there.
struct Thrown {
    lanes: __m512i,
    rests: __m512,
    totals: __m512,
}

/// The weight at u of every token, or [`OPEN`] where single precision cannot tell.
///
/// `sums` holds one token after the other: the sums by lane before each of its `n_lines` lines, and
/// those of all lines. A weight is taken if u is further than `margin` from both of its limits, in
/// units of the total.
#[polyabayes_macros::avx512]
pub(super) fn invert(
    sums: &[LaneBlock],
    n_lines: usize,
    uniforms: &Numbers,
    margin: f32,
) -> [u32; BATCH] {
    let Thrown { lanes, rests, totals } = throw(sums, n_lines, uniforms);
    let stride = _mm512_set1_epi32((16 * (n_lines + 1)) as i32);
    let tokens = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let first = _mm512_add_epi32(lanes, _mm512_mullo_epi32(tokens, stride));
    let before = |lines| gather(sums, _mm512_add_epi32(first, _mm512_slli_epi32::<4>(lines)));
    let (mut lines, mut n_left) = (_mm512_setzero_si512(), n_lines);
    while n_left > 1 {
        let half = _mm512_set1_epi32((n_left / 2) as i32);
        let limit = before(_mm512_add_epi32(lines, half));
        let beyond = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(limit, rests);
        lines = _mm512_mask_add_epi32(lines, beyond, lines, half);
        n_left -= n_left / 2;
    }
    let below = _mm512_sub_ps(rests, before(lines));
    let next = _mm512_add_epi32(lines, _mm512_set1_epi32(1));
    let distance = _mm512_min_ps(below, _mm512_sub_ps(before(next), rests));
    let margin = _mm512_mul_ps(totals, _mm512_set1_ps(margin));
    let decided = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(distance, margin)
        & _mm512_cmp_ps_mask::<_CMP_GT_OQ>(totals, _mm512_set1_ps(LEAST_TOTAL));
    let weights = _mm512_or_si512(_mm512_slli_epi32::<4>(lines), lanes);
    array(_mm512_mask_mov_epi32(_mm512_set1_epi32(OPEN as i32), decided, weights))
}

/// Folds the lanes of all tokens in halves until the totals are left, then goes back: at each fold the
/// sum of a token's lower half tells in which half u lies.
#[polyabayes_macros::avx512]
fn throw(sums: &[LaneBlock], n_lines: usize, uniforms: &Numbers) -> Thrown {
    let lanes = |token: usize| {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] =
            sums[token * (n_lines + 1) + n_lines].0;
        _mm512_setr_ps(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
    };
    // Register i holds eight sums each of tokens 2 i and 2 i + 1; after a fold, four sums each of
    // tokens 4 i to 4 i + 3.
    let mut lower_8 = [_mm512_set1_ps(0.0); 8];
    let mut sums_8 = lower_8;
    for i in 0..8 {
        let (x, y) = (lanes(2 * i), lanes(2 * i + 1));
        lower_8[i] = _mm512_shuffle_f32x4::<0b01_00_01_00>(x, y);
        sums_8[i] = _mm512_add_ps(lower_8[i], _mm512_shuffle_f32x4::<0b11_10_11_10>(x, y));
    }
    let mut lower_4 = [_mm512_set1_ps(0.0); 4];
    let mut sums_4 = lower_4;
    for i in 0..4 {
        let (x, y) = (sums_8[2 * i], sums_8[2 * i + 1]);
        lower_4[i] = _mm512_shuffle_f32x4::<0b10_00_10_00>(x, y);
        sums_4[i] = _mm512_add_ps(lower_4[i], _mm512_shuffle_f32x4::<0b11_01_11_01>(x, y));
    }
    let two = |x, y| {
        let lower = _mm512_shuffle_ps::<0b01_00_01_00>(x, y);
        _mm512_add_ps(lower, _mm512_shuffle_ps::<0b11_10_11_10>(x, y))
    };
    let sums_2 = [two(sums_4[0], sums_4[1]), two(sums_4[2], sums_4[3])];
    let even = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 16, 20, 24, 28, 18, 22, 26, 30);
    let odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
    let first = _mm512_permutex2var_ps(sums_2[0], even, sums_2[1]);
    let totals = _mm512_add_ps(first, _mm512_permutex2var_ps(sums_2[0], odd, sums_2[1]));
    let at_start = (_mm512_setzero_si512(), _mm512_mul_ps(in_single(uniforms), totals));
    let (lanes, rests) = pass(at_start, first, 1);
    let fours = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    let (lanes, rests) = pass((lanes, rests), pick(&sums_4, _mm512_or_si512(fours, lanes)), 2);
    let (lanes, rests) = pass((lanes, rests), pick(&lower_4, _mm512_or_si512(fours, lanes)), 4);
    let eights = _mm512_setr_epi32(0, 8, 16, 24, 0, 8, 16, 24, 0, 8, 16, 24, 0, 8, 16, 24);
    let places = _mm512_or_si512(eights, lanes);
    let [a, b, c, d, e, f, g, h] = lower_8;
    let lower_half = _mm512_mask_mov_ps(
        _mm512_permutex2var_ps(a, places, b),
        0b1111_0000,
        _mm512_permutex2var_ps(c, places, d),
    );
    let upper_half = _mm512_mask_mov_ps(
        _mm512_permutex2var_ps(e, places, f),
        0b1111_0000 << 8,
        _mm512_permutex2var_ps(g, places, h),
    );
    let sums = _mm512_mask_mov_ps(lower_half, 0b1111_1111 << 8, upper_half);
    let (lanes, rests) = pass((lanes, rests), sums, 8);
    Thrown { lanes, rests, totals }
}

/// Passes the lower half, whose sum is given, where the rest is not below it.
#[polyabayes_macros::avx512]
fn pass((lanes, rests): (__m512i, __m512), sums: __m512, step: i32) -> (__m512i, __m512) {
    let beyond = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(sums, rests);
    let lanes = _mm512_or_si512(lanes, _mm512_maskz_set1_epi32(beyond, step));
    (lanes, _mm512_mask_sub_ps(rests, beyond, rests, sums))
}

/// The number at the place of every token: in the first two registers for the first eight tokens, in
/// the last two for the others.
#[polyabayes_macros::avx512]
fn pick(&[a, b, c, d]: &[__m512; 4], places: __m512i) -> __m512 {
    let upper = _mm512_permutex2var_ps(c, places, d);
    _mm512_mask_mov_ps(_mm512_permutex2var_ps(a, places, b), 0b1111_1111 << 8, upper)
}

#[polyabayes_macros::avx512]
fn in_single(&[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]: &Numbers) -> __m512 {
    let lower = _mm512_cvtpd_ps(_mm512_setr_pd(a, b, c, d, e, f, g, h));
    let upper = _mm512_cvtpd_ps(_mm512_setr_pd(i, j, k, l, m, n, o, p));
    _mm512_insertf32x8::<1>(_mm512_castps256_ps512(lower), upper)
}

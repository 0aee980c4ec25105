//! Many gamma variates of one small shape, and of shapes that are above it by whole numbers.

#![allow(clippy::inline_always)]

use std::ops::RangeInclusive;

use rand_distr::Distribution as _;

use super::elementary::{exp, exp_minus, ln};
use super::gamma_law;
use crate::rng::{LANES, Lanes, Rng, Stream as _, Uniforms, map_lanes};

polyabayes_macros::array!();

/// Half the distance of two neighbouring uniforms: keeps them off zero.
const HALF_STEP: f64 = 1.110_223_024_625_156_5e-16;

/// Values of the bits that a uniform leaves over.
const SPARE: f64 = 4096.0;

/// Bits of 2^52: a number below 2^52 in its low bits makes a float of it.
const WHOLE: u64 = 0x4330_0000_0000_0000;
const TWO_52: f64 = 4_503_599_627_370_496.0;

/// The n up to which Gamma(n) is drawn as a sum of exponentials.
const FEW: u32 = 4;

/// Lists of variates to draw again, kept from one call of [`fill_gammas`] to the next.
#[derive(Debug, Default)]
pub struct GammaScratch {
    listed: Vec<u32>,
    tails: Vec<u32>,
}

/// Overwrites `out` by independent Gamma(shape + n, 1) variates, n from `counts`.
///
/// Shapes up to 1 go sixteen at a time: a variate of shape + n is the sum of a variate of the shape
/// and one of n. Larger shapes, and large n, go one by one.
pub fn fill_gammas(
    shape: f64,
    counts: &[u32],
    out: &mut [f64],
    scratch: &mut GammaScratch,
    rng: &mut Rng,
) {
    if shape <= 1.0 {
        let mut uniforms = rng.lanes();
        fill(GammaProposal::new(shape), out, scratch, &mut uniforms);
        let places = list(counts, 1..=FEW, &mut scratch.listed);
        add_exponentials(counts, out, places, &mut uniforms);
    }
    let least = if shape > 1.0 { 0 } else { FEW + 1 };
    for &place in list(counts, least..=u32::MAX, &mut scratch.listed) {
        let place = place as usize;
        out[place] = gamma_law(shape + f64::from(counts[place])).sample(rng);
    }
}

/// Lengthens a list whose old entries are of no use, if need be.
fn make_room(places: &mut Vec<u32>, least: usize) {
    places.resize(places.len().max(least), 0);
}

/// Lists the places of counts in a range; most lines of counts have none of a range above zero.
fn list<'a>(counts: &[u32], range: RangeInclusive<u32>, places: &'a mut Vec<u32>) -> &'a [u32] {
    make_room(places, counts.len() + LANES);
    let n_places = list_into(counts, (*range.start(), *range.end()), places);
    &places[..n_places]
}

#[polyabayes_macros::vectorised(append = append_avx512)]
fn list_into(counts: &[u32], (least, most): (u32, u32), places: &mut [u32]) -> usize {
    let (lines, rest) = counts.as_chunks::<LANES>();
    let are_listed = |line: &[u32; LANES]| line.map(|n| least <= n && n <= most);
    let mut n_places = 0;
    for (start, line) in (0..).step_by(LANES).zip(lines) {
        // All of them before the first branch: a loop over vectors.
        if line.iter().fold(0, |largest, &n| largest.max(n)) >= least {
            n_places += append(start, are_listed(line), &mut places[n_places..]);
        }
    }
    let mut line = [0; LANES];
    line[..rest.len()].copy_from_slice(rest);
    let mut are_listed = are_listed(&line);
    are_listed[rest.len()..].fill(false);
    let start = (counts.len() - rest.len()) as u32;
    n_places + append(start, are_listed, &mut places[n_places..])
}

/// Writes those of the [`LANES`] places from `start` that are listed, and returns their number. What it
/// leaves in the others of the first [`LANES`] elements is of no use.
#[inline(always)]
fn append(start: u32, are_listed: [bool; LANES], places: &mut [u32]) -> usize {
    let mut n_places = 0;
    for (place, is_listed) in (start..).zip(are_listed) {
        places[n_places] = place;
        n_places += usize::from(is_listed);
    }
    n_places
}

/// [`append`] without a step for each place.
#[polyabayes_macros::avx512]
fn append_avx512(start: u32, are_listed: [bool; LANES], places: &mut [u32]) -> usize {
    use std::arch::x86_64::{
        _mm512_add_epi32, _mm512_maskz_compress_epi32, _mm512_set1_epi32, _mm512_setr_epi32,
    };
    let mask = (0..LANES).fold(0, |mask, lane| mask | u16::from(are_listed[lane]) << lane);
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let all = _mm512_add_epi32(_mm512_set1_epi32(start as i32), lanes);
    places[..LANES].copy_from_slice(&array(_mm512_maskz_compress_epi32(mask, all)));
    mask.count_ones() as usize
}

/// Ahrens and Dieter's rejection (GS, 1974) with a whole number m >= 1/shape as the power.
///
/// Let p = `bound` u. Where p is at most 1, x = p^m is accepted with probability
/// p^(m shape - 1) e^-x; else x = -ln(m (bound - p)) with probability x^(shape - 1).
#[derive(Clone, Copy)]
struct GammaProposal {
    shape: f64,
    m: u64,
    /// m shape - 1.
    excess: f64,
    bound: f64,
    /// p below which p^m is taken for zero.
    least: f64,
}

impl GammaProposal {
    fn new(shape: f64) -> Self {
        // A 1/shape that is whole but for rounding becomes that number: the excess is then less
        // than rounding and taken for zero. Far beyond 2^62 no variate is above zero.
        let m = (shape.recip() * (1.0 - f64::EPSILON)).ceil().min((1u64 << 62) as f64);
        GammaProposal {
            shape,
            m: m as u64,
            excess: (m * shape - 1.0).max(0.0),
            bound: 1.0 + (m * std::f64::consts::E).recip(),
            least: (-708.0 / m).exp(),
        }
    }

    /// p^m.
    #[inline(always)]
    fn power(self, p: Lanes) -> Lanes {
        let mut square = map_lanes(p, |p| if p < self.least { 0.0 } else { p });
        let mut power = if self.m & 1 == 1 { square } else { [1.0; LANES] };
        let mut bits = self.m >> 1;
        while bits > 0 {
            square = map_lanes(square, |x| x * x);
            if bits & 1 == 1 {
                for lane in 0..LANES {
                    power[lane] *= square[lane];
                }
            }
            bits >>= 1;
        }
        power
    }

    /// Variates that are accepted at first sight, or p where that is open, and whether it is.
    #[inline(always)]
    fn quick(self, bits: [u64; LANES]) -> (Lanes, [bool; LANES]) {
        let p = map_lanes(bits, |bits| positive(bits) * self.bound);
        let (mut x, mut is_open) = (self.power(p), [false; LANES]);
        for lane in 0..LANES {
            let spare = f64::from_bits(bits[lane] & 0xfff | WHOLE) - TWO_52;
            is_open[lane] = spare + 1.0 > self.squeeze(p[lane], x[lane]);
            x[lane] = if is_open[lane] { p[lane] } else { x[lane] };
        }
        (x, is_open)
    }

    /// The variates of p up to 1, and whether the uniforms `u` accept them where the squeeze has
    /// not.
    #[inline(always)]
    fn bodies(self, p: Lanes, u: Lanes) -> (Lanes, [bool; LANES]) {
        let (x, mut accepted) = (self.power(p), [false; LANES]);
        for lane in 0..LANES {
            let mut probability = exp_minus(x[lane]);
            if self.excess > 0.0 {
                probability *= exp(self.excess * ln(p[lane]));
            }
            let squeezed = self.squeeze(p[lane], x[lane]).max(0.0).floor() * SPARE.recip();
            accepted[lane] = squeezed + u[lane] * (1.0 - squeezed) <= probability;
        }
        (x, accepted)
    }

    /// The variates of p above 1, and whether `u` accepts them.
    #[inline(always)]
    fn tails(self, p: Lanes, u: Lanes) -> (Lanes, [bool; LANES]) {
        let x = map_lanes(p, |p| -ln((self.bound - p) * self.m as f64));
        let mut accepted = [false; LANES];
        for lane in 0..LANES {
            accepted[lane] = u[lane] <= exp((self.shape - 1.0) * ln(x[lane]));
        }
        (x, accepted)
    }

    /// A number below [`SPARE`] times the probability of accepting x = p^m, negative where p is
    /// above 1: e^-x >= 1 - x, and ln p >= e ln 2 with its binary exponent e.
    #[inline(always)]
    fn squeeze(self, p: f64, x: f64) -> f64 {
        let below = SPARE - SPARE * x;
        if self.excess == 0.0 {
            return below;
        }
        let exponent = f64::from_bits(p.to_bits() >> 52 | WHOLE) - (TWO_52 + 1023.0);
        below * (1.0 + self.excess * std::f64::consts::LN_2 * exponent)
    }
}

#[inline(always)]
fn positive(bits: u64) -> f64 {
    Uniforms::from_bits(bits) + HALF_STEP
}

/// Overwrites `out` by variates of the proposal's shape.
fn fill(
    proposal: GammaProposal,
    out: &mut [f64],
    scratch: &mut GammaScratch,
    uniforms: &mut Uniforms,
) {
    let GammaScratch { listed: open, tails } = scratch;
    make_room(open, out.len() + LANES);
    let n_open = propose(proposal, out, open, uniforms);
    let (mut n_bodies, mut n_tails) = (0, 0);
    make_room(tails, n_open);
    for i in 0..n_open {
        let is_tail = out[open[i] as usize] > 1.0;
        (open[n_bodies], tails[n_tails]) = (open[i], open[i]);
        n_bodies += usize::from(!is_tail);
        n_tails += usize::from(is_tail);
    }
    let n_refused = settle_bodies(proposal, out, &mut open[..n_bodies], uniforms);
    let n_tails = settle_tails(proposal, out, &mut tails[..n_tails], uniforms);
    if n_refused + n_tails > 0 {
        let mut again = vec![0.0; n_refused + n_tails];
        fill(proposal, &mut again, &mut GammaScratch::default(), uniforms);
        for (&place, x) in open[..n_refused].iter().chain(&tails[..n_tails]).zip(again) {
            out[place as usize] = x;
        }
    }
}

/// Fills all places with variates; lists those that are not accepted yet and leaves in them p.
/// Returns their number.
#[polyabayes_macros::vectorised(append = append_avx512)]
fn propose(
    proposal: GammaProposal,
    out: &mut [f64],
    open: &mut [u32],
    uniforms: &mut Uniforms,
) -> usize {
    let mut n_open = 0;
    let (groups, rest) = out.as_chunks_mut::<LANES>();
    let start_of_rest = groups.len() * LANES;
    for (group, out) in groups.iter_mut().enumerate() {
        let (x, is_open) = proposal.quick(uniforms.next_bits());
        *out = x;
        n_open += append((group * LANES) as u32, is_open, &mut open[n_open..]);
    }
    let (x, mut is_open) = proposal.quick(uniforms.next_bits());
    rest.copy_from_slice(&x[..rest.len()]);
    is_open[rest.len()..].fill(false);
    n_open + append(start_of_rest as u32, is_open, &mut open[n_open..])
}

#[polyabayes_macros::vectorised]
fn settle_bodies(
    proposal: GammaProposal,
    out: &mut [f64],
    places: &mut [u32],
    uniforms: &mut Uniforms,
) -> usize {
    settle(out, places, uniforms, |p, u| proposal.bodies(p, u))
}

#[polyabayes_macros::vectorised]
fn settle_tails(
    proposal: GammaProposal,
    out: &mut [f64],
    places: &mut [u32],
    uniforms: &mut Uniforms,
) -> usize {
    settle(out, places, uniforms, |p, u| proposal.tails(p, u))
}

/// Overwrites p by accepted variates; moves the places of those refused to the front of the list,
/// and returns their number.
#[inline(always)]
fn settle(
    out: &mut [f64],
    places: &mut [u32],
    uniforms: &mut Uniforms,
    law: impl Fn(Lanes, Lanes) -> (Lanes, [bool; LANES]),
) -> usize {
    let mut n_refused = 0;
    for start in (0..places.len()).step_by(LANES) {
        let n = (places.len() - start).min(LANES);
        let mut p = [0.5; LANES];
        for (x, &place) in p.iter_mut().zip(&places[start..start + n]) {
            *x = out[place as usize];
        }
        let (x, accepted) = law(p, map_lanes(uniforms.next_bits(), positive));
        for lane in 0..n {
            let place = places[start + lane];
            out[place as usize] = x[lane];
            places[n_refused] = place;
            n_refused += usize::from(!accepted[lane]);
        }
    }
    n_refused
}

/// Adds Gamma(n) variates for the listed n, all from 1 to [`FEW`].
#[polyabayes_macros::vectorised]
fn add_exponentials(counts: &[u32], out: &mut [f64], places: &[u32], uniforms: &mut Uniforms) {
    for places in places.chunks(LANES) {
        let mut n = [0; LANES];
        for (n, &place) in n.iter_mut().zip(places) {
            *n = counts[place as usize];
        }
        let mut product = [1.0; LANES];
        for token in 0..FEW {
            let u = map_lanes(uniforms.next_bits(), positive);
            for lane in 0..LANES {
                product[lane] *= if token < n[lane] { u[lane] } else { 1.0 };
            }
        }
        let sums = map_lanes(product, |product| -ln(product));
        for (&place, sum) in places.iter().zip(sums) {
            out[place as usize] += sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::ln_gamma;
    use crate::rng::{Key, Purpose};

    const N: usize = 400_003;

    fn variates(shape: f64, count: u32) -> Vec<f64> {
        let mut x = vec![0.0; N];
        let rng = &mut Key::new(1, Purpose::Score).rng();
        fill_gammas(shape, &vec![count; N], &mut x, &mut GammaScratch::default(), rng);
        x
    }

    /// Kolmogorov's distance from a known distribution; it is above the bound once in a thousand
    /// times.
    fn check_law(shape: f64, count: u32, cumulative: impl Fn(f64) -> f64) {
        let mut x = variates(shape, count);
        x.sort_unstable_by(f64::total_cmp);
        let n = N as f64;
        // Variates of small shapes may lie below all doubles: they are zero.
        let positive = x.iter().enumerate().filter(|(_, x)| **x > 0.0);
        let distance = positive.map(|(i, &x)| (cumulative(x) - (i as f64 + 0.5) / n).abs());
        let distance = distance.fold(0.0, f64::max);
        assert!(distance < 1.95 / n.sqrt(), "{shape} + {count}: {distance}");
    }

    /// P(Gamma(shape) <= x), by its series, of which all terms are positive.
    fn cumulative(shape: f64, x: f64) -> f64 {
        let (mut term, mut sum, mut denominator) = (1.0 / shape, 1.0 / shape, shape);
        while term > sum * 1e-17 {
            denominator += 1.0;
            term *= x / denominator;
            sum += term;
        }
        sum * (shape * x.ln() - x - ln_gamma(shape)).exp()
    }

    #[test]
    fn laws_that_have_a_closed_form() {
        check_law(1.0, 0, |x| -(-x).exp_m1());
        check_law(0.5, 0, |x| libm::erf(x.sqrt()));
        check_law(2.0, 0, |x| 1.0 - (1.0 + x) * (-x).exp());
        check_law(1.0, 1, |x| 1.0 - (1.0 + x) * (-x).exp());
    }

    /// 1/shape is whole (0.1, 1/3, 1/49, 0.01), just above or below a whole number, and neither.
    #[test]
    fn laws_of_small_shapes() {
        for shape in
            [0.1, 1.0 / 3.0, 1.0 / 49.0, 0.01, 0.099, 0.101, 0.13, 0.3, 0.51, 0.7, 0.97, 1e-3, 1e-6]
        {
            check_law(shape, 0, |x| cumulative(shape, x));
            let u = variates(shape, 0);
            let large = u.iter().filter(|x| **x > 1.0).count() as f64 / N as f64;
            let expected = 1.0 - cumulative(shape, 1.0);
            let error = (expected / N as f64).sqrt();
            assert!((large - expected).abs() < 4.0 * error, "{shape}: {large} {expected}");
        }
    }

    #[test]
    fn laws_of_shapes_with_counts() {
        for (shape, count) in [(0.1, 1), (0.1, 2), (0.13, FEW), (0.1, FEW + 1), (2.5, 3)] {
            check_law(shape, count, |x| cumulative(shape + f64::from(count), x));
        }
    }

    #[test]
    fn logarithms_of_variates_have_their_mean() {
        // Digamma and trigamma of 0.1.
        let (ln_mean, ln_variance) = (-10.423_754_940_411_076_f64, 101.433_299_150_792_76_f64);
        let mean = variates(0.1, 0).iter().map(|x| x.ln()).sum::<f64>() / N as f64;
        assert!((mean - ln_mean).abs() < 4.0 * (ln_variance / N as f64).sqrt(), "{mean}");
    }

    #[test]
    fn shapes_too_small_for_any_variate_above_zero() {
        for shape in [1e-30, 1e-310] {
            assert!(variates(shape, 0).iter().all(|&x| x == 0.0), "{shape}");
        }
    }
}

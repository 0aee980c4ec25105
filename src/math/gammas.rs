//! Many gamma variates of one small shape.

#![allow(clippy::inline_always)]

use rand_distr::Distribution as _;

use super::elementary::{exp, exp_minus, ln};
use super::gamma_law;
use crate::rng::{LANES, Lanes, Rng, Stream as _, UniformLanes, Uniforms};

/// Half the distance of two neighbouring uniforms: keeps them off zero.
const HALF_STEP: f64 = 1.110_223_024_625_156_5e-16;

/// Overwrites `out` by independent Gamma(shape, 1) variates.
///
/// Ahrens and Dieter's rejection (GS, 1974) for shapes up to 1, sixteen at a time; above, one by one.
pub fn fill_gammas(shape: f64, out: &mut [f64], rng: &mut Rng) {
    if shape > 1.0 {
        let law = gamma_law(shape);
        out.iter_mut().for_each(|x| *x = law.sample(rng));
        return;
    }
    let mut uniforms = rng.lanes();
    let proposal = Proposal::new(shape);
    let mut pending = vec![0; out.len() + LANES];
    let mut n_pending = first_round(proposal, out, &mut pending, &mut uniforms);
    while n_pending > 0 {
        n_pending = next_round(proposal, out, &mut pending[..n_pending], &mut uniforms);
    }
}

/// x = p^(1/shape) where p = `bound` u is at most 1, else -ln((bound - p) / shape).
#[derive(Clone, Copy)]
struct Proposal {
    shape: f64,
    inverse: f64,
    bound: f64,
}

impl Proposal {
    fn new(shape: f64) -> Self {
        Proposal { shape, inverse: shape.recip(), bound: 1.0 + shape / std::f64::consts::E }
    }

    /// The variate if p is at most 1, and whether `u` accepts it.
    #[inline(always)]
    fn body(self, p: f64, u: f64) -> (f64, bool) {
        let x = exp(ln(p) * self.inverse);
        (x, (p <= 1.0) & (u <= exp_minus(x)))
    }

    /// The variate if p is above 1, and whether `u` accepts it.
    #[inline(always)]
    fn tail(self, p: f64, u: f64) -> (f64, bool) {
        let x = -ln((self.bound - p) * self.inverse);
        (x, u <= exp((self.shape - 1.0) * ln(x)))
    }
}

#[inline(always)]
fn positive(uniforms: &mut Uniforms) -> Lanes {
    uniforms.next().map(|u| u + HALF_STEP)
}

/// Fills all places with what the body gives; lists those that are not done, and leaves in them
/// the p that is above 1, or 0 where a variate was refused. Returns their number.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn first_round(
    proposal: Proposal,
    out: &mut [f64],
    pending: &mut [u32],
    uniforms: &mut Uniforms,
) -> usize {
    let mut n_pending = 0;
    let mut note = |start: usize, failed: &[bool]| {
        for (place, &failed) in (start as u32..).zip(failed) {
            pending[n_pending] = place;
            n_pending += usize::from(failed);
        }
    };
    let (groups, rest) = out.as_chunks_mut::<LANES>();
    let start_of_rest = groups.len() * LANES;
    for (group, out) in groups.iter_mut().enumerate() {
        let (x, failed) = propose(proposal, uniforms);
        *out = x;
        note(group * LANES, &failed);
    }
    let (x, failed) = propose(proposal, uniforms);
    rest.copy_from_slice(&x[..rest.len()]);
    note(start_of_rest, &failed[..rest.len()]);
    n_pending
}

/// The bodies of new proposals, or what is to be kept where they are refused.
#[inline(always)]
fn propose(proposal: Proposal, uniforms: &mut Uniforms) -> (Lanes, [bool; LANES]) {
    let (mut x, u) = (positive(uniforms), positive(uniforms));
    let mut failed = [false; LANES];
    for lane in 0..LANES {
        let p = x[lane] * proposal.bound;
        let (body, accepted) = proposal.body(p, u[lane]);
        failed[lane] = !accepted;
        let kept = if p > 1.0 { p } else { 0.0 };
        x[lane] = if accepted { body } else { kept };
    }
    (x, failed)
}

/// Goes on with the places that are not done, and returns the number of those still left.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn next_round(
    proposal: Proposal,
    out: &mut [f64],
    pending: &mut [u32],
    uniforms: &mut Uniforms,
) -> usize {
    let mut n_left = 0;
    for start in (0..pending.len()).step_by(LANES) {
        let n = (pending.len() - start).min(LANES);
        let (mut p, u) = (positive(uniforms), positive(uniforms));
        let mut kept = [0.0; LANES];
        for (kept, &place) in kept.iter_mut().zip(&pending[start..start + n]) {
            *kept = out[place as usize];
        }
        let mut failed = [false; LANES];
        for lane in 0..LANES {
            // A p above 1 has only waited for its turn.
            let q = if kept[lane] > 1.0 { kept[lane] } else { p[lane] * proposal.bound };
            let (body, body_accepted) = proposal.body(q, u[lane]);
            let (tail, tail_accepted) = proposal.tail(q, u[lane]);
            let (x, accepted) = if q > 1.0 { (tail, tail_accepted) } else { (body, body_accepted) };
            failed[lane] = !accepted;
            p[lane] = if accepted { x } else { 0.0 };
        }
        for lane in 0..n {
            let place = pending[start + lane];
            out[place as usize] = p[lane];
            pending[n_left] = place;
            n_left += usize::from(failed[lane]);
        }
    }
    n_left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    const N: usize = 400_003;

    fn variates(shape: f64) -> Vec<f64> {
        let mut x = vec![0.0; N];
        fill_gammas(shape, &mut x, &mut Key::new(1, Purpose::Score).rng());
        x
    }

    /// Kolmogorov's distance from a known law; it is above the bound once in a thousand times.
    fn check_law(shape: f64, cumulative: impl Fn(f64) -> f64) {
        let mut x = variates(shape);
        x.sort_unstable_by(f64::total_cmp);
        let n = N as f64;
        let distance =
            x.iter().enumerate().map(|(i, &x)| (cumulative(x) - (i as f64 + 0.5) / n).abs());
        let distance = distance.fold(0.0, f64::max);
        assert!(distance < 1.95 / n.sqrt(), "{shape}: {distance}");
    }

    #[test]
    fn laws_that_have_a_closed_form() {
        check_law(1.0, |x| -(-x).exp_m1());
        check_law(0.5, |x| libm::erf(x.sqrt()));
        check_law(2.0, |x| 1.0 - (1.0 + x) * (-x).exp());
    }

    #[test]
    fn moments_and_tails_of_small_shapes() {
        for shape in [0.3, 0.1, 0.01] {
            let (x, n) = (variates(shape), N as f64);
            let mean = x.iter().sum::<f64>() / n;
            assert!((mean - shape).abs() < 4.0 * (shape / n).sqrt(), "{shape}: {mean}");
            let large = x.iter().filter(|x| **x > 1.0).count() as f64 / n;
            let expected = tail(shape);
            assert!((large - expected).abs() < 4.0 * (expected / n).sqrt(), "{shape}: {large}");
        }
        // Digamma and trigamma of 0.1.
        let (ln_mean, ln_variance) = (-10.423_754_940_411_076_f64, 101.433_299_150_792_76_f64);
        let mean = variates(0.1).iter().map(|x| x.ln()).sum::<f64>() / N as f64;
        assert!((mean - ln_mean).abs() < 4.0 * (ln_variance / N as f64).sqrt(), "{mean}");
    }

    /// P(Gamma(shape) > 1), by the series of its complement.
    fn tail(shape: f64) -> f64 {
        let (mut term, mut sum) = (1.0 / shape, 1.0 / shape);
        for n in 1..40 {
            term /= shape + f64::from(n);
            sum += term;
        }
        1.0 - sum * (-1.0 - crate::math::ln_gamma(shape)).exp()
    }
}

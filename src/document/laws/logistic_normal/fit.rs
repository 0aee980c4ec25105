//! The Gaussian from which annealing starts: mode and curvature, then moments of short chains.

use super::annealing::{Path, Start};
use super::decoder::{Link, Local};
use super::target::{Gaussian, NormalPrior, Potential, PotentialScratch};
use super::walk::{Angle, Walk};
use crate::math::dot;
use crate::math::linear::{cholesky, inverse_factor, solve};
use crate::rng::{LANES, Lanes, Rng};

/// Newton steps at most.
const MOST_STEPS: usize = 100;

/// Steps of the chains that find the moments: from 40 on, more do not make annealing better.
const SHORT_STEPS: usize = 40;

/// Deviations of the Gaussian beside those of the mean curvature. A Gaussian that is too narrow costs
/// more than one that is too wide: of 1, 1.1 and 1.25, the last two had the smaller errors.
const WIDER: f64 = 1.15;

/// Improvement of ln posterior, in nats, below which the mode is found.
const TOLERANCE: f64 = 1e-8;

/// Mode of the posterior of z and the Gaussian of its curvature there (Laplace).
pub(super) fn laplace(
    decoder: &Local<'_>,
    link: Link,
    prior: &NormalPrior<'_>,
    start: &[f64],
) -> Gaussian {
    let rank = prior.rank;
    let standard = Gaussian::standard(rank);
    let target = Potential::new(decoder, link, prior, &standard);
    let (mut room, mut gradient) = (PotentialScratch::default(), vec![[0.0; LANES]; rank]);
    // V beside the prior itself is the log likelihood: ln posterior lacks -|z|²/2.
    let mut ascend = |points: &[Lanes]| -> (Lanes, Vec<f64>) {
        let mut value = target.evaluate(points, &mut gradient, &mut room);
        for z in points {
            for lane in 0..LANES {
                value[lane] -= 0.5 * z[lane] * z[lane];
            }
        }
        let slope = gradient.iter().zip(points).map(|(g, z)| g[0] - z[0]).collect();
        (value, slope)
    };
    let mut z = start.to_vec();
    let (value, mut slope) = ascend(&spread(&z));
    let mut value = value[0];
    for _ in 0..MOST_STEPS {
        let direction = solve(&precision(decoder, link, prior, &z), &slope);
        // Sixteen step lengths at once, from 2 down.
        let lengths: Lanes = std::array::from_fn(|lane| 2.0 * 0.5_f64.powi(lane as i32));
        let points: Vec<Lanes> =
            z.iter().zip(&direction).map(|(z, d)| lengths.map(|length| z + length * d)).collect();
        let (values, _) = ascend(&points);
        let best =
            (0..LANES).fold(0, |best, lane| if values[lane] > values[best] { lane } else { best });
        let gain = values[best] - value;
        if gain.partial_cmp(&0.0) != Some(std::cmp::Ordering::Greater) {
            break;
        }
        z = points.iter().map(|x| x[best]).collect();
        (value, slope) = (values[best], ascend(&spread(&z)).1);
        if gain < TOLERANCE {
            break;
        }
    }
    let precision = precision(decoder, link, prior, &z);
    around(z, &precision, 1.0)
}

fn precision(decoder: &Local<'_>, link: Link, prior: &NormalPrior<'_>, z: &[f64]) -> Vec<f64> {
    let (found, safe) = decoder.curvature(link, &prior.coordinates(z));
    factor_of_precision(&found, &safe, prior)
}

/// Cholesky factor of the posterior's precision of z: of its curvature where that is positive definite,
/// else of a bound.
fn factor_of_precision(found: &[f64], safe: &[f64], prior: &NormalPrior<'_>) -> Vec<f64> {
    let factor = |curvature: &[f64]| cholesky(&whitened(curvature, prior), prior.rank);
    // The bound plus the identity is positive definite but for rounding, which the prior alone
    // survives.
    let standard = || Gaussian::standard(prior.rank).factor;
    factor(found).or_else(|| factor(safe)).unwrap_or_else(standard)
}

/// I + Lᵀ H L.
fn whitened(curvature: &[f64], prior: &NormalPrior<'_>) -> Vec<f64> {
    let (rank, n) = (prior.rank, prior.mean.len());
    let mut half = vec![0.0; n * rank];
    for (row, out) in curvature.chunks_exact(n).zip(half.chunks_exact_mut(rank)) {
        for (&h, l) in row.iter().zip(prior.factor.chunks_exact(rank)) {
            out.iter_mut().zip(l).for_each(|(out, l)| *out += h * l);
        }
    }
    let mut found = Gaussian::standard(rank).factor;
    for (l, half) in prior.factor.chunks_exact(rank).zip(half.chunks_exact(rank)) {
        for (&l, out) in l.iter().zip(found.chunks_exact_mut(rank)) {
            out.iter_mut().zip(half).for_each(|(out, half)| *out += l * half);
        }
    }
    found
}

/// The Gaussian with that mean and Cholesky factor of its precision, its deviations times `wider`.
fn around(mean: Vec<f64>, precision: &[f64], wider: f64) -> Gaussian {
    let rank = mean.len();
    let ln_det = precision.iter().step_by(rank + 1).map(|x| (wider / x).ln()).sum();
    let factor = inverse_factor(precision, rank).iter().map(|a| wider * a).collect();
    Gaussian { mean, factor, ln_det }
}

/// The same point in every lane.
fn spread(z: &[f64]) -> Vec<Lanes> {
    z.iter().map(|&z| [z; LANES]).collect()
}

/// Largest variance of a coordinate of the topic weights up to which a fitted Gaussian finds the whole
/// posterior. From 15 on, replicates agree on values that are up to four errors below those of
/// quadrature, documents of six tokens and three topics.
const WIDEST: f64 = 10.0;

/// Path of annealing of a document. It starts at a Gaussian that is fitted to the posterior, or at the
/// prior where that is wide: a document may then be of one topic or another, far apart.
pub(super) fn path(
    decoder: &Local<'_>,
    link: Link,
    prior: &NormalPrior<'_>,
    rng: &mut Rng,
) -> Path {
    if link == Link::Identity || prior.largest_variance() <= WIDEST {
        let (gaussian, angle) = moments(decoder, link, prior, rng);
        return Path { start: Start::Fitted, gaussian, angle };
    }
    let mode = laplace(decoder, link, prior, &vec![0.0; prior.rank]).mean;
    let gaussian = Gaussian::standard(prior.rank);
    let target = Potential::new(decoder, link, prior, &gaussian);
    let mut walk = Walk::at(&target, spread(&mode));
    let mut angle = Angle::new();
    for _ in 0..SHORT_STEPS {
        let acceptance = walk.step(&target, 1.0, angle.value(), rng);
        angle.learn(acceptance);
    }
    Path { start: Start::Prior, gaussian, angle: angle.value() }
}

/// The Gaussian with the mean of short chains from the mode and with their mean curvature, which sees
/// how wide the posterior is better than the mode's; and the angle of their steps.
fn moments(
    decoder: &Local<'_>,
    link: Link,
    prior: &NormalPrior<'_>,
    rng: &mut Rng,
) -> (Gaussian, f64) {
    let start = laplace(decoder, link, prior, &vec![0.0; prior.rank]);
    let target = Potential::new(decoder, link, prior, &start);
    let mut walk = Walk::draw(&target, rng);
    let mut angle = Angle::new();
    let mut sums = vec![0.0; prior.rank];
    for step in 0..SHORT_STEPS {
        let acceptance = walk.step(&target, 1.0, angle.value(), rng);
        angle.learn(acceptance);
        if step >= SHORT_STEPS / 2 {
            for (sum, u) in sums.iter_mut().zip(&walk.u) {
                *sum += u.iter().sum::<f64>();
            }
        }
    }
    let n = ((SHORT_STEPS - SHORT_STEPS / 2) * LANES) as f64;
    let shift: Vec<f64> = sums.iter().map(|sum| sum / n).collect();
    let rows = start.factor.chunks_exact(prior.rank);
    let mean = rows.zip(&start.mean).map(|(row, mean)| mean + dot(row, &shift)).collect();
    walk.look(&target);
    let (found, safe) = mean_curvature(decoder, link, &target, &walk);
    let precision = factor_of_precision(&found, &safe, prior);
    (around(mean, &precision, WIDER), angle.value())
}

/// Means over the chains' states of both matrices of [`Local::curvature`].
fn mean_curvature(
    decoder: &Local<'_>,
    link: Link,
    target: &Potential<'_>,
    walk: &Walk,
) -> (Vec<f64>, Vec<f64>) {
    let states =
        (0..LANES).map(|lane| decoder.curvature(link, &target.coordinates(&walk.room, lane)));
    let add = |x: Vec<f64>, y: Vec<f64>| x.iter().zip(y).map(|(x, y)| x + y).collect::<Vec<f64>>();
    let sums = states.reduce(|sums, next| (add(sums.0, next.0), add(sums.1, next.1)));
    let (found, safe) = sums.unwrap_or_default();
    let mean = |sum: Vec<f64>| sum.iter().map(|x| x / LANES as f64).collect();
    (mean(found), mean(safe))
}

//! The tail of importance weights.

use super::LogSum;

/// Share of the weights, and factor of the root of their number, that make the tail: the fewer
/// count (Vehtari, Simpson, Gelman, Yao & Gabry 2024).
const SHARE: f64 = 0.2;
const ROOTS: f64 = 3.0;
/// Grid of the profile likelihood, and scale of its prior (Zhang & Stephens 2009).
const GRID: usize = 30;
const PRIOR_SCALE: f64 = 3.0;
/// Prior of the shape: so many further terms of shape 1/2 (Vehtari et al. 2024).
const PRIOR_TERMS: f64 = 10.0;
const PRIOR_SHAPE: f64 = 0.5;

/// Least shape of a heavy tail (Vehtari et al. 2024).
const HEAVY: f64 = 0.7;

/// Whether the mean of some weights, given by their logarithms, rests on so few of them that larger
/// ones are missing: the shape of their tail is above 0.7, and the largest is more than 1/√n of
/// their sum. Weights of few different values may have the first without the second. They get
/// sorted.
pub fn has_heavy_tail(ln_weights: &mut [f64]) -> bool {
    let ln_sum = ln_weights.iter().copied().collect::<LogSum>().ln_sum();
    let shape = pareto_shape(ln_weights);
    let ln_largest = ln_weights.last().copied().unwrap_or(f64::NEG_INFINITY);
    shape > HEAVY && ln_largest - ln_sum > -0.5 * (ln_weights.len() as f64).ln()
}

/// Shape k of the generalised Pareto distribution fitted to the largest of some weights, which are
/// given by their logarithms and get sorted: weights have 1/k moments. `-inf` where there are too
/// few, or where many are equal.
fn pareto_shape(ln_weights: &mut [f64]) -> f64 {
    ln_weights.sort_unstable_by(f64::total_cmp);
    let n = ln_weights.len() as f64;
    let n_tail = (SHARE * n).min(ROOTS * n.sqrt()) as usize;
    if n_tail < 5 {
        return f64::NEG_INFINITY;
    }
    let (body, tail) = ln_weights.split_at(ln_weights.len() - n_tail);
    let ln_largest = tail[n_tail - 1];
    let cut = (body[body.len() - 1] - ln_largest).exp();
    let excesses: Vec<f64> = tail.iter().map(|x| (x - ln_largest).exp() - cut).collect();
    shape_of(&excesses)
}

/// The same of increasing excesses over a threshold, by the mean of the profile likelihood over a
/// grid of b = -k / scale.
fn shape_of(excesses: &[f64]) -> f64 {
    let n = excesses.len() as f64;
    let (quartile, largest) =
        (excesses[(n / 4.0 + 0.5) as usize - 1], excesses[excesses.len() - 1]);
    if quartile <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let shape_at = |b: f64| excesses.iter().map(|x| (-b * x).ln_1p()).sum::<f64>() / n;
    let n_points = GRID + n.sqrt() as usize;
    let points: Vec<(f64, f64)> = (0..n_points)
        .map(|i| {
            let root = (n_points as f64 / (i as f64 + 0.5)).sqrt();
            let b = largest.recip() + (1.0 - root) / (PRIOR_SCALE * quartile);
            let k = shape_at(b);
            (b, n * ((-b / k).ln() - k - 1.0))
        })
        .collect();
    let ln_norm =
        points.iter().map(|&(_, ln_likelihood)| ln_likelihood).collect::<LogSum>().ln_sum();
    let b = points.iter().map(|(b, ln_likelihood)| b * (ln_likelihood - ln_norm).exp()).sum();
    (n * shape_at(b) + PRIOR_TERMS * PRIOR_SHAPE) / (n + PRIOR_TERMS)
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::rng::{Key, Purpose};

    #[test]
    fn finds_the_shape_of_weights_drawn_from_a_pareto_distribution() {
        let mut rng = Key::new(1, Purpose::Score).rng();
        for shape in [0.2, 0.5, 1.0, 2.0] {
            let found: Vec<f64> = (0..50)
                .map(|_| {
                    let mut ln_weights: Vec<f64> =
                        (0..4_000).map(|_| -shape * rng.random::<f64>().ln()).collect();
                    pareto_shape(&mut ln_weights)
                })
                .collect();
            let (mean, error) = crate::math::mean_and_error(&found);
            // The prior pulls by a share of 10 / (10 + 189).
            let expected = shape + (PRIOR_SHAPE - shape) * 10.0 / 199.0;
            assert!((mean - expected).abs() < 4.0 * error + 0.03, "{shape}: {mean} +- {error}");
        }
    }

    #[test]
    fn a_heavy_tail_shows_in_the_sum_as_well() {
        let mut rng = Key::new(2, Purpose::Score).rng();
        let mut drawn = |shape: f64| -> Vec<f64> {
            (0..4_000).map(|_| -shape * rng.random::<f64>().ln()).collect()
        };
        assert!(!has_heavy_tail(&mut drawn(0.3)));
        assert!(has_heavy_tail(&mut drawn(1.2)));
        // Twenty values, the largest of them often: all that matter have been seen.
        let mut few: Vec<f64> = (0..4_000).map(|i| f64::from(i % 20) * 0.5).collect();
        assert!(!has_heavy_tail(&mut few));
    }

    #[test]
    fn equal_or_few_weights_have_no_tail() {
        assert!(pareto_shape(&mut [-3.0; 1_000]) < 0.0);
        assert!(pareto_shape(&mut [-3.0, -2.0, 1.0]) < 0.0);
    }
}

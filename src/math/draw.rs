//! Draws that several samplers share.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Gamma, Open01};

/// ln of a Gamma(shape, 1) variate; stays finite for shapes so small that the variate underflows.
///
/// Marsaglia and Tsang's boost: G(a) = G(a+1) U^(1/a).
pub fn ln_gamma_variate<R: Rng + ?Sized>(shape: f64, rng: &mut R) -> f64 {
    if shape >= 1.0 {
        return gamma_law(shape).sample(rng).ln();
    }
    let u: f64 = Open01.sample(rng);
    gamma_law(shape + 1.0).sample(rng).ln() + u.ln() / shape
}

/// (ln p, ln(1-p)) of a Beta(a, b) variate, finite however small a and b are.
pub fn ln_beta_variate<R: Rng + ?Sized>(a: f64, b: f64, rng: &mut R) -> (f64, f64) {
    let x = ln_gamma_variate(a, rng);
    let y = ln_gamma_variate(b, rng);
    let top = x.max(y);
    let ln_sum = top + ((x - top).exp() + (y - top).exp()).ln();
    (x - ln_sum, y - ln_sum)
}

/// Overwrites `out` by a Dirichlet(`shapes`) variate.
pub fn dirichlet<R: Rng + ?Sized>(shapes: &[f64], out: &mut [f64], rng: &mut R) {
    let top = ln_gamma_variates(shapes, out, rng);
    let mut sum = 0.0;
    for x in out.iter_mut() {
        *x = (*x - top).exp();
        sum += *x;
    }
    for x in out.iter_mut() {
        *x /= sum;
    }
}

/// Overwrites `out` by the logarithms of a Dirichlet(`shapes`) variate: finite for shapes so small
/// that weights underflow.
pub fn ln_dirichlet<R: Rng + ?Sized>(shapes: &[f64], out: &mut [f64], rng: &mut R) {
    let top = ln_gamma_variates(shapes, out, rng);
    let ln_sum = top + out.iter().map(|x| (x - top).exp()).sum::<f64>().ln();
    out.iter_mut().for_each(|x| *x -= ln_sum);
}

/// Overwrites `out` by logarithms of Gamma(shape, 1) variates; gives the largest.
fn ln_gamma_variates<R: Rng + ?Sized>(shapes: &[f64], out: &mut [f64], rng: &mut R) -> f64 {
    let mut top = f64::NEG_INFINITY;
    for (x, &shape) in out.iter_mut().zip(shapes) {
        *x = ln_gamma_variate(shape, rng);
        top = top.max(*x);
    }
    top
}

/// Customers, times the concentration, from which tables are found by jumps: at this ratio a gap
/// between two tables takes about as long to draw as to walk.
const WALK: f64 = 40.0;

/// Tables of a Chinese restaurant with n customers and concentration a: Σ_{i<n}
/// Bernoulli(a/(a+i)).
///
/// Exact. Customers are walked through while tables are dense; then, after customer i, those up to
/// and with j all join others with probability Π_{i<m<=j} m/(a+m) = E[B^(j-i)], B ~ Beta(i+1, a):
/// the next table opens after a geometric number of customers, given B. Cost: about a (`WALK` +
/// ln(n / (`WALK` a))) steps instead of n.
#[inline]
pub fn crt<R: Rng + ?Sized>(n: u32, a: f64, rng: &mut R) -> u64 {
    // Most words have no token in most topics.
    if n < 2 { n.into() } else { crt_of_several(n, a, rng) }
}

fn crt_of_several<R: Rng + ?Sized>(n: u32, a: f64, rng: &mut R) -> u64 {
    // The float is below the end of u32 or saturates there.
    let walked = n.min((WALK * a.max(1.0)) as u32);
    let opens = |&i: &u32| rng.random::<f64>() * (a + f64::from(i)) < a;
    // The first customer opens a table.
    let mut n_tables = 1 + (1..walked).filter(opens).count() as u64;
    if walked == n {
        return n_tables;
    }
    let others = gamma_law(a);
    let mut last = f64::from(walked) - 1.0;
    loop {
        // -ln B, for a B that may be as near to 1 as no double can tell.
        let ln_stay = (others.sample(rng) / gamma_law(last + 1.0).sample(rng)).ln_1p();
        let u: f64 = Open01.sample(rng);
        last += 1.0 + (-u.ln() / ln_stay).floor();
        if last >= f64::from(n) {
            return n_tables;
        }
        n_tables += 1;
    }
}

/// The distribution Gamma(shape, 1); shapes are positive and finite by the checks of every caller.
///
/// # Panics
/// Where the shape is not positive.
pub fn gamma_law(shape: f64) -> Gamma<f64> {
    match Gamma::new(shape, 1.0) {
        Ok(law) => law,
        Err(error) => panic!("Gamma({shape}, 1): {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    #[test]
    fn small_shapes_give_finite_logs_with_the_right_mean() {
        // E ln G(a) = digamma(a), and digamma(1e-3) = -1000.5755719318103...
        let mut rng = Key::new(2, Purpose::Score).rng();
        let n = 200_000;
        let mean = (0..n).map(|_| ln_gamma_variate(1e-3, &mut rng)).sum::<f64>() / f64::from(n);
        let std_error = 1000.0 / f64::from(n).sqrt();
        assert!((mean + 1_000.575_571_931_8).abs() < 4.0 * std_error, "{mean}");
    }

    #[test]
    fn dirichlet_means_are_proportional_to_the_shapes() {
        let shapes = [0.2, 1.0, 3.0];
        let mut rng = Key::new(3, Purpose::Score).rng();
        let (mut mean, mut x, n) = ([0.0; 3], [0.0; 3], 20_000);
        for _ in 0..n {
            dirichlet(&shapes, &mut x, &mut rng);
            assert!((x.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            for (m, x) in mean.iter_mut().zip(x) {
                *m += x / f64::from(n);
            }
        }
        for (m, s) in mean.iter().zip(shapes) {
            let p = s / 4.2;
            assert!((m - p).abs() < 4.0 * (p * (1.0 - p) / 5.2 / f64::from(n)).sqrt());
        }
    }

    /// Unsigned Stirling numbers of the first kind times a^l: the distribution of l tables.
    fn law_of_tables(n: u32, a: f64) -> Vec<f64> {
        let mut stirling = vec![1.0];
        for i in 0..n {
            let mut next = vec![0.0; stirling.len() + 1];
            for (l, x) in stirling.iter().enumerate() {
                next[l] += f64::from(i) / f64::from(i + 1) * x;
                next[l + 1] += x / f64::from(i + 1);
            }
            stirling = next;
        }
        let weights = (0..).zip(stirling).map(|(l, x)| x * a.powi(l));
        let weights: Vec<f64> = weights.collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / total).collect()
    }

    #[test]
    fn tables_follow_stirling_numbers_walked_and_jumped() {
        for (n, a) in [(0, 1.0), (1, 0.3), (5, 0.7), (60, 0.3), (200, 0.05), (300, 2.0), (400, 5.0)]
        {
            let mut rng = Key::new(u64::from(n), Purpose::Score).rng();
            let runs = 40_000;
            let law = law_of_tables(n, a);
            let mut seen = vec![0.0; law.len()];
            (0..runs).for_each(|_| seen[crt(n, a, &mut rng) as usize] += 1.0);
            // Bins of at least ten expected draws.
            let (mut chi_squared, mut n_bins) = (0.0, 0.0);
            let (mut expected, mut found, mut left) = (0.0, 0.0, 1.0);
            for (p, seen) in law.iter().zip(&seen) {
                (expected, found, left) = (expected + p * f64::from(runs), found + seen, left - p);
                if expected >= 10.0 && left * f64::from(runs) >= 10.0 {
                    chi_squared += (found - expected) * (found - expected) / expected;
                    (expected, found, n_bins) = (0.0, 0.0, n_bins + 1.0);
                }
            }
            chi_squared += (found - expected) * (found - expected) / expected;
            // Wilson and Hilferty: the cube root is normal.
            if n_bins > 0.0 {
                let spread = 2.0 / (9.0 * n_bins);
                let deviation = ((chi_squared / n_bins).cbrt() - (1.0 - spread)) / spread.sqrt();
                assert!(deviation < 3.3, "{n}, {a}: chi-squared {chi_squared}, {n_bins} bins");
            } else {
                assert!(chi_squared < 1e-9, "{n}, {a}: {seen:?}");
            }
        }
    }

    #[test]
    fn many_customers_have_the_mean_and_the_variance_of_their_tables() {
        let n = 10_000_000;
        for a in [1e-3, 0.5, 30.0] {
            let (mut mean, mut variance) = (0.0, 0.0);
            for i in 0..n {
                let p = a / (a + f64::from(i));
                (mean, variance) = (mean + p, variance + p * (1.0 - p));
            }
            let mut rng = Key::new(5, Purpose::Score).rng();
            let runs = 20_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..runs {
                let x = crt(n, a, &mut rng) as f64 - mean;
                (sum, squares) = (sum + x / f64::from(runs), squares + x * x / f64::from(runs));
            }
            assert!(sum.abs() < 4.0 * (variance / f64::from(runs)).sqrt(), "{a}: {sum} {variance}");
            // The excess kurtosis of a sum of Bernoullis is at most 1 / variance.
            let error = variance * ((2.0 + 1.0 / variance) / f64::from(runs)).sqrt();
            assert!((squares - variance).abs() < 4.0 * error, "{a}: {squares} {variance}");
        }
    }

    #[test]
    fn extreme_concentrations_open_one_table_or_all() {
        let mut rng = Key::new(6, Purpose::Score).rng();
        assert_eq!(crt(u32::MAX, f64::MIN_POSITIVE, &mut rng), 1);
        assert_eq!(crt(50, 1e100, &mut rng), 50);
    }
}

//! Mean-field responsibilities of a document's tokens, and importance sampling by them (ELTM 3.3).

use rand::RngExt;

use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::{Cumulative, LogSum, ln_rising};
use crate::rng::Rng;
use crate::urn::LocalUrn;

/// Iterations behind the proposal of [`ln_urn_sums`].
const PROPOSAL_ITERATIONS: usize = 20;

/// ln Ẑ of `n_runs` independent importance samples of `n_samples` draws: the tokens' topics are
/// drawn independently by their responsibilities.
///
/// Unbiased. Cost: (iterations + samples) x tokens x topics.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub fn ln_urn_sums(
    urn: &LocalUrn,
    n_runs: usize,
    n_samples: usize,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let n_topics = urn.n_topics();
    let g = responsibilities(urn, PROPOSAL_ITERATIONS);
    let ones = vec![1.0; n_topics];
    let proposals: Vec<(Cumulative, f64)> = g
        .chunks_exact(n_topics)
        .map(|g| {
            let mut cumulative = Cumulative::new(n_topics);
            let total = cumulative.fill(g, &ones);
            (cumulative, total)
        })
        .collect();
    let mut n = vec![0u64; n_topics];
    let mut run = || {
        let mut sum = LogSum::default();
        for _ in 0..n_samples {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            n.fill(0);
            let mut ln_weight = 0.0;
            for (cell, (q, count)) in urn.cells().enumerate() {
                let (cumulative, total) = &proposals[cell];
                for _ in 0..count {
                    let dart = (rng.random::<f64>() * total).min(total.next_down());
                    let topic = cumulative.find(dart);
                    ln_weight += (q[topic] * total / g[cell * n_topics + topic]).ln();
                    n[topic] += 1;
                }
            }
            let colours = urn.pseudo_counts().iter().zip(&n);
            sum.push(ln_weight + colours.map(|(&a, &n)| ln_rising(a, n)).sum::<f64>());
        }
        Ok(urn.ln_scale() + sum.ln_mean())
    };
    (0..n_runs).map(|_| run()).collect()
}

/// Responsibilities g of the topics for each distinct word, `n_distinct` x `n_topics`.
///
/// `g_l(k) ∝ q_{k w_l} (a_k + Σ_{l' ≠ l} g_{l'}(k))`, word by word; tokens of one word share
/// theirs. The start looks at the pseudo-counts only. Cost: iterations x distinct words x topics.
pub fn responsibilities(urn: &LocalUrn, n_iterations: usize) -> Vec<f64> {
    let n_topics = urn.n_topics();
    let mut g = vec![0.0; urn.n_distinct() * n_topics];
    let mut others = urn.pseudo_counts().to_vec();
    for (g, (q, _)) in g.chunks_exact_mut(n_topics).zip(urn.cells()) {
        update(g, &others, q);
    }
    let mut balls = urn.pseudo_counts().to_vec();
    for (g, &count) in g.chunks_exact(n_topics).zip(urn.counts()) {
        add(&mut balls, g, f64::from(count));
    }
    for _ in 0..n_iterations {
        for (g, (q, count)) in g.chunks_exact_mut(n_topics).zip(urn.cells()) {
            for ((other, ball), g) in others.iter_mut().zip(&balls).zip(&*g) {
                *other = (ball - g).max(0.0);
            }
            add(&mut balls, g, -f64::from(count));
            update(g, &others, q);
            add(&mut balls, g, f64::from(count));
        }
    }
    g
}

/// Sets g to the normalised product of `balls` and q.
fn update(g: &mut [f64], balls: &[f64], q: &[f64]) {
    let mut sum = 0.0;
    for ((g, x), q) in g.iter_mut().zip(balls).zip(q) {
        *g = x * q;
        sum += *g;
    }
    let scale = sum.recip();
    for g in g {
        *g *= scale;
    }
}

fn add(balls: &mut [f64], g: &[f64], count: f64) {
    for (x, g) in balls.iter_mut().zip(g) {
        *x += count * g;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::CountMatrix;
    use crate::urn::Urn;

    #[test]
    fn is_a_fixed_point_of_its_rule() {
        let a = vec![0.3, 0.8, 1.1];
        let q = vec![0.5, 0.1, 0.2, 0.1, 0.6, 0.0, 0.4, 0.3, 0.8];
        let counts = CountMatrix::from_dense(&[vec![3, 1, 2]]).unwrap();
        let urn = LocalUrn::new(&Urn::new(a.clone(), q).unwrap(), counts.document(0)).unwrap();
        let g = responsibilities(&urn, 500);
        for (cell, (q, _)) in urn.cells().enumerate() {
            let own = &g[cell * 3..][..3];
            let expected: Vec<f64> = (0..3)
                .map(|k| {
                    let total: f64 =
                        (0..3).map(|c| f64::from(urn.counts()[c]) * g[c * 3 + k]).sum();
                    q[k] * (a[k] + total - own[k])
                })
                .collect();
            let sum: f64 = expected.iter().sum();
            for (g, x) in own.iter().zip(expected) {
                assert!((g - x / sum).abs() < 1e-10);
            }
        }
    }
}

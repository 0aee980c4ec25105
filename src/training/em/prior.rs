//! The Dirichlet prior of the documents' topics, learned.

use rayon::prelude::*;

use crate::counts::CountMatrix;
use crate::math::{digamma, ln_gamma_ratio, trigamma};
use crate::urn::LEAST_PRIOR;

/// Documents per unit of parallel work; fixed, so that sums do not depend on the threads.
const CHUNK_DOCUMENTS: usize = 256;

/// Steps at most: the next mean field moves the expected tokens anyway.
const MAX_STEPS: usize = 3;

/// Gain in nats below which the steps end.
const ENOUGH: f64 = 1e-3;

/// Largest factor by which a Newton step lowers a value.
const LARGEST_CUT: f64 = 10.0;

/// Largest value: where all documents have the same topics, the bound rises for ever, and from
/// here by no more than rounding does.
const MOST: f64 = 1e6;

/// The bound as a function of α given q(z), and its derivatives: sums over documents d with n_dk
/// expected tokens of topic k, and N_d in all.
struct Objective {
    /// Σ_d [Σ_k ln Γ(α_k + n_dk)/Γ(α_k) - ln Γ(α_+ + N_d)/Γ(α_+)].
    value: f64,
    /// Σ_d [ψ(α_k + n_dk) - ψ(α_k)] of every topic, then Σ_d [ψ(α_+ + N_d) - ψ(α_+)].
    first: Vec<f64>,
    /// The same of ψ'.
    second: Vec<f64>,
}

/// Raises the bound over α given the expected tokens of each document's topics.
///
/// If q(θ) is at its optimum given q(z), the bound is the likelihood of α under the
/// Dirichlet-multinomial distribution: Newton steps with its Hessian, diagonal plus rank one, and
/// where one fails the fixed point, which cannot (Minka 2000, "Estimating a Dirichlet
/// distribution", eq. 55, 60 to 65). A topic that no document uses gets the least value.
pub(super) fn learn(alpha: &mut Vec<f64>, counts: &CountMatrix, doc_topic: &[f32]) {
    if alpha.len() == 1 {
        return;
    }
    let mut here = Objective::at(alpha, counts, doc_topic);
    for _ in 0..MAX_STEPS {
        let mut next = here.newton_step(alpha);
        let mut there = Objective::at(&next, counts, doc_topic);
        let better = there.value > here.value;
        if !better {
            next = here.fixed_point(alpha);
            there = Objective::at(&next, counts, doc_topic);
        }
        let gain = there.value - here.value;
        if gain >= 0.0 {
            *alpha = next;
            here = there;
        }
        if gain <= ENOUGH {
            break;
        }
    }
}

impl Objective {
    fn at(alpha: &[f64], counts: &CountMatrix, doc_topic: &[f32]) -> Self {
        let n_topics = alpha.len();
        let total: f64 = alpha.iter().sum();
        let parts: Vec<Objective> = (doc_topic.par_chunks(CHUNK_DOCUMENTS * n_topics).enumerate())
            .map(|(chunk, rows)| {
                let mut part = Objective::zero(n_topics);
                for (doc_ix, row) in (chunk * CHUNK_DOCUMENTS..).zip(rows.chunks_exact(n_topics)) {
                    for (k, &n) in row.iter().enumerate().filter(|(_, n)| **n > 0.0) {
                        part.value += part.add(k, alpha[k], f64::from(n));
                    }
                    let n_tokens = counts.document(doc_ix).n_tokens() as f64;
                    part.value -= part.add(n_topics, total, n_tokens);
                }
                part
            })
            .collect();
        let mut sum = Objective::zero(n_topics);
        for part in parts {
            sum.value += part.value;
            sum.first.iter_mut().zip(part.first).for_each(|(sum, x)| *sum += x);
            sum.second.iter_mut().zip(part.second).for_each(|(sum, x)| *sum += x);
        }
        sum
    }

    fn zero(n_topics: usize) -> Self {
        let (first, second) = (vec![0.0; n_topics + 1], vec![0.0; n_topics + 1]);
        Objective { value: 0.0, first, second }
    }

    /// ln Γ(a + n)/Γ(a), whose derivatives are added to those at a place.
    fn add(&mut self, place: usize, a: f64, n: f64) -> f64 {
        self.first[place] += digamma(a + n) - digamma(a);
        self.second[place] += trigamma(a + n) - trigamma(a);
        ln_gamma_ratio(a, n)
    }

    /// α - H⁻¹ g with H = diag(second) + z 1 1ᵀ, kept positive.
    fn newton_step(&self, alpha: &[f64]) -> Vec<f64> {
        let gradient = |k: usize| self.first[k] - self.first[alpha.len()];
        let (mut weighted, mut inverse) = (0.0, -self.second[alpha.len()].recip());
        for k in (0..alpha.len()).filter(|&k| self.second[k] < 0.0) {
            weighted += gradient(k) / self.second[k];
            inverse += self.second[k].recip();
        }
        let shared = weighted / inverse;
        let step = |(k, &a): (usize, &f64)| {
            if self.second[k] < 0.0 {
                let next = a - (gradient(k) - shared) / self.second[k];
                next.clamp((a / LARGEST_CUT).max(LEAST_PRIOR), MOST)
            } else {
                LEAST_PRIOR
            }
        };
        alpha.iter().enumerate().map(step).collect()
    }

    fn fixed_point(&self, alpha: &[f64]) -> Vec<f64> {
        let length = self.first[alpha.len()];
        let next = |(a, first): (&f64, &f64)| (a * first / length).clamp(LEAST_PRIOR, MOST);
        alpha.iter().zip(&self.first).map(next).collect()
    }
}

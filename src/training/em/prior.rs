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
/// expected tokens of topic k.
#[derive(Clone)]
struct Objective {
    /// Σ_d [Σ_k ln Γ(α_k + n_dk)/Γ(α_k) - ln Γ(α_+ + N_d)/Γ(α_+)].
    value: f64,
    /// Σ_d [ψ(α_k + n_dk) - ψ(α_k)].
    first: Vec<f64>,
    /// Σ_d [ψ'(α_k + n_dk) - ψ'(α_k)].
    second: Vec<f64>,
    /// Σ_d [ψ(α_+ + N_d) - ψ(α_+)].
    length_first: f64,
    /// Σ_d [ψ'(α_+ + N_d) - ψ'(α_+)].
    length_second: f64,
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
                    part.add_topics(alpha, row);
                    part.add_length(total, counts.document(doc_ix).n_tokens() as f64);
                }
                part
            })
            .collect();
        let mut sum = Objective::zero(n_topics);
        parts.iter().for_each(|part| sum.add(part));
        sum
    }

    fn zero(n_topics: usize) -> Self {
        let (first, second) = (vec![0.0; n_topics], vec![0.0; n_topics]);
        Objective { value: 0.0, first, second, length_first: 0.0, length_second: 0.0 }
    }

    fn add_topics(&mut self, alpha: &[f64], tokens: &[f32]) {
        let used = tokens.iter().enumerate().filter(|(_, n)| **n > 0.0);
        for (k, &n) in used {
            let (a, n) = (alpha[k], f64::from(n));
            self.value += ln_gamma_ratio(a, n);
            self.first[k] += digamma(a + n) - digamma(a);
            self.second[k] += trigamma(a + n) - trigamma(a);
        }
    }

    fn add_length(&mut self, total: f64, n_tokens: f64) {
        self.value -= ln_gamma_ratio(total, n_tokens);
        self.length_first += digamma(total + n_tokens) - digamma(total);
        self.length_second += trigamma(total + n_tokens) - trigamma(total);
    }

    fn add(&mut self, other: &Objective) {
        self.value += other.value;
        self.first.iter_mut().zip(&other.first).for_each(|(sum, x)| *sum += x);
        self.second.iter_mut().zip(&other.second).for_each(|(sum, x)| *sum += x);
        self.length_first += other.length_first;
        self.length_second += other.length_second;
    }

    /// α - H⁻¹ g with H = diag(second) + z 1 1ᵀ, kept positive.
    fn newton_step(&self, alpha: &[f64]) -> Vec<f64> {
        let gradient = |k: usize| self.first[k] - self.length_first;
        let (mut weighted, mut inverse) = (0.0, -self.length_second.recip());
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
        let next =
            |(a, first): (&f64, &f64)| (a * first / self.length_first).clamp(LEAST_PRIOR, MOST);
        alpha.iter().zip(&self.first).map(next).collect()
    }
}

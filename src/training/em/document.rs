//! The mean field of one document.

// Each kernel is compiled for several instruction sets, with all its parts in it.
#![allow(clippy::inline_always)]

use crate::counts::Document;
use crate::math::elementary::exp;
use crate::math::{digamma, dot, ln_gamma_ratio};

/// Expected tokens below which a topic leaves a document until the next iteration. What it takes
/// along is that much of a token's probability, far below the rounding of the bound.
const NO_TOKENS: f64 = 1e-10;

/// Least ln of a topic's weight: any weights give a bound, these never underflow beside each other.
const LEAST_LN_WEIGHT: f64 = -600.0;

/// When the updates of a document end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Largest number of updates.
    pub(super) most: usize,
    /// Share of the document's tokens below which the change of an update ends them.
    pub(super) change: f64,
}

/// One thread's buffers: the rows of φ that a document needs, and its topics' weights.
pub(super) struct DocumentScratch {
    /// Topics that have any tokens.
    alive: Vec<usize>,
    /// φ of the distinct words and the topics alive, word by word.
    rows: Vec<f64>,
    /// Expected tokens of each topic alive.
    tokens: Vec<f64>,
    /// ψ(γ) of each topic alive, and its exponential.
    ln_weights: Vec<f64>,
    weights: Vec<f64>,
    updated: Vec<f64>,
}

impl DocumentScratch {
    pub(super) fn new(n_topics: usize) -> Self {
        let (alive, rows) = (Vec::with_capacity(n_topics), vec![]);
        let [tokens, ln_weights, weights, updated] = [(); 4].map(|()| Vec::with_capacity(n_topics));
        DocumentScratch { alive, rows, tokens, ln_weights, weights, updated }
    }

    /// Coordinate ascent from the expected tokens of each topic `doc_topic`, which it replaces.
    ///
    /// Each update sets q(z) ∝ exp(ψ(γ_k)) φ_kw and γ = α + Σ n_w q(z) (Blei, Ng and Jordan 2003,
    /// eq. 6 and 7, without the normalisation that cancels). Returns the bound of the document, and
    /// adds the expected tokens of its words to `expected`.
    pub(super) fn fit(
        &mut self,
        document: Document<'_>,
        phi: &[f64],
        alpha: &[f64],
        doc_topic: &mut [f32],
        effort: Effort,
        expected: Expected<'_>,
    ) -> f64 {
        let n_topics = alpha.len();
        if document.n_distinct() == 0 {
            doc_topic.fill(0.0);
            return 0.0;
        }
        self.alive.clear();
        self.alive.extend(0..n_topics);
        self.tokens.clear();
        self.tokens.extend(doc_topic.iter().map(|&n| f64::from(n)));
        self.rows.clear();
        for &word in document.words() {
            self.rows.extend_from_slice(&phi[word as usize * n_topics..][..n_topics]);
        }
        let enough = effort.change * document.n_tokens() as f64;
        for _ in 0..effort.most {
            self.weigh(alpha);
            update(&self.rows, document.counts(), &self.weights, &mut self.updated);
            let change: f64 =
                self.updated.iter().zip(&self.tokens).map(|(new, old)| (new - old).abs()).sum();
            std::mem::swap(&mut self.tokens, &mut self.updated);
            self.bury();
            if change <= enough {
                break;
            }
        }
        self.weigh(alpha);
        let cells = (&self.rows[..], document.counts());
        let ln_words = account(cells, &self.weights, &mut self.tokens, &self.alive, expected);
        doc_topic.fill(0.0);
        for (&topic, &n) in self.alive.iter().zip(&self.tokens) {
            doc_topic[topic] = n as f32;
        }
        ln_words + self.ln_topics(alpha) - ln_length(alpha, document.n_tokens())
    }

    /// Σ_k [ln Γ(α_k + n_k)/Γ(α_k) - n_k ψ(γ_k)]: with γ = α + n, all of the bound but the words
    /// and the length; topics without tokens have no part in it.
    fn ln_topics(&self, alpha: &[f64]) -> f64 {
        let topics = self.alive.iter().zip(&self.tokens).zip(&self.ln_weights);
        topics
            .map(|((&topic, &n), ln_weight)| ln_gamma_ratio(alpha[topic], n) - n * ln_weight)
            .sum()
    }

    fn weigh(&mut self, alpha: &[f64]) {
        self.ln_weights.clear();
        let gamma = self.alive.iter().zip(&self.tokens).map(|(&topic, n)| alpha[topic] + n);
        self.ln_weights.extend(gamma.map(|gamma| digamma(gamma).max(LEAST_LN_WEIGHT)));
        self.weights.clear();
        self.weights.extend(self.ln_weights.iter().map(|&x| exp(x)));
        self.updated.resize(self.alive.len(), 0.0);
    }

    /// Drops topics without tokens, once there are enough of them to be worth the copying.
    fn bury(&mut self) {
        let width = self.alive.len();
        let n_alive = self.tokens.iter().filter(|&&n| n > NO_TOKENS).count();
        if 8 * n_alive > 7 * width {
            return;
        }
        let tokens = &self.tokens;
        let kept: Vec<usize> = (0..width).filter(|&i| tokens[i] > NO_TOKENS).collect();
        let mut to = 0;
        for from in (0..self.rows.len()).step_by(width) {
            for &i in &kept {
                self.rows[to] = self.rows[from + i];
                to += 1;
            }
        }
        self.rows.truncate(to);
        for (to, &from) in kept.iter().enumerate() {
            self.alive[to] = self.alive[from];
            self.tokens[to] = self.tokens[from];
        }
        self.alive.truncate(n_alive);
        self.tokens.truncate(n_alive);
    }
}

/// Rows of a matrix with one row a word, to which a document adds its expected tokens.
pub(super) struct Expected<'a> {
    /// Words x topics.
    pub(super) sums: &'a mut [f64],
    /// The row of each distinct word.
    pub(super) rows: &'a [u32],
    /// Width of a row.
    pub(super) n_topics: usize,
}

/// ln Γ(α_+ + N)/Γ(α_+).
fn ln_length(alpha: &[f64], n_tokens: u64) -> f64 {
    ln_gamma_ratio(alpha.iter().sum(), n_tokens as f64)
}

/// Sets `tokens` to the expected tokens of each topic: Σ_w n_w φ_kw e_k / Σ_j φ_jw e_j.
#[polyabayes_macros::vectorised(avx2)]
fn update(rows: &[f64], counts: &[u32], weights: &[f64], tokens: &mut [f64]) {
    tokens.fill(0.0);
    for (row, &count) in rows.chunks_exact(weights.len()).zip(counts) {
        let share = f64::from(count) / dot(row, weights);
        for (n, phi) in tokens.iter_mut().zip(row) {
            *n += share * phi;
        }
    }
    for (n, weight) in tokens.iter_mut().zip(weights) {
        *n *= weight;
    }
}

/// Does the same as [`update`]; also adds each cell's expected tokens to `expected`, and returns
/// Σ_w n_w ln Σ_k φ_kw e_k.
#[polyabayes_macros::vectorised(avx2)]
fn account(
    (rows, counts): (&[f64], &[u32]),
    weights: &[f64],
    tokens: &mut [f64],
    alive: &[usize],
    expected: Expected<'_>,
) -> f64 {
    let Expected { sums: all, rows: own, n_topics } = expected;
    tokens.fill(0.0);
    let mut ln_words = 0.0;
    for ((row, &count), &to) in rows.chunks_exact(weights.len()).zip(counts).zip(own) {
        let norm = dot(row, weights);
        ln_words += f64::from(count) * libm::log(norm);
        let share = f64::from(count) / norm;
        let sums = &mut all[to as usize * n_topics..][..n_topics];
        for (((n, phi), weight), &topic) in tokens.iter_mut().zip(row).zip(weights).zip(alive) {
            let x = share * phi * weight;
            *n += x;
            sums[topic] += x;
        }
    }
    ln_words
}

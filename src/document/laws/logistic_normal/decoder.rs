//! The probability of a document's words given its latent vector, sixteen vectors at a time.

// Inlined into the kernel that is compiled for several instruction sets.
#![allow(clippy::inline_always)]

use super::super::urn::{check_shape, word_major};
use crate::counts::Document;
use crate::document::Vocabularies;
use crate::error::{Result, check_all, check_length};
use crate::math::dot;
use crate::math::elementary::{exp, ln};
use crate::rng::{LANES, Lanes};

/// Smallest p(w | θ) whose logarithm is taken directly; below it the sum is taken on the log scale.
const SMALLEST: f64 = 1e-280;

/// How latent coordinates η become the input of the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// θ = softmax(η), a coordinate for each topic (CTM, ETM, neural models).
    Softmax,
    /// θ = softmax(η, 0): the last topic is the reference (STM).
    Reference,
    /// x = η itself; for products of experts only.
    Identity,
}

/// p(w | weights).
#[derive(Debug, Clone, PartialEq)]
pub enum Decoder {
    /// Σ_k θ_k φ_kw; `phi` is words x topics.
    Mixture {
        /// Topic-word probabilities, word-major.
        phi: Vec<f64>,
        /// Words of each vocabulary.
        vocabularies: Vocabularies,
    },
    /// softmax_w(b_w + Σ_k B_kw x_k) over each vocabulary; `loadings` are words x topics.
    Experts {
        /// B, word-major.
        loadings: Vec<f64>,
        /// b.
        bias: Vec<f64>,
        /// Words of each vocabulary.
        vocabularies: Vocabularies,
    },
}

impl Decoder {
    /// A mixture of topics; `phi` is row-major, topics x words, with rows that sum to 1 in each of the
    /// vocabularies of these `sizes`; without sizes there is one.
    ///
    /// # Errors
    /// Sizes that disagree, entries that are negative, rows that do not sum to 1.
    pub fn mixture(n_topics: usize, phi: &[f64], sizes: &[usize]) -> Result<Self> {
        let n_words = check_shape(n_topics, phi, "topic_word")?;
        let is_valid = |x: f64| x >= 0.0 && x.is_finite();
        check_all("topic_word", phi, "finite and not negative", is_valid)?;
        let vocabularies = Vocabularies::new(sizes, n_words)?;
        vocabularies.check_rows(phi)?;
        Ok(Decoder::Mixture { phi: word_major(phi, &vec![1.0; n_topics]), vocabularies })
    }

    /// A product of experts; `loadings` are row-major, topics x words, and `sizes` those of
    /// vocabularies.
    ///
    /// # Errors
    /// Sizes that disagree, entries that are not finite.
    pub fn experts(
        n_topics: usize,
        loadings: &[f64],
        bias: &[f64],
        sizes: &[usize],
    ) -> Result<Self> {
        let n_words = check_shape(n_topics, loadings, "loadings")?;
        check_length("bias", bias.len(), n_words)?;
        check_all("loadings", loadings, "finite", f64::is_finite)?;
        check_all("bias", bias, "finite", f64::is_finite)?;
        let vocabularies = Vocabularies::new(sizes, n_words)?;
        let loadings = word_major(loadings, &vec![1.0; n_topics]);
        Ok(Decoder::Experts { loadings, bias: bias.to_vec(), vocabularies })
    }

    /// The decoder of one document; `None` where no topic can produce one of its words.
    pub(super) fn local(&self, n_topics: usize, document: Document<'_>) -> Option<Local<'_>> {
        let counts: Vec<f64> = document.counts().iter().map(|&y| f64::from(y)).collect();
        let n_tokens = document.n_tokens() as f64;
        let words = match self {
            Decoder::Mixture { phi, .. } => {
                let mut rows = Vec::with_capacity(counts.len() * n_topics);
                for &word in document.words() {
                    let row = &phi[word as usize * n_topics..][..n_topics];
                    if row.iter().all(|&x| x == 0.0) {
                        return None;
                    }
                    rows.extend_from_slice(row);
                }
                Words::Mixture { rows, counts }
            }
            Decoder::Experts { loadings, bias, vocabularies } => {
                let mut all = vec![0.0; bias.len()];
                for (&word, count) in document.words().iter().zip(counts) {
                    all[word as usize] = count;
                }
                let blocks = vocabularies.ranges().zip(vocabularies.n_tokens(document));
                let block = |((start, end), n_tokens): ((usize, usize), u64)| Block {
                    loadings: &loadings[start * n_topics..end * n_topics],
                    bias: &bias[start..end],
                    counts: all[start..end].to_vec(),
                    n_tokens: n_tokens as f64,
                };
                Words::Experts(blocks.filter(|(_, n)| *n > 0).map(block).collect())
            }
        };
        Some(Local { n_topics, n_tokens, words })
    }
}

/// A decoder restricted to what one document needs of it.
pub(super) struct Local<'a> {
    n_topics: usize,
    n_tokens: f64,
    words: Words<'a>,
}

enum Words<'a> {
    /// Rows of φ of the document's distinct words.
    Mixture { rows: Vec<f64>, counts: Vec<f64> },
    /// All words of the vocabularies with tokens: each takes part in the normaliser of its own.
    Experts(Vec<Block<'a>>),
}

/// The words of a vocabulary.
struct Block<'a> {
    loadings: &'a [f64],
    bias: &'a [f64],
    counts: Vec<f64>,
    n_tokens: f64,
}

impl Block<'_> {
    /// Adds minus the second derivative of ln p by the input of the decoder.
    fn add_curvature(&self, theta: &[f64], total: &mut [f64]) {
        let n = theta.len();
        let rows = || self.loadings.chunks_exact(n);
        let logits: Vec<f64> = rows().zip(self.bias).map(|(row, b)| b + dot(row, theta)).collect();
        let p = softmax(&logits);
        let mut mean = vec![0.0; n];
        for (row, &p) in rows().zip(&p) {
            for i in 0..n {
                mean[i] += p * row[i];
                for j in 0..n {
                    total[i * n + j] += self.n_tokens * p * row[i] * row[j];
                }
            }
        }
        for i in 0..n {
            for j in 0..n {
                total[i * n + j] -= self.n_tokens * mean[i] * mean[j];
            }
        }
    }
}

/// Memory that evaluations share.
#[derive(Default)]
pub(super) struct DecoderScratch {
    theta: Vec<Lanes>,
    gradient: Vec<Lanes>,
    logits: Vec<Lanes>,
}

impl Local<'_> {
    /// ln p(tokens | η) of one η.
    pub(super) fn at(&self, link: Link, eta: &[f64]) -> f64 {
        let eta: Vec<Lanes> = eta.iter().map(|&x| [x; LANES]).collect();
        let mut gradient = vec![[0.0; LANES]; eta.len()];
        evaluate(self, link, &eta, &mut gradient, &mut DecoderScratch::default())[0]
    }

    /// Minus the second derivative of ln p(tokens | η), row-major, and a bound of it that is never
    /// negative definite: both without the part of the link's own curvature for products of experts.
    pub(super) fn curvature(&self, link: Link, eta: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let theta = weights(link, eta);
        let n = self.n_topics;
        let mut safe = vec![0.0; n * n];
        match &self.words {
            Words::Mixture { rows, counts } => {
                for (i, &x) in theta.iter().enumerate() {
                    for (j, &y) in theta.iter().enumerate() {
                        safe[i * n + j] = -self.n_tokens * x * y;
                    }
                    safe[i * n + i] += self.n_tokens * x;
                }
                let mut found = safe.clone();
                for (row, &count) in rows.chunks_exact(n).zip(counts) {
                    let shares: Vec<f64> = row.iter().zip(&theta).map(|(q, x)| q * x).collect();
                    let sum: f64 = shares.iter().sum();
                    for (i, own) in found.chunks_exact_mut(n).enumerate() {
                        let share = count * shares[i] / sum;
                        own[i] -= share;
                        let factor = share / sum;
                        own.iter_mut().zip(&shares).for_each(|(x, share)| *x += factor * share);
                    }
                }
                (corner(found, n, eta.len()), corner(safe, n, eta.len()))
            }
            Words::Experts(blocks) => {
                blocks.iter().for_each(|block| block.add_curvature(&theta, &mut safe));
                let found = corner(through(link, &theta, safe), n, eta.len());
                (found.clone(), found)
            }
        }
    }
}

/// J M J for the derivative J of the link at θ.
fn through(link: Link, theta: &[f64], matrix: Vec<f64>) -> Vec<f64> {
    if link == Link::Identity {
        return matrix;
    }
    let n = theta.len();
    let apply = |matrix: &[f64]| {
        // Rows of J M: θ_i (M_ij - Σ_l θ_l M_lj); returned transposed.
        let mut found = vec![0.0; n * n];
        for j in 0..n {
            let mean: f64 = (0..n).map(|l| theta[l] * matrix[l * n + j]).sum();
            for i in 0..n {
                found[j * n + i] = theta[i] * (matrix[i * n + j] - mean);
            }
        }
        found
    };
    apply(&apply(&matrix))
}

/// The leading rows and columns: a reference topic has no coordinate.
fn corner(matrix: Vec<f64>, n: usize, size: usize) -> Vec<f64> {
    if n == size {
        return matrix;
    }
    matrix.chunks_exact(n).take(size).flat_map(|row| row[..size].to_vec()).collect()
}

/// Input of the decoder at η.
pub(super) fn weights(link: Link, eta: &[f64]) -> Vec<f64> {
    match link {
        Link::Softmax => softmax(eta),
        Link::Reference => softmax(&[eta, &[0.0]].concat()),
        Link::Identity => eta.to_vec(),
    }
}

fn softmax(x: &[f64]) -> Vec<f64> {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = x.iter().map(|x| exp(x - largest)).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|x| x / sum).collect()
}

/// ln p(tokens | η) of sixteen vectors η, and its gradient.
#[polyabayes_macros::vectorised]
pub(super) fn evaluate(
    local: &Local<'_>,
    link: Link,
    eta: &[Lanes],
    gradient: &mut [Lanes],
    scratch: &mut DecoderScratch,
) -> Lanes {
    let n_topics = local.n_topics;
    let DecoderScratch { theta, gradient: inner, logits } = scratch;
    theta.clear();
    theta.extend_from_slice(eta);
    theta.resize(n_topics, [0.0; LANES]);
    if link != Link::Identity {
        normalise(theta);
    }
    inner.clear();
    inner.resize(n_topics, [0.0; LANES]);
    let mut value = [0.0; LANES];
    match &local.words {
        Words::Mixture { rows, counts } => value = mixture(rows, counts, eta, theta, inner),
        Words::Experts(blocks) => {
            for block in blocks {
                let own = experts(block, theta, inner, logits);
                (0..LANES).for_each(|lane| value[lane] += own[lane]);
            }
        }
    }
    if link != Link::Identity {
        let mut mean = [0.0; LANES];
        for (x, g) in theta.iter().zip(inner.iter()) {
            for lane in 0..LANES {
                mean[lane] += x[lane] * g[lane];
            }
        }
        for (x, g) in theta.iter().zip(inner.iter_mut()) {
            for lane in 0..LANES {
                g[lane] = x[lane] * (g[lane] - mean[lane]);
            }
        }
    }
    gradient.copy_from_slice(&inner[..gradient.len()]);
    value
}

/// Softmax over topics, lane by lane.
#[inline(always)]
fn normalise(theta: &mut [Lanes]) {
    let mut largest = [f64::NEG_INFINITY; LANES];
    for x in theta.iter() {
        for lane in 0..LANES {
            largest[lane] = largest[lane].max(x[lane]);
        }
    }
    let mut sum = [0.0; LANES];
    for x in theta.iter_mut() {
        for lane in 0..LANES {
            x[lane] = exp(x[lane] - largest[lane]);
            sum[lane] += x[lane];
        }
    }
    for x in theta.iter_mut() {
        for lane in 0..LANES {
            x[lane] /= sum[lane];
        }
    }
}

/// Σ_w y_w ln Σ_k θ_k φ_kw, and its derivatives by θ.
#[inline(always)]
fn mixture(
    rows: &[f64],
    counts: &[f64],
    eta: &[Lanes],
    theta: &[Lanes],
    gradient: &mut [Lanes],
) -> Lanes {
    let mut value = [0.0; LANES];
    for (row, &count) in rows.chunks_exact(theta.len()).zip(counts) {
        let mut sum = [0.0; LANES];
        for (&q, x) in row.iter().zip(theta) {
            for lane in 0..LANES {
                sum[lane] += q * x[lane];
            }
        }
        let mut share = [0.0; LANES];
        let mut is_tiny = false;
        for lane in 0..LANES {
            is_tiny |= sum[lane] < SMALLEST;
            let sum = sum[lane].max(SMALLEST);
            share[lane] = count / sum;
            value[lane] += count * ln(sum);
        }
        if is_tiny {
            for lane in (0..LANES).filter(|&lane| sum[lane] < SMALLEST) {
                value[lane] += count * (ln_mixture(row, eta, lane) - ln(SMALLEST));
            }
        }
        for (&q, g) in row.iter().zip(gradient.iter_mut()) {
            for lane in 0..LANES {
                g[lane] += q * share[lane];
            }
        }
    }
    value
}

/// ln Σ_k θ_k φ_kw on the log scale; a topic without coordinate is the reference.
#[cold]
fn ln_mixture(row: &[f64], eta: &[Lanes], lane: usize) -> f64 {
    let at = |topic: usize| eta.get(topic).map_or(0.0, |x| x[lane]);
    let total: crate::math::LogSum = (0..row.len()).map(at).collect();
    let terms = row.iter().enumerate().filter(|(_, q)| **q > 0.0);
    let sum: crate::math::LogSum = terms.map(|(topic, q)| q.ln() + at(topic)).collect();
    sum.ln_sum() - total.ln_sum()
}

/// Σ_w y_w ln softmax_w(b + B x), and its derivatives by x.
#[inline(always)]
fn experts(
    block: &Block<'_>,
    x: &[Lanes],
    gradient: &mut [Lanes],
    logits: &mut Vec<Lanes>,
) -> Lanes {
    let Block { loadings, bias, ref counts, n_tokens } = *block;
    let n_topics = x.len();
    logits.clear();
    let mut largest = [f64::NEG_INFINITY; LANES];
    let mut value = [0.0; LANES];
    for ((row, &b), &count) in loadings.chunks_exact(n_topics).zip(bias).zip(counts) {
        let mut logit = [b; LANES];
        for (&load, x) in row.iter().zip(x) {
            for lane in 0..LANES {
                logit[lane] += load * x[lane];
            }
        }
        for lane in 0..LANES {
            largest[lane] = largest[lane].max(logit[lane]);
            value[lane] += count * logit[lane];
        }
        logits.push(logit);
    }
    let mut sum = [0.0; LANES];
    for logit in logits.iter_mut() {
        for lane in 0..LANES {
            logit[lane] = exp(logit[lane] - largest[lane]);
            sum[lane] += logit[lane];
        }
    }
    let mut scale = [0.0; LANES];
    for lane in 0..LANES {
        value[lane] -= n_tokens * (largest[lane] + ln(sum[lane]));
        scale[lane] = n_tokens / sum[lane];
    }
    for ((row, power), &count) in loadings.chunks_exact(n_topics).zip(logits.iter()).zip(counts) {
        let mut residual = [0.0; LANES];
        for lane in 0..LANES {
            residual[lane] = count - scale[lane] * power[lane];
        }
        for (&load, g) in row.iter().zip(gradient.iter_mut()) {
            for lane in 0..LANES {
                g[lane] += load * residual[lane];
            }
        }
    }
    value
}

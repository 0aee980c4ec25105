//! The topics φ given the topic of every token.

use std::sync::Arc;

use rand_distr::Distribution as _;
use rayon::prelude::*;

use super::blocks::Step;
use super::word_counts::WordCounts;
use crate::error::{Result, array_of};
use crate::math::{crt, dirichlet, fill_gammas, gamma_law, ln_beta_variate, ln_rising};
use crate::rng::Key;
use crate::training::limits::LEAST_PRIOR;
use crate::training::schedule::TopicStep;

/// Weights per unit of parallel work; fixed, so that sums do not depend on the threads.
const CHUNK_WEIGHTS: usize = 1 << 14;

/// Sum of gamma variates below which their ratios have lost their precision.
const VANISHED: f64 = 1e-280;

/// Word-major topics, and the number of tokens of each.
pub struct Topics {
    /// φ_kw up to the scale of each topic, `n_words` x `n_topics`.
    pub(in crate::training) weights: Vec<f64>,
    /// Factor of the weights of each topic.
    pub(in crate::training) scale: Vec<f64>,
    /// Tokens of each topic.
    pub(in crate::training) n_tokens: Vec<u64>,
    /// Dirichlet parameter β.
    pub(in crate::training) prior: f64,
    /// A Dirichlet parameter for every word and topic, word-major, in place of β.
    pub(in crate::training) own_priors: Option<Arc<[f64]>>,
}

impl Topics {
    pub(in crate::training) fn new(n_words: usize, n_topics: usize, prior: f64) -> Result<Self> {
        let weights = array_of("topic-word probabilities", n_words * n_topics, 0.0)?;
        let (scale, n_tokens) = (vec![1.0; n_topics], vec![0; n_topics]);
        Ok(Topics { weights, scale, n_tokens, prior, own_priors: None })
    }

    /// Sets weights to gamma variates (or means) whose normalised columns are φ, scales so that
    /// they are, and counts the tokens of each topic.
    pub(in crate::training) fn update(
        &mut self,
        tokens: &impl WordCounts,
        step: TopicStep,
        key: Key,
    ) {
        let n_topics = self.n_tokens.len();
        let (prior, n_words) = (self.prior, chunk_words(n_topics));
        let own_priors = self.own_priors.as_deref();
        let chunks = self.weights.par_chunks_mut(n_words * n_topics).enumerate();
        let sums: Vec<(Vec<f64>, Vec<u64>)> = chunks
            .map(|(chunk, weights)| {
                let first = chunk * n_words;
                let mut counts = vec![0; weights.len()];
                tokens.count_words(first..first + weights.len() / n_topics, &mut counts);
                let own = own_priors.map(|own| &own[first * n_topics..][..weights.len()]);
                let shape = |place: usize| own.map_or(prior, |own| own[place]);
                let mut rng = key.unit(chunk as u64).rng();
                match step {
                    TopicStep::Draw if own.is_none() => {
                        fill_gammas(prior, &counts, weights, &mut rng);
                    }
                    TopicStep::Draw => {
                        for (place, (weight, &n)) in weights.iter_mut().zip(&counts).enumerate() {
                            *weight = gamma_law(shape(place) + f64::from(n)).sample(&mut rng);
                        }
                    }
                    TopicStep::Mean => {
                        for (place, (weight, &n)) in weights.iter_mut().zip(&counts).enumerate() {
                            *weight = shape(place) + f64::from(n);
                        }
                    }
                }
                sum_columns(weights, &counts, n_topics)
            })
            .collect();
        let mut totals = vec![0.0; n_topics];
        self.n_tokens.fill(0);
        for (sums, n_tokens) in sums {
            totals.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
            self.n_tokens.iter_mut().zip(n_tokens).for_each(|(total, n)| *total += n);
        }
        for (k, total) in totals.iter_mut().enumerate().filter(|(_, total)| **total < VANISHED) {
            self.redraw(k, key.unit(u64::MAX).unit(k as u64));
            *total = 1.0;
        }
        self.scale = totals.iter().map(|total| total.recip()).collect();
    }

    /// The weights times their scale, word-major.
    pub(in crate::training) fn scaled(&self) -> Vec<f64> {
        let rows = self.weights.chunks_exact(self.scale.len());
        rows.flat_map(|row| row.iter().zip(&self.scale).map(|(x, scale)| x * scale)).collect()
    }

    /// Topics as a sweep over the tokens needs them, with pseudo-counts `a`.
    pub(in crate::training) fn step<'a>(&'a self, a: &'a [f64], key: Key) -> Step<'a> {
        Step::new(a, &self.weights, &self.scale, key)
    }

    /// Draws the topic of no tokens whose gamma variates have all underflown.
    fn redraw(&mut self, topic: usize, key: Key) {
        let n_topics = self.n_tokens.len();
        let mut phi = vec![0.0; self.weights.len() / n_topics];
        let priors: Vec<f64> = (0..phi.len()).map(|word| self.prior_of(word, topic)).collect();
        dirichlet(&priors, &mut phi, &mut key.rng());
        for (weight, phi) in self.weights[topic..].iter_mut().step_by(n_topics).zip(phi) {
            *weight = phi;
        }
    }

    /// The Dirichlet parameter of a word in a topic.
    fn prior_of(&self, word: usize, topic: usize) -> f64 {
        let n_topics = self.n_tokens.len();
        self.own_priors.as_deref().map_or(self.prior, |own| own[word * n_topics + topic])
    }

    /// β ~ Gamma(1 + Σ_kw l_kw, rate - V Σ_k ln q_k), with the tables l_kw ~ CRT(n_kw, β) and
    /// q_k ~ Beta(V β, n_k): φ is integrated out, and must be drawn next.
    pub(in crate::training) fn update_prior(
        &mut self,
        tokens: &impl WordCounts,
        rate: f64,
        key: Key,
    ) {
        let n_topics = self.n_tokens.len();
        let (n_words, beta) = (tokens.n_words(), self.prior);
        let size = chunk_words(n_topics);
        let chunks: Vec<(u64, Vec<u64>)> = (0..n_words.div_ceil(size))
            .into_par_iter()
            .map(|chunk| {
                let (mut n_tables, mut n_tokens) = (0, vec![0; n_topics]);
                let mut counts = vec![0; n_topics];
                for word in chunk * size..((chunk + 1) * size).min(n_words) {
                    tokens.count_word(word, &mut counts);
                    let mut rng = key.unit(word as u64).rng();
                    n_tables += counts.iter().map(|&n| crt(n, beta, &mut rng)).sum::<u64>();
                    n_tokens.iter_mut().zip(&counts).for_each(|(sum, &n)| *sum += u64::from(n));
                }
                (n_tables, n_tokens)
            })
            .collect();
        let mut rng = key.unit(u64::MAX).rng();
        let total = beta * n_words as f64;
        let mut ln_q = 0.0;
        for topic in 0..n_topics {
            let n: u64 = chunks.iter().map(|(_, n_tokens)| n_tokens[topic]).sum();
            if n > 0 {
                ln_q += ln_beta_variate(total, n as f64, &mut rng).0;
            }
        }
        let n_tables: u64 = chunks.iter().map(|(n_tables, _)| n_tables).sum();
        let rate = rate - n_words as f64 * ln_q;
        let drawn = gamma_law(1.0 + n_tables as f64).sample(&mut rng) / rate;
        self.prior = drawn.max(LEAST_PRIOR);
    }

    /// Σ_k [Σ_w ln (β_kw)_{n_kw} - ln (Σ_w β_kw)_{n_k}]: the words given the topics of all tokens.
    pub(in crate::training) fn ln_words(&self, tokens: &impl WordCounts) -> f64 {
        let mut counts = vec![0; self.n_tokens.len()];
        let mut totals = vec![0.0; counts.len()];
        let mut ln_value = 0.0;
        for word in 0..tokens.n_words() {
            tokens.count_word(word, &mut counts);
            for (k, (total, &n)) in totals.iter_mut().zip(&counts).enumerate() {
                let prior = self.prior_of(word, k);
                *total += prior;
                if n > 0 {
                    ln_value += ln_rising(prior, u64::from(n));
                }
            }
        }
        let lengths = totals.iter().zip(&self.n_tokens);
        ln_value - lengths.map(|(&total, &n)| ln_rising(total, n)).sum::<f64>()
    }

    /// E[φ | topics of all tokens] = (β_kw + n_kw) / (Σ_w β_kw + n_k), word-major.
    pub(in crate::training) fn expected(&self, tokens: &impl WordCounts) -> Result<Vec<f64>> {
        let n_topics = self.n_tokens.len();
        let mut counts = Topics::new(tokens.n_words(), n_topics, self.prior)?;
        counts.own_priors.clone_from(&self.own_priors);
        let key = Key::new(0, crate::rng::Purpose::Parameters);
        counts.update(tokens, TopicStep::Mean, key);
        Ok(counts.scaled())
    }
}

/// Words per unit of parallel work.
fn chunk_words(n_topics: usize) -> usize {
    CHUNK_WEIGHTS.div_ceil(n_topics)
}

/// Sums over words of the weights and the counts of each topic.
fn sum_columns(weights: &[f64], counts: &[u32], n_topics: usize) -> (Vec<f64>, Vec<u64>) {
    let (mut sums, mut n_tokens) = (vec![0.0; n_topics], vec![0; n_topics]);
    for (weights, counts) in weights.chunks_exact(n_topics).zip(counts.chunks_exact(n_topics)) {
        sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight);
        n_tokens.iter_mut().zip(counts).for_each(|(sum, &n)| *sum += u64::from(n));
    }
    (sums, n_tokens)
}

//! The topics φ given the topic of every token.

use std::sync::Arc;

use rand_distr::Distribution as _;
use rayon::prelude::*;

use super::blocks::Step;
use super::word_counts::WordCounts;
use crate::error::{Result, array_of};
use crate::math::{
    ExactSum, Places, crt, dirichlet, fill_gammas, gamma_law, ln_beta_variate, ln_rising,
};
use crate::rng::{Key, Rng};
use crate::training::limits::LEAST_PRIOR;
use crate::training::schedule::TopicStep;

/// Weights per unit of parallel work; fixed, so that sums do not depend on the threads.
const CHUNK_WEIGHTS: usize = 1 << 14;

/// Chunks of weights, for every thread, between two additions of their sums.
const DESKS: usize = 4;

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
    desks: Vec<Desk>,
}

/// Room for the work on one chunk of weights, kept from sweep to sweep.
#[derive(Default)]
struct Desk {
    counts: Vec<u32>,
    places: Places,
    /// Sums of the weights of each topic.
    sums: Vec<f64>,
    /// Tokens of each topic.
    n_tokens: Vec<u64>,
}

/// How weights are set, given the tokens.
#[derive(Clone, Copy)]
struct Law<'a> {
    step: TopicStep,
    prior: f64,
    own: Option<&'a [f64]>,
}

impl Desk {
    fn new(n_topics: usize) -> Self {
        let (sums, n_tokens) = (vec![0.0; n_topics], vec![0; n_topics]);
        Desk { counts: vec![], places: Places::default(), sums, n_tokens }
    }

    /// Sets the weights of some words, from `first_word` on, and sums them and their tokens.
    fn draw(
        &mut self,
        law: Law<'_>,
        tokens: &impl WordCounts,
        first_word: usize,
        weights: &mut [f64],
        rng: &mut Rng,
    ) {
        let n_topics = self.sums.len();
        self.counts.resize(weights.len(), 0);
        tokens.count_words(first_word..first_word + weights.len() / n_topics, &mut self.counts);
        let counts = &self.counts[..];
        let own = law.own.map(|own| &own[first_word * n_topics..][..weights.len()]);
        let shape = |place: usize| own.map_or(law.prior, |own| own[place]);
        let places = weights.iter_mut().zip(counts).enumerate();
        match law.step {
            TopicStep::Draw if own.is_none() => {
                fill_gammas(law.prior, counts, weights, &mut self.places, rng);
            }
            TopicStep::Draw => places.for_each(|(place, (weight, &n))| {
                *weight = gamma_law(shape(place) + f64::from(n)).sample(rng);
            }),
            TopicStep::Mean => places.for_each(|(place, (weight, &n))| {
                *weight = shape(place) + f64::from(n);
            }),
        }
        self.sums.fill(0.0);
        self.n_tokens.fill(0);
        for (weights, counts) in weights.chunks_exact(n_topics).zip(counts.chunks_exact(n_topics)) {
            self.sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight);
            self.n_tokens.iter_mut().zip(counts).for_each(|(sum, &n)| *sum += u64::from(n));
        }
    }
}

impl Topics {
    pub(in crate::training) fn new(n_words: usize, n_topics: usize, prior: f64) -> Result<Self> {
        let weights = array_of("topic-word probabilities", n_words * n_topics, 0.0)?;
        let (scale, n_tokens) = (vec![1.0; n_topics], vec![0; n_topics]);
        let desks = (0..DESKS * rayon::current_num_threads()).map(|_| Desk::new(n_topics));
        let desks = desks.collect();
        Ok(Topics { weights, scale, n_tokens, prior, own_priors: None, desks })
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
        let (size, n_desks) = (chunk_words(n_topics) * n_topics, self.desks.len());
        let law = Law { step, prior: self.prior, own: self.own_priors.as_deref() };
        let mut totals = vec![0.0; n_topics];
        self.n_tokens.fill(0);
        for (round, weights) in self.weights.chunks_mut(n_desks * size).enumerate() {
            let desks = self.desks.par_iter_mut().enumerate();
            let chunks = weights.par_chunks_mut(size).zip(desks);
            chunks.for_each(|(weights, (desk_ix, desk))| {
                let chunk = round * n_desks + desk_ix;
                let mut rng = key.unit(chunk as u64).rng();
                desk.draw(law, tokens, chunk * size / n_topics, weights, &mut rng);
            });
            for desk in &self.desks[..weights.len().div_ceil(size)] {
                totals.iter_mut().zip(&desk.sums).for_each(|(total, sum)| *total += sum);
                self.n_tokens.iter_mut().zip(&desk.n_tokens).for_each(|(total, n)| *total += n);
            }
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
        let (n_words, n_topics) = (tokens.n_words(), self.n_tokens.len());
        let size = chunk_words(n_topics);
        let chunks = (0..n_words.div_ceil(size)).into_par_iter().map(|chunk| {
            let words = chunk * size..((chunk + 1) * size).min(n_words);
            let mut counts = vec![0; words.len() * n_topics];
            tokens.count_words(words.clone(), &mut counts);
            let rows = words.zip(counts.chunks_exact(n_topics));
            let cells = rows
                .flat_map(|(word, row)| row.iter().enumerate().map(move |(k, &n)| (word, k, n)));
            let counted = cells.filter(|&(_, _, n)| n > 0);
            counted
                .map(|(word, k, n)| ln_rising(self.prior_of(word, k), u64::from(n)))
                .sum::<ExactSum>()
        });
        let ln_words: ExactSum = chunks.sum();
        let lengths = self.prior_totals(n_words).into_iter().zip(&self.n_tokens);
        ln_words.value() - lengths.map(|(total, &n)| ln_rising(total, n)).sum::<f64>()
    }

    /// Σ_w β_kw of every topic.
    fn prior_totals(&self, n_words: usize) -> Vec<f64> {
        let n_topics = self.n_tokens.len();
        let Some(own) = &self.own_priors else {
            return vec![self.prior * n_words as f64; n_topics];
        };
        let mut totals = vec![0.0; n_topics];
        for row in own.chunks_exact(n_topics) {
            totals.iter_mut().zip(row).for_each(|(total, prior)| *total += prior);
        }
        totals
    }

    /// E[φ | topics of all tokens] = (β_kw + n_kw) / (Σ_w β_kw + n_k), word-major, added to `sum` if
    /// it is given.
    pub(in crate::training) fn expected(
        &self,
        tokens: &impl WordCounts,
        sum: Option<Vec<f64>>,
    ) -> Result<Vec<f64>> {
        let (n_words, n_topics) = (tokens.n_words(), self.n_tokens.len());
        let mut sum = match sum {
            Some(sum) => sum,
            None => array_of("topic-word probabilities", n_words * n_topics, 0.0)?,
        };
        let totals = self.prior_totals(n_words);
        let parts = totals.iter().zip(&self.n_tokens);
        let scale: Vec<f64> = parts.map(|(total, &n)| (total + n as f64).recip()).collect();
        let size = chunk_words(n_topics) * n_topics;
        sum.par_chunks_mut(size).enumerate().for_each(|(chunk, sum)| {
            let first = chunk * size;
            let mut counts = vec![0; sum.len()];
            let words = first / n_topics..(first + sum.len()) / n_topics;
            tokens.count_words(words, &mut counts);
            let own = self.own_priors.as_deref().map(|own| &own[first..first + sum.len()]);
            let rows = sum.chunks_exact_mut(n_topics).zip(counts.chunks_exact(n_topics));
            for (row, (sum, counts)) in rows.enumerate() {
                let parts = sum.iter_mut().zip(counts.iter().zip(&scale));
                match own.map(|own| &own[row * n_topics..][..n_topics]) {
                    None => parts.for_each(|(sum, (&n, scale))| {
                        *sum += (self.prior + f64::from(n)) * scale;
                    }),
                    Some(own) => parts.zip(own).for_each(|((sum, (&n, scale)), prior)| {
                        *sum += (prior + f64::from(n)) * scale;
                    }),
                }
            }
        });
        Ok(sum)
    }
}

/// Words per unit of parallel work.
fn chunk_words(n_topics: usize) -> usize {
    CHUNK_WEIGHTS.div_ceil(n_topics)
}

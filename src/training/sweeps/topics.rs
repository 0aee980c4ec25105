//! The topics φ given the topic of every token.

use rand_distr::Distribution as _;
use rayon::prelude::*;

use crate::error::{Result, check_length, check_positive, room_for};
use crate::math::{
    ExactSum, GammaScratch, RisingTable, crt, dirichlet, fill_gammas, gamma_law, ln_beta_variate,
    ln_rising,
};
use crate::rng::{Key, Rng};
use crate::training::bursts::BurstState;
use crate::training::schedule::TopicStep;
use crate::urn::LEAST_PRIOR;

/// Weights per unit of parallel work; fixed, so that sums do not depend on the threads.
const CHUNK_WEIGHTS: usize = 1 << 14;

/// Chunks of weights, for every thread, between two additions of their sums.
const CHUNKS_PER_THREAD: usize = 4;

/// Tokens of a word in one topic whose rising factorials come from a table.
const SMALL_COUNTS: u64 = 64;

/// Sum of gamma variates below which their ratios have lost their precision.
const VANISHED: f64 = 1e-280;

/// Word-major topics, and the number of tokens of each.
pub struct Topics {
    n_words: usize,
    /// φ_kw up to the scale of each topic, `n_words` x `n_topics`; empty before an update sets them.
    pub(in crate::training) weights: Vec<f64>,
    /// Factor of the weights of each topic.
    pub(in crate::training) scale: Vec<f64>,
    /// Tokens of each topic that φ rests on: all, or those that open tables of bursty topics.
    pub(in crate::training) n_tokens: Vec<u64>,
    /// Concentrations, where some topic is bursty.
    pub(in crate::training) bursts: Option<BurstState>,
    /// Dirichlet parameter β.
    pub(in crate::training) prior: f64,
    /// A Dirichlet parameter for every word and topic, word-major, in place of β.
    own_priors: Option<Vec<f64>>,
    scratch: Vec<WeightScratch>,
}

/// Buffers for one chunk of weights, kept from sweep to sweep.
struct WeightScratch {
    gammas: GammaScratch,
    /// Sums of the weights of each topic.
    sums: Vec<f64>,
    /// Tokens of each topic.
    n_tokens: Vec<u64>,
}

impl WeightScratch {
    fn new(n_topics: usize) -> Self {
        let (sums, n_tokens) = (vec![0.0; n_topics], vec![0; n_topics]);
        WeightScratch { gammas: GammaScratch::default(), sums, n_tokens }
    }

    /// Sets the weights of some words, whose Dirichlet parameters are `own` or `prior`, and sums them
    /// and their tokens.
    fn draw(
        &mut self,
        (prior, own): (f64, Option<&[f64]>),
        step: TopicStep,
        counts: &[u32],
        weights: &mut [f64],
        rng: &mut Rng,
    ) {
        let n_topics = self.sums.len();
        let shape = |place: usize| own.map_or(prior, |own| own[place]);
        let places = weights.iter_mut().zip(counts).enumerate();
        match step {
            TopicStep::Draw if own.is_none() => {
                fill_gammas(prior, counts, weights, &mut self.gammas, rng);
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
        let weights = room_for("topic-word probabilities", n_words * n_topics)?;
        let (scale, n_tokens) = (vec![1.0; n_topics], vec![0; n_topics]);
        let (bursts, own_priors, scratch) = (None, None, vec![]);
        Ok(Topics { n_words, weights, scale, n_tokens, bursts, prior, own_priors, scratch })
    }

    /// The same topics with φ_k ~ Dirichlet(row k of `priors`), which is word-major.
    pub(in crate::training) fn with_priors(mut self, priors: Vec<f64>) -> Result<Self> {
        check_length("topic priors", priors.len(), self.n_cells())?;
        check_positive("topic priors", &priors)?;
        self.own_priors = Some(priors);
        Ok(self)
    }

    /// Whether every word and topic has a Dirichlet parameter of its own.
    pub(in crate::training) fn has_own_priors(&self) -> bool {
        self.own_priors.is_some()
    }

    /// Size of the vocabulary.
    pub(in crate::training) fn n_words(&self) -> usize {
        self.n_words
    }

    /// Words x topics.
    pub(in crate::training) fn n_cells(&self) -> usize {
        self.n_words * self.scale.len()
    }

    /// Sets weights to gamma variates (or means) whose normalised columns are φ, scales so that
    /// they are, and counts the tokens of each topic. `counts` are words x topics.
    pub(in crate::training) fn update(&mut self, counts: &[u32], step: TopicStep, key: Key) {
        let n_topics = self.n_tokens.len();
        let n_chunks = CHUNKS_PER_THREAD * rayon::current_num_threads();
        self.scratch.resize_with(n_chunks, || WeightScratch::new(n_topics));
        let size = chunk_words(n_topics) * n_topics;
        let (prior, own) = (self.prior, self.own_priors.as_deref());
        let mut totals = vec![0.0; n_topics];
        self.n_tokens.fill(0);
        self.weights.resize(self.n_words * n_topics, 0.0);
        let rounds = self.weights.chunks_mut(n_chunks * size).zip(counts.chunks(n_chunks * size));
        for (round, (weights, counts)) in rounds.enumerate() {
            let chunks = weights.par_chunks_mut(size).zip(counts.par_chunks(size));
            let scratch = self.scratch.par_iter_mut().enumerate();
            chunks.zip(scratch).for_each(|((weights, counts), (number, scratch))| {
                let chunk = round * n_chunks + number;
                let own = own.map(|own| &own[chunk * size..][..weights.len()]);
                let mut rng = key.unit(chunk as u64).rng();
                scratch.draw((prior, own), step, counts, weights, &mut rng);
            });
            for scratch in &self.scratch[..weights.len().div_ceil(size)] {
                totals.iter_mut().zip(&scratch.sums).for_each(|(total, sum)| *total += sum);
                self.n_tokens.iter_mut().zip(&scratch.n_tokens).for_each(|(sum, n)| *sum += n);
            }
        }
        for (k, total) in totals.iter_mut().enumerate().filter(|(_, total)| **total < VANISHED) {
            self.redraw(k, key.unit(u64::MAX).unit(k as u64));
            *total = 1.0;
        }
        self.scale = totals.iter().map(|total| total.recip()).collect();
    }

    /// Counts the tokens of each topic, whose weights stay as they are.
    pub(in crate::training) fn count(&mut self, counts: &[u32]) {
        self.n_tokens = totals(counts, self.n_tokens.len());
    }

    /// The weights times their scale, word-major.
    pub(in crate::training) fn scaled(&self) -> Vec<f64> {
        let rows = self.weights.chunks_exact(self.scale.len());
        rows.flat_map(|row| row.iter().zip(&self.scale).map(|(x, scale)| x * scale)).collect()
    }

    /// Draws the topic of no tokens whose gamma variates have all underflown.
    fn redraw(&mut self, topic: usize, key: Key) {
        let n_topics = self.n_tokens.len();
        let mut phi = vec![0.0; self.n_words];
        let priors: Vec<f64> =
            (0..phi.len()).map(|word| self.prior_at(word * n_topics + topic)).collect();
        dirichlet(&priors, &mut phi, &mut key.rng());
        for (weight, phi) in self.weights[topic..].iter_mut().step_by(n_topics).zip(phi) {
            *weight = phi;
        }
    }

    /// The Dirichlet parameter at a place of the word-major weights.
    pub(in crate::training) fn prior_at(&self, place: usize) -> f64 {
        self.own_priors.as_deref().map_or(self.prior, |own| own[place])
    }

    /// β ~ Gamma(1 + Σ_kw l_kw, rate - V Σ_k ln q_k), with the tables l_kw ~ CRT(n_kw, β) and
    /// q_k ~ Beta(V β, n_k): φ is integrated out, and must be drawn next.
    pub(in crate::training) fn update_prior(&mut self, counts: &[u32], rate: f64, key: Key) {
        let (n_topics, beta) = (self.n_tokens.len(), self.prior);
        let words = counts.par_chunks_exact(n_topics).with_min_len(chunk_words(n_topics));
        let tables = words.enumerate().map(|(word, counts)| {
            let mut rng = key.unit(word as u64).rng();
            counts.iter().map(|&n| crt(n, beta, &mut rng)).sum::<u64>()
        });
        let n_tables: u64 = tables.sum();
        self.count(counts);
        let mut rng = key.unit(u64::MAX).rng();
        let (n_words, used) = (self.n_words as f64, self.n_tokens.iter().filter(|n| **n > 0));
        let ln_q = used.map(|&n| ln_beta_variate(beta * n_words, n as f64, &mut rng).0);
        let rate = rate - n_words * ln_q.sum::<f64>();
        let drawn = gamma_law(1.0 + n_tables as f64).sample(&mut rng) / rate;
        self.prior = drawn.max(LEAST_PRIOR);
    }

    /// Σ_k [Σ_w ln (β_kw)_{n_kw} - ln (Σ_w β_kw)_{n_k}]: the words given the topics of all tokens.
    pub(in crate::training) fn ln_words(&self, counts: &[u32]) -> f64 {
        let (size, of_prior) = (CHUNK_WEIGHTS, RisingTable::new(self.prior, SMALL_COUNTS));
        let own = self.own_priors.as_deref();
        let chunks = counts.par_chunks(size).enumerate().map(|(chunk, counts)| {
            let counted = (chunk * size..).zip(counts).filter(|(_, n)| **n > 0);
            let ln_rising = |(place, &n): (usize, &u32)| {
                own.map_or_else(|| of_prior.at(n.into()), |own| ln_rising(own[place], n.into()))
            };
            counted.map(ln_rising).sum::<ExactSum>()
        });
        let ln_words: ExactSum = chunks.sum();
        let lengths = self.prior_totals().into_iter().zip(&self.n_tokens);
        ln_words.value() - lengths.map(|(total, &n)| ln_rising(total, n)).sum::<f64>()
    }

    /// Σ_w β_kw of every topic.
    fn prior_totals(&self) -> Vec<f64> {
        let n_topics = self.n_tokens.len();
        let Some(own) = &self.own_priors else {
            return vec![self.prior * self.n_words() as f64; n_topics];
        };
        let mut totals = vec![0.0; n_topics];
        for row in own.chunks_exact(n_topics) {
            totals.iter_mut().zip(row).for_each(|(total, prior)| *total += prior);
        }
        totals
    }

    /// 1 / A and 1 / (A (A + 1)) of every topic, with A = Σ_w β_kw + n_k.
    pub(in crate::training) fn moment_scales(&self) -> Vec<[f64; 2]> {
        let totals = self.prior_totals().into_iter().zip(&self.n_tokens);
        let totals = totals.map(|(prior, &n)| prior + n as f64);
        totals.map(|total| [total.recip(), (total * (total + 1.0)).recip()]).collect()
    }
}

/// Sums of words x topics over the words.
pub(in crate::training) fn totals(counts: &[u32], n_topics: usize) -> Vec<u64> {
    let none = || vec![0; n_topics];
    let rows = counts.par_chunks_exact(n_topics).with_min_len(chunk_words(n_topics));
    rows.fold(none, add).reduce(none, |sums, others| add(sums, &others))
}

/// Sums of whole numbers, place by place.
pub(super) fn add<T: Copy + Into<u64>>(mut sums: Vec<u64>, others: &[T]) -> Vec<u64> {
    sums.iter_mut().zip(others).for_each(|(sum, &n)| *sum += n.into());
    sums
}

/// Words per unit of parallel work.
fn chunk_words(n_topics: usize) -> usize {
    CHUNK_WEIGHTS.div_ceil(n_topics)
}

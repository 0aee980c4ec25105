//! Mergers of topics, by what they change of the density of the words given the topics of all
//! tokens.
//!
//! The density of these topics given the documents is left out: it likes to merge topics that
//! documents share, and makes one large topic of all that is common to them.

use std::cmp::Reverse;

use rayon::prelude::*;

use crate::control::Observer;
use crate::error::Result;
use crate::math::ln_rising;

/// Units of a nat: sums of whole numbers do not depend on the threads.
const UNITS: f64 = (1u64 << 20) as f64;

/// Largest count whose factor is kept in a table.
const MOST_KEPT: usize = 1 << 14;

/// Words per unit of parallel work at least.
const LEAST_WORDS: usize = 256;

/// Candidates for each merger: the best of them share topics.
const CANDIDATES: usize = 8;

/// Topics that are merged step by step.
pub(super) struct Merger<'a> {
    /// Tokens of every word in each of the first topics, words x topics.
    counts: &'a [u32],
    /// Tokens of each topic that is left.
    n_tokens: Vec<u64>,
    /// The topic that each has become.
    merged: Vec<usize>,
    /// Gain of merging each pair j < k, at j x topics + k.
    gains: Vec<i64>,
    /// Topics whose gains are not known.
    is_new: Vec<bool>,
}

impl<'a> Merger<'a> {
    pub(super) fn new(counts: &'a [u32], n_tokens: &[u64]) -> Self {
        let n_topics = n_tokens.len();
        let (n_tokens, merged) = (n_tokens.to_vec(), (0..n_topics).collect());
        let (gains, is_new) = (vec![0; n_topics * n_topics], vec![true; n_topics]);
        Merger { counts, n_tokens, merged, gains, is_new }
    }

    /// Topics that are left.
    pub(super) fn n_topics(&self) -> usize {
        self.n_tokens.len()
    }

    /// The topic that each of the first topics has become after all mergers.
    pub(super) fn numbers(&self) -> Vec<u16> {
        self.merged.iter().map(|&topic| topic as u16).collect()
    }

    /// Merges up to `n` pairs of topics, no topic twice: those that gain most, or lose least, of
    /// Π_k [Π_w (β)_{n_kw} / (V β)_{n_k}].
    pub(super) fn merge(&mut self, n: usize, beta: f64, observer: &dyn Observer) -> Result<()> {
        self.find_gains(beta, observer)?;
        let n_topics = self.n_topics();
        let mut into: Vec<usize> = (0..n_topics).collect();
        let best = self.best_pairs(n);
        best.iter().for_each(|&(j, k)| into[k] = j);
        let stay: Vec<usize> = (0..n_topics).filter(|&topic| into[topic] == topic).collect();
        let mut number = vec![0; n_topics];
        stay.iter().enumerate().for_each(|(new, &topic)| number[topic] = new);
        let mut n_tokens = vec![0; stay.len()];
        for (&into, n) in into.iter().zip(&self.n_tokens) {
            n_tokens[number[into]] += n;
        }
        let old = |&j: &usize| stay.iter().map(move |&k| j * n_topics + k);
        self.gains = stay.iter().flat_map(old).map(|pair| self.gains[pair]).collect();
        self.is_new = vec![false; stay.len()];
        best.iter().for_each(|&(j, _)| self.is_new[number[j]] = true);
        self.n_tokens = n_tokens;
        self.merged.iter_mut().for_each(|topic| *topic = number[into[*topic]]);
        Ok(())
    }

    /// Up to `n` pairs of the largest gains, no topic twice; the first of pairs of equal gains.
    fn best_pairs(&self, n: usize) -> Vec<(usize, usize)> {
        let n_topics = self.n_topics();
        let mut pairs: Vec<(usize, usize)> = pairs(n_topics).collect();
        let order = |&(j, k): &(usize, usize)| (Reverse(self.gains[j * n_topics + k]), j, k);
        let (mut best, mut is_taken) = (Vec::with_capacity(n), vec![false; n_topics]);
        let mut rest = &mut pairs[..];
        while best.len() < n && !rest.is_empty() {
            let n_candidates = (CANDIDATES * n).min(rest.len());
            if n_candidates < rest.len() {
                rest.select_nth_unstable_by_key(n_candidates, order);
            }
            let (candidates, others) = rest.split_at_mut(n_candidates);
            candidates.sort_unstable_by_key(order);
            for &(j, k) in &*candidates {
                if best.len() < n && !is_taken[j] && !is_taken[k] {
                    (is_taken[j], is_taken[k]) = (true, true);
                    best.push((j, k));
                }
            }
            rest = others;
        }
        best
    }

    /// Computes the gains of all pairs that have a new topic.
    fn find_gains(&mut self, beta: f64, observer: &dyn Observer) -> Result<()> {
        let (n_topics, n_words) = (self.n_topics(), self.counts.len() / self.merged.len());
        let factors = Factors::new(beta, self.n_tokens.iter().sum());
        let least = LEAST_WORDS.max(n_words.div_ceil(4 * rayon::current_num_threads()));
        let new = || (vec![0i64; n_topics * n_topics], vec![0; n_topics]);
        let found = (self.counts.par_chunks_exact(self.merged.len()))
            .with_min_len(least)
            .try_fold(new, |(mut sums, mut row), counts| {
                observer.check_stop()?;
                row.fill(0);
                for (&merged, &n) in self.merged.iter().zip(counts) {
                    row[merged] += u64::from(n);
                }
                add_pairs(&row, &self.is_new, &factors, &mut sums);
                Ok((sums, row))
            })
            .map(|worker| worker.map(|(sums, _)| sums))
            .try_reduce(
                || vec![0; n_topics * n_topics],
                |mut sums, others| {
                    sums.iter_mut().zip(others).for_each(|(sum, x)| *sum += x);
                    Ok(sums)
                },
            )?;
        let totals = Factors::new(beta * n_words as f64, 0);
        let own: Vec<i64> = self.n_tokens.iter().map(|&n| totals.at(n)).collect();
        for (j, k) in pairs(n_topics).filter(|&(j, k)| self.is_new[j] || self.is_new[k]) {
            let both = totals.at(self.n_tokens[j] + self.n_tokens[k]);
            let pair = j * n_topics + k;
            self.gains[pair] = found[pair] - (both - own[j] - own[k]);
        }
        self.is_new.fill(false);
        Ok(())
    }
}

/// All pairs j < k.
fn pairs(n_topics: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n_topics).flat_map(move |j| (j + 1..n_topics).map(move |k| (j, k)))
}

/// Adds what merging each pair that has a new topic gains in a word with these counts.
fn add_pairs(row: &[u64], is_new: &[bool], factors: &Factors, sums: &mut [i64]) {
    let present = row.iter().enumerate().filter(|(_, n)| **n > 0);
    let known = |topic: usize, n: u64| (topic, n, factors.at(n));
    let (new, old): (Vec<_>, Vec<_>) =
        present.map(|(topic, &n)| known(topic, n)).partition(|&(topic, ..)| is_new[topic]);
    for (i, &(j, x, own)) in new.iter().enumerate() {
        for &(k, y, other) in new[i + 1..].iter().chain(&old) {
            sums[j.min(k) * row.len() + j.max(k)] += factors.at(x + y) - own - other;
        }
    }
}

/// ln of the rising factorials (x)_n, in units.
struct Factors {
    x: f64,
    kept: Vec<i64>,
}

impl Factors {
    /// Keeps those up to the largest count, or as many as there is room for.
    fn new(x: f64, most: u64) -> Self {
        let n_kept = MOST_KEPT.min(most as usize + 1);
        Factors { x, kept: (0..n_kept as u64).map(|n| in_units(ln_rising(x, n))).collect() }
    }

    #[inline]
    fn at(&self, n: u64) -> i64 {
        let kept = self.kept.get(n as usize);
        kept.copied().unwrap_or_else(|| in_units(ln_rising(self.x, n)))
    }
}

fn in_units(nats: f64) -> i64 {
    (nats * UNITS).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::sweeps::totals;

    const N_TOPICS: usize = 5;

    /// Tokens of four words in five topics.
    const COUNTS: [u32; 20] = [3, 1, 0, 7, 0, 0, 4, 2, 2, 9, 2, 2, 1, 0, 0, 5, 0, 40, 1, 3];

    fn renumbered(numbers: &[u16], n_topics: usize) -> Vec<u32> {
        let mut counts = vec![0; 4 * n_topics];
        for (place, n) in COUNTS.into_iter().enumerate() {
            let topic = usize::from(numbers[place % N_TOPICS]);
            counts[place / N_TOPICS * n_topics + topic] += n;
        }
        counts
    }

    fn ln_words(counts: &[u32], n_topics: usize, beta: f64) -> f64 {
        let lengths = totals(counts, n_topics).into_iter().map(|n| ln_rising(beta * 4.0, n));
        let words = counts.iter().map(|&n| ln_rising(beta, u64::from(n)));
        words.sum::<f64>() - lengths.sum::<f64>()
    }

    #[test]
    fn a_gain_is_the_change_of_the_density_of_the_words() {
        let beta = 0.2;
        let mut merger = Merger::new(&COUNTS, &totals(&COUNTS, N_TOPICS));
        merger.find_gains(beta, &()).unwrap();
        let gains = merger.gains.clone();
        for (j, k) in pairs(N_TOPICS) {
            let numbers: Vec<u16> =
                (0..N_TOPICS).map(|topic| if topic == k { j } else { topic } as u16).collect();
            let after = ln_words(&renumbered(&numbers, N_TOPICS), N_TOPICS, beta);
            let change = after - ln_words(&COUNTS, N_TOPICS, beta);
            let gain = gains[j * N_TOPICS + k] as f64 / UNITS;
            assert!((change - gain).abs() < 1e-4, "{j} {k}: {gain}");
        }
        let best = pairs(N_TOPICS).max_by_key(|&(j, k)| gains[j * N_TOPICS + k]).unwrap();
        merger.merge(1, beta, &()).unwrap();
        assert_eq!(merger.n_topics(), 4);
        assert_eq!(merger.merged[best.0], merger.merged[best.1]);
        let after = renumbered(&merger.numbers(), 4);
        assert_eq!(merger.n_tokens, totals(&after, 4));
        // Gains that are kept are those that would be found anew.
        merger.find_gains(beta, &()).unwrap();
        let mut anew = Merger::new(&after, &merger.n_tokens);
        anew.find_gains(beta, &()).unwrap();
        assert_eq!(merger.gains, anew.gains);
    }
}

//! Mergers of topics, by what they change of the density of the words given the topics of all
//! tokens.
//!
//! The density of these topics given the documents is left out: it likes to merge topics that
//! documents share, and makes one large topic of all that is common to them.

use rayon::prelude::*;

use crate::control::Observer;
use crate::error::Result;
use crate::math::ln_rising;
use crate::training::sweeps::WordCounts;

/// Units of a nat: sums of whole numbers do not depend on the threads.
const UNITS: f64 = (1u64 << 20) as f64;

/// Largest count whose factor is kept in a table.
const MOST_KEPT: usize = 1 << 14;

/// Words per unit of parallel work at least.
const LEAST_WORDS: usize = 256;

/// Topics that are merged step by step.
pub(super) struct Merger<'a, C> {
    tokens: &'a C,
    /// Tokens of each topic that is left.
    n_tokens: Vec<u64>,
    /// The topic that each has become.
    merged: Vec<usize>,
}

impl<'a, C: WordCounts> Merger<'a, C> {
    pub(super) fn new(tokens: &'a C, n_tokens: &[u64]) -> Self {
        let merged = (0..n_tokens.len()).collect();
        Merger { tokens, n_tokens: n_tokens.to_vec(), merged }
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
    pub(super) fn merge(&mut self, n: usize, beta: f64, observer: &impl Observer) -> Result<()> {
        let gains = self.gains(beta, observer)?;
        let n_topics = self.n_topics();
        let mut pairs: Vec<(usize, usize)> = pairs(n_topics).collect();
        pairs.sort_by_key(|&(j, k)| std::cmp::Reverse(gains[j * n_topics + k]));
        let mut into: Vec<usize> = (0..n_topics).collect();
        let (mut taken, mut n_merged) = (vec![false; n_topics], 0);
        for (j, k) in pairs {
            if n_merged < n && !taken[j] && !taken[k] {
                (taken[j], taken[k]) = (true, true);
                into[k] = j;
                n_merged += 1;
            }
        }
        let mut number = vec![0; n_topics];
        let stay = (0..n_topics).filter(|&topic| into[topic] == topic);
        stay.enumerate().for_each(|(new, topic)| number[topic] = new);
        let mut n_tokens = vec![0; n_topics - n_merged];
        for (&into, n) in into.iter().zip(&self.n_tokens) {
            n_tokens[number[into]] += n;
        }
        self.n_tokens = n_tokens;
        self.merged.iter_mut().for_each(|topic| *topic = number[into[*topic]]);
        Ok(())
    }

    /// Puts together whatever topics are too many: an end that takes no time.
    pub(super) fn fold(&mut self, n_topics: usize) {
        self.merged.iter_mut().for_each(|topic| *topic %= n_topics);
        let (left, folded) = self.n_tokens.split_at_mut(n_topics);
        for (k, n) in folded.iter().enumerate() {
            left[k % n_topics] += n;
        }
        self.n_tokens.truncate(n_topics);
    }

    /// Gain of every pair j < k, at j x topics + k.
    fn gains(&self, beta: f64, observer: &impl Observer) -> Result<Vec<i64>> {
        let (n_topics, n_words) = (self.n_topics(), self.tokens.n_words());
        let factors = Factors::new(beta, self.n_tokens.iter().sum());
        let least = LEAST_WORDS.max(n_words.div_ceil(4 * rayon::current_num_threads()));
        let new = || (vec![0i64; n_topics * n_topics], vec![0; n_topics]);
        let mut gains = (0..n_words)
            .into_par_iter()
            .with_min_len(least)
            .try_fold(new, |(mut sums, mut row), word| {
                observer.check_stop()?;
                row.fill(0);
                self.count_word(word, &mut row);
                add_pairs(&row, &factors, &mut sums);
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
        for (j, k) in pairs(n_topics) {
            let (x, y) = (self.n_tokens[j], self.n_tokens[k]);
            gains[j * n_topics + k] -= totals.at(x + y) - totals.at(x) - totals.at(y);
        }
        Ok(gains)
    }

    /// Adds the tokens of a word in each topic to `row`.
    fn count_word(&self, word: usize, row: &mut [u64]) {
        let mut before = vec![0; self.merged.len()];
        self.tokens.count_word(word, &mut before);
        for (&merged, n) in self.merged.iter().zip(before) {
            row[merged] += u64::from(n);
        }
    }
}

/// All pairs j < k.
fn pairs(n_topics: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n_topics).flat_map(move |j| (j + 1..n_topics).map(move |k| (j, k)))
}

/// Adds what merging each pair of topics gains in a word with these counts.
fn add_pairs(row: &[u64], factors: &Factors, sums: &mut [i64]) {
    let present = row.iter().enumerate().filter(|(_, n)| **n > 0);
    let used: Vec<_> = present.map(|(topic, &n)| (topic, n, factors.at(n))).collect();
    for (i, &(j, x, own)) in used.iter().enumerate() {
        let sums = &mut sums[j * row.len()..][..row.len()];
        for &(k, y, other) in &used[i + 1..] {
            sums[k] += factors.at(x + y) - own - other;
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
    use crate::counts::CountMatrix;
    use crate::rng::{Key, Purpose};
    use crate::training::sweeps::Assignments;

    #[test]
    fn a_gain_is_the_change_of_the_density_of_the_words() {
        let rows = [[3, 1, 0, 7], [0, 4, 2, 2], [2, 2, 1, 0], [0; 4], [5, 0, 40, 1]];
        let counts = CountMatrix::from_dense(&rows.map(|row| row.to_vec())).unwrap();
        let (beta, n_topics) = (0.2, 5);
        let key = Key::new(4, Purpose::Initialise);
        let tokens = Assignments::new(&counts, n_topics, key).unwrap();
        let before = tokens.topics();
        let by_word = |topics: &[u16]| {
            let mut by_word = vec![0; counts.n_words() * n_topics];
            let mut rest = topics;
            for (word, count) in counts.documents().flat_map(crate::counts::Document::cells) {
                let (own, after) = rest.split_at(count as usize);
                for &topic in own {
                    by_word[word as usize * n_topics + usize::from(topic)] += 1;
                }
                rest = after;
            }
            by_word
        };
        let totals = |by_word: &[u64]| -> Vec<u64> {
            (0..n_topics).map(|k| by_word[k..].iter().step_by(n_topics).sum()).collect()
        };
        let ln_words = |topics: &[u16]| {
            let by_word = by_word(topics);
            let lengths = totals(&by_word).into_iter().map(|n| ln_rising(beta * 4.0, n));
            by_word.iter().map(|&n| ln_rising(beta, n)).sum::<f64>() - lengths.sum::<f64>()
        };
        let merger = Merger::new(&tokens, &totals(&by_word(&before)));
        let gains = merger.gains(beta, &()).unwrap();
        for (j, k) in pairs(n_topics) {
            let merged = |&topic: &u16| if topic == k as u16 { j as u16 } else { topic };
            let after: Vec<u16> = before.iter().map(merged).collect();
            let gain = gains[j * n_topics + k] as f64 / UNITS;
            assert!((ln_words(&after) - ln_words(&before) - gain).abs() < 1e-4, "{j} {k}: {gain}");
        }
        let best = pairs(n_topics).max_by_key(|&(j, k)| gains[j * n_topics + k]).unwrap();
        let mut merger = merger;
        merger.merge(1, beta, &()).unwrap();
        assert_eq!(merger.n_topics(), 4);
        let (first, second) = (merger.merged[best.0], merger.merged[best.1]);
        assert_eq!(first, second);
        let numbers = merger.numbers();
        let after: Vec<u16> = before.iter().map(|&topic| numbers[usize::from(topic)]).collect();
        assert_eq!(merger.n_tokens, totals(&by_word(&after))[..4]);
    }
}

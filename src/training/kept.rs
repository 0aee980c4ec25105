//! Sums over the kept sweeps of a chain, and the posterior means that they give.

use rayon::prelude::*;

use super::sweeps::Topics;
use crate::error::{Result, array_of};

/// E[φ | topics of all tokens] = a / A and E[φ² | ..] = a (a + 1) / (A (A + 1)), with a = β_kw + n_kw
/// and A = Σ_w a, summed over sweeps.
type Moments = [f64; 2];

/// Posterior means of φ and the other parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct PosteriorMeans {
    /// Means of φ, topics x words.
    pub topics: Vec<f64>,
    /// Posterior standard deviations of φ, topics x words.
    pub std: Vec<f64>,
    /// Means of the other parameters, one array after the other; ln of learned concentrations come last.
    pub others: Vec<f64>,
}

/// Sums over kept sweeps.
///
/// Words without tokens in a topic have the same moments there. A topic has one sum for all words that
/// had no tokens in any kept sweep; only the others, which are few where topics are many, have sums of
/// their own. They start from the common one: all sums have the bits of arrays of words x topics.
pub(super) struct KeptSums {
    /// Sums of a word that never had tokens, by topic.
    unseen: Vec<Moments>,
    /// Sums of the topics in which each word had tokens, in the order of the topics.
    seen: Vec<Vec<(u16, Moments)>>,
    others: Vec<f64>,
}

impl KeptSums {
    /// Sums over no sweeps.
    pub(super) fn new(n_words: usize, n_topics: usize) -> Self {
        let (unseen, seen) = (vec![[0.0; 2]; n_topics], vec![vec![]; n_words]);
        KeptSums { unseen, seen, others: vec![] }
    }

    /// The sums that [`flat`](Self::flat) gave. Those of words without tokens are the least of a topic;
    /// any other word may have sums of its own, too.
    pub(super) fn of_flat(flat: &[f64], n_words: usize, n_topics: usize) -> Self {
        let n_cells = n_words * n_topics;
        let (others, squares) = flat[n_cells..].split_at(flat.len() - 2 * n_cells);
        let sums = |place: usize| [flat[place], squares[place]];
        let mut unseen = vec![[f64::INFINITY; 2]; n_topics];
        for place in 0..n_cells {
            let (least, sums) = (&mut unseen[place % n_topics], sums(place));
            *least = [least[0].min(sums[0]), least[1].min(sums[1])];
        }
        let is_seen = |[phi, square]: Moments, least: Moments| phi > least[0] || square > least[1];
        let seen = (0..n_words).map(|word| {
            let own = (0..n_topics).map(|topic| (topic as u16, sums(word * n_topics + topic)));
            own.filter(|&(topic, sums)| is_seen(sums, unseen[usize::from(topic)])).collect()
        });
        KeptSums { seen: seen.collect(), unseen, others: others.to_vec() }
    }

    /// Adds the moments of φ given the counts of words by topic, and the other parameters.
    pub(super) fn add(&mut self, topics: &Topics, counts: &[u32], others: &[f64]) {
        let (scales, unseen) = (topics.moment_scales(), &self.unseen);
        let added = |sums: Moments, a: f64, scale: Moments| {
            [sums[0] + a * scale[0], sums[1] + a * (a + 1.0) * scale[1]]
        };
        let words = self.seen.par_iter_mut().zip(counts.par_chunks_exact(scales.len()));
        words.enumerate().for_each_init(Vec::new, |own, (word, (seen, counts))| {
            let mut before = seen.iter().peekable();
            own.clear();
            for (topic, (&n, unseen)) in counts.iter().zip(unseen).enumerate() {
                let sums = before.next_if(|(seen, _)| usize::from(*seen) == topic);
                if n > 0 || sums.is_some() || topics.has_own_priors() {
                    let sums = sums.map_or(*unseen, |(_, sums)| *sums);
                    let a = topics.prior_at(word * scales.len() + topic) + f64::from(n);
                    own.push((topic as u16, added(sums, a, scales[topic])));
                }
            }
            seen.clear();
            seen.reserve_exact(own.len());
            seen.extend_from_slice(own);
        });
        let unseen = self.unseen.iter_mut().zip(scales);
        unseen.for_each(|(sums, scale)| *sums = added(*sums, topics.prior, scale));
        self.others.resize(others.len(), 0.0);
        self.others.iter_mut().zip(others).for_each(|(sum, x)| *sum += x);
    }

    /// Sums of φ, words x topics, of the other parameters and of φ², one array after the other.
    pub(super) fn flat(&self) -> Result<Vec<f64>> {
        let mut flat = self.all([self.unseen.len(), 1], |sums| sums[0])?;
        flat.extend(&self.others);
        flat.extend(self.all([self.unseen.len(), 1], |sums| sums[1])?);
        Ok(flat)
    }

    /// Means over so many sweeps.
    pub(super) fn means(&self, n_sweeps: u64) -> Result<PosteriorMeans> {
        let factor = (n_sweeps as f64).recip();
        let mean = |sums: Moments| sums[0] * factor;
        let std = |x: Moments| (x[1] * factor - mean(x) * mean(x)).max(0.0).sqrt();
        let (topics, std) =
            (self.all([1, self.seen.len()], mean)?, self.all([1, self.seen.len()], std)?);
        let others = self.others.iter().map(|sum| sum * factor).collect();
        Ok(PosteriorMeans { topics, std, others })
    }

    /// Values of all words and topics, in steps of so many places for a word and for a topic.
    fn all(&self, steps: [usize; 2], value: impl Fn(Moments) -> f64) -> Result<Vec<f64>> {
        let place = |word: usize, topic: usize| word * steps[0] + topic * steps[1];
        let n_cells = self.seen.len() * self.unseen.len();
        let mut all = array_of("sums over kept sweeps", n_cells, 0.0)?;
        for (topic, value) in self.unseen.iter().map(|&sums| value(sums)).enumerate() {
            (0..self.seen.len()).for_each(|word| all[place(word, topic)] = value);
        }
        for (word, seen) in self.seen.iter().enumerate() {
            seen.iter().for_each(|&(k, sums)| all[place(word, usize::from(k))] = value(sums));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};
    use crate::training::schedule::TopicStep;

    #[test]
    fn words_without_tokens_share_a_sum_with_the_bits_of_their_own() {
        let (n_topics, n_cells, key) = (400, 20_000, Key::new(0, Purpose::Parameters));
        let mut topics = Topics::new(n_cells / n_topics, n_topics, 0.3).unwrap();
        let (mut kept, mut all) = (KeptSums::new(50, n_topics), vec![0.0; 2 * n_cells]);
        for sweep in 0..3 {
            let counts: Vec<u32> = (0..n_cells as u32).map(|i| (i % 9 == sweep).into()).collect();
            topics.update(&counts, TopicStep::Mean, key);
            kept.add(&topics, &counts, &[]);
            let ((phi, squares), scales) = (all.split_at_mut(n_cells), topics.moment_scales());
            for (place, (phi, square)) in phi.iter_mut().zip(squares).enumerate() {
                let (a, scale) = (0.3 + f64::from(counts[place]), scales[place % n_topics]);
                (*phi, *square) = (*phi + a * scale[0], *square + a * (a + 1.0) * scale[1]);
            }
        }
        assert!(kept.flat().unwrap() == all);
        for kept in [&kept, &KeptSums::of_flat(&all, 50, n_topics)] {
            assert_eq!(kept.seen.iter().flatten().count(), 6_668);
        }
    }
}

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

    /// The sums that [`flat`](Self::flat) gave; None of an array that it cannot have given.
    pub(super) fn of_flat(flat: &[f64], sizes: [usize; 3]) -> Option<Self> {
        let ([n_words, n_topics, n_others], mut rest) = (sizes, flat);
        let unseen = rest.split_off(..2 * n_topics)?.as_chunks().0.to_vec();
        let others = rest.split_off(..n_others)?.to_vec();
        let mut seen: Vec<Vec<_>> = Vec::with_capacity(n_words);
        for _ in 0..n_words {
            let n = (*rest.split_off_first()? as usize).min(n_topics);
            let own = rest.split_off(..3 * n)?.as_chunks::<3>().0.iter();
            seen.push(own.map(|&[topic, phi, square]| (topic as u16, [phi, square])).collect());
        }
        let are_in_order = seen.iter().all(|own| {
            own.is_sorted_by(|one, next| one.0 < next.0)
                && own.last().is_none_or(|&(topic, _)| usize::from(topic) < n_topics)
        });
        let mut moments = unseen.iter().chain(seen.iter().flatten().map(|(_, sums)| sums));
        let are_sums = moments.all(|sums| sums.iter().all(|&x| x >= 0.0 && x.is_finite()))
            && others.iter().all(|x| x.is_finite());
        let kept = KeptSums { unseen, seen, others };
        (are_in_order && are_sums && kept.flat() == flat).then_some(kept)
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

    /// Sums of φ and φ² of words that never had tokens, topic after topic, and those of the other
    /// parameters; for each word, the number of its topics, and of each the topic and both sums.
    pub(super) fn flat(&self) -> Vec<f64> {
        let mut flat = [self.unseen.as_flattened(), &self.others].concat();
        for own in &self.seen {
            flat.push(own.len() as f64);
            flat.extend(own.iter().flat_map(|&(k, sums)| [f64::from(k), sums[0], sums[1]]));
        }
        flat
    }

    /// Means over so many sweeps.
    pub(super) fn means(&self, n_sweeps: u64) -> Result<PosteriorMeans> {
        let factor = (n_sweeps as f64).recip();
        let mean = |sums: Moments| sums[0] * factor;
        let std = |x: Moments| (x[1] * factor - mean(x) * mean(x)).max(0.0).sqrt();
        let (topics, std) = (self.all(mean)?, self.all(std)?);
        let others = self.others.iter().map(|sum| sum * factor).collect();
        Ok(PosteriorMeans { topics, std, others })
    }

    /// Values of all topics and words, topics x words.
    fn all(&self, value: impl Fn(Moments) -> f64) -> Result<Vec<f64>> {
        let n_words = self.seen.len();
        let n_cells = n_words * self.unseen.len();
        let mut all = array_of("sums over kept sweeps", n_cells, 0.0)?;
        for (words, &sums) in all.chunks_exact_mut(n_words.max(1)).zip(&self.unseen) {
            words.fill(value(sums));
        }
        for (word, seen) in self.seen.iter().enumerate() {
            seen.iter().for_each(|&(k, sums)| all[usize::from(k) * n_words + word] = value(sums));
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
        let flat = kept.flat();
        assert_eq!(flat.len(), 2 * n_topics + 50 + 3 * 6_668);
        let sizes = [50, n_topics, 0];
        for kept in [&kept, &KeptSums::of_flat(&flat, sizes).unwrap()] {
            let means = kept.means(1).unwrap().topics;
            let by_word = (0..n_cells).map(|place| means[place % n_topics * 50 + place / n_topics]);
            assert!(by_word.eq(all[..n_cells].iter().copied()));
        }
        for (place, wrong) in
            [(0, -1.0), (1, f64::INFINITY), (2 * n_topics, 9e9), (2 * n_topics + 1, 0.5)]
        {
            let mut flat = flat.clone();
            flat[place] = wrong;
            assert!(KeptSums::of_flat(&flat, sizes).is_none(), "{place}");
        }
        assert!(KeptSums::of_flat(&flat[1..], sizes).is_none());
    }
}

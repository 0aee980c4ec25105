//! Sums over the kept sweeps of a chain, and the posterior means that they give.

use rayon::prelude::*;

use super::sweeps::{Topics, chunk_words};
use crate::error::{Result, array_of, room_for};

/// E[φ | topics of all tokens] = a / A and E[φ² | ..] = a (a + 1) / (A (A + 1)), with a = β_kw + n_kw
/// and A = Σ_w a, or their sums.
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
/// had no tokens in any kept sweep; only the others, which are few where topics are many, are kept one
/// by one. They start from that sum, so that all sums have the bits of an array of words x topics.
pub(super) struct KeptSums {
    n_words: usize,
    /// Sums of a word that never had tokens, by topic.
    unseen: Vec<Moments>,
    /// Sums of the other words and topics, for some words each.
    chunks: Vec<Chunk>,
    others: Vec<f64>,
}

/// The words and topics of a chunk that had tokens.
#[derive(Clone, Default)]
struct Chunk {
    /// Places in words x topics, increasing. They fit because a chunk has one word, or fewer places
    /// than 2^14 and the topics of one more word.
    places: Vec<u16>,
    sums: Vec<Moments>,
}

impl KeptSums {
    /// Sums over no sweeps.
    pub(super) fn new(n_words: usize, n_topics: usize, n_others: usize) -> Self {
        let n_chunks = n_words.div_ceil(chunk_words(n_topics));
        let (unseen, others) = (vec![[0.0; 2]; n_topics], vec![0.0; n_others]);
        KeptSums { n_words, unseen, chunks: vec![Chunk::default(); n_chunks], others }
    }

    /// The sums that [`flat`](Self::flat) gave.
    pub(super) fn of_flat(flat: &[f64], n_words: usize, n_topics: usize) -> Self {
        let (phi, others) = flat.split_at(n_words * n_topics);
        let (others, squares) = others.split_at(others.len() - phi.len());
        let mut kept = KeptSums::new(n_words, n_topics, 0);
        kept.others = others.to_vec();
        // Sums of words without tokens are the least; any other words may have sums of their own, too.
        kept.unseen.fill([f64::INFINITY; 2]);
        for (phi, squares) in phi.chunks_exact(n_topics).zip(squares.chunks_exact(n_topics)) {
            for (least, sums) in kept.unseen.iter_mut().zip(phi.iter().zip(squares)) {
                *least = [least[0].min(*sums.0), least[1].min(*sums.1)];
            }
        }
        let (size, bits) =
            (chunk_words(n_topics) * n_topics, |sums: Moments| sums.map(f64::to_bits));
        let (unseen, sums) = (&kept.unseen, phi.chunks(size).zip(squares.chunks(size)));
        for (chunk, (phi, squares)) in kept.chunks.iter_mut().zip(sums) {
            let sums = phi.iter().zip(squares).map(|(&phi, &square)| [phi, square]);
            let seen = sums.zip(unseen.iter().cycle()).enumerate();
            let is_seen = |sums, unseen: &Moments| bits(sums) != bits(*unseen);
            for (place, (sums, _)) in seen.filter(|(_, (sums, unseen))| is_seen(*sums, unseen)) {
                chunk.places.push(place as u16);
                chunk.sums.push(sums);
            }
        }
        kept
    }

    /// Adds the moments of φ given the counts of words by topic, and the other parameters.
    pub(super) fn add(
        &mut self,
        topics: &Topics,
        counts: &[u32],
        others: impl Iterator<Item = f64>,
    ) {
        let (scales, unseen, n_topics) = (topics.moment_scales(), &self.unseen, self.unseen.len());
        let size = chunk_words(n_topics) * n_topics;
        let moments = |a: f64, scale: Moments| [a * scale[0], a * (a + 1.0) * scale[1]];
        let add = |sums: Moments, more: Moments| [sums[0] + more[0], sums[1] + more[1]];
        let is_own = topics.has_own_priors();
        let chunks = self.chunks.par_iter_mut().zip(counts.par_chunks(size)).enumerate();
        chunks.for_each(|(number, (chunk, counts))| {
            let Chunk { places, sums } = std::mem::take(chunk);
            chunk.places.reserve_exact(places.len());
            chunk.sums.reserve_exact(places.len());
            let mut seen = places.into_iter().zip(sums).peekable();
            for (word, counts) in counts.chunks_exact(n_topics).enumerate() {
                for (topic, &n) in counts.iter().enumerate() {
                    let place = word * n_topics + topic;
                    let sums = seen.next_if(|(seen, _)| usize::from(*seen) == place);
                    if sums.is_none() && n == 0 && !is_own {
                        continue;
                    }
                    let sums = sums.map_or(unseen[topic], |(_, sums)| sums);
                    let a = topics.prior_at(number * size + place) + f64::from(n);
                    chunk.places.push(place as u16);
                    chunk.sums.push(add(sums, moments(a, scales[topic])));
                }
            }
            chunk.places.shrink_to_fit();
            chunk.sums.shrink_to_fit();
        });
        for (sums, scale) in self.unseen.iter_mut().zip(scales) {
            *sums = add(*sums, moments(topics.prior, scale));
        }
        self.others.iter_mut().zip(others).for_each(|(sum, x)| *sum += x);
    }

    /// Sums of φ, words x topics, of the other parameters and of φ², one array after the other.
    pub(super) fn flat(&self) -> Result<Vec<f64>> {
        let (n_cells, n_others) = (self.n_words * self.unseen.len(), self.others.len());
        let mut flat = array_of("sums over kept sweeps", 2 * n_cells + n_others, 0.0)?;
        flat[n_cells..][..n_others].copy_from_slice(&self.others);
        for (first, moment) in [(0, 0), (n_cells + n_others, 1)] {
            let dense = &mut flat[first..][..n_cells];
            let unseen = self.unseen.iter().cycle();
            dense.iter_mut().zip(unseen).for_each(|(sum, unseen)| *sum = unseen[moment]);
            self.seen().for_each(|(place, sums)| dense[place] = sums[moment]);
        }
        Ok(flat)
    }

    /// Means over so many sweeps.
    pub(super) fn means(&self, n_sweeps: u64) -> Result<PosteriorMeans> {
        let (n_words, n_topics) = (self.n_words, self.unseen.len());
        let factor = (n_sweeps as f64).recip();
        let mean_and_std = |sums: Moments| {
            let mean = sums[0] * factor;
            (mean, (sums[1] * factor - mean * mean).max(0.0).sqrt())
        };
        let mut topics = room_for("posterior means", n_words * n_topics)?;
        let mut std = room_for("posterior standard deviations", n_words * n_topics)?;
        for (topic, &sums) in (1..).zip(&self.unseen) {
            let (mean, own_std) = mean_and_std(sums);
            topics.resize(topic * n_words, mean);
            std.resize(topic * n_words, own_std);
        }
        for (place, sums) in self.seen() {
            let place = place % n_topics * n_words + place / n_topics;
            (topics[place], std[place]) = mean_and_std(sums);
        }
        let others = self.others.iter().map(|sum| sum * factor).collect();
        Ok(PosteriorMeans { topics, std, others })
    }

    /// Places in words x topics and sums of the words that had tokens.
    fn seen(&self) -> impl Iterator<Item = (usize, Moments)> {
        let size = chunk_words(self.unseen.len()) * self.unseen.len();
        self.chunks.iter().enumerate().flat_map(move |(number, chunk)| {
            let places = chunk.places.iter().map(move |&place| number * size + usize::from(place));
            places.zip(chunk.sums.iter().copied())
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::rng::{Key, Purpose};
    use crate::training::schedule::TopicStep;

    /// Against arrays of words x topics, whose sums go through a file after the second sweep.
    #[test]
    fn sums_of_words_that_had_tokens_give_all_sums_to_the_bit() {
        let mut rng = Key::new(3, Purpose::Initialise).rng();
        for (n_words, n_topics, is_own) in [(3000, 7, false), (5, 20_000, false), (50, 3, true)] {
            let n_cells = n_words * n_topics;
            let mut topics = Topics::new(n_words, n_topics, 0.3).unwrap();
            if is_own {
                let priors = (0..n_cells).map(|_| rng.random_range(0.1..2.0)).collect();
                topics = topics.with_priors(priors).unwrap();
            }
            let mut kept = KeptSums::new(n_words, n_topics, 1);
            let mut dense = vec![0.0; 2 * n_cells + 1];
            for sweep in 0..4 {
                let count = |_| if rng.random_bool(0.2) { rng.random_range(1..9) } else { 0 };
                let counts: Vec<u32> = (0..n_cells).map(count).collect();
                topics.update(&counts, TopicStep::Mean, Key::new(0, Purpose::Parameters));
                kept.add(&topics, &counts, [0.5].into_iter());
                dense[n_cells] += 0.5;
                let scales = topics.moment_scales();
                for (place, &n) in counts.iter().enumerate() {
                    let a = topics.prior_at(place) + f64::from(n);
                    dense[place] += a * scales[place % n_topics][0];
                    dense[n_cells + 1 + place] += a * (a + 1.0) * scales[place % n_topics][1];
                }
                assert!(kept.flat().unwrap() == dense, "{n_topics}, {sweep}");
                if sweep == 1 {
                    kept = KeptSums::of_flat(&dense, n_words, n_topics);
                }
            }
            let n_seen = kept.seen().count();
            assert!(is_own == (n_seen == n_cells) && n_seen > n_cells / 2, "{n_seen}");
            let by_topic = (0..n_topics).flat_map(|k| (k..n_cells).step_by(n_topics));
            let moments = by_topic.map(|place| {
                let (mean, square) = (dense[place] / 4.0, dense[n_cells + 1 + place] / 4.0);
                (mean, (square - mean * mean).max(0.0).sqrt())
            });
            let (topics, std) = moments.unzip();
            let means = PosteriorMeans { topics, std, others: vec![0.5] };
            assert!(kept.means(4).unwrap() == means, "{n_topics}");
        }
    }
}

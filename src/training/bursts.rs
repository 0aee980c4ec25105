//! Concentrations of bursty topics: φ_dk ~ Dirichlet(s_k φ_k) in every document d, or LDA where s_k is
//! infinite (Doyle and Elkan 2009, "Accounting for burstiness in topic models", ICML).
//!
//! Given φ and the topics of all tokens, the density of s_k is its prior times
//! Π_d Π_w (s φ_w)_{c_dw} / (s)_{n_d}, from which slices are drawn (Neal 2003, "Slice sampling", Annals of
//! Statistics 31). Then the tokens are seated at tables of Chinese restaurants with masses s φ_w, and
//! given the tables t, φ_k ~ Dirichlet(β + t_k). A priori s/(s + 100) is uniform: the share of the next
//! token's probability that is new, not repeated, once a document has 100 tokens of the topic.

use rand::RngExt;
use rayon::prelude::*;

use crate::error::{Result, check_all, check_length};
use crate::math::elementary::ln;
use crate::math::ln_add;
use crate::rng::{Key, Rng};

use super::schedule::TopicStep;
use super::sweeps::{BurstCounts, BurstWeights, RepeatedWord};

/// Median of the prior of s, and the value at which it starts.
const MEDIAN: f64 = 100.0;
const START: f64 = 300.0;

/// Numbers that are summed side by side.
const LANES: usize = 8;

/// How the concentrations of topics are found.
#[derive(Debug, Clone, PartialEq)]
pub enum Concentration {
    /// Known, one a topic; infinite ones are LDA.
    Fixed(Vec<f64>),
    /// Drawn, one a topic.
    PerTopic,
    /// Drawn, the same for all topics.
    Shared,
}

/// Concentrations of all topics between two sweeps.
pub struct BurstState {
    how: Concentration,
    /// ln s of each topic.
    ln_s: Vec<f64>,
    inverse: Vec<f64>,
}

impl BurstState {
    /// Concentrations as given, or at their start; `None` where all of them are infinite.
    ///
    /// # Errors
    /// Another number than one a topic; values that are not positive.
    pub fn new(how: Concentration, n_topics: usize) -> Result<Option<Self>> {
        let mut ln_s = vec![START.ln(); n_topics];
        if let Concentration::Fixed(values) = &how {
            check_length("topic_concentration", values.len(), n_topics)?;
            check_all("topic_concentration", values, "positive", |s| s > 0.0)?;
            ln_s = values.iter().map(|s| s.ln()).collect();
        }
        let is_lda = ln_s.iter().all(|s| s.is_infinite());
        let mut bursts = BurstState { how, ln_s, inverse: vec![] };
        bursts.invert();
        Ok((!is_lda).then_some(bursts))
    }

    fn invert(&mut self) {
        self.inverse = self.ln_s.iter().map(|x| (-x).exp()).collect();
    }

    /// Concentrations for a sweep over the tokens, given urn weights over φ and how φ has been set.
    pub(super) fn weights<'a>(&'a self, factor: &'a [f64], step: TopicStep) -> BurstWeights<'a> {
        BurstWeights { inverse: &self.inverse, factor, without_own: step == TopicStep::Mean }
    }

    /// ln s of each topic, where they are drawn; else none.
    pub(super) fn drawn(&self) -> &[f64] {
        if matches!(self.how, Concentration::Fixed(_)) { &[] } else { &self.ln_s }
    }

    /// Takes up ln s of a state.
    pub(super) fn restore(&mut self, ln_s: &[f64]) -> Result<()> {
        check_length("concentrations of the state", ln_s.len(), self.drawn().len())?;
        check_all("concentrations of the state", ln_s, "moderate", |x| x.abs() < 700.0)?;
        if !ln_s.is_empty() {
            self.ln_s.copy_from_slice(ln_s);
            self.invert();
        }
        Ok(())
    }

    /// ln of the prior density of ln s, for what is drawn.
    pub(super) fn ln_prior(&self) -> f64 {
        let n = if self.how == Concentration::Shared { 1 } else { self.drawn().len() };
        self.drawn()[..n].iter().map(|&t| ln_prior(t)).sum()
    }

    /// s given φ and the topics of all tokens.
    pub(super) fn update(&mut self, words: &RepeatedWords, key: Key) {
        let draw = |topics: &[RepeatedTopic], number: u64, start: f64| {
            let density = |t: f64| ln_prior(t) + topics.iter().map(|it| it.ln_at(t)).sum::<f64>();
            slice(density, start, &mut key.unit(number).rng())
        };
        match self.how {
            Concentration::Fixed(_) => return,
            Concentration::PerTopic => {
                let drawn = self.ln_s.par_iter_mut().zip(&words.0).enumerate();
                drawn.for_each(|(k, (ln_s, topic))| {
                    *ln_s = draw(std::slice::from_ref(topic), k as u64, *ln_s);
                });
            }
            Concentration::Shared => {
                let drawn = draw(&words.0, 0, self.ln_s[0]);
                self.ln_s.fill(drawn);
            }
        }
        self.invert();
    }

    /// Topics, words and how many of their tokens join a table of their document.
    pub(super) fn joined(
        &self,
        words: &RepeatedWords,
        key: Key,
    ) -> impl Iterator<Item = (usize, u32, u32)> {
        let topics = words.0.par_iter().zip(&self.inverse).enumerate();
        let of_topic = |(topic, (words, inverse)): (usize, (&RepeatedTopic, &f64))| {
            let mut rng = key.unit(topic as u64).rng();
            let steps = words.words.iter().zip(words.ratios.iter().zip(&words.counts));
            let joined = steps.map(|(&word, (ratio, &n))| {
                // The token after r others joins with probability r / (s φ + r).
                let joins = |_: &u32| rng.random::<f64>() * (ratio + inverse) < *inverse;
                (topic, word, (0..n as u32).filter(joins).count() as u32)
            });
            joined.filter(|(.., n)| *n > 0).collect::<Vec<_>>()
        };
        topics.map(of_topic).collect::<Vec<_>>().into_iter().flatten()
    }
}

/// The words that documents repeat, by topic.
pub(super) struct RepeatedWords(Vec<RepeatedTopic>);

/// Counts that the density of one concentration depends on: Π_w Π_r (s φ_w + r)^{m_wr} / Π_j (s + j)^{m_j}, where
/// m_wr documents have more than r tokens of word w, and m_j more than j tokens in all.
struct RepeatedTopic {
    /// Words and φ/r, for every r from 1 on, and m_wr.
    words: Vec<u32>,
    ratios: Vec<f64>,
    counts: Vec<f64>,
    /// Sum of all m_wr.
    n_repeats: f64,
    /// j and m_j, from j = 1.
    places: Vec<f64>,
    more: Vec<f64>,
}

impl RepeatedWords {
    /// Sorts what a sweep has found: the same for any order of documents.
    pub(super) fn new(mut found: BurstCounts, n_topics: usize) -> Self {
        found.repeated.resize(n_topics, vec![]);
        found.n_documents.resize(n_topics, vec![]);
        let topics = found.repeated.par_iter_mut().zip(&found.n_documents);
        let topics = topics.map(|(cells, n_documents)| {
            // Each block of documents has gone word by word: there is little to sort.
            cells.sort_by_key(|cell| cell.word);
            let mut topic_words = RepeatedTopic::of_lengths(n_documents);
            for cells in cells.chunk_by(|x, y| x.word == y.word) {
                topic_words.add(cells);
            }
            topic_words
        });
        RepeatedWords(topics.collect())
    }
}

impl RepeatedTopic {
    /// Given how many documents have n tokens, at index n.
    fn of_lengths(n_documents: &[u32]) -> Self {
        let mut more = vec![0.0; n_documents.len().saturating_sub(2)];
        let mut sum = 0.0;
        for (j, more) in more.iter_mut().enumerate().rev() {
            sum += f64::from(n_documents[j + 2]);
            *more = sum;
        }
        let places = (1..=more.len()).map(|j| j as f64).collect();
        let (words, ratios, counts) = (vec![], vec![], vec![]);
        RepeatedTopic { words, ratios, counts, n_repeats: 0.0, places, more }
    }

    /// Adds a word's numbers of tokens in documents, all above 1.
    fn add(&mut self, cells: &[RepeatedWord]) {
        let RepeatedWord { word, phi, .. } = cells[0];
        let most = cells.iter().map(|cell| cell.n_tokens).max().unwrap_or(1);
        let start = self.counts.len();
        self.ratios.extend((1..most).map(|r| phi / f64::from(r)));
        self.words.resize(self.ratios.len(), word);
        self.counts.resize(self.ratios.len(), 0.0);
        for n_repeats in cells.iter().map(|cell| cell.n_tokens - 1) {
            let more = &mut self.counts[start..][..usize::from(n_repeats)];
            more.iter_mut().for_each(|m| *m += 1.0);
            self.n_repeats += f64::from(n_repeats);
        }
    }

    /// ln of the density at t = ln s, up to a constant and the prior.
    fn ln_at(&self, t: f64) -> f64 {
        // Factors s φ + r are divided by r, factors s + j by s: for large s, all are near 1.
        let s = t.exp();
        let words = ln_factors(&self.counts, &self.ratios, s);
        words - self.n_repeats * t - ln_factors(&self.more, &self.places, s.recip())
    }
}

/// ln of the density of t = ln s, up to a constant: s/(s + [`MEDIAN`]) is uniform.
fn ln_prior(t: f64) -> f64 {
    let x = t - MEDIAN.ln();
    x - 2.0 * ln_add(x, 0.0)
}

/// A step of a chain with this density: a uniform draw from a slice, whose ends are found by steps of 1
/// from the present place.
fn slice(ln_density: impl Fn(f64) -> f64, place: f64, rng: &mut Rng) -> f64 {
    let least = ln_density(place) + rng.random::<f64>().ln();
    let mut low = place - rng.random::<f64>();
    let mut high = low + 1.0;
    while ln_density(low) > least {
        low -= 1.0;
    }
    while ln_density(high) > least {
        high += 1.0;
    }
    loop {
        let drawn = low + rng.random::<f64>() * (high - low);
        if ln_density(drawn) > least {
            return drawn;
        }
        if drawn < place {
            low = drawn;
        } else {
            high = drawn;
        }
        if high - low < 1e-12 {
            return place;
        }
    }
}

/// Σ n ln(1 + x ratio).
#[polyabayes_macros::vectorised]
fn ln_factors(counts: &[f64], ratios: &[f64], x: f64) -> f64 {
    let mut sums = [0.0; LANES];
    let ((counts, rest), (ratios, ratios_of_rest)) = (counts.as_chunks(), ratios.as_chunks());
    let (mut last, mut last_ratios) = ([0.0; LANES], [0.0; LANES]);
    last[..rest.len()].copy_from_slice(rest);
    last_ratios[..rest.len()].copy_from_slice(ratios_of_rest);
    counts.iter().zip(ratios).chain([(&last, &last_ratios)]).for_each(|(counts, ratios)| {
        for lane in 0..LANES {
            let product = x * ratios[lane];
            let sum = 1.0 + product;
            // What the sum has lost of the product, to first order.
            sums[lane] += counts[lane] * (ln(sum) + (product - (sum - 1.0)) / sum);
        }
    });
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::ln_rising;

    /// Against Π_dw (s φ_w)_{c_dw} / Π_d (s)_{n_d}.
    #[test]
    fn the_density_of_a_concentration_is_that_of_its_terms() {
        let phi = [0.5, 0.2, 0.3];
        let documents: [[u64; 3]; 5] = [[4, 0, 1], [2, 2, 0], [1, 0, 0], [0, 7, 2], [0, 1, 1]];
        let (repeated, n_documents) = (vec![vec![]; 2], vec![vec![], vec![0; 12]]);
        let mut found = BurstCounts { repeated, n_documents };
        for document in documents {
            found.n_documents[1][document.iter().sum::<u64>() as usize] += 1;
            for (word, &n) in (0..).zip(&document).filter(|(_, n)| **n > 1) {
                let (n_tokens, phi) = (n as u16, phi[word as usize]);
                found.repeated[1].insert(0, RepeatedWord { word, n_tokens, phi });
            }
        }
        let words = RepeatedWords::new(found, 2);
        let expected = |s: f64| -> f64 {
            let words = documents.iter().flat_map(|row| row.iter().zip(phi));
            let ln_words: f64 = words.map(|(&n, phi)| ln_rising(s * phi, n)).sum();
            let ln_lengths = documents.iter().map(|row| ln_rising(s, row.iter().sum()));
            ln_words - ln_lengths.sum::<f64>()
        };
        let constant = words.0[1].ln_at(0.0) - expected(1.0);
        for t in [-7.0, -1.0, 0.5, 4.0, 9.0] {
            let value = words.0[1].ln_at(t);
            assert!((value - expected(t.exp()) - constant).abs() < 1e-9, "{t}: {value}");
        }
        assert!(words.0[0].ln_at(3.0).abs() < 1e-300);
    }
}

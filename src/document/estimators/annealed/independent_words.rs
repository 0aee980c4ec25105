//! Bursty topics whose balls are fixed: the words of a document are then independent.

use crate::control::Observer;
use crate::document::estimators::word_groups::WordGroups;
use crate::error::Result;
use crate::rng::{LANES, UniformLanes};
use crate::urn::{Bursts, LocalUrn, TopicChains};

/// The words of a document, each by itself.
pub(super) struct IndependentWords {
    words: Vec<WordGroups>,
    /// ln of the sum of the weights of all topics of all tokens.
    pub(super) ln_sum: f64,
}

impl IndependentWords {
    pub(super) fn new(
        urn: &LocalUrn,
        bursts: &Bursts,
        balls: &[f64],
        observer: &impl Observer,
    ) -> Result<Self> {
        let mut ln_sum = 0.0;
        let mut words = Vec::with_capacity(urn.n_distinct());
        for (cell, (q, y)) in urn.cells().enumerate() {
            let growth = q.iter().enumerate().map(|(k, &q)| {
                // A topic that cannot produce the word has none of its tokens, however many.
                if q > 0.0 { balls[k] * bursts.repeat(cell, k) } else { 0.0 }
            });
            let first = balls.iter().zip(q).map(|(m, q)| m * q);
            let word = WordGroups::new(first.collect(), growth.collect(), y as usize, observer)?;
            ln_sum += word.ln_sum;
            words.push(word);
        }
        Ok(IndependentWords { words, ln_sum })
    }

    /// Adds the expected tokens of each word in each topic to a table with a row for each word.
    pub(super) fn add_expected(&self, expected: &mut [f64]) {
        let n_topics = expected.len() / self.words.len();
        for (word, expected) in self.words.iter().zip(expected.chunks_mut(n_topics)) {
            word.add_expected(expected);
        }
    }

    /// Puts the topics of all tokens into empty chains.
    pub(super) fn draw<U: UniformLanes>(&self, chains: &mut TopicChains<U>) {
        for word in &self.words {
            let y = word.n_tokens();
            let mut topics = vec![[0; LANES]; y];
            let mut left = [y; LANES];
            while left.iter().any(|&n| n > 0) {
                let (sizes, darts) = (chains.uniforms(), chains.uniforms());
                for lane in 0..LANES {
                    if left[lane] == 0 {
                        continue;
                    }
                    let (size, topic) = word.draw_group(left[lane], sizes[lane], darts[lane]);
                    let end = left[lane];
                    topics[end - size..end].iter_mut().for_each(|t| t[lane] = topic as u16);
                    left[lane] -= size;
                }
            }
            topics.into_iter().for_each(|topics| chains.put(topics));
        }
    }
}

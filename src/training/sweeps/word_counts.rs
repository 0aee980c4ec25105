//! Tokens of every word in each topic: all that the topics φ depend on.

use std::ops::Range;

/// Counts of words by topic, of which some rows are asked for at a time.
pub trait WordCounts: Sync {
    /// Size of the vocabulary.
    fn n_words(&self) -> usize;

    /// Sets `out`, words x topics, to the tokens of these words in each topic.
    fn count_words(&self, words: Range<usize>, out: &mut [u32]);

    /// Sets `out` to the number of tokens of `word` in each topic.
    fn count_word(&self, word: usize, out: &mut [u32]) {
        self.count_words(word..word + 1, out);
    }
}

/// Counts that were gathered from elsewhere, words x topics.
#[derive(Clone, Copy)]
pub(in crate::training) struct Gathered<'a> {
    counts: &'a [u32],
    n_topics: usize,
}

impl<'a> Gathered<'a> {
    /// One count for every word and topic.
    pub(in crate::training) fn new(counts: &'a [u32], n_topics: usize) -> Self {
        Gathered { counts, n_topics }
    }
}

impl WordCounts for Gathered<'_> {
    fn n_words(&self) -> usize {
        self.counts.len() / self.n_topics
    }

    fn count_words(&self, words: Range<usize>, out: &mut [u32]) {
        out.copy_from_slice(&self.counts[words.start * self.n_topics..words.end * self.n_topics]);
    }
}

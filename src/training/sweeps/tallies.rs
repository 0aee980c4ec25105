//! Topics of the tokens of many documents, counted, and the draw of one token given the others.

use super::cells::Cells;

/// Most tokens that are drawn side by side.
pub(super) const BATCH: usize = 16;

/// Weights of one word in the topics, and the pseudo-counts.
#[derive(Clone, Copy)]
pub(super) struct Word<'a> {
    /// Pseudo-counts.
    pub(super) a: &'a [f64],
    /// Weights of the word, up to the scale of each topic.
    pub(super) weights: &'a [f64],
    pub(super) scale: &'a [f64],
}

impl Word<'_> {
    /// The weight q of the word in a topic.
    #[inline]
    pub(super) fn q(&self, topic: usize) -> f64 {
        self.weights[topic] * self.scale[topic]
    }

    /// Share of the weight without one table; all of a known probability, which has no tables.
    pub(super) fn share(&self, topic: usize) -> f64 {
        let weight = self.weights[topic];
        if weight > 1.0 { 1.0 - weight.recip() } else { 1.0 }
    }

    /// Share of the weight of its old topic that a token sees once it has left.
    pub(super) fn share_beside(&self, cells: &Cells, place: usize, topic: u16) -> f64 {
        if cells.leaves_own(place, topic) { self.share(topic.into()) } else { 1.0 }
    }
}

/// Neighbouring tokens of different documents.
#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    /// Number of the first of them.
    pub(super) first: usize,
    /// Its place in the run.
    pub(super) place: usize,
    pub(super) documents: &'a [u32],
}

/// Counts of topics by document.
pub(super) trait Tallies {
    /// Tallies of no documents.
    fn new(n_topics: usize) -> Self;

    /// Starts again, with documents of these lengths and all their tokens.
    fn fill(&mut self, lengths: &[usize], documents: &[u32], topics: &[u16]);

    /// Prepares for the tokens of a word.
    fn take_up(&mut self, word: &Word<'_>);

    /// Takes tokens out of their documents.
    fn remove(&mut self, tokens: Batch<'_>, topics: &[u16]);

    /// Adds tokens to their documents.
    fn put(&mut self, tokens: Batch<'_>, topics: &[u16]);

    /// Pseudo-counts of a document, and factors of its topics where it has such.
    fn own(&self, document: usize) -> (&[f64], &[f64]);

    /// Draws the topics of up to [`BATCH`] tokens of the word taken up, which have been removed
    /// from their documents, and adds them again.
    ///
    /// A topic is drawn with probability proportional to (a_k + n_k) q_k, or as [`cells`](super::cells)
    /// says; `uniforms` are the tokens' numbers in [0, 1). First all counts are read, at last all are written: the processor
    /// works on the tokens side by side only as long as none reads near where another has written.
    fn draw(
        &mut self,
        word: &Word<'_>,
        tokens: Batch<'_>,
        topics: &mut [u16],
        cells: &Cells,
        uniforms: &[f64; BATCH],
    );

    /// The topics of a document and their counts, of which some may be zero.
    fn counts(&self, document: usize) -> impl Iterator<Item = (usize, u32)>;

    /// Sets the counts of all topics of a document.
    fn spread(&self, document: usize, counts: &mut [f64]) {
        counts.fill(0.0);
        self.counts(document).for_each(|(topic, n)| counts[topic] += f64::from(n));
    }
}

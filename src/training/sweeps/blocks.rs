//! The tokens of a block of documents, word by word: a Gibbs sweep over them.
//!
//! The first tokens of a word in all its documents come first, then the second ones, and so on:
//! neighbouring tokens belong to different documents, so that the processor works on several at a
//! time, and the weights of a word are read once for all its tokens in the block. Documents that hold
//! more of a word come first, so that those which repeat it lie together. A document still sees its
//! tokens in the order of their words, and a token's random number is keyed by its document and its
//! word: how documents fall into blocks changes no bit.

use std::ops::Range;

use super::cells::{BurstWeights, Cells, RepeatedWord, runs};
use super::groups::{self, GroupDraws};
use super::tallies::{BATCH, Batch, Tallies, Word};
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Result, array_of};
use crate::rng::Key;
use crate::training::pseudo_counts::PseudoCounts;

/// Consecutive documents and the topics of their tokens, in the order of the words.
pub(in crate::training) struct DocumentBlock {
    pub(in crate::training) documents: Range<usize>,
    /// Documents of the corpus before the matrix at hand.
    documents_before: usize,
    /// Tokens of each document.
    lengths: Vec<usize>,
    /// First token of each word, and the end.
    word_starts: Vec<usize>,
    /// Document of each token, counted from the block's first: see [`runs`].
    token_documents: Vec<u32>,
    topics: Vec<u16>,
}

/// Topics of words and pseudo-counts of documents, as a sweep over the tokens needs them.
#[derive(Debug, Clone, Copy)]
pub struct TopicWeights<'a> {
    /// Pseudo-counts of documents: α, or r.
    pub a: PseudoCounts<'a>,
    /// φ up to the scale of each topic, word-major.
    pub weights: &'a [f64],
    /// The scales.
    pub scale: &'a [f64],
    /// Rates x of the gamma distributions of θ, where documents have exposures: weights are then
    /// divided by x + e.
    pub rates: Option<&'a [f64]>,
    /// Concentrations, where some topic is bursty.
    pub bursts: Option<BurstWeights<'a>>,
}

/// The urns of a sweep, the key of its random numbers, and whether it draws tables, too.
#[derive(Clone, Copy)]
pub(in crate::training) struct Step<'a> {
    pub(in crate::training) urns: TopicWeights<'a>,
    pub(in crate::training) key: Key,
    pub(in crate::training) tables: bool,
}

impl<'a> Step<'a> {
    /// The urn of a word.
    pub(super) fn word(&self, word: usize) -> Word<'a> {
        let TopicWeights { a, weights, scale, .. } = self.urns;
        let n_topics = a.n_topics();
        Word { a: a.first(), weights: &weights[word * n_topics..][..n_topics], scale }
    }
}

impl DocumentBlock {
    /// Documents and the topics of their tokens, in the order of documents and cells;
    /// `documents_before` are those of the corpus before `counts`.
    pub(in crate::training) fn new(
        counts: &CountMatrix,
        documents: Range<usize>,
        documents_before: usize,
        topics: &[u16],
    ) -> Result<Self> {
        let cells = || documents.clone().map(|doc_ix| counts.document(doc_ix).cells());
        let mut word_starts = vec![0; counts.n_words() + 1];
        for (word, count) in cells().flatten() {
            word_starts[word as usize + 1] += count as usize;
        }
        for word in 0..counts.n_words() {
            word_starts[word + 1] += word_starts[word];
        }
        let n_tokens = word_starts[counts.n_words()];
        let mut token_documents = array_of("documents of all tokens", n_tokens, 0)?;
        let mut by_word = array_of("topics of all tokens", n_tokens, 0)?;
        let (mut next, mut topics) = (word_starts.clone(), topics.iter());
        for (document, cells) in (0..).zip(cells()) {
            for (word, count) in cells {
                let next = &mut next[word as usize];
                // Most runs are of one token or two: too short for a call to copy memory.
                for (token, &topic) in (*next..*next + count as usize).zip(&mut topics) {
                    (token_documents[token], by_word[token]) = (document, topic);
                }
                *next += count as usize;
            }
        }
        let mut tokens = Vec::new();
        for word in 0..counts.n_words() {
            let own = word_starts[word]..word_starts[word + 1];
            sort_into_runs(&mut token_documents[own.clone()], &mut by_word[own], &mut tokens);
        }
        let lengths = lengths(&token_documents, documents.len());
        let topics = by_word;
        Ok(DocumentBlock {
            documents,
            documents_before,
            lengths,
            word_starts,
            token_documents,
            topics,
        })
    }

    /// The block of tokens that [`parts`](Self::parts) gave the order of, with their topics.
    pub(in crate::training) fn ordered(
        documents: Range<usize>,
        documents_before: usize,
        word_starts: &[u32],
        token_documents: &[u16],
        topics: &[u16],
    ) -> Result<Self> {
        let mut numbers = array_of("documents of all tokens", token_documents.len(), 0)?;
        numbers.iter_mut().zip(token_documents).for_each(|(to, &from)| *to = u32::from(from));
        Ok(DocumentBlock {
            lengths: lengths(&numbers, documents.len()),
            documents,
            documents_before,
            word_starts: word_starts.iter().map(|&start| start as usize).collect(),
            token_documents: numbers,
            topics: topics.to_vec(),
        })
    }

    /// First token of each word and the end, and the document of each token.
    pub(in crate::training) fn parts(&self) -> (&[usize], &[u32]) {
        (&self.word_starts, &self.token_documents)
    }

    /// Topics of the tokens in the order of the words.
    pub(in crate::training) fn topics(&self) -> &[u16] {
        &self.topics
    }

    /// Documents of the tokens of a word, and their topics.
    pub(super) fn word_mut(&mut self, word: usize) -> (&[u32], &mut [u16]) {
        let tokens = self.word_starts[word]..self.word_starts[word + 1];
        (&self.token_documents[tokens.clone()], &mut self.topics[tokens])
    }

    /// Tokens of each document.
    pub(in crate::training) fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Numbers of the documents in the corpus.
    pub(super) fn in_corpus(&self) -> Range<usize> {
        let Range { start, end } = self.documents;
        self.documents_before + start..self.documents_before + end
    }

    /// The place of every token in the order of documents and cells, counted from the block's first.
    fn places(&self) -> impl Iterator<Item = usize> {
        let mut next = Vec::with_capacity(self.lengths.len());
        let mut start = 0;
        for length in &self.lengths {
            next.push(start);
            start += length;
        }
        self.token_documents.iter().map(move |&document| {
            let place = next[document as usize];
            next[document as usize] += 1;
            place
        })
    }

    pub(in crate::training) fn n_tokens(&self) -> usize {
        self.topics.len()
    }

    /// The topics in the order of documents and cells.
    pub(in crate::training) fn topics_by_document(&self) -> Vec<u16> {
        let mut topics = vec![0; self.n_tokens()];
        for (place, &topic) in self.places().zip(&self.topics) {
            topics[place] = topic;
        }
        topics
    }

    /// Sets the topics from the order of documents and cells.
    pub(in crate::training) fn set_topics_by_document(&mut self, topics: &[u16]) {
        self.topics = self.places().map(|place| topics[place]).collect();
    }

    /// Gives every topic another number.
    pub(in crate::training) fn renumber(&mut self, numbers: &[u16]) {
        self.topics.iter_mut().for_each(|topic| *topic = numbers[usize::from(*topic)]);
    }

    /// Adds the tokens of these words in each topic to `counts`, words x topics.
    pub(in crate::training) fn count_words(
        &self,
        words: Range<usize>,
        counts: &mut [u32],
        n_topics: usize,
    ) {
        for (word, counts) in words.zip(counts.chunks_exact_mut(n_topics)) {
            for &topic in &self.topics[self.word_starts[word]..self.word_starts[word + 1]] {
                counts[usize::from(topic)] += 1;
            }
        }
    }

    /// Fills `tallies` with the present topics of the documents.
    pub(super) fn tally(&self, tallies: &mut impl Tallies) {
        tallies.fill(&self.lengths, &self.token_documents, &self.topics);
    }

    /// Every token in turn leaves the urn of its document and is drawn again given the others; where
    /// topics are bursty, returns the words that documents repeat in one topic.
    pub(super) fn sweep(
        &mut self,
        step: Step<'_>,
        tallies: &mut impl Tallies,
        observer: &dyn Observer,
    ) -> Result<Vec<Vec<RepeatedWord>>> {
        let bursts = step.urns.bursts;
        let n_bursty = bursts.map_or(0, |it| it.inverse.len());
        let (mut uniforms, mut repeated) = (Vec::new(), vec![vec![]; n_bursty]);
        let mut cells = bursts.map_or_else(Cells::default, Cells::new);
        let mut groups =
            bursts.map_or_else(GroupDraws::default, |it| GroupDraws::new(it, &cells.repeat));
        for word in 0..self.word_starts.len() - 1 {
            let tokens = self.word_starts[word]..self.word_starts[word + 1];
            if tokens.is_empty() {
                continue;
            }
            observer.check_stop()?;
            let urn = step.word(word);
            tallies.take_up(&urn);
            if bursts.is_some() {
                cells.take_up(&self.token_documents[tokens.clone()], &self.topics[tokens.clone()]);
            }
            let key = step.key.unit(word as u64);
            let mut tokens = WordTokens {
                key,
                first_document: self.documents_before + self.documents.start,
                first: tokens.start,
                documents: &self.token_documents[tokens.clone()],
                topics: &mut self.topics[tokens],
            };
            if cells.len() > 0 && groups::are_drawn(key) {
                groups.take_up(&urn);
                tokens.draw_groups(&mut groups, tallies, &mut cells);
            }
            tokens.draw(&urn, tallies, &mut cells, &mut uniforms);
            let phi = |topic: usize| bursts.map_or(0.0, |it| urn.q(topic) / it.factor[topic]);
            cells.add_repeated(word as u32, phi, &mut repeated);
        }
        Ok(repeated)
    }
}

/// The tokens of one word.
struct WordTokens<'a> {
    key: Key,
    /// Number of the block's first document in the corpus.
    first_document: usize,
    /// Number of the first token.
    first: usize,
    documents: &'a [u32],
    topics: &'a mut [u16],
}

impl WordTokens<'_> {
    /// Draws them; `uniforms` is room for numbers.
    fn draw(
        &mut self,
        urn: &Word<'_>,
        tallies: &mut impl Tallies,
        cells: &mut Cells,
        uniforms: &mut Vec<f64>,
    ) {
        let numbers = self.key.counter();
        let (mut topics, mut first) = (&mut *self.topics, self.first);
        // Tokens of one document wait for each other.
        for (repeat, run) in (0..).zip(runs(self.documents)) {
            let first_index = (self.first_document as u64) << 32 | repeat;
            uniforms.resize(run.len().next_multiple_of(BATCH), 0.0);
            numbers.fill(first_index, run, uniforms);
            let mut uniforms = uniforms.as_chunks::<BATCH>().0.iter();
            let (mut batches, mut place) = (run.chunks(BATCH).peekable(), 0);
            tallies.remove(Batch { first, place, documents: &run[..run.len().min(BATCH)] }, topics);
            while let (Some(documents), Some(uniforms)) = (batches.next(), uniforms.next()) {
                let own = topics.split_off_mut(..documents.len()).unwrap_or_default();
                let tokens = Batch { first, place, documents };
                cells.remove(place, own);
                first += documents.len();
                place += documents.len();
                // Long before they are read, so that the processor has written them by then.
                if let Some(documents) = batches.peek() {
                    tallies.remove(Batch { first, place, documents }, topics);
                }
                tallies.draw(urn, tokens, own, cells, uniforms);
                cells.add(tokens.place, own);
            }
        }
    }

    /// Moves all tokens of the word together in the documents in which one topic holds them.
    fn draw_groups(
        &mut self,
        groups: &mut GroupDraws,
        tallies: &mut impl Tallies,
        cells: &mut Cells,
    ) {
        let first_index = (self.first_document as u64) << 32 | u64::from(u32::MAX);
        for (place, &document) in self.documents.iter().enumerate().take(cells.len()) {
            // One topic holds all tokens of the word.
            let &[group] = cells.of(place) else { continue };
            let index = first_index.wrapping_add(u64::from(document) << 32);
            let u = self.key.counter().uniform(index);
            let count = |counts: &mut [f64]| tallies.spread(document as usize, counts);
            let new = groups.draw(tallies.own(document as usize), count, group, u);
            let Some(new) = new.filter(|new| *new != group.0) else { continue };
            for token in cells.tokens(place) {
                let topic = &mut self.topics[token..=token];
                let tokens = Batch { first: self.first + token, place, documents: &[document] };
                tallies.remove(tokens, topic);
                topic[0] = new;
                tallies.put(tokens, topic);
            }
            cells.rename(place, new);
        }
    }
}

/// Sorts the tokens of a word, which lie document by document, into [`runs`]; `tokens` is room for them.
fn sort_into_runs(documents: &mut [u32], topics: &mut [u16], tokens: &mut Vec<(u64, u32, u16)>) {
    if documents.is_sorted_by(|x, y| x < y) {
        return;
    }
    tokens.clear();
    for run in documents.chunk_by(|x, y| x == y) {
        // By the number of the run, then most tokens first.
        let orders = (u64::from(u32::MAX) - run.len() as u64..).step_by(1 << 32);
        tokens.extend(orders.zip(run).map(|(order, &document)| (order, document, 0)));
    }
    tokens.iter_mut().zip(&*topics).for_each(|(token, &topic)| token.2 = topic);
    tokens.sort_by_key(|&(order, ..)| order);
    let sorted = documents.iter_mut().zip(topics).zip(&*tokens);
    for ((document, topic), &(_, own_document, own_topic)) in sorted {
        (*document, *topic) = (own_document, own_topic);
    }
}

/// Lengths of so many documents, given the document of each token.
fn lengths(token_documents: &[u32], n_documents: usize) -> Vec<usize> {
    let mut lengths = vec![0; n_documents];
    token_documents.iter().for_each(|&document| lengths[document as usize] += 1);
    lengths
}

/// Splits documents into at most `n_blocks` runs of about as many tokens.
pub(in crate::training) fn split_documents(
    counts: &CountMatrix,
    n_blocks: usize,
) -> Vec<Range<usize>> {
    let size = (counts.n_tokens() as usize).div_ceil(n_blocks).max(1);
    let (mut blocks, mut first, mut done) = (Vec::with_capacity(n_blocks), 0, 0);
    for (doc_ix, n_tokens) in counts.documents().map(Document::n_tokens).enumerate() {
        done += n_tokens as usize;
        if done >= size * (blocks.len() + 1) || doc_ix + 1 == counts.n_documents() {
            blocks.push(first..doc_ix + 1);
            first = doc_ix + 1;
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_a_word_lie_in_runs_of_different_documents() {
        let counts = CountMatrix::from_dense(&[vec![1, 2], vec![0, 3], vec![4, 1]]).unwrap();
        let topics: Vec<u16> = (0..11).collect();
        let block = DocumentBlock::new(&counts, 0..3, 0, &topics).unwrap();
        let (word_starts, documents) = block.parts();
        assert_eq!(word_starts, [0, 5, 11]);
        assert_eq!(documents, [2, 0, 2, 2, 2, 1, 0, 2, 1, 0, 1]);
        assert_eq!(block.topics(), [6, 0, 7, 8, 9, 3, 1, 10, 4, 2, 5]);
        assert_eq!(block.topics_by_document(), topics);
    }
}

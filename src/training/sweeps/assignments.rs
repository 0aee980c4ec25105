//! The topic of every token, drawn document by document and counted word by word.

use std::ops::Range;

use rand::RngExt;
use rayon::prelude::*;

use super::blocks::{Block, Step, split_documents};
use super::dense::{self, Dense};
use super::documents::{self, Scheme};
use super::sparse::Sparse;
use super::tables;
use super::tallies::Tallies;
use super::word_counts::WordCounts;
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Result, array_of};
use crate::math::{ExactSum, ln_rising};
use crate::rng::Key;
use crate::training::limits::check_assignments;
use crate::urn::Balls;

/// Tokens in a block: enough of each word to make up for reading its weights, few enough for the
/// tallies of their documents to stay in the cache.
const BLOCK_TOKENS: usize = 1 << 19;

/// Least number of tokens in a block that threads are worth.
const LEAST_BLOCK_TOKENS: usize = 1 << 12;

/// Topics from which a draw passes over those of its document instead of all.
const SPARSE_TOPICS: usize = 256;

/// The part of a corpus that a matrix holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::training) struct Place {
    /// Documents of the corpus before it.
    pub(in crate::training) documents_before: usize,
    /// Tokens of the longest document of the corpus.
    pub(in crate::training) longest: u64,
}

impl Place {
    /// The place of a matrix that holds the whole corpus.
    fn whole(counts: &CountMatrix) -> Self {
        let longest = counts.documents().map(Document::n_tokens).max().unwrap_or(0);
        Place { documents_before: 0, longest }
    }
}

/// The topic of every token.
///
/// Takes 6 bytes a token, and 8 a word and block.
pub(in crate::training) struct Assignments<'a> {
    counts: &'a CountMatrix,
    place: Place,
    n_topics: usize,
    blocks: Vec<Block>,
}

impl<'a> Assignments<'a> {
    /// Topics drawn uniformly.
    pub(in crate::training) fn new(
        counts: &'a CountMatrix,
        n_topics: usize,
        key: Key,
    ) -> Result<Self> {
        let mut rng = key.rng();
        let n_tokens = counts.n_tokens() as usize;
        let mut topics = array_of("topics of all tokens", n_tokens, 0u16)?;
        topics.iter_mut().for_each(|topic| *topic = rng.random_range(0..n_topics) as u16);
        Self::restored(counts, n_topics, &topics)
    }

    /// The topics of an earlier run, in the order of documents and cells.
    pub(in crate::training) fn restored(
        counts: &'a CountMatrix,
        n_topics: usize,
        topics: &[u16],
    ) -> Result<Self> {
        Self::part(counts, Place::whole(counts), n_topics, topics)
    }

    /// The topics of an earlier run, of a part of a corpus.
    pub(in crate::training) fn part(
        counts: &'a CountMatrix,
        place: Place,
        n_topics: usize,
        topics: &[u16],
    ) -> Result<Self> {
        check_assignments(counts, n_topics, topics)?;
        let n_tokens = topics.len();
        let n_threads = rayon::current_num_threads();
        // Every block has an index by word, which must not outgrow its tokens.
        let most = n_tokens / LEAST_BLOCK_TOKENS.max(counts.n_words() / 2);
        let n_blocks = n_tokens.div_ceil(BLOCK_TOKENS).next_multiple_of(n_threads);
        let documents = split_documents(counts, n_blocks.min(most).max(1));
        let mut rest = topics;
        let parts: Vec<_> = (documents.into_iter())
            .map(|documents| {
                let n_tokens = documents.clone().map(|doc_ix| counts.document(doc_ix).n_tokens());
                let (own, after) = rest.split_at(n_tokens.sum::<u64>() as usize);
                rest = after;
                (documents, own)
            })
            .collect();
        let new = |(documents, own)| Block::new(counts, documents, place.documents_before, own);
        let blocks = parts.into_par_iter().map(new).collect::<Result<_>>()?;
        Ok(Assignments { counts, place, n_topics, blocks })
    }

    /// The topics in the order of documents and cells.
    pub(in crate::training) fn topics(&self) -> Vec<u16> {
        let mut topics = vec![0; self.counts.n_tokens() as usize];
        self.read_topics(&mut topics);
        topics
    }

    /// Writes the topics in the order of documents and cells.
    pub(in crate::training) fn read_topics(&self, mut out: &mut [u16]) {
        let parts: Vec<_> = (self.blocks.iter())
            .map(|block| (block, out.split_off_mut(..block.n_tokens()).unwrap_or_default()))
            .collect();
        parts.into_par_iter().for_each(|(block, own)| block.read_topics(self.counts, own));
    }

    /// Takes up the topics of an earlier run.
    pub(in crate::training) fn restore(&mut self, topics: &[u16]) -> Result<()> {
        check_assignments(self.counts, self.n_topics, topics)?;
        let (counts, mut rest) = (self.counts, topics);
        let parts: Vec<_> = (self.blocks.iter_mut())
            .map(|block| {
                let (own, after) = rest.split_at(block.n_tokens());
                rest = after;
                (block, own)
            })
            .collect();
        parts.into_par_iter().for_each(|(block, own)| block.write_topics(counts, own));
        Ok(())
    }

    /// Σ_d Σ_k ln (a_k)_{n_dk}: the urns of all documents, without the words.
    pub(in crate::training) fn ln_urns(&self, a: &[f64]) -> ExactSum {
        ln_urns(self.counts, &self.topics(), a)
    }

    /// Lengths of the documents.
    pub(in crate::training) fn lengths(&self) -> impl Iterator<Item = u64> {
        self.counts.documents().map(Document::n_tokens)
    }

    /// One Gibbs sweep over all documents given the pseudo-counts and weights of `step`.
    ///
    /// If `tables` is set, it also draws, and sums over documents, the number of tables
    /// CRT(n_dk, a_k) that seat the tokens of topic k (PFA notes, eq. 20 corrected).
    pub(in crate::training) fn sweep(
        &mut self,
        step: Step<'_>,
        scheme: Scheme,
        tables: bool,
        observer: &impl Observer,
    ) -> Result<Vec<u64>> {
        if scheme == Scheme::Blocked || step.rates.is_some() {
            return documents::sweep(&mut self.blocks, self.counts, step, scheme, tables, observer);
        }
        let n_topics = self.n_topics;
        if n_topics >= SPARSE_TOPICS || self.place.longest > dense::MAX_COUNT {
            self.sweep_blocks(step, tables, || Sparse::new(n_topics), observer)
        } else {
            self.sweep_blocks(step, tables, || Dense::new(n_topics), observer)
        }
    }

    fn sweep_blocks<T: Tallies + Send>(
        &mut self,
        step: Step<'_>,
        tables: bool,
        new_tallies: impl Fn() -> T + Sync,
        observer: &impl Observer,
    ) -> Result<Vec<u64>> {
        let (counts, n_topics) = (self.counts, self.n_topics);
        let new_worker = || (new_tallies(), vec![0; n_topics]);
        (self.blocks.par_iter_mut().with_max_len(1))
            .try_fold(new_worker, |(mut tallies, mut n_tables), block| {
                block.tally(counts, &mut tallies);
                block.sweep(step, &mut tallies, observer)?;
                if tables {
                    let key = step.key.unit(u64::MAX);
                    for (document, doc_ix) in block.documents.clone().enumerate() {
                        let mut rng = block.document_key(key, doc_ix).rng();
                        tables::seat(tallies.counts(document), step.a, &mut rng, &mut n_tables);
                    }
                }
                Ok((tallies, n_tables))
            })
            .map(|worker| worker.map(|(_, n_tables)| n_tables))
            .try_reduce(|| vec![0; n_topics], |sum, other| Ok(tables::sum(sum, other)))
    }

    /// Adds the tokens of these words in each topic to `out`, words x topics.
    pub(in crate::training) fn add_words(&self, words: &Range<usize>, out: &mut [u32]) {
        for block in &self.blocks {
            block.count_words(words.clone(), out, self.n_topics);
        }
    }
}

impl WordCounts for Assignments<'_> {
    fn n_words(&self) -> usize {
        self.counts.n_words()
    }

    fn count_words(&self, words: Range<usize>, out: &mut [u32]) {
        out.fill(0);
        self.add_words(&words, out);
    }
}

/// Σ_d Σ_k ln (a_k)_{n_dk}, from the topics of all tokens, cell after cell, document after document.
pub(in crate::training) fn ln_urns(counts: &CountMatrix, topics: &[u16], a: &[f64]) -> ExactSum {
    let mut balls = Balls::new(a);
    let mut rest = topics;
    let of_document = |document: Document<'_>| {
        let (own, after) = rest.split_at(document.n_tokens() as usize);
        rest = after;
        balls.refill(own);
        let drawn = balls.drawn().iter().zip(a).filter(|(n, _)| **n > 0);
        drawn.map(|(&n, &a)| ln_rising(a, u64::from(n))).sum::<f64>()
    };
    counts.documents().map(of_document).sum()
}

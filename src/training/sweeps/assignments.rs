//! The topic of every token, drawn document by document and counted word by word.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rand::RngExt;
use rayon::prelude::*;

use super::blocks::{Block, Step, split_documents};
use super::dense::{self, Dense};
use super::documents::{self, Scheme};
use super::exposed::ExposedTokens;
use super::sparse::Sparse;
use super::tables;
use super::tallies::Tallies;
use super::word_counts::WordCounts;
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Result, array_of};
use crate::math::{ExactSum, ln_rising};
use crate::rng::Key;
use crate::training::limits::{check_assignments, check_tokens};
use crate::urn::Balls;

/// Tokens in a block: enough of each word to make up for reading its weights, few enough for the
/// tallies of their documents to stay in the cache.
const BLOCK_TOKENS: usize = 1 << 20;

/// Least number of tokens in a block that threads are worth.
const LEAST_BLOCK_TOKENS: usize = 1 << 12;

/// Topics from which a draw passes over those of its document instead of all.
const SPARSE_TOPICS: usize = 256;

/// The topic of every token.
///
/// Takes 6 bytes a token, 8 a word and block, 8 a document, and the tallies of the blocks that are swept
/// side by side.
pub(in crate::training) struct Assignments<'a> {
    counts: &'a CountMatrix,
    /// Tokens of the longest document.
    longest: u64,
    n_topics: usize,
    blocks: Vec<Block>,
    spare: SpareTallies,
}

/// Tallies that no block is using, kept from sweep to sweep.
#[derive(Default)]
pub(in crate::training) struct SpareTallies {
    dense: Mutex<Vec<Dense>>,
    sparse: Mutex<Vec<Sparse>>,
}

impl<'a> Assignments<'a> {
    /// Topics drawn uniformly.
    pub(in crate::training) fn new(
        counts: &'a CountMatrix,
        n_topics: usize,
        key: Key,
    ) -> Result<Self> {
        check_tokens(counts.n_tokens())?;
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
        let new = |(documents, own)| Block::new(counts, documents, 0, own);
        let blocks = parts.into_par_iter().map(new).collect::<Result<_>>()?;
        let longest = counts.documents().map(Document::n_tokens).max().unwrap_or(0);
        Ok(Assignments { counts, longest, n_topics, blocks, spare: SpareTallies::default() })
    }

    /// The topics in the order of documents and cells.
    pub(in crate::training) fn topics(&self) -> Vec<u16> {
        let mut topics = vec![0; self.counts.n_tokens() as usize];
        let mut rest = &mut topics[..];
        let parts: Vec<_> = (self.blocks.iter())
            .map(|block| (block, rest.split_off_mut(..block.n_tokens()).unwrap_or_default()))
            .collect();
        parts.into_par_iter().for_each(|(block, own)| {
            block.read_topics(own);
        });
        topics
    }

    /// Takes up the topics of an earlier run.
    pub(in crate::training) fn restore(&mut self, topics: &[u16]) -> Result<()> {
        check_assignments(self.counts, self.n_topics, topics)?;
        let mut rest = topics;
        let parts: Vec<_> = (self.blocks.iter_mut())
            .map(|block| {
                let (own, after) = rest.split_at(block.n_tokens());
                rest = after;
                (block, own)
            })
            .collect();
        parts.into_par_iter().for_each(|(block, own)| {
            block.write_topics(own);
        });
        Ok(())
    }

    /// Σ_d Σ_k ln (a_k)_{n_dk}: the urns of all documents, without the words.
    pub(in crate::training) fn ln_urns(&self, a: &[f64]) -> ExactSum {
        let of_block = |block: &Block| {
            let mut topics = vec![0; block.n_tokens()];
            block.read_topics(&mut topics);
            ln_urns(block.lengths().iter().copied(), &topics, a)
        };
        self.blocks.par_iter().map(of_block).sum()
    }

    /// Lengths of the documents.
    pub(in crate::training) fn lengths(&self) -> impl Iterator<Item = u64> {
        self.counts.documents().map(Document::n_tokens)
    }

    /// Tokens of every topic by exposure, given the number of each document's exposure.
    pub(in crate::training) fn exposed(&self, exposures: &[u32]) -> Vec<ExposedTokens> {
        let of_block = |block: &Block| {
            ExposedTokens::of(block, &exposures[block.documents.clone()], self.n_topics)
        };
        self.blocks.par_iter().map(of_block).collect()
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
        let (blocks, spare) = (&mut self.blocks, &self.spare);
        sweep_collapsed(blocks, self.longest, step, tables, spare, observer)
    }
}

impl WordCounts for Assignments<'_> {
    fn n_words(&self) -> usize {
        self.counts.n_words()
    }

    fn count_words(&self, words: Range<usize>, out: &mut [u32]) {
        out.fill(0);
        for block in &self.blocks {
            block.count_words(words.clone(), out, self.n_topics);
        }
    }
}

/// One collapsed sweep over the tokens of documents without exposures, the longest of the corpus with
/// `longest` tokens; where `tables` is set, returns the tables of each topic, summed.
pub(in crate::training) fn sweep_collapsed(
    blocks: &mut [Block],
    longest: u64,
    step: Step<'_>,
    tables: bool,
    spare: &SpareTallies,
    observer: &impl Observer,
) -> Result<Vec<u64>> {
    let n_topics = step.a.len();
    if n_topics >= SPARSE_TOPICS || longest > dense::MAX_COUNT {
        sweep_blocks(blocks, step, tables, (&spare.sparse, || Sparse::new(n_topics)), observer)
    } else {
        sweep_blocks(blocks, step, tables, (&spare.dense, || Dense::new(n_topics)), observer)
    }
}

fn sweep_blocks<T: Tallies + Send>(
    blocks: &mut [Block],
    step: Step<'_>,
    tables: bool,
    (spare, new_tallies): (&Mutex<Vec<T>>, impl Fn() -> T + Sync),
    observer: &impl Observer,
) -> Result<Vec<u64>> {
    let n_topics = step.a.len();
    let spare = || spare.lock().unwrap_or_else(PoisonError::into_inner);
    let new_worker = || (spare().pop().unwrap_or_else(&new_tallies), vec![0; n_topics]);
    (blocks.par_iter_mut().with_max_len(1))
        .try_fold(new_worker, |(mut tallies, mut n_tables), block| {
            block.tally(&mut tallies);
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
        .map(|worker| {
            let (tallies, n_tables) = worker?;
            spare().push(tallies);
            Ok(n_tables)
        })
        .try_reduce(|| vec![0; n_topics], |sum, other| Ok(tables::sum(sum, other)))
}

/// Σ_d Σ_k ln (a_k)_{n_dk}, from the lengths of documents and the topics of their tokens, document after
/// document.
pub(in crate::training) fn ln_urns(
    lengths: impl Iterator<Item = usize>,
    topics: &[u16],
    a: &[f64],
) -> ExactSum {
    let mut balls = Balls::new(a);
    let mut rest = topics;
    let of_document = |length: usize| {
        let (own, after) = rest.split_at(length);
        rest = after;
        balls.refill(own);
        let drawn = balls.drawn().iter().zip(a).filter(|(n, _)| **n > 0);
        drawn.map(|(&n, &a)| ln_rising(a, u64::from(n))).sum::<f64>()
    };
    lengths.map(of_document).sum()
}

//! A collapsed Gibbs sweep over blocks of documents, and what depends on the topics of their tokens.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::blocks::{DocumentBlock, Step};
use super::dense::{self, Dense};
use super::long_documents;
use super::sparse::Sparse;
use super::tables;
use super::tallies::Tallies;
use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::{Error, Result};
use crate::math::{ExactSum, ln_rising};
use crate::training::pseudo_counts::PseudoCounts;
use crate::urn::Balls;

/// Topics from which a draw passes over those of its document instead of all.
const SPARSE_TOPICS: usize = 256;

/// Words per unit of parallel counting.
const WORDS: usize = 256;

/// Tallies that no block is using, kept from sweep to sweep.
#[derive(Default)]
pub(in crate::training) struct SpareTallies {
    dense: Mutex<Vec<Dense>>,
    sparse: Mutex<Vec<Sparse>>,
}

/// Draws the topics of all tokens of some blocks, the longest document of the corpus having `longest`
/// tokens; the documents themselves, `counts`, are needed where their exposures differ.
///
/// If `tables` is set, it also draws, and sums over the documents of each group, the number of tables
/// CRT(n_dk, a_dk) that seat the tokens of topic k (PFA notes, eq. 20 corrected); else they are zeros.
pub(in crate::training) fn sweep(
    blocks: &mut [DocumentBlock],
    counts: Option<&CountMatrix>,
    longest: u64,
    step: Step<'_>,
    tables: bool,
    spare: &SpareTallies,
    observer: &impl Observer,
) -> Result<Vec<u64>> {
    let n_topics = step.a.n_topics();
    let is_long = longest > dense::MAX_COUNT;
    let is_own = step.a.is_grouped() || step.rates.is_some();
    let documents = || counts.ok_or(Error::Empty { name: "documents of the part" });
    if is_own && is_long {
        return long_documents::sweep(blocks, documents()?, step, tables, observer);
    }
    if !is_own && (n_topics >= SPARSE_TOPICS || is_long) {
        let tallied = |block: &DocumentBlock, tallies: &mut Sparse| block.tally(tallies);
        let new = || Sparse::new(n_topics);
        return sweep_blocks(blocks, step, tables, (&spare.sparse, new, tallied), observer);
    }
    let exposed = step.rates.map(|rates| Ok((rates, documents()?))).transpose()?;
    let tallied = |block: &DocumentBlock, tallies: &mut Dense| {
        block.tally(tallies);
        if step.a.is_grouped() {
            tallies.take_rows(block.in_corpus().map(|doc_ix| step.a.row(doc_ix)));
        }
        if let Some((rates, counts)) = exposed {
            let exposures =
                block.documents.clone().map(|doc_ix| counts.document(doc_ix).exposure());
            tallies.take_exposures(step.a.first(), rates, exposures);
        }
    };
    let new = || Dense::new(n_topics);
    sweep_blocks(blocks, step, tables, (&spare.dense, new, tallied), observer)
}

fn sweep_blocks<T: Tallies + Send>(
    blocks: &mut [DocumentBlock],
    step: Step<'_>,
    tables: bool,
    (spare, new_tallies, tally): (
        &Mutex<Vec<T>>,
        impl Fn() -> T + Sync,
        impl Fn(&DocumentBlock, &mut T) + Sync,
    ),
    observer: &impl Observer,
) -> Result<Vec<u64>> {
    let n_tables = step.a.n_groups() * step.a.n_topics();
    let spare = || spare.lock().unwrap_or_else(PoisonError::into_inner);
    let new_worker = || (spare().pop().unwrap_or_else(&new_tallies), vec![0; n_tables]);
    (blocks.par_iter_mut().with_max_len(1))
        .try_fold(new_worker, |(mut tallies, mut n_tables), block| {
            tally(block, &mut tallies);
            block.sweep(step, &mut tallies, observer)?;
            if tables {
                let key = step.key.unit(u64::MAX);
                for (document, doc_ix) in block.in_corpus().enumerate() {
                    let mut rng = key.unit(doc_ix as u64).rng();
                    let counts = tallies.counts(document);
                    tables::seat(counts, step.a, doc_ix, &mut rng, &mut n_tables);
                }
            }
            Ok((tallies, n_tables))
        })
        .map(|worker| {
            let (tallies, n_tables) = worker?;
            spare().push(tallies);
            Ok(n_tables)
        })
        .try_reduce(|| vec![0; n_tables], |sum, other| Ok(tables::sum(sum, other)))
}

/// Adds the tokens of every word in each topic to `counts`, words x topics.
pub(in crate::training) fn add_words(
    blocks: &[DocumentBlock],
    n_topics: usize,
    counts: &mut [u32],
) {
    counts.par_chunks_mut(WORDS * n_topics).enumerate().for_each(|(chunk, counts)| {
        let first = chunk * WORDS;
        for block in blocks {
            block.count_words(first..first + counts.len() / n_topics, counts, n_topics);
        }
    });
}

/// Σ_d Σ_k ln (a_k)_{n_dk}: the urns of all documents, without the words.
pub(in crate::training) fn ln_urns(blocks: &[DocumentBlock], a: PseudoCounts<'_>) -> ExactSum {
    let ln_block = |block: &DocumentBlock| {
        let topics = block.topics_by_document();
        let (mut balls, mut rest) = (Balls::new(a.first()), &topics[..]);
        let ln_document = |(doc_ix, &length): (usize, &usize)| {
            let (own, after) = rest.split_at(length);
            rest = after;
            balls.refill(own);
            let drawn = balls.drawn().iter().zip(a.row(doc_ix)).filter(|(n, _)| **n > 0);
            drawn.map(|(&n, &a)| ln_rising(a, u64::from(n))).sum::<f64>()
        };
        block.in_corpus().zip(block.lengths()).map(ln_document).sum::<ExactSum>()
    };
    blocks.par_iter().map(ln_block).sum()
}

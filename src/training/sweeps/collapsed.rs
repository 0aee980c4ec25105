//! A collapsed Gibbs sweep over blocks of documents, and what depends on the topics of their tokens.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::blocks::{Block, Step};
use super::dense::{self, Dense};
use super::exposed_urns;
use super::sparse::Sparse;
use super::tables;
use super::tallies::Tallies;
use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::{Error, Result};
use crate::math::{ExactSum, ln_rising};
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
/// If `tables` is set, it also draws, and sums over documents, the number of tables CRT(n_dk, a_k) that
/// seat the tokens of topic k (PFA notes, eq. 20 corrected); else they are zeros.
pub(in crate::training) fn sweep(
    blocks: &mut [Block],
    counts: Option<&CountMatrix>,
    longest: u64,
    step: Step<'_>,
    tables: bool,
    spare: &SpareTallies,
    observer: &impl Observer,
) -> Result<Vec<u64>> {
    let n_topics = step.a.len();
    if step.rates.is_some() {
        let counts = counts.ok_or(Error::Empty { name: "documents of the part" })?;
        return exposed_urns::sweep(blocks, counts, step, tables, observer);
    }
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

/// Adds the tokens of every word in each topic to `counts`, words x topics.
pub(in crate::training) fn add_words(blocks: &[Block], n_topics: usize, counts: &mut [u32]) {
    counts.par_chunks_mut(WORDS * n_topics).enumerate().for_each(|(chunk, counts)| {
        let first = chunk * WORDS;
        for block in blocks {
            block.count_words(first..first + counts.len() / n_topics, counts, n_topics);
        }
    });
}

/// Σ_d Σ_k ln (a_k)_{n_dk}: the urns of all documents, without the words.
pub(in crate::training) fn ln_urns(blocks: &[Block], a: &[f64]) -> ExactSum {
    let ln_block = |block: &Block| {
        let topics = block.topics_by_document();
        let (mut balls, mut rest) = (Balls::new(a), &topics[..]);
        let ln_document = |&length: &usize| {
            let (own, after) = rest.split_at(length);
            rest = after;
            balls.refill(own);
            let drawn = balls.drawn().iter().zip(a).filter(|(n, _)| **n > 0);
            drawn.map(|(&n, &a)| ln_rising(a, u64::from(n))).sum::<f64>()
        };
        block.lengths().iter().map(ln_document).sum::<ExactSum>()
    };
    blocks.par_iter().map(ln_block).sum()
}

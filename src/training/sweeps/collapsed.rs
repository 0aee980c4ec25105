//! A collapsed Gibbs sweep over blocks of documents, and what depends on the topics of their tokens.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::blocks::{DocumentBlock, Step, TopicWeights};
use super::cells::{BurstCounts, BurstWeights, Cells, runs};
use super::dense::{self, Dense};
use super::sparse::Sparse;
use super::splits::{self, CorpusSizes};
use super::tables;
use super::tallies::Tallies;
use super::topics::add;
use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::{Error, Result};
use crate::math::{ExactSum, RisingTable, ln_rising};
use crate::training::pseudo_counts::PseudoCounts;

/// Topics from which a draw passes over those of its document instead of all.
const SPARSE_TOPICS: usize = 256;

/// Words per unit of parallel counting.
const WORDS: usize = 256;

/// Tokens of a document in one topic whose rising factorials come from a table.
const SMALL_COUNTS: u64 = 16;

/// Tallies that no block is using, kept from sweep to sweep, with the first document of the block that
/// they have counted. They are of no use where topics have changed between two sweeps.
#[derive(Default)]
pub(in crate::training) struct SpareTallies {
    dense: Mutex<Vec<(usize, Dense)>>,
    sparse: Mutex<Vec<(usize, Sparse)>>,
}

/// Results of a sweep over the tokens beside their topics.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SweptTokens {
    /// Tables of each group of documents and topic; zeros where they were not asked for.
    pub n_tables: Vec<u64>,
    /// Counts that bursty topics rest on.
    pub bursts: BurstCounts,
}

/// Draws the topics of all tokens of some blocks of a corpus; the documents themselves, `counts`, are
/// needed where their exposures differ.
///
/// If the step asks for tables, it also draws, and sums over the documents of each group, the number of
/// tables CRT(n_dk, a_dk) that seat the tokens of topic k (PFA notes, eq. 20 corrected); else they are
/// zeros.
pub(in crate::training) fn sweep(
    blocks: &mut [DocumentBlock],
    counts: Option<&CountMatrix>,
    sizes: CorpusSizes,
    step: Step<'_>,
    spare: &SpareTallies,
    observer: &dyn Observer,
) -> Result<SweptTokens> {
    let n_topics = step.urns.a.n_topics();
    let is_long = sizes.longest > dense::MAX_COUNT;
    let is_own = step.urns.a.is_grouped() || step.urns.rates.is_some();
    let documents = || counts.ok_or(Error::Empty { name: "documents of the part" });
    let exposed = step.urns.rates.map(|_| documents()).transpose()?;
    let bursts = step.urns.bursts;
    // Weights of lists grow with the tokens only where no concentration is below its pseudo-count.
    let grows = |(a, inverse): (&f64, &f64)| a * inverse <= 1.0;
    let grow = bursts.is_none_or(|it| step.urns.a.first().iter().zip(it.inverse).all(grows));
    let is_listed = !is_own && grow && (n_topics >= SPARSE_TOPICS || is_long);
    let is_large = bursts.is_none() && splits::are_large(sizes, n_topics);
    let is_split = is_large || is_own && is_long;
    if is_listed || is_long || is_split {
        // Counts of an earlier dense sweep do not follow this one.
        spare.dense.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
    if is_split {
        return sweep_blocks(blocks, step, |block| {
            let counts = splits::sweep(block, exposed, step, observer)?;
            let row = |document: usize| counts[document * n_topics..][..n_topics].iter().copied();
            let n_tables = tables::seat(block, step, |document| row(document).enumerate());
            Ok(SweptTokens { n_tables, ..SweptTokens::default() })
        });
    }
    if is_listed {
        // Always anew: the order of a document's topics, by which they are drawn, is that of its
        // tokens.
        let tally = |block: &DocumentBlock, tallies: &mut Sparse, _| {
            block.tally(tallies);
            tallies.take_bursts(step.urns);
        };
        return sweep_tallies(blocks, step, (&spare.sparse, tally), observer);
    }
    let tally = |block: &DocumentBlock, tallies: &mut Dense, is_counted: bool| {
        if !is_counted {
            block.tally(tallies);
        }
        let exposures = exposed.into_iter().flat_map(|counts| {
            block.documents.clone().map(|doc_ix| counts.document(doc_ix).exposure())
        });
        tallies.take_own(step.urns, block.in_corpus(), exposures);
    };
    sweep_tallies(blocks, step, (&spare.dense, tally), observer)
}

/// Draws the topics of all blocks token by token, in tallies that are prepared by `tally`: it is told
/// whether they have counted the block in the sweep before.
fn sweep_tallies<T: Tallies + Send>(
    blocks: &mut [DocumentBlock],
    step: Step<'_>,
    (spare, tally): (&Mutex<Vec<(usize, T)>>, impl Fn(&DocumentBlock, &mut T, bool) + Sync + Send),
    observer: &dyn Observer,
) -> Result<SweptTokens> {
    let n_topics = step.urns.a.n_topics();
    let spare = || spare.lock().unwrap_or_else(PoisonError::into_inner);
    // Blocks have tallies of their own where all are swept side by side.
    let are_shared = blocks.len() > rayon::current_num_threads();
    let tallies_for = |first| {
        let mut spare = spare();
        let own = spare.iter().position(|(other, _)| *other == first);
        let any = if are_shared { spare.len().checked_sub(1) } else { None };
        let found = own.or(any).map(|place| spare.swap_remove(place));
        found.map_or_else(|| (false, T::new(n_topics)), |(other, found)| (other == first, found))
    };
    sweep_blocks(blocks, step, |block| {
        let first = block.in_corpus().start;
        let (is_counted, mut tallies) = tallies_for(first);
        tally(block, &mut tallies, is_counted);
        let repeated = block.sweep(step, &mut tallies, observer)?;
        let mut bursts = BurstCounts { repeated, n_documents: vec![] };
        if step.urns.bursts.is_some() {
            let documents = 0..block.lengths().len();
            documents.for_each(|document| bursts.count(n_topics, tallies.counts(document)));
        }
        let n_tables = tables::seat(block, step, |document| tallies.counts(document));
        spare().push((first, tallies));
        Ok(SweptTokens { n_tables, bursts })
    })
}

/// Sweeps over all blocks side by side, and puts their results together.
fn sweep_blocks(
    blocks: &mut [DocumentBlock],
    step: Step<'_>,
    sweep: impl Fn(&mut DocumentBlock) -> Result<SweptTokens> + Sync + Send,
) -> Result<SweptTokens> {
    let n_tables = step.urns.a.n_groups() * step.urns.a.n_topics();
    let none = || SweptTokens { n_tables: vec![0; n_tables], ..SweptTokens::default() };
    let swept = blocks.par_iter_mut().with_max_len(1).map(sweep);
    swept.try_reduce(none, |sum, other| {
        let n_tables = add(sum.n_tables, &other.n_tables);
        Ok(SweptTokens { n_tables, bursts: sum.bursts.and(other.bursts) })
    })
}

/// Adds the tokens of every word in each topic to `counts`, words x topics, or sets them if `anew`.
pub(in crate::training) fn count_words(
    blocks: &[DocumentBlock],
    n_topics: usize,
    counts: &mut [u32],
    anew: bool,
) {
    // Chunk by chunk, while it is in the cache.
    counts.par_chunks_mut(WORDS * n_topics).enumerate().for_each(|(chunk, counts)| {
        if anew {
            counts.fill(0);
        }
        let words = chunk * WORDS..chunk * WORDS + counts.len() / n_topics;
        blocks.iter().for_each(|block| block.count_words(words.clone(), counts, n_topics));
    });
}

/// Σ_d Σ_k ln (a_k)_{n_dk}: the urns of all documents, without the words.
pub(in crate::training) fn ln_urns(blocks: &[DocumentBlock], a: PseudoCounts<'_>) -> ExactSum {
    // Most counts are small.
    let shared = if a.is_grouped() { &[][..] } else { a.first() };
    let of_topics: Vec<_> = shared.iter().map(|&a| RisingTable::new(a, SMALL_COUNTS)).collect();
    let ln_rising = |topic: usize, a: f64, n: u64| {
        of_topics.get(topic).map_or_else(|| ln_rising(a, n), |table| table.at(n))
    };
    let ln_block = |block: &DocumentBlock| {
        let topics = block.topics_by_document();
        let (mut counts, mut rest) = (vec![0u32; a.n_topics()], &topics[..]);
        let ln_document = |(doc_ix, &length): (usize, &usize)| {
            let own = rest.split_off(..length).unwrap_or_default();
            counts.fill(0);
            own.iter().for_each(|&topic| counts[usize::from(topic)] += 1);
            let drawn = counts.iter().zip(a.row(doc_ix)).enumerate();
            let drawn = drawn.filter(|(_, (n, _))| **n > 0);
            drawn.map(|(topic, (&n, &a))| ln_rising(topic, a, u64::from(n))).sum::<f64>()
        };
        block.in_corpus().zip(block.lengths()).map(ln_document).sum::<ExactSum>()
    };
    blocks.par_iter().map(ln_block).sum()
}

/// Σ_dk ln of Π_w (s φ_w)_{c_dw} / (s)_{n_d}, the probability of the words given the topics of all
/// tokens, by topics of which some may be bursty.
pub(in crate::training) fn ln_bursts(
    blocks: &[DocumentBlock],
    weights: TopicWeights<'_>,
    bursts: BurstWeights<'_>,
) -> ExactSum {
    let BurstWeights { inverse, factor, .. } = bursts;
    let n_topics = inverse.len();
    // Each factor is divided by s, which may be infinite.
    let ln_tokens = |word: usize, topic: u16, n: u16| {
        let topic = usize::from(topic);
        let phi = weights.weights[word * n_topics + topic] * weights.scale[topic] / factor[topic];
        (0..n).map(|before| (phi + f64::from(before) * inverse[topic]).ln()).sum::<f64>()
    };
    let ln_total = |(topic, &n): (usize, &u32)| {
        (1..n).map(|before| (f64::from(before) * inverse[topic]).ln_1p()).sum::<f64>()
    };
    let ln_block = |block: &DocumentBlock| {
        let (mut cells, mut sum) = (Cells::new(bursts), ExactSum::default());
        let (starts, documents) = block.parts();
        let mut counts = vec![0; block.lengths().len() * n_topics];
        // Tokens of a word that are alone in their document, by topic.
        let mut alone = vec![0; n_topics];
        for (word, ends) in starts.windows(2).enumerate() {
            let documents = &documents[ends[0]..ends[1]];
            let topics = &block.topics()[ends[0]..ends[1]];
            cells.take_up(documents, topics);
            for (&document, &topic) in documents.iter().zip(topics) {
                counts[document as usize * n_topics + usize::from(topic)] += 1;
            }
            let n_documents = runs(documents).next().map_or(0, <[u32]>::len);
            let of_single = topics[cells.len()..n_documents].iter();
            of_single.for_each(|&topic| alone[usize::from(topic)] += 1);
            for (topic, n) in (0..).zip(&mut alone).filter(|(_, n)| **n > 0) {
                sum.add_times(std::mem::take(n), ln_tokens(word, topic, 1));
            }
            cells.all().for_each(|&(topic, n)| sum += ln_tokens(word, topic, n));
        }
        let documents = counts.chunks_exact(n_topics);
        documents.for_each(|counts| sum += -counts.iter().enumerate().map(ln_total).sum::<f64>());
        sum
    };
    blocks.par_iter().map(ln_block).sum()
}

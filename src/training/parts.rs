//! A part of a corpus within a sweep: all that its documents need beside their own tokens are φ, α and
//! their place in the corpus.
//!
//! The tokens of some consecutive documents, a block, are in the order of their words: it is found
//! once and kept with them, and a sweep over them sorts nothing.

use rayon::prelude::*;

use super::lda::ln_lengths;
use super::nmf::PSEUDO_COUNT;
use super::start::start_key;
use super::sweeps::{
    Block, ExposedTokens, Scheme, SpareTallies, Step, ln_urns, sweep_collapsed, sweep_documents,
    sweep_key,
};
use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::{Error, Result, array_of};
use crate::math::ExactSum;
use crate::rng::Key;

/// Words per unit of parallel work.
const WORDS: usize = 256;

/// Most documents of a block: their numbers take 16 bits.
const MOST_DOCUMENTS: usize = 1 << 16;

/// Blocks of a corpus, one after the other, and their place there.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// Size of the vocabulary.
    pub n_words: usize,
    /// Documents of each block.
    pub n_documents: &'a [u64],
    /// The first token of each word of a block, counted from the block's first, and the end.
    pub word_starts: &'a [u32],
    /// Document of each token, counted from the block's first, in the order of the words.
    pub token_documents: &'a [u16],
    /// Documents of the corpus before the part.
    pub documents_before: usize,
    /// Tokens of the longest document of the corpus.
    pub longest: u64,
    /// The documents themselves, which only the blocked scheme and sweeps over documents of different
    /// exposures read.
    pub counts: Option<&'a CountMatrix>,
}

impl Part<'_> {
    /// The blocks with the topics of their tokens, each from its order of words.
    fn blocks(&self, n_topics: usize, topics: &[u16]) -> Result<Vec<Block>> {
        check_length("topics of all tokens", topics.len(), self.token_documents.len())?;
        // A maximum takes no branch a token; the place of a wrong topic is looked for in the error.
        if topics.iter().max().is_some_and(|&topic| usize::from(topic) >= n_topics) {
            let index = topics.iter().position(|&topic| usize::from(topic) >= n_topics);
            let index = index.unwrap_or_default();
            let (value, domain) = (f64::from(topics[index]), "below the number of topics");
            return Err(Error::Parameter { name: "topics of all tokens", index, value, domain });
        }
        let expected = self.n_documents.len() * (self.n_words + 1);
        check_length("first tokens of words", self.word_starts.len(), expected)?;
        let (mut first_document, mut first) = (0, 0);
        let rows = self.word_starts.chunks_exact(self.n_words + 1);
        let blocks = self.n_documents.iter().zip(rows).map(|(&n_documents, word_starts)| {
            let documents = first_document..first_document + n_documents as usize;
            let n_tokens = word_starts[self.n_words] as usize;
            let tokens = first..first + n_tokens;
            let own = self.token_documents.get(tokens.clone()).unwrap_or_default();
            check_order(word_starts, own, documents.len())?;
            (first_document, first) = (documents.end, tokens.end);
            Block::ordered(documents, self.documents_before, word_starts, own, &topics[tokens])
        });
        let blocks = blocks.collect::<Result<Vec<_>>>()?;
        check_length("documents of all tokens", self.token_documents.len(), first)?;
        Ok(blocks)
    }
}

/// The order of the tokens of a block: the first of each word and the end, and their documents.
///
/// # Errors
/// More than 65,536 documents, or more than 2^32 - 1 tokens.
pub fn order_tokens(counts: &CountMatrix) -> Result<(Vec<u32>, Vec<u16>)> {
    let n_documents = counts.n_documents();
    let (n_tokens, most) = (counts.n_tokens(), u64::from(u32::MAX));
    for (name, found, most) in [
        ("documents of a block", n_documents as u64, MOST_DOCUMENTS as u64),
        ("tokens of a block", n_tokens, most),
    ] {
        if found > most {
            let domain = "below the limits of a block";
            return Err(Error::Parameter { name, index: 0, value: found as f64, domain });
        }
    }
    let block = Block::new(counts, 0..n_documents, 0, &vec![0; n_tokens as usize])?;
    let (word_starts, token_documents) = block.parts();
    let word_starts = word_starts.iter().map(|&start| start as u32).collect();
    Ok((word_starts, token_documents.iter().map(|&document| document as u16).collect()))
}

/// Topics that are in the order of documents and cells, in the order of a part.
///
/// # Errors
/// Sizes that disagree.
pub fn order_topics(part: Part<'_>, topics: &[u16]) -> Result<Vec<u16>> {
    let mut rest = topics;
    let mut ordered = Vec::with_capacity(topics.len());
    for mut block in part.blocks(usize::MAX, topics)? {
        let (own, after) = rest.split_at(block.n_tokens());
        block.write_topics(own);
        ordered.extend_from_slice(block.topics());
        rest = after;
    }
    Ok(ordered)
}

/// Which sweep it is: the random numbers belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// A sweep of a start, counted from 1.
    Start {
        /// Number of the start.
        run: u64,
        /// Number of the sweep.
        sweep: u64,
    },
    /// A sweep of the chain, counted from 1.
    Chain {
        /// Number of the sweep.
        sweep: u64,
        /// How it draws the topics of a document's tokens.
        scheme: Scheme,
    },
}

impl Sweep {
    fn key(self, seed: u64) -> Key {
        match self {
            Sweep::Start { run, sweep } => start_key(seed, run, sweep),
            Sweep::Chain { sweep, .. } => sweep_key(seed, sweep),
        }
    }

    fn scheme(self) -> Scheme {
        match self {
            Sweep::Start { .. } => Scheme::Collapsed,
            Sweep::Chain { scheme, .. } => scheme,
        }
    }
}

/// Topics of words as [`ShardedChain`](super::ShardedChain) and [`ShardedStart`](super::ShardedStart)
/// give them.
#[derive(Clone, Copy)]
pub struct TopicWeights<'a> {
    /// Pseudo-counts of documents: α, or r.
    pub a: &'a [f64],
    /// φ up to the scale of each topic, word-major.
    pub weights: &'a [f64],
    /// The scales.
    pub scale: &'a [f64],
    /// Rates of the gamma laws of θ, where documents have exposures.
    pub rates: Option<&'a [f64]>,
}

/// Draws the topics of all tokens of a part anew, in its order, and adds them to `totals`, words x
/// topics; where `tables` is set, returns the tables of each topic, else zeros.
///
/// # Errors
/// Sizes that disagree, topics beyond their number, and [`Error::Stopped`], by which `topics` stay as
/// they were.
pub fn sweep_part(
    part: Part<'_>,
    topics: &mut [u16],
    weights: TopicWeights<'_>,
    (seed, sweep): (u64, Sweep),
    tables: bool,
    totals: &mut [u32],
    observer: &impl Observer,
) -> Result<Vec<u64>> {
    let TopicWeights { a, weights, scale, rates } = weights;
    let n_topics = a.len();
    check_length("topic-word weights", weights.len(), part.n_words * n_topics)?;
    check_length("scales of topics", scale.len(), n_topics)?;
    check_length("rates of topics", rates.map_or(n_topics, <[f64]>::len), n_topics)?;
    let mut blocks = part.blocks(n_topics, topics)?;
    let step = Step::new(a, weights, scale, sweep.key(seed)).with_rates(rates);
    let n_tables = match (sweep.scheme(), rates) {
        (Scheme::Collapsed, None) => sweep_collapsed(
            &mut blocks,
            part.longest,
            step,
            tables,
            &SpareTallies::default(),
            observer,
        )?,
        (scheme, _) => {
            let counts = part.counts.ok_or(Error::Empty { name: "documents of the part" })?;
            let lengths = counts.documents().map(|document| document.n_tokens() as usize);
            if !lengths.eq(blocks.iter().flat_map(Block::lengths).copied()) {
                let (found, expected) = (counts.n_tokens() as usize, topics.len());
                return Err(Error::Length { name: "documents of the part", found, expected });
            }
            sweep_documents(&mut blocks, counts, step, scheme, tables, observer)?
        }
    };
    add_words(&blocks, part.n_words, n_topics, totals)?;
    let mut rest = topics;
    for block in &blocks {
        let own = block.topics();
        rest.split_off_mut(..own.len()).unwrap_or_default().copy_from_slice(own);
    }
    Ok(n_tables)
}

/// Adds the tokens of a part, whose topics are in its order, to `totals`, words x topics.
///
/// # Errors
/// Sizes that disagree, topics beyond their number.
pub fn count_part(
    part: Part<'_>,
    topics: &[u16],
    n_topics: usize,
    totals: &mut [u32],
) -> Result<()> {
    check_length("counts of words by topic", totals.len(), part.n_words * n_topics)?;
    for block in part.blocks(n_topics, topics)? {
        block.count_words(0..part.n_words, totals, n_topics);
    }
    Ok(())
}

/// Sums over the documents of a part of ln of their urns, and of ln (α_+)_N; topics are in the order of
/// the part.
///
/// # Errors
/// Sizes that disagree, topics beyond their number.
pub fn ln_urns_of_part(part: Part<'_>, topics: &[u16], a: &[f64]) -> Result<(ExactSum, ExactSum)> {
    let mut sums = (ExactSum::default(), ExactSum::default());
    for block in part.blocks(a.len(), topics)? {
        let lengths = block.lengths();
        let mut by_document = vec![0; block.topics().len()];
        block.read_topics(&mut by_document);
        sums.0 += ln_urns(lengths.iter().copied(), &by_document, a);
        sums.1 += ln_lengths(a, lengths.iter().map(|&n| n as u64));
    }
    Ok(sums)
}

/// Tokens of every topic by exposure in a part, whose topics are in its order, given the number of the
/// exposure of each of its documents.
///
/// # Errors
/// Sizes that disagree, topics beyond their number.
pub fn exposed_of_part(
    part: Part<'_>,
    topics: &[u16],
    n_topics: usize,
    exposures: &[u32],
) -> Result<Vec<ExposedTokens>> {
    let n_documents = part.n_documents.iter().sum::<u64>() as usize;
    check_length("exposures of documents", exposures.len(), n_documents)?;
    let blocks = part.blocks(n_topics, topics)?;
    let of_block =
        |block: &Block| ExposedTokens::of(block, &exposures[block.documents.clone()], n_topics);
    Ok(blocks.par_iter().map(of_block).collect())
}

/// Weights of topics from which matrix factorisation starts, documents x topics, by the topics of a
/// part's tokens, which are in its order.
///
/// # Errors
/// Sizes that disagree, topics beyond their number.
pub fn start_weights_of_part(part: Part<'_>, topics: &[u16], n_topics: usize) -> Result<Vec<f64>> {
    let n_documents = part.n_documents.iter().sum::<u64>() as usize;
    let mut weights = array_of("topic weights of documents", n_documents * n_topics, 0.0)?;
    for block in part.blocks(n_topics, topics)? {
        block.count_documents(&mut weights[block.documents.start * n_topics..], n_topics);
    }
    weights.iter_mut().for_each(|n| *n += PSEUDO_COUNT);
    Ok(weights)
}

fn add_words(blocks: &[Block], n_words: usize, n_topics: usize, totals: &mut [u32]) -> Result<()> {
    check_length("counts of words by topic", totals.len(), n_words * n_topics)?;
    totals.par_chunks_mut(WORDS * n_topics).enumerate().for_each(|(chunk, totals)| {
        let first = chunk * WORDS;
        for block in blocks {
            block.count_words(first..first + totals.len() / n_topics, totals, n_topics);
        }
    });
    Ok(())
}

/// Checks an order of tokens, which may come from a file.
fn check_order(word_starts: &[u32], token_documents: &[u16], n_documents: usize) -> Result<()> {
    let last = word_starts.last().map_or(0, |&end| end as usize);
    check_length("documents of all tokens", token_documents.len(), last)?;
    let largest = token_documents.iter().max().map_or(0, |&document| usize::from(document) + 1);
    if word_starts.first() != Some(&0) || !word_starts.is_sorted() || largest > n_documents {
        let (name, domain) = ("order of tokens", "that of the documents of the part");
        return Err(Error::Parameter { name, index: 0, value: largest as f64, domain });
    }
    Ok(())
}

fn check_length(name: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Length { name, found, expected }) }
}

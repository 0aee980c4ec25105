//! A part of a corpus within a sweep: all that its documents need beside their own tokens are φ, α and
//! their place in the corpus.
//!
//! The tokens of some consecutive documents, a block, are in the order of their words: it is found
//! once and kept with them, and a sweep over them sorts nothing.

use rayon::prelude::*;

use super::limits::check_topics;
use super::pseudo_counts::PseudoCounts;
use super::sweeps::{
    self, CorpusSizes, DocumentBlock, ExposedTokens, SpareTallies, Step, TopicWeights, count_words,
    ln_urns,
};
use super::tokens::Position;
use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::{Error, Result, check_length};
use crate::math::ExactSum;

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
    /// Those of the corpus.
    pub sizes: CorpusSizes,
    /// The documents themselves, which only sweeps over documents of different exposures read.
    pub counts: Option<&'a CountMatrix>,
}

impl Part<'_> {
    /// The blocks with the topics of their tokens, each from its order of words.
    fn blocks(&self, n_topics: usize, topics: &[u16]) -> Result<Vec<DocumentBlock>> {
        check_topics(topics, self.token_documents.len(), n_topics)?;
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
            let before = self.documents_before;
            DocumentBlock::ordered(documents, before, word_starts, own, &topics[tokens])
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
    let block = DocumentBlock::new(counts, 0..n_documents, 0, &vec![0; n_tokens as usize])?;
    let (word_starts, token_documents) = block.parts();
    let word_starts = word_starts.iter().map(|&start| start as u32).collect();
    Ok((word_starts, token_documents.iter().map(|&document| document as u16).collect()))
}

/// Topics that are in the order of documents and cells, in the order of a part.
///
/// # Errors
/// Sizes that disagree.
pub fn order_topics(part: Part<'_>, topics: &[u16]) -> Result<Vec<u16>> {
    let (mut rest, mut ordered) = (topics, Vec::with_capacity(topics.len()));
    for mut block in part.blocks(usize::MAX, topics)? {
        let own = rest.split_off(..block.n_tokens()).unwrap_or_default();
        block.set_topics_by_document(own);
        ordered.extend_from_slice(block.topics());
    }
    Ok(ordered)
}

/// Draws the topics of all tokens of a part anew on the way to a position, in the part's order, and
/// adds them to `counts`, words x topics; where `tables` is set, returns the tables of each topic, else
/// zeros.
///
/// # Errors
/// Sizes that disagree, topics beyond their number, and [`Error::Stopped`], by which `topics` stay as
/// they were.
pub fn sweep_part(
    part: Part<'_>,
    topics: &mut [u16],
    weights: TopicWeights<'_>,
    (seed, to): (u64, Position),
    tables: bool,
    counts: &mut [u32],
    observer: &dyn Observer,
) -> Result<Vec<u64>> {
    let (n_topics, n_weights) = (weights.a.n_topics(), part.n_words * weights.a.n_topics());
    check_length("topic_word", weights.weights.len(), n_weights)?;
    check_length("scales of topics", weights.scale.len(), n_topics)?;
    check_length("rates of topics", weights.rates.map_or(n_topics, <[f64]>::len), n_topics)?;
    check_length("counts of words by topic", counts.len(), n_weights)?;
    let mut blocks = part.blocks(n_topics, topics)?;
    if let (Some(counts), Some(_)) = (part.counts, weights.rates) {
        let lengths = counts.documents().map(|document| document.n_tokens() as usize);
        if !lengths.eq(blocks.iter().flat_map(DocumentBlock::lengths).copied()) {
            let (found, expected) = (counts.n_tokens() as usize, topics.len());
            return Err(Error::Length { name: "documents of the part", found, expected });
        }
    }
    let step = Step { urns: weights, key: to.key(seed), tables };
    let spare = SpareTallies::default();
    let swept = sweeps::sweep(&mut blocks, part.counts, part.sizes, step, &spare, observer)?;
    count_words(&blocks, n_topics, counts, false);
    let mut rest = topics;
    for block in &blocks {
        let own = block.topics();
        rest.split_off_mut(..own.len()).unwrap_or_default().copy_from_slice(own);
    }
    Ok(swept.n_tables)
}

/// Adds the tokens of a part, whose topics are in its order, to `counts`, words x topics.
///
/// # Errors
/// Sizes that disagree, topics beyond their number.
pub fn count_part(
    part: Part<'_>,
    topics: &[u16],
    n_topics: usize,
    counts: &mut [u32],
) -> Result<()> {
    check_length("counts of words by topic", counts.len(), part.n_words * n_topics)?;
    count_words(&part.blocks(n_topics, topics)?, n_topics, counts, false);
    Ok(())
}

/// Sum over the documents of a part of ln of their urns; topics are in the order of the part.
///
/// # Errors
/// Sizes that disagree, topics beyond their number.
pub fn ln_urns_of_part(part: Part<'_>, topics: &[u16], a: &[f64]) -> Result<ExactSum> {
    Ok(ln_urns(&part.blocks(a.len(), topics)?, PseudoCounts::shared(a)))
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
    let exposed = |block: &DocumentBlock| ExposedTokens::new(block, exposures, n_topics);
    Ok(blocks.par_iter().map(exposed).collect())
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

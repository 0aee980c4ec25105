//! The topics of all tokens, wherever they are: in memory, or in parts of a corpus elsewhere.

use std::ops::Deref;

use rand::RngExt;
use rayon::prelude::*;

use super::limits::{check_tokens, check_topics};
use super::pseudo_counts::PseudoCounts;
use super::sweeps::{
    self, BurstWeights, CorpusSizes, DocumentBlock, ExposedTokens, SpareTallies, Step, SweptTokens,
    TopicWeights, count_words, ln_bursts, ln_urns, split_documents,
};
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Result, array_of};
use crate::math::ExactSum;
use crate::rng::{Key, Purpose, Rng};

/// Tokens in a block: enough of each word to make up for reading its weights, few enough for the
/// tallies of their documents to stay in the cache.
const BLOCK_TOKENS: usize = 1 << 20;

/// Least number of tokens in a block that threads are worth.
const LEAST_BLOCK_TOKENS: usize = 1 << 12;

/// A state of a run between two sweeps, by which topics of tokens are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are numbers of starts and of sweeps done")]
pub enum Position {
    /// After so many sweeps of a start.
    Start { run: u64, sweep: u64 },
    /// The end of a start, its topics merged.
    Merged { run: u64 },
    /// After so many sweeps of the chain.
    Chain { sweep: u64 },
}

impl Position {
    /// The key of the random numbers that lead to this position from the one before.
    pub(super) fn key(self, seed: u64) -> Key {
        match self {
            Position::Start { run, sweep } => {
                Key::new(seed, Purpose::Initialise).unit(1 + run).unit(sweep)
            }
            Position::Merged { run } => Key::new(seed, Purpose::Initialise).unit(1 + run),
            Position::Chain { sweep: 0 } => Key::new(seed, Purpose::Initialise),
            Position::Chain { sweep } => Key::new(seed, Purpose::Assign).unit(sweep),
        }
    }
}

/// The different exposures of the documents of a corpus, increasing, and which each document has.
#[derive(Debug, Clone, PartialEq)]
pub struct ExposureGroups {
    /// The exposures.
    pub values: Vec<f64>,
    /// Number of the exposure of each document.
    pub numbers: Vec<u32>,
}

/// Uniform topics of tokens, one after the other.
pub struct FirstTopics {
    n_topics: usize,
    rng: Rng,
}

impl FirstTopics {
    pub(super) fn new(n_topics: usize, key: Key) -> Self {
        FirstTopics { n_topics, rng: key.rng() }
    }

    /// Fills `topics` with those of the next tokens.
    pub fn fill(&mut self, topics: &mut [u16]) {
        let n_topics = self.n_topics;
        topics.iter_mut().for_each(|topic| *topic = self.rng.random_range(0..n_topics) as u16);
    }
}

/// State of a run, from which it goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainState {
    /// Where it is.
    pub position: Position,
    /// Number of the best start so far, and ln of its joint density.
    pub best: Option<(u64, f64)>,
    /// Parameters of the chain beside φ, one array after the other; none before its start.
    pub parameters: Vec<f64>,
    /// Sweeps that are averaged over.
    pub n_kept: u64,
}

/// The topics of all tokens, and the sums over documents that a chain needs.
///
/// A sweep leads from one [`Position`] to the next; until then, the topics at the position before are
/// kept. Counts are those of tokens of every word in each topic, words x topics.
pub trait Tokens {
    /// Tokens of each document, in order.
    fn lengths(&self) -> &[u32];

    /// Exposures, where documents differ in them.
    fn exposures(&self) -> Option<ExposureGroups>;

    /// Takes uniform topics, drawn document after document.
    ///
    /// # Errors
    /// The errors of the storage.
    fn draw_first(&mut self, at: Position, topics: FirstTopics) -> Result<()>;

    /// Adds the tokens of every word in each topic to `counts`.
    ///
    /// # Errors
    /// The errors of the storage.
    fn count(&mut self, at: Position, n_topics: usize, counts: &mut [u32]) -> Result<()>;

    /// The tokens of every word in each topic.
    ///
    /// # Errors
    /// The errors of the storage; [`Error::Memory`](crate::Error::Memory) where there is no room for them.
    fn counted(&mut self, at: Position, n_words: usize, n_topics: usize) -> Result<Vec<u32>> {
        let mut counts = array_of("counts of words by topic", n_words * n_topics, 0)?;
        self.count(at, n_topics, &mut counts)?;
        Ok(counts)
    }

    /// Draws the topics of all tokens on the way to a position; sets `counts`, and returns the
    /// tables of each group of documents and topic, which are zeros unless `tables` is set, and what
    /// bursty topics rest on.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped), by which `counts` are of the topics as they then are.
    fn sweep(
        &mut self,
        to: Position,
        weights: TopicWeights<'_>,
        seed: u64,
        tables: bool,
        counts: &mut [u32],
        observer: &dyn Observer,
    ) -> Result<SweptTokens>;

    /// Gives the topics of one position these numbers at another.
    ///
    /// # Errors
    /// The errors of the storage.
    fn renumber(&mut self, from: Position, to: Position, numbers: &[u16]) -> Result<()>;

    /// Σ_d Σ_k ln (a_k)_{n_dk}: the urns of all documents, without the words.
    ///
    /// # Errors
    /// The errors of the storage.
    fn ln_urns(&mut self, at: Position, a: PseudoCounts<'_>) -> Result<ExactSum>;

    /// ln of the probability of all words given their topics, where some topic is bursty.
    ///
    /// # Errors
    /// The errors of the storage.
    fn ln_bursts(
        &mut self,
        weights: TopicWeights<'_>,
        bursts: BurstWeights<'_>,
    ) -> Result<ExactSum>;

    /// Tokens of every topic by exposure; none where documents have no exposures.
    ///
    /// # Errors
    /// The errors of the storage.
    fn exposed(&mut self, at: Position, n_topics: usize) -> Result<Vec<ExposedTokens>>;

    /// Whether states of the chain are kept.
    fn keeps_states(&self) -> bool {
        false
    }

    /// Keeps a state, from which the run can go on; `kept_sum` is the sum over kept sweeps where it has
    /// changed.
    ///
    /// # Errors
    /// The errors of the storage.
    fn commit(&mut self, state: &ChainState, kept_sum: Option<&[f64]>) -> Result<()> {
        let _ = (state, kept_sum);
        Ok(())
    }
}

/// The topics of the tokens of a corpus in memory.
///
/// Takes 6 bytes a token, 8 a word and block, 12 a document, and the tallies of the blocks that are
/// swept side by side.
pub struct MemoryTokens<C> {
    counts: C,
    lengths: Vec<u32>,
    sizes: CorpusSizes,
    exposures: Option<ExposureGroups>,
    blocks: Vec<DocumentBlock>,
    /// Topics of the best start, where there is more than one, in the order of documents and cells.
    best: Option<Vec<u16>>,
    spare: SpareTallies,
}

impl<C: Deref<Target = CountMatrix>> MemoryTokens<C> {
    /// All tokens in topic 0.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) where there is no room for their topics.
    pub fn new(counts: C) -> Result<Self> {
        let n_tokens = counts.n_tokens() as usize;
        check_tokens(counts.n_tokens())?;
        let topics = array_of("topics of all tokens", n_tokens, 0u16)?;
        let n_threads = rayon::current_num_threads();
        // Every block has an index by word, which must not outgrow its tokens.
        let most = n_tokens / LEAST_BLOCK_TOKENS.max(counts.n_words() / 2);
        let n_blocks = n_tokens.div_ceil(BLOCK_TOKENS).next_multiple_of(n_threads);
        let documents = split_documents(&counts, n_blocks.min(most).max(1));
        let (matrix, topics) = (&*counts, &topics[..]);
        let new = |documents| DocumentBlock::new(matrix, documents, 0, topics);
        let blocks = documents.into_par_iter().map(new).collect::<Result<_>>()?;
        let lengths = counts.documents().map(|document| document.n_tokens() as u32).collect();
        let sizes = CorpusSizes {
            longest: counts.documents().map(Document::n_tokens).max().unwrap_or(0),
            n_tokens: counts.n_tokens(),
            n_cells: counts.counts().len() as u64,
        };
        let exposures = counts.exposures().map(numbered);
        let (best, spare) = (None, SpareTallies::default());
        Ok(MemoryTokens { counts, lengths, sizes, exposures, blocks, best, spare })
    }

    /// The topics in the order of documents and cells.
    pub fn topics(&self) -> Vec<u16> {
        let by_block = self.blocks.par_iter().map(DocumentBlock::topics_by_document);
        by_block.collect::<Vec<_>>().concat()
    }

    /// Takes up the topics of an earlier run, in the order of documents and cells.
    ///
    /// # Errors
    /// Another number of tokens; topics beyond the number of topics.
    pub fn set_topics(&mut self, topics: &[u16], n_topics: usize) -> Result<()> {
        check_topics(topics, self.counts.n_tokens() as usize, n_topics)?;
        let mut rest = topics;
        let own = |block: &DocumentBlock| rest.split_off(..block.n_tokens()).unwrap_or_default();
        let parts: Vec<_> = self.blocks.iter().map(own).collect();
        let blocks = self.blocks.par_iter_mut().zip(parts);
        blocks.for_each(|(block, own)| block.set_topics_by_document(own));
        self.spare = SpareTallies::default();
        Ok(())
    }
}

impl<C: Deref<Target = CountMatrix>> Tokens for MemoryTokens<C> {
    fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    fn exposures(&self) -> Option<ExposureGroups> {
        self.exposures.clone()
    }

    fn draw_first(&mut self, _: Position, mut topics: FirstTopics) -> Result<()> {
        let mut drawn = vec![0; self.counts.n_tokens() as usize];
        topics.fill(&mut drawn);
        self.set_topics(&drawn, usize::MAX)
    }

    fn count(&mut self, _: Position, n_topics: usize, counts: &mut [u32]) -> Result<()> {
        count_words(&self.blocks, n_topics, counts, false);
        Ok(())
    }

    fn sweep(
        &mut self,
        to: Position,
        weights: TopicWeights<'_>,
        seed: u64,
        tables: bool,
        counts: &mut [u32],
        observer: &dyn Observer,
    ) -> Result<SweptTokens> {
        let step = Step { urns: weights, key: to.key(seed), tables };
        let (documents, blocks, sizes) = (Some(&*self.counts), &mut self.blocks, self.sizes);
        let swept = sweeps::sweep(blocks, documents, sizes, step, &self.spare, observer);
        count_words(&self.blocks, weights.a.n_topics(), counts, true);
        swept
    }

    fn renumber(&mut self, from: Position, _: Position, numbers: &[u16]) -> Result<()> {
        if let Position::Merged { .. } = from
            && let Some(topics) = self.best.take()
        {
            self.set_topics(&topics, numbers.len())?;
        }
        self.blocks.par_iter_mut().for_each(|block| block.renumber(numbers));
        self.spare = SpareTallies::default();
        Ok(())
    }

    fn ln_urns(&mut self, _: Position, a: PseudoCounts<'_>) -> Result<ExactSum> {
        Ok(ln_urns(&self.blocks, a))
    }

    fn ln_bursts(
        &mut self,
        weights: TopicWeights<'_>,
        bursts: BurstWeights<'_>,
    ) -> Result<ExactSum> {
        Ok(ln_bursts(&self.blocks, weights, bursts))
    }

    fn exposed(&mut self, _: Position, n_topics: usize) -> Result<Vec<ExposedTokens>> {
        let Some(ExposureGroups { numbers, .. }) = &self.exposures else { return Ok(vec![]) };
        let exposed = |block: &DocumentBlock| ExposedTokens::new(block, numbers, n_topics);
        Ok(self.blocks.par_iter().map(exposed).collect())
    }

    fn commit(&mut self, state: &ChainState, _: Option<&[f64]>) -> Result<()> {
        if let (Position::Merged { run }, Some((best, _))) = (state.position, state.best)
            && run == best
        {
            self.best = Some(self.topics());
        }
        Ok(())
    }
}

/// The different exposures in increasing order, and for each document which of them it has.
fn numbered(exposures: &[f64]) -> ExposureGroups {
    let mut values = exposures.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup_by_key(|e| e.to_bits());
    let number = |exposure: &f64| values.partition_point(|e| e < exposure) as u32;
    let numbers = exposures.iter().map(number).collect();
    ExposureGroups { values, numbers }
}

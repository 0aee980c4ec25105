//! The topic of every token, drawn document by document and counted word by word.

use std::ops::Range;

use rand::RngExt;
use rand_distr::Distribution as _;
use rayon::prelude::*;

use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Error, Result, array_of};
use crate::math::{crt, gamma_law, ln_rising};
use crate::rng::{Key, Rng};
use crate::urn::{Balls, Sweeper};

/// Tokens per unit of parallel work.
const CHUNK_TOKENS: usize = 4096;

/// How a sweep draws the topics of a document's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// One after the other from the document's urn: the topic weights θ are integrated out.
    Collapsed,
    /// θ given the topics of all tokens, then all topics anew given θ.
    Blocked,
}

/// The topic of every token, in the order of the documents' cells.
pub(super) struct Assignments<'a> {
    counts: &'a CountMatrix,
    n_topics: usize,
    topics: Vec<u16>,
    /// First token of each document.
    document_starts: Vec<usize>,
    /// Cells of each word: (first token, count), and where each word's cells start.
    cells_by_word: Vec<(usize, u32)>,
    word_starts: Vec<usize>,
}

impl<'a> Assignments<'a> {
    /// Topics drawn uniformly.
    pub(super) fn new(counts: &'a CountMatrix, n_topics: usize, key: Key) -> Result<Self> {
        let mut document_starts = vec![0];
        let mut word_starts = vec![0usize; counts.n_words() + 1];
        let mut n_tokens = 0;
        for document in counts.documents() {
            n_tokens += document.n_tokens() as usize;
            document_starts.push(n_tokens);
        }
        for &word in counts.words() {
            word_starts[word as usize + 1] += 1;
        }
        for word in 0..counts.n_words() {
            word_starts[word + 1] += word_starts[word];
        }
        let mut next = word_starts.clone();
        let mut cells_by_word = vec![(0, 0); counts.words().len()];
        let mut token = 0;
        for (&word, &count) in counts.words().iter().zip(counts.counts()) {
            cells_by_word[next[word as usize]] = (token, count);
            next[word as usize] += 1;
            token += count as usize;
        }
        let mut rng = key.rng();
        let mut topics = array_of("topics of all tokens", n_tokens, 0u16)?;
        topics.iter_mut().for_each(|topic| *topic = rng.random_range(0..n_topics) as u16);
        Ok(Assignments { counts, n_topics, topics, document_starts, cells_by_word, word_starts })
    }

    pub(super) fn n_documents(&self) -> usize {
        self.counts.n_documents()
    }

    pub(super) fn n_words(&self) -> usize {
        self.counts.n_words()
    }

    pub(super) fn topics(&self) -> &[u16] {
        &self.topics
    }

    /// Takes up the topics of an earlier run.
    pub(super) fn restore(&mut self, topics: &[u16]) -> Result<()> {
        if topics.len() != self.topics.len() {
            let (found, expected) = (topics.len(), self.topics.len());
            return Err(Error::Length { name: "topics of all tokens", found, expected });
        }
        let beyond = |&topic: &u16| usize::from(topic) >= self.n_topics;
        if let Some(index) = topics.iter().position(beyond) {
            return Err(Error::Parameter {
                name: "topics of all tokens",
                index,
                value: f64::from(topics[index]),
                domain: "below the number of topics",
            });
        }
        self.topics.copy_from_slice(topics);
        Ok(())
    }

    /// Σ_d Σ_k ln (a_k)_{n_dk}: the urns of all documents, without the words.
    pub(super) fn ln_urns(&self, a: &[f64]) -> f64 {
        let mut balls = Balls::new(a);
        let ln_urn = |tokens: &[usize]| -> f64 {
            balls.refill(&self.topics[tokens[0]..tokens[1]]);
            let drawn = balls.drawn().iter().zip(a).filter(|(n, _)| **n > 0);
            drawn.map(|(&n, &a)| ln_rising(a, u64::from(n))).sum()
        };
        self.document_starts.windows(2).map(ln_urn).sum()
    }

    /// Lengths of the documents.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u64> {
        self.counts.documents().map(Document::n_tokens)
    }

    /// One Gibbs sweep over all documents given pseudo-counts `a` and word-major weights `q`.
    ///
    /// Where `tables` is set, also draws, and sums over documents, the number of tables
    /// CRT(n_dk, a_k) that seat the tokens of topic k (PFA notes, eq. 20 corrected).
    pub(super) fn sweep(
        &mut self,
        a: &[f64],
        q: &[f64],
        scheme: Scheme,
        tables: bool,
        key: Key,
        observer: &impl Observer,
    ) -> Result<Vec<u64>> {
        let (counts, n_topics) = (self.counts, self.n_topics);
        let chunks = split_by_documents(&mut self.topics, &self.document_starts);
        let new_worker = || Worker {
            sweeper: Sweeper::new(n_topics),
            balls: Balls::new(a),
            theta: vec![0.0; n_topics],
            n_tables: vec![0; n_topics],
        };
        let n_tables = (chunks.into_par_iter().with_max_len(1))
            .try_fold(new_worker, |mut worker, (documents, mut topics)| {
                for doc_ix in documents {
                    if observer.stopped() {
                        return Err(Error::Stopped);
                    }
                    let document = counts.document(doc_ix);
                    let (own, rest) = topics.split_at_mut(document.n_tokens() as usize);
                    topics = rest;
                    let mut rng = key.unit(doc_ix as u64).rng();
                    worker.balls.refill(own);
                    let cells = document
                        .cells()
                        .map(|(word, count)| (&q[word as usize * n_topics..][..n_topics], count));
                    worker.draw(scheme, cells, own, &mut rng);
                    if tables {
                        worker.seat(a, &mut rng);
                    }
                }
                Ok(worker)
            })
            .map(|worker| worker.map(|worker| worker.n_tables))
            .try_reduce(
                || vec![0; n_topics],
                |mut sum, other| {
                    sum.iter_mut().zip(other).for_each(|(sum, n)| *sum += n);
                    Ok(sum)
                },
            )?;
        Ok(n_tables)
    }

    /// Sets `out` to the number of tokens of `word` in each topic.
    pub(super) fn count_word(&self, word: usize, out: &mut [u32]) {
        out.fill(0);
        for &(start, count) in
            &self.cells_by_word[self.word_starts[word]..self.word_starts[word + 1]]
        {
            for &topic in &self.topics[start..start + count as usize] {
                out[usize::from(topic)] += 1;
            }
        }
    }
}

/// One thread's buffers.
struct Worker {
    sweeper: Sweeper,
    balls: Balls,
    theta: Vec<f64>,
    n_tables: Vec<u64>,
}

impl Worker {
    /// Draws the topics of a document whose tokens the balls hold.
    fn draw<'q>(
        &mut self,
        scheme: Scheme,
        cells: impl Iterator<Item = (&'q [f64], u32)>,
        topics: &mut [u16],
        rng: &mut Rng,
    ) {
        if scheme == Scheme::Collapsed {
            self.sweeper.sweep(cells, topics, &mut self.balls, rng);
            return;
        }
        // θ_k ~ Gamma(a_k + n_k), in units of its scale, which is in the weights.
        for (theta, &shape) in self.theta.iter_mut().zip(self.balls.totals()) {
            *theta = gamma_law(shape).sample(rng);
        }
        let mut rest = &mut *topics;
        for (q, count) in cells {
            let (tokens, after) = rest.split_at_mut(count as usize);
            self.sweeper.draw_each(&self.theta, q, tokens, rng);
            rest = after;
        }
        self.balls.refill(topics);
    }

    /// Adds CRT(n_k, a_k) draws for the document whose tokens the balls hold.
    fn seat(&mut self, a: &[f64], rng: &mut Rng) {
        for ((n_tables, &n), &a) in self.n_tables.iter_mut().zip(self.balls.drawn()).zip(a) {
            *n_tables += crt(n, a, rng);
        }
    }
}

/// Splits the tokens into runs of whole documents of about [`CHUNK_TOKENS`].
fn split_by_documents<'t>(
    topics: &'t mut [u16],
    document_starts: &[usize],
) -> Vec<(Range<usize>, &'t mut [u16])> {
    let n_documents = document_starts.len() - 1;
    let mut chunks = Vec::with_capacity(topics.len() / CHUNK_TOKENS + 1);
    let (mut first, mut rest) = (0, topics);
    for end in 1..=n_documents {
        let size = document_starts[end] - document_starts[first];
        if size >= CHUNK_TOKENS || end == n_documents {
            let (chunk, after) = rest.split_at_mut(size);
            chunks.push((first..end, chunk));
            rest = after;
            first = end;
        }
    }
    chunks
}

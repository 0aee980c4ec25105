//! The mean field of all documents, chunk by chunk.

use std::ops::Range;

use rayon::prelude::*;

use super::document::{DocumentScratch, Effort, Expected};
use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::{Result, array_of};

/// Cells per unit of parallel work; fixed, so that sums do not depend on the threads.
const CHUNK_CELLS: usize = 4096;

/// Chunks whose sums are held at a time.
const WAVE: usize = 16;

/// Whole documents, and the words that occur in them.
struct Chunk {
    documents: Range<usize>,
    words: Vec<u32>,
    /// The row of each cell's word within `words`.
    rows: Vec<u32>,
}

/// The documents, cut into chunks.
pub(super) struct Chunks<'a> {
    counts: &'a CountMatrix,
    chunks: Vec<Chunk>,
}

/// Quantities that a pass over all documents changes.
pub(super) struct ExpectedCounts<'a> {
    /// Expected tokens of each topic in each document, documents x topics; where the pass starts.
    pub(super) doc_topic: &'a mut [f32],
    /// The bound of each document.
    pub(super) ln_documents: &'a mut [f64],
    /// Expected tokens of each word in each topic, word-major.
    pub(super) word_topic: &'a mut [f64],
}

impl<'a> Chunks<'a> {
    pub(super) fn new(counts: &'a CountMatrix) -> Self {
        let (mut chunks, mut first) = (Vec::new(), 0);
        for end in 1..=counts.n_documents() {
            let cells = counts.cells(first).start..counts.cells(end - 1).end;
            if cells.len() >= CHUNK_CELLS || end == counts.n_documents() {
                chunks.push(Chunk::new(first..end, &counts.words()[cells]));
                first = end;
            }
        }
        Chunks { counts, chunks }
    }

    pub(super) fn counts(&self) -> &'a CountMatrix {
        self.counts
    }

    /// Fits the mean field of every document; returns the sum of their bounds.
    ///
    /// Cost: cells x topics x updates. Memory: the sums of [`WAVE`] chunks, each at most
    /// [`CHUNK_CELLS`] words (those of its longest document, if that is more) x topics.
    pub(super) fn fit(
        &self,
        phi: &[f64],
        alpha: &[f64],
        effort: Effort,
        sums: &mut ExpectedCounts<'_>,
        observer: &dyn Observer,
    ) -> Result<f64> {
        let n_topics = alpha.len();
        sums.word_topic.fill(0.0);
        let (mut doc_topic, mut ln_documents) = (&mut *sums.doc_topic, &mut *sums.ln_documents);
        let fit_chunk = |field: &mut DocumentScratch, part: (&Chunk, &mut [f32], &mut [f64])| {
            let (chunk, doc_topic, ln_documents) = part;
            let mut word_topic = array_of("expected tokens", chunk.words.len() * n_topics, 0.0)?;
            let mut rows = &chunk.rows[..];
            let by_document = doc_topic.chunks_exact_mut(n_topics).zip(ln_documents);
            for (doc_ix, (doc_topic, ln_document)) in chunk.documents.clone().zip(by_document) {
                observer.check_stop()?;
                let document = self.counts.document(doc_ix);
                let own = rows.split_off(..document.n_distinct()).unwrap_or_default();
                let expected = Expected { sums: &mut word_topic, rows: own, n_topics };
                *ln_document = field.fit(document, phi, alpha, doc_topic, effort, expected);
            }
            Ok(word_topic)
        };
        for wave in self.chunks.chunks(WAVE) {
            let mut parts = Vec::with_capacity(WAVE);
            for chunk in wave {
                let n_documents = chunk.documents.len();
                let own = doc_topic.split_off_mut(..n_documents * n_topics).unwrap_or_default();
                let own_ln = ln_documents.split_off_mut(..n_documents).unwrap_or_default();
                parts.push((chunk, own, own_ln));
            }
            let fitted: Vec<_> = (parts.into_par_iter().with_max_len(1))
                .map_init(|| DocumentScratch::new(n_topics), fit_chunk)
                .collect();
            for (chunk, part) in wave.iter().zip(fitted) {
                for (&word, part) in chunk.words.iter().zip(part?.chunks_exact(n_topics)) {
                    let row = &mut sums.word_topic[word as usize * n_topics..][..n_topics];
                    row.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
                }
            }
        }
        Ok(sums.ln_documents.iter().sum())
    }
}

impl Chunk {
    fn new(documents: Range<usize>, cells: &[u32]) -> Self {
        let mut words = cells.to_vec();
        words.sort_unstable();
        words.dedup();
        let row = |word: &u32| words.partition_point(|other| other < word) as u32;
        let rows = cells.iter().map(row).collect();
        Chunk { documents, words, rows }
    }
}

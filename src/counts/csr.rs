//! Documents x words, in compressed sparse rows.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use crate::error::{Error, Result, check_all, check_length, check_positive};

/// Sparse matrix of word counts, one row a document.
///
/// Within a row the word indices strictly increase and every stored count is at least 1.
#[derive(Debug, Clone, PartialEq)]
pub struct CountMatrix {
    n_words: usize,
    offsets: Vec<usize>,
    words: Vec<u32>,
    counts: Vec<u32>,
    exposures: Option<Vec<f64>>,
    priors: Option<Vec<f64>>,
}

/// One row of a [`CountMatrix`]: distinct words, how often each occurs, the row's exposure, and
/// parameters of its own prior where it has some.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Document<'a> {
    words: &'a [u32],
    counts: &'a [u32],
    exposure: f64,
    prior: Option<&'a [f64]>,
}

// Exposures and parameters are finite: equality is an equivalence.
impl Eq for Document<'_> {}

impl Hash for Document<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.words, self.counts, self.exposure.to_bits()).hash(state);
        self.prior.into_iter().flatten().for_each(|x| x.to_bits().hash(state));
    }
}

/// The different documents of a matrix, and which of them each row is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distinct {
    /// A row that holds each different document.
    pub representatives: Vec<usize>,
    /// Index of the document of each row within `representatives`.
    pub index: Vec<usize>,
}

impl CountMatrix {
    /// Checks and takes over a matrix in compressed sparse rows.
    ///
    /// # Errors
    /// Offsets that are inconsistent, words out of range or out of order, counts that are not
    /// between 1 and 2^32 - 1, no words, or more than 2^32 words.
    pub fn new<T: Copy + Into<i64>>(
        n_words: usize,
        offsets: &[i64],
        words: &[T],
        counts: &[T],
    ) -> Result<Self> {
        if n_words == 0 {
            return Err(Error::Empty { name: "number of words" });
        }
        check_length("counts", counts.len(), words.len())?;
        let mut matrix = CountMatrix {
            n_words,
            offsets: check_offsets(offsets, words.len())?,
            words: Vec::with_capacity(words.len()),
            counts: Vec::with_capacity(counts.len()),
            exposures: None,
            priors: None,
        };
        for document in 0..matrix.n_documents() {
            let mut next = 0;
            for cell in matrix.cells(document) {
                let (word, count) = (words[cell].into() as u64, counts[cell].into());
                if word >= n_words as u64 || word > u64::from(u32::MAX) {
                    return Err(Error::WordOutOfRange { document, word, n_words });
                }
                if word < next {
                    return Err(Error::Unsorted { document, word });
                }
                if !(1..=i64::from(u32::MAX)).contains(&count) {
                    return Err(Error::Count { document, word, count });
                }
                matrix.words.push(word as u32);
                matrix.counts.push(count as u32);
                next = word + 1;
            }
        }
        Ok(matrix)
    }

    /// A matrix from dense rows of equal length; zeros are left out.
    ///
    /// # Errors
    /// The errors of [`CountMatrix::new`], and rows of unequal length.
    pub fn from_dense(rows: &[Vec<i64>]) -> Result<Self> {
        let n_words = rows.first().map_or(0, Vec::len);
        let (mut offsets, mut words, mut counts) = (vec![0], vec![], vec![]);
        for row in rows {
            check_length("row", row.len(), n_words)?;
            for (word, &count) in (0..).zip(row).filter(|&(_, &count)| count != 0) {
                words.push(word);
                counts.push(count);
            }
            offsets.push(words.len() as i64);
        }
        Self::new(n_words, &offsets, &words, &counts)
    }

    /// The same rows, each with a known size that multiplies all of its Poisson rates.
    ///
    /// Rows have exposure 1 otherwise; a matrix whose exposures are all 1 is one without.
    ///
    /// # Errors
    /// Another number of exposures than rows, or one that is not positive and finite.
    pub fn with_exposures(mut self, exposures: Vec<f64>) -> Result<Self> {
        check_length("exposure", exposures.len(), self.n_documents())?;
        check_positive("exposure", &exposures)?;
        let exposed = exposures.iter().any(|e| e.to_bits() != 1.0f64.to_bits());
        self.exposures = exposed.then_some(exposures);
        Ok(self)
    }

    /// The same rows, each with parameters of its own prior, row-major: pseudo-counts of topics,
    /// shapes, or coordinates of a mean.
    ///
    /// # Errors
    /// Another number of parameters than a multiple of the rows, or one that is not finite.
    pub fn with_priors(mut self, mut priors: Vec<f64>) -> Result<Self> {
        let (found, rows) = (priors.len(), self.n_documents());
        if rows == 0 || found == 0 || !found.is_multiple_of(rows) {
            let expected = (found / rows.max(1)).max(1) * rows;
            return Err(Error::Length { name: "priors of documents", found, expected });
        }
        check_all("priors of documents", &priors, "finite", f64::is_finite)?;
        // Equal parameters have equal bits: there is no negative zero.
        priors.iter_mut().for_each(|x| *x += 0.0);
        self.priors = Some(priors);
        Ok(self)
    }

    /// Parameters of the priors of all rows; `None` where rows have none of their own.
    pub fn priors(&self) -> Option<&[f64]> {
        self.priors.as_deref()
    }

    /// The exposure of every row; `None` where all are 1.
    pub fn exposures(&self) -> Option<&[f64]> {
        self.exposures.as_deref()
    }

    /// Number of rows.
    pub fn n_documents(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Size of the vocabulary.
    pub fn n_words(&self) -> usize {
        self.n_words
    }

    /// Total of all counts.
    pub fn n_tokens(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// The range of cells of one row, into [`words`](Self::words) and [`counts`](Self::counts).
    pub fn cells(&self, document: usize) -> Range<usize> {
        self.offsets[document]..self.offsets[document + 1]
    }

    /// The word of every cell, row after row.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The count of every cell, row after row.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// One row.
    pub fn document(&self, document: usize) -> Document<'_> {
        let cells = self.cells(document);
        let exposure = self.exposures.as_ref().map_or(1.0, |exposures| exposures[document]);
        let prior = self.priors.as_ref().map(|priors| {
            let width = priors.len() / self.n_documents();
            &priors[document * width..][..width]
        });
        Document { words: &self.words[cells.clone()], counts: &self.counts[cells], exposure, prior }
    }

    /// All rows.
    pub fn documents(&self) -> impl ExactSizeIterator<Item = Document<'_>> {
        (0..self.n_documents()).map(|document| self.document(document))
    }

    /// Groups rows of equal counts, exposures and priors, in order of first appearance.
    pub fn distinct(&self) -> Distinct {
        let mut seen = HashMap::with_capacity(self.n_documents());
        let mut representatives = Vec::new();
        let index = (self.documents().enumerate())
            .map(|(row, document)| {
                *seen.entry(document).or_insert_with(|| {
                    representatives.push(row);
                    representatives.len() - 1
                })
            })
            .collect();
        Distinct { representatives, index }
    }
}

impl<'a> Document<'a> {
    /// (word, count) of every distinct word.
    pub fn cells(self) -> impl ExactSizeIterator<Item = (u32, u32)> + 'a {
        self.words.iter().copied().zip(self.counts.iter().copied())
    }

    /// The distinct words, strictly increasing.
    pub fn words(self) -> &'a [u32] {
        self.words
    }

    /// The count of each distinct word.
    pub fn counts(self) -> &'a [u32] {
        self.counts
    }

    /// The known size that multiplies the document's Poisson rates; 1 where none is given.
    pub fn exposure(self) -> f64 {
        self.exposure
    }

    /// Parameters of the document's own prior, in place of the model's.
    pub fn prior(self) -> Option<&'a [f64]> {
        self.prior
    }

    /// Number of distinct words.
    pub fn n_distinct(self) -> usize {
        self.words.len()
    }

    /// Number of tokens: the document's length.
    pub fn n_tokens(self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }
}

fn check_offsets(offsets: &[i64], n_cells: usize) -> Result<Vec<usize>> {
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return Err(Error::Empty { name: "row offsets" });
    };
    if let Some(document) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
        return Err(Error::Offsets { document });
    }
    if first != 0 || last as usize != n_cells {
        return Err(Error::Offsets { document: if first != 0 { 0 } else { offsets.len() - 1 } });
    }
    Ok(offsets.iter().map(|&offset| offset as usize).collect())
}

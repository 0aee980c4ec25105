//! Vocabularies side by side: documents in several languages, or measured in several ways.
//!
//! Topic weights are shared, and each vocabulary has probabilities of words and lengths of its own.
//! The urn of all tokens does not know vocabularies; normalisation and orders of tokens do.

use crate::counts::Document;
use crate::error::{Error, Result, check_length};
use crate::math::ln_factorial;

/// How far from 1 the probabilities of words in a vocabulary may sum.
pub(super) const SUM_TOLERANCE: f64 = 1e-6;

/// Columns of each vocabulary, which follow one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabularies {
    /// Column after the last one of each.
    ends: Vec<usize>,
}

impl Vocabularies {
    /// Vocabularies of these sizes, for `n_words` columns; one without sizes.
    ///
    /// # Errors
    /// Sizes of zero, or whose sum is another.
    pub fn new(sizes: &[usize], n_words: usize) -> Result<Self> {
        if sizes.is_empty() {
            return Ok(Vocabularies { ends: vec![n_words] });
        }
        let sum = |end: &mut usize, size: &usize| {
            *end += size;
            Some(*end)
        };
        let ends: Vec<usize> = sizes.iter().scan(0, sum).collect();
        check_length("vocabularies", ends.last().copied().unwrap_or(0), n_words)?;
        if sizes.contains(&0) {
            return Err(Error::Empty { name: "words of a vocabulary" });
        }
        Ok(Vocabularies { ends })
    }

    /// Number of columns.
    pub(in crate::document) fn n_words(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// A row of all columns, cut into those of each vocabulary.
    pub(in crate::document) fn cut<'a>(
        &'a self,
        row: &'a [f64],
    ) -> impl Iterator<Item = &'a [f64]> {
        self.ranges().map(|(start, end)| &row[start..end])
    }

    /// First column of each vocabulary, and the one after its last.
    pub(in crate::document) fn ranges(&self) -> impl Iterator<Item = (usize, usize)> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends.iter().copied())
    }

    /// Refuses probabilities, topics x words, that do not sum to 1 in every vocabulary.
    pub(in crate::document) fn check_rows(&self, rows: &[f64]) -> Result<()> {
        for (topic, row) in rows.chunks_exact(self.n_words()).enumerate() {
            for own in self.cut(row) {
                let sum: f64 = own.iter().sum();
                if (sum - 1.0).abs() > SUM_TOLERANCE {
                    return Err(Error::NotNormalised { topic, sum });
                }
            }
        }
        Ok(())
    }

    /// A document's counts of the words of each vocabulary.
    fn counts<'a>(&'a self, document: Document<'a>) -> impl Iterator<Item = &'a [u32]> {
        let words = document.words();
        self.ranges().map(move |columns| {
            let (start, end) = <[usize; 2]>::from(columns)
                .map(|column| words.partition_point(|&word| (word as usize) < column))
                .into();
            &document.counts()[start..end]
        })
    }

    /// Number of a document's tokens in each vocabulary.
    pub(in crate::document) fn n_tokens<'a>(
        &'a self,
        document: Document<'a>,
    ) -> impl Iterator<Item = u64> {
        self.counts(document).map(|counts| counts.iter().map(|&y| u64::from(y)).sum())
    }

    /// ln of the number of orders of a bag of words, of each vocabulary by itself.
    pub(in crate::document) fn ln_orders(&self, document: Document<'_>) -> f64 {
        let all: f64 = self.n_tokens(document).map(ln_factorial).sum();
        all - document.counts().iter().map(|&y| ln_factorial(u64::from(y))).sum::<f64>()
    }
}

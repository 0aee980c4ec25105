//! Updates of matrix factorisation where the documents are elsewhere: part by part, to the same bits.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    PSEUDO_COUNT, add_factors, exact_sums, ln_document, multiply, normalise_topics, row,
    update_rows,
};
use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::{Error, Result};
use crate::math::ExactSum;

/// Some consecutive documents of a corpus, their weights, and the topics of all.
#[derive(Clone, Copy)]
pub struct NmfPart<'a> {
    counts: &'a CountMatrix,
    phi: &'a [f64],
    n_topics: usize,
}

impl<'a> NmfPart<'a> {
    /// Documents and word-major topics.
    ///
    /// # Errors
    /// Topics of another vocabulary.
    pub fn new(counts: &'a CountMatrix, phi: &'a [f64]) -> Result<Self> {
        let n_topics = phi.len() / counts.n_words();
        let (found, expected) = (phi.len(), n_topics * counts.n_words());
        if n_topics == 0 || found != expected {
            return Err(Error::Length { name: "word-major topics", found, expected });
        }
        Ok(NmfPart { counts, phi, n_topics })
    }

    /// Adds Σ_d y_dw θ_dk / λ_dw of these documents to the factors of `words`, words x topics: an
    /// update multiplies φ by those of all documents, added in their order.
    ///
    /// # Errors
    /// Sizes that disagree; [`Error::Stopped`], by which the factors are of no use.
    pub fn add_factors(
        self,
        theta: &[f64],
        words: Range<usize>,
        factors: &mut [f64],
        observer: &impl Observer,
    ) -> Result<()> {
        let n_topics = self.n_topics;
        self.check_weights(theta)?;
        let (name, found, expected) = ("factors of words", factors.len(), words.len() * n_topics);
        if found != expected || words.end > self.counts.n_words() {
            return Err(Error::Length { name, found, expected });
        }
        let n_words = words.len().div_ceil(rayon::current_num_threads()).max(1);
        let slices = factors.par_chunks_mut(n_words * n_topics).enumerate();
        slices.try_for_each(|(slice, factors)| {
            let first = words.start + slice * n_words;
            let own = first as u32..(first + factors.len() / n_topics) as u32;
            for (document, theta) in self.counts.documents().zip(theta.chunks_exact(n_topics)) {
                observer.check_stop()?;
                let first = document.words().partition_point(|&word| word < own.start);
                let cells = document.cells().skip(first).take_while(|&(word, _)| word < own.end);
                for (word, y) in cells {
                    let factors = &mut factors[(word - own.start) as usize * n_topics..];
                    let phi = row(self.phi, word, n_topics);
                    add_factors(&mut factors[..n_topics], phi, theta, y);
                }
            }
            Ok(())
        })
    }

    /// Updates the weights of these documents.
    ///
    /// # Errors
    /// Sizes that disagree; [`Error::Stopped`], by which some are updated and some are not.
    pub fn update_weights(self, theta: &mut [f64], observer: &impl Observer) -> Result<()> {
        self.check_weights(theta)?;
        update_rows(theta, self.counts, self.phi, self.n_topics, observer);
        observer.check_stop()
    }

    /// Σ_d ln p(document | φ, θ).
    ///
    /// # Errors
    /// Sizes that disagree.
    pub fn ln_joint(self, theta: &[f64]) -> Result<ExactSum> {
        self.check_weights(theta)?;
        let documents = self.counts.documents().zip(theta.chunks_exact(self.n_topics));
        Ok(documents.map(|(document, theta)| ln_document(document, theta, self.phi)).sum())
    }

    /// Σ_d θ_dk of every topic.
    ///
    /// # Errors
    /// Sizes that disagree.
    pub fn n_tokens(self, theta: &[f64]) -> Result<Vec<ExactSum>> {
        self.check_weights(theta)?;
        Ok(exact_sums(theta, self.n_topics))
    }

    fn check_weights(self, theta: &[f64]) -> Result<()> {
        let (found, expected) = (theta.len(), self.counts.n_documents() * self.n_topics);
        if found == expected {
            Ok(())
        } else {
            Err(Error::Length { name: "topic weights of documents", found, expected })
        }
    }
}

/// φ from which updates start, word-major, by the tokens of every word in each topic.
pub fn nmf_start_topics(counts: &[u32], n_topics: usize) -> Vec<f64> {
    let mut phi: Vec<f64> = counts.iter().map(|&n| f64::from(n) + PSEUDO_COUNT).collect();
    normalise_topics(&mut phi, n_topics);
    phi
}

/// φ after an update, by the factors of all words.
///
/// # Errors
/// Another number of factors.
pub fn nmf_update_topics(phi: &mut [f64], factors: &[f64], n_topics: usize) -> Result<()> {
    let (found, expected) = (factors.len(), phi.len());
    if found != expected {
        return Err(Error::Length { name: "factors of words", found, expected });
    }
    multiply(phi, factors);
    normalise_topics(phi, n_topics);
    Ok(())
}

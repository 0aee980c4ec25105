//! Tables that seat the tokens of each topic, summed over documents.

use crate::math::crt;
use crate::rng::Rng;
use crate::training::pseudo_counts::PseudoCounts;

/// Adds the numbers of tables CRT(n_k, a_k) of a document of the corpus, with n_k tokens of topic k,
/// to those of its group in `n_tables`.
pub(super) fn seat(
    counts: impl Iterator<Item = (usize, u32)>,
    a: PseudoCounts<'_>,
    doc_ix: usize,
    rng: &mut Rng,
    n_tables: &mut [u64],
) {
    let (row, n_topics) = (a.row(doc_ix), a.n_topics());
    let own = &mut n_tables[a.group(doc_ix) * n_topics..][..n_topics];
    for (topic, n) in counts {
        own[topic] += crt(n, row[topic], rng);
    }
}

/// Sum of the tables of two sets of documents.
pub(super) fn sum(mut tables: Vec<u64>, others: Vec<u64>) -> Vec<u64> {
    tables.iter_mut().zip(others).for_each(|(sum, n)| *sum += n);
    tables
}

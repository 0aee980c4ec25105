//! Tables that seat the tokens of each topic, summed over documents.

use crate::math::crt;
use crate::rng::Rng;

/// Adds the numbers of tables CRT(n_k, a_k) of a document with n_k tokens of topic k to `n_tables`.
pub(super) fn seat(
    counts: impl Iterator<Item = (usize, u32)>,
    a: &[f64],
    rng: &mut Rng,
    n_tables: &mut [u64],
) {
    for (topic, n) in counts {
        n_tables[topic] += crt(n, a[topic], rng);
    }
}

/// Sum of the tables of two sets of documents.
pub(super) fn sum(mut tables: Vec<u64>, others: Vec<u64>) -> Vec<u64> {
    tables.iter_mut().zip(others).for_each(|(sum, n)| *sum += n);
    tables
}

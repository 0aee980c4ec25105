//! Tables that seat the tokens of each topic, summed over documents.

use super::blocks::{DocumentBlock, Step};
use crate::math::crt;

/// Numbers of tables CRT(n_k, a_k) of the documents of a block, with n_k tokens of topic k, summed over
/// the documents of each group; zeros where the step asks for none. `counts` are those of a document.
pub(super) fn seat<C: Iterator<Item = (usize, u32)>>(
    block: &DocumentBlock,
    step: Step<'_>,
    counts: impl Fn(usize) -> C,
) -> Vec<u64> {
    let (a, n_topics, key) = (step.urns.a, step.urns.a.n_topics(), step.key.unit(u64::MAX));
    let mut n_tables = vec![0; a.n_groups() * n_topics];
    let documents = if step.tables { block.in_corpus() } else { 0..0 };
    for (document, doc_ix) in documents.enumerate() {
        let (row, mut rng) = (a.row(doc_ix), key.unit(doc_ix as u64).rng());
        let own = &mut n_tables[a.group(doc_ix) * n_topics..][..n_topics];
        counts(document).for_each(|(topic, n)| own[topic] += crt(n, row[topic], &mut rng));
    }
    n_tables
}

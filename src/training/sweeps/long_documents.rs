//! A collapsed sweep over documents one by one: of exposures or pseudo-counts of their own, and of too
//! many tokens for the tallies.

use rayon::prelude::*;

use super::blocks::{DocumentBlock, Step};
use super::tables;
use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::Result;
use crate::urn::{Balls, Sweeper};

/// Draws all documents; where `tables` is set, returns the tables of each topic, summed.
///
/// A token's weight in topic k is e φ_k / (x_k + e), if θ_k ~ Gamma(a_k, rate x_k) and the document
/// has exposure e. The factor e is the same for all topics, so it does not matter.
pub(super) fn sweep(
    blocks: &mut [DocumentBlock],
    counts: &CountMatrix,
    step: Step<'_>,
    tables: bool,
    observer: &dyn Observer,
) -> Result<Vec<u64>> {
    let n_topics = step.urns.a.n_topics();
    let n_tables = step.urns.a.n_groups() * n_topics;
    let draw_block = |block: &mut DocumentBlock| -> Result<Vec<u64>> {
        let (mut sweeper, mut balls) = (Sweeper::new(n_topics), Balls::new(step.urns.a.first()));
        let (mut weights, mut scale) = (Vec::new(), vec![0.0; n_topics]);
        let mut n_tables = vec![0; n_tables];
        let mut topics = block.topics_by_document();
        let mut rest = &mut topics[..];
        for (doc_ix, in_corpus) in block.documents.clone().zip(block.in_corpus()) {
            observer.check_stop()?;
            let document = counts.document(doc_ix);
            let (own, after) = rest.split_at_mut(document.n_tokens() as usize);
            rest = after;
            let mut rng = step.key.unit(in_corpus as u64).rng();
            scale.copy_from_slice(step.urns.scale);
            for (scale, rate) in scale.iter_mut().zip(step.urns.rates.into_iter().flatten()) {
                *scale /= rate + document.exposure();
            }
            weights.clear();
            for &word in document.words() {
                let row = &step.urns.weights[word as usize * n_topics..][..n_topics];
                weights.extend(row.iter().zip(&scale).map(|(q, scale)| q * scale));
            }
            balls.set_pseudo_counts(step.urns.a.row(in_corpus));
            balls.refill(own);
            let cells = weights.chunks_exact(n_topics).zip(document.counts().iter().copied());
            sweeper.draw_all::<true>(cells, own, &mut balls, &mut rng);
            if tables {
                let drawn = balls.drawn().iter().copied().enumerate();
                tables::seat(drawn, step.urns.a, in_corpus, &mut rng, &mut n_tables);
            }
        }
        block.set_topics_by_document(&topics);
        Ok(n_tables)
    };
    let tables = blocks.par_iter_mut().with_max_len(1).map(draw_block);
    tables.try_reduce(|| vec![0; n_tables], |sum, other| Ok(tables::sum(sum, other)))
}

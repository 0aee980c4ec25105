//! A collapsed sweep over documents of different exposures, one by one: each has urns of its own.

use rayon::prelude::*;

use super::blocks::{Block, Step};
use super::tables;
use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::Result;
use crate::urn::{Balls, Sweeper};

/// Draws all documents; where `tables` is set, returns the tables of each topic, summed.
///
/// With θ_k ~ Gamma(a_k, rate x_k), a token of a document of exposure e has the weight e φ_k / (x_k + e),
/// of which e is the same for all topics.
pub(super) fn sweep(
    blocks: &mut [Block],
    counts: &CountMatrix,
    step: Step<'_>,
    tables: bool,
    observer: &impl Observer,
) -> Result<Vec<u64>> {
    let n_topics = step.a.len();
    let draw_block = |block: &mut Block| -> Result<Vec<u64>> {
        let (mut sweeper, mut balls) = (Sweeper::new(n_topics), Balls::new(step.a));
        let (mut weights, mut scale) = (Vec::new(), vec![0.0; n_topics]);
        let mut n_tables = vec![0; n_topics];
        let mut topics = block.topics_by_document();
        let mut rest = &mut topics[..];
        for doc_ix in block.documents.clone() {
            observer.check_stop()?;
            let document = counts.document(doc_ix);
            let (own, after) = rest.split_at_mut(document.n_tokens() as usize);
            rest = after;
            let mut rng = block.document_key(step.key, doc_ix).rng();
            scale.copy_from_slice(step.scale);
            for (scale, rate) in scale.iter_mut().zip(step.rates.into_iter().flatten()) {
                *scale /= rate + document.exposure();
            }
            weights.clear();
            for &word in document.words() {
                let row = &step.weights[word as usize * n_topics..][..n_topics];
                weights.extend(row.iter().zip(&scale).map(|(q, scale)| q * scale));
            }
            balls.refill(own);
            let cells = weights.chunks_exact(n_topics).zip(document.counts().iter().copied());
            sweeper.sweep(cells, own, &mut balls, &mut rng);
            if tables {
                let drawn = balls.drawn().iter().copied().enumerate();
                tables::seat(drawn, step.a, &mut rng, &mut n_tables);
            }
        }
        block.set_topics_by_document(&topics);
        Ok(n_tables)
    };
    let tables = blocks.par_iter_mut().with_max_len(1).map(draw_block);
    tables.try_reduce(|| vec![0; n_topics], |sum, other| Ok(tables::sum(sum, other)))
}

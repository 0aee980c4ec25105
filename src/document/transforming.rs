//! Posterior mean topic weights of documents.

use rayon::prelude::*;

use super::TopicModel;
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Error, Result, array_of};
use crate::rng::{Key, Purpose, Rng};
use crate::urn::{Balls, Sweeper};

/// Gibbs sweeps before the first that counts.
const BURN_IN: usize = 20;

/// E[θ | document] of every document, `n_documents` x `n_topics` (row-major).
///
/// Averages the conditional mean of θ over `n_sweeps` Gibbs sweeps of the document's urn, after
/// a burn-in. Runs on the current rayon pool; a document's random numbers depend on the seed and
/// its content only. Cost: sweeps x tokens x topics.
///
/// # Errors
/// Words outside the model's vocabulary; [`Error::Stopped`] when the observer asks to stop.
pub fn transform(
    model: &TopicModel,
    documents: &CountMatrix,
    n_sweeps: usize,
    seed: u64,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let n_topics = model.urn().n_topics();
    if documents.n_words() != model.urn().n_words() {
        return Err(Error::Length {
            name: "vocabulary of the documents",
            found: documents.n_words(),
            expected: model.urn().n_words(),
        });
    }
    let key = Key::new(seed, Purpose::Transform);
    let mut weights = vec![0.0; documents.n_documents() * n_topics];
    weights.par_chunks_exact_mut(n_topics).enumerate().with_max_len(16).try_for_each(
        |(row, out)| {
            let document = documents.document(row);
            let mut rng = key.document(document).rng();
            mean_weights(model, document, n_sweeps, &mut rng, observer, out)?;
            observer.advance(1);
            Ok(())
        },
    )?;
    Ok(weights)
}

fn mean_weights(
    model: &TopicModel,
    document: Document<'_>,
    n_sweeps: usize,
    rng: &mut Rng,
    observer: &impl Observer,
    out: &mut [f64],
) -> Result<()> {
    let a = model.urn().pseudo_counts();
    // A word that no topic can produce says nothing about the topics.
    let possible = |word| model.urn().weights(word).iter().any(|&q| q > 0.0);
    let cells: Vec<_> = document.cells().filter(|&(word, _)| possible(word)).collect();
    let n_tokens: usize = cells.iter().map(|&(_, count)| count as usize).sum();
    if n_tokens == 0 {
        out.copy_from_slice(a);
        model.topic_weights(out);
        return Ok(());
    }
    let cells = || cells.iter().map(|&(word, count)| (model.urn().weights(word), count));
    let mut assignments = array_of("topics of a document", n_tokens, 0u16)?;
    let mut balls = Balls::new(a);
    let mut sweeper = Sweeper::new(a.len());
    sweeper.sequence(cells(), &mut assignments, &mut balls, rng);
    for sweep in 0..BURN_IN + n_sweeps {
        if observer.stopped() {
            return Err(Error::Stopped);
        }
        sweeper.sweep(cells(), &mut assignments, &mut balls, rng);
        if sweep >= BURN_IN {
            for (sum, x) in out.iter_mut().zip(balls.totals()) {
                *sum += x / n_sweeps as f64;
            }
        }
    }
    model.topic_weights(out);
    Ok(())
}

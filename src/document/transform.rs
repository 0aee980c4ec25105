//! Posterior mean and spread of the topic weights of documents.

use std::borrow::Cow;

use rayon::prelude::*;

use super::TopicModel;
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::error::{Result, array_of};
use crate::rng::{Key, Purpose, Rng};
use crate::urn::{Balls, Sweeper};

/// Gibbs sweeps before the first that counts.
const BURN_IN: usize = 20;

/// Moments of a document's topic weights θ that are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moments {
    /// E[θ | document].
    Mean,
    /// The same, and sd[θ | document] behind it.
    MeanAndStd,
}

impl Moments {
    /// Arrays of topic weights a document.
    pub fn n_arrays(self) -> usize {
        match self {
            Moments::Mean => 1,
            Moments::MeanAndStd => 2,
        }
    }
}

/// Moments of θ of every document: `n_documents` x `moments.n_arrays()` x `n_topics` (row-major).
///
/// Averages the conditional moments of θ given the topics of the tokens, which are closed forms,
/// over `n_sweeps` Gibbs sweeps of the document's urn, after a burn-in; the variance is the mean
/// of the conditional variance plus the variance of the conditional mean. Runs on the current
/// rayon pool; a document's random numbers depend on the seed and its content only. Cost: sweeps
/// x tokens x topics.
///
/// # Errors
/// Words outside the model's vocabulary, exposures under LDA; no room for the result; a stop.
pub fn transform(
    model: &TopicModel,
    documents: &CountMatrix,
    moments: Moments,
    n_sweeps: usize,
    seed: u64,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let n_topics = model.urn().n_topics();
    model.check_documents(documents)?;
    let key = Key::new(seed, Purpose::Transform);
    let width = moments.n_arrays() * n_topics;
    let size = documents.n_documents() * width;
    let mut weights = array_of("topic weights of all documents", size, 0.0)?;
    weights.par_chunks_exact_mut(width).enumerate().with_max_len(16).try_for_each(
        |(row, out)| {
            let document = documents.document(row);
            let mut rng = key.document(document).rng();
            let (mean, spread) = out.split_at_mut(n_topics);
            average_balls(model, document, n_sweeps, &mut rng, observer, mean, spread)?;
            if moments == Moments::MeanAndStd {
                model.weight_deviations(mean, spread, document.exposure());
            }
            model.topic_weights(mean, document.exposure());
            observer.advance(1);
            Ok(())
        },
    )?;
    Ok(weights)
}

/// Sets `mean` to the mean of the balls a + n over the posterior of the document's colours, and
/// `variance`, unless it is empty, to their variance.
fn average_balls(
    model: &TopicModel,
    document: Document<'_>,
    n_sweeps: usize,
    rng: &mut Rng,
    observer: &impl Observer,
    mean: &mut [f64],
    variance: &mut [f64],
) -> Result<()> {
    let a = model.pseudo_counts(document);
    // A word that no topic can produce says nothing about the topics.
    let possible = |word| model.urn().weights(word).iter().zip(a).any(|(&q, &a)| q * a > 0.0);
    let cells: Vec<_> = document.cells().filter(|&(word, _)| possible(word)).collect();
    let n_tokens: usize = cells.iter().map(|&(_, count)| count as usize).sum();
    if n_tokens == 0 {
        mean.copy_from_slice(a);
        return Ok(());
    }
    let weights = weights_of(model, &cells, document.exposure());
    let cells = || weights.iter().map(AsRef::as_ref).zip(cells.iter().map(|&(_, count)| count));
    let mut assignments = array_of("topics of a document", n_tokens, 0u16)?;
    let mut balls = Balls::new(a);
    let mut sweeper = Sweeper::new(a.len());
    sweeper.draw_all::<false>(cells(), &mut assignments, &mut balls, rng);
    for sweep in 0..BURN_IN + n_sweeps {
        observer.check_stop()?;
        sweeper.draw_all::<true>(cells(), &mut assignments, &mut balls, rng);
        if sweep >= BURN_IN {
            for (sum, x) in mean.iter_mut().zip(balls.totals()) {
                *sum += x / n_sweeps as f64;
            }
            for (sum, &n) in variance.iter_mut().zip(balls.drawn()) {
                *sum += f64::from(n).powi(2) / n_sweeps as f64;
            }
        }
    }
    for ((square, mean), a) in variance.iter_mut().zip(mean).zip(a) {
        *square = (*square - (*mean - a).powi(2)).max(0.0);
    }
    Ok(())
}

/// The weights of a document's words, at its exposure.
fn weights_of<'a>(
    model: &'a TopicModel,
    cells: &[(u32, u32)],
    exposure: f64,
) -> Vec<Cow<'a, [f64]>> {
    let factors = model.topic_factors(exposure);
    let weights = |&(word, _): &(u32, u32)| {
        let weights = model.urn().weights(word);
        factors.as_ref().map_or(Cow::Borrowed(weights), |factors| {
            weights.iter().zip(factors).map(|(q, factor)| q * factor).collect()
        })
    };
    cells.iter().map(weights).collect()
}

//! New topics of a model that grows, made from documents.

use rand::RngExt;

use crate::counts::{CountMatrix, Document};
use crate::error::{Result, array_of};
use crate::math::pick;
use crate::rng::{Key, Purpose};

/// Share of a new topic that is its document; the rest lets it grow on others.
const OWN: f64 = 0.5;

/// Word-major topics: the columns of `phi`, and a new one for each of `drawn`: the words of that
/// document mixed with those of all, or those of all alone.
pub(super) fn with_topics(
    counts: &CountMatrix,
    phi: &[f64],
    n_old: usize,
    drawn: &[Option<usize>],
) -> Result<Vec<f64>> {
    let n_topics = n_old + drawn.len();
    let mut all = vec![0.0; counts.n_words()];
    for (&word, &count) in counts.words().iter().zip(counts.counts()) {
        all[word as usize] += f64::from(count);
    }
    let n_tokens: f64 = all.iter().sum();
    let mut wider = array_of("topic-word probabilities", counts.n_words() * n_topics, 0.0)?;
    for (word, row) in wider.chunks_exact_mut(n_topics).enumerate() {
        row[..n_old].copy_from_slice(&phi[word * n_old..][..n_old]);
        for (phi, document) in row[n_old..].iter_mut().zip(drawn) {
            *phi = all[word] / n_tokens * if document.is_some() { 1.0 - OWN } else { 1.0 };
        }
    }
    for (topic, document) in (n_old..).zip(drawn) {
        if let Some(document) = document.map(|doc_ix| counts.document(doc_ix)) {
            let share = OWN / document.n_tokens() as f64;
            for (word, count) in document.cells() {
                wider[word as usize * n_topics + topic] += share * f64::from(count);
            }
        }
    }
    Ok(wider)
}

/// ln of the largest probability that any distribution of words gives a document: Σ_w n_w ln(n_w / N).
pub(super) fn ln_most(document: Document<'_>) -> f64 {
    let n_tokens = document.n_tokens() as f64;
    let terms =
        document.counts().iter().map(|&n| f64::from(n) * libm::log(f64::from(n) / n_tokens));
    terms.sum()
}

/// Documents drawn with probability proportional to `weights`, different while there are enough
/// of positive weight.
pub(super) fn draw_documents(weights: &[f64], n: usize, seed: u64) -> Vec<Option<usize>> {
    let mut rng = Key::new(seed, Purpose::Initialise).rng();
    let mut left = weights.to_vec();
    (0..n)
        .map(|_| {
            if !left.iter().any(|&weight| weight > 0.0) {
                left.copy_from_slice(weights);
            }
            let dart = rng.random::<f64>() * left.iter().sum::<f64>();
            let drawn = pick(left.iter().copied(), dart).unwrap_or(0);
            left[drawn] = 0.0;
            Some(drawn)
        })
        .collect()
}

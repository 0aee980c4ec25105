//! Forward and reverse estimates that bracket ln p where nothing is exact (bidirectional Monte
//! Carlo; Grosse, Ghahramani & Adams 2015).

use rayon::prelude::*;

use super::TopicModel;
use super::estimators::runs::Runs;
use super::limits::{check, check_sampler};
use super::sampling::sizing::{Choice, Sizing};
use super::settings::Settings;
use crate::control::{Observer, unless_stopped};
use crate::counts::CountMatrix;
use crate::error::{Error, Result, check_length};
use crate::estimate::Estimate;
use crate::rng::{Key, Purpose};
use crate::urn::{Extent, LocalUrn};

/// Stochastic bounds of ln p of one document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// ln of an unbiased estimate of p: low on average.
    pub lower: Estimate,
    /// Minus ln of an unbiased estimate of 1/p: high on average.
    pub upper: Estimate,
    /// Particles or temperatures of each replicate; forward runs by draws of topic weights take about
    /// as long.
    pub size: usize,
}

/// Brackets ln p of documents whose topics are known draws of their posterior, as they are where
/// the documents are simulated from the model.
///
/// `topics` holds the topics of all tokens, in the order of the documents and of their distinct
/// words. The forward runs of a particle filter or of annealing do not look at them; the reverse
/// runs start from them. `None` for the documents not reached when the observer stopped the work.
///
/// # Errors
/// Topics that disagree with the documents, a method without a reverse, and what
/// [`score`](super::score) refuses.
pub fn bidirectional(
    model: &TopicModel,
    documents: &CountMatrix,
    topics: &[u16],
    settings: &Settings,
    seed: u64,
    observer: &impl Observer,
) -> Result<Vec<Option<Bounds>>> {
    check(model, documents, settings)?;
    for (row, document) in documents.documents().enumerate() {
        let extent = Extent::of(document.counts(), model.urn().n_topics());
        check_sampler(extent, row, settings)?;
    }
    check_length("topics", topics.len(), documents.n_tokens() as usize)?;
    let mut rest = topics;
    let paths: Vec<&[u16]> = documents
        .documents()
        .map(|document| {
            let (own, after) = rest.split_at(document.n_tokens() as usize);
            rest = after;
            own
        })
        .collect();
    let key = Key::new(seed, Purpose::Score);
    (paths.par_iter().enumerate())
        .with_max_len(1)
        .map(|(row, path)| {
            let document = documents.document(row);
            let urn = model.local_urn(document).ok_or(Error::TopicPath { row })?;
            let path = local_topics(&urn, path).ok_or(Error::TopicPath { row })?;
            let key = key.document(document).unit(row as u64);
            unless_stopped(bounds(&urn, &path, settings, key, observer).map(|bounds| {
                observer.advance(1);
                bounds.scaled(model.ln_prefactor(document, settings.query, 0.0))
            }))
        })
        .collect()
}

/// The topics by their place among those of the document; `None` where one cannot produce its word.
fn local_topics(urn: &LocalUrn, topics: &[u16]) -> Option<Vec<u16>> {
    let cells = urn.cells().flat_map(|(q, count)| std::iter::repeat_n(q, count as usize));
    let place = |(q, &topic): (&[f64], &u16)| {
        let place = urn.place(u32::from(topic))?;
        (q[place] > 0.0).then_some(place as u16)
    };
    cells.zip(topics).map(place).collect()
}

fn bounds(
    urn: &LocalUrn,
    path: &[u16],
    settings: &Settings,
    key: Key,
    observer: &impl Observer,
) -> Result<Bounds> {
    if path.is_empty() {
        let exact = Estimate::exact(0.0);
        return Ok(Bounds { lower: exact, upper: exact, size: 0 });
    }
    let mut rng = key.rng();
    let sizing = Sizing { urn, settings, observer };
    let (prepared, Choice { size, .. }) = sizing.ready(&mut rng)?;
    let n = settings.n_replicates;
    let made = sizing.made(&prepared, size);
    let forward = prepared.ln_urn_sums(Runs { n, sizes: &[made] }, &mut rng, observer)?;
    let reverse = prepared.ln_urn_sums_reversed(path, n, size, &mut rng, observer)?;
    Ok(Bounds {
        lower: Estimate::from_replicates(&forward, n * made),
        upper: Estimate::from_inverses(&reverse, n * size),
        size,
    })
}

impl Bounds {
    pub(super) fn scaled(self, ln_factor: f64) -> Self {
        let Bounds { lower, upper, size } = self;
        Bounds { lower: lower.scaled(ln_factor), upper: upper.scaled(ln_factor), size }
    }
}

//! Estimates of ln p from both sides for documents that are simulated from the model (Grosse,
//! Ghahramani & Adams 2015).

use rayon::prelude::*;

use super::annealing::{Plan, ln_weights, ln_weights_reversed};
use super::score::check;
use super::target::Potential;
use super::walk::Walk;
use super::{LogisticNormal, fit};
use crate::control::{Observer, unless_stopped};
use crate::counts::{CountMatrix, Document};
use crate::document::{Bounds, Event, Method, Settings};
use crate::error::{Error, Result, check_length};
use crate::estimate::Estimate;
use crate::rng::{Key, LANES, Purpose, Rng};

/// Steps of the chains at the posterior, from the point that is known to come from it, before they
/// are annealed to the Gaussian: they part there.
const PARTING_STEPS: usize = 32;

/// Brackets ln p of documents whose latent vectors are known draws of their posterior: documents x
/// rank, the z of η = μ + L z. Forward runs do not look at them; chains that are annealed from the
/// posterior to the Gaussian start there.
///
/// # Errors
/// The errors of [`score`](super::score), vectors of another shape, and methods but `auto` and
/// `annealed`.
pub fn bidirectional(
    model: &LogisticNormal,
    documents: &CountMatrix,
    latent: &[f64],
    settings: &Settings,
    seed: u64,
    observer: &impl Observer,
) -> Result<Vec<Option<Bounds>>> {
    check(model, documents, settings)?;
    if settings.method == Method::Exact {
        return Err(Error::NoReverse);
    }
    check_length("latent vectors", latent.len(), model.rank * documents.n_documents())?;
    let key = Key::new(seed, Purpose::Score);
    (0..documents.n_documents())
        .into_par_iter()
        .with_max_len(1)
        .map(|row| {
            let document = documents.document(row);
            let z = &latent[row * model.rank..][..model.rank];
            let mut rng = key.document(document).unit(row as u64).rng();
            let found = bounds(model, document, row, z, settings, &mut rng, observer);
            let is_bag = settings.query.event == Event::Counts;
            let ln_orders = if is_bag { model.vocabularies().ln_orders(document) } else { 0.0 };
            unless_stopped(found.map(|bounds| {
                observer.advance(1);
                bounds.scaled(ln_orders)
            }))
        })
        .collect()
}

fn bounds(
    model: &LogisticNormal,
    document: Document<'_>,
    row: usize,
    z: &[f64],
    settings: &Settings,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Bounds> {
    let local = model.decoder.local(model.n_topics, document).ok_or(Error::TopicPath { row })?;
    let prior = model.prior(document);
    if model.rank == 0 || document.n_tokens() == 0 {
        let exact = Estimate::exact(local.at(model.link, prior.mean));
        return Ok(Bounds { lower: exact, upper: exact, size: 0 });
    }
    let path = fit::path(&local, model.link, &prior, rng);
    let target = Potential::new(&local, model.link, &prior, &path.gaussian);
    let size = match settings.n_samples {
        Some(n) => n,
        None => Plan::from_pilots(&target, &path, rng, observer)?.n_temperatures,
    };
    let start: Vec<_> = path.gaussian.coordinates(z).iter().map(|&u| [u; LANES]).collect();
    let (mut forward, mut reverse) = (Vec::new(), Vec::new());
    for _ in 0..settings.n_replicates.div_ceil(LANES) {
        forward.extend(ln_weights(&target, size, &path, rng, observer)?.0);
        let mut walk = Walk::at(&target, start.clone());
        for _ in 0..PARTING_STEPS {
            walk.step(&target, 1.0, path.angle, rng);
        }
        reverse.extend(ln_weights_reversed(&target, size, &path, walk, rng, observer)?);
    }
    let n_draws = size * forward.len();
    Ok(Bounds {
        lower: Estimate::from_replicates(&forward, n_draws),
        upper: Estimate::from_inverses(&reverse, n_draws),
        size,
    })
}

//! Estimates of ln p from both sides for documents that are simulated from the model (Grosse,
//! Ghahramani & Adams 2015).

use super::annealing::{Plan, ln_weights, ln_weights_reversed};
use super::target::Potential;
use super::walk::Walk;
use super::{LogisticNormal, fit};
use crate::control::Observer;
use crate::counts::Document;
use crate::document::{Bounds, Settings};
use crate::error::Result;
use crate::estimate::Estimate;
use crate::rng::{LANES, Rng};

/// Steps of the chains at the posterior, from the point that is known to come from it, before they
/// are annealed to the Gaussian: they part there.
const PARTING_STEPS: usize = 32;

/// Brackets ln p of a document whose latent vector z, η = μ + L z, is a known draw of its posterior.
/// Forward runs do not look at it; chains that are annealed from the posterior to the Gaussian start
/// there. `None` where the document is impossible.
pub(super) fn bounds(
    model: &LogisticNormal,
    document: Document<'_>,
    z: &[f64],
    settings: &Settings,
    rng: &mut Rng,
    observer: &dyn Observer,
) -> Result<Option<Bounds>> {
    let Some(local) = model.decoder.local(model.n_topics, document) else { return Ok(None) };
    let prior = model.prior(document);
    if model.rank == 0 || document.n_tokens() == 0 {
        return Ok(Some(Bounds::exact(local.at(model.link, prior.mean))));
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
    Ok(Some(Bounds {
        lower: Estimate::from_replicates(&forward, n_draws),
        upper: Estimate::from_inverses(&reverse, n_draws),
        size,
    }))
}

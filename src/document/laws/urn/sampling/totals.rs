//! Estimates of documents whose sum over a corpus is wanted: runs of one length, and their spread.

use crate::control::Observer;
use crate::document::estimators::prepared::{Prepared, n_refining_sweeps};
use crate::document::estimators::runs::Runs;
use crate::document::estimators::sampler::Sampler;
use crate::document::result::{Score, Spread};
use crate::error::Result;
use crate::estimate::Estimate;
use crate::rng::{LANES, Rng};
use crate::urn::LocalUrn;

/// Multiply-adds up to which the document is computed exactly: those of its runs, about.
pub(crate) fn exact_budget(urn: &LocalUrn, n_temperatures: usize) -> f64 {
    let extent = urn.extent();
    let n_sweeps = 1 + n_temperatures + n_refining_sweeps(n_temperatures);
    (LANES * n_sweeps) as f64 * extent.n_tokens as f64 * extent.n_topics as f64
}

/// An estimate by [`LANES`] annealing runs through so many temperatures.
pub(crate) fn estimate(
    urn: &LocalUrn,
    n_temperatures: usize,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Score> {
    let sampler = Sampler::Annealed(None);
    let prepared = Prepared::new(sampler, urn, Some(n_temperatures), rng, observer)?;
    let size = prepared.size_for(n_temperatures);
    let runs = Runs { n: LANES, sizes: &[size] };
    let ln_sums = prepared.ln_urn_sums(runs, rng, observer)?;
    let estimate = Estimate::from_replicates(&ln_sums, size * ln_sums.len());
    let spread = Some(Spread::of(&ln_sums, estimate.ln_value));
    Ok(Score { size, spread, ..Score::of(estimate, prepared.estimator()) })
}

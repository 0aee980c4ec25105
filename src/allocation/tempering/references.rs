//! The reference of tempering, found by a short run.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::paths::PowerPath;
use crate::allocation::kernel::log_risings::ln_urn_rising;
use crate::allocation::kernel::urns::ReferenceUrns;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::Result;
use crate::rng::{Key, LANES};
use crate::temper::anneal;

/// κ of the urns of the cells, before the problem has been looked at.
const FIRST_KAPPA: f64 = 1.0;

/// κ that are compared: half decades.
const KAPPAS: RangeInclusive<i32> = -4..=4;

/// κ beside that of the nearest reference: tokens that are redrawn one by one must still be able to
/// leave those of their cell.
const WIDER: f64 = 10.0;

/// κ of the reference that is, of those with urns of the cells, the nearest to where one annealing pass
/// ends. Hidden nodes that are summed out apart have independent tokens as a reference.
pub(super) fn nearest(problem: &Problem, key: Key, observer: &dyn Observer) -> Result<f64> {
    let piles_up = problem.counts.iter().any(|&n| n > 1);
    if !problem.is_joint() || !piles_up {
        return Ok(f64::INFINITY);
    }
    let first = PowerPath::with(problem, ReferenceUrns::per_cell(FIRST_KAPPA));
    let n_holding = anneal(&first, key, observer)?.occupancies();
    let kappas = KAPPAS.map(|halves| 10_f64.powf(0.5 * f64::from(halves)));
    let fits = kappas.map(|kappa| (ln_reference(problem, &n_holding, kappa), kappa));
    let best = fits.max_by(|(one, _), (other, _)| one.total_cmp(other));
    Ok(WIDER * best.map_or(FIRST_KAPPA, |(_, kappa)| kappa))
}

/// A path from the [`nearest`] urns of the cells.
pub(crate) fn nearest_path<'a>(
    problem: &'a Problem,
    key: Key,
    observer: &dyn Observer,
) -> Result<PowerPath<'a>> {
    Ok(PowerPath::with(problem, ReferenceUrns::per_cell(nearest(problem, key, observer)?)))
}

/// ln u of all lanes of allocations, but for a constant: `n_holding` states of a cell hold n tokens.
fn ln_reference(problem: &Problem, n_holding: &BTreeMap<i32, u64>, kappa: f64) -> f64 {
    let states = |(&n, &times): (&i32, &u64)| times as f64 * ln_urn_rising(kappa, n as u64);
    let whole = kappa * problem.plan.n_states as f64;
    let cells = problem.counts.iter().map(|&n| ln_urn_rising(whole, n));
    n_holding.iter().map(states).sum::<f64>() - LANES as f64 * cells.sum::<f64>()
}

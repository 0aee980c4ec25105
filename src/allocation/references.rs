//! References of tempering: the urns of the cells, found by a short run, and one urn of all tokens where those
//! lead nowhere.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::kernel::risings::{Urns, ln_urn_rising};
use super::kernel::tempered::Allocated;
use super::model::problem::Problem;
use super::paths::Allocations;
use crate::control::{Observer, Unseen, unless_stopped};
use crate::error::Result;
use crate::rng::{Key, LANES};
use crate::temper::{Options, Outcome, anneal, temper, temper_and_draw};

/// κ of the urns of the cells, before the problem has been looked at.
const FIRST_KAPPA: f64 = 1.0;

/// κ that are compared: half decades.
const KAPPAS: RangeInclusive<i32> = -4..=4;

/// κ beside that of the nearest reference: tokens that are redrawn one by one must still be able to
/// leave those of their cell.
const WIDER: f64 = 10.0;

/// One urn of all tokens, most of which are in one state under it.
const SHARED: Urns = Urns { kappa: 0.01, is_shared: true };

/// Scans of the longest round by which the shared urn is tried.
const TRIAL_SCANS: usize = 128;

/// Standard error of the difference, in nats, up to which two paths that agree prove each other.
const CLOSE: f64 = 2.0;

/// κ of the reference that is, of those with urns of the cells, the nearest to where one annealing pass
/// ends. Hidden nodes that are summed out apart have independent tokens as a reference.
///
/// # Errors
/// Those of the annealing pass.
pub(super) fn nearest(problem: &Problem, key: Key, observer: &impl Observer) -> Result<f64> {
    let piles_up = problem.counts.iter().any(|&n| n > 1);
    if problem.plan.cliques.len() > 1 || !piles_up {
        return Ok(f64::INFINITY);
    }
    let first = Allocations::with(problem, Urns::of_cells(FIRST_KAPPA));
    let n_holding = anneal(&first, key, observer)?.chains.occupancies();
    let kappas = KAPPAS.map(|halves| 10_f64.powf(0.5 * f64::from(halves)));
    let fits = kappas.map(|kappa| (ln_reference(problem, &n_holding, kappa), kappa));
    let best = fits.max_by(|(one, _), (other, _)| one.total_cmp(other));
    Ok(WIDER * best.map_or(FIRST_KAPPA, |(_, kappa)| kappa))
}

/// A path from the [`nearest`] urns of the cells.
///
/// # Errors
/// Those of [`nearest`].
pub(super) fn nearest_path<'a>(
    problem: &'a Problem,
    key: Key,
    observer: &impl Observer,
) -> Result<Allocations<'a>> {
    Ok(Allocations::with(problem, Urns::of_cells(nearest(problem, key, observer)?)))
}

/// ln u of all lanes of allocations, but for a constant: `n_holding` states of a cell hold n tokens.
fn ln_reference(problem: &Problem, n_holding: &BTreeMap<i32, u64>, kappa: f64) -> f64 {
    let states = |(&n, &times): (&i32, &u64)| times as f64 * ln_urn_rising(kappa, n as u64);
    let whole = kappa * problem.plan.n_states as f64;
    let cells = problem.counts.iter().map(|&n| ln_urn_rising(whole, n));
    n_holding.iter().map(states).sum::<f64>() - LANES as f64 * cells.sum::<f64>()
}

/// What tempering has found, and its draws.
pub(super) type Tempering = (Outcome, Vec<Vec<Allocated>>);

/// What tempering from the urns of the cells has found, or what tempering from one urn of all tokens does,
/// where the first has not settled and is not above the second.
///
/// The urns of the cells spread tokens over all states. Where the law has nearly all of them in few states,
/// as it does under small concentrations, a wall stands between the two, which few chains pass; from an
/// urn of all tokens there is none. Its chains, in turn, do not meet states that hold many tokens each: it is
/// taken only where it comes round, and settles only where the other path agrees.
///
/// # Errors
/// Those of the runs, but for a stop, after which the first is what there is.
pub(super) fn or_shared(
    problem: &Problem,
    of_cells: Tempering,
    options: &Options,
    n_kept: usize,
    key: Key,
    observer: &impl Observer,
) -> Result<Tempering> {
    let outcome = &of_cells.0;
    if outcome.converged || outcome.stopped || problem.plan.cliques.len() > 1 {
        return Ok(of_cells);
    }
    let found = unless_stopped(by_shared_urn(problem, options, n_kept, key, &Unseen(observer)))?;
    let Some(found) = found else {
        let stopped = Outcome { stopped: true, ..of_cells.0 };
        return Ok((stopped, of_cells.1));
    };
    Ok(match found {
        Some((shared, draws)) => match preferred(outcome, shared) {
            Some(shared) => (shared, draws),
            None => of_cells,
        },
        None => of_cells,
    })
}

/// The second of two paths, unless it is clearly below the first, which has not settled.
fn preferred(first: &Outcome, mut second: Outcome) -> Option<Outcome> {
    let gap = first.ln_value() - second.ln_value();
    let error = first.std_error().hypot(second.std_error());
    if gap > 2.0 * error {
        return None;
    }
    let agrees = error <= CLOSE && gap.abs() <= 2.0 * error;
    second.converged &= agrees;
    let above = if agrees { gap } else { gap + first.std_error() };
    second.doubt = above.max(0.0);
    Some(second)
}

/// Tempering from one urn of all tokens, if chains come round on its path.
fn by_shared_urn(
    problem: &Problem,
    options: &Options,
    n_kept: usize,
    key: Key,
    observer: &impl Observer,
) -> Result<Option<Tempering>> {
    let pass = |urns: Urns, key: Key| {
        let ln_values = anneal(&Allocations::with(problem, urns), key, observer)?.ln_values;
        Ok(ln_values.iter().sum::<f64>() / ln_values.len() as f64)
    };
    if pass(SHARED, key.unit(0))? < pass(Urns::of_cells(FIRST_KAPPA), key.unit(1))? {
        return Ok(None);
    }
    let shared = Allocations::with(problem, SHARED);
    let trial_scans = options.max_scans.map_or(TRIAL_SCANS, |most| most.min(TRIAL_SCANS));
    let trial = Options { max_scans: Some(trial_scans), ..*options };
    if !temper(&shared, &trial, key.unit(2), observer)?.has_come_round() {
        return Ok(None);
    }
    let found = temper_and_draw(&shared, options, n_kept, key.unit(3), observer)?;
    observer.check_stop()?;
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temper::Round;

    /// An outcome of four replicates with such a mean and standard error.
    fn outcome(ln_value: f64, error: f64, converged: bool) -> Outcome {
        let apart = error * 3.0_f64.sqrt();
        let ln_values = [1.0, -1.0, 1.0, -1.0].map(|sign| ln_value + sign * apart).to_vec();
        let sides = [ln_value; 2];
        let round = Round { n_scans: 128, ln_values, sides, n_trips: 40, barrier: 1.0 };
        Outcome { rounds: vec![round], converged, ..Outcome::default() }
    }

    #[test]
    fn another_path_is_taken_unless_it_is_clearly_below() {
        let taken = |first: f64, error: f64| {
            preferred(&outcome(first, error, false), outcome(-100.0, 0.1, true))
                .map(|found| (found.converged, found.doubt))
        };
        assert_eq!(taken(-90.0, 1.0), None);
        let near = |found: Option<(bool, f64)>, converged: bool, doubt: f64| {
            let (is_converged, found) = found.unwrap();
            assert_eq!(is_converged, converged);
            assert!((found - doubt).abs() < 1e-9, "{found}");
        };
        near(taken(-99.0, 1.0), true, 1.0);
        near(taken(-101.0, 1.0), true, 0.0);
        // Too rough to prove anything: its error is in doubt.
        near(taken(-95.0, 10.0), false, 15.0);
        near(taken(-130.0, 10.0), false, 0.0);
        near(taken(-110.0, 1.0), false, 0.0);
        let unsettled = outcome(-100.0, 0.1, false);
        assert!(!preferred(&outcome(-100.0, 0.5, false), unsettled).unwrap().converged);
    }

    /// A table whose tokens are all in one state of ten: urns of the cells do not lead there.
    #[test]
    fn one_urn_leads_to_few_states() {
        use crate::allocation::model::network::{Network, Prior};
        use crate::counts::CountTensor;
        use crate::rng::Purpose;

        let prior = Prior { concentration: 1e-3, tables: None };
        let parents = vec![vec![2], vec![2], vec![]];
        let network = Network::new(vec![8, 8, 10], parents, vec![0, 1], &[], prior).unwrap();
        let cells: Vec<i64> =
            (0..8).flat_map(|row| (0..8).flat_map(move |column| [row, column])).collect();
        let counts: Vec<i64> = (0..64).map(|cell| 1 + cell % 5).collect();
        let data = CountTensor::new(vec![8, 8], &cells, &counts).unwrap();
        let problem = Problem::new(&network, &data, None).unwrap();
        let options = Options {
            n_replicates: 4,
            target_std_error: 0.3,
            min_scans: 64,
            max_scans: Some(64),
            max_chains: 64,
        };
        let key = Key::new(1, Purpose::Score);
        let first = Outcome {
            rounds: vec![outcome(-1e4, 1.0, false).rounds.remove(0)],
            ..Outcome::default()
        };
        let found = or_shared(&problem, (first, Vec::new()), &options, 5, key, &()).unwrap();
        let (shared, draws) = found;
        assert!(shared.n_trips() > 20, "{}", shared.n_trips());
        assert!(draws.len() == 4 && draws.iter().all(|states| states.len() == 5));
        // Most of the sum: all tokens in one of the ten states.
        let one = draws[0][0].ln_law.max(draws[1][0].ln_law) + 10.0_f64.ln();
        assert!(
            (shared.ln_value() - one).abs() < 3.0 * shared.std_error().max(0.3),
            "{one} {shared:?}"
        );
    }
}

//! A second path of tempering, from one urn of all tokens, where the first does not come round.
//!
//! Urns of the cells spread tokens over all states. Where the law has nearly all of them in few states, as it
//! does under small concentrations, a wall stands between the two, which few chains pass; from one urn of
//! all tokens there is none. Chains from there, in turn, do not meet states that hold many tokens each, and come
//! round without them: the second path is taken only where the first has not come round and is not clearly
//! above it, and never counts as settled. Two topics of pairs of letters have both paths agree, ten nats low.

use super::paths::Allocations;
use crate::allocation::kernel::tempered::Allocated;
use crate::allocation::kernel::urns::Urns;
use crate::allocation::model::problem::Problem;
use crate::control::{Observer, Unseen, unless_stopped};
use crate::error::Result;
use crate::rng::Key;
use crate::temper::{Options, Outcome, anneal, temper, temper_and_draw};

/// One urn of all tokens, most of which are in one state under it.
const SHARED: Urns = Urns { kappa: 0.01, is_shared: true };

/// κ of the urns of the cells, whose annealing pass is compared.
const KAPPA: f64 = 1.0;

/// Scans of the longest round by which the shared urn is tried.
const TRIAL_SCANS: usize = 128;

/// Outcome of tempering, and draws of each replicate.
pub(super) type Tempering = (Outcome, Vec<Vec<Allocated>>);

/// The first path, or the second where it is [`preferred`].
///
/// # Errors
/// Those of the runs, but for a stop, after which the first path is all there is.
pub(super) fn or_second(
    problem: &Problem,
    first: Tempering,
    options: &Options,
    n_kept: usize,
    key: Key,
    observer: &impl Observer,
) -> Result<Tempering> {
    let outcome = &first.0;
    let has_ended = outcome.converged || outcome.stopped || outcome.has_come_round();
    if has_ended || !problem.is_joint() {
        return Ok(first);
    }
    let second = by_shared_urn(problem, options, n_kept, key, &Unseen(observer));
    let Some(second) = unless_stopped(second)? else {
        return Ok((Outcome { stopped: true, ..first.0 }, first.1));
    };
    let preferred =
        second.and_then(|(second, draws)| preferred(outcome, second).map(|second| (second, draws)));
    Ok(preferred.unwrap_or(first))
}

/// The second of two outcomes, if it is clearly above the first, or agrees with it and is known better.
fn preferred(first: &Outcome, mut second: Outcome) -> Option<Outcome> {
    let gap = first.ln_value() - second.ln_value();
    let (of_first, of_second) = (first.std_error(), second.std_error());
    let error = of_first.hypot(of_second);
    let is_below = gap < -2.0 * error;
    if !is_below && (gap > 2.0 * error || of_first <= of_second) {
        return None;
    }
    // A first path that is clearly below does not confirm the second: half their distance is open.
    second.left_open = if is_below { -0.5 * gap } else { gap.max(0.0) + of_first };
    second.converged = false;
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
    if pass(SHARED, key.unit(0))? < pass(Urns::of_cells(KAPPA), key.unit(1))? {
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
    use crate::allocation::model::examples::{MIXTURE, table_under};
    use crate::control::Stop;
    use crate::rng::Purpose;
    use crate::temper::Round;

    /// An outcome of four replicates with such a mean and standard error.
    fn outcome(ln_value: f64, error: f64, n_trips: u64) -> Outcome {
        let apart = error * 3.0_f64.sqrt();
        let ln_values = [1.0, -1.0, 1.0, -1.0].map(|sign| ln_value + sign * apart).to_vec();
        let round = Round { n_scans: 128, ln_values, sides: [ln_value; 2], n_trips, barrier: 1.0 };
        Outcome { rounds: vec![round], ..Outcome::default() }
    }

    /// `left_open` of a second path of -100 ± 0.1, if it is taken in place of such a first one.
    fn left_open(first: f64, error: f64) -> Option<f64> {
        let second = Outcome { converged: true, ..outcome(-100.0, 0.1, 40) };
        let found = preferred(&outcome(first, error, 0), second)?;
        assert!(!found.converged);
        let own = found.std_error().powi(2) - found.left_open.powi(2);
        assert!((own - 0.01).abs() < 1e-9, "{own}");
        Some((1e9 * found.left_open).round() / 1e9)
    }

    #[test]
    fn the_second_path_is_taken_where_it_is_above_or_known_better() {
        // Clearly below the first; as high, and not known better.
        assert_eq!(left_open(-90.0, 1.0), None);
        assert_eq!(left_open(-100.0, 0.05), None);
        // Both agree: what the first is above it, and the error of that, is in the error.
        assert_eq!(left_open(-101.0, 1.0), Some(1.0));
        assert_eq!(left_open(-99.0, 1.0), Some(2.0));
        assert_eq!(left_open(-95.0, 10.0), Some(15.0));
        // The first has missed much, or the second has too much.
        assert_eq!(left_open(-130.0, 10.0), Some(15.0));
    }

    /// 8 x 8 cells of 1 to 5 tokens, ten topics: under a small concentration all tokens are in one of them.
    fn of_one_topic() -> Problem {
        let cells: Vec<i64> = (0..64).flat_map(|cell| [cell / 8, cell % 8]).collect();
        let counts: Vec<i64> = (0..64).map(|cell| 1 + cell % 5).collect();
        table_under((&[8, 8, 10], MIXTURE), &[], 1e-3, (&cells, &counts))
    }

    const OPTIONS: Options = Options {
        n_replicates: 4,
        target_std_error: 0.3,
        min_scans: 64,
        max_scans: Some(64),
        max_chains: 64,
    };

    fn found(first: Outcome, observer: &impl Observer) -> Tempering {
        let key = Key::new(1, Purpose::Score);
        or_second(&of_one_topic(), (first, Vec::new()), &OPTIONS, 5, key, observer).unwrap()
    }

    #[test]
    fn one_urn_leads_to_few_states() {
        let (second, draws) = found(outcome(-1e4, 1.0, 0), &());
        assert!(draws.len() == 4 && draws.iter().all(|states| states.len() == 5));
        // Nearly all of the sum: all tokens in one of the ten topics.
        let of_one = |draw: &&Allocated| draw.states.iter().all(|&state| state == draw.states[0]);
        let one = draws.iter().flatten().find(of_one).unwrap();
        let gap = second.ln_value() - one.ln_law - 10.0_f64.ln();
        let error = Outcome { left_open: 0.0, ..second }.std_error();
        assert!(gap.abs() < 4.0 * error && error < 0.2, "{gap} {error}");
    }

    #[test]
    fn a_first_path_that_comes_round_or_is_stopped_stays() {
        let around = outcome(-1e4, 1.0, 40);
        assert_eq!(found(around.clone(), &()).0, around);
        let (first, stop) = (outcome(-1e4, 1.0, 0), Stop::default());
        stop.raise();
        assert_eq!(found(first.clone(), &stop).0, Outcome { stopped: true, ..first });
    }
}

//! Tensors with cells that were not observed: what their enumeration may cost.

use polyabayes::Error;
use polyabayes::allocation::Incomplete;

use crate::common::looks::Looks;
use crate::common::networks::{nmf, tensor};

const BUDGET: f64 = 1e9;

/// Totals that go on for long are refused while few of them are done.
#[test]
fn totals_beyond_the_budget_are_foreseen() {
    let data = tensor(vec![2, 2], &serde_json::json!([[[0, 1], 3], [[1, 0], 3]]));
    let missing = [0, 0, 1, 1];
    let incomplete = Incomplete::new(&nmf(&[2, 2], 2, 4.0), &data, &missing, 0.01, None).unwrap();
    let error = incomplete.enumerate(None, BUDGET, &()).unwrap_err();
    let Error::EnumerationBudget { operations, bytes, .. } = error else { panic!("{error}") };
    assert!(operations > BUDGET && operations < 10.0 * BUDGET, "{operations:e}");
    // They would take gigabytes.
    assert!(bytes < 1e8, "{bytes:e}");
    let few = incomplete.enumerate(Some(16), BUDGET, &()).unwrap();
    assert_eq!(few.ln_joint.len(), 11);
}

/// The pilot that finds how many tokens are missing ends where they pass the budget.
#[test]
fn the_budget_bounds_what_is_done_to_foresee_its_end() {
    let size = 30;
    let data = tensor(vec![size, size], &serde_json::json!([[[0, 1], 1], [[1, 0], 1]]));
    let cells = (0..size as u32).flat_map(|i| (0..size as u32).map(move |j| [i, j]));
    let missing: Vec<u32> =
        cells.filter(|cell| *cell != [0, 1] && *cell != [1, 0]).flatten().collect();
    let incomplete = Incomplete::new(&nmf(&[size, size], 2, 1.0), &data, &missing, 1e-3, None);
    let looks = Looks::stopping_after(usize::MAX);
    let error = incomplete.unwrap().enumerate(None, 1e7, &looks).unwrap_err();
    assert!(matches!(error, Error::EnumerationBudget { .. }), "{error}");
    // A group of particles looks once a token, of which some thousands are expected.
    assert!(looks.count() < 2_000);
}

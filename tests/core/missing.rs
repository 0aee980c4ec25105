//! Tensors with cells that were not observed, against exact values.

use polyabayes::Error;
use polyabayes::allocation::{
    Ascent, Completion, Incomplete, Limits, MissingAscent, Network, Prior,
};
use polyabayes::counts::CountTensor;

use crate::common::looks::Looks;
use crate::common::networks::{nmf, tensor};

const BUDGET: f64 = 1e9;

fn exact(incomplete: &Incomplete, max_total: Option<u64>) -> Completion {
    incomplete.enumerate(max_total, BUDGET, &()).unwrap()
}

/// Networks, data, missing cells and rates that end at different totals.
fn whole_series() -> Vec<(Network, CountTensor, Vec<u32>, f64)> {
    let one = || tensor(vec![2, 2], &serde_json::json!([[[0, 0], 5], [[0, 1], 3], [[1, 1], 1]]));
    let prior = Prior { concentration: 2.0, tables: None };
    let independent =
        Network::new(vec![2, 2], vec![vec![], vec![]], vec![0, 1], &[], prior).unwrap();
    vec![
        (nmf(&[2, 2], 1, 1.0), one(), vec![1, 0], 0.5),
        (nmf(&[2, 2], 2, 4.0), one(), vec![1, 0], 0.4),
        (independent, one(), vec![1, 0], 0.05),
        (nmf(&[2, 2], 1, 0.1), one(), vec![1, 0], 0.02),
        (nmf(&[3, 2], 1, 1.0), one_row(), vec![1, 0, 1, 1, 2, 0], 0.5),
    ]
}

fn one_row() -> CountTensor {
    tensor(vec![3, 2], &serde_json::json!([[[0, 0], 3], [[0, 1], 2]]))
}

#[test]
fn totals_that_are_left_out_have_no_more_than_the_remainder() {
    for (number, (network, data, missing, rate)) in whole_series().into_iter().enumerate() {
        let incomplete = Incomplete::new(&network, &data, &missing, rate, None).unwrap();
        let whole = exact(&incomplete, None);
        let ln_evidence = whole.evidence.ln_value;
        assert!(whole.ln_remainder < ln_evidence + 1e-9_f64.ln() + 1e-6, "{number}");
        let n_totals = whole.ln_joint.len() as u64;
        for n_missing in [0, 1, 2, 5, 10, 20, 40].into_iter().filter(|&n| n < n_totals / 2) {
            let part = exact(&incomplete, Some(data.total() + n_missing));
            let beyond = ln_evidence.exp() - part.evidence.ln_value.exp();
            let (left, bound) = (part.ln_remainder.exp(), part.ln_remainder_bound.exp());
            assert!(beyond < bound * (1.0 + 1e-9), "{number} {n_missing}: {beyond} {bound}");
            assert!(beyond < left * (1.0 + 1e-6), "{number} {n_missing}: {beyond} {left}");
        }
    }
}

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
    let looks = Looks::default();
    let error = incomplete.unwrap().enumerate(None, 1e7, &looks).unwrap_err();
    assert!(matches!(error, Error::EnumerationBudget { .. }), "{error}");
    // A group of particles looks once a token, of which some thousands are expected.
    assert!(looks.0.into_inner() < 2_000);
}

fn bounds(network: &Network, data: &CountTensor, missing: &[u32], rate: f64) -> MissingAscent {
    let limits = Limits { max_iter: 500, tolerance: -1.0, n_restarts: 3 };
    let incomplete = Incomplete::new(network, data, missing, rate, None).unwrap();
    incomplete.ascend(Ascent::Variational, limits, 7, &()).unwrap()
}

/// Nothing is lost by taking intensity and tables apart where the prior leaves no doubt of them.
/// The intensity of a vanishing prior without a token is below all doubles, and its ln is not.
#[test]
fn the_bound_of_next_to_nothing_is_finite() {
    let (data, missing) = (CountTensor::new(vec![2, 2], &[], &[]).unwrap(), [1, 1]);
    for concentration in [1e-3, 1e-30] {
        let network = nmf(&[2, 2], 2, concentration);
        let found = bounds(&network, &data, &missing, 1.0);
        let bound = found.decomposition.trace[found.decomposition.trace.len() - 1];
        let incomplete = Incomplete::new(&network, &data, &missing, 1.0, None).unwrap();
        let evidence = exact(&incomplete, None).evidence.ln_value;
        assert!(bound.is_finite() && bound < evidence + 1e-10, "{bound} {evidence}");
    }
}

#[test]
fn the_bound_is_the_evidence_of_a_sure_prior() {
    for (hidden, missing) in [(1, vec![1, 0]), (1, vec![1, 0, 1, 1, 2, 0])] {
        let network = nmf(&[3, 2], hidden, 1e6);
        let found = bounds(&network, &one_row(), &missing, 1e5);
        let incomplete = Incomplete::new(&network, &one_row(), &missing, 1e5, None).unwrap();
        let exact = exact(&incomplete, Some(40));
        let bound = found.decomposition.trace[found.decomposition.trace.len() - 1];
        assert!((bound - exact.evidence.ln_value).abs() < 1e-3, "{bound} {:?}", exact.evidence);
        for (expected, (true_value, _)) in found.expected.iter().zip(exact.expected) {
            assert!((expected - true_value).abs() < 1e-3, "{expected} {true_value}");
        }
    }
}

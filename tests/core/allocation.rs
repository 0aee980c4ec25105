//! The allocation model against exact values and against its own identities.

use polyabayes::allocation::{
    EvidenceMethod, EvidenceSampler, EvidenceSettings, Filter, Network, Prior, Problem, TokenOrder,
    best_particle, evidence,
};
use polyabayes::counts::CountTensor;
use polyabayes::math::Resampling;
use polyabayes::{Error, Estimate, Result};

use crate::common::networks::{network, nmf, read, shape, tensor};

fn exactly(budget: f64) -> EvidenceSettings {
    EvidenceSettings { budget: Some(budget), ..EvidenceSettings::new(EvidenceMethod::Exact) }
}

fn smc(n_particles: usize) -> EvidenceSettings {
    EvidenceSettings {
        n_particles: Some(n_particles),
        ..EvidenceSettings::new(EvidenceMethod::Sample(EvidenceSampler::Smc))
    }
}

fn tempered(n_scans: usize) -> EvidenceSettings {
    let settings = EvidenceSettings::new(EvidenceMethod::Sample(EvidenceSampler::Tempered));
    EvidenceSettings { n_samples: Some(n_scans), target_std_error: Some(1e-9), ..settings }
}

fn ln_probability(
    problem: &Problem,
    settings: &EvidenceSettings,
    n_replicates: usize,
    seed: u64,
) -> Result<Estimate> {
    let settings = EvidenceSettings { n_replicates: Some(n_replicates), ..settings.clone() };
    evidence(problem, &settings, seed, &()).map(|found| found.estimate)
}

fn dense(shape: &[usize], counts: &[i64]) -> CountTensor {
    let (mut coordinates, mut positive) = (Vec::new(), Vec::new());
    for (cell, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let mut index: Vec<i64> = Vec::new();
        let mut rest = cell;
        for &size in shape.iter().rev() {
            index.insert(0, (rest % size) as i64);
            rest /= size;
        }
        coordinates.extend(index);
        positive.push(count);
    }
    CountTensor::new(shape.to_vec(), &coordinates, &positive).unwrap()
}

#[test]
fn the_order_of_elimination_changes_nothing() {
    for case in read("allocation.json") {
        let (network, name) = (network(&case), &case["name"]);
        let data = tensor(shape(&network), &case["cells"]);
        let [rate, ln_evidence] = ["rate", "log_evidence"].map(|key| case[key].as_f64().unwrap());
        let is_hidden = |node: &usize| !network.axes().contains(node);
        let hidden: Vec<usize> = (0..network.sizes().len()).filter(is_hidden).collect();
        let backwards: Vec<usize> = hidden.iter().rev().copied().collect();
        for order in [hidden, backwards] {
            let problem = Problem::new(&network, &data, Some(&order)).unwrap();
            let value = ln_probability(&problem, &exactly(1e8), 2, 0).unwrap().ln_value;
            let value = value + problem.ln_total(rate);
            assert!((value - ln_evidence).abs() < 1e-11, "{name}: {value}");
            let estimate = ln_probability(&problem, &tempered(256), 4, 9).unwrap();
            let off = estimate.ln_value + problem.ln_total(rate) - ln_evidence;
            assert!(off.abs() < 4.0 * estimate.std_error + 1e-11, "{name}: {off}");
        }
    }
}

/// All tokens in one cell: its probability given the total is 1, and how they part between hidden
/// values is not known at all.
#[test]
fn filters_do_not_miss_how_a_heavy_cell_may_part() {
    let problem = Problem::new(&nmf(&[1, 1], 2, 1.0), &dense(&[1, 1], &[500]), None).unwrap();
    for seed in 0..3 {
        let found = ln_probability(&problem, &smc(1000), 4, seed).unwrap();
        let (off, error) = (found.ln_value.abs(), found.std_error);
        assert!(off < 4.0 * error, "{off} {error}");
        assert!(error < 0.05, "{error}");
    }
}

/// Counts beyond one byte and beyond two, beside small ones.
#[test]
fn particles_count_every_token() {
    let counts = [200, 100, 3, 66_000, 8_000, 1];
    let (network, data) = (nmf(&[2, 3], 3, 1.0), dense(&[2, 3], &counts));
    let (resampling, order) = (Resampling::Systematic, TokenOrder::Random);
    let filter = Filter { n_particles: 64, threshold: 0.5, resampling, order, n_sweeps: 0 };
    let found = best_particle(&network, &data, None, &filter, 0, &()).unwrap();
    for (table, totals) in found.counts.iter().zip([vec![303, 74_001], vec![66_200, 8_100, 4]]) {
        let sums = table.chunks_exact(3).map(|row| row.iter().sum::<f64>());
        assert_eq!(sums.collect::<Vec<_>>(), totals.into_iter().map(f64::from).collect::<Vec<_>>());
        assert!(table.iter().all(|count| *count >= 0.0));
    }
    let whole: f64 = found.counts[2].iter().sum();
    assert!((whole - 74_304.0).abs() < 0.5, "{whole}");
}

/// A token adds several times to a table that nodes share: no count may pass 32 bits.
#[test]
fn totals_that_tied_counts_cannot_hold_are_refused() {
    let prior = Prior { concentration: 1.0, tables: None };
    let parents = vec![vec![2], vec![2], vec![]];
    let tied = Network::new(vec![2, 2, 2], parents, vec![0, 1], &[vec![0, 1]], prior).unwrap();
    let data = dense(&[2, 2], &[1_200_000_000, 0, 0, 1]);
    let problem = Problem::new(&tied, &data, None).unwrap();
    let refused = ln_probability(&problem, &smc(16), 1, 0).unwrap_err();
    let Error::TooManyTokens { most, .. } = refused else { panic!("{refused}") };
    assert_eq!(most, i32::MAX as u64 / 2);
}

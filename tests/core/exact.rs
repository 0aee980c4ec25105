//! Exact likelihoods: against exact rational arithmetic, against each other, against identities.

use crate::common::{self, networks::read};
use polyabayes::control::Stop;
use polyabayes::document::Law;
use polyabayes::document::exact::{Algorithm, ExactPlan, box_recursion, lattice, power_series};
use polyabayes::rng::Rng;
use polyabayes::urn::{LocalUrn, Urn};
use polyabayes::{CountMatrix, Error, Event, Query};
use rand::{RngExt, SeedableRng};

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-11 * expected.abs().max(1.0)
}

#[test]
fn all_algorithms_agree_with_exact_rational_arithmetic() {
    let (mut boxed, mut in_series) = (0, 0);
    for case in read("documents.json") {
        let (model, given_length, documents) = common::model_and_document(&case);
        let query = Query { event: Event::Sequence, given_length };
        let factor = model.ln_prefactors(&documents, &[0], query, &()).unwrap()[0];
        let expected = case["log_sequence"].as_f64().unwrap() - factor;
        let urn = LocalUrn::new(model.urn(), documents.document(0)).unwrap();
        let (found, name) = (lattice::ln_urn_sum(&urn, &()).unwrap(), &case["name"]);
        assert!(close(found, expected), "{name} by lattice: {found} {expected}");
        if power_series::cost(&urn).operations < 1e7 {
            in_series += 1;
            let found = power_series::ln_urn_sum(&urn, &()).unwrap();
            assert!(close(found, expected), "{name} by series: {found} {expected}");
        }
        if box_recursion::cost(&urn).operations < 1e7 {
            boxed += 1;
            let found = box_recursion::ln_urn_sum(&urn, &()).unwrap();
            assert!(close(found, expected), "{name} by box: {found} {expected}");
        }
    }
    assert!(boxed > 40 && in_series > 1, "{boxed} {in_series}");
}

/// A document of these counts under topics drawn at random, sharp where `sharpness` is large.
fn random_urn(counts: &[u32], n_topics: usize, a: f64, sharpness: f64, seed: u64) -> LocalUrn {
    let mut rng = Rng::seed_from_u64(seed);
    let a: Vec<f64> = (0..n_topics).map(|_| a * (0.5 + rng.random::<f64>())).collect();
    let q = (0..n_topics * counts.len()).map(|_| rng.random::<f64>().powf(sharpness)).collect();
    let urn = Urn::new(a, q).unwrap();
    let rows: Vec<_> = (0..).zip(counts).map(|(word, &y)| (urn.weights(word), y)).collect();
    LocalUrn::from_rows(urn.pseudo_counts(), &rows).unwrap()
}

#[test]
fn words_of_equal_weights_are_one() {
    let (one, other): ([f64; 3], [f64; 3]) = ([0.2, 0.5, 1.0], [0.7, 0.1, 0.3]);
    let rows = |n: [u32; 4]| [(&one[..], n[0]), (&other, n[1]), (&one, n[2]), (&other, n[3])];
    let urn = |n| LocalUrn::from_rows(&[0.3, 0.02, 1.1], &rows(n)).unwrap();
    let (spread, merged) = (urn([3, 1, 4, 2]), urn([7, 3, 0, 0]));
    assert_eq!(spread.with_equal_words_merged().counts(), [7, 3]);
    let found = ExactPlan::new(&spread).run(&spread, &()).unwrap();
    assert!(close(found, lattice::ln_urn_sum(&spread, &()).unwrap()));
    assert!(close(found, lattice::ln_urn_sum(&merged, &()).unwrap()));
    assert_eq!(urn([u32::MAX, 1, 1, 1]).with_equal_words_merged().n_distinct(), 4);
}

#[test]
fn power_series_agree_with_the_box() {
    let shapes: [&[u32]; 9] = [
        &[1; 4],
        &[1; 5],
        &[1; 11],
        &[1; 13],
        &[1, 1, 1, 4],
        &[2, 1, 2, 1, 1, 3, 1],
        &[1, 1, 1, 2, 2, 2, 3],
        &[4, 1, 3, 1, 1, 1, 2, 1],
        &[1, 1, 1, 1, 1, 1, 1, 2, 2, 3],
    ];
    let mut largest = 0.0f64;
    for counts in shapes {
        for (index, &(a, sharpness)) in
            [(0.01, 40.0), (0.1, 10.0), (0.1, 1.0), (2.0, 5.0), (50.0, 1.0)].iter().enumerate()
        {
            for n_topics in [1, 3, 20, 150] {
                let urn = random_urn(counts, n_topics, a, sharpness, index as u64);
                assert!(power_series::cost(&urn).operations.is_finite());
                let expected = box_recursion::ln_urn_sum(&urn, &()).unwrap();
                let found = power_series::ln_urn_sum(&urn, &()).unwrap();
                let error = (found - expected).abs();
                assert!(error <= 1e-11, "{counts:?} {a} {sharpness} {n_topics}: {error:e}");
                largest = largest.max(error);
            }
        }
    }
    assert!(largest > 0.0);
}

#[test]
fn power_series_agree_with_the_lattice_on_long_documents() {
    for (counts, n_topics) in
        [(vec![1; 20], 3), (vec![1; 18], 4), ([[1; 14], [2; 14]].concat()[9..19].to_vec(), 3)]
    {
        for (a, sharpness) in [(0.005, 30.0), (0.1, 5.0), (5.0, 2.0)] {
            let urn = random_urn(&counts, n_topics, a, sharpness, 7);
            let expected = lattice::ln_urn_sum(&urn, &()).unwrap();
            let found = power_series::ln_urn_sum(&urn, &()).unwrap();
            assert!((found - expected).abs() <= 1e-11, "{counts:?} {a}: {found} {expected}");
        }
    }
}

#[test]
fn documents_that_power_series_cannot_hold_are_left_to_the_others() {
    let infinite = |urn: &LocalUrn| power_series::cost(urn).operations.is_infinite();
    // Two words of count one; a count of five; pseudo-counts that leave too few digits; no memory.
    assert!(infinite(&random_urn(&[1, 1, 2, 2, 2], 3, 0.1, 1.0, 1)));
    assert!(infinite(&random_urn(&[1, 1, 1, 1, 5], 3, 0.1, 1.0, 1)));
    assert!(infinite(&random_urn(&[1; 8], 3, 1e-5, 1.0, 1)));
    assert!(infinite(&random_urn(&[1; 8], 3, 1e80, 1.0, 1)));
    assert!(power_series::cost(&random_urn(&[1; 30], 3, 0.1, 1.0, 1)).bytes > 1e9);
    let urn = random_urn(&[1; 24], 100, 0.1, 10.0, 1);
    let plan = ExactPlan::new(&urn);
    assert_eq!(plan.algorithm, Algorithm::PowerSeries);
    assert!(plan.within(1e10), "{plan:?}");
}

#[test]
fn power_series_stop_when_asked_to() {
    let stop = Stop::default();
    stop.raise();
    let urn = random_urn(&[1; 18], 30, 0.1, 10.0, 1);
    assert_eq!(power_series::ln_urn_sum(&urn, &stop), Err(Error::Stopped));
}

/// A state that would underflow plain doubles comes back: the first half of the document
/// slightly prefers topic 0, the second half excludes it.
#[test]
fn long_documents_keep_states_that_doubles_would_lose() {
    let n = 2_500;
    let documents = CountMatrix::from_dense(&[vec![n, n]]).unwrap();
    // Word 0 comes from topics 0 and 1 alike but for a factor of 2, word 1 from topic 1 almost
    // always: nearly all of Z has every token in topic 1.
    let urn = Urn::new(vec![0.5, 0.5], vec![1.0, 0.5, 1e-300, 1.0]).unwrap();
    let urn = LocalUrn::new(&urn, documents.document(0)).unwrap();
    let found = lattice::ln_urn_sum(&urn, &()).unwrap();
    // As topic 0 has weight ~0 in the second half, Z = (a_1 + n)_n summed over the first half:
    // Σ_j C(n, j) (1/2)_j (1/2)_{n-j} 2^-j (1/2 + j)_n, j balls of topic 1.
    let ln_terms = (0..=n as u64).map(|j| {
        let ln = polyabayes::math::ln_rising;
        let n = n as u64;
        polyabayes::math::ln_factorial(n)
            - polyabayes::math::ln_factorial(j)
            - polyabayes::math::ln_factorial(n - j)
            + ln(0.5, j)
            + ln(0.5, n - j)
            - j as f64 * 2f64.ln()
            + ln(0.5 + j as f64, n)
    });
    let terms: polyabayes::math::LogSum = ln_terms.collect();
    let expected = terms.ln_mean() + ((n + 1) as f64).ln();
    assert!(close(found, expected), "{found} {expected}");
}

#[test]
fn costs_are_estimated_in_the_right_order_of_magnitude() {
    // K = 2: the lattice visits l states on level l.
    let documents = CountMatrix::from_dense(&[vec![60, 40]]).unwrap();
    let urn = Urn::new(vec![0.5, 0.5], vec![0.3, 0.7, 0.6, 0.4]).unwrap();
    let plan = ExactPlan::new(&LocalUrn::new(&urn, documents.document(0)).unwrap());
    assert!((plan.cost.operations - 2.0 * 100.0 * 101.0 / 2.0).abs() < 1.0, "{plan:?}");
}

//! Non-negative matrix factorisation against what its mathematics says.

use crate::common;
use polyabayes::math::ln_factorial;
use polyabayes::training::{NmfPart, NmfUpdates, Sampler, Schedule, TopicStep, fit, nmf_weights};
use polyabayes::{CountMatrix, Error, Stop};

const SCHEDULE: Schedule = Schedule { max_iter: 30, burn_in: u64::MAX, warm_up: 0, thin: 1 };

fn corpus() -> CountMatrix {
    common::simulated(4, 120, 0.3, 60, 150, 1).1
}

/// Σ y ln(y/λ) - y + λ over all cells, empty ones too.
fn divergence(counts: &CountMatrix, updates: &NmfUpdates<'_>, n_topics: usize) -> f64 {
    let (phi, theta) = (updates.phi(), updates.theta());
    let mut sum = 0.0;
    for (document, theta) in counts.documents().zip(theta.chunks_exact(n_topics)) {
        let mut y = vec![0.0; counts.n_words()];
        document.cells().for_each(|(word, count)| y[word as usize] = f64::from(count));
        for (y, phi) in y.iter().zip(phi.chunks_exact(n_topics)) {
            let rate: f64 = theta.iter().zip(phi).map(|(x, y)| x * y).sum();
            sum += rate - y + if *y > 0.0 { y * (y / rate).ln() } else { 0.0 };
        }
    }
    sum
}

#[test]
fn the_divergence_never_increases_and_mirrors_the_likelihood() {
    let counts = corpus();
    let mut updates = NmfUpdates::new(&counts, 6, 1).unwrap();
    // ln p of counts whose rates are the counts themselves.
    let counts_of = || counts.counts().iter().copied();
    let saturated: f64 = counts_of()
        .map(|y| f64::from(y) * f64::from(y).ln() - f64::from(y) - ln_factorial(u64::from(y)))
        .sum();
    let mut last = divergence(&counts, &updates, 6);
    let first = last;
    for _ in 0..200 {
        updates.sweep(TopicStep::Draw, &()).unwrap();
        let now = divergence(&counts, &updates, 6);
        assert!(now <= last * (1.0 + 1e-12), "{last} {now}");
        assert!((saturated - updates.ln_joint() - now).abs() < 1e-9 * saturated.abs());
        last = now;
    }
    assert!(last < 0.8 * first, "{first} {last}");
}

#[test]
fn the_updates_end_where_the_gradient_does() {
    let counts = corpus();
    let mut updates = NmfUpdates::new(&counts, 3, 2).unwrap();
    for _ in 0..4_000 {
        updates.sweep(TopicStep::Draw, &()).unwrap();
    }
    // Karush, Kuhn and Tucker: the derivative by θ_dk, Σ_w y φ/λ - 1, is 0 where θ_dk > 0, and
    // nowhere positive.
    let (phi, theta) = (updates.phi(), updates.theta());
    for (document, theta) in counts.documents().zip(theta.chunks_exact(3)) {
        let mut gradient = [-1.0; 3];
        for (word, y) in document.cells() {
            let phi = &phi[word as usize * 3..][..3];
            let rate: f64 = theta.iter().zip(phi).map(|(x, y)| x * y).sum();
            gradient.iter_mut().zip(phi).for_each(|(g, x)| *g += f64::from(y) * x / rate);
        }
        for (gradient, theta) in gradient.iter().zip(theta) {
            assert!((gradient * theta).abs() < 1e-2 && *gradient < 1e-2, "{gradient} {theta}");
        }
    }
}

#[test]
fn one_topic_is_found_at_once() {
    let rows = [vec![3, 0, 1, 0], vec![0, 0, 0, 0], vec![1, 2, 0, 0]];
    let counts = CountMatrix::from_dense(&rows).unwrap();
    let mut updates = NmfUpdates::new(&counts, 1, 1).unwrap();
    updates.sweep(TopicStep::Draw, &()).unwrap();
    for (phi, n) in updates.phi().iter().zip([4.0, 2.0, 1.0, 0.0]) {
        assert!((phi - n / 7.0).abs() < 1e-15);
    }
    assert!(updates.theta().iter().zip([4.0, 0.0, 3.0]).all(|(x, n)| (x - n).abs() < 1e-14));
}

#[test]
fn more_topics_than_tokens_leave_proper_topics() {
    let counts = CountMatrix::from_dense(&[vec![1, 0, 2], vec![0, 0, 1]]).unwrap();
    let mut updates = NmfUpdates::new(&counts, 20, 1).unwrap();
    for _ in 0..3_000 {
        updates.sweep(TopicStep::Draw, &()).unwrap();
    }
    for topic in 0..20 {
        let sum: f64 = updates.phi().iter().skip(topic).step_by(20).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{topic}: {sum}");
    }
    assert!(divergence(&counts, &updates, 20) < 1e-9);
}

#[test]
fn any_number_of_threads_and_parts_gives_the_same_bits() {
    let counts = common::simulated(5, 300, 0.3, 80, 200, 1).1;
    let run = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let mut updates = NmfUpdates::new(&counts, 7, 3).unwrap();
            let fitted = fit(&mut updates, SCHEDULE, None, u64::MAX, &()).unwrap();
            let weights = nmf_weights(&fitted.parameters.phi, &counts, &()).unwrap();
            (fitted, weights)
        })
    };
    let one = run(1);
    assert!(run(2) == one);
    assert!(run(8) == one);
    let mut start = None;
    for until in [1, 4, 30] {
        let mut updates = NmfUpdates::new(&counts, 7, 3).unwrap();
        let part = fit(&mut updates, SCHEDULE, start, until, &()).unwrap();
        start = Some(part.progress.clone());
        assert!(until < 30 || part == one.0);
    }
}

#[test]
fn a_state_of_other_documents_is_refused() {
    let (counts, other) = (corpus(), CountMatrix::from_dense(&[vec![1, 2]]).unwrap());
    let state = NmfUpdates::new(&other, 4, 1).unwrap().state();
    let mut updates = NmfUpdates::new(&counts, 4, 1).unwrap();
    assert!(updates.resume(&state, TopicStep::Draw).is_err());
}

#[test]
fn weights_of_documents_have_the_largest_likelihood_there_is() {
    let counts = corpus();
    let mut updates = NmfUpdates::new(&counts, 3, 2).unwrap();
    let phi = fit(&mut updates, SCHEDULE, None, u64::MAX, &()).unwrap().parameters.phi;
    let ln_likelihood = |document: usize, theta: &[f64]| -> f64 {
        let ln_rate = |(word, y): (u32, u32)| {
            let row = &phi[word as usize * 3..][..3];
            f64::from(y) * theta.iter().zip(row).map(|(x, y)| x * y).sum::<f64>().ln()
        };
        counts.document(document).cells().map(ln_rate).sum::<f64>() - theta.iter().sum::<f64>()
    };
    let weights = nmf_weights(&phi, &counts, &()).unwrap();
    for (document, theta) in weights.chunks_exact(3).enumerate() {
        let n_tokens = counts.document(document).n_tokens() as f64;
        assert!((theta.iter().sum::<f64>() - n_tokens).abs() < 1e-9 * n_tokens);
        let best = ln_likelihood(document, theta);
        // All weights on a lattice over the simplex.
        for i in 0..=40 {
            for j in 0..=40 - i {
                let share = |n: i32| n_tokens * f64::from(n) / 40.0;
                let other = [share(i), share(j), share(40 - i - j)];
                assert!(ln_likelihood(document, &other) <= best + 1e-3, "{document}: {other:?}");
            }
        }
    }
}

#[test]
fn words_that_no_topic_has_are_left_out_of_the_weights() {
    let phi = [0.5, 0.2, 0.5, 0.8, 0.0, 0.0];
    let documents = [vec![3, 1, 0], vec![3, 1, 5], vec![0, 0, 2]];
    let weights = nmf_weights(&phi, &CountMatrix::from_dense(&documents).unwrap(), &()).unwrap();
    assert_eq!(weights[..2], weights[2..4]);
    assert_eq!(weights[4..], [0.0, 0.0]);
}

#[test]
fn updates_that_were_stopped_leave_proper_topics() {
    let counts = corpus();
    let mut updates = NmfUpdates::new(&counts, 4, 1).unwrap();
    let stop = Stop::default();
    stop.raise();
    let before = updates.ln_joint();
    assert_eq!(updates.sweep(TopicStep::Draw, &stop), Err(Error::Stopped));
    assert!((updates.ln_joint() - before).abs() < 1e-9 * before.abs());
    assert_eq!(nmf_weights(updates.phi(), &counts, &stop), Err(Error::Stopped));
}

#[test]
fn an_impossible_document_makes_the_likelihood_next_to_nothing() {
    let counts = CountMatrix::from_dense(&[vec![1, 2], vec![3, 0]]).unwrap();
    let part = NmfPart::new(&counts, &[0.0, 1.0]).unwrap();
    let ln_joint = part.ln_joint(&[1.0, 1.0]).unwrap().value();
    assert!((-1e15..-1e13).contains(&ln_joint), "{ln_joint}");
}

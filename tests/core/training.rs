//! Samplers against full enumeration of their posteriors, and the same bits on any threads.

use crate::common;
use std::collections::HashMap;

use polyabayes::math::{ln_gamma, ln_rising};
use polyabayes::training::{
    LdaGlobals, LdaPrior, LdaSampler, PfaGlobals, PfaPrior, PfaSampler, Sampler, Schedule, Scheme,
    ShardedChain, Swept, TopicStep, fit,
};
use polyabayes::{CountMatrix, Error, Stop};

/// Three documents, six tokens, three words.
fn tiny() -> CountMatrix {
    CountMatrix::from_dense(&[vec![2, 0, 0], vec![1, 0, 1], vec![0, 1, 1]]).unwrap()
}

const DOCUMENT: [usize; 6] = [0, 0, 1, 1, 2, 2];
const WORD: [usize; 6] = [0, 0, 0, 2, 1, 2];

/// Topic counts by document and by word of one assignment.
fn tallies(z: &[u16]) -> ([[u64; 2]; 3], [[u64; 2]; 3]) {
    let (mut by_document, mut by_word) = ([[0; 2]; 3], [[0; 2]; 3]);
    for (token, &topic) in z.iter().enumerate() {
        by_document[DOCUMENT[token]][usize::from(topic)] += 1;
        by_word[WORD[token]][usize::from(topic)] += 1;
    }
    (by_document, by_word)
}

/// ln Π_k [Π_w (β)_{n_kw} / (V β)_{n_k}].
fn ln_topics(by_word: &[[u64; 2]; 3], beta: f64) -> f64 {
    (0..2)
        .map(|k| {
            let total: u64 = by_word.iter().map(|row| row[k]).sum();
            by_word.iter().map(|row| ln_rising(beta, row[k])).sum::<f64>()
                - ln_rising(3.0 * beta, total)
        })
        .sum()
}

fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// Visit frequencies of all 2^6 assignments against their exact probabilities.
///
/// The error of a frequency is judged from batch means, whose spread knows the autocorrelation.
fn check_visits<S: Sampler>(
    sampler: &mut S,
    assignments: impl Fn(&S) -> Vec<u16>,
    ln_weight: impl Fn(&[u16]) -> f64,
) {
    let states: Vec<Vec<u16>> =
        (0..64u16).map(|state| (0..6).map(|token| state >> token & 1).collect()).collect();
    check_frequencies(sampler, &states, assignments, ln_weight);
}

/// Visit frequencies of these states, which are all there are, against their exact probabilities.
fn check_frequencies<S: Sampler>(
    sampler: &mut S,
    states: &[Vec<u16>],
    state_of: impl Fn(&S) -> Vec<u16>,
    ln_weight: impl Fn(&[u16]) -> f64,
) {
    const BATCHES: usize = 50;
    const SWEEPS: usize = 4_000;
    let weights: Vec<f64> = states.iter().map(|z| ln_weight(z).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut batches = vec![HashMap::<Vec<u16>, f64>::new(); BATCHES];
    for batch in &mut batches {
        for _ in 0..SWEEPS {
            sampler.sweep(TopicStep::Draw, &()).unwrap();
            *batch.entry(state_of(sampler)).or_default() += 1.0 / SWEEPS as f64;
        }
    }
    let mut chi_squared = 0.0;
    for (z, weight) in states.iter().zip(weights) {
        let expected = weight / total;
        let frequencies: Vec<f64> =
            batches.iter().map(|batch| batch.get(z).copied().unwrap_or(0.0)).collect();
        let mean = frequencies.iter().sum::<f64>() / BATCHES as f64;
        let variance = frequencies.iter().map(|f| (f - mean).powi(2)).sum::<f64>()
            / (BATCHES * (BATCHES - 1)) as f64;
        let deviation = (mean - expected) / variance.sqrt();
        assert!(deviation.abs() < 4.5, "{z:?}: {mean} {expected} ({deviation:.1} errors)");
        chi_squared += deviation * deviation;
    }
    // The square of a t(49) variate: mean 49/47, variance 2.32.
    let n = states.len() as f64;
    assert!(chi_squared < n * 49.0 / 47.0 + 4.0 * (2.32 * n).sqrt(), "{chi_squared}");
}

#[test]
fn lda_visits_assignments_as_often_as_their_posterior_says() {
    let counts = tiny();
    let (alpha, beta) = (vec![0.3, 0.8], 0.4);
    let prior = LdaPrior { alpha: alpha.clone(), beta, learned: false };
    let mut sampler = LdaSampler::new(&counts, prior, 1).unwrap();
    check_visits(&mut sampler, LdaSampler::assignments, |z| {
        let (by_document, by_word) = tallies(z);
        let ln_documents: f64 = by_document
            .iter()
            .flat_map(|row| row.iter().zip(&alpha))
            .map(|(&n, &alpha)| ln_rising(alpha, n))
            .sum();
        ln_documents + ln_topics(&by_word, beta)
    });
}

/// Names topics by their first tokens.
fn partition(z: &[u16]) -> Vec<u16> {
    z.iter().map(|topic| z.iter().position(|x| x == topic).unwrap() as u16).collect()
}

/// Draws go over the document's own topics where there are so many; their numbers do not matter.
#[test]
fn many_topics_visit_partitions_as_often_as_their_posterior_says() {
    const N_TOPICS: usize = 300;
    let counts = CountMatrix::from_dense(&[vec![2, 1, 1]]).unwrap();
    let (alpha, beta) = (0.01, 0.4);
    let prior = LdaPrior { alpha: vec![alpha; N_TOPICS], beta, learned: false };
    let mut sampler = LdaSampler::new(&counts, prior, 1).unwrap();
    let all = (0..256u16).map(|state| (0..4).map(|token| state >> (2 * token) & 3).collect());
    let states: Vec<Vec<u16>> = all.filter(|z: &Vec<u16>| partition(z) == *z).collect();
    assert_eq!(states.len(), 15);
    let ln_weight = |z: &[u16]| {
        let blocks = (0..4).filter(|&block| z.contains(&block));
        let ln_blocks = blocks.enumerate().map(|(before, block)| {
            let mut by_word = [0; 3];
            for token in (0..4).filter(|&token| z[token] == block) {
                by_word[[0, 0, 1, 2][token]] += 1;
            }
            let n = by_word.iter().sum();
            let ln_words: f64 = by_word.iter().map(|&n| ln_rising(beta, n)).sum();
            // Topics that the block may be.
            ((N_TOPICS - before) as f64).ln() + ln_rising(alpha, n) + ln_words
                - ln_rising(3.0 * beta, n)
        });
        ln_blocks.sum()
    };
    check_frequencies(
        &mut sampler,
        &states,
        |sampler| partition(&sampler.assignments()),
        ln_weight,
    );
}

#[test]
fn lda_with_topic_priors_visits_assignments_as_often_as_their_posterior_says() {
    let counts = tiny();
    let alpha = vec![0.3, 0.8];
    // Mild enough for the rarest assignment to be visited some 50 times: sharper ones leave states
    // with too few visits for the spread of batch means to tell the error.
    let priors = [[0.4, 0.8], [0.9, 0.5], [0.6, 0.7]];
    // β must not matter.
    let prior = LdaPrior { alpha: alpha.clone(), beta: 7.0, learned: false };
    let mut sampler = LdaSampler::new(&counts, prior, 1).unwrap();
    sampler = sampler.with_topic_priors(priors.concat()).unwrap();
    let ln_joint = |z: &[u16]| {
        let (by_document, by_word) = tallies(z);
        let documents = by_document.iter().flat_map(|row| row.iter().zip(&alpha));
        let mut ln_value: f64 = documents.map(|(&n, &alpha)| ln_rising(alpha, n)).sum();
        for k in 0..2 {
            let total: f64 = priors.iter().map(|row| row[k]).sum();
            let words = by_word.iter().zip(&priors);
            ln_value += words.map(|(n, prior)| ln_rising(prior[k], n[k])).sum::<f64>();
            ln_value -= ln_rising(total, by_word.iter().map(|row| row[k]).sum());
        }
        ln_value
    };
    // θ is integrated out: every document has two tokens.
    let expected = ln_joint(&sampler.assignments()) - 3.0 * ln_rising(alpha.iter().sum(), 2);
    assert!((sampler.ln_joint() - expected).abs() < 1e-12);
    check_visits(&mut sampler, LdaSampler::assignments, ln_joint);
}

#[test]
fn topic_priors_are_checked() {
    let counts = tiny();
    let prior = LdaPrior { alpha: vec![0.3, 0.8], beta: 0.4, learned: false };
    let sampler = || LdaSampler::new(&counts, prior.clone(), 1).unwrap();
    for priors in [vec![0.5; 5], vec![0.5, 0.5, 0.5, 0.5, 0.5, 0.0], vec![f64::NAN; 6]] {
        assert!(sampler().with_topic_priors(priors).is_err());
    }
}

fn check_pfa(scheme: Scheme, learn_p: bool, learn_r: bool, seed: u64) {
    let counts = tiny();
    let (beta, (first, second), (shape, rate)) = (0.4, (0.5, 0.5), (1.5, 2.0));
    let (r, p) = (vec![0.7, 1.4], vec![0.6, 0.3]);
    let prior = PfaPrior {
        topic_word: beta,
        probability: learn_p.then_some((first, second)),
        shape: learn_r.then_some((shape, rate)),
    };
    let sampler = PfaSampler::new(&counts, prior, r.clone(), p.clone(), seed).unwrap();
    let mut sampler = sampler.with_scheme(scheme);
    // The law of a topic's counts given r_k, p_k integrated out.
    let ln_given_shape = |k: usize, n: [u64; 3], r: f64| {
        let total = n.iter().sum::<u64>() as f64;
        let ln_p = if learn_p {
            ln_beta(first + total, second + 3.0 * r) - ln_beta(first, second)
        } else {
            total * p[k].ln() + 3.0 * r * (1.0 - p[k]).ln()
        };
        ln_p + n.iter().map(|&n| ln_rising(r, n)).sum::<f64>()
    };
    // Integral over r by the trapezoid rule in ln r, whose ends carry nothing.
    let integrated = |k: usize, n: [u64; 3]| -> f64 {
        let step = 0.02;
        (-1000..400)
            .map(|i| {
                let r = (f64::from(i) * step).exp();
                (ln_given_shape(k, n, r) + shape * r.ln() - rate * r).exp() * step
            })
            .sum()
    };
    check_visits(&mut sampler, PfaSampler::assignments, |z| {
        let (by_document, by_word) = tallies(z);
        let ln_shapes: f64 = (0..2)
            .map(|k| {
                let n = [by_document[0][k], by_document[1][k], by_document[2][k]];
                if learn_r { integrated(k, n).ln() } else { ln_given_shape(k, n, r[k]) }
            })
            .sum();
        ln_shapes + ln_topics(&by_word, beta)
    });
}

#[test]
fn beta_gamma_pfa_visits_assignments_as_often_as_their_posterior_says() {
    check_pfa(Scheme::Collapsed, true, false, 2);
    check_pfa(Scheme::Blocked, true, false, 12);
}

#[test]
fn gamma_pfa_visits_assignments_as_often_as_their_posterior_says() {
    check_pfa(Scheme::Collapsed, false, true, 3);
    check_pfa(Scheme::Blocked, false, true, 13);
}

#[test]
fn beta_gamma_gamma_pfa_visits_assignments_as_often_as_their_posterior_says() {
    check_pfa(Scheme::Collapsed, true, true, 4);
    check_pfa(Scheme::Blocked, true, true, 14);
}

#[test]
fn gap_visits_assignments_as_often_as_their_posterior_says() {
    check_pfa(Scheme::Collapsed, false, false, 5);
    check_pfa(Scheme::Blocked, false, false, 15);
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let (_, counts) = common::simulated(5, 300, 0.3, 80, 200, 1);
    let schedule = Schedule { max_iter: 8, burn_in: 4, warm_up: 2, thin: 2 };
    let run = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let prior = LdaPrior { alpha: vec![0.1; 6], beta: 0.05, learned: false };
            let mut lda = LdaSampler::new(&counts, prior, 7).unwrap();
            let prior = PfaPrior {
                topic_word: 0.1,
                probability: Some((0.2, 0.8)),
                shape: Some((1.0, 1.0)),
            };
            let pfa = || {
                let (r, p) = (vec![1.0; 6], vec![0.5; 6]);
                PfaSampler::new(&counts, prior.clone(), r, p, 7).unwrap()
            };
            let many = LdaPrior { alpha: vec![0.01; 200], beta: 0.05, learned: true };
            let mut many = LdaSampler::new(&counts, many, 7).unwrap();
            (
                fit(&mut lda, schedule, None, u64::MAX, &()).unwrap(),
                fit(&mut many, schedule, None, u64::MAX, &()).unwrap(),
                fit(&mut pfa(), schedule, None, u64::MAX, &()).unwrap(),
                fit(&mut pfa().with_scheme(Scheme::Blocked), schedule, None, u64::MAX, &())
                    .unwrap(),
            )
        })
    };
    let one = run(1);
    assert_eq!(one.0.progress.kept.n, 2);
    for n_threads in [2, 8] {
        assert!(run(n_threads) == one);
    }
}

/// Fits in one go and in parts, each part by a sampler of its own.
fn check_parts<S: Sampler>(mut new: impl FnMut() -> S)
where
    S::Parameters: Clone + PartialEq + std::fmt::Debug,
{
    let schedule = Schedule { max_iter: 12, burn_in: 6, warm_up: 3, thin: 2 };
    let whole = fit(&mut new(), schedule, None, u64::MAX, &()).unwrap();
    let mut start = None;
    for until in [0, 1, 2, 3, 5, 8, 11, 12] {
        let part = fit(&mut new(), schedule, start, until, &()).unwrap();
        assert_eq!(part.progress.state.n_sweeps, until);
        start = Some(part.progress.clone());
        if until == 12 {
            assert_eq!(part, whole);
        }
    }
}

#[test]
fn a_run_in_parts_is_the_same_to_the_bit() {
    let (_, counts) = common::simulated(5, 300, 0.3, 80, 100, 1);
    check_parts(|| {
        let prior = LdaPrior { alpha: vec![0.1; 6], beta: 0.05, learned: false };
        LdaSampler::new(&counts, prior, 7).unwrap()
    });
    check_parts(|| {
        let prior =
            PfaPrior { topic_word: 0.1, probability: Some((0.2, 0.8)), shape: Some((1.0, 1.0)) };
        PfaSampler::new(&counts, prior, vec![1.0; 6], vec![0.5; 6], 7).unwrap()
    });
    check_parts(|| {
        let prior =
            PfaPrior { topic_word: 0.1, probability: Some((0.2, 0.8)), shape: Some((1.0, 1.0)) };
        let sampler = PfaSampler::new(&counts, prior, vec![1.0; 6], vec![0.5; 6], 7).unwrap();
        sampler.with_scheme(Scheme::Blocked)
    });
}

/// Means, and their errors, of functions of the state and of their squares: from batch means.
fn moments(scheme: Scheme, counts: &CountMatrix, seed: u64) -> Vec<(f64, f64)> {
    const BATCHES: usize = 50;
    const SWEEPS: usize = 6_000;
    let prior =
        PfaPrior { topic_word: 0.5, probability: Some((2.0, 1.0)), shape: Some((2.0, 2.0)) };
    let sampler = PfaSampler::new(counts, prior, vec![1.0; 3], vec![0.6; 3], seed).unwrap();
    let mut sampler = sampler.with_scheme(scheme);
    let largest = |x: &[f64]| x.iter().copied().fold(0.0, f64::max);
    let mut batches = vec![[0.0; 12]; BATCHES];
    for batch in &mut batches {
        for _ in 0..SWEEPS {
            sampler.sweep(TopicStep::Draw, &()).unwrap();
            let (r, p) = (sampler.shape(), sampler.probability());
            let mut n = [0.0; 3];
            sampler.assignments().iter().for_each(|&topic| n[usize::from(topic)] += 1.0);
            let smallest = n.iter().copied().fold(f64::INFINITY, f64::min);
            let functions =
                [r.iter().sum(), largest(r), p.iter().sum(), largest(p), largest(&n), smallest];
            for (i, x) in functions.into_iter().enumerate() {
                batch[i] += x / SWEEPS as f64;
                batch[6 + i] += x * x / SWEEPS as f64;
            }
        }
    }
    (0..12)
        .map(|i| {
            let mean = batches.iter().map(|batch| batch[i]).sum::<f64>() / BATCHES as f64;
            let squares = batches.iter().map(|batch| (batch[i] - mean).powi(2)).sum::<f64>();
            (mean, (squares / (BATCHES * (BATCHES - 1)) as f64).sqrt())
        })
        .collect()
}

#[test]
#[ignore = "takes minutes: make test-slow"]
fn both_schemes_agree_in_distribution() {
    let (_, counts) = common::simulated(3, 12, 0.4, 12, 15, 2);
    let collapsed = moments(Scheme::Collapsed, &counts, 1);
    let blocked = moments(Scheme::Blocked, &counts, 2);
    let names = ["Σ r", "max r", "Σ p", "max p", "max n", "min n"];
    for (i, ((x, x_error), (y, y_error))) in collapsed.into_iter().zip(blocked).enumerate() {
        let (name, power) = (names[i % 6], i / 6 + 1);
        let error = x_error.hypot(y_error);
        assert!(error < 0.05 * x, "{name}, power {power}: {x} {y} +- {error}");
        assert!((x - y).abs() < 4.5 * error, "{name}, power {power}: {x} {y} +- {error}");
    }
}

#[test]
fn a_state_of_other_documents_is_refused() {
    let (tiny, (_, other)) = (tiny(), common::simulated(2, 30, 0.3, 8, 3, 1));
    let sampler = |counts| {
        LdaSampler::new(counts, LdaPrior { alpha: vec![0.3, 0.8], beta: 0.4, learned: false }, 1)
            .unwrap()
    };
    let state = sampler(&other).state();
    assert!(sampler(&tiny).resume(&state, TopicStep::Draw).is_err());
    let mut state = sampler(&tiny).state();
    state.assignments[3] = 2;
    assert!(sampler(&tiny).resume(&state, TopicStep::Draw).is_err());
    state.assignments[3] = 1;
    state.parameters.push(1.0);
    assert!(sampler(&tiny).resume(&state, TopicStep::Draw).is_err());
    // Its sum over the words is no double: the topics would be no numbers.
    let mut state = sampler(&tiny).state();
    state.parameters[2] = 1e308;
    assert!(sampler(&tiny).resume(&state, TopicStep::Draw).is_err());
}

#[test]
fn the_log_joint_is_that_of_the_enumeration() {
    let counts = tiny();
    let (alpha, beta) = (vec![0.3, 0.8], 0.4);
    let prior = LdaPrior { alpha: alpha.clone(), beta, learned: false };
    let mut sampler = LdaSampler::new(&counts, prior, 1).unwrap();
    sampler.sweep(TopicStep::Draw, &()).unwrap();
    let (by_document, by_word) = tallies(&sampler.assignments());
    let ln_documents: f64 = by_document
        .iter()
        .map(|row| {
            let drawn = row.iter().zip(&alpha).map(|(&n, &alpha)| ln_rising(alpha, n));
            drawn.sum::<f64>() - ln_rising(1.1, 2)
        })
        .sum();
    assert!((sampler.ln_joint() - ln_documents - ln_topics(&by_word, beta)).abs() < 1e-12);
}

#[test]
fn topics_of_a_synthetic_corpus_are_recovered() {
    let (truth, counts) = common::simulated(4, 100, 0.2, 100, 400, 3);
    let prior = LdaPrior { alpha: vec![0.2; 4], beta: 0.05, learned: false };
    let mut sampler = LdaSampler::new(&counts, prior, 1).unwrap();
    let schedule = Schedule { max_iter: 120, burn_in: 60, warm_up: 20, thin: 5 };
    let phi = fit(&mut sampler, schedule, None, u64::MAX, &()).unwrap().parameters.phi;
    common::assert_recovered(&truth, &phi);
}

#[test]
fn a_stopped_fit_keeps_what_it_has() {
    let counts = tiny();
    let prior = LdaPrior { alpha: vec![0.3, 0.8], beta: 0.4, learned: false };
    let mut sampler = LdaSampler::new(&counts, prior, 1).unwrap();
    let stop = Stop::default();
    stop.raise();
    let schedule = Schedule { max_iter: 10, burn_in: 5, warm_up: 0, thin: 1 };
    let fitted = fit(&mut sampler, schedule, None, u64::MAX, &stop).unwrap();
    assert_eq!((fitted.progress.state.n_sweeps, fitted.progress.kept.n), (0, 0));
    for topic in 0..2 {
        let sum: f64 = fitted.parameters.phi.iter().skip(topic).step_by(2).sum();
        assert!((sum - 1.0).abs() < 1e-12);
    }
}

#[test]
fn a_tiny_topic_prior_leaves_topics_that_sum_to_one() {
    let counts = CountMatrix::from_dense(&vec![vec![4, 3, 2, 1, 0, 0, 0, 0]; 5]).unwrap();
    let prior = LdaPrior { alpha: vec![0.5; 10], beta: 1e-5, learned: false };
    let mut sampler = LdaSampler::new(&counts, prior, 1).unwrap();
    for _ in 0..200 {
        sampler.sweep(TopicStep::Draw, &()).unwrap();
        for topic in 0..10 {
            let sum: f64 = sampler.phi().iter().skip(topic).step_by(10).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        }
    }
}

/// A sweep that leaves out what a parameter is drawn from would draw it from its prior.
#[test]
fn sweeps_on_shards_without_what_parameters_are_drawn_from_are_refused() {
    let (counts, schedule) =
        ([1, 0, 0, 2], Schedule { max_iter: 9, burn_in: 0, warm_up: 0, thin: 1 });
    let swept = Swept { n_tables: &[1, 1], lengths: &[], exposed: &[] };
    let prior = PfaPrior { topic_word: 0.1, probability: Some((1.0, 1.0)), shape: None };
    let pfa = |prior| PfaGlobals::new(2, 2, prior, vec![1.0; 2], vec![0.5; 2], 0).unwrap();
    let exposed = pfa(prior.clone()).with_exposures(&[1.0, 2.0], &[1, 1]).unwrap();
    let refused = ShardedChain::new(exposed, schedule, &counts).unwrap().advance(&counts, swept);
    assert!(matches!(refused, Err(Error::Empty { .. })), "{refused:?}");
    assert_eq!(
        ShardedChain::new(pfa(prior), schedule, &counts).unwrap().advance(&counts, swept),
        Ok(())
    );

    let lda = |learned| {
        let prior = LdaPrior { alpha: vec![0.5; 2], beta: 0.1, learned };
        ShardedChain::new(LdaGlobals::new(2, prior, 0).unwrap(), schedule, &counts).unwrap()
    };
    let refused = lda(true).advance(&counts, swept);
    assert!(matches!(refused, Err(Error::Length { found: 0, expected: 3, .. })), "{refused:?}");
    assert_eq!(lda(true).advance(&counts, Swept { lengths: &[1, 2], ..swept }), Ok(()));
    assert_eq!(lda(false).advance(&counts, swept), Ok(()));
}

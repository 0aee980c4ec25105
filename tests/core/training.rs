//! Samplers against full enumeration of their posteriors.

use crate::common;
use std::collections::HashMap;

use polyabayes::CountMatrix;
use polyabayes::math::{ln_gamma, ln_rising, mean_and_error};
use polyabayes::training::{
    ChainState, CorpusSizes, LdaPrior, MemoryTokens, Part, PfaPrior, Position, PosteriorMeans,
    PseudoCounts, Tokens, TopicWeights, order_tokens, sweep_part,
};

use common::{MemoryChain, drawing, lda, lda_globals, on_one_thread, pfa, uniform};

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

/// All assignments of tokens to two topics.
pub(crate) fn assignments(n_tokens: usize) -> Vec<Vec<u16>> {
    let bits = |state: u16| (0..n_tokens).map(|token| state >> token & 1).collect();
    (0..1 << n_tokens).map(bits).collect()
}

/// Visit frequencies of all assignments to two topics against their exact probabilities.
pub(crate) fn check_visits(chain: &mut MemoryChain<'_>, ln_weight: impl Fn(&[u16]) -> f64) {
    let states = assignments(chain.tokens().topics().len());
    check_frequencies(chain, &states, |z| z, ln_weight);
}

/// Visit frequencies of these states, which are all there are, against their exact probabilities.
///
/// The error of a frequency is judged from batch means, whose spread knows the autocorrelation.
fn check_frequencies(
    chain: &mut MemoryChain<'_>,
    states: &[Vec<u16>],
    state_of: impl Fn(Vec<u16>) -> Vec<u16> + Sync,
    ln_weight: impl Fn(&[u16]) -> f64,
) {
    let next = || {
        chain.sweep(&()).unwrap();
        state_of(chain.tokens().topics())
    };
    check_draws(next, states, ln_weight);
}

/// The same of the states that come next.
fn check_draws(
    mut next: impl FnMut() -> Vec<u16> + Send,
    states: &[Vec<u16>],
    ln_weight: impl Fn(&[u16]) -> f64,
) {
    const BATCHES: usize = 50;
    const SWEEPS: usize = if cfg!(debug_assertions) { 1_000 } else { 4_000 };
    let weights: Vec<f64> = states.iter().map(|z| ln_weight(z).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut batches = vec![HashMap::<Vec<u16>, f64>::new(); BATCHES];
    on_one_thread(|| {
        for batch in &mut batches {
            for _ in 0..SWEEPS {
                *batch.entry(next()).or_default() += 1.0 / SWEEPS as f64;
            }
        }
    });
    let mut chi_squared = 0.0;
    for (z, weight) in states.iter().zip(weights) {
        let expected = weight / total;
        let frequencies: Vec<f64> =
            batches.iter().map(|batch| batch.get(z).copied().unwrap_or(0.0)).collect();
        let (mean, error) = mean_and_error(&frequencies);
        let deviation = (mean - expected) / error;
        assert!(deviation.abs() < 4.5, "{z:?}: {mean} {expected} ({deviation:.1} errors)");
        chi_squared += deviation * deviation;
    }
    // The square of a t(49) variate: mean 49/47, variance 2.32.
    let n = states.len() as f64;
    assert!(chi_squared < n * 49.0 / 47.0 + 4.0 * (2.32 * n).sqrt(), "{chi_squared}");
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
    let mut sampler = lda(&counts, prior, 1);
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
    check_frequencies(&mut sampler, &states, |z| partition(&z), ln_weight);
}

#[test]
fn lda_visits_assignments_as_often_as_their_posterior_says() {
    let (counts, alpha) = (tiny(), vec![0.3, 0.8]);
    // Mild enough for the rarest assignment to be visited some 50 times: sharper ones leave states
    // with too few visits for the spread of batch means to tell the error.
    let own = [[0.4, 0.8], [0.9, 0.5], [0.6, 0.7]];
    // β does not matter to topics with priors of their own.
    for (beta, priors) in [(0.4, [[0.4; 2]; 3]), (7.0, own)] {
        let prior = LdaPrior { alpha: alpha.clone(), beta, learned: false };
        let mut globals = lda_globals(&counts, prior, 1);
        if priors == own {
            globals = globals.with_topic_priors(priors.concat()).unwrap();
        }
        let mut sampler = uniform(&counts, globals, drawing(1));
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
        let expected =
            ln_joint(&sampler.tokens().topics()) - 3.0 * ln_rising(alpha.iter().sum(), 2);
        assert!((sampler.ln_joint().unwrap() - expected).abs() < 1e-12);
        check_visits(&mut sampler, ln_joint);
    }
}

fn check_pfa(learn_p: bool, learn_r: bool, seed: u64) {
    let counts = tiny();
    let (beta, (first, second), (shape, rate)) = (0.4, (0.5, 0.5), (1.5, 2.0));
    let (r, p) = (vec![0.7, 1.4], vec![0.6, 0.3]);
    let prior = PfaPrior {
        topic_word: beta,
        probability: learn_p.then_some((first, second)),
        shape: learn_r.then_some((shape, rate)),
    };
    let mut sampler = pfa(&counts, prior, (r.clone(), p.clone()), seed);
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
    check_visits(&mut sampler, |z| {
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
fn pfa_of_every_prior_visits_assignments_as_often_as_its_posterior_says() {
    check_pfa(true, false, 2);
    check_pfa(false, true, 3);
    check_pfa(true, true, 4);
    check_pfa(false, false, 5);
}

/// Counts are split given φ, in documents of equal exposures and of others.
#[test]
fn large_counts_are_split_as_often_as_their_posterior_says() {
    let (r, weights, rates) = ([0.7, 1.4], [0.2, 0.5, 0.8, 0.5], [1.0, 1.5]);
    let counts = CountMatrix::from_dense(&[vec![2, 2], vec![0, 2]]).unwrap();
    let exposures = [0.5, 2.0];
    let counts = counts.with_exposures(exposures.to_vec()).unwrap();
    let (word_starts, token_documents) = order_tokens(&counts).unwrap();
    let sizes = CorpusSizes { longest: 4, n_tokens: 1 << 20, n_cells: 1 << 18 };
    for rates in [None, Some(&rates[..])] {
        let part = Part {
            n_words: 2,
            n_documents: &[2],
            word_starts: &word_starts,
            token_documents: &token_documents,
            documents_before: 0,
            sizes,
            counts: Some(&counts),
        };
        let a = PseudoCounts::shared(&r);
        let urns = TopicWeights { a, weights: &weights, scale: &[1.0; 2], rates, bursts: None };
        let (mut topics, mut sweep) = (vec![0; 6], 0);
        let next = || {
            sweep += 1;
            let at = (6, Position::Chain { sweep });
            sweep_part(part, &mut topics, urns, at, false, &mut [0; 4], &()).unwrap();
            topics.clone()
        };
        check_draws(next, &assignments(6), |z| {
            let (mut n, mut ln_value) = ([[0; 2]; 2], 0.0);
            for (token, topic) in z.iter().map(|&topic| usize::from(topic)).enumerate() {
                let document = usize::from(token_documents[token]);
                let word = usize::from(token >= word_starts[1] as usize);
                n[document][topic] += 1;
                ln_value += f64::ln(weights[2 * word + topic]);
                ln_value -= rates.map_or(0.0, |x| f64::ln(x[topic] + exposures[document]));
            }
            ln_value + (0..4).map(|i| ln_rising(r[i % 2], n[i / 2][i % 2])).sum::<f64>()
        });
    }
}

/// All that a chain has come to.
pub(crate) type Result = (PosteriorMeans, ChainState, Option<Vec<f64>>, Vec<u16>, u64);

pub(crate) fn result(chain: &mut MemoryChain<'_>) -> Result {
    let (mean, state, topics) = (chain.mean(true).unwrap(), chain.state(), chain.tokens().topics());
    let kept = chain.kept_sum();
    (mean, state, kept, topics, chain.ln_joint().unwrap().to_bits())
}

/// Sweeps over all topics keep counts of documents; sweeps over lists of topics in between change them.
#[test]
fn sweeps_of_both_kinds_may_take_turns() {
    const N_TOPICS: usize = 300;
    let rows: Vec<Vec<i64>> = (0..20).map(|d| (0..40).map(|w| (d * w) % 7).collect()).collect();
    let exposures = (0..20).map(|d| 1.0 + f64::from(d % 3)).collect();
    let counts = CountMatrix::from_dense(&rows).unwrap().with_exposures(exposures).unwrap();
    let (a, scale, rates) = ([0.1; N_TOPICS], [1.0; N_TOPICS], [0.5; N_TOPICS]);
    let weights: Vec<f64> = (0..40 * N_TOPICS).map(|i| 0.01 + (i * i % 97) as f64).collect();
    let sweep = |tokens: &mut MemoryTokens<&CountMatrix>, sweep, rates| {
        let a = PseudoCounts::shared(&a);
        let weights = TopicWeights { a, weights: &weights, scale: &scale, rates, bursts: None };
        let mut by_word = vec![0; 40 * N_TOPICS];
        tokens.sweep(Position::Chain { sweep }, weights, 1, false, &mut by_word, &()).unwrap();
    };
    let mut tokens = MemoryTokens::new(&counts).unwrap();
    sweep(&mut tokens, 1, Some(&rates[..]));
    sweep(&mut tokens, 2, None);
    let mut fresh = MemoryTokens::new(&counts).unwrap();
    fresh.set_topics(&tokens.topics(), N_TOPICS).unwrap();
    for tokens in [&mut tokens, &mut fresh] {
        sweep(tokens, 3, Some(&rates[..]));
    }
    assert_eq!(tokens.topics(), fresh.topics());
}

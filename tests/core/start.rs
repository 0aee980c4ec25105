//! Starts with more topics than asked for: the best of several, what is known of them, and what stops
//! them.

use polyabayes::training::{
    Chain, ChainState, LdaGlobals, LdaPrior, MemoryTokens, Schedule, TopicStart, find_topics,
};
use polyabayes::{CountMatrix, Error, Stop};

use crate::common::simulated;

const N_TOPICS: usize = 8;
const N_WORDS: usize = 200;

/// Documents of topics with few words each.
fn planted() -> CountMatrix {
    simulated(N_TOPICS, N_WORDS, 0.1, 60, 500, 1).1
}

fn prior() -> LdaPrior {
    LdaPrior { alpha: vec![5.0 / N_TOPICS as f64; N_TOPICS], beta: 0.1, learned: false }
}

fn start(n_sweeps: u64, n_starts: u64) -> TopicStart {
    TopicStart { n_words: N_WORDS, alpha: prior().alpha, beta: 0.1, n_sweeps, n_starts }
}

/// Topics of all tokens that a start finds.
fn found(counts: &CountMatrix, start: &TopicStart, seed: u64) -> Vec<u16> {
    let mut tokens = MemoryTokens::new(counts).unwrap();
    find_topics(&mut tokens, start, seed, None, &()).unwrap();
    tokens.topics()
}

/// A chain of so many sweeps that set the topics to their mean.
fn chain<'a>(
    counts: &'a CountMatrix,
    start: Option<&TopicStart>,
    (n_sweeps, seed): (u64, u64),
) -> Chain<MemoryTokens<&'a CountMatrix>> {
    let schedule =
        Schedule { max_iter: n_sweeps, burn_in: n_sweeps, warm_up: n_sweeps, thin: 1, seed };
    let globals = Box::new(LdaGlobals::new(N_WORDS, prior(), seed).unwrap());
    let tokens = MemoryTokens::new(counts).unwrap();
    Chain::new(globals, tokens, schedule, start, None, &()).unwrap()
}

#[test]
fn the_best_of_several_starts_is_none_of_the_worse() {
    let counts = planted();
    // Too few sweeps to find all topics at once.
    let ln_joint =
        |n_starts, seed| chain(&counts, Some(&start(3, n_starts)), (1, seed)).ln_joint().unwrap();
    let mut n_better = 0;
    for seed in 0..3 {
        // The first of the six is this one.
        let (one, best) = (ln_joint(1, seed), ln_joint(6, seed));
        assert!(best >= one, "{seed}: {best} {one}");
        n_better += u32::from(best > one);
    }
    assert!(n_better > 0);
}

#[test]
fn the_largest_topic_gets_the_largest_prior() {
    let counts = planted();
    let alpha: Vec<f64> = (0..N_TOPICS).map(|k| 0.1 + (k * 3 % N_TOPICS) as f64).collect();
    let topics = found(&counts, &TopicStart { alpha: alpha.clone(), ..start(20, 1) }, 1);
    let size = |k: usize| topics.iter().filter(|&&topic| usize::from(topic) == k).count();
    let mut by_prior: Vec<usize> = (0..N_TOPICS).collect();
    by_prior.sort_by(|&i, &j| alpha[i].total_cmp(&alpha[j]));
    assert!(by_prior.windows(2).all(|pair| size(pair[0]) <= size(pair[1])));
}

#[test]
fn starts_are_checked_and_stop() {
    let counts = planted();
    let begin = |start: &TopicStart, stop: &Stop| {
        let mut tokens = MemoryTokens::new(&counts).unwrap();
        find_topics(&mut tokens, start, 1, None::<&ChainState>, stop)
    };
    let stop = Stop::default();
    for bad in [
        start(1, 0),
        TopicStart { alpha: vec![0.0; 2], ..start(1, 1) },
        TopicStart { beta: -1.0, ..start(1, 1) },
    ] {
        assert!(begin(&bad, &stop).is_err());
    }
    // No sweeps: uniform topics.
    let topics = found(&counts, &start(0, 1), 1);
    assert!((0..N_TOPICS as u16).all(|topic| topics.contains(&topic)));
    stop.raise();
    assert_eq!(begin(&start(20, 1), &stop), Err(Error::Stopped));
}

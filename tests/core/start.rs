//! Starts with more topics than asked for: they find the topics that a plain start misses.

use polyabayes::math::dirichlet;
use polyabayes::rng::{Key, Purpose};
use polyabayes::training::{
    Chain, ChainState, EmSettings, LdaGlobals, LdaPrior, MemoryTokens, Schedule, TopicStart,
    find_topics, fit_em,
};
use polyabayes::{CountMatrix, Error, Stop};

use crate::common::categorical;

const N_TOPICS: usize = 8;
const N_WORDS: usize = 200;

/// Documents of topics with few words each, and the topics, topic by topic.
fn planted() -> (Vec<Vec<f64>>, CountMatrix) {
    let mut rng = Key::new(1, Purpose::Score).rng();
    let mut draw = |shape: f64, n: usize| {
        let mut weights = vec![0.0; n];
        dirichlet(&vec![shape; n], &mut weights, &mut rng);
        weights
    };
    let topics: Vec<Vec<f64>> = (0..N_TOPICS).map(|_| draw(0.1, N_WORDS)).collect();
    let weights: Vec<Vec<f64>> = (0..500).map(|_| draw(0.1, N_TOPICS)).collect();
    let rows: Vec<Vec<i64>> = (weights.iter())
        .map(|weights| {
            let mut row = vec![0; N_WORDS];
            for _ in 0..60 {
                let topic = categorical(weights, &mut rng);
                row[categorical(&topics[topic], &mut rng)] += 1;
            }
            row
        })
        .collect();
    (topics, CountMatrix::from_dense(&rows).unwrap())
}

/// Cosine of the true topic that is found worst, with the topic of word-major φ that is nearest.
fn worst_cosine(topics: &[Vec<f64>], phi: &[f64]) -> f64 {
    let column = |k: usize| phi.iter().skip(k).step_by(N_TOPICS);
    let norm = |k: usize| column(k).map(|x| x * x).sum::<f64>().sqrt();
    let cosine = |topic: &[f64], k: usize| {
        let length = topic.iter().map(|x| x * x).sum::<f64>().sqrt();
        topic.iter().zip(column(k)).map(|(x, y)| x * y).sum::<f64>() / (length * norm(k))
    };
    let nearest = |topic: &Vec<f64>| (0..N_TOPICS).map(|k| cosine(topic, k)).fold(0.0, f64::max);
    topics.iter().map(nearest).fold(1.0, f64::min)
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
fn every_seed_finds_every_topic() {
    let (topics, counts) = planted();
    let worst = |start: Option<&TopicStart>, seed| {
        let mut chain = chain(&counts, start, (30, seed));
        chain.run(30, 30, &(), |_, _| ()).unwrap();
        worst_cosine(&topics, &chain.mean().unwrap()[..N_WORDS * N_TOPICS])
    };
    let mut n_missed = 0;
    for seed in 0..10 {
        assert!(worst(Some(&start(20, 1)), seed) > 0.97, "{seed}");
        n_missed += u32::from(worst(None, seed) < 0.9);
    }
    assert!(n_missed >= 2, "uniform starts find all topics of these documents: {n_missed}");
}

#[test]
fn em_finds_every_topic() {
    let (topics, counts) = planted();
    for seed in 0..5 {
        let settings = EmSettings {
            alpha: prior().alpha,
            learned: true,
            topic_word_prior: 0.0,
            max_iter: 50,
            tolerance: 1e-5,
            start_sweeps: 20,
            n_starts: 1,
            seed,
        };
        let fit = fit_em(&counts, None, &settings, &()).unwrap();
        assert!(worst_cosine(&topics, &fit.phi) > 0.97, "{seed}");
    }
}

#[test]
fn the_best_of_several_starts_is_none_of_the_worse() {
    let (_, counts) = planted();
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
    let (_, counts) = planted();
    let alpha: Vec<f64> = (0..N_TOPICS).map(|k| 0.1 + (k * 3 % N_TOPICS) as f64).collect();
    let topics = found(&counts, &TopicStart { alpha: alpha.clone(), ..start(20, 1) }, 1);
    let size = |k: usize| topics.iter().filter(|&&topic| usize::from(topic) == k).count();
    let mut by_prior: Vec<usize> = (0..N_TOPICS).collect();
    by_prior.sort_by(|&i, &j| alpha[i].total_cmp(&alpha[j]));
    assert!(by_prior.windows(2).all(|pair| size(pair[0]) <= size(pair[1])));
}

#[test]
fn starts_are_checked_and_stop() {
    let (_, counts) = planted();
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

//! Both kinds of tallies against the weights that they draw from.

use rand::RngExt;

use super::blocks::TopicWeights;
use super::cells::{BurstWeights, Cells};
use super::dense::Dense;
use super::sparse::Sparse;
use super::tallies::{BATCH, Batch, Tallies, Word};
use crate::rng::Rng;
use crate::training::pseudo_counts::PseudoCounts;

const N_TOPICS: usize = 21;
const ONES: [f64; N_TOPICS] = [1.0; N_TOPICS];

/// Random numbers, one a topic.
pub(super) fn row(n_topics: usize, rng: &mut Rng) -> Vec<f64> {
    (0..n_topics).map(|_| rng.random()).collect()
}

/// Numbers anywhere in [0, 1), and others on the limits between weights, to within a few roundings.
pub(super) fn uniforms(weights: impl Iterator<Item = f64>, rng: &mut Rng) -> Vec<f64> {
    let mut sums = vec![0.0];
    weights.for_each(|weight| sums.push(sums[sums.len() - 1] + weight));
    let (total, mut uniforms) = (sums[sums.len() - 1], row(200, rng));
    for off in [-1e-6, -1e-7, -1e-8, 0.0, 1e-8, 1e-7, 1e-6] {
        uniforms.extend(sums.iter().map(|sum| (sum / total + off).clamp(0.0, 1.0 - 1e-16)));
    }
    uniforms
}

/// Draws a token of the first document after it has been removed.
fn draw(tallies: &mut impl Tallies, word: &Word<'_>, first: usize, topic: &mut u16, u: f64) {
    let mut topics = [*topic];
    let mut uniforms = [0.0; BATCH];
    uniforms[0] = u;
    tallies.take_up(word);
    let token = Batch { first, place: 0, documents: &[0] };
    tallies.remove(token, &topics);
    tallies.draw(word, token, &mut topics, &Cells::default(), &uniforms);
    *topic = topics[0];
}

fn counts(tallies: &impl Tallies, document: usize) -> Vec<u32> {
    let mut counts = vec![0; N_TOPICS];
    tallies.counts(document).for_each(|(topic, n)| counts[topic] += n);
    counts
}

/// A token goes to the only topic that has any weight, and stays where none has.
fn check_single_topics<T: Tallies>(mut tallies: T) {
    tallies.fill(&[3], &[0; 3], &[5, 6, 7]);
    let mut topic = 5;
    for to in (8..21).chain(0..5) {
        let mut weights = [0.0; N_TOPICS];
        // Far below what single precision can hold.
        weights[to] = 1e-200;
        let word = Word { a: &ONES, weights: &weights, scale: &ONES };
        draw(&mut tallies, &word, 0, &mut topic, 0.5);
        assert_eq!(usize::from(topic), to);
    }
    let word = Word { a: &ONES, weights: &[0.0; N_TOPICS], scale: &ONES };
    draw(&mut tallies, &word, 0, &mut topic, 0.5);
    let mut expected = vec![0; N_TOPICS];
    [4, 6, 7].into_iter().for_each(|topic: usize| expected[topic] = 1);
    assert_eq!(counts(&tallies, 0), expected);
    // Moved without a draw, to a topic that has a token and to one that has none.
    let tokens = Batch { first: 0, place: 0, documents: &[0] };
    tallies.remove(tokens, &[4]);
    tallies.put(tokens, &[6]);
    tallies.remove(Batch { first: 2, ..tokens }, &[7]);
    tallies.put(Batch { first: 2, ..tokens }, &[9]);
    let mut expected = vec![0; N_TOPICS];
    (expected[6], expected[9]) = (2, 1);
    assert_eq!(counts(&tallies, 0), expected);
}

/// Topic of a token whose word has no other table in its old topic, and a small weight in another, where
/// `take_up` takes up the weights; with its own table or without.
fn moved<T: Tallies>(mut tallies: T, take_up: fn(&mut T, TopicWeights<'_>)) -> [u16; 2] {
    let (a, mut weights) = ([1e-3; N_TOPICS], [0.0; N_TOPICS]);
    (weights[5], weights[6]) = (1.0 + 1e-9, 0.01);
    let word = Word { a: &a, weights: &weights, scale: &ONES };
    [false, true].map(|without_own| {
        let bursts = BurstWeights { inverse: &[0.1; N_TOPICS], factor: &ONES, without_own };
        tallies.fill(&[4], &[0; 4], &[5, 5, 6, 7]);
        tallies.take_up(&word);
        let (a, weights, scale) = (PseudoCounts::shared(&a), &weights[..], &ONES[..]);
        take_up(
            &mut tallies,
            TopicWeights { a, weights, scale, rates: None, bursts: Some(bursts) },
        );
        let (token, mut topics) = (Batch { first: 0, place: 0, documents: &[0] }, [5]);
        tallies.remove(token, &topics);
        tallies.draw(&word, token, &mut topics, &Cells::new(bursts), &[0.5; BATCH]);
        // A table left out of a draw is there for the next.
        let (other, mut others) = (Batch { first: 1, ..token }, [5]);
        tallies.remove(other, &others);
        tallies.draw(&word, other, &mut others, &Cells::default(), &[0.1; BATCH]);
        assert_eq!(others[0], if without_own { 6 } else { 5 });
        topics[0]
    })
}

#[test]
fn a_token_leaves_its_own_table_out() {
    let dense =
        moved(Dense::new(N_TOPICS), |dense, urns| dense.take_own(urns, 0..1, [].into_iter()));
    let sparse = moved(Sparse::new(N_TOPICS), Sparse::take_bursts);
    assert_eq!((dense, sparse), ([5, 6], [5, 6]));
}

#[test]
fn tiny_weights_and_none() {
    check_single_topics(Dense::new(N_TOPICS));
    check_single_topics(Sparse::new(N_TOPICS));
}

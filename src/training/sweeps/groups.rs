//! All tokens of a word in a document, moved to another topic together.
//!
//! Where topics are bursty, a word's tokens in a document hold each other in their topic, and draws
//! one by one hardly ever move them all. In a document where one topic holds all tokens of a word,
//! that topic is drawn, among all that may hold them, before the tokens are drawn one by one. Which
//! words have their groups drawn in a sweep is decided without a look at the topics.

// Inlined into loops that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use super::cells::BurstWeights;
use super::tallies::Word;
use crate::math::pick;
use crate::rng::Key;

/// Share of the repeated words whose groups are drawn in a sweep, chosen by hand on AP with 100 topics: all of
/// them gained about as much more as longer runs would have in the same time.
const SHARE: f64 = 0.5;

/// Numbers that are weighed side by side.
const LANES: usize = 8;

/// Draws of the topic of a group, given all other tokens: of the topics that may hold it whole.
#[derive(Default)]
pub(super) struct GroupDraws {
    /// 1/s of each topic, all rows filled up with zeros to whole lanes.
    inverse: Vec<f64>,
    /// Weight of a repetition, f/s.
    repeat: Vec<f64>,
    /// Weight of the word.
    q: Vec<f64>,
    /// Share of it that is left without the group; none where it is all of it.
    shares: Vec<f64>,
    without_own: bool,
    /// Other tokens of the document in each topic.
    counts: Vec<f64>,
    /// Those and the pseudo-counts.
    balls: Vec<f64>,
    /// Factors of the document; ones where the documents of the block have none.
    factors: Vec<f64>,
    weights: Vec<f64>,
}

/// Tokens after which weights are scaled: products of so many do not overflow, as s is at least 1e-60.
const AT_ONCE: u16 = 4;

fn fill(row: &mut Vec<f64>, n_topics: usize, values: impl IntoIterator<Item = f64>) {
    row.clear();
    row.extend(values);
    row.resize(n_topics.next_multiple_of(LANES), 0.0);
}

/// Whether this sweep draws groups of the word of the key.
pub(super) fn are_drawn(key: Key) -> bool {
    key.counter().uniform(u64::MAX) < SHARE
}

impl GroupDraws {
    pub(super) fn new(weights: BurstWeights<'_>, repeat: &[f64]) -> Self {
        let mut draws = GroupDraws { without_own: weights.without_own, ..GroupDraws::default() };
        fill(&mut draws.inverse, repeat.len(), weights.inverse.iter().copied());
        fill(&mut draws.repeat, repeat.len(), repeat.iter().copied());
        fill(&mut draws.factors, repeat.len(), repeat.iter().map(|_| 1.0));
        for row in [&mut draws.counts, &mut draws.balls, &mut draws.weights] {
            fill(row, repeat.len(), []);
        }
        draws
    }

    pub(super) fn take_up(&mut self, word: &Word<'_>) {
        let weights = word.weights.iter().zip(word.scale);
        fill(&mut self.q, word.a.len(), weights.map(|(weight, scale)| weight * scale));
        if self.without_own {
            let shares = (0..word.a.len()).map(|topic| word.share(topic));
            fill(&mut self.shares, word.a.len(), shares);
        }
    }

    /// Topic at u of a group of `n_tokens` that is in topic `old`, in a document with these pseudo-counts,
    /// counts of all topics that `count` sets, and factors of its own where there are any; `None` where
    /// no weight is positive.
    pub(super) fn draw(
        &mut self,
        (a, factors): (&[f64], &[f64]),
        count: impl FnOnce(&mut [f64]),
        (old, n_tokens): (u16, u16),
        u: f64,
    ) -> Option<u16> {
        let others = &mut self.counts[..a.len()];
        count(others);
        others[usize::from(old)] -= f64::from(n_tokens);
        let balls = self.balls.iter_mut().zip(a.iter().zip(others));
        balls.for_each(|(balls, (a, n))| *balls = a + *n);
        if !factors.is_empty() {
            fill(&mut self.factors, a.len(), factors.iter().copied());
        }
        let GroupDraws { balls, counts, q, repeat, inverse, factors, weights, shares, .. } = self;
        let (old, own) = (usize::from(old), q[usize::from(old)]);
        q[old] *= shares.get(old).unwrap_or(&1.0);
        let lanes = weigh(weights, [balls, counts, q, repeat, inverse, factors], n_tokens);
        q[old] = own;
        let total = lanes.iter().sum::<f64>();
        if !total.is_finite() {
            return None;
        }
        let dart = u * total;
        let lane = pick(lanes, dart)?;
        let rest = dart - lanes[..lane].iter().sum::<f64>();
        let line = pick(self.weights[lane..].iter().step_by(LANES).copied(), rest)?;
        Some((line * LANES + lane) as u16)
    }
}

/// Finds the weights of so many tokens up to a factor, and their sums by lane.
#[polyabayes_macros::vectorised]
fn weigh(weights: &mut [f64], rows: [&[f64]; 6], n_tokens: u16) -> [f64; LANES] {
    weights.fill(1.0);
    for first in (0..n_tokens).step_by(AT_ONCE.into()) {
        // Else many small factors would underflow.
        let most = if first > 0 { weights.iter().copied().fold(0.0, f64::max) } else { 1.0 };
        let at = (f64::from(first), most.recip());
        match n_tokens - first {
            1 => multiply::<1>(weights, rows, at),
            2 => multiply::<2>(weights, rows, at),
            3 => multiply::<3>(weights, rows, at),
            _ => multiply::<{ AT_ONCE as usize }>(weights, rows, at),
        }
    }
    let mut sums = [0.0; LANES];
    for line in weights.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            sums[lane] += line[lane];
        }
    }
    sums
}

/// Multiplies weights by those of N tokens that follow `first` others, and a scale. One loop over all
/// topics: of loops over lanes within others, the compiler makes slow gathers.
#[inline(always)]
fn multiply<const N: usize>(
    weights: &mut [f64],
    [balls, counts, q, repeat, inverse, factors]: [&[f64]; 6],
    (first, scale): (f64, f64),
) {
    let words = q.iter().zip(repeat).zip(factors);
    let topics = balls.iter().zip(counts).zip(inverse).zip(words);
    for (weight, (((balls, n), inverse), ((q, repeat), factor))) in weights.iter_mut().zip(topics) {
        let (mut own, mut total) = (scale, 1.0);
        for token in 0..N {
            let before = first + token as f64;
            own *= (balls + before) * (q + repeat * before) * factor;
            total *= 1.0 + (n + before) * inverse;
        }
        *weight *= own / total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::ln_rising;
    use crate::rng::Purpose;

    const N_TOPICS: usize = 11;

    /// Numbers between 0.1 and 2.1 that differ by topic.
    fn row(seed: u64) -> Vec<f64> {
        let number = |topic| 0.1 + 2.0 * Key::new(seed, Purpose::Assign).counter().uniform(topic);
        (0..N_TOPICS as u64).map(number).collect()
    }

    #[test]
    fn a_group_has_the_weight_of_its_rising_factorials() {
        let [a, phi, inverse, factor, of_document] = [1, 2, 3, 4, 5].map(row);
        let scale = [1.0; N_TOPICS];
        let q: Vec<f64> = phi.iter().zip(&factor).map(|(phi, f)| phi * f).collect();
        let repeat: Vec<f64> = inverse.iter().zip(&factor).map(|(i, f)| i * f).collect();
        let weights = BurstWeights { inverse: &inverse, factor: &factor, without_own: false };
        for (n_tokens, factors) in
            [(2, &[][..]), (3, &of_document), (400, &[]), (400, &of_document)]
        {
            let mut draws = GroupDraws::new(weights, &repeat);
            draws.take_up(&Word { a: &a, weights: &q, scale: &scale });
            // Topic 4 holds the group, and three tokens of other words.
            let counts = || [(0, 5), (4, 3 + u32::from(n_tokens)), (10, 1)].into_iter();
            let ln_weight = |topic: usize| {
                let n = counts().find(|it| it.0 == topic).map_or(0, |it| it.1);
                let n = if topic == 4 { 3.0 } else { f64::from(n) };
                let (s, c) = (inverse[topic].recip(), u64::from(n_tokens));
                let f = factor[topic] * factors.get(topic).unwrap_or(&1.0);
                ln_rising(a[topic] + n, c) + ln_rising(s * phi[topic], c) - ln_rising(s + n, c)
                    + f64::from(n_tokens) * f.ln()
            };
            let expected: Vec<f64> = (0..N_TOPICS).map(ln_weight).collect();
            let most = expected.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = expected.iter().map(|x| (x - most).exp()).sum();
            let count = |row: &mut [f64]| counts().for_each(|(topic, n)| row[topic] = f64::from(n));
            let drawn = draws.draw((&a, factors), count, (4, n_tokens), 0.5);
            let sum: f64 = draws.weights.iter().sum();
            for (topic, expected) in expected.iter().enumerate() {
                let found = draws.weights[topic] / sum;
                assert!(
                    (found - (expected - most).exp() / total).abs() < 1e-11,
                    "{n_tokens}: {topic}"
                );
            }
            assert!(drawn.is_some_and(|topic| expected[usize::from(topic)] > most - 30.0));
        }
        // Topic 4 has no table beside that of the group, so that all others share its weight.
        let mut draws = GroupDraws::new(BurstWeights { without_own: true, ..weights }, &repeat);
        let mut tables = [0.5; N_TOPICS];
        tables[4] = 1.0 + 1e-9;
        draws.take_up(&Word { a: &a, weights: &tables, scale: &scale });
        draws.repeat.fill(0.0);
        draws.draw((&a, &[]), |row| row[4] = 2.0, (4, 2), 0.5).unwrap();
        assert!((0..N_TOPICS).all(|topic| (draws.weights[topic] < 1e-12) == (topic == 4)));
        let mut draws = GroupDraws::new(weights, &repeat);
        draws.take_up(&Word { a: &a, weights: &[0.0; N_TOPICS], scale: &scale });
        assert_eq!(draws.draw((&a, &[]), |row| row[4] = 2.0, (4, 2), 0.5), None);
    }
}

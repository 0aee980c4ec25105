//! All tokens of a word in a document, moved to another topic together.
//!
//! Where topics are bursty, a word's tokens in a document hold each other in their topic, and draws
//! one by one hardly ever move them all. In a document where one topic holds all tokens of a word,
//! that topic is drawn, among all that may hold them, before the tokens are drawn one by one. Which
//! words have their groups drawn in a sweep is decided without a look at the topics.

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
    inverse: Row,
    /// Weight of a repetition, f/s.
    repeat: Row,
    /// Weight of the word.
    q: Row,
    /// Other tokens of the document in each topic.
    counts: Row,
    /// Those and the pseudo-counts.
    balls: Row,
    /// Factors of the document; ones where the documents of the block have none.
    factors: Row,
    weights: Row,
}

/// Tokens after which weights are scaled: products of so many do not overflow, as s is at least 1e-60.
const AT_ONCE: usize = 4;

type Row = Vec<[f64; LANES]>;

fn fill(row: &mut Row, n_topics: usize, values: impl IntoIterator<Item = f64>) {
    row.clear();
    row.resize(n_topics.div_ceil(LANES), [0.0; LANES]);
    row.as_flattened_mut().iter_mut().zip(values).for_each(|(to, value)| *to = value);
}

/// Whether this sweep draws groups of the word of the key.
pub(super) fn are_drawn(key: Key) -> bool {
    key.counter().uniform(u64::MAX) < SHARE
}

impl GroupDraws {
    pub(super) fn new(weights: BurstWeights<'_>, repeat: &[f64]) -> Self {
        let mut draws = GroupDraws::default();
        fill(&mut draws.inverse, repeat.len(), weights.inverse.iter().copied());
        fill(&mut draws.repeat, repeat.len(), repeat.iter().copied());
        fill(&mut draws.factors, repeat.len(), repeat.iter().map(|_| 1.0));
        fill(&mut draws.weights, repeat.len(), []);
        draws
    }

    pub(super) fn take_up(&mut self, word: &Word<'_>) {
        fill(&mut self.q, word.a.len(), (0..word.a.len()).map(|topic| word.q(topic)));
    }

    /// Topic at u of a group of `n_tokens` that is in topic `old`, in a document with these pseudo-counts,
    /// topics and counts, and factors of its own where there are any; `None` where no weight is positive.
    pub(super) fn draw(
        &mut self,
        (a, factors): (&[f64], &[f64]),
        counts: impl Iterator<Item = (usize, u32)>,
        (old, n_tokens): (u16, u16),
        u: f64,
    ) -> Option<u16> {
        fill(&mut self.counts, a.len(), []);
        let others = self.counts.as_flattened_mut();
        counts.for_each(|(topic, n)| others[topic] += f64::from(n));
        others[usize::from(old)] -= f64::from(n_tokens);
        fill(&mut self.balls, a.len(), a.iter().zip(&*others).map(|(a, n)| a + n));
        if !factors.is_empty() {
            fill(&mut self.factors, a.len(), factors.iter().copied());
        }
        let lanes = self.weigh(n_tokens);
        let total = lanes.iter().sum::<f64>();
        if !total.is_finite() {
            return None;
        }
        let dart = u * total;
        let lane = pick(lanes, dart)?;
        let rest = dart - lanes[..lane].iter().sum::<f64>();
        let line = pick(self.weights.iter().map(|weights| weights[lane]), rest)?;
        Some((line * LANES + lane) as u16)
    }

    /// Finds the weights of so many tokens up to a factor, and their sums by lane.
    fn weigh(&mut self, n_tokens: u16) -> [f64; LANES] {
        let GroupDraws { balls, counts, q, repeat, inverse, factors, weights } = self;
        weigh(weights, [balls, counts, q, repeat, inverse, factors], n_tokens)
    }
}

#[polyabayes_macros::vectorised]
fn weigh(
    weights: &mut [[f64; LANES]],
    [balls, counts, q, repeat, inverse, factors]: [&[[f64; LANES]]; 6],
    n_tokens: u16,
) -> [f64; LANES] {
    weights.iter_mut().for_each(|weights| *weights = [1.0; LANES]);
    let (mut scale, mut sums) = (1.0, [0.0; LANES]);
    for first in (0..n_tokens).step_by(AT_ONCE) {
        let tokens = f64::from(first)..f64::from(n_tokens.min(first + AT_ONCE as u16));
        let mut most = [0.0f64; LANES];
        sums = [0.0; LANES];
        for (line, weights) in weights.iter_mut().enumerate() {
            let (balls, counts, q) = (&balls[line], &counts[line], &q[line]);
            let (repeat, inverse, factors) = (&repeat[line], &inverse[line], &factors[line]);
            let (mut own, mut totals) = ([scale; LANES], [1.0; LANES]);
            let mut n_before = tokens.start;
            while n_before < tokens.end {
                for lane in 0..LANES {
                    own[lane] *= (balls[lane] + n_before)
                        * (q[lane] + repeat[lane] * n_before)
                        * factors[lane];
                    totals[lane] *= 1.0 + (counts[lane] + n_before) * inverse[lane];
                }
                n_before += 1.0;
            }
            for lane in 0..LANES {
                weights[lane] *= own[lane] / totals[lane];
                most[lane] = most[lane].max(weights[lane]);
                sums[lane] += weights[lane];
            }
        }
        // Else many small factors would underflow.
        scale = most.into_iter().fold(0.0, f64::max).recip();
    }
    sums
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
        let weights = BurstWeights { inverse: &inverse, factor: &factor };
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
            let drawn = draws.draw((&a, factors), counts(), (4, n_tokens), 0.5);
            let sum: f64 = draws.weights.as_flattened().iter().sum();
            for (topic, expected) in expected.iter().enumerate() {
                let found = draws.weights.as_flattened()[topic] / sum;
                assert!(
                    (found - (expected - most).exp() / total).abs() < 1e-11,
                    "{n_tokens}: {topic}"
                );
            }
            assert!(drawn.is_some_and(|topic| expected[usize::from(topic)] > most - 30.0));
        }
        let mut draws = GroupDraws::new(weights, &repeat);
        draws.take_up(&Word { a: &a, weights: &[0.0; N_TOPICS], scale: &scale });
        assert_eq!(draws.draw((&a, &[]), [(4, 2)].into_iter(), (4, 2), 0.5), None);
    }
}

//! Steps of chains whose topics are bursty: the weights of [`super::kernels`] and [`super::sweeps`] with
//! the second layer of the urn.
//!
//! The tokens of a document stand word by word, so that a step needs the tokens of one word alone, by
//! topic.

mod buffers;
mod division;
mod group;
mod word;

use std::ops::Range;

pub(super) use buffers::{BurstBuffers, accumulate};
use division::divide;
use group::redraw_group;
use word::{Alone, Beside, Company, Word, draw_one, redraw_pair};

use super::kernels::{put, take};
use crate::math::pick_lanes;
use crate::rng::{LANES, UniformLanes, map_lanes};
use crate::urn::{BurstTarget, Counts, Shortlists, SweepOrder, UrnTarget};

/// Tokens of a word from which on two topics divide it anew, too. Chosen by hand: no bench compares others. On
/// AP and NIPS, more divisions gained nothing; without any, words of 80 and more tokens were scored too low.
const MANY: usize = 8;

/// The tokens of a document, what a sweep over some of them changes, and its buffers.
pub(super) struct BurstyTokens<'a, U> {
    /// Distinct word of each token.
    pub cells: &'a [u32],
    pub topics: &'a mut [[u16; LANES]],
    pub balls: &'a mut [Counts],
    pub buffers: &'a mut BurstBuffers,
    pub uniforms: &'a mut U,
}

/// The tokens of the same word as one, which stand beside it.
fn same_word(cells: &[u32], token: usize) -> Range<usize> {
    let is_same = |other: &&u32| **other == cells[token];
    let before = cells[..token].iter().rev().take_while(is_same).count();
    let after = cells[token..].iter().take_while(is_same).count();
    token - before..token + after
}

/// One sweep over a part of the tokens, one by one.
#[polyabayes_macros::vectorised]
pub(super) fn sweep<U: UniformLanes>(
    tokens: BurstyTokens<'_, U>,
    part: Range<usize>,
    target: UrnTarget<'_>,
    second: BurstTarget<'_>,
    order: SweepOrder,
) {
    let BurstyTokens { cells, topics, balls, buffers, uniforms } = tokens;
    let n_topics = target.base.len();
    let mut row_of = None;
    for step in 0..part.len() {
        let token = part.start + order.nth(step, part.len());
        let cell = cells[token];
        if row_of != Some(cell) {
            row_of = Some(cell);
            buffers.hold(n_topics, &topics[same_word(cells, token)]);
        }
        let BurstBuffers { held, sums, .. } = &mut *buffers;
        sums.resize(n_topics, [0.0; LANES]);
        take(balls, &topics[token]);
        take(held, &topics[token]);
        accumulate(sums, balls, held, target, second, cell);
        topics[token] = map_lanes(pick_lanes(sums, uniforms.next()), |topic| topic as u16);
        put(balls, &topics[token]);
        put(held, &topics[token]);
    }
}

/// The next words of a sweep, about as many tokens as asked for, taken from those that are left.
pub(super) fn whole_words(
    cells: &[u32],
    left: &mut Range<usize>,
    order: SweepOrder,
    n_tokens: usize,
) -> Range<usize> {
    let cut = match order {
        SweepOrder::Forward => same_word(cells, (left.start + n_tokens).min(left.end) - 1).end,
        SweepOrder::Backward => {
            same_word(cells, left.end.saturating_sub(n_tokens).max(left.start)).start
        }
    };
    let cut = cut.clamp(left.start, left.end);
    match order {
        SweepOrder::Forward => std::mem::replace(&mut left.start, cut)..cut,
        SweepOrder::Backward => cut..std::mem::replace(&mut left.end, cut),
    }
}

/// A sweep over whole words, among all topics or those on their lists.
pub(super) fn sweep_words<U: UniformLanes>(
    tokens: BurstyTokens<'_, U>,
    part: Range<usize>,
    lists: Option<&Shortlists>,
    target: UrnTarget<'_>,
    second: BurstTarget<'_>,
    order: SweepOrder,
) {
    let BurstyTokens { cells, topics, balls, buffers, uniforms } = tokens;
    let (all, mut row) = (buffers.take_up(target, second), std::mem::take(&mut buffers.q));
    let mut left = part;
    while !left.is_empty() {
        let tokens = whole_words(cells, &mut left, order, 1);
        let cell = cells[tokens.start];
        let list = lists.map(|lists| lists.list(cell));
        let among = list.as_ref().map_or(&all[..], |list| list.topics);
        if list.is_some() && among.len() < 2 {
            continue;
        }
        if list.is_none() {
            row.clear();
            row.extend(target.row(cell).iter().map(|&q| q as f32));
        }
        let q = list.as_ref().map_or(&row[..], |list| list.q);
        let is_listed =
            |topic: u16| list.as_ref().is_none_or(|list| list.is_listed[usize::from(topic)]);
        let (balls, buffers) = (&mut *balls, &mut *buffers);
        let mut word = Word { cell, among, q, target, second, balls, buffers };
        let topics = &mut topics[tokens];
        if let [topics] = topics {
            move_one(&mut word, topics, &Alone, &is_listed, uniforms);
        } else if let Ok(topics) = <&mut [_; 2]>::try_from(&mut *topics) {
            redraw_pair(&mut word, topics, &is_listed, uniforms);
        } else {
            redraw(&mut word, topics, order, &is_listed, uniforms);
        }
    }
    (buffers.all, buffers.q) = (all, row);
}

/// Moves a token whose topic is on the list.
#[polyabayes_macros::vectorised]
fn move_one<C: Company, F: Fn(u16) -> bool, U: UniformLanes>(
    word: &mut Word<'_, '_>,
    topics: &mut [u16; LANES],
    company: &C,
    is_listed: &F,
    uniforms: &mut U,
) {
    word.take(topics, company);
    let new = draw_one(word, company, uniforms);
    for lane in 0..LANES {
        topics[lane] = if is_listed(topics[lane]) { new[lane] } else { topics[lane] };
    }
    word.put(topics, company);
}

/// Moves all tokens of a word together, where one topic holds them, then one by one; where they are many,
/// two topics divide theirs anew, too. Backward, in reverse.
fn redraw(
    word: &mut Word<'_, '_>,
    topics: &mut [[u16; LANES]],
    order: SweepOrder,
    is_listed: &impl Fn(u16) -> bool,
    uniforms: &mut impl UniformLanes,
) {
    let is_divided = topics.len() >= MANY && word.among.len() > 1;
    topics.iter().for_each(|topics| put(&mut word.buffers.held, topics));
    if order == SweepOrder::Forward {
        redraw_group(word, topics, is_listed, uniforms);
    } else if is_divided {
        divide(word, topics, uniforms);
    }
    for step in 0..topics.len() {
        let token = order.nth(step, topics.len());
        move_one(word, &mut topics[token], &Beside, is_listed, uniforms);
    }
    if order == SweepOrder::Backward {
        redraw_group(word, topics, is_listed, uniforms);
    } else if is_divided {
        divide(word, topics, uniforms);
    }
    topics.iter().for_each(|topics| take(&mut word.buffers.held, topics));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::pick;
    use crate::rng::{Key, Purpose};
    use crate::urn::{LocalUrn, TopicBursts, TopicChains};

    /// Words of tokens: of some and of two with three topics, of many with two.
    const DOCUMENTS: [(usize, &[usize]); 3] =
        [(3, &[0, 0, 0, 0, 1]), (3, &[0, 0, 0, 1, 1]), (2, &[0; MANY])];

    fn urn(n_topics: usize, cells: &[usize], bursts: Option<&TopicBursts>) -> LocalUrn {
        let q: [&[f64]; 2] = [&[0.5, 0.2, 0.3], &[0.3, 0.0, 0.4]];
        let n_first = cells.iter().filter(|&&cell| cell == 0).count();
        let counts = [n_first, cells.len() - n_first];
        let rows: Vec<_> = (q.iter().zip(counts))
            .filter(|(_, n)| *n > 0)
            .map(|(q, n)| (&q[..n_topics], n as u32))
            .collect();
        LocalUrn::from_scaled_rows(&[0.5, 0.3, 0.8][..n_topics], &rows, None, bursts).unwrap()
    }

    /// Topics of the tokens, as the digits of the number of a state.
    fn state(n_topics: usize, n_tokens: usize, index: usize) -> Vec<usize> {
        (0..n_tokens).rev().map(|token| index / n_topics.pow(token as u32) % n_topics).collect()
    }

    /// Unnormalised probability of the topics of all tokens, token by token.
    fn mass(urn: &LocalUrn, cells: &[usize], topics: &[usize]) -> f64 {
        let target = UrnTarget::of(urn);
        let weight = |token: usize| {
            let (k, cell) = (topics[token], cells[token]);
            let earlier = || (0..token).filter(|&other| topics[other] == k);
            let c = earlier().filter(|&other| cells[other] == cell).count();
            target.weight(cell as u32, k, earlier().count() as f64, c as f64)
        };
        (0..cells.len()).map(weight).product()
    }

    /// Chains drawn from a distribution are still drawn from it after a sweep, and have moved.
    fn check(sweep: impl Fn(&mut TopicChains<crate::rng::Uniforms>, &LocalUrn, SweepOrder)) {
        let mut rng = Key::new(5, Purpose::Score).rng();
        let all = TopicBursts { rates: vec![2.0, 0.3, 0.0], repeats: vec![2.0, 0.3, 0.0] };
        let orders = [SweepOrder::Forward, SweepOrder::Backward];
        for (&(n_topics, cells), order, is_bursty) in DOCUMENTS
            .iter()
            .flat_map(|document| orders.map(|order| [true, false].map(|x| (document, order, x))))
            .flatten()
        {
            let [rates, repeats] = [&all.rates, &all.repeats].map(|x| x[..n_topics].to_vec());
            let bursts = TopicBursts { rates, repeats };
            let urn = urn(n_topics, cells, is_bursty.then_some(&bursts));
            let state = |index: usize| state(n_topics, cells.len(), index);
            let mass: Vec<f64> = (0..n_topics.pow(cells.len() as u32))
                .map(|index| mass(&urn, cells, &state(index)))
                .collect();
            let total: f64 = mass.iter().sum();
            let mut chains = TopicChains::new(&urn, &mut rng).unwrap();
            let (mut after, mut n_moved, n_sweeps) = (vec![0.0; mass.len()], 0, 20_000);
            for _ in 0..n_sweeps {
                let darts =
                    chains.uniforms().map(|u| pick(mass.iter().copied(), u * total).unwrap());
                let states = darts.map(state);
                let topics: Vec<_> = (0..cells.len())
                    .map(|token| std::array::from_fn(|lane| states[lane][token] as u16))
                    .collect();
                chains.refill(&topics);
                sweep(&mut chains, &urn, order);
                for lane in 0..LANES {
                    let topics = chains.topics().iter();
                    let now = topics.fold(0, |sum, x| n_topics * sum + usize::from(x[lane]));
                    after[now] += 1.0;
                    n_moved += usize::from(now != darts[lane]);
                }
            }
            let n = (n_sweeps * LANES) as f64;
            assert!(n_moved as f64 > 0.1 * n, "{n_moved}");
            let (mut chi2, mut n_possible) = (0.0, 0.0);
            for (after, mass) in after.iter().zip(&mass).filter(|(_, mass)| **mass > 0.0) {
                let expected = n * mass / total;
                chi2 += (after - expected).powi(2) / expected;
                n_possible += 1.0;
            }
            assert!(chi2 < n_possible + 4.0 * f64::sqrt(2.0 * n_possible), "{chi2} {n_possible}");
        }
    }

    #[test]
    fn sweeps_keep_the_distribution() {
        check(|chains, urn, order| chains.sweep(UrnTarget::of(urn), order, &()).unwrap());
        check(|chains, urn, order| {
            chains.sweep_words(None, UrnTarget::of(urn), order, &()).unwrap();
        });
        check(|chains, urn, order| {
            let lists = Shortlists::new(urn, &vec![1.0; urn.n_topics()], 0.25);
            chains.sweep_words(Some(&lists), UrnTarget::of(urn), order, &()).unwrap();
        });
    }
}

//! The division of a word between two topics.

// Each kernel is compiled for several instruction sets, with all its parts in it.
// The compiler makes vectors of selected numbers, and not of converted truth values.
#![allow(clippy::inline_always, clippy::bool_to_int_with_if)]

use super::word::Word;
use crate::rng::{LANES, Lanes, UniformLanes, map_lanes};
use crate::urn::Counts;

/// Tokens of a word that are divided anew at most, and the least share of a division of those up to it: of
/// so many tokens, halves may be 2^-512 times as likely as all or none.
const MOST_DIVIDED: usize = 512;
const RAREST: f64 = 1e300;

/// Divides the tokens that two topics hold anew between them, by the conditional of the division: where
/// a topic likes to hold all tokens of a word or none, the ways between are rare. One topic is that
/// of any token, the other any on the list: so likely before as after.
#[polyabayes_macros::vectorised]
pub(super) fn divide<U: UniformLanes>(
    word: &mut Word<'_, '_>,
    topics: &mut [[u16; LANES]],
    uniforms: &mut U,
) {
    let n_moved = topics.len().min(MOST_DIVIDED);
    let topics = &mut topics[..n_moved];
    let (darts, others) = (uniforms.next(), uniforms.next());
    let mut pair = [[0; LANES]; 2];
    let mut is_still = [false; LANES];
    for lane in 0..LANES {
        let one = topics[(darts[lane] * n_moved as f64) as usize][lane];
        let place = (others[lane] * (word.among.len() - 1) as f64) as usize;
        let own = word.among.binary_search(&one);
        let other = word.among[place + usize::from(own.is_ok_and(|own| own <= place))];
        pair[0][lane] = one.min(other);
        pair[1][lane] = one.max(other);
        is_still[lane] = own.is_err();
    }
    let [one, other] = pair;
    let mut held = [[0; LANES]; 2];
    for topics in topics.iter() {
        for lane in 0..LANES {
            held[0][lane] += i32::from(topics[lane] == one[lane]);
            held[1][lane] += i32::from(topics[lane] == other[lane]);
        }
    }
    for (pair, held) in pair.iter().zip(&held) {
        word.give(pair, &map_lanes(*held, |n| -n));
    }
    let mut total = held[0];
    for lane in 0..LANES {
        total[lane] += held[1][lane];
    }
    let new = word.draw_division(&one, &other, &total, uniforms.next());
    let mut left = [[0; LANES]; 2];
    for lane in 0..LANES {
        let first = if is_still[lane] { held[0][lane] } else { new[lane] };
        left[0][lane] = first;
        left[1][lane] = total[lane] - first;
    }
    for (pair, held) in pair.iter().zip(&left) {
        word.give(pair, held);
    }
    if left == held {
        return;
    }
    let [one, other] = pair;
    let [mut of_one, mut of_other] = left;
    for topics in topics {
        let darts = uniforms.next();
        for lane in 0..LANES {
            let is_of_pair = topics[lane] == one[lane] || topics[lane] == other[lane];
            let n = if is_of_pair && !is_still[lane] { 1 } else { 0 };
            let dart = darts[lane] * f64::from(of_one[lane] + of_other[lane]);
            let to_other = if dart >= f64::from(of_one[lane]) { n } else { 0 };
            of_other[lane] -= to_other;
            of_one[lane] -= n - to_other;
            let new = if to_other > 0 { other[lane] } else { one[lane] };
            topics[lane] = if n > 0 { new } else { topics[lane] };
        }
    }
}

/// Parts of the weight of a word's token in one topic of each lane.
#[derive(Default)]
struct Layers {
    unit: f64,
    base: Lanes,
    rate: Lanes,
    q: Lanes,
    repeat: Lanes,
    /// Tokens in the topic, and those of the word.
    n: Lanes,
    c: Lanes,
}

impl Layers {
    /// Weights beside the tokens that are there, and so many more of the word in each lane: numerators and
    /// denominators.
    #[inline(always)]
    fn weights_beside(&self, more: &Lanes) -> [Lanes; 2] {
        let mut parts = [[0.0; LANES]; 2];
        for lane in 0..LANES {
            let (n, c) = (self.n[lane] + more[lane], self.c[lane] + more[lane]);
            let word = self.q[lane] + self.repeat[lane] * c;
            parts[0][lane] = (self.base[lane] + self.unit * n) * word;
            parts[1][lane] = 1.0 + self.rate[lane] * n;
        }
        parts
    }
}

impl Word<'_, '_> {
    /// Adds tokens of the word to one topic of each lane.
    #[inline(always)]
    pub(super) fn give(&mut self, topics: &[u16; LANES], n: &Counts) {
        for counts in [&mut *self.balls, &mut self.buffers.held[..]] {
            for lane in 0..LANES {
                counts[usize::from(topics[lane])][lane] += n[lane];
            }
        }
    }

    /// Parts of a token's weight in one topic of each lane.
    #[inline(always)]
    fn layers(&self, topics: &[u16; LANES]) -> Layers {
        let mut layers = Layers { unit: self.target.unit, ..Layers::default() };
        for (lane, &topic) in topics.iter().enumerate() {
            let k = usize::from(topic);
            layers.base[lane] = self.target.base[k];
            layers.rate[lane] = self.second.rates[k];
            (layers.q[lane], layers.repeat[lane]) = self.of_word(k);
            layers.n[lane] = f64::from(self.balls[k][lane]);
            layers.c[lane] = f64::from(self.buffers.held[k][lane]);
        }
        layers
    }

    /// Tokens of the first of two topics, of so many in both, which are out.
    #[inline(always)]
    fn draw_division(
        &mut self,
        one: &[u16; LANES],
        other: &[u16; LANES],
        total: &Counts,
        mut darts: Lanes,
    ) -> Counts {
        let (one, other) = (self.layers(one), self.layers(other));
        let most = total.iter().copied().fold(0, i32::max);
        let divisions = &mut self.buffers.divisions;
        divisions.clear();
        let mut last = [1.0; LANES];
        divisions.push(last);
        for m in 1..=most {
            let left = map_lanes(*total, |total| f64::from((total - m).max(0)));
            let gained = one.weights_beside(&[f64::from(m - 1); LANES]);
            let lost = other.weights_beside(&left);
            for lane in 0..LANES {
                let fewer = f64::from(m) * lost[0][lane].max(f64::MIN_POSITIVE) * gained[1][lane];
                let more = (left[lane] + 1.0) * gained[0][lane] * lost[1][lane];
                last[lane] = (1.0 + last[lane] * fewer / more.max(f64::MIN_POSITIVE)).min(RAREST);
            }
            divisions.push(last);
        }
        let mut drawn = [-1; LANES];
        for m in (0..=most).rev() {
            let whole = divisions[m as usize];
            for lane in 0..LANES {
                let is_open = drawn[lane] < 0 && m <= total[lane];
                // The division has one part of the whole.
                let place = darts[lane] * whole[lane] - 1.0;
                let is_drawn = is_open && (place < 0.0 || m == 0);
                drawn[lane] = if is_drawn { m } else { drawn[lane] };
                let rest = place / (whole[lane] - 1.0);
                darts[lane] = if is_open && !is_drawn { rest } else { darts[lane] };
            }
        }
        drawn
    }
}

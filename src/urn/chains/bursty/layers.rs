//! The parts of the weight of a word's token.

// Each kernel is compiled for several instruction sets, with all its parts in it.
#![allow(clippy::inline_always)]

use crate::rng::{LANES, Lanes};

/// Tokens of a word that the draw of its first looks ahead to, one by one; and further ones, as if each
/// met what the last of these does.
pub(super) const LOOKAHEAD: usize = 3;
const BEYOND: usize = 16;

/// Largest product of weights that are looked ahead to: their sums over the topics stay finite.
const MOST_AHEAD: f64 = 1e200;

/// A part of a weight: that of one topic, or of a topic of each lane.
pub(super) trait Part {
    fn of(&self, lane: usize) -> f64;
}

impl Part for f64 {
    #[inline(always)]
    fn of(&self, _: usize) -> f64 {
        *self
    }
}

impl Part for Lanes {
    #[inline(always)]
    fn of(&self, lane: usize) -> f64 {
        self[lane]
    }
}

/// Parts of the weight of a word's token in one topic, the same of all lanes or one of each.
#[derive(Default)]
pub(super) struct Layers<P> {
    pub(super) unit: f64,
    pub(super) base: P,
    pub(super) rate: P,
    pub(super) q: P,
    pub(super) repeat: P,
    /// Tokens in the topic, and those of the word.
    pub(super) n: Lanes,
    pub(super) c: Lanes,
}

impl<P: Part> Layers<P> {
    /// Weights beside the tokens that are there, and so many more of the word in each lane.
    #[inline(always)]
    pub(super) fn weights_beside(&self, more: &Lanes) -> Lanes {
        let mut weights = [0.0; LANES];
        for lane in 0..LANES {
            let (weight, divisor) = self.weight(lane, more[lane]);
            weights[lane] = weight / divisor;
        }
        weights
    }

    /// Weights beside so many more tokens of the word, and beside one more than these: by one division, as
    /// divisions take longest.
    #[inline(always)]
    pub(super) fn pair(&self, more: f64) -> [Lanes; 2] {
        let (mut weights, mut next) = ([0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            let (one, divisor) = self.weight(lane, more);
            let (other, next_divisor) = self.weight(lane, more + 1.0);
            let inverse = 1.0 / (divisor * next_divisor);
            weights[lane] = one * next_divisor * inverse;
            next[lane] = other * divisor * inverse;
        }
        [weights, next]
    }

    /// How much the weight grows with each token of the word that joins, up to [`LOOKAHEAD`], and the
    /// weight.
    #[inline(always)]
    pub(super) fn gains(&self) -> ([Lanes; LOOKAHEAD], Lanes) {
        let ([own, one], [two, three]) = (self.pair(0.0), self.pair(2.0));
        let mut gains = [one, two, three];
        for gains in &mut gains {
            for lane in 0..LANES {
                gains[lane] -= own[lane];
            }
        }
        (gains, own)
    }

    /// A weight, and what it is to be divided by.
    #[inline(always)]
    fn weight(&self, lane: usize, more: f64) -> (f64, f64) {
        let (n, c) = (self.n[lane] + more, self.c[lane] + more);
        let word = self.q.of(lane) + self.repeat.of(lane) * c;
        ((self.base.of(lane) + self.unit * n) * word, 1.0 + self.rate.of(lane) * n)
    }
}

/// Product over the tokens after the first of the total weights that they meet, over that which the first
/// does, where all join it: to as many tokens as there are gains, and about beyond. `inverse` is that of
/// the total that the first meets.
#[inline(always)]
pub(super) fn ahead(gains: &[Lanes], inverse: &Lanes, n_tokens: usize) -> Lanes {
    let (mut product, mut last) = ([1.0; LANES], [1.0; LANES]);
    let n_ahead = n_tokens - 1;
    for gain in &gains[..n_ahead.min(LOOKAHEAD)] {
        for lane in 0..LANES {
            last[lane] = (1.0 + gain[lane] * inverse[lane]).max(f64::MIN_POSITIVE);
            product[lane] = (product[lane] * last[lane]).min(MOST_AHEAD);
        }
    }
    let mut power = n_ahead.min(LOOKAHEAD + BEYOND).saturating_sub(LOOKAHEAD);
    while power > 0 {
        for lane in 0..LANES {
            let factor = if power % 2 == 1 { last[lane] } else { 1.0 };
            product[lane] = (product[lane] * factor).min(MOST_AHEAD);
            last[lane] = (last[lane] * last[lane]).clamp(f64::MIN_POSITIVE, MOST_AHEAD);
        }
        power /= 2;
    }
    product
}

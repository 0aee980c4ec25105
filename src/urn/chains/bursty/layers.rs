//! The parts of the weight of a word's token.

// Each kernel is compiled for several instruction sets, with all its parts in it.
#![allow(clippy::inline_always)]

use crate::rng::{LANES, Lanes};

/// Tokens of a word that the draw of its first looks ahead to, one by one; and further ones, as if each
/// met what the last of these does.
const LOOKAHEAD: usize = 3;
const BEYOND: usize = 16;

/// Largest product of weights that are looked ahead to: their sums over the topics stay finite.
const MOST_AHEAD: f64 = 1e200;

/// Parts of the weight of a word's token in one topic of each lane.
#[derive(Default)]
pub(super) struct Layers {
    pub(super) unit: f64,
    pub(super) base: Lanes,
    pub(super) rate: Lanes,
    pub(super) q: Lanes,
    pub(super) repeat: Lanes,
    /// Tokens in the topic, and those of the word.
    pub(super) n: Lanes,
    pub(super) c: Lanes,
}

impl Layers {
    /// Weights beside the tokens that are there, and so many more of the word.
    #[inline(always)]
    pub(super) fn weights(&self, more: f64) -> Lanes {
        self.weights_beside(&[more; LANES])
    }

    #[inline(always)]
    pub(super) fn weights_beside(&self, more: &Lanes) -> Lanes {
        let mut weights = [0.0; LANES];
        for lane in 0..LANES {
            let (n, c) = (self.n[lane] + more[lane], self.c[lane] + more[lane]);
            // A topic that cannot produce the word has none of its tokens, however many.
            let word = if self.q[lane] > 0.0 { self.q[lane] + self.repeat[lane] * c } else { 0.0 };
            weights[lane] = (self.base[lane] + self.unit * n) * word / (1.0 + self.rate[lane] * n);
        }
        weights
    }

    /// Product over the tokens after the first of the total weights that they meet, over that which the first
    /// does, where all join it: to [`LOOKAHEAD`] tokens, and about beyond.
    #[inline(always)]
    pub(super) fn ahead(&self, first: &Lanes, n_tokens: usize) -> Lanes {
        let (mut product, mut last) = ([1.0; LANES], [1.0; LANES]);
        let (own, n_ahead) = (self.weights(0.0), n_tokens - 1);
        for token in 1..=n_ahead.min(LOOKAHEAD) {
            let weights = self.weights(token as f64);
            for lane in 0..LANES {
                last[lane] = (first[lane] - own[lane] + weights[lane]) / first[lane];
                product[lane] = (product[lane] * last[lane]).min(MOST_AHEAD);
            }
        }
        for _ in LOOKAHEAD..n_ahead.min(LOOKAHEAD + BEYOND) {
            for lane in 0..LANES {
                product[lane] = (product[lane] * last[lane]).min(MOST_AHEAD);
            }
        }
        product
    }
}

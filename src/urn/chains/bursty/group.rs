//! All tokens of a word that are in one topic, moved to another together.

// Each kernel is compiled for several instruction sets, with all its parts in it.
#![allow(clippy::inline_always)]

use super::word::Word;
use crate::math::pick_lanes;
use crate::rng::{LANES, Lanes, UniformLanes, map_lanes};

/// Tokens after which weights are scaled: products of so many do not overflow.
const AT_ONCE: usize = 4;

/// Draws the topic of all tokens of the word, in the chains where one topic holds them.
#[polyabayes_macros::vectorised]
pub(super) fn redraw_group<U: UniformLanes>(
    word: &mut Word<'_, '_>,
    topics: &mut [[u16; LANES]],
    is_listed: &impl Fn(u16) -> bool,
    uniforms: &mut U,
) {
    let old = topics[0];
    let n_tokens = topics.len() as i32;
    let mut n_moved = old.map(|topic| if is_listed(topic) { n_tokens } else { 0 });
    for topics in &*topics {
        for lane in 0..LANES {
            n_moved[lane] = if topics[lane] == old[lane] { n_moved[lane] } else { 0 };
        }
    }
    if n_moved == [0; LANES] {
        return;
    }
    word.give(&old, &map_lanes(n_moved, |n| -n));
    let total = word.weigh_group(topics.len());
    let places = pick_lanes(&word.buffers.sums[..word.among.len()], uniforms.next());
    let mut new = map_lanes(places, |place| word.among[place as usize]);
    for lane in 0..LANES {
        let is_kept = n_moved[lane] == 0 || !(total[lane] > 0.0 && total[lane].is_finite());
        new[lane] = if is_kept { old[lane] } else { new[lane] };
    }
    word.give(&new, &n_moved);
    for topics in topics {
        for lane in 0..LANES {
            topics[lane] = if n_moved[lane] > 0 { new[lane] } else { topics[lane] };
        }
    }
}

impl Word<'_, '_> {
    /// Fills the cumulative weights of all tokens of the word, up to a factor; returns the totals.
    #[inline(always)]
    fn weigh_group(&mut self, n_tokens: usize) -> Lanes {
        let unit = self.target.unit;
        let mut weights = std::mem::take(&mut self.buffers.weights);
        weights.clear();
        weights.resize(self.among.len(), [1.0; LANES]);
        let mut scale = [1.0; LANES];
        for first in (0..n_tokens).step_by(AT_ONCE) {
            let last = n_tokens.min(first + AT_ONCE);
            let mut most = [f64::MIN_POSITIVE; LANES];
            for (&topic, weights) in self.among.iter().zip(&mut weights) {
                let k = usize::from(topic);
                let (base, rate) = (self.target.base[k], self.second.rates[k]);
                let (q, repeat) = self.of_word(k);
                let (mut own, mut all, mut words) = ([1.0; LANES], [1.0; LANES], 1.0);
                for token in first..last {
                    let earlier = token as f64;
                    words *= q + repeat * earlier;
                    for lane in 0..LANES {
                        let n = f64::from(self.balls[k][lane]) + earlier;
                        own[lane] *= base + unit * n;
                        all[lane] *= 1.0 + rate * n;
                    }
                }
                for lane in 0..LANES {
                    let weight = weights[lane] * (own[lane] * scale[lane] * words / all[lane]);
                    weights[lane] = weight;
                    most[lane] = if weight > most[lane] { weight } else { most[lane] };
                }
            }
            scale = map_lanes(most, f64::recip);
        }
        let mut total = [0.0; LANES];
        for (sums, weights) in self.buffers.sums.iter_mut().zip(&weights) {
            for lane in 0..LANES {
                total[lane] += weights[lane];
            }
            *sums = total;
        }
        self.buffers.weights = weights;
        total
    }
}

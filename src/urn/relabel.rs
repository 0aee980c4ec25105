//! Moves of all tokens of one topic to another that holds none.

use std::ops::RangeInclusive;

use super::UrnTarget;
use super::chains::TopicChains;
use crate::math::pick;
use crate::rng::{LANES, UniformLanes};

/// Largest weights between which the weights of a move are not scaled.
const UNSCALED: RangeInclusive<f64> = 1e-100..=1e100;

impl<U: UniformLanes> TopicChains<U> {
    /// Gives the tokens of one topic in every chain, that of a random token, the name of a topic
    /// drawn from all that hold none and the topic itself, by their weights. Single tokens hardly
    /// ever get there where pseudo-counts are tiny: a topic costs ln a to open. The move is its own
    /// reversal.
    pub fn relabel(&mut self, target: UrnTarget<'_>) {
        let n_tokens = self.topics().len();
        let tokens = self.uniforms().map(|u| (u * n_tokens as f64) as usize);
        let darts = self.uniforms();
        let n_topics = target.base.len();
        let mut weights = vec![0.0; n_topics];
        for lane in 0..LANES {
            let old = self.topics()[tokens[lane]][lane];
            for (k, weight) in weights.iter_mut().enumerate() {
                let is_free = self.balls()[k][lane] == 0 || k == usize::from(old);
                *weight = f64::from(u8::from(is_free));
            }
            let (mut n_seen, mut c_seen, mut before) = (0.0, 0.0, u32::MAX);
            for token in 0..n_tokens {
                if self.topics()[token][lane] != old {
                    continue;
                }
                let cell = self.cells()[token];
                c_seen = if cell == before { c_seen + 1.0 } else { 0.0 };
                before = cell;
                let largest = multiply(&mut weights, target, cell, n_seen, c_seen);
                if !UNSCALED.contains(&largest) {
                    weights.iter_mut().for_each(|weight| *weight /= largest);
                }
                n_seen += 1.0;
            }
            let total: f64 = weights.iter().sum();
            let new =
                pick(weights.iter().copied(), darts[lane] * total).unwrap_or(usize::from(old));
            self.rename(lane, old, new as u16);
        }
    }
}

/// Multiplies each product by the weight of a token in that topic, which holds n tokens, c of them of the
/// same word. Returns the largest product.
#[polyabayes_macros::vectorised]
fn multiply(products: &mut [f64], target: UrnTarget<'_>, cell: u32, n: f64, c: f64) -> f64 {
    let topics = products.iter_mut().zip(target.base).zip(target.row(cell));
    if let Some(second) = target.bursts {
        let scale = c * second.scales[cell as usize];
        for (((product, base), q), (rate, repeat)) in
            topics.zip(second.rates.iter().zip(second.repeats))
        {
            // A topic that cannot produce the word has none of its tokens, however many.
            let word = if *q > 0.0 { q + repeat * scale } else { 0.0 };
            *product *= (base + target.unit * n) * word / (1.0 + rate * n);
        }
    } else {
        topics.for_each(|((product, base), q)| *product *= (base + target.unit * n) * q);
    }
    let mut largest = [0.0; LANES];
    for products in products.chunks(LANES) {
        for (largest, &product) in largest.iter_mut().zip(products) {
            *largest = if product > *largest { product } else { *largest };
        }
    }
    largest.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};
    use crate::urn::LocalUrn;

    /// The weights of 300 tokens are about 300!, beyond the largest number.
    #[test]
    fn topics_that_weigh_the_same_take_each_others_tokens_half_the_time() {
        let (one, other): ([f64; 2], [f64; 2]) = ([1.0, 0.99], [0.99, 1.0]);
        let urn = LocalUrn::from_rows(&[0.3, 0.3], &[(&one, 150), (&other, 150)]).unwrap();
        let mut rng = Key::new(1, Purpose::Score).rng();
        let mut chains = TopicChains::new(&urn, &mut rng).unwrap();
        (0..300).for_each(|_| chains.put([0; LANES]));
        let n_moves = 100;
        let mut n_in_first = 0;
        for _ in 0..n_moves {
            chains.relabel(UrnTarget::of(&urn));
            n_in_first += chains.topics()[299].iter().filter(|&&topic| topic == 0).count();
        }
        let n = (n_moves * LANES) as f64;
        assert!((n_in_first as f64 - n / 2.0).abs() < 4.0 * (n / 4.0).sqrt());
        let n_tokens = chains.balls().iter().map(|balls| balls[0] as usize).sum::<usize>();
        assert_eq!(n_tokens, 300);
    }
}

//! Drawing the colours of a document's tokens: in sequence, and by Gibbs sweeps.

use rand::RngExt;

use super::Balls;
use crate::math::pick;
use crate::rng::Rng;

/// Topics per block of a draw: partial sums over a block have no serial dependence.
const BLOCK: usize = 8;

/// Draws colours; owns the buffers of a draw.
#[derive(Debug, Clone)]
pub struct Sweeper {
    products: Vec<f64>,
    sums: Vec<f64>,
}

impl Sweeper {
    /// A sweeper for urns of up to `n_topics` colours.
    pub fn new(n_topics: usize) -> Self {
        let n_blocks = n_topics.div_ceil(BLOCK);
        Sweeper { products: vec![0.0; n_blocks * BLOCK], sums: vec![0.0; n_blocks] }
    }

    /// Draws a colour with probability proportional to `balls[k] * q[k]`.
    #[inline]
    pub fn draw(&mut self, balls: &[f64], q: &[f64], rng: &mut Rng) -> usize {
        let total = self.fill_products(balls, q);
        self.pick(balls.len(), total, rng)
    }

    /// Draws a colour with probability proportional to its product.
    #[inline]
    fn pick(&self, n_topics: usize, total: f64, rng: &mut Rng) -> usize {
        let mut rest = rng.random::<f64>() * total;
        let n_blocks = n_topics.div_ceil(BLOCK);
        let mut block = 0;
        while block + 1 < n_blocks && rest >= self.sums[block] {
            rest -= self.sums[block];
            block += 1;
        }
        let start = block * BLOCK;
        match pick(self.products[start..n_topics].iter().copied(), rest) {
            Some(beyond) => start + beyond,
            None => last_positive(&self.products[..n_topics]),
        }
    }

    /// Writes the products and their sums by block; returns the total.
    #[inline]
    fn fill_products(&mut self, balls: &[f64], q: &[f64]) -> f64 {
        let (ball_blocks, ball_rest) = balls.as_chunks::<BLOCK>();
        let (q_blocks, q_rest) = q.as_chunks::<BLOCK>();
        let (out_blocks, _) = self.products.as_chunks_mut::<BLOCK>();
        let mut total = 0.0;
        let full = ball_blocks.len();
        for i in 0..full {
            let out = &mut out_blocks[i];
            for j in 0..BLOCK {
                out[j] = ball_blocks[i][j] * q_blocks[i][j];
            }
            let sum =
                ((out[0] + out[4]) + (out[1] + out[5])) + ((out[2] + out[6]) + (out[3] + out[7]));
            self.sums[i] = sum;
            total += sum;
        }
        if !ball_rest.is_empty() {
            let mut sum = 0.0;
            for (out, (x, q)) in out_blocks[full].iter_mut().zip(ball_rest.iter().zip(q_rest)) {
                *out = x * q;
                sum += *out;
            }
            self.sums[full] = sum;
            total += sum;
        }
        total
    }

    /// One Gibbs sweep where tokens are `REDRAWN`: every token in turn leaves the urn and is drawn
    /// again given the others, which leaves the posterior of the colours given the weights
    /// invariant. Else draws in sequence, each token given those before it.
    ///
    /// `cells` gives (weights, count) of every distinct word; `assignments` the colour of every
    /// token, cell after cell, which must be those in `balls` where they are redrawn. Cost: tokens x
    /// topics.
    pub fn draw_all<'q, const REDRAWN: bool>(
        &mut self,
        cells: impl Iterator<Item = (&'q [f64], u32)>,
        assignments: &mut [u16],
        balls: &mut Balls,
        rng: &mut Rng,
    ) {
        let mut rest = assignments;
        for (q, count) in cells {
            let (tokens, after) = rest.split_at_mut(count as usize);
            for token in tokens {
                if REDRAWN {
                    balls.remove(usize::from(*token));
                }
                let topic = self.draw(balls.totals(), q, rng);
                balls.add(topic);
                *token = topic as u16;
            }
            rest = after;
        }
    }
}

/// Rounding may carry a draw past the last block; the last colour that is possible takes it.
#[cold]
fn last_positive(products: &[f64]) -> usize {
    products.iter().rposition(|&p| p > 0.0).unwrap_or(0)
}

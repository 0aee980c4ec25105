//! The cluster function `C(v) = (|v| - 1)! Σ_k a_k Π_w q_kw^{v_w}`: ln of the urn sums' exponential
//! generating function.

// Rows are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use super::axis::WordAxis;
use super::convolution::N_LANES;
use crate::control::Observer;
use crate::error::{Result, array_of};

/// States of the low axes, whose products of weights are kept for every topic.
const LOW_STATES: usize = 512;

/// Products of the words' weights, apart for the low axes and for the others.
pub(super) struct Clusters<'a> {
    axes: &'a [WordAxis],
    a: &'a [f64],
    /// Weights by axis and topic.
    q: &'a [f64],
    /// Number of axes that are low.
    n_low: usize,
    /// Π over the low axes, for eight states at a time, topic by topic.
    low: Vec<f64>,
    /// |v| of the low states.
    pub(super) orders: Vec<usize>,
    /// n!
    factorials: Vec<f64>,
}

/// Number of axes that are low.
fn n_low(axes: &[WordAxis]) -> usize {
    axes.iter().take_while(|axis| axis.states() <= LOW_STATES).count()
}

impl<'a> Clusters<'a> {
    /// Numbers that are kept.
    pub(super) fn numbers(axes: &[WordAxis], n_topics: usize) -> f64 {
        axes[n_low(axes) - 1].states() as f64 * n_topics as f64
    }

    /// Clusters of the axes, the lowest first, given the weights `q` of their words, a row each.
    pub(super) fn new(axes: &'a [WordAxis], a: &'a [f64], q: &'a [f64]) -> Result<Self> {
        let n_low = n_low(axes);
        let n_states = axes[n_low - 1].states();
        let mut low = array_of("products of weights", n_states * a.len(), 1.0)?;
        let mut orders = vec![0; n_states];
        for (state, order) in orders.iter_mut().enumerate() {
            for (axis, q) in axes[..n_low].iter().zip(q.chunks_exact(a.len())) {
                let power = axis.digit(state);
                *order += power;
                let products = low[place(state, a.len())..].iter_mut().step_by(N_LANES).zip(q);
                match power {
                    0 => {}
                    // A power is a call, which most words need not.
                    1 => products.for_each(|(product, q)| *product *= q),
                    _ => products.for_each(|(product, q)| *product *= q.powi(power as i32)),
                }
            }
        }
        let n_tokens: usize = axes.iter().map(|axis| axis.y).sum();
        let mut factorials = vec![1.0; n_tokens + 1];
        for n in 1..=n_tokens {
            factorials[n] = factorials[n - 1] * n as f64;
        }
        Ok(Clusters { axes, a, q, n_low, low, orders, factorials })
    }

    /// C of the states with `count` copies of the word of an axis above the low ones or within, and
    /// any of the axes below it: passes them to `each` in rows, with the first state of each row.
    pub(super) fn rows(
        &self,
        axis: usize,
        count: usize,
        observer: &dyn Observer,
        mut each: impl FnMut(usize, &[f64]),
    ) -> Result<()> {
        let products = self.a.iter().zip(self.weights(axis));
        let products: Vec<f64> = products.map(|(a, q)| a * q.powi(count as i32)).collect();
        let mut row = vec![0.0; self.orders.len().min(self.axes[axis].stride.max(N_LANES))];
        let mut row = |first: usize, order: usize, products: &[f64]| {
            observer.check_stop()?;
            fill(&mut row, &self.low, products);
            for (x, low) in row.iter_mut().zip(&self.orders) {
                *x *= self.factorials[order + low - 1];
            }
            each(first, &row);
            Ok(())
        };
        self.descend(axis, 0, count, &products, &mut row)
    }

    fn weights(&self, axis: usize) -> &[f64] {
        &self.q[axis * self.a.len()..][..self.a.len()]
    }

    /// Goes through the states of the axes below `level` and above the low ones: passes the first
    /// state of a row, its |v| and its products to `row`.
    fn descend(
        &self,
        level: usize,
        first: usize,
        order: usize,
        products: &[f64],
        row: &mut impl FnMut(usize, usize, &[f64]) -> Result<()>,
    ) -> Result<()> {
        if level <= self.n_low {
            return row(first, order, products);
        }
        let axis = self.axes[level - 1];
        let mut products = products.to_vec();
        for count in 0..=axis.y {
            self.descend(level - 1, first + count * axis.stride, order + count, &products, row)?;
            products.iter_mut().zip(self.weights(level - 1)).for_each(|(x, q)| *x *= q);
        }
        Ok(())
    }
}

/// Place of a state's product for the first topic; those of the others follow at distances of
/// [`N_LANES`].
fn place(state: usize, n_topics: usize) -> usize {
    state / N_LANES * n_topics * N_LANES + state % N_LANES
}

/// Σ_k products_k low_k, for every state of the row.
#[polyabayes_macros::vectorised(avx2)]
fn fill(row: &mut [f64], low: &[f64], products: &[f64]) {
    let blocks = low.chunks_exact(N_LANES * products.len());
    for (out, block) in row.chunks_exact_mut(N_LANES).zip(blocks) {
        let (terms, _) = block.as_chunks::<N_LANES>();
        let mut sum = [0.0; N_LANES];
        for (x, term) in products.iter().zip(terms) {
            for lane in 0..N_LANES {
                sum[lane] += x * term[lane];
            }
        }
        out.copy_from_slice(&sum);
    }
}

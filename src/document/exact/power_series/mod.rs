//! Exact urn sum of documents of some two dozen distinct words, for any number of topics, by set
//! power series.
//!
//! The urn sum Z, as a function of a partial document v <= y, is the exponential of the cluster
//! function `C(v) = (|v| - 1)! Σ_k a_k Π_w q_kw^{v_w}` under the product
//! `(f * g)(v) = Σ_{u <= v} C(v, u) f(u) g(v - u)`. Words are added one at a time: with w the
//! highest word of v,
//!
//! ```text
//! Z(v) = Σ_{u <= v, u_w > 0} C(v_w - 1, u_w - 1) Π_{x < w} C(v_x, u_x)  C(u) Z(v - u),
//! ```
//!
//! which is a product of functions of the words below w, taken by ranked zeta transforms
//! (`convolution.rs`; Björklund, Husfeldt, Kaski and Koivisto 2007). Of the last word only one
//! value is wanted, a sum. About N² Π (y_w + 1) / 2 multiply-adds, and K Π (y_w + 1) for C.
//!
//! The transforms have terms of both signs, whose sum is as small as Z(v). They stay small where
//! all tokens are about as probable given the others: weights are divided by that probability under
//! the mean field, and multiplied back at the end.

mod axis;
mod clusters;
mod convolution;

use clusters::Clusters;
use convolution::{BINOMIALS, Convolution, LANE_AXES, MAX_COPIES, N_LANES, add};

use self::axis::{MAX_TOKENS, WordAxis};
use super::Cost;
use crate::control::Observer;
use crate::document::estimators::mean_field::{self, MeanField};
use crate::error::{Result, array_of};
use crate::math::ln_rising;
use crate::urn::LocalUrn;

/// Pseudo-counts below this make sums of either sign that are large beside Z(v): some states then
/// need many more topics than others of as many tokens.
const LEAST_PSEUDO_COUNT: f64 = 1e-3;

/// |ln Z(v)| up to which plain doubles carry the recursion.
const LN_RANGE: f64 = 600.0;

/// Sweeps of the mean field behind the scale of the weights.
const MEAN_FIELD_ITERATIONS: usize = 20;

/// Cost of the series on one document; infinite where it does not apply, or where doubles would
/// over- or underflow.
pub fn cost(urn: &LocalUrn) -> Cost {
    let least = urn.pseudo_counts().iter().copied().fold(f64::INFINITY, f64::min);
    let n_ones = urn.counts().iter().filter(|&&y| y == 1).count();
    let most = urn.counts().iter().copied().max().unwrap_or(0) as usize;
    let n_tokens = urn.n_tokens() as usize;
    if n_ones < LANE_AXES
        || urn.n_distinct() <= LANE_AXES
        || most > MAX_COPIES
        || n_tokens > MAX_TOKENS
        || least < LEAST_PSEUDO_COUNT
        || !fits_doubles(urn)
    {
        return Cost { operations: f64::INFINITY, bytes: 0.0 };
    }
    let axes = axes(urn.counts());
    let n_topics = urn.n_topics() as f64;
    let mut operations = 0.0;
    for (index, axis) in axes.iter().enumerate().skip(LANE_AXES) {
        let pairs = (axis.y * (axis.y + 1) / 2) as f64;
        let is_last = index + 1 == axes.len();
        let n_convolved = if is_last { pairs - axis.y as f64 } else { pairs };
        operations += n_convolved * convolution::operations(&axes[..index]);
        operations += pairs * n_topics * axis.stride as f64;
    }
    let numbers = ArenaLayout::new(&axes).total + Clusters::numbers(&axes, urn.n_topics());
    Cost { operations, bytes: size_of::<f64>() as f64 * numbers }
}

/// Bounds on Z(v), with weights divided by at least the least pseudo-count: at most all balls and
/// tokens a token, at least the least pseudo-count a token.
fn fits_doubles(urn: &LocalUrn) -> bool {
    let n = urn.n_tokens() as f64;
    let a = urn.pseudo_counts();
    let a_sum: f64 = a.iter().sum();
    let a_min = a.iter().copied().fold(1.0, f64::min);
    ln_rising(a_sum.max(1.0), urn.n_tokens()) - n * a_min.ln() < LN_RANGE
        && n * ((a_sum + n) / a_min).ln() < LN_RANGE
}

/// Axes of the words, the lowest first: three words of count 1, then decreasing counts.
fn axes(counts: &[u32]) -> Vec<WordAxis> {
    let mut cells: Vec<usize> = (0..counts.len()).collect();
    cells.sort_by_key(|&cell| counts[cell]);
    cells[LANE_AXES..].reverse();
    let mut stride = 1;
    cells
        .into_iter()
        .map(|cell| {
            let axis = WordAxis { cell, y: counts[cell] as usize, stride };
            stride = axis.states();
            axis
        })
        .collect()
}

/// Places of functions in the arena.
struct ArenaLayout {
    /// C of the states above one word, and a product that is added up.
    clusters: usize,
    product: usize,
    free: usize,
    /// Numbers in all, which may be more than there are.
    total: f64,
}

impl ArenaLayout {
    fn new(axes: &[WordAxis]) -> Self {
        let last = axes[axes.len() - 1];
        let convolved = if last.y > 1 { axes } else { &axes[..axes.len() - 1] };
        let largest = convolved.last().map_or(0, |axis| axis.stride);
        let repeated = convolved.iter().filter(|axis| axis.y > 1).map(|axis| axis.stride).max();
        let clusters = last.y * last.stride;
        let product = clusters + largest;
        let free = product + repeated.unwrap_or(0);
        let below = &axes[..convolved.len().saturating_sub(1).max(LANE_AXES)];
        ArenaLayout { clusters, product, free, total: free as f64 + convolution::scratch(below) }
    }
}

/// ln Z of a document to which [`cost`] gives a finite cost.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop,
/// [`Error::Memory`](crate::Error::Memory) where there is none.
pub fn ln_urn_sum(urn: &LocalUrn, observer: &dyn Observer) -> Result<f64> {
    let axes = axes(urn.counts());
    let scales = scales(urn, observer)?;
    let q: Vec<f64> = (axes.iter())
        .flat_map(|axis| urn.weights(axis.cell).iter().map(|q| q * scales[axis.cell]))
        .collect();
    let clusters = Clusters::new(&axes, urn.pseudo_counts(), &q)?;
    let room = ArenaLayout::new(&axes);
    let mut arena = array_of("partial documents", room.total as usize, 0.0)?;
    start(&axes, urn.pseudo_counts(), &q, &mut arena);
    let (below, last) = (&axes[..axes.len() - 1], axes[axes.len() - 1]);
    for index in LANE_AXES..below.len() {
        for v in 1..=axes[index].y {
            add_word(&axes, index, v, &clusters, &room, &mut arena, observer)?;
        }
    }
    for v in 1..last.y {
        add_word(&axes, below.len(), v, &clusters, &room, &mut arena, observer)?;
    }
    let low: Vec<f64> = (0..clusters.orders.len()).map(|state| n_choices(below, state)).collect();
    let mut sum = 0.0;
    for u in 1..=last.y {
        let rest = &arena[(last.y - u) * last.stride..][..last.stride];
        clusters.rows(below.len(), u, observer, |first, row| {
            let complement = rest[..last.stride - first].iter().rev();
            let terms = row.iter().zip(complement).zip(&low).map(|((x, y), low)| x * y * low);
            let dot = n_choices(below, first) * terms.sum::<f64>();
            sum += BINOMIALS[last.y - 1][u - 1] * dot;
        })?;
    }
    let ln_scales: f64 = scales.iter().zip(urn.counts()).map(|(s, &y)| f64::from(y) * s.ln()).sum();
    Ok(urn.ln_scale() + sum.ln() - ln_scales)
}

/// Π_w C(y_w, v_w) of a state v.
fn n_choices(axes: &[WordAxis], state: usize) -> f64 {
    axes.iter().map(|axis| BINOMIALS[axis.y][axis.digit(state)]).product()
}

/// One over the probability of a token of each word given the others, under the mean field.
fn scales(urn: &LocalUrn, observer: &dyn Observer) -> Result<Vec<f64>> {
    let mean_field = MeanField::first_order(MEAN_FIELD_ITERATIONS);
    let g = mean_field::responsibilities(urn, mean_field, &observer)?;
    let balls = mean_field::expected_balls(urn, &g);
    let rows = g.chunks_exact(urn.n_topics()).zip(urn.cells());
    let conditional = |(g, (q, _)): (&[f64], (&[f64], u32))| {
        let all = balls.iter().zip(urn.pseudo_counts()).zip(g);
        let others = all.map(|((x, a), g)| (x - g).max(*a));
        others.zip(q).map(|(x, q)| x * q).sum::<f64>()
    };
    Ok(rows.map(|row| conditional(row).recip()).collect())
}

/// Z of the words in the lanes.
fn start(axes: &[WordAxis], a: &[f64], q: &[f64], arena: &mut [f64]) {
    let n_topics = a.len();
    let clusters: [f64; N_LANES] = std::array::from_fn(|state| {
        let terms = a.iter().enumerate().map(|(k, a)| {
            let words = (0..LANE_AXES).filter(|&word| axes[word].digit(state) == 1);
            words.fold(*a, |product, word| product * q[word * n_topics + k])
        });
        if state.count_ones() == 3 { 2.0 * terms.sum::<f64>() } else { terms.sum() }
    });
    arena[0] = 1.0;
    for state in 1..N_LANES {
        let highest = 1 << state.ilog2();
        let others = state & !highest;
        arena[state] = (0..=others)
            .filter(|part| part & !others == 0)
            .map(|part| clusters[part | highest] * arena[others & !part])
            .sum();
    }
}

/// Z of the states with `v` copies of the word of an axis, from those with fewer.
fn add_word(
    axes: &[WordAxis],
    index: usize,
    v: usize,
    clusters: &Clusters<'_>,
    room: &ArenaLayout,
    arena: &mut [f64],
    observer: &dyn Observer,
) -> Result<()> {
    let stride = axes[index].stride;
    for u in 1..=v {
        clusters.rows(index, u, observer, |first, row| {
            arena[room.clusters + first..][..row.len()].copy_from_slice(row);
        })?;
        let out = if u == 1 { v * stride } else { room.product };
        let below = &axes[..index];
        let convolution = Convolution::new(below, arena, room.free, observer);
        convolution.run(room.clusters, (v - u) * stride, out)?;
        if u > 1 {
            let (sums, product) = arena.split_at_mut(room.product);
            add(&mut sums[v * stride..][..stride], &product[..stride], BINOMIALS[v - 1][u - 1]);
        }
    }
    Ok(())
}

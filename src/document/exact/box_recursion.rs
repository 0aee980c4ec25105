//! Exact urn sum by a recursion over partial documents, independent of the number of topics.
//!
//! `G(z) = Π_k (1 - Σ_w q_kw z_w)^{-a_k}` has `Z = Π y_w! [z^y] G`. With the coefficients of ln G,
//! `ℓ_u = (|u|-1)!/Πu! Σ_k a_k Π_w q_kw^{u_w}`, those of G follow from
//!
//! ```text
//! v_w c_v = Σ_{0 < u <= v} u_w ℓ_u c_{v-u},   c_0 = 1,
//! ```
//!
//! for any word w of v. All terms are positive. About Π C(y_w + 2, 2) multiply-adds, and fewer
//! because w is the first word of v and only u that hold it count.

use super::cost::Cost;
use crate::control::Observer;
use crate::error::{Result, array_of};
use crate::math::{ln_factorial, ln_rising};
use crate::urn::LocalUrn;

/// |ln c_v| up to which plain doubles carry the recursion.
const LN_RANGE: f64 = 600.0;

/// Name of the arrays over all partial documents.
const STATES: &str = "partial documents";

/// Block size from which a convolution polls the observer.
const POLL_FROM: usize = 4096;

/// Cost of the recursion on one document; infinite where doubles would over- or underflow.
pub fn cost(urn: &LocalUrn) -> Cost {
    if !fits_doubles(urn) {
        return Cost { operations: f64::INFINITY, bytes: 0.0 };
    }
    let mut operations = 0.0;
    let mut inner_pairs = 1.0;
    let mut states = 1.0;
    // From the last axis of the lattice, that of the largest count, where loops are contiguous.
    let mut counts = urn.counts().to_vec();
    counts.sort_unstable();
    for &y in counts.iter().rev() {
        let y = f64::from(y);
        operations += y * (y + 1.0) / 2.0 * inner_pairs;
        inner_pairs *= (y + 1.0) * (y + 2.0) / 2.0;
        states *= y + 1.0;
    }
    operations += 2.0 * urn.n_topics() as f64 * states;
    Cost { operations, bytes: 5.0 * size_of::<f64>() as f64 * states }
}

/// Bounds on c_v: at most C(N + a - 1, N) W^N, at least Π (a_min / N) over the distinct words.
fn fits_doubles(urn: &LocalUrn) -> bool {
    let n = urn.n_tokens() as f64;
    let w = urn.n_distinct() as f64;
    let a_sum: f64 = urn.pseudo_counts().iter().sum();
    let a_min = urn.pseudo_counts().iter().copied().fold(1.0, f64::min);
    let ln_paths = ln_rising(a_sum, urn.n_tokens()) - ln_factorial(urn.n_tokens());
    let ln_upper = ln_paths.max(0.0) + n * w.max(1.0).ln();
    let ln_lower = w * (a_min / n.max(1.0)).ln();
    ln_upper < LN_RANGE && ln_lower > -LN_RANGE
}

/// ln Z of one document.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn ln_urn_sum(urn: &LocalUrn, observer: &dyn Observer) -> Result<f64> {
    let mut cells: Vec<usize> = (0..urn.n_distinct()).collect();
    cells.sort_by_key(|&cell| urn.counts()[cell]);
    let axes: Vec<BoxAxis> = axes(cells.iter().map(|&cell| urn.counts()[cell] as usize));
    let ell = ln_generating_function(urn, &cells, &axes, observer)?;
    let mut c = array_of(STATES, ell.len(), 0.0)?;
    c[0] = 1.0;
    let mut scaled = array_of(STATES, ell.len(), 0.0)?;
    solve(&axes, &ell, &mut c, &mut scaled, observer)?;
    let ln_permutations: f64 = urn.counts().iter().map(|&y| ln_factorial(u64::from(y))).sum();
    Ok(urn.ln_scale() + ln_permutations + c[c.len() - 1].ln())
}

/// One word's axis of the lattice of partial documents.
#[derive(Debug, Clone, Copy)]
struct BoxAxis {
    /// The word's count.
    y: usize,
    /// Number of states of the axes behind this one.
    stride: usize,
}

fn axes(counts: impl DoubleEndedIterator<Item = usize>) -> Vec<BoxAxis> {
    let mut stride = 1;
    let mut axes: Vec<BoxAxis> = counts
        .rev()
        .map(|y| {
            let axis = BoxAxis { y, stride };
            stride *= y + 1;
            axis
        })
        .collect();
    axes.reverse();
    axes
}

/// ℓ_u for every u <= y; entry 0 has no meaning and is never read.
fn ln_generating_function(
    urn: &LocalUrn,
    cells: &[usize],
    axes: &[BoxAxis],
    observer: &dyn Observer,
) -> Result<Vec<f64>> {
    let n_states = axes.first().map_or(1, |axis| axis.stride * (axis.y + 1));
    // A topic's term grows from u - e_w to u, w the first word of u, by q_kw (|u|-1)/u_w.
    let mut growth = array_of(STATES, n_states, 0.0)?;
    let mut order = array_of(STATES, n_states, 0u32)?;
    for axis in axes.iter().rev() {
        for i in axis.stride..axis.stride * (axis.y + 1) {
            order[i] = order[i - axis.stride] + 1;
            let u = (i / axis.stride) as f64;
            growth[i] = f64::from((order[i] - 1).max(1)) / u;
        }
    }
    let mut ell = array_of(STATES, n_states, 0.0)?;
    let mut term = array_of(STATES, n_states, 0.0)?;
    for (k, &a) in urn.pseudo_counts().iter().enumerate() {
        observer.check_stop()?;
        term[0] = a;
        for (axis, &cell) in axes.iter().zip(cells).rev() {
            let q = urn.weights(cell)[k];
            for u in 1..=axis.y {
                let (done, open) = term.split_at_mut(u * axis.stride);
                let source = &done[(u - 1) * axis.stride..];
                let growth = &growth[u * axis.stride..][..axis.stride];
                for ((new, &old), &growth) in open.iter_mut().zip(source).zip(growth) {
                    *new = old * q * growth;
                }
            }
        }
        for (sum, &term) in ell.iter_mut().zip(&term) {
            *sum += term;
        }
    }
    Ok(ell)
}

/// Fills c over the lattice of `axes`, given c_0.
fn solve(
    axes: &[BoxAxis],
    ell: &[f64],
    c: &mut [f64],
    scaled: &mut [f64],
    observer: &dyn Observer,
) -> Result<()> {
    let Some((axis, inner)) = axes.split_first() else {
        return Ok(());
    };
    let size = axis.stride;
    solve(inner, &ell[..size], &mut c[..size], scaled, observer)?;
    for v in 1..=axis.y {
        let (done, open) = c.split_at_mut(v * size);
        for u in 1..=v {
            let factor = u as f64 / v as f64;
            for (to, &from) in scaled[..size].iter_mut().zip(&ell[u * size..]) {
                *to = from * factor;
            }
            convolve(inner, &scaled[..size], &done[(v - u) * size..], &mut open[..size], observer)?;
        }
    }
    Ok(())
}

/// `out[v] += Σ_{u <= v} x[u] y[v - u]` on the lattice of `axes`.
fn convolve(
    axes: &[BoxAxis],
    x: &[f64],
    y: &[f64],
    out: &mut [f64],
    observer: &dyn Observer,
) -> Result<()> {
    match axes {
        [] => out[0] += x[0] * y[0],
        [BoxAxis { y: 1, .. }, BoxAxis { y: 1, .. }] => convolve_two_by_two(x, y, out),
        [axis] => {
            for (i, &factor) in x[..=axis.y].iter().enumerate() {
                for (to, &from) in out[i..=axis.y].iter_mut().zip(y) {
                    *to += factor * from;
                }
            }
        }
        [axis, inner @ ..] => {
            let size = axis.stride;
            if size >= POLL_FROM {
                observer.check_stop()?;
            }
            for i in 0..=axis.y {
                for j in 0..=axis.y - i {
                    let (x, y) = (&x[i * size..][..size], &y[j * size..][..size]);
                    convolve(inner, x, y, &mut out[(i + j) * size..][..size], observer)?;
                }
            }
        }
    }
    Ok(())
}

/// The commonest innermost case, two words of count 1, written out.
#[inline]
fn convolve_two_by_two(x: &[f64], y: &[f64], out: &mut [f64]) {
    let (x, y, out) = (&x[..4], &y[..4], &mut out[..4]);
    out[0] += x[0] * y[0];
    out[1] += x[0] * y[1] + x[1] * y[0];
    out[2] += x[0] * y[2] + x[2] * y[0];
    out[3] += (x[0] * y[3] + x[3] * y[0]) + (x[1] * y[2] + x[2] * y[1]);
}

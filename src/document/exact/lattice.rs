//! Exact urn sum by a dynamic programme over topic totals.
//!
//! `V_0(0) = 1; V_l(n) = Σ_k V_{l-1}(n - e_k) (a_k + n_k - 1) q_{k w_l}` on the simplex
//! `Σ n_k = l`; `Z = Σ_n V_N(n)`. About `K C(N+K-1, K)` multiply-adds; every term is positive.
//!
//! The last topic's total is implied by the others. The last but one runs along a contiguous
//! *row*; the first `K - 2` totals name the row. Rows are kept in graded order (by the sum of
//! those totals), so that level l needs a prefix of them, every predecessor of a row lies before
//! it, and one array serves all levels when rows are updated from the last to the first.

use super::cost::Cost;
use super::real::{self, Real, Wide};
use crate::control::Observer;
use crate::error::{Result, array_of, room_for};
use crate::math::{ln_binomial, ln_rising};
use crate::urn::LocalUrn;

/// Range, as a logarithm, that plain doubles offer to the states of one level.
///
/// They hold values from the level's maximum (kept near e^600) down to e^-708, of which the levels
/// between two looks at that maximum may use some.
const LN_RANGE: f64 = 1_150.0;

/// Fall of the largest value that plain doubles bear between two looks at it.
const LN_FALL: f64 = 500.0;

/// Levels between two looks at the largest value.
const RESCALE_EVERY: u64 = 4;

/// Cost of the lattice on one document.
pub fn cost(urn: &LocalUrn) -> Cost {
    let (k, n) = (urn.n_topics() as f64, urn.n_tokens() as f64);
    let (operations, states) = if k < 2.0 {
        (1.0, 0.0)
    } else {
        (k * ln_binomial(n + k - 1.0, k).exp(), ln_binomial(n + k - 2.0, k - 1.0).exp())
    };
    let rows = if k > 2.0 { ln_binomial(n + k - 3.0, k - 2.0).exp() } else { 1.0 };
    let value = if fits_doubles(urn) { size_of::<f64>() } else { size_of::<Wide>() };
    let bytes = states * value as f64 + rows * ((k - 2.0).max(0.0) * 16.0 + 16.0);
    Cost { operations, bytes }
}

/// Whether no state that plain doubles would lose can matter: the urn can raise a state against
/// another by at most about 2^N later on, and opening a topic costs a factor of a/N or more.
fn fits_doubles(urn: &LocalUrn) -> bool {
    let n = urn.n_tokens() as f64;
    let least = urn.pseudo_counts().iter().copied().fold(1.0, f64::min);
    let n_opened = n.min(urn.n_topics() as f64);
    let a_sum: f64 = urn.pseudo_counts().iter().sum();
    // The level's maximum itself may fall between two looks, by what its tokens cost.
    let ln_fall = RESCALE_EVERY as f64 * ((a_sum + n) / least).ln();
    n * std::f64::consts::LN_2 + n_opened * (n / least).ln() < LN_RANGE && ln_fall < LN_FALL
}

/// ln Z of one document.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn ln_urn_sum(urn: &LocalUrn, observer: &dyn Observer) -> Result<f64> {
    let n_tokens = urn.n_tokens();
    if n_tokens == 0 {
        return Ok(0.0);
    }
    if urn.n_topics() == 1 {
        return Ok(urn.ln_scale() + ln_rising(urn.pseudo_counts()[0], n_tokens));
    }
    let ln_sum = if fits_doubles(urn) {
        Lattice::<f64>::new(urn)?.run(urn, observer)?
    } else {
        Lattice::<Wide>::new(urn)?.run(urn, observer)?
    };
    Ok(urn.ln_scale() + ln_sum)
}

/// The states of one level.
struct Lattice<T> {
    /// Rows one after the other.
    values: Vec<T>,
    rows: LatticeRows,
    /// Coefficients `(a + n - 1) q` of the last topic, by descending n, and of the last but one.
    last: Vec<f64>,
    along: Vec<f64>,
}

/// Places of the rows in memory, and the rows that precede them.
struct LatticeRows {
    /// Number of totals that name a row: `K - 2`.
    n_named: usize,
    starts: Vec<usize>,
    grades: Vec<u32>,
    /// Per row and named topic: start of the row with one ball less; `usize::MAX` where none.
    predecessors: Vec<usize>,
    /// Per row and named topic: n_k.
    totals: Vec<f64>,
    /// Number of rows of at most each grade.
    up_to_grade: Vec<usize>,
}

impl<T: Real> Lattice<T> {
    fn new(urn: &LocalUrn) -> Result<Self> {
        let n_levels = urn.n_tokens() as usize - 1;
        let (rows, n_values) = LatticeRows::new(urn.n_topics() - 2, n_levels)?;
        let mut values = array_of("totals of the topics", n_values, T::ZERO)?;
        values[0] = T::START;
        Ok(Lattice { values, rows, last: vec![0.0; n_levels + 1], along: vec![0.0; n_levels + 1] })
    }

    fn run(mut self, urn: &LocalUrn, observer: &dyn Observer) -> Result<f64> {
        let a = urn.pseudo_counts();
        let a_sum: f64 = a.iter().sum();
        let n_tokens = urn.n_tokens();
        let mut ln_value = -T::START.ln();
        let mut level = 0;
        for (q, count) in urn.cells() {
            for _ in 0..count {
                level += 1;
                observer.check_stop()?;
                let mut scale = a_sum + (level - 1) as f64;
                if T::NEEDS_SCALING && level % RESCALE_EVERY == 0 {
                    scale *= self.largest(level as usize - 1) / real::TARGET;
                }
                ln_value += scale.ln();
                if level == n_tokens {
                    return Ok(ln_value + self.finish(a, q, scale.recip()).ln());
                }
                self.advance(level as usize, a, q, scale.recip());
            }
        }
        Ok(ln_value)
    }

    /// Replaces level `level - 1` by level `level`.
    fn advance(&mut self, level: usize, a: &[f64], q: &[f64], scale: f64) {
        let n_named = self.rows.n_named;
        let (a_along, q_along) = (a[n_named], q[n_named] * scale);
        let (a_last, q_last) = (a[n_named + 1], q[n_named + 1] * scale);
        for n in 0..=level {
            // Whole numbers first: a may be too small to survive next to 1.
            self.along[n] = (a_along + (n as f64 - 1.0)) * q_along;
            self.last[level - n] = (a_last + (n as f64 - 1.0)) * q_last;
        }
        for row in (0..self.rows.up_to_grade[level]).rev() {
            let grade = self.rows.grades[row] as usize;
            let len = level - grade;
            let (before, from_row) = self.values.split_at_mut(self.rows.starts[row]);
            let values = &mut from_row[..=len];
            // The last value is still the zero it began with.
            let mut before_it = T::ZERO;
            let coefficients = self.along.iter().zip(&self.last[grade..=level]);
            for (value, (&along, &last)) in values.iter_mut().zip(coefficients) {
                let old = *value;
                *value = before_it.times(along).plus(old.times(last));
                before_it = old;
            }
            let named = row * n_named..(row + 1) * n_named;
            let links = self.rows.predecessors[named.clone()].iter().zip(&self.rows.totals[named]);
            for ((&predecessor, &total), (&a, &q)) in links.zip(a.iter().zip(q)) {
                let coefficient = (a + (total - 1.0)) * q * scale;
                if predecessor != usize::MAX && coefficient > 0.0 {
                    let source = &before[predecessor..=predecessor + len];
                    for (value, from) in values.iter_mut().zip(source) {
                        *value = value.plus(from.times(coefficient));
                    }
                }
            }
        }
    }

    /// Σ_n V(n) Σ_k (a_k + n_k) q_k over the last level but one.
    fn finish(&self, a: &[f64], q: &[f64], scale: f64) -> T {
        let level = self.rows.up_to_grade.len() - 1;
        let n_named = self.rows.n_named;
        let mut total = T::ZERO;
        for (row, &grade) in self.rows.grades.iter().enumerate() {
            let totals = &self.rows.totals[row * n_named..(row + 1) * n_named];
            let of_row: f64 =
                totals.iter().zip(a).zip(q).map(|((total, a), q)| (a + total) * q).sum();
            let len = level - grade as usize;
            let start = self.rows.starts[row];
            for (n, value) in self.values[start..=start + len].iter().enumerate() {
                let weight = of_row
                    + (a[n_named] + n as f64) * q[n_named]
                    + (a[n_named + 1] + (len - n) as f64) * q[n_named + 1];
                total = total.plus(value.times(weight * scale));
            }
        }
        total
    }

    /// Largest value of a level.
    fn largest(&self, level: usize) -> f64 {
        let rows = 0..self.rows.up_to_grade[level];
        rows.flat_map(|row| {
            let start = self.rows.starts[row];
            &self.values[start..=start + level - self.rows.grades[row] as usize]
        })
        .fold(0.0, |top, value| value.magnitude().max(top))
    }
}

impl LatticeRows {
    /// The rows of `d` totals for all levels up to `n_levels`, and the number of values they hold.
    ///
    /// Let t_i = n_i + ... + n_d be the tail sums. Rows in lexicographic order of (t_1, ..., t_d)
    /// are in graded order, and the rank of a row is Σ_i C(t_i + d - i, d - i + 1).
    fn new(d: usize, n_levels: usize) -> Result<(Self, usize)> {
        let n_rows = ln_binomial((n_levels + d) as f64, d as f64).exp().round() as usize;
        let name = "rows of totals of the topics";
        let mut rows = LatticeRows {
            n_named: d,
            starts: room_for(name, n_rows)?,
            grades: room_for(name, n_rows)?,
            predecessors: room_for(name, n_rows * d)?,
            totals: room_for(name, n_rows * d)?,
            up_to_grade: vec![1; n_levels + 1],
        };
        let steps = binomials(n_levels, d);
        let mut tails = vec![0usize; d];
        let mut n_values = 0;
        loop {
            let grade = tails.first().copied().unwrap_or(0);
            let rank = rows.starts.len();
            let mut back = 0;
            for i in 0..d {
                let n = tails[i] - tails.get(i + 1).copied().unwrap_or(0);
                if tails[i] > 0 {
                    back += steps[(d - 1 - i) * (n_levels + 1) + tails[i] - 1];
                }
                let predecessor = if n > 0 { rows.starts[rank - back] } else { usize::MAX };
                rows.predecessors.push(predecessor);
                rows.totals.push(n as f64);
            }
            rows.starts.push(n_values);
            rows.grades.push(grade as u32);
            rows.up_to_grade[grade] = rank + 1;
            n_values += n_levels - grade + 1;
            let Some(i) =
                (0..d).rev().find(|&i| tails[i] < if i == 0 { n_levels } else { tails[i - 1] })
            else {
                break;
            };
            tails[i] += 1;
            tails[i + 1..].fill(0);
        }
        for grade in 1..=n_levels {
            rows.up_to_grade[grade] = rows.up_to_grade[grade].max(rows.up_to_grade[grade - 1]);
        }
        Ok((rows, n_values))
    }
}

/// Table of C(t + m, m) for m < `d` and t <= `n`, row by row of m: what lowering the tail sum
/// t + 1 by one takes off the rank.
fn binomials(n: usize, d: usize) -> Vec<usize> {
    let mut table = vec![1usize; d * (n + 1)];
    for m in 1..d {
        for t in 1..=n {
            table[m * (n + 1) + t] = table[m * (n + 1) + t - 1] + table[(m - 1) * (n + 1) + t];
        }
    }
    table
}

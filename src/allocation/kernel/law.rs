//! The distribution of allocations, by their marginal counts.

use super::counts::{CountWeights, Counts, Rows, weigh};
use crate::allocation::model::problem::Problem;
use crate::math::lanes;
use crate::rng::{LANES, Lanes};

/// ln Π_rows base (base + unit) ... (base + unit (S-1)), to the rows' powers: the distribution of
/// allocations under a target.
pub(crate) fn ln_law(problem: &Problem, target: CountWeights<'_>, rows: &[Counts]) -> Lanes {
    let mut ln_values = [0.0; LANES];
    for laid in &problem.margins {
        let range = laid.rows();
        let power = f64::from(laid.margin.exponent);
        let of_margin = ln_rows(&target.base[range.clone()], target.unit, &rows[range]);
        ln_values.iter_mut().zip(of_margin).for_each(|(sum, x)| *sum += power * x);
    }
    ln_values
}

/// ln Σ over allocations of independent tokens, `rows` being the weights of the rows.
pub(crate) fn ln_independent(problem: &Problem, rows: &[f64]) -> f64 {
    let target = CountWeights { base: rows, unit: 0.0 };
    let mut sums = vec![[0.0; LANES]; problem.n_states()];
    let mut zeros = vec![[0; LANES]; problem.n_rows];
    let ln_token = |(cell, &count): (u32, &u64)| {
        let token = Rows { counts: &mut zeros, bases: problem.bases(cell), target };
        let weights = weigh(problem.plan(cell), &token, &mut sums);
        count as f64 * weights[0].ln()
    };
    (0..).zip(&problem.counts).map(ln_token).sum()
}

#[polyabayes_macros::vectorised]
fn ln_rows(base: &[f64], unit: f64, rows: &[Counts]) -> Lanes {
    let mut ln_values = [0.0; LANES];
    if unit == 0.0 {
        for (base, counts) in base.iter().zip(rows) {
            let ln_base = base.ln();
            for lane in 0..LANES {
                ln_values[lane] += f64::from(counts[lane]) * ln_base;
            }
        }
        return ln_values;
    }
    let ln_unit = unit.ln();
    let held = |(_, counts): &(&f64, &Counts)| counts.iter().any(|&n| n > 0);
    for (base, counts) in base.iter().zip(rows).filter(held) {
        let ln_ratios = lanes::ln_gamma_ratio(base / unit, counts.map(f64::from));
        for lane in 0..LANES {
            ln_values[lane] += f64::from(counts[lane]) * ln_unit + ln_ratios[lane];
        }
    }
    ln_values
}

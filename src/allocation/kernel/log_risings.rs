//! ln of rising factorials, from tables: the distribution π of allocations, and the urns of the
//! reference u.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use super::counts::Counts;
use super::split_law::{CountChange, LanePair, SplitLaw, add_rising, add_sums};
use super::urns::ReferenceUrns;
use crate::allocation::model::problem::Problem;
use crate::math::elementary::ln;
use crate::math::ln_rising;
use crate::rng::Lanes;

/// Counts that tables hold.
const MAX_TABLE: usize = 1 << 17;

/// Factors of π and of u in ln.
#[derive(Debug)]
pub(crate) struct LogRisings {
    alphas: Vec<f64>,
    exponents: Vec<f64>,
    n_table: usize,
    /// e ln α(α+1)...(α+n-1), margin after margin.
    ln_rows: Vec<f64>,
    /// Margin of every slot.
    margins: Vec<usize>,
    pub(crate) urns: ReferenceUrns,
    /// ln κ(κ+1)...(κ+n-1)/κ^n.
    ln_states: Vec<f64>,
}

/// Partial sums, the first of them zero.
fn sums(terms: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
    terms.scan(0.0, |sum, term| {
        let before = *sum;
        *sum += term;
        Some(before)
    })
}

impl LogRisings {
    pub(crate) fn new(problem: &Problem, urns: ReferenceUrns) -> Self {
        let margins = || problem.margins.iter().map(|laid| &laid.margin);
        let alphas: Vec<f64> = margins().map(|margin| margin.alpha).collect();
        let exponents: Vec<f64> = margins().map(|margin| f64::from(margin.exponent)).collect();
        let n_slots: usize = margins().map(|margin| margin.slots.len()).sum();
        let n_table = (problem.total as usize + 1).saturating_mul(n_slots + 1).min(MAX_TABLE);
        let slots = margins().enumerate();
        let margins_of_slots =
            slots.flat_map(|(index, margin)| std::iter::repeat_n(index, margin.slots.len()));
        let of_margin = |(alpha, exponent): (&f64, &f64)| {
            let (alpha, exponent) = (*alpha, *exponent);
            sums((0..n_table).map(move |n| exponent * (alpha + n as f64).ln()))
        };
        let ln_rows = alphas.iter().zip(&exponents).flat_map(of_margin).collect();
        let ln_states = sums((0..n_table).map(|n| (n as f64 / urns.kappa).ln_1p())).collect();
        LogRisings {
            alphas,
            exponents,
            n_table,
            ln_rows,
            margins: margins_of_slots.collect(),
            urns,
            ln_states,
        }
    }

    /// e ln α(α+1)...(α+n-1) of a row with n tokens.
    #[inline]
    pub(crate) fn ln_row(&self, margin: usize, n: i32) -> f64 {
        match self.ln_rows[margin * self.n_table..][..self.n_table].get(n as usize) {
            Some(&ln) => ln,
            None => self.exponents[margin] * ln_rising(self.alphas[margin], n as u64),
        }
    }

    /// ln κ(κ+1)...(κ+n-1)/κ^n of a state that holds n tokens of an urn.
    #[inline]
    pub(crate) fn ln_state(&self, n: i32) -> f64 {
        match self.ln_states.get(n as usize) {
            Some(&ln) => ln,
            None => ln_urn_rising(self.urns.kappa, n as u64),
        }
    }
}

/// Divisions of a cell's tokens on the path π^β u^(1-β), at a β for every lane.
pub(crate) struct PoweredSplitLaw<'a> {
    pub(crate) risings: &'a LogRisings,
    pub(crate) betas: &'a Lanes,
    /// Tokens of other cells in the urns of all states; nothing where each cell has its own.
    pub(crate) others: &'a [Counts],
}

impl PoweredSplitLaw<'_> {
    /// Tokens of other cells in the urns of two states.
    fn others_in(&self, LanePair { states, lane }: LanePair) -> [i32; 2] {
        states.map(|state| self.others.get(state).map_or(0, |others| others[lane]))
    }
}

impl SplitLaw for PoweredSplitLaw<'_> {
    #[inline(always)]
    fn add_row(&self, change: &CountChange, start: i32, ln_laws: &mut [f64]) {
        let LogRisings { alphas, margins, ln_rows, n_table, .. } = self.risings;
        let margin = margins[change.slot];
        let table = &ln_rows[margin * n_table..][..*n_table];
        let (n, first) = (ln_laws.len(), start as usize);
        match change.by {
            1 if first + n <= table.len() => {
                let terms = &table[first..][..n];
                for (ln_law, term) in ln_laws.iter_mut().zip(terms) {
                    *ln_law += term;
                }
            }
            -1 if first < table.len() => {
                let terms = &table[first + 1 - n..][..n];
                for (ln_law, term) in ln_laws.iter_mut().zip(terms.iter().rev()) {
                    *ln_law += term;
                }
            }
            _ => add_rising(alphas[margin], 1.0, change, start, ln_laws),
        }
    }

    #[inline(always)]
    fn place(&self, pair: LanePair, first: usize, n_tokens: usize, ln_laws: &mut [f64]) {
        let (beta, n, kappa) = (self.betas[pair.lane], ln_laws.len(), self.risings.urns.kappa);
        let [one, other] = self.others_in(pair).map(|others| others as usize);
        if kappa.is_infinite() {
            for ln_law in ln_laws {
                *ln_law *= beta;
            }
        } else if n_tokens + one.max(other) < self.risings.ln_states.len() {
            let firsts = &self.risings.ln_states[one + first..][..n];
            let others = &self.risings.ln_states[other + n_tokens + 1 - first - n..][..n];
            for (ln_law, (one, other)) in
                ln_laws.iter_mut().zip(firsts.iter().zip(others.iter().rev()))
            {
                let urns = one + other;
                *ln_law = urns + beta * (*ln_law - urns);
            }
        } else {
            ln_laws.iter_mut().for_each(|ln_law| *ln_law *= beta);
            let (first, left) = (first as f64, n_tokens as f64 - first as f64 - 1.0);
            let (one, other) = (kappa + one as f64, kappa + other as f64);
            let ratio = |n: f64| (one + first + n) / (other + (left - n).max(0.0));
            add_sums(ln_laws, |n| (1.0 - beta) * ln(ratio(n)));
        }
    }

    fn ln_row(&self, change: &CountChange, count: i32) -> f64 {
        self.risings.ln_row(self.risings.margins[change.slot], count)
    }

    fn placed(&self, pair: LanePair, tokens: [i32; 2], ln_law: f64) -> f64 {
        let held = tokens.iter().zip(self.others_in(pair));
        let ln_urns: f64 = held.map(|(n, others)| self.risings.ln_state(n + others)).sum();
        ln_urns + self.betas[pair.lane] * (ln_law - ln_urns)
    }
}

/// ln x(x+1)...(x+n-1)/x^n.
pub(crate) fn ln_urn_rising(x: f64, n: u64) -> f64 {
    if x.is_finite() { ln_rising(x, n) - n as f64 * x.ln() } else { 0.0 }
}

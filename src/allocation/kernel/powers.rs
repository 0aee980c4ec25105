//! Factors of the law π to the power β, and of the reference u to the power 1 - β, from tables.
//!
//! Under u the tokens of a cell are draws from a Pólya urn of its own, in which every joint state of
//! the hidden nodes weighs κ: the larger κ, the more evenly they spread.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use super::counts::{Counts, Token};
use crate::allocation::model::plan::Clique;
use crate::allocation::model::problem::Problem;
use crate::math::elementary::exp;
use crate::rng::{LANES, Lanes};

/// Counts that tables hold.
const MAX_TABLE: usize = 4096;

/// The margins of a problem, their pseudo-counts α and exponents e, and the urns of the reference.
#[derive(Debug)]
pub(crate) struct Margins {
    alphas: Vec<f64>,
    exponents: Vec<f64>,
    /// Margin of each slot.
    of_slot: Vec<usize>,
    /// Counts in a table.
    n_table: usize,
    /// e ln(α + n), margin after margin.
    lns: Vec<f64>,
    /// e ln α(α+1)...(α+n-1), margin after margin.
    ln_risings: Vec<f64>,
    /// κ; infinite where all states of all tokens are equally likely.
    pub(crate) kappa: f64,
    /// ln (κ + n)/κ.
    urn_lns: Vec<f64>,
    /// ln κ(κ+1)...(κ+n-1)/κ^n.
    urn_risings: Vec<f64>,
}

/// ln x(x+1)...(x+n-1)/x^n of all n in a table, and ln (x + n)/x.
fn urn_tables(x: f64, n_table: usize) -> (Vec<f64>, Vec<f64>) {
    let lns: Vec<f64> = (0..n_table).map(|n| (n as f64 / x).ln_1p()).collect();
    let sum = |sum: &mut f64, ln: &f64| {
        let before = *sum;
        *sum += ln;
        Some(before)
    };
    (lns.iter().scan(0.0, sum).collect(), lns)
}

impl Margins {
    pub(crate) fn new(problem: &Problem, kappa: f64) -> Self {
        let margins = || problem.margins.iter().map(|laid| &laid.margin);
        let alphas: Vec<f64> = margins().map(|margin| margin.alpha).collect();
        let exponents: Vec<f64> = margins().map(|margin| f64::from(margin.exponent)).collect();
        let slots = |(index, n): (usize, usize)| std::iter::repeat_n(index, n);
        let of_slot = margins().map(|margin| margin.slots.len()).enumerate().flat_map(slots);
        let of_slot: Vec<usize> = of_slot.collect();
        let n_table = (problem.total as usize + 1).saturating_mul(of_slot.len() + 1).min(MAX_TABLE);
        let (mut lns, mut ln_risings) = (Vec::new(), Vec::new());
        for (alpha, exponent) in alphas.iter().zip(&exponents) {
            let mut sum = 0.0;
            for n in 0..n_table {
                let ln = exponent * (alpha + n as f64).ln();
                ln_risings.push(sum);
                lns.push(ln);
                sum += ln;
            }
        }
        let (urn_risings, urn_lns) = urn_tables(kappa, n_table);
        Margins {
            alphas,
            exponents,
            of_slot,
            n_table,
            lns,
            ln_risings,
            kappa,
            urn_lns,
            urn_risings,
        }
    }

    /// ln of the urn's factor of a state that holds n tokens of a cell: ln κ(κ+1)...(κ+n-1)/κ^n.
    #[inline]
    pub(crate) fn urn_rising(&self, n: i32) -> f64 {
        match self.urn_risings.get(n as usize) {
            Some(&ln) => ln,
            None => ln_urn_rising(self.kappa, n as u64),
        }
    }

    /// Margin of a factor.
    #[inline(always)]
    pub(crate) fn margin(&self, clique: &Clique, factor: usize) -> usize {
        self.of_slot[clique.factors[factor].slot]
    }

    /// ln of the law's factor of a row: e ln α(α+1)...(α+n-1).
    #[inline]
    pub(crate) fn ln_rising(&self, margin: usize, n: i32) -> f64 {
        match self.ln_risings[margin * self.n_table..][..self.n_table].get(n as usize) {
            Some(&ln) => ln,
            None => self.exponents[margin] * crate::math::ln_rising(self.alphas[margin], n as u64),
        }
    }

    /// Tables for an inverse temperature.
    pub(crate) fn level(&self, beta: f64) -> Level {
        Level {
            beta,
            powers: self.lns.iter().map(|ln| exp(beta * ln)).collect(),
            urn: self.urn_lns.iter().map(|ln| exp((1.0 - beta) * ln)).collect(),
        }
    }
}

/// ln x(x+1)...(x+n-1)/x^n.
pub(crate) fn ln_urn_rising(x: f64, n: u64) -> f64 {
    if x.is_finite() { crate::math::ln_rising(x, n) - n as f64 * x.ln() } else { 0.0 }
}

/// (α + n)^(eβ) of all margins and ((κ + n)/κ)^(1-β), at one β.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) beta: f64,
    powers: Vec<f64>,
    urn: Vec<f64>,
}

impl Level {
    /// ((κ + n)/κ)^(1-β).
    #[inline(always)]
    pub(crate) fn urn(&self, margins: &Margins, n: i32) -> f64 {
        match self.urn.get(n as usize) {
            Some(&power) => power,
            None => exp((1.0 - self.beta) * (f64::from(n) / margins.kappa).ln_1p()),
        }
    }

    /// (α + n)^(eβ).
    #[inline(always)]
    pub(crate) fn power(&self, margins: &Margins, margin: usize, n: i32) -> f64 {
        if (n as usize) < margins.n_table {
            self.powers[margin * margins.n_table + n as usize]
        } else {
            self.beyond_table(margins, margin, n)
        }
    }

    #[cold]
    fn beyond_table(&self, margins: &Margins, margin: usize, n: i32) -> f64 {
        let ln = (margins.alphas[margin] + f64::from(n)).ln();
        exp(self.beta * margins.exponents[margin] * ln)
    }
}

/// Marginal counts and their powers, as a token sees them.
pub(crate) struct PoweredRows<'a> {
    pub(crate) counts: &'a mut [Counts],
    pub(crate) powers: &'a mut [Lanes],
    pub(crate) bases: &'a [u32],
    pub(crate) margins: &'a Margins,
    pub(crate) levels: &'a [&'a Level; LANES],
    /// Tokens of the cell in every state of the only clique, or nothing.
    pub(crate) held: &'a mut [Counts],
    /// ((κ + n)/κ)^(1-β) of them.
    pub(crate) urn: &'a mut [Lanes],
}

impl PoweredRows<'_> {
    /// Fills the factors of the urn.
    pub(crate) fn fill_urn(&mut self) {
        for (urn, held) in self.urn.iter_mut().zip(&*self.held) {
            for lane in 0..LANES {
                urn[lane] = self.levels[lane].urn(self.margins, held[lane]);
            }
        }
    }
}

impl Token for PoweredRows<'_> {
    const LANE_BY_LANE: bool = true;

    #[inline(always)]
    fn product(&self, clique: &Clique, state: usize) -> Lanes {
        let mut product = self.urn.get(state).copied().unwrap_or([1.0; LANES]);
        for factor in 0..clique.factors.len() {
            let row = clique.row(factor, state, self.bases);
            let tied = clique.factors[factor].tied;
            let hits = if tied { clique.own_hits(factor, state, self.bases) } else { 0 };
            if hits == 0 {
                let powers = &self.powers[row];
                for lane in 0..LANES {
                    product[lane] *= powers[lane];
                }
                continue;
            }
            let margin = self.margins.margin(clique, factor);
            for (lane, product) in product.iter_mut().enumerate() {
                let n = self.counts[row][lane] + hits as i32;
                *product *= self.levels[lane].power(self.margins, margin, n);
            }
        }
        product
    }

    #[inline(always)]
    fn add(&mut self, clique: &Clique, factor: usize, state: usize, lane: usize, x: i32) {
        let row = clique.row(factor, state, self.bases);
        let count = &mut self.counts[row][lane];
        *count += x;
        let margin = self.margins.margin(clique, factor);
        self.powers[row][lane] = self.levels[lane].power(self.margins, margin, *count);
        // Once for all factors.
        if factor == 0 && !self.held.is_empty() {
            self.held[state][lane] += x;
            let n = self.held[state][lane];
            self.urn[state][lane] = self.levels[lane].urn(self.margins, n);
        }
    }

    #[inline(always)]
    fn add_all(&mut self, clique: &Clique, factor: usize, state: usize, x: &Counts) {
        for (lane, &x) in x.iter().enumerate() {
            self.add(clique, factor, state, lane, x);
        }
    }
}

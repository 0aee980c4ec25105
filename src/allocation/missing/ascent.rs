//! Coordinate ascent for tensors with cells that were not observed.
//!
//! Variational Bayes: the intensity and the tables have q(λ) = Gamma(a + T̄, b + 1) and Dirichlet
//! distributions, the tokens of an observed cell are multinomial, and a missing cell has
//! independent Poisson counts of means μ = exp E ln(λ Π θ). With S̄ the expected counts and T̄
//! their total,
//!
//! ln Pr(X_observed) >= a ln b - (a + T̄) ln(b + 1) + ln Γ(a + T̄)/Γ(a) + Σ ln B(α + S̄)/B(α)
//!     + Σ_observed [X H(Φ) - ln X!] + Σ_missing [μ - μ ln μ].
//!
//! Largest likelihood: λ = T_o/ρ_o and μ = λ p, where ρ_o is the probability of the observed cells
//! and p that of a missing one. It ascends
//!
//! ln p(X_observed | λ, θ) = T_o ln λ - T_o + Σ_observed [X ln p - ln X!].
//!
//! EM: given the tables the intensity has the distribution Gamma(a + T_o, b + ρ_o), and
//! μ = p (a + T_o)/(b + ρ_o). It ascends
//!
//! ln p(X_observed, θ) = a ln b - (a + T_o) ln(b + ρ_o) + ln Γ(a + T_o)/Γ(a)
//!     + Σ_observed [X ln p - ln X!] + ln p(θ).

use super::incomplete::Incomplete;
use crate::allocation::ascent::decomposition::{
    Ascent, AscentPoint, Decomposition, Limits, Tables, best_of_starts,
};
use crate::allocation::ascent::sum_product::SumProduct;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::{digamma, ln_factorial, ln_gamma_ratio};

/// Halvings of an interval, after which it is as good as a point.
const BISECTIONS: usize = 100;

/// Result of coordinate ascent.
#[derive(Debug, Clone, PartialEq)]
pub struct MissingAscent {
    /// Counts of every table, those of missing cells included, and the objective after every
    /// iteration: a lower bound of ln Pr(X_observed), or ln p(X_observed, θ).
    pub decomposition: Decomposition,
    /// Expected counts of the missing cells: their total is Poisson, of variational Bayes.
    pub expected: Vec<f64>,
}

impl Incomplete {
    /// The best of several random starts, by variational Bayes, EM or towards the largest likelihood.
    ///
    /// # Errors
    /// [`Error::CellsMissing`] for other ascents; [`Error::Stopped`] when the observer asks to stop.
    pub fn ascend(
        &self,
        ascent: Ascent,
        limits: Limits,
        seed: u64,
        observer: &dyn Observer,
    ) -> Result<MissingAscent> {
        if !ascent.expects_allocation() {
            return Err(Error::CellsMissing);
        }
        let tables = &self.tables()?;
        let Incomplete { concentration, rate, .. } = *self;
        let model = MissingModel { tables, concentration, rate };
        let constant = tables.problem.ln_arrangements - ln_factorial(tables.problem.total);
        let best = best_of_starts(limits, seed, |climb, rng| {
            let complete =
                |ascent, sum_product: &mut SumProduct<'_>, weights: &[f64], found: &mut _| {
                    model.complete(ascent, sum_product, weights, found)
                };
            let found =
                tables.ascend(ascent, climb, tables.noisy(rng), constant, complete, observer);
            found.inspect(|_| observer.advance(1))
        })?;
        let AscentPoint { counts, expected, trace, converged } = best;
        let margins = tables.problem.margins.iter();
        let counts = margins.map(|laid| laid.whole(&counts[laid.rows()])).collect();
        Ok(MissingAscent { decomposition: Decomposition { counts, trace, converged }, expected })
    }
}

#[derive(Clone, Copy)]
struct MissingModel<'a> {
    tables: &'a Tables,
    concentration: f64,
    rate: f64,
}

impl MissingModel<'_> {
    /// Adds what is expected of the missing cells to the counts. Returns what the intensity and the
    /// entropies of the missing cells have in the objective, but for the tables' share of ln μ.
    fn complete(
        &self,
        ascent: Ascent,
        sum_product: &mut SumProduct<'_>,
        weights: &[f64],
        found: &mut AscentPoint,
    ) -> f64 {
        let cells = self.tables.problem.missing.clone();
        for (cell, expected) in cells.clone().zip(&mut found.expected) {
            *expected = sum_product.collect(cell, weights);
        }
        let weight = found.expected.iter().sum();
        let observed = self.tables.problem.total as f64;
        let ln_intensity = match ascent {
            Ascent::Em => {
                ((self.concentration + observed) / (self.rate + observed_share(weight))).ln()
            }
            Ascent::Likelihood if observed == 0.0 => f64::NEG_INFINITY,
            Ascent::Likelihood => (observed / observed_share(weight)).ln(),
            _ => self.ln_intensity(weight),
        };
        for (cell, expected) in cells.zip(&mut found.expected) {
            *expected *= ln_intensity.exp();
            sum_product.collect(cell, weights);
            sum_product.distribute(cell, *expected, &mut found.counts);
        }
        if ascent == Ascent::Em {
            return self.ln_total(observed, observed_share(weight));
        }
        if ascent == Ascent::Likelihood {
            let ln_largest = observed * (ln_intensity - 1.0);
            return if observed > 0.0 { ln_largest } else { 0.0 };
        }
        let missing: f64 = found.expected.iter().sum();
        self.ln_total(observed + missing, 1.0) + missing * (1.0 - ln_intensity)
    }

    /// E ln λ, where the missing cells have a share `weight` of λ, that is best for both:
    /// T̄ = T_o + weight exp ψ(a + T̄)/(b + 1) has one solution, as exp ψ(x) grows more slowly than x.
    fn ln_intensity(&self, weight: f64) -> f64 {
        let (a, b, observed) = (self.concentration, self.rate, self.tables.problem.total as f64);
        let of_total = |total: f64| digamma(a + total) - (b + 1.0).ln();
        // exp ψ(x) < x.
        let left = b + observed_share(weight);
        let (mut low, mut high) = (observed, observed + weight * (a + observed) / left);
        for _ in 0..BISECTIONS {
            let middle = low + (high - low) / 2.0;
            if observed + weight * of_total(middle).exp() > middle {
                low = middle;
            } else {
                high = middle;
            }
        }
        of_total(low + (high - low) / 2.0)
    }

    /// ln ∫ p(λ) λ^T exp(-share λ) dλ, for the cells that have this share of the intensity.
    fn ln_total(&self, total: f64, share: f64) -> f64 {
        let (a, b) = (self.concentration, self.rate);
        ln_gamma_ratio(a, total) - a * (share / b).ln_1p() - total * (b + share).ln()
    }
}

/// Share of the intensity that the observed cells have, the missing ones having `weight` of it.
fn observed_share(weight: f64) -> f64 {
    (1.0 - weight).max(0.0)
}

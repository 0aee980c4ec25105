//! Variational Bayes of tensors with cells that were not observed.
//!
//! The intensity and the tables have q(λ) = Gamma(a + T̄, b + 1) and Dirichlet laws, the tokens of an
//! observed cell are multinomial, and a missing cell has independent Poisson counts of means
//! μ = exp E ln(λ Π θ). With S̄ the expected counts and T̄ their total,
//!
//! ln Pr(X_observed) >= a ln b - (a + T̄) ln(b + 1) + ln Γ(a + T̄)/Γ(a) + Σ ln B(α + S̄)/B(α)
//!     + Σ_observed [X H(Φ) - ln X!] + Σ_missing [μ - μ ln μ].

use rayon::prelude::*;

use super::decomposition::{Ascent, Limits, Tables};
use super::missing::check_missing;
use super::network::Network;
use super::problem::Cells;
use super::sum_product::SumProduct;
use crate::control::Observer;
use crate::counts::CountTensor;
use crate::error::{Error, Result, array_of, check_positive};
use crate::math::{digamma, ln_factorial, ln_gamma_ratio};
use crate::rng::{Key, Purpose, Rng};

/// Halvings of an interval, after which it is as good as a point.
const BISECTIONS: usize = 100;

/// A lower bound of ln Pr(X_observed).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MissingBound {
    /// The bound after every iteration, in nats.
    pub trace: Vec<f64>,
    /// Whether the last gain was below the tolerance.
    pub converged: bool,
    /// Expected counts of the missing cells: their total is Poisson.
    pub expected: Vec<f64>,
}

/// The best bound of several random starts; arguments as for [`Incomplete::new`].
///
/// [`Incomplete::new`]: super::Incomplete::new
///
/// # Errors
/// Those of [`Incomplete::new`]; [`Error::Stopped`] when the observer asks to stop.
#[expect(clippy::too_many_arguments, reason = "the parts of a model and its data, by name")]
pub fn bound_missing(
    network: &Network,
    data: &CountTensor,
    missing: &[u32],
    rate: f64,
    order: Option<&[usize]>,
    limits: Limits,
    seed: u64,
    observer: &impl Observer,
) -> Result<MissingBound> {
    check_positive("rate", &[rate])?;
    check_missing(data, missing)?;
    let tables = Tables::of_cells(network, &Cells { data, missing }, order)?;
    let concentration = network.prior().concentration;
    let bound = Bound { tables: &tables, concentration, rate };
    let key = Key::new(seed, Purpose::Initialise);
    let run = |restart: usize| {
        let mut rng = key.unit(restart as u64).rng();
        bound.ascend(limits, &mut rng, observer).inspect(|_| observer.advance(1))
    };
    let runs: Result<Vec<_>> = (0..limits.n_restarts).into_par_iter().map(run).collect();
    let better = |best: MissingBound, run: MissingBound| {
        if run.trace.last() > best.trace.last() { run } else { best }
    };
    Ok(runs?.into_iter().reduce(better).unwrap_or_default())
}

struct Bound<'a> {
    tables: &'a Tables,
    concentration: f64,
    rate: f64,
}

impl Bound<'_> {
    fn ascend(
        &self,
        limits: Limits,
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<MissingBound> {
        let problem = &self.tables.problem;
        let mut sum_product = SumProduct::new(problem);
        let mut counts = array_of("expected counts", problem.n_rows(), 0.0)?;
        let mut weights = self.tables.noisy(rng);
        let mut found =
            MissingBound { expected: vec![0.0; problem.missing.len()], ..Default::default() };
        for _ in 0..limits.max_iter {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            let ln_weight = sum_product.expect(&weights, &mut counts);
            let missing = self.complete(&mut sum_product, &weights, &mut counts, &mut found);
            let used = weights.iter().zip(&counts).filter(|(_, n)| **n > 0.0);
            let used: f64 = used.map(|(weight, n)| n * weight.ln()).sum();
            let total = problem.total as f64 + found.expected.iter().sum::<f64>();
            weights = self.tables.weights(Ascent::Variational, &counts);
            let bound = ln_weight - used
                + missing
                + self.ln_total(total)
                + self.tables.ln_marginal(&counts)
                + problem.ln_arrangements
                - ln_factorial(problem.total);
            let gain = found.trace.last().map_or(f64::INFINITY, |last| bound - last);
            found.trace.push(bound);
            if gain < limits.tolerance * bound.abs() {
                found.converged = true;
                break;
            }
        }
        Ok(found)
    }

    /// Adds what is expected of the missing cells to `counts`. Returns Σ μ (1 - E ln λ), which with
    /// the tables' share of ln μ makes the entropies of their counts.
    fn complete(
        &self,
        sum_product: &mut SumProduct<'_>,
        weights: &[f64],
        counts: &mut [f64],
        found: &mut MissingBound,
    ) -> f64 {
        let cells = self.tables.problem.missing.clone();
        for (cell, expected) in cells.clone().zip(&mut found.expected) {
            *expected = sum_product.collect(cell, weights);
        }
        let intensity = self.intensity(found.expected.iter().sum());
        for (cell, expected) in cells.zip(&mut found.expected) {
            *expected *= intensity;
            sum_product.collect(cell, weights);
            sum_product.distribute(cell, *expected, counts);
        }
        found.expected.iter().sum::<f64>() * (1.0 - intensity.ln())
    }

    /// exp E ln λ, where the missing cells have a share `weight` of it, that is best for both:
    /// T̄ = T_o + weight exp ψ(a + T̄)/(b + 1) has one solution, as exp ψ(x) grows more slowly than x.
    fn intensity(&self, weight: f64) -> f64 {
        let (a, b, observed) = (self.concentration, self.rate, self.tables.problem.total as f64);
        let of_total = |total: f64| digamma(a + total).exp() / (b + 1.0);
        // exp ψ(x) < x.
        let left = b + (1.0 - weight).max(0.0);
        let (mut low, mut high) = (observed, observed + weight * (a + observed) / left);
        for _ in 0..BISECTIONS {
            let middle = low + (high - low) / 2.0;
            if observed + weight * of_total(middle) > middle {
                low = middle;
            } else {
                high = middle;
            }
        }
        of_total(low + (high - low) / 2.0)
    }

    /// ln ∫ p(λ) λ^T exp(-λ) dλ.
    fn ln_total(&self, total: f64) -> f64 {
        let (a, b) = (self.concentration, self.rate);
        ln_gamma_ratio(a, total) - a * b.recip().ln_1p() - total * b.ln_1p()
    }
}

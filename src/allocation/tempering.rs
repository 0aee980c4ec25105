//! Evidence by parallel tempering of collapsed chains on the power path.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::kernel::powers::{Level, Margins, ln_urn_rising};
use super::kernel::tempered::Tempered;
use super::model::problem::Problem;
use crate::control::Observer;
use crate::error::Result;
use crate::rng::{Key, LANES, Lanes, Purpose, Rng};
use crate::temper::{Chains, Options, Outcome, Target, anneal, temper};

/// Allocations of a problem, from independent uniform hidden values to the law.
struct Allocations<'a> {
    problem: &'a Problem,
    margins: Margins,
    alphas: Vec<f64>,
}

/// κ of the urns of the reference, before the problem has been looked at.
const FIRST_KAPPA: f64 = 1.0;

/// κ that are compared: half decades.
const KAPPAS: RangeInclusive<i32> = -4..=4;

/// κ beside that of the nearest reference: tokens that are redrawn one by one must still be able to
/// leave those of their cell.
const WIDER: f64 = 10.0;

impl<'a> Allocations<'a> {
    /// A path whose reference is, of those in its family, the nearest to where one annealing pass
    /// ends. Hidden nodes that are summed out apart have independent tokens as a reference.
    fn new(problem: &'a Problem, key: Key, observer: &impl Observer) -> Result<Self> {
        let alphas = problem.alphas();
        let with = |kappa, alphas| {
            Allocations { problem, margins: Margins::new(problem, kappa), alphas }
        };
        let piles_up = problem.counts.iter().any(|&n| n > 1);
        if problem.plan.cliques.len() > 1 || !piles_up {
            return Ok(with(f64::INFINITY, alphas));
        }
        let first = with(FIRST_KAPPA, alphas);
        let n_holding = anneal(&first, key, observer)?.occupancies();
        let kappas = KAPPAS.map(|halves| 10_f64.powf(0.5 * f64::from(halves)));
        let fits = kappas.map(|kappa| (ln_reference(problem, &n_holding, kappa), kappa));
        let best = fits.max_by(|(one, _), (other, _)| one.total_cmp(other));
        let kappa = WIDER * best.map_or(FIRST_KAPPA, |(_, kappa)| kappa);
        Ok(with(kappa, first.alphas))
    }
}

/// ln u of all lanes of allocations, but for a constant: `n_holding` states of a cell hold n tokens.
fn ln_reference(problem: &Problem, n_holding: &BTreeMap<i32, u64>, kappa: f64) -> f64 {
    let states = |(&n, &times): (&i32, &u64)| times as f64 * ln_urn_rising(kappa, n as u64);
    let whole = kappa * problem.plan.n_states as f64;
    let cells = problem.counts.iter().map(|&n| ln_urn_rising(whole, n));
    n_holding.iter().map(states).sum::<f64>() - LANES as f64 * cells.sum::<f64>()
}

impl Target for Allocations<'_> {
    type Level = Level;
    type Chains<'a>
        = Tempered<'a>
    where
        Self: 'a;

    fn level(&self, beta: f64) -> Level {
        self.margins.level(beta)
    }

    fn chains(&self, rng: &mut Rng, observer: &impl Observer) -> Result<Tempered<'_>> {
        Tempered::new(self.problem, &self.margins, &self.alphas, rng, observer)
    }

    fn sweep_cost(&self) -> f64 {
        (LANES * self.problem.plan.n_states) as f64 * self.problem.total as f64
    }
}

impl Chains for Tempered<'_> {
    type Level = Level;

    fn sweep(&mut self, levels: &[&Level; LANES], observer: &impl Observer) -> Result<()> {
        Tempered::sweep(self, levels, observer)
    }

    fn values(&self) -> Lanes {
        Tempered::values(self)
    }
}

/// ln Pr(X | T), the probability of the tensor given its total, by parallel tempering.
///
/// # Errors
/// [`Error::Range`](crate::Error::Range), those of [`temper`].
pub fn tempered(
    problem: &Problem,
    options: &Options,
    seed: u64,
    observer: &impl Observer,
) -> Result<Outcome> {
    let constant = problem.ln_visible + problem.ln_arrangements;
    if problem.n_states() == 0 || problem.n_tokens() == 0 {
        return Ok(Outcome::exact(constant));
    }
    problem.check_range()?;
    let key = Key::new(seed, Purpose::Score);
    let target = Allocations::new(problem, key.unit(0), observer)?;
    let outcome = temper(&target, options, key.unit(1), observer)?;
    Ok(outcome.raised(constant))
}

//! Decomposition of a tensor: coordinate ascent on tables and allocation, and Gibbs sampling.

use std::collections::HashMap;

use rand::RngExt as _;
use rayon::prelude::*;

use super::sum_product::SumProduct;
use crate::allocation::kernel::chains::StateChains;
use crate::allocation::kernel::counts::CountWeights;
use crate::allocation::kernel::law::ln_law;
use crate::allocation::memory::Load;
use crate::allocation::model::margins::{Cells, MarginForm, Margins};
use crate::allocation::model::network::Network;
use crate::allocation::model::plan::EliminationPlan;
use crate::allocation::model::problem::Problem;
use crate::allocation::particles::smc::{self, Filter, KeptCounts};
use crate::control::Observer;
use crate::counts::CountTensor;
use crate::error::{Error, Result, array_of};
use crate::math::{digamma, ln_gamma, ln_gamma_ratio};
use crate::rng::{Key, LANES, Purpose, Rng};

/// Least value of α + S - 1, which is clipped where the mode of a table lies on its border: every
/// cell of the data must stay possible.
const LEAST: f64 = 1e-9;

/// Expectations or modes that coordinate ascent keeps of the allocation, and of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ascent {
    /// Both expected: variational Bayes, ascends a lower bound of ln Pr(X | T).
    Variational,
    /// Expected allocation, most probable tables: ascends ln p(X, θ | T).
    Em,
    /// Most probable allocation, expected tables: ascends ln π(S | T).
    DualEm,
    /// Most probable allocation and tables (iterated conditional modes): ascends ln p(S, θ | T).
    Icm,
    /// Expected allocation, tables of the largest likelihood, whatever their prior: ascends
    /// ln p(X | θ, T).
    Likelihood,
}

impl Ascent {
    pub(crate) fn expects_allocation(self) -> bool {
        matches!(self, Ascent::Variational | Ascent::Em | Ascent::Likelihood)
    }
}

/// Iterations towards the largest likelihood of every other start: small concentrations empty cells of
/// tables before these have taken shape. Tables with few tokens are better found from noise.
const LIKELIHOOD_STEPS: usize = 100;

/// When coordinate ascent ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Iterations.
    pub max_iter: usize,
    /// Gain of the objective, relative to its size, below which it ends.
    pub tolerance: f64,
    /// Random starts, of which the best is kept.
    pub n_restarts: usize,
}

/// Family counts of a decomposition.
#[derive(Debug, Clone, PartialEq)]
pub struct Decomposition {
    /// Counts of every table, (child, parents...) in row-major order.
    pub counts: Vec<Vec<f64>>,
    /// Objective after every iteration, in nats, given the total; ln π(S | T) of the allocation after
    /// every sweep of Gibbs sampling; ln of the distribution of the labelled tokens of a particle.
    pub trace: Vec<f64>,
    /// Whether the last gain was below the tolerance.
    pub converged: bool,
}

/// The tables of a network over a tensor, one row for each cell that hidden nodes can reach.
pub(crate) struct Tables {
    pub(crate) problem: Problem,
    /// Conditional distribution that each row is a part of.
    group_of: Vec<u32>,
    /// α and number of values of each distribution, and how many of them have no row.
    groups: Vec<(f64, f64, f64)>,
}

impl Tables {
    /// Tables over the cells that tokens may fall in, without those that have no rows.
    pub(crate) fn new(
        network: &Network,
        cells: &Cells<'_>,
        order: Option<&[usize]>,
        slots_apart: bool,
    ) -> Result<Self> {
        let form = MarginForm {
            margins: Margins::Families,
            all_rows: true,
            slots_apart,
            ..MarginForm::LAW
        };
        let problem = Problem::lay_out(network, cells, order, form)?;
        let mut group_of = vec![0; problem.n_rows()];
        let mut groups: Vec<(f64, f64, f64)> = Vec::new();
        for laid in &problem.margins {
            let n_parents: usize = laid.margin.shape[1..].iter().product();
            let mut numbers: HashMap<usize, u32> = HashMap::new();
            for (row, cell) in laid.rows().zip(laid.cells()) {
                // The child varies slowest: what is left of the cell names its parents' values.
                let number = *numbers.entry(cell % n_parents).or_insert_with(|| {
                    let size = laid.margin.shape[0] as f64;
                    groups.push((laid.margin.alpha, size, size));
                    groups.len() as u32 - 1
                });
                groups[number as usize].2 -= 1.0;
                group_of[row] = number;
            }
        }
        Ok(Tables { problem, group_of, groups })
    }

    /// Conditional probabilities that are even up to noise.
    pub(crate) fn noisy(&self, rng: &mut Rng) -> Vec<f64> {
        let noise: Vec<f64> =
            (0..self.problem.n_rows()).map(|_| 0.5 + rng.random::<f64>()).collect();
        let sums = self.group_sums(&noise);
        let totals: Vec<f64> =
            self.groups.iter().zip(sums).map(|((_, _, without), sum)| sum + without).collect();
        noise.iter().zip(&self.group_of).map(|(x, &group)| x / totals[group as usize]).collect()
    }

    fn group_sums(&self, rows: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.groups.len()];
        self.group_of.iter().zip(rows).for_each(|(&group, x)| sums[group as usize] += x);
        sums
    }

    fn alphas(&self) -> impl Iterator<Item = f64> {
        self.group_of.iter().map(|&group| self.groups[group as usize].0)
    }

    /// exp E ln θ, or the mode of θ, given counts.
    fn weights(&self, ascent: Ascent, counts: &[f64]) -> Vec<f64> {
        if matches!(ascent, Ascent::Variational | Ascent::DualEm) {
            let sums = self.group_sums(counts);
            let ln_sums: Vec<f64> = (self.groups.iter().zip(sums))
                .map(|((alpha, size, _), sum)| digamma(alpha * size + sum))
                .collect();
            let row = |(alpha, (n, &group)): (f64, (&f64, &u32))| {
                (digamma(alpha + n) - ln_sums[group as usize]).exp()
            };
            return self.alphas().zip(counts.iter().zip(&self.group_of)).map(row).collect();
        }
        let excess = |alpha: f64| if ascent == Ascent::Likelihood { 0.0 } else { alpha - 1.0 };
        let clipped: Vec<f64> =
            self.alphas().zip(counts).map(|(alpha, n)| (excess(alpha) + n).max(LEAST)).collect();
        let sums = self.group_sums(&clipped);
        let totals: Vec<f64> = (self.groups.iter().zip(sums))
            .map(|((alpha, _, without), sum)| sum + without * excess(*alpha).max(LEAST))
            .collect();
        let row = |(x, &group): (&f64, &u32)| x / totals[group as usize];
        clipped.iter().zip(&self.group_of).map(row).collect()
    }

    /// ln Π (α)_S / (Σ α)_S over all tables.
    fn ln_marginal(&self, counts: &[f64]) -> f64 {
        let cells = self.alphas().zip(counts).filter(|(_, n)| **n > 0.0);
        let ln_cells: f64 = cells.map(|(alpha, &n)| ln_gamma_ratio(alpha, n)).sum();
        let groups = self.groups.iter().zip(self.group_sums(counts)).filter(|(_, n)| *n > 0.0);
        ln_cells - groups.map(|((alpha, size, _), n)| ln_gamma_ratio(alpha * size, n)).sum::<f64>()
    }

    /// ln of the density of the tables: Dirichlet, without zeros where α < 1 makes it infinite.
    fn ln_density(&self, weights: &[f64]) -> f64 {
        let rows = self.alphas().zip(weights).filter(|(_, weight)| **weight > 0.0);
        let ln_rows: f64 = rows.map(|(alpha, weight)| (alpha - 1.0) * weight.ln()).sum();
        let constant =
            |(alpha, size, _): &(f64, f64, f64)| ln_gamma(alpha * size) - size * ln_gamma(*alpha);
        ln_rows + self.groups.iter().map(constant).sum::<f64>()
    }

    /// Ascends from weights, which need not be normalised. `constant` is what the objective has beside
    /// allocation and tables; `complete` adds what is expected of missing cells, and returns what these
    /// have in it.
    pub(crate) fn ascend(
        &self,
        ascent: Ascent,
        climb: Climb,
        mut weights: Vec<f64>,
        constant: f64,
        complete: impl Fn(Ascent, &mut SumProduct<'_>, &[f64], &mut AscentPoint) -> f64,
        observer: &dyn Observer,
    ) -> Result<AscentPoint> {
        let mut sum_product = SumProduct::new(&self.problem);
        let mut found = AscentPoint {
            counts: array_of("expected counts", self.problem.n_rows(), 0.0)?,
            expected: vec![0.0; self.problem.missing.len()],
            ..Default::default()
        };
        let (trace, converged) = climb.run(ascent, observer, |ascent| {
            let of_allocation = if ascent.expects_allocation() {
                let ln_weight = sum_product.expect(&weights, &mut found.counts);
                let ln_missing = complete(ascent, &mut sum_product, &weights, &mut found);
                ln_weight - ln_used(&weights, &found.counts) + ln_missing
            } else {
                sum_product.mode(&weights, &mut found.counts)
            };
            weights = self.weights(ascent, &found.counts);
            constant + (of_allocation + self.ln_tables(ascent, &weights, &found.counts))
        })?;
        Ok(AscentPoint { trace, converged, ..found })
    }

    /// Share of the tables in the objective, given counts and the weights that follow from them.
    fn ln_tables(&self, ascent: Ascent, weights: &[f64], counts: &[f64]) -> f64 {
        match ascent {
            Ascent::Variational | Ascent::DualEm => self.ln_marginal(counts),
            Ascent::Em | Ascent::Icm => ln_used(weights, counts) + self.ln_density(weights),
            Ascent::Likelihood => ln_used(weights, counts),
        }
    }
}

/// Σ of counts times ln of the weights, over rows with counts.
fn ln_used(weights: &[f64], counts: &[f64]) -> f64 {
    let used = weights.iter().zip(counts).filter(|(_, n)| **n > 0.0);
    used.map(|(weight, n)| n * weight.ln()).sum()
}

/// Counts of all tables, whole, from those of the rows of a problem that has all families first.
fn tables(network: &Network, problem: &Problem, rows: &[f64]) -> Vec<Vec<f64>> {
    let families = problem.margins.iter().take(network.tables().len());
    families.map(|laid| laid.whole(&rows[laid.rows()])).collect()
}

/// Coordinate ascent from random starts; the best of them.
///
/// # Errors
/// The errors of [`Problem::new`]; [`Error::Stopped`] when the observer asks to stop; for modes of
/// allocations, hidden nodes that do not fit into one clique.
pub fn ascend(
    network: &Network,
    data: &CountTensor,
    order: Option<&[usize]>,
    ascent: Ascent,
    limits: Limits,
    seed: u64,
    observer: &dyn Observer,
) -> Result<Decomposition> {
    let cells = Cells { data, missing: &[] };
    let tables = Tables::new(network, &cells, order, ascent.expects_allocation())?;
    let is_apart = |plan: &&EliminationPlan| plan.cliques.len() > 1;
    if !ascent.expects_allocation()
        && let Some(plan) = tables.problem.plans().find(is_apart)
    {
        let node = plan.cliques[0].nodes[0];
        let problem = "is summed out apart from other hidden nodes: modes of allocations need \
                       all of them in one clique";
        return Err(Error::Graph { node, problem });
    }
    let AscentPoint { counts, trace, converged, .. } =
        best_of_starts(limits, seed, |climb, rng| {
            // Responsibilities from tables that are even up to noise.
            let weights = (0..tables.problem.n_rows()).map(|_| 0.5 + rng.random::<f64>()).collect();
            let constant = tables.problem.ln_arrangements;
            let found = tables.ascend(ascent, climb, weights, constant, |_, _, _, _| 0.0, observer);
            found.inspect(|_| observer.advance(1))
        })?;
    Ok(Decomposition { counts: self::tables(network, &tables.problem, &counts), trace, converged })
}

/// Point that the ascent from one start has reached.
#[derive(Default)]
pub(crate) struct AscentPoint {
    /// Expected counts, row after row of all tables.
    pub(crate) counts: Vec<f64>,
    /// Expected counts of cells that were not observed.
    pub(crate) expected: Vec<f64>,
    pub(crate) trace: Vec<f64>,
    pub(crate) converged: bool,
}

/// How an ascent starts, and when it ends.
#[derive(Clone, Copy)]
pub(crate) struct Climb {
    n_first: usize,
    limits: Limits,
}

impl Climb {
    /// Steps towards the largest likelihood, then those of the ascent until one gains little.
    /// Returns the objective after every one of these, and whether the last gained little.
    pub(crate) fn run(
        self,
        ascent: Ascent,
        observer: &dyn Observer,
        mut step: impl FnMut(Ascent) -> f64,
    ) -> Result<(Vec<f64>, bool)> {
        let n_first = if ascent == Ascent::Likelihood { 0 } else { self.n_first };
        for _ in 0..n_first {
            observer.check_stop()?;
            step(Ascent::Likelihood);
        }
        let mut trace: Vec<f64> = Vec::new();
        for _ in 0..self.limits.max_iter {
            observer.check_stop()?;
            let objective = step(ascent);
            let gain = trace.last().map_or(f64::INFINITY, |last| objective - last);
            trace.push(objective);
            if gain <= self.limits.tolerance * objective.abs() {
                return Ok((trace, true));
            }
        }
        Ok((trace, false))
    }
}

/// The best point of ascents from several random starts.
pub(crate) fn best_of_starts(
    limits: Limits,
    seed: u64,
    ascend: impl Fn(Climb, &mut Rng) -> Result<AscentPoint> + Sync,
) -> Result<AscentPoint> {
    let key = Key::new(seed, Purpose::Initialise);
    let run = |restart: usize| {
        let climb = Climb { n_first: restart % 2 * LIKELIHOOD_STEPS, limits };
        ascend(climb, &mut key.unit(restart as u64).rng())
    };
    let runs: Result<Vec<_>> = (0..limits.n_restarts).into_par_iter().map(run).collect();
    let better = |best: AscentPoint, run: AscentPoint| {
        if run.trace.last() > best.trace.last() { run } else { best }
    };
    Ok(runs?.into_iter().reduce(better).unwrap_or_default())
}

/// How long a Gibbs sampler of allocations runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweeps {
    /// Sweeps that anneal from independent tokens to the model.
    pub burn_in: usize,
    /// Sweeps that are averaged.
    pub n_kept: usize,
}

/// Family counts averaged over collapsed Gibbs sweeps of one chain, the one of 16 whose allocation
/// is most probable when the annealing ends: an average over chains would mix their labels.
///
/// # Errors
/// The errors of [`Problem::new`]; [`Error::Range`]; [`Error::SamplerMemory`]; [`Error::Stopped`]
/// when the observer asks to stop.
pub fn gibbs(
    network: &Network,
    data: &CountTensor,
    order: Option<&[usize]>,
    sweeps: Sweeps,
    seed: u64,
    observer: &dyn Observer,
) -> Result<Decomposition> {
    let problem =
        Problem::lay_out(network, &Cells { data, missing: &[] }, order, MarginForm::WHOLE)?;
    problem.check_range()?;
    Load { n_chains: LANES, ..problem.load() }.check(1)?;
    let mut rng = Key::new(seed, Purpose::Initialise).rng();
    let mut chains = StateChains::uniform(&problem, &mut rng, observer)?;
    let alphas = problem.alphas();
    let model = CountWeights { base: &alphas, unit: 1.0 };
    let mut sums = array_of("expected counts", problem.n_rows(), 0.0)?;
    let mut trace = Vec::with_capacity(sweeps.n_kept);
    let mut best = None;
    chains.anneal(sweeps.burn_in, || observer.advance(1), observer)?;
    for _ in 0..sweeps.n_kept {
        chains.sweep(model, observer)?;
        let ln_laws = ln_law(&problem, model, chains.rows());
        let most_probable = || (0..LANES).max_by(|&x, &y| ln_laws[x].total_cmp(&ln_laws[y]));
        let lane = *best.get_or_insert_with(|| most_probable().unwrap_or(0));
        let ln_orders = problem.ln_orders(&chains.groups(lane).0);
        trace.push(ln_laws[lane] + ln_orders);
        sums.iter_mut().zip(chains.rows()).for_each(|(sum, row)| *sum += f64::from(row[lane]));
        observer.advance(1);
    }
    sums.iter_mut().for_each(|sum| *sum /= sweeps.n_kept as f64);
    Ok(Decomposition { counts: tables(network, &problem, &sums), trace, converged: true })
}

/// Family counts of the most probable allocation among the particles of one run.
///
/// # Errors
/// The errors of [`Problem::new`]; [`Error::Range`]; [`Error::SamplerMemory`]; too many particles;
/// [`Error::Stopped`] when the observer asks to stop.
pub fn best_particle(
    network: &Network,
    data: &CountTensor,
    order: Option<&[usize]>,
    filter: &Filter,
    seed: u64,
    observer: &dyn Observer,
) -> Result<Decomposition> {
    let problem =
        Problem::lay_out(network, &Cells { data, missing: &[] }, order, MarginForm::WHOLE)?;
    problem.check_range()?;
    Load { n_particles: filter.n_particles, n_held: 0, ..problem.load() }.check(1)?;
    let mut rng = Key::new(seed, Purpose::Initialise).rng();
    let (rows, ln_law) = match problem.ln_only_allocation() {
        Some(ln_law) => (problem.average(), ln_law),
        None => smc::run(&problem, filter, KeptCounts::All, &mut rng, observer)?.1.best(&problem),
    };
    let trace = vec![ln_law + problem.ln_arrangements];
    Ok(Decomposition { counts: tables(network, &problem, &rows), trace, converged: true })
}

//! Sums over the allocations of tensors with cells that were not observed.

use rayon::prelude::*;

use super::completion::Completion;
use super::totals::{End, Sums};
use crate::allocation::evidence::{Method, Sampler, Settings};
use crate::allocation::exact::enumeration::Enumeration;
use crate::allocation::memory::Load;
use crate::allocation::model::network::Network;
use crate::allocation::model::problem::{Cells, Problem};
use crate::allocation::particles::smc::{Allocations, Filter, Keep, TokenOrder, ordered};
use crate::control::Observer;
use crate::counts::CountTensor;
use crate::error::{Error, Result, check_positive};
use crate::estimate::Estimate;
use crate::filter;
use crate::math::Resampling;
use crate::rng::{Key, LANES, Purpose};

/// Share of the evidence that totals beyond the last may have, where no last one is given.
const LEFT_BY_ENUMERATION: f64 = 1e-9;
const LEFT_BY_FILTER: f64 = 1e-6;

/// The run that finds the last total; none has more particles.
const PILOT: Filter = Filter {
    n_particles: 256,
    threshold: 0.5,
    resampling: Resampling::Systematic,
    order: TokenOrder::Random,
};

/// A network, the rate of its intensity, and a tensor of which some cells were not observed.
#[derive(Debug, Clone)]
pub struct Incomplete {
    pub(super) problem: Problem,
    pub(super) concentration: f64,
    pub(super) rate: f64,
    /// ln of the greatest probability of the observed cells, given their total, under any tables.
    pub(super) ln_greatest: f64,
}

impl Incomplete {
    /// Lays out a network for a tensor; `missing` has the coordinates of the cells that were not
    /// observed, one after the other, and hidden nodes are summed out in `order`.
    ///
    /// # Errors
    /// Those of [`Problem::new`]; [`Error::Range`]; [`Error::SamplerMemory`]; a rate that is not
    /// positive; missing cells that are none, outside of the tensor, not in increasing order, or have
    /// a count.
    pub fn new(
        network: &Network,
        data: &CountTensor,
        missing: &[u32],
        rate: f64,
        order: Option<&[usize]>,
    ) -> Result<Self> {
        check_positive("rate", &[rate])?;
        check_missing(data, missing)?;
        let n_missing = missing.len() / data.shape().len();
        Load { n_missing, ..Load::default() }.check(1)?;
        let problem =
            Problem::of_cells(network, network.margins(), &Cells { data, missing }, order)?;
        problem.check_range()?;
        let share = |count: u64| count as f64 / data.total() as f64;
        let ln_cells = data.counts().iter().map(|&count| count as f64 * share(count).ln());
        let ln_greatest = problem.ln_arrangements + ln_cells.sum::<f64>();
        let concentration = network.prior().concentration;
        Ok(Incomplete { problem, concentration, rate, ln_greatest })
    }

    /// The network laid out over all cells that tokens may fall in.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Sums over allocations and totals by a method that takes missing cells: exact within a small
    /// budget or smc, if none is asked for.
    ///
    /// # Errors
    /// [`Error::CellsMissing`] for other methods; those of [`enumerate`](Incomplete::enumerate) and
    /// [`filter`](Incomplete::filter).
    pub fn complete(
        &self,
        settings: &Settings,
        max_total: Option<u64>,
        seed: u64,
        observer: &impl Observer,
    ) -> Result<(Completion, Method)> {
        let smc = Method::Sample(Sampler::Smc);
        let exact = |budget| self.enumerate(max_total, budget, observer);
        let filter = || {
            let n_replicates = settings.n_replicates();
            self.filter(&settings.filter(), max_total, n_replicates, seed, observer)
        };
        match settings.method {
            Method::Auto => match exact(settings.trial_budget()) {
                Err(Error::EnumerationBudget { .. } | Error::Memory { .. }) => Ok((filter()?, smc)),
                tried => Ok((tried?, Method::Exact)),
            },
            Method::Exact => Ok((exact(settings.exact_budget())?, Method::Exact)),
            Method::Sample(Sampler::Smc) => Ok((filter()?, smc)),
            Method::Sample(_) => Err(Error::CellsMissing),
        }
    }

    /// Sums over all allocations of up to `max_total` tokens; without, of as many as are needed to
    /// leave out less than 1e-9 of the evidence.
    ///
    /// # Errors
    /// A budget that is passed, or would be by the tokens to come; a stop.
    pub fn enumerate(
        &self,
        max_total: Option<u64>,
        budget: f64,
        observer: &impl Observer,
    ) -> Result<Completion> {
        let mut allocations = Enumeration::of_tokens(&self.problem, budget, observer)?;
        let end = self.end(max_total, LEFT_BY_ENUMERATION);
        let cells = &self.problem.missing;
        // What the tokens to come cost at least is known where their number is, about.
        let mut n_left = match end {
            End::Drawn(n) => n,
            End::Remainder { ln_left, most } => {
                let most = most.min(allocations.too_many(cells.len()));
                self.pilot(&PILOT, End::Remainder { ln_left, most }, 0, observer)?
            }
        };
        let ln_observed = allocations.ln_sum();
        let sums = self.sums(ln_observed, end, |shares| {
            allocations.foresee(cells.len(), n_left.max(1))?;
            n_left = n_left.saturating_sub(1);
            allocations.draw(cells.clone(), shares)
        })?;
        let mut completion = self.completion(&[sums], 0);
        completion.evidence = Estimate::exact(completion.evidence.ln_value);
        let exact = |joint: &mut Estimate| *joint = Estimate::exact(joint.ln_value);
        completion.ln_joint.iter_mut().for_each(exact);
        let shares = completion.posterior.iter_mut().chain(&mut completion.expected);
        shares.for_each(|(_, std_error)| *std_error = 0.0);
        Ok(completion)
    }

    /// Replicates of the particle filter over observed tokens, then missing ones. Every joint
    /// probability is unbiased. The last total, where none is given, is found by a pilot, so that
    /// totals beyond have about 1e-6 of the evidence.
    ///
    /// # Errors
    /// [`Error::SamplerMemory`], too many particles, a stop.
    pub fn filter(
        &self,
        filter: &Filter,
        max_total: Option<u64>,
        n_replicates: usize,
        seed: u64,
        observer: &impl Observer,
    ) -> Result<Completion> {
        let load = Load::of(&self.problem);
        Load { n_particles: filter.n_particles, ..load }.check(n_replicates)?;
        let key = Key::new(seed, Purpose::Score);
        let mut end = self.end(max_total, LEFT_BY_FILTER);
        if matches!(end, End::Remainder { .. }) {
            let n_particles = filter.n_particles.min(PILOT.n_particles);
            let pilot = Filter { n_particles, ..filter.clone() };
            end = End::Drawn(self.pilot(&pilot, end, seed, observer)?);
        }
        let one = |replicate| {
            self.replicate(filter, end, &key, replicate, observer).inspect(|_| observer.advance(1))
        };
        let runs: Result<Vec<Sums>> =
            (1..=n_replicates.max(1) as u64).into_par_iter().map(one).collect();
        Ok(self.completion(&runs?, n_replicates * filter.n_particles))
    }

    /// Missing tokens that a filter draws up to this end.
    fn pilot(&self, filter: &Filter, end: End, seed: u64, observer: &impl Observer) -> Result<u64> {
        let key = Key::new(seed, Purpose::Score);
        let found = self.replicate(filter, end, &key, 0, observer)?;
        Ok(found.ln_joint.len() as u64 - 1)
    }

    fn replicate(
        &self,
        filter: &Filter,
        end: End,
        key: &Key,
        replicate: u64,
        observer: &impl Observer,
    ) -> Result<Sums> {
        let mut rng = key.unit(replicate).rng();
        let tokens = ordered(&self.problem, &filter.order, &mut rng)?;
        let (problem, n_groups) = (&self.problem, filter.n_groups());
        let mut target = Allocations::new(problem, &tokens, n_groups, Keep::All, &mut rng)?;
        let mut population = filter.population();
        filter::run(&mut target, &mut population, tokens.len(), &mut rng, observer)?;
        let cells = &self.problem.missing;
        let mut buffer = vec![[0.0; LANES]; cells.len()];
        self.sums(population.ln_mean(0), end, |shares| {
            population.resample(&mut target, &mut rng);
            target.draw_among(cells.clone(), &mut population, shares, &mut buffer, observer)
        })
    }
}

pub(crate) fn check_missing(data: &CountTensor, missing: &[u32]) -> Result<()> {
    let n_axes = data.shape().len();
    if missing.is_empty() || !missing.len().is_multiple_of(n_axes) {
        let (found, expected) = (missing.len(), n_axes * missing.len().div_ceil(n_axes).max(1));
        return Err(Error::Length { name: "coordinates of missing cells", found, expected });
    }
    let mut observed = data.cells().map(|(cell, _)| cell).peekable();
    let mut before: Option<&[u32]> = None;
    for (number, cell) in missing.chunks_exact(n_axes).enumerate() {
        let refuse = |axis, problem| Err(Error::Cell { cell: number, axis, problem });
        if let Some(axis) = (0..n_axes).find(|&axis| cell[axis] as usize >= data.shape()[axis]) {
            return refuse(axis, "is missing outside the axis");
        }
        if before.replace(cell).is_some_and(|before| before >= cell) {
            return refuse(0, "is missing out of increasing order");
        }
        while observed.next_if(|&other| other < cell).is_some() {}
        if observed.peek() == Some(&cell) {
            return refuse(0, "is missing and has a count");
        }
    }
    Ok(())
}

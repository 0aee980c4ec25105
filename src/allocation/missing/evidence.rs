//! Evidence of tensors with cells that were not observed: sums over allocations and totals.

use rayon::prelude::*;

use super::completion::Completion;
use super::incomplete::Incomplete;
use super::totals::{AllocationSums, End};
use crate::allocation::evidence::{EvidenceMethod, EvidenceSampler, EvidenceSettings};
use crate::allocation::exact::enumeration::Enumeration;
use crate::allocation::memory::Load;
use crate::allocation::particles::smc::{
    AllocationFilter, Filter, KeptCounts, TokenOrder, ordered,
};
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::filter;
use crate::math::Resampling;
use crate::rng::{Key, LANES, Purpose};

/// Share of the evidence that totals beyond the last may have, where no last one is given.
const LEFT_BY_ENUMERATION: f64 = 1e-9;
const LEFT_BY_SAMPLING: f64 = 1e-6;

/// The run that finds the last total; none has more particles.
const PILOT: Filter = Filter {
    n_particles: 256,
    threshold: 0.5,
    resampling: Resampling::Systematic,
    order: TokenOrder::Random,
    n_sweeps: 0,
};

impl Incomplete {
    /// Sums over allocations and totals by a method that takes missing cells: if none is asked for,
    /// exact within a small budget, else smc, whose particles seldom find the rare tables under which
    /// missing cells hold most: their replicates may agree on too little.
    ///
    /// # Errors
    /// [`Error::CellsMissing`] for other methods; those of [`enumerate`](Incomplete::enumerate) and
    /// [`filter`](Incomplete::filter).
    pub fn complete(
        &self,
        settings: &EvidenceSettings,
        max_total: Option<u64>,
        seed: u64,
        observer: &dyn Observer,
    ) -> Result<(Completion, EvidenceMethod)> {
        let smc = EvidenceMethod::Sample(EvidenceSampler::Smc);
        let exact = |budget| self.enumerate(max_total, budget, observer);
        let filter = || {
            let n_replicates = settings.n_replicates(EvidenceSampler::Smc);
            let without_moves = EvidenceSettings { n_sweeps: Some(0), ..settings.clone() };
            self.filter(&without_moves.filter(), max_total, n_replicates, seed, observer)
        };
        match settings.method {
            EvidenceMethod::Auto => match exact(settings.trial_budget()) {
                Err(Error::EnumerationBudget { .. } | Error::Memory { .. }) => Ok((filter()?, smc)),
                tried => Ok((tried?, EvidenceMethod::Exact)),
            },
            EvidenceMethod::Exact => Ok((exact(settings.exact_budget())?, EvidenceMethod::Exact)),
            EvidenceMethod::Sample(EvidenceSampler::Smc) => Ok((filter()?, smc)),
            EvidenceMethod::Sample(EvidenceSampler::Tempered) => Err(Error::CellsMissing),
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
        observer: &dyn Observer,
    ) -> Result<Completion> {
        let mut allocations = Enumeration::over_tokens(&self.problem, budget, observer)?;
        let end = self.end(max_total, LEFT_BY_ENUMERATION);
        let cells = &self.problem.missing;
        // The least cost of the remaining tokens follows from their number, known approximately.
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
        observer: &dyn Observer,
    ) -> Result<Completion> {
        let load = self.problem.load();
        Load { n_particles: filter.n_particles, n_held: 0, ..load }.check(n_replicates)?;
        let key = Key::new(seed, Purpose::Score);
        let mut end = self.end(max_total, LEFT_BY_SAMPLING);
        if matches!(end, End::Remainder { .. }) {
            let n_particles = filter.n_particles.min(PILOT.n_particles);
            let pilot = Filter { n_particles, ..filter.clone() };
            end = End::Drawn(self.pilot(&pilot, end, seed, observer)?);
        }
        let one = |replicate| {
            self.replicate(filter, end, &key, replicate, observer).inspect(|_| observer.advance(1))
        };
        let runs: Result<Vec<AllocationSums>> =
            (1..=n_replicates.max(1) as u64).into_par_iter().map(one).collect();
        Ok(self.completion(&runs?, n_replicates * filter.n_particles))
    }

    /// Missing tokens that a filter draws up to this end.
    fn pilot(&self, filter: &Filter, end: End, seed: u64, observer: &dyn Observer) -> Result<u64> {
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
        observer: &dyn Observer,
    ) -> Result<AllocationSums> {
        let mut rng = key.unit(replicate).rng();
        let tokens = ordered(&self.problem, &filter.order, &mut rng, observer)?;
        let (problem, n_groups) = (&self.problem, filter.n_groups());
        let mut target =
            AllocationFilter::new(problem, &tokens, n_groups, KeptCounts::All, &mut rng)?;
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

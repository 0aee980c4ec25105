//! Paths of tempering: from the urns of a reference to the distribution of allocations.

use crate::allocation::kernel::chains;
use crate::allocation::kernel::counts::States;
use crate::allocation::kernel::log_risings::LogRisings;
use crate::allocation::kernel::splits::n_weighed;
use crate::allocation::kernel::tempered::{SavedChains, Tempered};
use crate::allocation::kernel::urns::ReferenceUrns;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::Result;
use crate::rng::{LANES, Lanes, Rng};
use crate::temper::annealing::AnnealingPath;
use crate::temper::{LadderChains, LadderTarget, PortableTarget};
use crate::urn::SweepOrder;

/// The power path of a problem, from urns to the distribution of allocations.
pub(crate) struct PowerPath<'a> {
    problem: &'a Problem,
    risings: LogRisings,
    alphas: Vec<f64>,
}

impl<'a> PowerPath<'a> {
    /// A path from these urns.
    pub(crate) fn with(problem: &'a Problem, urns: ReferenceUrns) -> Self {
        PowerPath { problem, risings: LogRisings::new(problem, urns), alphas: problem.alphas() }
    }

    /// Chains of given states of all cliques, token after token.
    pub(crate) fn chains_of(&self, states: &[States], rng: &mut Rng) -> Result<Tempered<'_>> {
        let chains = chains::StateChains::from_states(self.problem, states, rng)?;
        Ok(Tempered::new(chains, &self.risings, &self.alphas, rng))
    }
}

impl LadderTarget for PowerPath<'_> {
    type Chains<'a>
        = Tempered<'a>
    where
        Self: 'a;

    fn chains(&self, rng: &mut Rng, observer: &dyn Observer) -> Result<Tempered<'_>> {
        let chains = chains::StateChains::uniform(self.problem, rng, observer)?;
        Ok(Tempered::new(chains, &self.risings, &self.alphas, rng))
    }

    fn sweep_cost(&self) -> f64 {
        sweep_cost(self.problem)
    }
}

/// Cost of a sweep of chains in lockstep.
pub(super) fn sweep_cost(problem: &Problem) -> f64 {
    let n_states = problem.n_states();
    let weighed = |&count: &u64| {
        if problem.is_heavy(count) { n_weighed(count, n_states) } else { count as f64 }
    };
    (LANES * n_states) as f64 * problem.counts.iter().map(weighed).sum::<f64>()
}

impl PortableTarget for PowerPath<'_> {
    type Saved = SavedChains;

    fn save(&self, chains: &Tempered<'_>) -> SavedChains {
        chains.save()
    }

    fn restore(&self, saved: SavedChains) -> Result<Tempered<'_>> {
        Tempered::restored(saved, self.problem, &self.risings, &self.alphas)
    }
}

impl<'a> AnnealingPath<Rng> for &'a PowerPath<'a> {
    type Level = f64;
    type Chains = Tempered<'a>;

    fn level(&self, beta: f64) -> f64 {
        beta
    }

    fn ln_factor(&self) -> f64 {
        0.0
    }

    fn draw(
        &self,
        reference: &f64,
        _: &mut Lanes,
        rng: &mut Rng,
        observer: &dyn Observer,
    ) -> Result<Tempered<'a>> {
        let mut chains = self.chains(rng, observer)?;
        chains.sweep([*reference; LANES], SweepOrder::Forward, observer)?;
        Ok(chains)
    }

    // The reference sums to 1.
    fn weigh(&self, _: &f64, _: Tempered<'a>, _: &mut Lanes) {}

    fn sweep(
        &self,
        beta: &f64,
        chains: &mut Tempered<'a>,
        order: SweepOrder,
        observer: &dyn Observer,
    ) -> Result<()> {
        chains.sweep([*beta; LANES], order, observer)
    }

    fn step(&self, before: f64, after: f64, chains: &Tempered<'a>, ln_values: &mut Lanes) {
        let steps = chains.values().map(|value| (after - before) * value);
        ln_values.iter_mut().zip(steps).for_each(|(ln_value, step)| *ln_value += step);
    }
}

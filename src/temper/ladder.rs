//! One ladder of chains: its start, and rounds of scans.

use rand::RngExt as _;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::barrier::Barrier;
use super::bridge::Steps;
use super::pilot::{equilibrate, pilot};
use super::target::{LadderChains, LadderTarget, PortableTarget};
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::rng::{Key, LANES, Lanes, Rng};

/// Chains for each unit of the barrier, as the annealing pass finds it: some 1.1 times too large.
/// More of them cost as many scans, and chains at low temperatures forget their start by scans.
const CHAINS_PER_BARRIER: f64 = 1.25;

/// Scans of the whole ladder whose time equilibration at the target takes at most.
const EQUILIBRATION_SCANS: usize = 256;

/// Cost of a sweep in lockstep from which the groups of a ladder go to threads of their own.
const SPREAD_FROM: f64 = 1e6;

/// The end of the ladder at which a chain was last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum RoundTrip {
    None,
    /// The reference: the chain has not been at the target since.
    Up,
    /// The target: the chain has been there since it was at the reference.
    Down,
}

/// State of a chain of a target.
pub(super) type State<'a, T> = <<T as LadderTarget>::Chains<'a> as LadderChains>::State;

/// A ladder of chains.
pub(super) struct Ladder<'a, T: LadderTarget> {
    target: &'a T,
    pub(super) groups: Vec<T::Chains<'a>>,
    rungs: Rungs,
    /// States at the target that were kept of the last round, and of the one before until it ends.
    pub(super) draws: Vec<State<'a, T>>,
}

/// A ladder but for the states of its chains.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Rungs {
    betas: Vec<f64>,
    /// Chain at every rung.
    chains: Vec<usize>,
    trips: Vec<RoundTrip>,
    /// Scans so far: their parity says which pairs swap.
    n_scans: usize,
    rng: Rng,
    tally: Tally,
}

/// Sums over the scans of a round that are done.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Tally {
    /// V at every rung, scan after scan.
    values: Vec<Vec<f64>>,
    rejections: Vec<f64>,
    n_trips: u64,
}

/// Result of one round of one ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundResult {
    pub(super) steps: Steps,
    pub(super) barrier: f64,
    pub(super) n_trips: u64,
    /// Inverse temperatures of the round, and the rejections between them.
    pub(super) betas: Vec<f64>,
    pub(super) rejections: Vec<f64>,
}

impl<'a, T: LadderTarget> Ladder<'a, T> {
    /// A ladder whose chains come to their rungs by an annealing pass, down from chains that have been
    /// swept at the target for long. Sixteen chains climb there in a fraction of the time that all
    /// chains of a ladder take, and chains forget it faster on their way down than they climb.
    pub(super) fn new(
        target: &'a T,
        replicate: usize,
        key: Key,
        max_chains: usize,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let key = key.unit(replicate as u64);
        let mut first = target.chains(&mut key.unit(1).rng(), observer)?;
        let barrier = pilot(&mut first, observer)?;
        let most = max_chains.div_ceil(LANES).max(1);
        let n_groups = ((CHAINS_PER_BARRIER * barrier.total()) as usize + 1).div_ceil(LANES);
        let n_groups = n_groups.clamp(1, most);
        equilibrate(&mut first, n_groups * EQUILIBRATION_SCANS, observer)?;
        let mut groups = vec![first];
        for group in 1..n_groups as u64 {
            let mut chains = target.chains(&mut key.unit(1 + group).rng(), observer)?;
            chains.copy(&groups[0]);
            groups.push(chains);
        }
        let n = groups.len() * LANES;
        let rungs = Rungs {
            betas: barrier.ladder(n),
            chains: (0..n).collect(),
            trips: vec![RoundTrip::None; n],
            n_scans: 0,
            rng: key.unit(0).rng(),
            tally: Tally::new(n),
        };
        let mut ladder = Ladder { target, groups, rungs, draws: Vec::new() };
        ladder.anneal(observer)?;
        Ok(ladder)
    }

    /// Takes every chain to its rung, from the end of the ladder where all are.
    fn anneal(&mut self, observer: &dyn Observer) -> Result<()> {
        let betas = self.rungs.betas.clone();
        let last = betas.len() - 1;
        for step in 0..=last {
            let at: Vec<f64> = (0..=last).map(|rung| betas[rung.max(last - step)]).collect();
            self.sweep(&at, observer)?;
        }
        Ok(())
    }

    /// One sweep of all chains, at these inverse temperatures of their rungs.
    fn sweep(&mut self, betas: &[f64], observer: &dyn Observer) -> Result<()> {
        let mut by_chain = vec![[0.0; LANES]; self.groups.len()];
        for (&chain, &beta) in self.rungs.chains.iter().zip(betas) {
            by_chain[chain / LANES][chain % LANES] = beta;
        }
        let sweep = |(group, betas): (&mut T::Chains<'a>, &Lanes)| group.sweep(*betas, observer);
        if self.target.sweep_cost() >= SPREAD_FROM {
            self.groups.par_iter_mut().zip(&by_chain).try_for_each(sweep)
        } else {
            self.groups.iter_mut().zip(&by_chain).try_for_each(sweep)
        }
    }

    /// Runs at most `most` of the scans that are left of a round of `n_scans`, with its result
    /// where it ends: the rungs are then respaced. States at the target are kept of `n_draws`
    /// scans at equal distances, or of all where there are fewer.
    pub(super) fn advance(
        &mut self,
        n_scans: usize,
        most: usize,
        n_draws: usize,
        observer: &dyn Observer,
    ) -> Result<Option<RoundResult>> {
        let betas = self.rungs.betas.clone();
        let left = n_scans.saturating_sub(self.rungs.tally.n_scans());
        for _ in 0..left.min(most) {
            self.sweep(&betas, observer)?;
            self.keep_draw(n_draws.min(n_scans), n_scans);
            let energies: Vec<Lanes> = self.groups.iter().map(LadderChains::values).collect();
            self.rungs.swap(energies.as_flattened());
        }
        if left > most {
            return Ok(None);
        }
        Ok(Some(self.rungs.end_round()))
    }

    /// Keeps the present state at the target, if this scan has one of the `n_draws` of the round.
    fn keep_draw(&mut self, n_draws: usize, n_scans: usize) {
        let done = self.rungs.tally.n_scans() + 1;
        let nth = done * n_draws / n_scans;
        if nth > (done - 1) * n_draws / n_scans {
            let chain = self.rungs.chains[self.rungs.chains.len() - 1];
            let state = self.groups[chain / LANES].state(chain % LANES);
            // Draws of the round before give way one by one: a stop finds as many as it had.
            match self.draws.get_mut(nth - 1) {
                Some(draw) => *draw = state,
                None => self.draws.push(state),
            }
        }
    }
}

impl<'a, T: PortableTarget> Ladder<'a, T> {
    /// The ladder as bytes, between two scans.
    pub(super) fn save(&self) -> Result<Vec<u8>> {
        let groups: Vec<T::Saved> =
            self.groups.iter().map(|group| self.target.save(group)).collect();
        postcard::to_allocvec(&(groups, &self.rungs)).map_err(|_| Error::Saved)
    }

    /// The ladder that was saved.
    pub(super) fn restore(target: &'a T, saved: &[u8]) -> Result<Self> {
        let read = postcard::from_bytes::<(Vec<T::Saved>, Rungs)>(saved);
        let (groups, rungs) = read.map_err(|_| Error::Saved)?;
        if groups.is_empty() || !rungs.have(groups.len() * LANES) {
            return Err(Error::Saved);
        }
        let groups =
            groups.into_iter().map(|group| target.restore(group)).collect::<Result<_>>()?;
        Ok(Ladder { target, groups, rungs, draws: Vec::new() })
    }
}

impl Tally {
    fn new(n: usize) -> Self {
        Tally { values: vec![Vec::new(); n], rejections: vec![0.0; n - 1], n_trips: 0 }
    }

    fn n_scans(&self) -> usize {
        self.values[0].len()
    }
}

impl Rungs {
    /// Whether these are the rungs of `n` chains.
    fn have(&self, n: usize) -> bool {
        let Tally { values, rejections, .. } = &self.tally;
        let mut chains = self.chains.clone();
        chains.sort_unstable();
        chains.into_iter().eq(0..n)
            && [self.betas.len(), self.trips.len(), values.len(), rejections.len() + 1] == [n; 4]
            && values.iter().all(|rung| rung.len() == values[0].len())
    }

    /// Adds a scan to the tally. Swaps neighbours, even pairs in even scans and odd pairs in odd
    /// ones, and adds up the probabilities with which all pairs would have been left alone.
    fn swap(&mut self, of_chains: &[f64]) {
        for (values, &chain) in self.tally.values.iter_mut().zip(&self.chains) {
            values.push(of_chains[chain]);
        }
        let betas = &self.betas;
        let excess = |chains: &[usize], rung: usize| {
            let [lower, upper] = [rung, rung + 1].map(|rung| of_chains[chains[rung]]);
            (betas[rung + 1] - betas[rung]) * (lower - upper)
        };
        for (rung, rejection) in self.tally.rejections.iter_mut().enumerate() {
            *rejection -= excess(&self.chains, rung).min(0.0).exp_m1();
        }
        let n_pairs = betas.len() - 1;
        // A swap of one pair leaves the others alone.
        for rung in (self.n_scans % 2..n_pairs).step_by(2) {
            if self.rng.random::<f64>() < excess(&self.chains, rung).exp() {
                self.chains.swap(rung, rung + 1);
            }
        }
        self.n_scans += 1;
        self.tally.n_trips += self.count_trips();
    }

    /// Chains that have come back to the reference from the target.
    fn count_trips(&mut self) -> u64 {
        let (first, last) = (self.chains[0], self.chains[self.chains.len() - 1]);
        if self.trips[last] == RoundTrip::Up {
            self.trips[last] = RoundTrip::Down;
        }
        let returned = self.trips[first] == RoundTrip::Down;
        self.trips[first] = RoundTrip::Up;
        u64::from(returned)
    }

    /// Result of the round that ends here; respaces the rungs for the next one.
    fn end_round(&mut self) -> RoundResult {
        let n = self.betas.len();
        let Tally { values, mut rejections, n_trips } =
            std::mem::replace(&mut self.tally, Tally::new(n));
        let n_scans = values[0].len() as f64;
        rejections.iter_mut().for_each(|rejection| *rejection /= n_scans);
        let mut steps = Steps::default();
        for rung in 0..n - 1 {
            let width = self.betas[rung + 1] - self.betas[rung];
            steps.add(Steps::between(width, &values[rung], &values[rung + 1]));
        }
        let barrier = Barrier::new(&self.betas, &rejections);
        let betas = std::mem::replace(&mut self.betas, barrier.ladder(n));
        RoundResult { steps, barrier: barrier.total(), n_trips, betas, rejections }
    }
}

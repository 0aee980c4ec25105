//! One ladder of chains: its start, and rounds of scans.

use rand::RngExt as _;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::bridge::Steps;
use super::ladder::Barrier;
use super::target::{Chains, Target};
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::LogSum;
use crate::rng::{Key, LANES, Lanes, Rng};

/// Barrier that a step of the annealing pass crosses.
const PILOT_STEP: f64 = 0.25;

/// Steps of the annealing pass at most.
const MAX_PILOT: usize = 4_000;

/// Chains for each unit of the barrier, as the annealing pass finds it: some 1.1 times too large. More of
/// them cost as many scans, and chains at low temperatures forget their start by scans.
const CHAINS_PER_BARRIER: f64 = 1.25;

/// Sweeps at the target before it is first looked at, and the scans of the whole ladder whose time all of
/// them take at most.
const FIRST_SETTLING: usize = 8;
const SETTLING_SCANS: usize = 256;

/// Cost of a sweep in lockstep from which the groups of a ladder go to threads of their own.
const SPREAD_FROM: f64 = 1e6;

/// Where a chain last was, of the two ends of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Trip {
    None,
    /// At the reference, and not yet at the target since.
    Up,
    /// At the target since it was at the reference.
    Down,
}

/// A ladder of chains.
pub(super) struct Replicate<C: Chains> {
    groups: Vec<C>,
    rungs: Rungs,
    /// States at the target that were kept of the last round, and of the one before until it ends.
    kept: Vec<C::State>,
    last: Option<Walk>,
}

/// V of one draw from a rung, and ln of its weight: draws of all rungs together, so weighted, stand for
/// γ_0, as `Σ weight f` for the mean of f.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighted {
    /// ln γ_1 - ln γ_0.
    pub value: f64,
    /// ln of the weight.
    pub ln_weight: f64,
}

/// Values of a round, rung after rung.
struct Walk {
    betas: Vec<f64>,
    values: Vec<Vec<f64>>,
    /// ln of the normalising constant of every rung, that of the first being 1.
    ln_constants: Vec<f64>,
}

impl Walk {
    /// Some `n` of the draws, at equal distances, with weights by which they stand for γ_0.
    fn weighted(&self, n: usize) -> Vec<Vec<Weighted>> {
        let (n_rungs, n_scans) = (self.values.len(), self.values[0].len());
        let step = n_scans.div_ceil((n / n_rungs).max(1));
        let ln_scans = (n_scans.div_ceil(step) as f64).ln();
        let weigh = |&value: &f64| {
            let rungs = self.betas.iter().zip(&self.ln_constants);
            let density: LogSum = rungs.map(|(beta, ln_z)| beta * value - ln_z).collect();
            Weighted { value, ln_weight: -density.ln_sum() - ln_scans }
        };
        let of_rung = |values: &Vec<f64>| values.iter().step_by(step).map(weigh).collect();
        self.values.iter().map(of_rung).collect()
    }
}

/// A ladder but for the states of its chains.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Rungs {
    betas: Vec<f64>,
    /// Chain at every rung.
    chains: Vec<usize>,
    trips: Vec<Trip>,
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

/// Findings of one round of one ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    pub(super) steps: Steps,
    pub(super) barrier: f64,
    pub(super) n_trips: u64,
    /// Inverse temperatures of the round, and the rejections between them.
    pub(super) betas: Vec<f64>,
    pub(super) rejections: Vec<f64>,
}

impl<C: Chains> Replicate<C> {
    /// A ladder whose chains come to their rungs by an annealing pass: up from the reference, or, where
    /// the target settles, down from chains that have.
    ///
    /// # Errors
    /// Those of the target.
    pub(super) fn new<'a, T>(
        target: &'a T,
        replicate: usize,
        key: Key,
        max_chains: usize,
        observer: &impl Observer,
    ) -> Result<Self>
    where
        T: Target<Level = C::Level, Chains<'a> = C>,
    {
        let key = key.unit(replicate as u64);
        let mut first = target.chains(replicate, &mut key.unit(1).rng(), observer)?;
        let pilot = pilot(target, &mut first, observer)?.barrier;
        let most = max_chains.div_ceil(LANES).max(1);
        let n_groups = ((CHAINS_PER_BARRIER * pilot.total()) as usize + 1).div_ceil(LANES);
        let n_groups = n_groups.clamp(1, most);
        if target.settles() {
            settle(target, &mut first, n_groups * SETTLING_SCANS, observer)?;
        }
        let mut groups = vec![first];
        for group in 1..n_groups as u64 {
            let mut chains = target.chains(replicate, &mut key.unit(1 + group).rng(), observer)?;
            if target.settles() {
                chains.copy(&groups[0]);
            }
            groups.push(chains);
        }
        let n = groups.len() * LANES;
        let rungs = Rungs {
            betas: pilot.ladder(n),
            chains: (0..n).collect(),
            trips: vec![Trip::None; n],
            n_scans: 0,
            rng: key.unit(0).rng(),
            tally: Tally::new(n),
        };
        let mut replicate = Replicate { groups, rungs, kept: Vec::new(), last: None };
        replicate.anneal(target, observer)?;
        Ok(replicate)
    }

    pub(super) fn n_groups(&self) -> usize {
        self.groups.len()
    }

    /// The ladder as bytes, between two scans.
    ///
    /// # Errors
    /// [`Error::Saved`]
    pub(super) fn save(&self) -> Result<Vec<u8>> {
        let groups: Vec<C::Saved> = self.groups.iter().map(Chains::save).collect();
        postcard::to_allocvec(&(groups, &self.rungs)).map_err(|_| Error::Saved)
    }

    /// The ladder that was saved.
    ///
    /// # Errors
    /// [`Error::Saved`] for bytes that are no ladder of this target; those of the target.
    pub(super) fn restore<'a, T>(target: &'a T, saved: &[u8]) -> Result<Self>
    where
        T: Target<Level = C::Level, Chains<'a> = C>,
    {
        let read = postcard::from_bytes::<(Vec<C::Saved>, Rungs)>(saved);
        let (groups, rungs) = read.map_err(|_| Error::Saved)?;
        if groups.is_empty() || !rungs.are_of(groups.len() * LANES) {
            return Err(Error::Saved);
        }
        let groups =
            groups.into_iter().map(|group| target.restore(group)).collect::<Result<_>>()?;
        Ok(Replicate { groups, rungs, kept: Vec::new(), last: None })
    }

    /// Takes every chain to its rung, from the end of the ladder where all are.
    fn anneal<T>(&mut self, target: &T, observer: &impl Observer) -> Result<()>
    where
        T: Target<Level = C::Level>,
    {
        let levels: Vec<T::Level> =
            self.rungs.betas.iter().map(|&beta| target.level(beta)).collect();
        let last = levels.len() - 1;
        for step in 0..=last {
            let at = |rung: usize| {
                if target.settles() { rung.max(last - step) } else { rung.min(step) }
            };
            let at: Vec<&T::Level> = (0..=last).map(|rung| &levels[at(rung)]).collect();
            self.sweep(&at, target.sweep_cost(), observer)?;
        }
        Ok(())
    }

    /// One sweep of all chains, at the levels of their rungs.
    fn sweep(&mut self, levels: &[&C::Level], cost: f64, observer: &impl Observer) -> Result<()> {
        let mut of_chains = vec![[levels[0]; LANES]; self.groups.len()];
        for (&chain, level) in self.rungs.chains.iter().zip(levels) {
            of_chains[chain / LANES][chain % LANES] = level;
        }
        let sweep = |(group, levels): (&mut C, &[&C::Level; LANES])| group.sweep(levels, observer);
        if cost >= SPREAD_FROM {
            self.groups.par_iter_mut().zip(&of_chains).try_for_each(sweep)
        } else {
            self.groups.iter_mut().zip(&of_chains).try_for_each(sweep)
        }
    }

    /// The states that were kept of the last round.
    pub(super) fn into_kept(self) -> Vec<C::State> {
        self.kept
    }

    /// Some `n` draws of the last round, rung after rung, with weights by which they stand for γ_0; none
    /// unless it kept its values.
    pub(super) fn weighted(&self, n: usize) -> Vec<Vec<Weighted>> {
        self.last.as_ref().map_or_else(Vec::new, |walk| walk.weighted(n))
    }

    /// A round of scans, after which the rungs are respaced. States at the target are kept of
    /// `n_kept` scans at equal distances, or of all where there are fewer.
    ///
    /// # Errors
    /// Those of the sweeps.
    pub(super) fn round<T>(
        &mut self,
        target: &T,
        n_scans: usize,
        n_kept: usize,
        keeps_values: bool,
        observer: &impl Observer,
    ) -> Result<Found>
    where
        T: Target<Level = C::Level>,
    {
        self.scan(target, n_scans, (n_scans, n_kept), observer)?;
        let (found, walk) = self.rungs.found();
        self.last = keeps_values.then_some(walk);
        Ok(found)
    }

    /// A part of a round: at most `most` of the scans that are left of it. Its findings at its end.
    ///
    /// # Errors
    /// Those of the sweeps.
    pub(super) fn part<T>(
        &mut self,
        target: &T,
        n_scans: usize,
        most: usize,
        observer: &impl Observer,
    ) -> Result<Option<Found>>
    where
        T: Target<Level = C::Level>,
    {
        let left = n_scans.saturating_sub(self.rungs.tally.n_scans());
        self.scan(target, left.min(most), (n_scans, 0), observer)?;
        Ok((left <= most).then(|| self.rungs.found().0))
    }

    /// Scans of a round of `of.0` scans, of which the states of `of.1` are kept.
    fn scan<T>(
        &mut self,
        target: &T,
        n_scans: usize,
        of: (usize, usize),
        observer: &impl Observer,
    ) -> Result<()>
    where
        T: Target<Level = C::Level>,
    {
        let levels: Vec<T::Level> =
            self.rungs.betas.iter().map(|&beta| target.level(beta)).collect();
        let levels: Vec<&T::Level> = levels.iter().collect();
        let (of_round, n_kept) = (of.0, of.1.min(of.0));
        for _ in 0..n_scans {
            self.sweep(&levels, target.sweep_cost(), observer)?;
            let done = self.rungs.tally.n_scans() + 1;
            let nth = done * n_kept / of_round;
            if nth > (done - 1) * n_kept / of_round {
                let chain = self.rungs.chains[levels.len() - 1];
                let state = self.groups[chain / LANES].state(chain % LANES);
                // Those of the round before give way one by one: a stop finds as many as it had.
                match self.kept.get_mut(nth - 1) {
                    Some(kept) => *kept = state,
                    None => self.kept.push(state),
                }
            }
            let of_groups: Vec<Lanes> = self.groups.iter().map(Chains::values).collect();
            self.rungs.swap(of_groups.as_flattened());
        }
        Ok(())
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
    fn are_of(&self, n: usize) -> bool {
        let Tally { values, rejections, .. } = &self.tally;
        let mut chains = self.chains.clone();
        chains.sort_unstable();
        chains.into_iter().eq(0..n)
            && [self.betas.len(), self.trips.len(), values.len(), rejections.len() + 1] == [n; 4]
            && values.iter().all(|of_rung| of_rung.len() == values[0].len())
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
        if self.trips[last] == Trip::Up {
            self.trips[last] = Trip::Down;
        }
        let returned = self.trips[first] == Trip::Down;
        self.trips[first] = Trip::Up;
        u64::from(returned)
    }

    /// Findings of the round that ends here; respaces the rungs for the next one.
    fn found(&mut self) -> (Found, Walk) {
        let n = self.betas.len();
        let Tally { values, mut rejections, n_trips } =
            std::mem::replace(&mut self.tally, Tally::new(n));
        let n_scans = values[0].len() as f64;
        rejections.iter_mut().for_each(|rejection| *rejection /= n_scans);
        let (mut steps, mut ln_constants) = (Steps::default(), vec![0.0]);
        for rung in 0..n - 1 {
            let width = self.betas[rung + 1] - self.betas[rung];
            steps.add(Steps::between(width, &values[rung], &values[rung + 1]));
            ln_constants.push(steps.bridge);
        }
        let barrier = Barrier::new(&self.betas, &rejections);
        let betas = std::mem::replace(&mut self.betas, barrier.ladder(n));
        let walk = Walk { betas: betas.clone(), values, ln_constants };
        (Found { steps, barrier: barrier.total(), n_trips, betas, rejections }, walk)
    }
}

/// Findings of an annealing pass.
pub(super) struct Pilot {
    pub(super) barrier: Barrier,
    /// ln Ẑ of the chains.
    pub(super) ln_values: Lanes,
}

/// Anneals chains in lockstep from the reference to the target, in steps that cross equal parts of
/// the barrier: half the mean difference of V between two draws, times the step in β.
pub(super) fn pilot<T: Target>(
    target: &T,
    chains: &mut impl Chains<Level = T::Level>,
    observer: &impl Observer,
) -> Result<Pilot> {
    let (mut betas, mut crossed) = (vec![0.0], Vec::new());
    let (mut beta, mut ln_values) = (0.0, [0.0; LANES]);
    let level = target.level(beta);
    chains.sweep(&[&level; LANES], observer)?;
    while beta < 1.0 {
        let values = chains.values();
        let slope = 0.5 * mean_difference(values);
        let left = MAX_PILOT - crossed.len();
        let step = (PILOT_STEP / slope).max((1.0 - beta) / left as f64).min(1.0 - beta);
        beta = if step < 1.0 - beta { beta + step } else { 1.0 };
        betas.push(beta);
        crossed.push(slope * step);
        ln_values.iter_mut().zip(values).for_each(|(ln_value, value)| *ln_value += step * value);
        let level = target.level(beta);
        chains.sweep(&[&level; LANES], observer)?;
    }
    Ok(Pilot { barrier: Barrier::new(&betas, &crossed), ln_values })
}

/// Sweeps chains in lockstep at the target, in rounds of doubling length, until V rises no more than by
/// chance, `most` times at most.
fn settle<T: Target>(
    target: &T,
    chains: &mut impl Chains<Level = T::Level>,
    most: usize,
    observer: &impl Observer,
) -> Result<()> {
    let (level, mut n_sweeps, mut left) = (target.level(1.0), FIRST_SETTLING, most);
    let mut before: Option<Lanes> = None;
    while n_sweeps <= left {
        let mut means = [0.0; LANES];
        for _ in 0..n_sweeps {
            chains.sweep(&[&level; LANES], observer)?;
            means
                .iter_mut()
                .zip(chains.values())
                .for_each(|(mean, x)| *mean += x / n_sweeps as f64);
        }
        if before.is_some_and(|before| !rises(&before, &means)) {
            break;
        }
        before = Some(means);
        left -= n_sweeps;
        n_sweeps *= 2;
    }
    Ok(())
}

/// Whether numbers have risen by more than the standard error of their mean rise.
fn rises(before: &Lanes, after: &Lanes) -> bool {
    let n = LANES as f64;
    let rise: Lanes = std::array::from_fn(|lane| after[lane] - before[lane]);
    let mean = rise.iter().sum::<f64>() / n;
    let squares: f64 = rise.iter().map(|x| (x - mean).powi(2)).sum();
    mean > (squares / (n * (n - 1.0))).sqrt()
}

/// Mean of |x - y| over pairs of lanes.
fn mean_difference(mut values: Lanes) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = LANES as f64;
    let weight = |rank: usize| 2.0 * rank as f64 - (n - 1.0);
    let sum: f64 = values.iter().enumerate().map(|(rank, value)| weight(rank) * value).sum();
    sum / (0.5 * n * (n - 1.0))
}

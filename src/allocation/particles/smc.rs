//! Sequential importance sampling of allocations, with resampling (Alg. 1 to 3).

use std::ops::Range;

use rand::seq::SliceRandom as _;
use rand::{Rng, RngExt as _};
use rayon::prelude::*;

use super::lanes::{CountPlace, GroupCounts, Particles};
use super::moves::AllocatedParticles;
use crate::allocation::kernel::counts::{self, States};
use crate::allocation::kernel::tempered::GroupedAllocation;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::Result;
use crate::filter::{self, Block as _, FilterTarget, Options, Population, Replicate};
use crate::math::{Move, Resampling, pick_lanes};
use crate::rng::{LANES, Lanes, Stream, UniformLanes};

/// Order in which the tokens are drawn. Unbiased for any; the variance depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenOrder {
    /// Shuffled, anew for every replicate.
    Random,
    /// Cell after cell.
    Sorted,
    /// Cells in this order.
    Given(Vec<u32>),
}

/// Options of the particle filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// Particles of a replicate, rounded up to a multiple of 16.
    pub n_particles: usize,
    /// Effective share of the particles below which they are resampled: 0 never (SIS), 1 always.
    pub threshold: f64,
    /// How.
    pub resampling: Resampling,
    /// Order of the tokens.
    pub order: TokenOrder,
    /// Collapsed Gibbs sweeps over the tokens so far while their number grows e-fold: after each of
    /// the first `n_sweeps` tokens, then whenever there are 1/`n_sweeps` more, and less often where
    /// tokens are many; 0 for SIS-R itself.
    pub n_sweeps: usize,
}

/// Tokens that are shuffled between two polls of the observer.
const SHUFFLED_BETWEEN_POLLS: usize = 1 << 20;

/// Cells of the tokens in the order in which they are drawn.
pub(crate) fn ordered(
    problem: &Problem,
    order: &TokenOrder,
    rng: &mut impl rand::Rng,
    observer: &dyn Observer,
) -> Result<Vec<u32>> {
    let mut tokens = problem.tokens()?;
    match order {
        TokenOrder::Random => {
            // Each token takes the place of itself or of one before it.
            for start in (0..tokens.len()).step_by(SHUFFLED_BETWEEN_POLLS) {
                observer.check_stop()?;
                let end = tokens.len().min(start + SHUFFLED_BETWEEN_POLLS);
                let _ = tokens[..end].partial_shuffle(rng, end - start);
            }
        }
        TokenOrder::Sorted => {}
        TokenOrder::Given(cells) => {
            let copies =
                |&cell: &u32| std::iter::repeat_n(cell, problem.counts[cell as usize] as usize);
            tokens = cells.iter().flat_map(copies).collect();
        }
    }
    Ok(tokens)
}

impl Filter {
    /// Blocks of particles of a run.
    pub(crate) fn n_groups(&self) -> usize {
        self.n_particles.div_ceil(LANES)
    }

    /// The particles of one run.
    pub(crate) fn population(&self) -> Population<Lanes> {
        let Filter { threshold, resampling, .. } = *self;
        Population::new(1, self.n_groups(), Options { threshold, resampling })
    }
}

/// Counts of the particles that remain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptCounts {
    /// All.
    All,
    /// Counts that a later token reads.
    Used,
}

/// ln Ẑ of one run, and the relative variance of Ẑ that it tells. Unbiased.
pub(crate) fn ln_sum(
    problem: &Problem,
    filter: &Filter,
    rng: &mut impl Stream,
    observer: &dyn Observer,
) -> Result<(f64, f64)> {
    if filter.n_sweeps == 0 {
        return Ok(run(problem, filter, KeptCounts::Used, rng, observer)?.0);
    }
    let (_, population) = run_moved(problem, filter, rng, observer)?;
    Ok((population.ln_mean(0), population.relative_variance(0)))
}

/// Particles of a run with moves, and their weights.
type Moved<'a, S> = (AllocatedParticles<'a, <S as Stream>::Lanes>, Population<Lanes>);

/// Results of [`ln_sum`] of some runs, under the prior that draws them and then under others, and
/// allocations among their particles.
type Drawn = (Vec<Vec<(f64, f64)>>, Vec<GroupedAllocation>);

/// One run with moves.
fn run_moved<'a, S: Stream>(
    problem: &'a Problem,
    filter: &Filter,
    rng: &mut S,
    observer: &'a dyn Observer,
) -> Result<Moved<'a, S>> {
    let tokens = ordered(problem, &filter.order, rng, observer)?;
    let n_tokens = tokens.len();
    let effort = (filter.n_groups(), filter.n_sweeps);
    let mut target = AllocatedParticles::new(problem, tokens, effort, rng, observer)?;
    let mut population = filter.population();
    filter::run(&mut target, &mut population, n_tokens, rng, observer)?;
    Ok((target, population))
}

/// Runs with moves, one for each stream, and `n_draws` allocations among the particles of all runs,
/// each as probable as its weight. `others` are the problem under other priors. The observer is told
/// of each run.
pub(crate) fn draws<S: Stream<Lanes: Send> + Send>(
    (problem, others): (&Problem, &[&Problem]),
    filter: &Filter,
    n_draws: usize,
    streams: Vec<S>,
    observer: &dyn Observer,
) -> Result<Drawn> {
    let run = |mut rng: S| {
        let (target, population) = run_moved(problem, filter, &mut rng, observer)?;
        let mut results = vec![(population.ln_mean(0), population.relative_variance(0))];
        for other in others {
            results.push(target.reweighted(other, &population)?);
        }
        observer.advance(1);
        Ok(((target, population, rng), results))
    };
    let runs = streams.into_par_iter().map(run).collect::<Result<Vec<_>>>()?;
    let (mut runs, by_run): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    let by_prior = |prior: usize| by_run.iter().map(|results| results[prior]).collect();
    let results = (0..=others.len()).map(by_prior).collect();
    let top = runs.iter().map(|(_, found, _)| found.ln_scale(0)).fold(f64::NEG_INFINITY, f64::max);
    let weights = runs.iter().map(|(_, found, _)| {
        let scale = (found.ln_scale(0) - top).exp();
        found.weights().iter().flatten().map(move |weight| weight * scale).collect::<Vec<f64>>()
    });
    let weights: Vec<Vec<f64>> = weights.collect();
    let dart = runs.first_mut().map_or(0.0, |(.., rng)| rng.random::<f64>());
    let chosen = systematic(&weights, n_draws, dart);
    let of_run = |((target, _, rng), chosen): (&mut (_, _, S), Vec<usize>)| {
        let target: &mut AllocatedParticles<'_, S::Lanes> = target;
        target.draws(&chosen, rng)
    };
    if n_draws == 0 {
        return Ok((results, Vec::new()));
    }
    let found = runs.par_iter_mut().zip(chosen).map(of_run).collect::<Result<Vec<_>>>()?;
    Ok((results, found.into_iter().flatten().collect()))
}

/// Particles of each run on which `n` points fall that lie equally far apart on all weights.
fn systematic(weights: &[Vec<f64>], n: usize, dart: f64) -> Vec<Vec<usize>> {
    let total: f64 = weights.iter().flatten().sum();
    let (mut before, mut n_passed) = (0.0, 0);
    let of_run = |weights: &Vec<f64>| {
        let mut chosen = Vec::new();
        for (particle, weight) in weights.iter().enumerate() {
            before += weight;
            while n_passed < n && n_passed as f64 + dart < before / total * n as f64 {
                chosen.push(particle);
                n_passed += 1;
            }
        }
        chosen
    };
    weights.iter().map(of_run).collect()
}

/// [`ln_sum`] without moves, and the particles.
pub(crate) fn run(
    problem: &Problem,
    filter: &Filter,
    keep: KeptCounts,
    rng: &mut impl Stream,
    observer: &dyn Observer,
) -> Result<((f64, f64), Particles)> {
    let tokens = ordered(problem, &filter.order, rng, observer)?;
    let mut target = AllocationFilter::new(problem, &tokens, filter.n_groups(), keep, rng)?;
    let mut population = filter.population();
    filter::run(&mut target, &mut population, tokens.len(), rng, observer)?;
    Ok(((population.ln_mean(0), population.relative_variance(0)), target.particles))
}

/// Particles that draw the hidden values of one token after the other from the urn.
pub(crate) struct AllocationFilter<'a, L> {
    problem: &'a Problem,
    /// Cells of the tokens.
    tokens: &'a [u32],
    particles: Particles,
    n_drawn: usize,
    lanes: Vec<L>,
    sums: Vec<Lanes>,
    states: Vec<States>,
    alphas: Vec<f64>,
    /// Places that a token reads, cell after cell.
    places: Vec<CountPlace>,
}

impl<L: UniformLanes> Replicate for AllocationFilter<'_, L> {
    type Block = Lanes;

    fn replicate(&mut self, _: usize, _: &[Lanes], moves: &[Move]) {
        self.particles.resample(moves);
    }
}

impl<L: UniformLanes> FilterTarget for AllocationFilter<'_, L> {
    fn extend(&mut self, token: usize, population: &mut Population<Lanes>, _: &mut impl Rng) {
        let cell = self.tokens[token];
        let (plan, bases) = (self.problem.plan(cell), self.problem.bases(cell));
        let particles = &mut self.particles;
        self.places.clear();
        particles.open(plan, bases, |row| self.alphas[row], &mut self.places);
        let weights = population.weights_mut().iter_mut().zip(&mut self.lanes);
        for (group, (weights, uniforms)) in weights.enumerate() {
            let mut token =
                GroupCounts { words: &mut particles.words, index: group, places: &self.places };
            let weight = counts::weigh(plan, &token, &mut self.sums);
            counts::pick(plan, &self.sums, uniforms, &mut self.states);
            counts::add(plan, &mut token, &self.states, 1);
            weights.iter_mut().zip(weight).for_each(|(total, x)| *total *= x);
        }
        particles.close(bases, self.n_drawn);
        self.n_drawn += 1;
        population.rescale(0);
    }
}

impl<'a, L: UniformLanes> AllocationFilter<'a, L> {
    /// Particles without tokens, which are to draw those of these cells.
    pub(crate) fn new(
        problem: &'a Problem,
        tokens: &'a [u32],
        n_groups: usize,
        keep: KeptCounts,
        rng: &mut impl Stream<Lanes = L>,
    ) -> Result<Self> {
        let to_come = (keep == KeptCounts::Used).then_some(tokens);
        Ok(AllocationFilter {
            problem,
            tokens,
            particles: Particles::new(problem, n_groups, to_come)?,
            n_drawn: 0,
            lanes: (0..n_groups).map(|_| rng.lanes()).collect(),
            sums: vec![[0.0; LANES]; problem.n_states()],
            states: vec![[0; LANES]; problem.n_cliques()],
            alphas: problem.alphas(),
            places: Vec::new(),
        })
    }

    /// Draws the next token, which fell in one of these cells. `shares` gets the weight that each
    /// of them has on average over the weighted particles before, and `sums` is a buffer.
    pub(crate) fn draw_among(
        &mut self,
        cells: Range<u32>,
        population: &mut Population<Lanes>,
        shares: &mut [f64],
        sums: &mut [Lanes],
        observer: &dyn Observer,
    ) -> Result<()> {
        let (plan, particles) = (&self.problem.plan, &mut self.particles);
        self.places.clear();
        for cell in cells {
            let bases = self.problem.bases(cell);
            particles.open(plan, bases, |row| self.alphas[row], &mut self.places);
        }
        let places = |index: usize| &self.places[index * plan.n_pairs..][..plan.n_pairs];
        shares.fill(0.0);
        let (total, _) = Lanes::sums(population.weights());
        let weights = population.weights_mut().iter_mut().zip(&mut self.lanes);
        for (group, (weights, uniforms)) in weights.enumerate() {
            observer.check_stop()?;
            let words = &mut particles.words;
            let mut sum = [0.0; LANES];
            for (index, (share, sums)) in shares.iter_mut().zip(&mut *sums).enumerate() {
                let token = GroupCounts { words, index: group, places: places(index) };
                let weight = counts::weigh(plan, &token, &mut self.sums);
                for lane in 0..LANES {
                    sum[lane] += weight[lane];
                    *share += weights[lane] * weight[lane] / total;
                }
                *sums = sum;
            }
            let chosen = pick_lanes(sums, uniforms.next());
            let mut distinct = chosen;
            distinct.sort_unstable();
            for (rank, &index) in distinct.iter().enumerate() {
                if rank > 0 && index == distinct[rank - 1] {
                    continue;
                }
                let mut token = GroupCounts { words, index: group, places: places(index as usize) };
                if sums.len() > 1 {
                    counts::weigh(plan, &token, &mut self.sums);
                }
                counts::pick(plan, &self.sums, uniforms, &mut self.states);
                for lane in (0..LANES).filter(|&lane| chosen[lane] == index) {
                    counts::add_lane(plan, &mut token, &self.states, lane);
                }
            }
            weights.iter_mut().zip(sum).for_each(|(total, x)| *total *= x);
        }
        self.n_drawn += 1;
        population.rescale(0);
        Ok(())
    }
}

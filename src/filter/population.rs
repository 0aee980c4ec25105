//! Weights of the particles of independent runs, their resampling and their descent.

use rand::RngExt as _;

use super::block::{Block, rescale};
use crate::math::{Move, Replication, Resampling, systematic_offspring};
use crate::rng::Lanes;

/// Sums of the weights of a run beyond which they are brought back to a mean of 1.
const RANGE: std::ops::Range<f64> = 1e-100..1e100;

/// When and how particles are resampled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Effective share of the particles of a run below which they are resampled: 0 never
    /// (sequential importance sampling), 1 always.
    pub threshold: f64,
    /// The scheme.
    pub resampling: Resampling,
}

/// Particles that can become copies of each other.
pub trait Replicate {
    /// Particles that are drawn together: one, or all lanes.
    type Block: Block;

    /// Makes every particle of a run that dies a copy of another; `weights` are those of the run
    /// before resampling.
    fn replicate(&mut self, run: usize, weights: &[Self::Block], moves: &[Move]);
}

/// The particles of independent runs, run after run: their weights and their descent.
#[derive(Debug, Clone)]
pub struct Population<B> {
    options: Options,
    /// Blocks of a run.
    n_blocks: usize,
    weights: Vec<B>,
    runs: Vec<Run>,
    /// The first particle that each particle descends from, by its place in the run.
    founders: Vec<u32>,
    offspring: Vec<u32>,
    replication: Replication,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    /// ln of the factors taken out of the weights.
    ln_scale: f64,
    n_resamplings: u32,
    /// Place of the particle that must survive.
    reference: Option<usize>,
}

impl<B: Block> Population<B> {
    /// `n_runs` runs of `n_blocks` blocks of particles, all of weight 1.
    pub fn new(n_runs: usize, n_blocks: usize, options: Options) -> Self {
        let n_particles = n_blocks * B::N;
        Population {
            options,
            n_blocks,
            weights: vec![B::ONE; n_runs * n_blocks],
            runs: vec![Run { ln_scale: 0.0, n_resamplings: 0, reference: None }; n_runs],
            founders: (0..n_runs).flat_map(|_| 0..n_particles as u32).collect(),
            offspring: vec![0; n_particles],
            replication: Replication::default(),
        }
    }

    /// Runs in each of which one particle, at the given place, must survive: conditional sequential
    /// Monte Carlo (Andrieu, Doucet & Holenstein 2010). Resampling is systematic.
    #[must_use]
    pub fn conditional(mut self, references: impl IntoIterator<Item = usize>) -> Self {
        self.options.resampling = Resampling::Systematic;
        for (run, place) in self.runs.iter_mut().zip(references) {
            run.reference = Some(place);
        }
        self
    }

    /// Number of runs.
    pub fn n_runs(&self) -> usize {
        self.runs.len()
    }

    /// Number of particles of a run.
    pub fn n_particles(&self) -> usize {
        self.offspring.len()
    }

    /// Place of the particle of a run that must survive.
    pub fn reference(&self, run: usize) -> Option<usize> {
        self.runs[run].reference
    }

    /// Weights of the particles of all runs.
    pub fn weights(&self) -> &[B] {
        &self.weights
    }

    /// The same, to change them.
    pub fn weights_mut(&mut self) -> &mut [B] {
        &mut self.weights
    }

    /// Multiplies the estimates of all runs, beside the weights.
    pub fn scale(&mut self, ln_factor: f64) {
        self.runs.iter_mut().for_each(|run| run.ln_scale += ln_factor);
    }

    /// ln of the factors that were taken out of the weights of a run.
    pub fn ln_scale(&self, run: usize) -> f64 {
        self.runs[run].ln_scale
    }

    /// ln of the mean weight of a run: of its estimate.
    pub fn ln_mean(&self, run: usize) -> f64 {
        let (sum, _) = B::sums(&self.weights[run * self.n_blocks..][..self.n_blocks]);
        self.runs[run].ln_scale + (sum / self.n_particles() as f64).ln()
    }

    /// Relative variance V of the estimate Ẑ of a run, as far as its particles' descent tells it.
    ///
    /// Ẑ² V is an unbiased estimate of the variance of Ẑ where all resamplings are multinomial (Lee
    /// & Whiteley 2018, Theorem 1). 1 - V = (N/(N-1))^(n+1) (1 - Σ W²) after n resamplings of N
    /// particles, W being the share of the weights of all that descend from one founder: 0 where
    /// one founder is the ancestor of all.
    pub fn relative_variance(&self, run: usize) -> f64 {
        let n = self.n_particles();
        let weights = B::flat(&self.weights[run * self.n_blocks..][..self.n_blocks]);
        let mut shares = vec![0.0; n];
        for (&founder, weight) in self.founders[run * n..].iter().zip(weights) {
            shares[founder as usize] += weight;
        }
        let (total, n) = (shares.iter().sum::<f64>(), n as f64);
        let apart = 1.0 - shares.iter().map(|share| (share / total).powi(2)).sum::<f64>();
        let n_generations = f64::from(self.runs[run].n_resamplings + 1);
        1.0 - (apart.max(0.0).ln() + n_generations * (n / (n - 1.0)).ln()).exp()
    }

    /// Resamples the runs in which too few particles are effective.
    pub fn resample<T: Replicate<Block = B>>(&mut self, target: &mut T, rng: &mut impl rand::Rng) {
        (0..self.runs.len()).for_each(|run| self.resample_run(run, target, rng));
    }

    fn resample_run<T: Replicate<Block = B>>(
        &mut self,
        run: usize,
        target: &mut T,
        rng: &mut impl rand::Rng,
    ) {
        let n = self.n_particles();
        let blocks = &mut self.weights[run * self.n_blocks..][..self.n_blocks];
        let (sum, squares) = B::sums(blocks);
        let uneven = sum * sum / squares < self.options.threshold * n as f64;
        if !uneven && RANGE.contains(&sum) {
            return;
        }
        let mean = sum / n as f64;
        let Run { ln_scale, n_resamplings, reference } = &mut self.runs[run];
        *ln_scale += mean.ln();
        let weights = B::flat_mut(blocks);
        if !uneven {
            weights.iter_mut().for_each(|w| *w /= mean);
            return;
        }
        match *reference {
            Some(place) => {
                // A dart that hits the reference particle, uniformly, and the others a step apart.
                let before: f64 = weights[..place].iter().sum();
                let dart = (before + rng.random::<f64>() * weights[place]) / mean;
                systematic_offspring(weights, &mut self.offspring, dart.fract());
            }
            None => self.options.resampling.offspring(weights, &mut self.offspring, rng),
        }
        let moves = self.replication.moves(&self.offspring);
        target.replicate(run, blocks, moves);
        blocks.fill(B::ONE);
        *n_resamplings += 1;
        let founders = &mut self.founders[run * n..][..n];
        moves.iter().for_each(|&(to, from)| founders[to as usize] = founders[from as usize]);
        if let Some(place) = reference {
            let copies = || moves.iter().filter(|(_, from)| *from as usize == *place);
            let n_copies = copies().count();
            if n_copies > 0 {
                // Any of the children may be the one that goes on.
                let child = copies().nth(rng.random_range(0..=n_copies));
                *place = child.map_or(*place, |&(to, _)| to as usize);
            }
        }
    }
}

impl Population<Lanes> {
    /// Multiplies the weights of a run so that the largest is 1; returns ln of the factor taken
    /// out.
    pub fn rescale(&mut self, run: usize) -> f64 {
        let ln_factor = rescale(&mut self.weights[run * self.n_blocks..][..self.n_blocks]);
        self.runs[run].ln_scale += ln_factor;
        ln_factor
    }
}

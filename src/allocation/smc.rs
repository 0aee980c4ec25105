//! Sequential importance sampling of allocations, with resampling (Alg. 1 to 3).

use std::ops::Range;

use rand::seq::SliceRandom as _;

use super::chains::ln_law;
use super::kernel::{self, Rows, States, Target};
use super::problem::Problem;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::Resampling;
use crate::rng::{LANES, Lanes, Stream, UniformLanes};

/// Counts that are laid out between two looks at the observer, [`LANES`] at a time.
const LANES_BETWEEN_LOOKS: usize = 1 << 16;

/// In which order the tokens are drawn. Unbiased for any; the variance depends on it.
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
    /// In which order the tokens come.
    pub order: TokenOrder,
}

/// Cells of the tokens in the order in which they are drawn.
pub(super) fn ordered(problem: &Problem, order: &TokenOrder, rng: &mut impl rand::Rng) -> Vec<u32> {
    let mut tokens = problem.tokens();
    match order {
        TokenOrder::Random => tokens.shuffle(rng),
        TokenOrder::Sorted => {}
        TokenOrder::Given(cells) => {
            let copies =
                |&cell: &u32| std::iter::repeat_n(cell, problem.counts[cell as usize] as usize);
            tokens = cells.iter().flat_map(copies).collect();
        }
    }
    tokens
}

/// ln Ẑ of one run, and its particles. Unbiased.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub(super) fn run(
    problem: &Problem,
    filter: &Filter,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<(f64, Particles)> {
    let tokens = ordered(problem, &filter.order, rng);
    let mut run = Run::new(problem, filter, rng, observer)?;
    for (token, &cell) in tokens.iter().enumerate() {
        if observer.stopped() {
            return Err(Error::Stopped);
        }
        run.draw(cell);
        if token + 1 < tokens.len() {
            run.resample(rng);
        }
    }
    Ok((run.ln_mean(), run.particles))
}

/// A run of the filter, token by token.
pub(super) struct Run<'a, L> {
    problem: &'a Problem,
    filter: &'a Filter,
    alphas: Vec<f64>,
    particles: Particles,
    lanes: Vec<L>,
    sums: Vec<Lanes>,
    states: Vec<States>,
    weights: Vec<Lanes>,
    ln_scale: f64,
}

impl<'a, L: UniformLanes> Run<'a, L> {
    /// Particles without tokens.
    pub(super) fn new(
        problem: &'a Problem,
        filter: &'a Filter,
        rng: &mut impl Stream<Lanes = L>,
        observer: &impl Observer,
    ) -> Result<Self> {
        let n_groups = filter.n_particles.div_ceil(LANES);
        Ok(Run {
            problem,
            filter,
            alphas: problem.alphas(),
            particles: Particles::new(problem, n_groups, observer)?,
            lanes: (0..n_groups).map(|_| rng.lanes()).collect(),
            sums: vec![[0.0; LANES]; problem.plan.n_states],
            states: vec![[0; LANES]; problem.plan.cliques.len()],
            weights: vec![[1.0; LANES]; n_groups],
            ln_scale: 0.0,
        })
    }

    /// Draws the next token, which fell in this cell.
    pub(super) fn draw(&mut self, cell: u32) {
        let plan = &self.problem.plan;
        let target = Target { base: &self.alphas, unit: 1.0 };
        let bases = self.problem.bases(cell);
        self.particles.update(bases);
        let n_groups = self.lanes.len();
        for (group, uniforms) in self.lanes.iter_mut().enumerate() {
            let mut rows = Rows { counts: &mut self.particles.rows, n_groups, group };
            let weight = kernel::weigh(plan, bases, target, &rows, &mut self.sums);
            kernel::pick(plan, &self.sums, uniforms, &mut self.states);
            kernel::add(plan, bases, &mut rows, &self.states, 1.0);
            self.weights[group].iter_mut().zip(weight).for_each(|(total, x)| *total *= x);
        }
        self.ln_scale += rescale(&mut self.weights);
    }

    /// Draws the next token, which fell in one of these cells. `shares` gets the weight that each
    /// of them has on average over the weighted particles before, and `sums` is a buffer.
    pub(super) fn draw_among(&mut self, cells: Range<u32>, shares: &mut [f64], sums: &mut [Lanes]) {
        let (problem, plan) = (self.problem, &self.problem.plan);
        let target = Target { base: &self.alphas, unit: 1.0 };
        cells.clone().for_each(|cell| self.particles.update(problem.bases(cell)));
        shares.fill(0.0);
        let total: f64 = self.weights.as_flattened().iter().sum();
        let n_groups = self.lanes.len();
        for (group, uniforms) in self.lanes.iter_mut().enumerate() {
            let mut rows = Rows { counts: &mut self.particles.rows, n_groups, group };
            let mut sum = [0.0; LANES];
            for (cell, (share, sums)) in cells.clone().zip(shares.iter_mut().zip(&mut *sums)) {
                let weight =
                    kernel::weigh(plan, problem.bases(cell), target, &rows, &mut self.sums);
                for lane in 0..LANES {
                    sum[lane] += weight[lane];
                    *share += self.weights[group][lane] * weight[lane] / total;
                }
                *sums = sum;
            }
            let chosen = kernel::choose(sums, uniforms).map(|index| cells.start + index);
            let mut distinct = chosen;
            distinct.sort_unstable();
            for (index, &cell) in distinct.iter().enumerate() {
                if index > 0 && cell == distinct[index - 1] {
                    continue;
                }
                let bases = problem.bases(cell);
                if cells.len() > 1 {
                    kernel::weigh(plan, bases, target, &rows, &mut self.sums);
                }
                kernel::pick(plan, &self.sums, uniforms, &mut self.states);
                for lane in (0..LANES).filter(|&lane| chosen[lane] == cell) {
                    kernel::add_lane(plan, bases, &mut rows, &self.states, lane);
                }
            }
            self.weights[group].iter_mut().zip(sum).for_each(|(total, x)| *total *= x);
        }
        self.ln_scale += rescale(&mut self.weights);
    }

    /// ln of the mean weight: of Ẑ of the tokens so far.
    pub(super) fn ln_mean(&self) -> f64 {
        let flat = self.weights.as_flattened();
        self.ln_scale + (flat.iter().sum::<f64>() / flat.len() as f64).ln()
    }

    /// Resamples the particles if too few of them are effective.
    pub(super) fn resample(&mut self, rng: &mut impl Stream) {
        let n_particles = (self.lanes.len() * LANES) as f64;
        if n_eff(&self.weights) < self.filter.threshold * n_particles {
            self.ln_scale = self.ln_mean();
            let flat = self.weights.as_flattened();
            self.particles.resample(self.filter.resampling.ancestors(flat, rng));
            self.weights.fill([1.0; LANES]);
        }
    }
}

/// Multiplies the weights so that the largest is 1; returns ln of what was taken out.
pub(super) fn rescale(weights: &mut [Lanes]) -> f64 {
    let flat = weights.as_flattened_mut();
    let largest = flat.iter().copied().fold(0.0, f64::max);
    let factor = largest.recip();
    flat.iter_mut().for_each(|weight| *weight *= factor);
    largest.ln()
}

/// Effective number of particles (Σw)²/Σw².
pub(super) fn n_eff(weights: &[Lanes]) -> f64 {
    let (mut sum, mut squares) = ([0.0; LANES], [0.0; LANES]);
    for weights in weights {
        for lane in 0..LANES {
            sum[lane] += weights[lane];
            squares[lane] += weights[lane] * weights[lane];
        }
    }
    sum.iter().sum::<f64>().powi(2) / squares.iter().sum::<f64>()
}

/// Marginal counts of all particles. A block is rearranged by resampling only when a token reads
/// it next, so that the cost of resampling does not grow with the size of the tensor.
pub(super) struct Particles {
    /// Row after row, group after group.
    pub(super) rows: Vec<Lanes>,
    n_groups: usize,
    /// First row and number of rows of each block.
    blocks: Vec<(usize, usize)>,
    /// Block of every row.
    block_of: Vec<u32>,
    /// Resamplings that each block has seen; None while it is empty.
    seen: Vec<Option<usize>>,
    /// For each number of resamplings seen, the ancestors now; empty where no block needs them.
    ancestors: Vec<Vec<u32>>,
    /// Blocks that have seen so many resamplings.
    n_blocks: Vec<usize>,
    scratch: Vec<f64>,
}

impl Particles {
    /// # Errors
    /// [`Error::Memory`] for more particles than memory holds; [`Error::Stopped`] when the observer
    /// asks to stop.
    pub(super) fn new(
        problem: &Problem,
        n_groups: usize,
        observer: &impl Observer,
    ) -> Result<Self> {
        let n = problem.n_rows * n_groups;
        let mut rows: Vec<Lanes> = Vec::new();
        let bytes = n as f64 * size_of::<Lanes>() as f64;
        rows.try_reserve_exact(n).map_err(|_| Error::Memory { name: "particles", bytes })?;
        // The first touch of gigabytes takes a system many seconds.
        while rows.len() < n {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            rows.resize(n.min(rows.len() + LANES_BETWEEN_LOOKS), [0.0; LANES]);
        }
        let blocks = problem.blocks();
        let mut block_of = vec![0; problem.n_rows];
        for (number, &(start, n)) in (0..).zip(&blocks) {
            block_of[start..start + n].fill(number);
        }
        Ok(Particles {
            rows,
            n_groups,
            seen: vec![None; blocks.len()],
            blocks,
            block_of,
            ancestors: vec![Vec::new()],
            n_blocks: vec![0],
            scratch: vec![0.0; n_groups * LANES],
        })
    }

    /// Resamplings so far.
    fn now(&self) -> usize {
        self.ancestors.len() - 1
    }

    /// Brings the blocks of a token up to date.
    pub(super) fn update(&mut self, bases: &[u32]) {
        let now = self.now();
        for &base in bases {
            let block = self.block_of[base as usize] as usize;
            match self.seen[block] {
                Some(seen) if seen == now => continue,
                Some(seen) => {
                    self.rearrange(block, seen);
                    self.n_blocks[seen] -= 1;
                }
                None => {}
            }
            self.seen[block] = Some(now);
            self.n_blocks[now] += 1;
        }
    }

    /// Marginal counts of the particle whose allocation is most probable, and ln of its law.
    pub(super) fn best(mut self, problem: &Problem) -> (Vec<f64>, f64) {
        let starts: Vec<u32> = self.blocks.iter().map(|&(start, _)| start as u32).collect();
        self.update(&starts);
        let alphas = problem.alphas();
        let target = Target { base: &alphas, unit: 1.0 };
        let of_group = |group: usize| -> Vec<Lanes> {
            self.rows.iter().skip(group).step_by(self.n_groups).copied().collect()
        };
        let mut best = (Vec::new(), f64::NEG_INFINITY);
        for group in 0..self.n_groups {
            let rows = of_group(group);
            for (lane, ln_law) in ln_law(problem, target, &rows).into_iter().enumerate() {
                if ln_law > best.1 {
                    best = (rows.iter().map(|row| row[lane]).collect(), ln_law);
                }
            }
        }
        best
    }

    fn rearrange(&mut self, block: usize, seen: usize) {
        let (start, n) = self.blocks[block];
        for row in start..start + n {
            let row = self.rows[row * self.n_groups..][..self.n_groups].as_flattened_mut();
            self.scratch.copy_from_slice(row);
            for (count, &ancestor) in row.iter_mut().zip(&self.ancestors[seen]) {
                *count = self.scratch[ancestor as usize];
            }
        }
    }

    pub(super) fn resample(&mut self, ancestors: Vec<u32>) {
        let now = self.now();
        for seen in 0..now {
            let old = &mut self.ancestors[seen];
            if self.n_blocks[seen] == 0 {
                *old = Vec::new();
            } else {
                *old = ancestors.iter().map(|&ancestor| old[ancestor as usize]).collect();
            }
        }
        self.ancestors[now] = ancestors;
        self.ancestors.push(Vec::new());
        self.n_blocks.push(0);
    }
}

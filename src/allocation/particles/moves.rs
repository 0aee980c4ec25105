//! SIS-R with moves (resample-move: Gilks and Berzuini 2001; Chopin 2002): particles that keep the
//! hidden values of all their tokens, and are moved by collapsed Gibbs sweeps on the way.
//!
//! A sweep leaves the distribution of the allocations so far as it is. When it takes place is known
//! before: sweeps that wait for a resampling would depend on the weights, so that the particles that
//! are moved are no longer draws of that distribution, and the estimate has a bias. With m sweeps for
//! each e-fold growth of the number of tokens, T tokens take about m T draws; many take fewer, as
//! sweeps then grow rarer.

use rand::Rng;

use crate::allocation::kernel::counts::{self, CountWeights, Counts, Rows, States};
use crate::allocation::kernel::law::ln_law;
use crate::allocation::kernel::tempered::GroupedAllocation;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::{Result, array_of};
use crate::filter::{self, Population, Replicate};
use crate::math::Move;
use crate::rng::{LANES, Lanes, Stream, UniformLanes};

/// States of tokens that are weighed between two polls of the observer.
const STATES_BETWEEN_POLLS: usize = 1 << 20;

/// Tokens up to which sweeps are equally many for each e-fold growth. Each growth adds about as much
/// variance to ln Ẑ, over the number of its sweeps, and a sweep of n tokens costs n: the least
/// variance at equal cost has sweeps in proportion to 1/√n. Few tokens keep all of theirs.
const EVEN_TOKENS: usize = 300;

/// Particles with their allocations, in groups of [`LANES`].
pub(super) struct AllocatedParticles<'a, L> {
    problem: &'a Problem,
    /// Cells of the tokens, in the order in which they are drawn.
    tokens: Vec<u32>,
    n_drawn: usize,
    n_sweeps: usize,
    /// Tokens after which particles are swept next.
    next_sweep: usize,
    groups: Vec<ParticleGroup<L>>,
    alphas: Vec<f64>,
    sums: Vec<Lanes>,
    observer: &'a dyn Observer,
}

/// Particles in lockstep.
struct ParticleGroup<L> {
    /// Marginal counts, row after row.
    rows: Vec<Counts>,
    /// States of all cliques, token after token.
    states: Vec<States>,
    uniforms: L,
}

impl<'a, L: UniformLanes> AllocatedParticles<'a, L> {
    /// So many groups of particles without tokens, which are to draw those of these cells, and sweeps
    /// for each e-fold growth.
    pub(super) fn new(
        problem: &'a Problem,
        tokens: Vec<u32>,
        (n_groups, n_sweeps): (usize, usize),
        rng: &mut impl Stream<Lanes = L>,
        observer: &'a dyn Observer,
    ) -> Result<Self> {
        let n_states = tokens.len() * problem.n_cliques();
        let group = |_| {
            Ok(ParticleGroup {
                rows: array_of("particles", problem.n_rows, [0; LANES])?,
                states: array_of("particles", n_states, [0; LANES])?,
                uniforms: rng.lanes(),
            })
        };
        Ok(AllocatedParticles {
            problem,
            tokens,
            n_drawn: 0,
            n_sweeps,
            next_sweep: 1,
            groups: (0..n_groups).map(group).collect::<Result<_>>()?,
            alphas: problem.alphas(),
            sums: vec![[0.0; LANES]; problem.n_states()],
            observer,
        })
    }

    /// One Gibbs sweep of all particles over the tokens that they have. It ends early where the
    /// observer asks to stop: the engine then hands nothing on.
    fn sweep(&mut self) {
        let target = CountWeights { base: &self.alphas, unit: 1.0 };
        let part = STATES_BETWEEN_POLLS.div_ceil(self.problem.n_states().max(1));
        for group in &mut self.groups {
            for start in (0..self.n_drawn).step_by(part) {
                if self.observer.stopped() {
                    return;
                }
                counts::sweep(
                    self.problem,
                    start..(start + part).min(self.n_drawn),
                    &self.tokens,
                    target,
                    &mut group.rows,
                    &mut group.states,
                    &mut self.sums,
                    &mut group.uniforms,
                );
            }
        }
    }
}

impl<L: UniformLanes> AllocatedParticles<'_, L> {
    /// Allocations of these particles after as many further sweeps as there are for an e-fold growth,
    /// in which copies of one particle part. All others are dropped.
    pub(super) fn draws(
        &mut self,
        particles: &[usize],
        rng: &mut impl Stream<Lanes = L>,
    ) -> Result<Vec<GroupedAllocation>> {
        let n_states = self.n_drawn * self.problem.n_cliques();
        let particle_groups = std::mem::take(&mut self.groups);
        let mut found = Vec::with_capacity(particles.len());
        for chosen in particles.chunks(LANES) {
            let mut group = ParticleGroup {
                rows: array_of("particles", self.problem.n_rows, [0; LANES])?,
                states: array_of("particles", n_states, [0; LANES])?,
                uniforms: rng.lanes(),
            };
            for (lane, particle) in chosen.iter().cycle().take(LANES).enumerate() {
                let from = &particle_groups[particle / LANES];
                copy_lane(&mut group, lane, from, particle % LANES, n_states);
            }
            self.groups = vec![group];
            for _ in 0..self.n_sweeps {
                self.sweep();
                self.observer.check_stop()?;
            }
            let target = CountWeights { base: &self.alphas, unit: 1.0 };
            let ln_laws = ln_law(self.problem, target, &self.groups[0].rows);
            let lanes = (0..chosen.len()).zip(ln_laws);
            found.extend(lanes.map(|(lane, ln_law)| self.allocation(lane, ln_law)));
        }
        Ok(found)
    }

    /// ln Ẑ and relative variance of a run under the prior of another problem that states of tokens
    /// mean the same to: a last step weighs every particle by the ratio of the two distributions of its
    /// allocation. Unbiased as the run itself is.
    pub(super) fn reweighted(
        &self,
        other: &Problem,
        population: &Population<Lanes>,
    ) -> Result<(f64, f64)> {
        let alphas = other.alphas();
        let [own, its] =
            [&self.alphas, &alphas].map(|base| CountWeights { base: base.as_slice(), unit: 1.0 });
        let has_rows = self.problem.has_rows_of(other);
        let mut counted: Vec<Counts> = array_of("particles", other.n_rows, [0; LANES])?;
        let mut ln_ratios = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            self.observer.check_stop()?;
            if !has_rows {
                counted.fill([0; LANES]);
                counts::add_tokens(other, &self.tokens, &group.states, its, &mut counted);
            }
            let rows = if has_rows { &group.rows } else { &counted };
            let (mut ln_ratio, ln_own) =
                (ln_law(other, its, rows), ln_law(self.problem, own, &group.rows));
            ln_ratio.iter_mut().zip(ln_own).for_each(|(ratio, ln_own)| *ratio -= ln_own);
            ln_ratios.push(ln_ratio);
        }
        let top = ln_ratios.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut weighted = population.clone();
        for (weights, ln_ratios) in weighted.weights_mut().iter_mut().zip(&ln_ratios) {
            weights.iter_mut().zip(ln_ratios).for_each(|(weight, ln)| *weight *= (ln - top).exp());
        }
        weighted.scale(top);
        Ok((weighted.ln_mean(0), weighted.relative_variance(0)))
    }

    /// The allocation in a lane of the first group.
    fn allocation(&self, lane: usize, ln_law: f64) -> GroupedAllocation {
        let n_cliques = self.problem.n_cliques();
        let states = self.groups[0].states.chunks_exact(n_cliques);
        let of_token = |(&cell, states): (&u32, &[States])| {
            (cell, states.iter().map(|states| states[lane]).collect::<Vec<u32>>())
        };
        let mut tokens: Vec<_> = self.tokens.iter().zip(states).map(of_token).collect();
        tokens.sort_unstable();
        let mut found = GroupedAllocation { ln_law, groups: vec![], states: vec![] };
        for alike in tokens.chunk_by(|one, other| one == other) {
            found.groups.push((alike[0].0, alike.len() as u32));
            found.states.extend(&alike[0].1);
        }
        found
    }
}

impl<L: UniformLanes> Replicate for AllocatedParticles<'_, L> {
    type Block = Lanes;

    fn replicate(&mut self, _: usize, _: &[Lanes], moves: &[Move]) {
        let n_states = self.n_drawn * self.problem.n_cliques();
        for &(to, from) in moves {
            let [to, from] =
                [to, from].map(|particle| (particle as usize / LANES, particle as usize % LANES));
            copy(&mut self.groups, to, from, n_states);
        }
    }
}

/// Tokens between two sweeps.
fn n_between(n_drawn: usize, n_sweeps: usize) -> usize {
    let growth = (n_drawn as f64 / EVEN_TOKENS as f64).max(1.0).sqrt();
    ((n_drawn / n_sweeps) as f64 * growth).max(1.0) as usize
}

/// Gives the particle in a lane the counts of one of another group, and the states of its first tokens.
fn copy_lane<L>(
    new: &mut ParticleGroup<L>,
    to: usize,
    old: &ParticleGroup<L>,
    from: usize,
    n_states: usize,
) {
    let rows = new.rows.iter_mut().zip(&old.rows);
    rows.for_each(|(new, old)| new[to] = old[from]);
    let states = new.states[..n_states].iter_mut().zip(&old.states);
    states.for_each(|(new, old)| new[to] = old[from]);
}

/// Gives one particle the counts of another, and the states of its first tokens.
fn copy<L>(
    groups: &mut [ParticleGroup<L>],
    to: (usize, usize),
    from: (usize, usize),
    n_states: usize,
) {
    if let Ok([new, old]) = groups.get_disjoint_mut([to.0, from.0]) {
        copy_lane(new, to.1, old, from.1, n_states);
    } else {
        let group = &mut groups[to.0];
        group.rows.iter_mut().for_each(|counts| counts[to.1] = counts[from.1]);
        group.states[..n_states].iter_mut().for_each(|states| states[to.1] = states[from.1]);
    }
}

impl<L: UniformLanes> filter::FilterTarget for AllocatedParticles<'_, L> {
    fn extend(&mut self, token: usize, population: &mut Population<Lanes>, _: &mut impl Rng) {
        let (cell, n_cliques) = (self.tokens[token], self.problem.n_cliques());
        let (plan, bases) = (self.problem.plan(cell), self.problem.bases(cell));
        let target = CountWeights { base: &self.alphas, unit: 1.0 };
        for (group, weights) in self.groups.iter_mut().zip(population.weights_mut()) {
            let states = &mut group.states[token * n_cliques..][..n_cliques];
            let mut token = Rows { counts: &mut group.rows, bases, target };
            let weight = counts::weigh(plan, &token, &mut self.sums);
            counts::pick(plan, &self.sums, &mut group.uniforms, states);
            counts::add(plan, &mut token, states, 1);
            weights.iter_mut().zip(weight).for_each(|(total, x)| *total *= x);
        }
        self.n_drawn = token + 1;
        population.rescale(0);
        if self.n_drawn == self.next_sweep {
            self.next_sweep += n_between(self.n_drawn, self.n_sweeps);
            // After the last token no weight is left that a sweep could change.
            if self.n_drawn < self.tokens.len() {
                self.sweep();
            }
        }
    }
}

//! Particles that draw the hidden values of a token clique after clique.
//!
//! A token of a tied chain adds to its own tables on its way: all its hidden nodes at once have too
//! many joint states. Each of the steps draws the nodes of a clique given those above it, from the
//! urn with all that the token has added so far, times the sums over the cliques below that the
//! counts before the token gave. The sums cancel along the token: the weights are those of the urn,
//! unbiased, and the particles of a step look ahead at what the token has still to show.

use super::smc::{Filter, ordered};
use crate::allocation::model::plan::{Clique, EliminationPlan};
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::{Result, array_of, room_for};
use crate::filter::{self, FilterTarget, Options, Population, Replicate};
use crate::math::{Move, pick};
use crate::rng::{LANES, Stream};

/// Particles of a replicate: as none are moved, fewer tell the error of twenty short chains wrongly.
pub(crate) const PARTICLES: usize = 4_000;

/// ln Ẑ of one run, and the relative variance of Ẑ that it tells. Unbiased.
pub(crate) fn ln_sum(
    problem: &Problem,
    filter: &Filter,
    rng: &mut impl Stream,
    observer: &dyn Observer,
) -> Result<(f64, f64)> {
    let tokens = ordered(problem, &filter.order, rng, observer)?;
    let n_cliques = |&cell: &u32| problem.plan(cell).cliques.len();
    let mut steps = room_for("steps of tokens", tokens.iter().map(n_cliques).sum())?;
    for &cell in &tokens {
        steps.extend((0..n_cliques(&cell) as u32).rev().map(|clique| (cell, clique)));
    }
    let Filter { threshold, resampling, .. } = *filter;
    let n_particles = filter.n_groups() * LANES;
    let mut population = Population::new(1, n_particles, Options { threshold, resampling });
    let mut target = StepFilter::new(problem, &steps, n_particles)?;
    filter::run(&mut target, &mut population, steps.len(), rng, observer)?;
    Ok((population.ln_mean(0), population.relative_variance(0)))
}

/// Numbers of 32 bits that a particle holds beside its marginal counts.
pub(crate) fn n_held(problem: &Problem) -> u64 {
    (2 * n_separators(problem) + problem.n_cliques()) as u64
}

/// States of all separators of a token, at most.
fn n_separators(problem: &Problem) -> usize {
    problem.plans().map(|plan| plan.n_separators).max().unwrap_or(0)
}

/// Particles on their way through the steps of all tokens.
struct StepFilter<'a> {
    problem: &'a Problem,
    /// Cell and clique of every step.
    steps: &'a [(u32, u32)],
    alphas: Vec<f64>,
    /// Marginal counts, particle after particle.
    counts: Vec<i32>,
    /// Sums over the cliques below every separator's states, by the counts before the token.
    messages: Vec<f64>,
    /// State of every clique of the token.
    states: Vec<u32>,
    sums: Vec<f64>,
}

impl<'a> StepFilter<'a> {
    fn new(problem: &'a Problem, steps: &'a [(u32, u32)], n_particles: usize) -> Result<Self> {
        Ok(StepFilter {
            problem,
            steps,
            alphas: problem.alphas(),
            counts: array_of("marginal counts of particles", n_particles * problem.n_rows, 0)?,
            messages: array_of("sums of steps", n_particles * n_separators(problem), 0.0)?,
            states: array_of("states of steps", n_particles * problem.n_cliques(), 0)?,
            sums: Vec::new(),
        })
    }

    /// Weight of a state of a clique by the urn of a particle, and the sums below it.
    fn weight(
        &self,
        particle: usize,
        plan: &EliminationPlan,
        clique: &Clique,
        bases: &[u32],
        state: usize,
    ) -> f64 {
        let counts = &self.counts[particle * self.problem.n_rows..][..self.problem.n_rows];
        let messages = &self.messages[particle * self.n_messages()..];
        let size = |factor: usize| {
            let row = clique.row(factor, state, bases);
            let hits = clique.own_hits(factor, state, bases);
            let size = self.alphas[row] + f64::from(counts[row]) + f64::from(hits);
            size.powi(clique.factors[factor].exponent)
        };
        let urn: f64 = (0..clique.factors.len()).map(size).product();
        let below = clique.children.iter().map(|(child, separators)| {
            messages[plan.cliques[*child].first_separator + separators[state] as usize]
        });
        urn * below.product::<f64>()
    }

    fn n_messages(&self) -> usize {
        self.messages.len() / self.n_particles()
    }

    fn n_particles(&self) -> usize {
        self.states.len() / self.problem.n_cliques()
    }

    /// Sums over the cliques of a token from below, each separator's largest being 1.
    fn look_ahead(&mut self, particle: usize, cell: u32) {
        let (plan, bases) = (self.problem.plan(cell), self.problem.bases(cell));
        let first = particle * self.n_messages();
        for clique in &plan.cliques {
            let start = first + clique.first_separator;
            let mut largest = 0.0_f64;
            for separator in 0..clique.n_separators() {
                let states = separator * clique.n_inner..(separator + 1) * clique.n_inner;
                let weight = |state| self.weight(particle, plan, clique, bases, state);
                let sum = states.map(weight).sum();
                self.messages[start + separator] = sum;
                largest = largest.max(sum);
            }
            let sums = &mut self.messages[start..][..clique.n_separators()];
            sums.iter_mut().for_each(|sum| *sum /= largest);
        }
    }

    /// Draws the state of a clique; returns what the particle's weight is multiplied by.
    fn step(&mut self, particle: usize, (cell, index): (u32, usize), dart: f64) -> f64 {
        let (plan, bases) = (self.problem.plan(cell), self.problem.bases(cell));
        let (clique, n_cliques) = (&plan.cliques[index], self.problem.n_cliques());
        let states = &self.states[particle * n_cliques..];
        let above = plan.above(index);
        let separator = above.map_or(0, |(above, separators)| separators[states[above] as usize]);
        let first = separator as usize * clique.n_inner;
        self.sums.clear();
        for state in first..first + clique.n_inner {
            let weight = self.weight(particle, plan, clique, bases, state);
            self.sums.push(weight);
        }
        let total: f64 = self.sums.iter().sum();
        let state = first + pick(self.sums.iter().copied(), dart * total).unwrap_or(0);
        self.states[particle * n_cliques + index] = state as u32;
        let counts = &mut self.counts[particle * self.problem.n_rows..][..self.problem.n_rows];
        (0..clique.factors.len()).for_each(|factor| counts[clique.row(factor, state, bases)] += 1);
        let message = self.messages
            [particle * self.n_messages() + clique.first_separator + separator as usize];
        if above.is_some() { total / message } else { total }
    }
}

impl Replicate for StepFilter<'_> {
    type Block = f64;

    fn replicate(&mut self, _: usize, _: &[f64], moves: &[Move]) {
        let (n_rows, n_messages) = (self.problem.n_rows, self.n_messages());
        let n_cliques = self.problem.n_cliques();
        for &(to, from) in moves {
            let (to, from) = (to as usize, from as usize);
            self.counts.copy_within(from * n_rows..(from + 1) * n_rows, to * n_rows);
            self.messages.copy_within(from * n_messages..(from + 1) * n_messages, to * n_messages);
            self.states.copy_within(from * n_cliques..(from + 1) * n_cliques, to * n_cliques);
        }
    }
}

impl FilterTarget for StepFilter<'_> {
    fn extend(&mut self, step: usize, population: &mut Population<f64>, rng: &mut impl rand::Rng) {
        use rand::RngExt as _;
        let (cell, index) = (self.steps[step].0, self.steps[step].1 as usize);
        let is_first = index + 1 == self.problem.plan(cell).cliques.len();
        for particle in 0..self.n_particles() {
            if is_first {
                self.look_ahead(particle, cell);
            }
            let dart = rng.random::<f64>();
            population.weights_mut()[particle] *= self.step(particle, (cell, index), dart);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::exact::enumeration;
    use crate::allocation::model::network::{Network, Prior};
    use crate::allocation::particles::smc::TokenOrder;
    use crate::counts::CountTensor;
    use crate::math::{Resampling, mean_and_error};
    use crate::rng::{Key, Purpose};

    /// Visible nodes, their parents and those of hidden nodes, ties, and cells with tokens.
    type Case<'a> = (usize, &'a [&'a [usize]], &'a [Vec<usize>], &'a [i64], &'a [i64]);

    /// A chain of four steps, and a hidden node above two that share a table, which tokens of unequal
    /// numbers of axes show.
    #[test]
    fn particles_that_draw_clique_after_clique_are_unbiased() {
        let ties = [vec![5, 6, 7], vec![0, 1, 2, 3]];
        let chain: &[&[usize]] = &[&[4], &[5], &[6], &[7], &[], &[4], &[5], &[6]];
        let tree: &[&[usize]] = &[&[3], &[4], &[], &[2], &[2]];
        let cases: [Case<'_>; 3] = [
            (4, chain, &ties, &[0, 0, 1, 1, 0, 2, 2, 1, 2, 2, 0, 0], &[2, 1, 1]),
            (4, chain, &ties, &[0, 0, 1, -1, 0, 2, -1, -1, 2, 2, 0, 0], &[2, 1, 1]),
            (2, tree, &[vec![0, 1], vec![3, 4]], &[0, 1, 1, 1, 2, 0], &[3, 1, 2]),
        ];
        for (n_axes, parents, ties, cells, counts) in cases {
            let prior = Prior { concentration: 1.0, tables: None };
            let sizes = (0..parents.len()).map(|node| if node < n_axes { 3 } else { 2 }).collect();
            let parents = parents.iter().map(|parents| parents.to_vec()).collect();
            let network = Network::new(sizes, parents, (0..n_axes).collect(), ties, prior).unwrap();
            let data = CountTensor::new(vec![3; n_axes], cells, counts).unwrap();
            let joint = Problem::new(&network, &data, None).unwrap();
            let problem = Problem::factorised(&network, &data, None).unwrap();
            assert!(problem.n_cliques() > joint.n_cliques());
            let filter = Filter {
                n_particles: 4 * LANES,
                threshold: 0.7,
                resampling: Resampling::Systematic,
                order: TokenOrder::Random,
                n_sweeps: 0,
            };
            let ln_exact = enumeration::ln_sum(&joint, 1e8, &()).unwrap();
            let mut rng = Key::new(0, Purpose::Score).rng();
            let mut ratio =
                || (ln_sum(&problem, &filter, &mut rng, &()).unwrap().0 - ln_exact).exp();
            let ratios: Vec<f64> = (0..1_000).map(|_| ratio()).collect();
            let (mean, error) = mean_and_error(&ratios);
            assert!((mean - 1.0).abs() < 4.0 * error && error < 0.05, "{mean} {error}");
        }
    }
}

//! Missing cells by tempering, and by letting go of them bit by bit.
//!
//! Given the tables θ and the allocation S of the T observed tokens, a cell that was observed for a
//! share 1 - t of its intensity, and empty, leaves
//!
//! p_t(S, θ) ∝ p(θ) Π θ^S (b + 1 - t ρ)^-(a + T),
//!
//! where ρ is the probability of all missing cells under θ, and λ is integrated out. At t = 0 they
//! are empty cells: tempering finds their evidence, and draws from it. At t = 1 they are missing. On
//! the way, particles are weighted and resampled (Del Moral, Doucet and Jasra 2006):
//!
//! Pr(X_observed) = Pr(X, empty) E Π ((b + 1 - t ρ) / (b + 1 - t' ρ))^(a + T).
//!
//! A sweep draws λ ~ Gamma(a + T, b + 1 - t ρ), of every missing cell Poisson(λ t p) tokens, the
//! tables given all tokens, and the allocation given the tables.

use rand::RngExt as _;
use rand_distr::{Distribution as _, Poisson};
use rayon::prelude::*;

use super::completion::Completion;
use super::incomplete::Incomplete;
use super::totals::{End, Sums};
use crate::allocation::ascent::decomposition::Tables;
use crate::allocation::ascent::sum_product::SumProduct;
use crate::allocation::evidence::Settings;
use crate::allocation::memory::Load;
use crate::allocation::model::problem::Problem;
use crate::allocation::posterior::{Draw, posterior};
use crate::control::Observer;
use crate::error::{Error, Result, array_of};
use crate::math::{LogSum, ln_factorial, ln_gamma_variate, ln_rising, systematic_offspring};
use crate::rng::{Key, Purpose, Rng};
use crate::temper::Outcome;

/// Particles of a replicate.
const N_PARTICLES: usize = 64;

/// Effective share of the particles that a step keeps.
const KEPT: f64 = 0.9;

/// Sweeps at the end, whose tables are averaged over.
const N_SWEEPS: usize = 32;

/// Halvings in the search for a step.
const BISECTIONS: usize = 40;

/// Joint states of all hidden nodes, at most.
const JOINT_STATES: usize = 1 << 12;

/// Share of the evidence that totals beyond the last may have.
const LEFT: f64 = 1e-6;

/// The most totals that are listed.
const MOST_TOTALS: usize = 1_000_000;

impl Incomplete {
    /// Evidence by total and expected counts.
    ///
    /// # Errors
    /// Those of [`posterior`]; [`Error::Graph`] for hidden nodes with too many joint states.
    pub fn temper(
        &self,
        settings: &Settings,
        max_total: Option<u64>,
        seed: u64,
        observer: &impl Observer,
    ) -> Result<Completion> {
        let Incomplete { network, data, .. } = self;
        let tables = joined(self.tables()?)?;
        let n_replicates = settings.n_replicates();
        let n_shares = N_PARTICLES * (2 * tables.problem.n_rows() + tables.problem.missing.len());
        Load { n_shares, ..Load::default() }.check(n_replicates)?;
        let problem = Problem::new(network, data, self.order.as_deref())?;
        let n_draws = N_PARTICLES * n_replicates;
        let found = posterior(&problem, settings, n_draws, seed, observer)?;
        let empty = found.tempering.as_ref().map(Outcome::estimate);
        let ln_empty = problem.ln_total(self.rate)
            + empty.map_or(problem.ln_visible + problem.ln_arrangements, |found| found.ln_value);
        let release = Release {
            tables: &tables,
            shape: self.concentration + problem.n_tokens() as f64,
            rate: self.rate,
            end: self.end(max_total, LEFT),
        };
        let key = Key::new(seed, Purpose::Parameters);
        let run = |replicate: usize| {
            let is_own = |draw: &&Draw| found.tempering.is_none() || draw.replicate == replicate;
            let draws = found.draws.iter().filter(is_own);
            let counts = |draw: &Draw| draw.counts(network, data, &found.hidden);
            let starts = draws.map(|draw| rows_of(&tables.problem, &counts(draw))).collect();
            release.run(starts, &mut key.unit(replicate as u64).rng(), observer)
        };
        let runs: Vec<Run> = (0..n_replicates).into_par_iter().map(run).collect::<Result<_>>()?;
        let n_totals = release.n_totals(&runs, observer)?;
        let sums = |run| release.sums(run, ln_empty, n_totals, observer);
        let sums: Vec<Sums> = runs.par_iter().map(sums).collect::<Result<_>>()?;
        let mut completion = self.completion(&sums, n_draws);
        // The evidence of the empty cells is common to all replicates.
        let common = empty.map_or(0.0, |found| found.std_error);
        for found in completion.ln_joint.iter_mut().chain([&mut completion.evidence]) {
            found.std_error = found.std_error.hypot(common);
        }
        completion.tempering = found.tempering;
        Ok(completion)
    }
}

/// The tables with all hidden nodes in one clique: their tokens are drawn together.
fn joined(mut tables: Tables) -> Result<Tables> {
    let cliques = &tables.problem.plan.cliques;
    if cliques.len() > 1 {
        let node = cliques.iter().flat_map(|clique| &clique.nodes).next().copied().unwrap_or(0);
        let problem = "has too many joint states with the other hidden nodes to be drawn with them";
        let plan = tables.problem.plan.joined(JOINT_STATES);
        tables.problem.plan = plan.ok_or(Error::Graph { node, problem })?;
    }
    Ok(tables)
}

/// Rows of a problem of all families, from their whole tables.
fn rows_of(problem: &Problem, whole: &[Vec<f64>]) -> Vec<f64> {
    let tables = problem.margins.iter().zip(whole);
    tables.flat_map(|(laid, whole)| laid.cells().into_iter().map(|cell| whole[cell])).collect()
}

/// Tables and the allocation of the observed tokens.
#[derive(Clone)]
struct Particle {
    /// Observed tokens, row after row.
    counts: Vec<f64>,
    /// Conditional probabilities, row after row.
    weights: Vec<f64>,
    /// Probability of every missing cell.
    cells: Vec<f64>,
}

impl Particle {
    fn share(&self) -> f64 {
        self.cells.iter().sum::<f64>().min(1.0)
    }
}

/// Estimates of one replicate.
struct Run {
    /// ln of the evidence over that of empty cells.
    ln_ratio: f64,
    /// Expected counts of the missing cells.
    expected: Vec<f64>,
    /// Probabilities of all missing cells under the tables.
    shares: Vec<f64>,
}

/// The way from empty cells to missing ones.
struct Release<'a> {
    tables: &'a Tables,
    /// a + T.
    shape: f64,
    /// b.
    rate: f64,
    end: End,
}

impl Release<'_> {
    fn run(&self, starts: Vec<Vec<f64>>, rng: &mut Rng, observer: &impl Observer) -> Result<Run> {
        let mut sum_product = SumProduct::new(&self.tables.problem);
        let n_missing = self.tables.problem.missing.len();
        let begin = |counts: Vec<f64>| {
            let weights = vec![0.0; counts.len()];
            Particle { counts, weights, cells: vec![0.0; n_missing] }
        };
        let mut particles: Vec<Particle> = starts.into_iter().map(begin).collect();
        let (mut t, mut ln_ratio) = (0.0, 0.0);
        let mut total = vec![0.0; self.tables.problem.n_rows()];
        for particle in &mut particles {
            self.sweep(particle, t, &mut total, &mut sum_product, rng);
        }
        while t < 1.0 {
            observer.check_stop()?;
            let next = self.next(t, &particles);
            let ln_weights = self.ln_weights(t, next, &particles);
            let sum: LogSum = ln_weights.iter().copied().collect();
            ln_ratio += sum.ln_mean();
            particles = resampled(&particles, &ln_weights, rng);
            t = next;
            for particle in &mut particles {
                self.sweep(particle, t, &mut total, &mut sum_product, rng);
            }
        }
        let mut expected = vec![0.0; n_missing];
        let mut shares = Vec::with_capacity(N_SWEEPS * particles.len());
        for _ in 0..N_SWEEPS {
            observer.check_stop()?;
            for particle in &mut particles {
                self.sweep(particle, 1.0, &mut total, &mut sum_product, rng);
                let share = particle.share();
                let scale = self.mean(share) / share.max(f64::MIN_POSITIVE);
                let cells = expected.iter_mut().zip(&particle.cells);
                cells.for_each(|(expected, cell)| *expected += scale * cell);
                shares.push(share);
            }
        }
        let n = shares.len() as f64;
        expected.iter_mut().for_each(|expected| *expected /= n);
        Ok(Run { ln_ratio, expected, shares })
    }

    /// One Gibbs step at t.
    fn sweep(
        &self,
        particle: &mut Particle,
        t: f64,
        total: &mut [f64],
        sum_product: &mut SumProduct<'_>,
        rng: &mut Rng,
    ) {
        let problem = &self.tables.problem;
        total.copy_from_slice(&particle.counts);
        let left = self.rate + 1.0 - t * particle.share();
        let intensity = t * ln_gamma_variate(self.shape, rng).exp() / left;
        for (cell, &probability) in problem.missing.clone().zip(&particle.cells) {
            let tokens = Poisson::new(intensity * probability).map_or(0.0, |law| law.sample(rng));
            if tokens > 0.0 {
                sum_product.collect(cell, &particle.weights);
                sum_product.draw(cell, tokens as u64, total, rng);
            }
        }
        self.tables.draw(total, &mut particle.weights, rng);
        particle.counts.fill(0.0);
        for cell in 0..problem.missing.start {
            sum_product.collect(cell, &particle.weights);
            sum_product.draw(cell, problem.counts[cell as usize], &mut particle.counts, rng);
        }
        for (cell, probability) in problem.missing.clone().zip(&mut particle.cells) {
            *probability = sum_product.collect(cell, &particle.weights);
        }
    }

    fn ln_weights(&self, t: f64, next: f64, particles: &[Particle]) -> Vec<f64> {
        let ln_left = |t: f64, share: f64| (self.rate + 1.0 - t * share).ln();
        let ln_weight = |particle: &Particle| {
            let share = particle.share();
            self.shape * (ln_left(t, share) - ln_left(next, share))
        };
        particles.iter().map(ln_weight).collect()
    }

    /// The largest t that leaves enough of the particles effective.
    fn next(&self, t: f64, particles: &[Particle]) -> f64 {
        let keeps = |next: f64| {
            let sum: LogSum = self.ln_weights(t, next, particles).into_iter().collect();
            sum.n_eff() >= KEPT * particles.len() as f64
        };
        if keeps(1.0) {
            return 1.0;
        }
        let (mut low, mut high) = (t, 1.0);
        for _ in 0..BISECTIONS {
            let middle = low + (high - low) / 2.0;
            if keeps(middle) { low = middle } else { high = middle }
        }
        high
    }

    /// Calls with m < n and Pr(m missing tokens), where that is a normal number, given the share of
    /// the missing cells: a negative binomial law, from its mean downwards and upwards.
    fn for_totals(&self, share: f64, n: usize, mut call: impl FnMut(usize, f64)) {
        let odds = share / (self.rate + 1.0);
        let mean = self.shape * odds / (1.0 - odds);
        let Some(last) = n.checked_sub(1) else { return };
        let centre = (mean as usize).min(last);
        let ln_ways = ln_rising(self.shape, centre as u64) - ln_factorial(centre as u64);
        let ln_odds = if centre == 0 { 0.0 } else { centre as f64 * odds.ln() };
        let at_centre = (ln_ways + ln_odds + self.shape * (-odds).ln_1p()).exp();
        let growth = |m: usize| odds * (self.shape + m as f64) / (m + 1) as f64;
        let (mut p, mut m) = (at_centre, centre);
        while p.is_normal() && m < n {
            call(m, p);
            p *= growth(m);
            m += 1;
        }
        (p, m) = (at_centre, centre);
        while m > 0 {
            m -= 1;
            p /= growth(m);
            if !p.is_normal() {
                break;
            }
            call(m, p);
        }
    }

    /// Expected number of missing tokens, among those that are listed if there is a last total.
    fn mean(&self, share: f64) -> f64 {
        match self.end {
            End::Drawn(most) => {
                let mut mean = 0.0;
                let n = (most as usize).saturating_add(1);
                self.for_totals(share, n, |m, p| mean += m as f64 * p);
                mean
            }
            End::Remainder { .. } => self.shape * share / (self.rate + 1.0 - share),
        }
    }

    /// Pr(m missing tokens) for m from 0 on, the mean over shares of the missing cells.
    fn law(&self, shares: &[f64], n: usize, observer: &impl Observer) -> Result<Vec<f64>> {
        let mut law = array_of("totals", n, 0.0)?;
        for &share in shares {
            observer.check_stop()?;
            self.for_totals(share, n, |m, p| law[m] += p / shares.len() as f64);
        }
        Ok(law)
    }

    /// Totals to list, until those beyond have next to none of the evidence.
    fn n_totals(&self, runs: &[Run], observer: &impl Observer) -> Result<usize> {
        if let End::Drawn(n) = self.end {
            return Ok((n as usize).saturating_add(1).min(MOST_TOTALS));
        }
        let mean = |run: &Run| run.expected.iter().sum::<f64>();
        let most = runs.iter().map(mean).fold(0.0, f64::max);
        let mut n = (2.0 * most) as usize + 32;
        while n < MOST_TOTALS {
            let listed = |run: &Run| Ok(self.law(&run.shares, n, observer)?.iter().sum::<f64>());
            let listed: Vec<f64> = runs.par_iter().map(listed).collect::<Result<_>>()?;
            if listed.into_iter().all(|listed| 1.0 - listed < LEFT) {
                break;
            }
            n *= 2;
        }
        Ok(n.min(MOST_TOTALS))
    }

    fn sums(
        &self,
        run: &Run,
        ln_empty: f64,
        n_totals: usize,
        observer: &impl Observer,
    ) -> Result<Sums> {
        let ln_evidence = ln_empty + run.ln_ratio;
        let law = self.law(&run.shares, n_totals, observer)?;
        let left = (1.0 - law.iter().sum::<f64>()).max(f64::EPSILON);
        Ok(Sums {
            ln_joint: law.iter().map(|p| ln_evidence + p.ln()).collect(),
            counts: run.expected.clone(),
            ln_unit: ln_evidence,
            ln_remainder: ln_evidence + left.ln(),
        })
    }
}

/// Particles drawn by their weights.
fn resampled(particles: &[Particle], ln_weights: &[f64], rng: &mut Rng) -> Vec<Particle> {
    let top = ln_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = ln_weights.iter().map(|ln_weight| (ln_weight - top).exp()).collect();
    let mut offspring = vec![0; particles.len()];
    systematic_offspring(&weights, &mut offspring, rng.random());
    let children = particles.iter().zip(&offspring);
    children.flat_map(|(particle, &n)| std::iter::repeat_n(particle.clone(), n as usize)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::evidence::{Method, Sampler};
    use crate::allocation::model::network::{Network, Prior};
    use crate::counts::CountTensor;

    /// Sizes, parents and ties of the nodes.
    type Graph<'a> = (&'a [usize], &'a [&'a [usize]], &'a [Vec<usize>]);

    /// Tables with missing cells under a mixture, a core of two hidden nodes, two hidden nodes that
    /// are summed out apart, tied axes, and nothing hidden.
    fn cases() -> Vec<(Network, CountTensor, Vec<u32>)> {
        let graphs: [Graph<'_>; 5] = [
            (&[2, 3, 2], &[&[2], &[2], &[]], &[]),
            (&[2, 3, 2, 2], &[&[2], &[3], &[], &[2]], &[]),
            (&[2, 3, 2, 2], &[&[], &[3], &[0], &[2]], &[]),
            (&[3, 3, 2], &[&[2], &[2], &[]], &[vec![0, 1]]),
            (&[2, 3], &[&[], &[0]], &[]),
        ];
        let case = |(sizes, parents, ties): Graph<'_>| {
            let parents = parents.iter().map(|of| of.to_vec()).collect();
            let prior = Prior { concentration: 2.0, tables: None };
            let network = Network::new(sizes.to_vec(), parents, vec![0, 1], ties, prior).unwrap();
            let data = CountTensor::new(vec![2, 3], &[0, 0, 0, 1, 1, 0], &[3, 1, 2]).unwrap();
            (network, data, vec![1, 1, 1, 2])
        };
        graphs.into_iter().map(case).collect()
    }

    #[test]
    fn totals_and_expected_counts_are_those_of_all_allocations() {
        let mut settings = Settings::new(Method::Sample(Sampler::Tempered));
        (settings.n_replicates, settings.target_std_error) = (Some(16), Some(0.02));
        for (index, (network, data, missing)) in cases().into_iter().enumerate() {
            let most = Some(14);
            let incomplete = Incomplete::new(&network, &data, &missing, 0.5, None).unwrap();
            let exact = incomplete.enumerate(most, 1e9, &()).unwrap();
            let found = incomplete.temper(&settings, most, 1, &()).unwrap();
            assert_eq!(found.ln_joint.len(), exact.ln_joint.len());
            for (total, (found, exact)) in found.ln_joint.iter().zip(&exact.ln_joint).enumerate() {
                let (gap, error) = (found.ln_value - exact.ln_value, found.std_error);
                assert!(gap.abs() < 4.0 * error, "{index}, {total}: {gap} {error}");
                assert!(error < 0.2, "{index}, {total}: {error}");
            }
            for (found, exact) in found.expected.iter().zip(&exact.expected) {
                let gap = (found.0 - exact.0).abs();
                assert!(gap < 4.0 * found.1, "{index}: {found:?} {exact:?}");
            }
        }
    }

    #[test]
    fn totals_go_on_until_next_to_nothing_is_left() {
        let (network, data, missing) = cases().swap_remove(0);
        let settings = Settings::new(Method::Sample(Sampler::Tempered));
        let incomplete = Incomplete::new(&network, &data, &missing, 0.5, None).unwrap();
        let found = incomplete.temper(&settings, None, 2, &()).unwrap();
        let listed: LogSum = found.ln_joint.iter().map(|joint| joint.ln_value).collect();
        assert!((listed.ln_sum() - found.evidence.ln_value).abs() < 1e-9);
        assert!(found.ln_remainder < found.evidence.ln_value + (2.0 * LEFT).ln());
        let shares: f64 = found.posterior.iter().map(|share| share.0).sum();
        assert!((shares - 1.0).abs() < 1e-9);
    }
}

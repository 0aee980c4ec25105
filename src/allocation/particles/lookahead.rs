//! Particles that look ahead, along the counts that a Gibbs run expects of the remaining tokens, and
//! that do not rely on it.
//!
//! A twisted target is γ_t h_t after every token t, γ being the law of the allocations of the tokens
//! so far and h the twisting function. The plain target has h = 1. The one that looks ahead has
//! h_t = Π (Γ(α + S + F_t)/Γ(α + S))^power, F_t being λ times the marginal counts expected of the
//! tokens after t: the urn of the network with pseudo-counts that know the future. Where the future
//! is not what was expected, the weights of its particles have heavy tails. The particles therefore
//! target the mixture Σ c_t γ_t h_t of both, a token being drawn from all of it. When no token is
//! left, every h is 1, and the sum is known: there is no bias, whatever the c are.

use rand::Rng;

use super::label_symmetry::UsedLabels;
use super::lanes::{CountPlace, CountWords, GroupCounts, Particles};
use super::responsibilities::Responsibilities;
use super::smc::{Filter, TokenOrder, ordered};
use crate::allocation::kernel::counts::{self, States};
use crate::allocation::model::margins::MarginLayout;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::Result;
use crate::filter::{self, FilterTarget, Population, Replicate};
use crate::math::{LogSum, Move, ln_gamma_ratio};
use crate::rng::{LANES, Lanes, Stream, UniformLanes};

/// Particles of the pilot of each twisted target.
const PILOT: usize = 128;

/// Power of the pilot's estimate in the share of its target: short runs vary too much to be taken
/// at their word.
const POWER: f64 = 0.1;

/// Share below which a target is left out of the mixture.
const LEAST_SHARE: f64 = 0.1;

/// Tokens up to which the mixture holds both targets. With more tokens the ratio of the targets
/// leaves the range of double precision.
const BOTH_UP_TO: u64 = 3_000;

/// Share of a row's expected tokens after whose arrival they are no longer expected; or all of
/// them.
const LAG: f64 = 0.02;

/// ln Ẑ of one run. Unbiased.
///
/// Each target has its share of the particles' weights as they would be on average if the pilots
/// were right: c_t = share/Ẑ_t, Ẑ_t being the pilot's estimate of Σ γ_t h_t.
pub(crate) fn ln_sum(
    problem: &Problem,
    responsibilities: &Responsibilities,
    filter: &Filter,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<f64> {
    let mut tokens = ordered(problem, &filter.order, rng, observer)?;
    if filter.order == TokenOrder::Random {
        responsibilities.clear_first(&mut tokens, rng);
    }
    let small = Filter { n_particles: filter.n_particles.min(PILOT), ..filter.clone() };
    let pilot = |responsibilities, rng: &mut _| {
        let alone =
            TwistedTarget { responsibilities, share: 1.0, ln_growths: vec![0.0; tokens.len()] };
        let (ln_value, ln_growths) =
            run_mixture(problem, std::slice::from_ref(&alone), &small, &tokens, rng, observer)?;
        Ok((ln_value, TwistedTarget { ln_growths, ..alone }))
    };
    let pilots = [pilot(None, rng)?, pilot(Some(responsibilities), rng)?];
    let targets = shared(pilots, problem.total <= BOTH_UP_TO);
    Ok(run_mixture(problem, &targets, filter, &tokens, rng, observer)?.0)
}

/// A target with its twisting function, and its part of the mixture.
struct TwistedTarget<'a> {
    /// Expectations, if it looks ahead.
    responsibilities: Option<&'a Responsibilities>,
    /// Share of the weights.
    share: f64,
    /// ln of the expected growth of its mass, token after token.
    ln_growths: Vec<f64>,
}

/// Targets with shares by the estimates of their pilots, without those that found next to nothing;
/// or the best one alone.
fn shared(pilots: [(f64, TwistedTarget<'_>); 2], both: bool) -> Vec<TwistedTarget<'_>> {
    let best = pilots.iter().map(|(ln_value, _)| *ln_value).fold(f64::NEG_INFINITY, f64::max);
    let promise = |ln_value: f64| (POWER * (ln_value - best)).exp();
    let total: f64 = pilots.iter().map(|(ln_value, _)| promise(*ln_value)).sum();
    let share = |(ln_value, target)| TwistedTarget { share: promise(ln_value) / total, ..target };
    let mut targets: Vec<TwistedTarget<'_>> = pilots.into_iter().map(share).collect();
    targets.sort_by(|x, y| y.share.total_cmp(&x.share));
    targets.truncate(if both { 2 } else { 1 });
    targets.retain(|target| target.share >= LEAST_SHARE);
    let total: f64 = targets.iter().map(|target| target.share).sum();
    targets.iter_mut().for_each(|target| target.share /= total);
    targets
}

/// Particles that draw one token after the other from a mixture of twisted targets.
struct TwistedMixture<'a, L> {
    problem: &'a Problem,
    tokens: &'a [u32],
    alphas: Vec<f64>,
    particles: Particles,
    used: UsedLabels,
    components: Vec<TwistedState<'a>>,
    lanes: Vec<L>,
    sums: Vec<Lanes>,
    states: Vec<States>,
    /// ln of the growth of the particles' mass, token after token.
    ln_growths: Vec<f64>,
}

/// Filters the mixture through all tokens; returns ln Ẑ, and ln of the growth of the particles' mass,
/// token after token.
fn run_mixture(
    problem: &Problem,
    targets: &[TwistedTarget<'_>],
    filter: &Filter,
    tokens: &[u32],
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<(f64, Vec<f64>)> {
    let mut mixture = TwistedMixture::new(problem, targets, filter.n_groups(), tokens, rng)?;
    let mut population = filter.population();
    population.scale(-mixture.ln_end());
    filter::run(&mut mixture, &mut population, tokens.len(), rng, observer)?;
    Ok((population.ln_mean(0), mixture.ln_growths))
}

impl<L: UniformLanes> Replicate for TwistedMixture<'_, L> {
    type Block = Lanes;

    fn replicate(&mut self, _: usize, weights: &[Lanes], moves: &[Move]) {
        self.used.resample(moves);
        self.particles.resample(moves);
        for component in &mut self.components {
            let own = component.weights.as_flattened_mut();
            let totals = weights.as_flattened();
            own.iter_mut().zip(totals).for_each(|(weight, total)| *weight /= total);
            moves.iter().for_each(|&(to, from)| own[to as usize] = own[from as usize]);
        }
    }
}

impl<L: UniformLanes> FilterTarget for TwistedMixture<'_, L> {
    fn extend(&mut self, token: usize, population: &mut Population<Lanes>, _: &mut impl Rng) {
        let (problem, cell) = (self.problem, self.tokens[token]);
        let before = population.ln_mean(0);
        self.used.set_shares(self.components.iter().find_map(|component| component.shares(cell)));
        for component in &mut self.components {
            component.open(problem, &self.alphas, token, cell, &mut self.particles);
        }
        for (group, weights) in population.weights_mut().iter_mut().enumerate() {
            *weights = self.draw_group(group);
            self.share_out(group, weights);
        }
        self.particles.close(problem.bases(cell), token);
        let factor = (-population.rescale(0)).exp();
        for component in &mut self.components {
            component.weights.as_flattened_mut().iter_mut().for_each(|weight| *weight *= factor);
        }
        self.ln_growths.push(population.ln_mean(0) - before);
    }
}

impl<'a, L: UniformLanes> TwistedMixture<'a, L> {
    fn new(
        problem: &'a Problem,
        targets: &'a [TwistedTarget<'a>],
        n_groups: usize,
        tokens: &'a [u32],
        rng: &mut impl Stream<Lanes = L>,
    ) -> Result<Self> {
        let begin = |target| TwistedState::new(problem, target, n_groups);
        Ok(TwistedMixture {
            problem,
            tokens,
            particles: Particles::new(problem, n_groups, Some(tokens))?,
            used: UsedLabels::new(problem, n_groups),
            lanes: (0..n_groups).map(|_| rng.lanes()).collect(),
            sums: vec![[0.0; LANES]; problem.plan.n_states],
            states: vec![[0; LANES]; 1],
            components: targets.iter().map(begin).collect(),
            alphas: problem.alphas(),
            ln_growths: Vec::with_capacity(tokens.len()),
        })
    }

    /// ln of the factor on the law of allocations when no token is left, if the mass of each target
    /// starts at its share.
    fn ln_end(&self) -> f64 {
        let ln_ends = self.components.iter().map(|one| one.ln_end(self.problem, &self.alphas));
        ln_ends.collect::<LogSum>().ln_sum()
    }

    /// Draws the token in a group of particles; returns their weights.
    fn draw_group(&mut self, group: usize) -> Lanes {
        let plan = &self.problem.plan;
        self.sums.fill([0.0; LANES]);
        for component in &mut self.components {
            let weights = &mut component.weights[group];
            let ratio = component.ratios.of(&self.particles.words, group);
            weights.iter_mut().zip(ratio).for_each(|(weight, x)| *weight *= x * component.pace);
            let words = &mut self.particles.words;
            let token = GroupCounts { words, index: group, places: &component.places };
            counts::weigh(plan, &token, &mut component.sums);
            add_products(&mut self.sums, &component.sums, weights);
        }
        let total = self.used.weigh_labels(group, &mut self.sums);
        counts::pick(plan, &self.sums, &mut self.lanes[group], &mut self.states);
        let words = &mut self.particles.words;
        let mut token = GroupCounts { words, index: group, places: &self.components[0].places };
        counts::add(plan, &mut token, &self.states, 1);
        self.used.add(group, &self.states[0]);
        total
    }

    /// Gives each target its part of the weights, given the states that were drawn.
    fn share_out(&mut self, group: usize, totals: &Lanes) {
        let states = &self.states[0];
        if let [component] = &mut self.components[..] {
            component.weights[group] = *totals;
            return;
        }
        let mut sum = [0.0; LANES];
        for component in &mut self.components {
            for (lane, &state) in states.iter().enumerate() {
                let below = state.checked_sub(1).map_or(0.0, |s| component.sums[s as usize][lane]);
                component.weights[group][lane] *= component.sums[state as usize][lane] - below;
                sum[lane] += component.weights[group][lane];
            }
        }
        for component in &mut self.components {
            for (lane, weight) in component.weights[group].iter_mut().enumerate() {
                // The weight of a particle that is dead is zero.
                *weight *= if sum[lane] > 0.0 { totals[lane] / sum[lane] } else { 0.0 };
            }
        }
    }
}

/// Adds weights times a target's cumulative weights of states.
#[polyabayes_macros::vectorised]
fn add_products(sums: &mut [Lanes], of_target: &[Lanes], weights: &Lanes) {
    for (sums, of_target) in sums.iter_mut().zip(of_target) {
        for lane in 0..LANES {
            sums[lane] += weights[lane] * of_target[lane];
        }
    }
}

/// A twisted target during the filter: its expected counts, and its weights of the particles.
struct TwistedState<'a> {
    target: &'a TwistedTarget<'a>,
    /// F, and F without a lag.
    expected: Vec<f64>,
    remaining: Vec<f64>,
    places: Vec<CountPlace>,
    ratios: Ratios,
    /// Factor of the target's weights, so that its share stays.
    pace: f64,
    weights: Vec<Lanes>,
    sums: Vec<Lanes>,
}

impl<'a> TwistedState<'a> {
    fn new(problem: &Problem, target: &'a TwistedTarget<'a>, n_groups: usize) -> Self {
        let nothing = || vec![0.0; problem.n_rows];
        let expected = target.responsibilities.map_or_else(nothing, |r| r.expected(problem));
        TwistedState {
            target,
            remaining: expected.clone(),
            expected,
            places: Vec::new(),
            ratios: Ratios::default(),
            pace: 1.0,
            weights: vec![[target.share; LANES]; n_groups],
            sums: vec![[0.0; LANES]; problem.plan.n_states],
        }
    }

    /// Probabilities of the states of a token, if it has any.
    fn shares(&self, cell: u32) -> Option<&'a [f64]> {
        self.target.responsibilities.map(|responsibilities| responsibilities.of(cell))
    }

    /// ln of the factor on the law of allocations at the end.
    fn ln_end(&self, problem: &Problem, alphas: &[f64]) -> f64 {
        let of_margin = |laid: &MarginLayout| {
            let rows = alphas[laid.rows()].iter().zip(&self.expected[laid.rows()]);
            let ln_rows: f64 =
                rows.map(|(alpha, expected)| ln_gamma_ratio(*alpha, *expected)).sum();
            f64::from(laid.margin.exponent) * ln_rows
        };
        let ln_start: f64 = problem.margins.iter().map(of_margin).sum();
        self.target.share.ln() - ln_start - self.target.ln_growths.iter().sum::<f64>()
    }

    /// Takes up a token.
    fn open(
        &mut self,
        problem: &Problem,
        alphas: &[f64],
        token: usize,
        cell: u32,
        particles: &mut Particles,
    ) {
        let changes = self.take_back(problem, cell);
        self.places.clear();
        let base = |row: usize| alphas[row] + self.expected[row];
        particles.open(&problem.plan, problem.bases(cell), base, &mut self.places);
        self.ratios.tabulate(&changes, alphas, &self.expected, particles);
        self.pace = (-self.target.ln_growths[token]).exp();
    }

    /// Subtracts the expectation of a token once it has come.
    fn take_back(&mut self, problem: &Problem, cell: u32) -> Vec<ExpectedChange> {
        let Some(responsibilities) = self.target.responsibilities else { return Vec::new() };
        responsibilities.add(problem, cell, -1.0, &mut self.remaining);
        let bases = problem.bases(cell);
        let mut rows: Vec<(usize, i32)> = Vec::new();
        for factor in &problem.plan.cliques[0].factors {
            let row = |&row: &u32| ((bases[factor.slot] + row) as usize, factor.exponent);
            rows.extend(factor.rows.iter().map(row));
        }
        rows.sort_unstable();
        rows.dedup();
        let mut changes = Vec::new();
        for (row, power) in rows {
            let (before, now) = (self.expected[row], self.remaining[row]);
            if before - now > LAG || now == 0.0 {
                self.expected[row] = now;
                changes.push(ExpectedChange { row, power, before });
            }
        }
        changes
    }
}

/// A row with a smaller expectation after a token.
struct ExpectedChange {
    row: usize,
    power: i32,
    /// Tokens expected before.
    before: f64,
}

/// Ratios of targets when the expectation of a token goes: Π (Γ(α + F_t + S)/Γ(α + F_{t-1} +
/// S))^power over the rows that change, each tabulated for the counts S that there are.
#[derive(Default)]
struct Ratios {
    rows: Vec<Ratio>,
    values: Vec<f64>,
}

/// Ratios of one row.
struct Ratio {
    place: CountPlace,
    /// Place of the least count in the table.
    start: usize,
    least: i32,
}

impl Ratios {
    fn tabulate(
        &mut self,
        changes: &[ExpectedChange],
        alphas: &[f64],
        expected: &[f64],
        particles: &Particles,
    ) {
        self.rows.clear();
        self.values.clear();
        for &ExpectedChange { row, power, before } in changes {
            let place = particles.place(row, 0.0);
            let (least, greatest) = range(place, particles);
            self.rows.push(Ratio { place, start: self.values.len(), least });
            let first = f64::from(least) + alphas[row];
            let (above, below) = (first + expected[row], first + before);
            // Γ(x + 1) = x Γ(x).
            let mut value =
                (-f64::from(power) * ln_gamma_ratio(above, before - expected[row])).exp();
            for step in 0..=greatest - least {
                self.values.push(value);
                let step = f64::from(step);
                value *= ((above + step) / (below + step)).powi(power);
            }
        }
    }

    fn of(&self, words: &[CountWords], group: usize) -> Lanes {
        product(&self.rows, &self.values, words, group)
    }
}

/// The least and the greatest count at a place.
#[polyabayes_macros::vectorised]
fn range(place: CountPlace, particles: &Particles) -> (i32, i32) {
    let (mut least, mut greatest) = ([i32::MAX; LANES], [0; LANES]);
    for group in 0..particles.n_groups {
        let counts = place.counts(&particles.words, group);
        for lane in 0..LANES {
            least[lane] = least[lane].min(counts[lane]);
            greatest[lane] = greatest[lane].max(counts[lane]);
        }
    }
    let least = least.into_iter().fold(i32::MAX, i32::min);
    (least, greatest.into_iter().fold(0, i32::max))
}

#[polyabayes_macros::vectorised]
fn product(rows: &[Ratio], values: &[f64], words: &[CountWords], group: usize) -> Lanes {
    let mut product = [1.0; LANES];
    for row in rows {
        let (counts, values) = (row.place.counts(words, group), &values[row.start..]);
        for lane in 0..LANES {
            let index = (counts[lane] - row.least) as usize;
            // Without a branch for what cannot be, the loads are gathered.
            product[lane] *= values.get(index).copied().unwrap_or(0.0);
        }
    }
    product
}

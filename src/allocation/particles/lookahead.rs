//! Particles that look ahead, along the counts that a Gibbs run expects of the tokens to come, and
//! that do not rely on it.
//!
//! A guide is a target γ_t h_t after every token t, γ being the law of the allocations of the
//! tokens so far. The plain guide has h = 1. The one that looks ahead has h_t = Π (Γ(α + S +
//! F_t)/Γ(α + S))^power, F_t being λ times the marginal counts expected of the tokens after t: the
//! urn of the network with pseudo-counts that know the future. Where the future is not what was
//! expected, the weights of its particles have heavy tails. The particles therefore target the sum
//! Σ c_t γ_t h_t over both guides, a token being drawn from all of it. When no token is left, every
//! h is 1, and the sum is known: there is no bias, whatever the c are.

use rand::Rng;

use super::lanes::{CountPlace, CountWords, GroupCounts, Particles};
use super::openings::Used;
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

/// Particles of the pilot of each guide.
const PILOT: usize = 128;

/// Power of what a pilot finds in the share of its guide: short runs vary too much to be taken at
/// their word.
const POWER: f64 = 0.1;

/// Share below which a guide is not followed.
const LEAST_SHARE: f64 = 0.1;

/// Tokens up to which both guides are followed. With more of them their ratio leaves the range of
/// double precision.
const BOTH_UP_TO: u64 = 3_000;

/// Share of a row's expected tokens after whose arrival they are no longer expected; or all of
/// them.
const LAG: f64 = 0.02;

/// ln Ẑ of one run. Unbiased.
///
/// Each guide has its share of the particles' weights as they would be on average if the pilots
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
        let alone = Guide { responsibilities, share: 1.0, ln_growths: vec![0.0; tokens.len()] };
        let (ln_value, ln_growths) =
            follow(problem, std::slice::from_ref(&alone), &small, &tokens, rng, observer)?;
        Ok((ln_value, Guide { ln_growths, ..alone }))
    };
    let pilots = [pilot(None, rng)?, pilot(Some(responsibilities), rng)?];
    let guides = shared(pilots, problem.total <= BOTH_UP_TO);
    Ok(follow(problem, &guides, filter, &tokens, rng, observer)?.0)
}

/// A guide of the particles.
struct Guide<'a> {
    /// Expectations, if it looks ahead.
    responsibilities: Option<&'a Responsibilities>,
    /// Share of the weights.
    share: f64,
    /// ln of what its mass is expected to grow by, token after token.
    ln_growths: Vec<f64>,
}

/// Guides with shares by what their pilots found, without those that found next to nothing; or the
/// best one alone.
fn shared(pilots: [(f64, Guide<'_>); 2], both: bool) -> Vec<Guide<'_>> {
    let best = pilots.iter().map(|(ln_value, _)| *ln_value).fold(f64::NEG_INFINITY, f64::max);
    let promise = |ln_value: f64| (POWER * (ln_value - best)).exp();
    let total: f64 = pilots.iter().map(|(ln_value, _)| promise(*ln_value)).sum();
    let share = |(ln_value, guide)| Guide { share: promise(ln_value) / total, ..guide };
    let mut guides: Vec<Guide<'_>> = pilots.into_iter().map(share).collect();
    guides.sort_by(|x, y| y.share.total_cmp(&x.share));
    guides.truncate(if both { 2 } else { 1 });
    guides.retain(|guide| guide.share >= LEAST_SHARE);
    let total: f64 = guides.iter().map(|guide| guide.share).sum();
    guides.iter_mut().for_each(|guide| guide.share /= total);
    guides
}

/// Particles that draw one token after the other along guides.
struct Guided<'a, L> {
    problem: &'a Problem,
    tokens: &'a [u32],
    alphas: Vec<f64>,
    particles: Particles,
    used: Used,
    followed: Vec<Followed<'a>>,
    lanes: Vec<L>,
    sums: Vec<Lanes>,
    states: Vec<States>,
    /// ln of what the mass of the particles grew by, token after token.
    ln_growths: Vec<f64>,
}

/// Takes particles along guides through all tokens; returns ln Ẑ, and ln of what the mass of the
/// particles grew by, token after token.
fn follow(
    problem: &Problem,
    guides: &[Guide<'_>],
    filter: &Filter,
    tokens: &[u32],
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<(f64, Vec<f64>)> {
    let mut target = Guided::new(problem, guides, filter.n_groups(), tokens, rng)?;
    let mut population = filter.population();
    population.scale(-target.ln_end());
    filter::run(&mut target, &mut population, tokens.len(), rng, observer)?;
    Ok((population.ln_mean(0), target.ln_growths))
}

impl<L: UniformLanes> Replicate for Guided<'_, L> {
    type Block = Lanes;

    fn replicate(&mut self, _: usize, weights: &[Lanes], moves: &[Move]) {
        self.used.resample(moves);
        self.particles.resample(moves);
        for followed in &mut self.followed {
            let own = followed.weights.as_flattened_mut();
            let totals = weights.as_flattened();
            own.iter_mut().zip(totals).for_each(|(weight, total)| *weight /= total);
            moves.iter().for_each(|&(to, from)| own[to as usize] = own[from as usize]);
        }
    }
}

impl<L: UniformLanes> FilterTarget for Guided<'_, L> {
    fn extend(&mut self, token: usize, population: &mut Population<Lanes>, _: &mut impl Rng) {
        let (problem, cell) = (self.problem, self.tokens[token]);
        let before = population.ln_mean(0);
        self.used.take_up(self.followed.iter().find_map(|followed| followed.shares(cell)));
        for followed in &mut self.followed {
            followed.open(problem, &self.alphas, token, cell, &mut self.particles);
        }
        for (group, weights) in population.weights_mut().iter_mut().enumerate() {
            *weights = self.draw_group(group);
            self.share_out(group, weights);
        }
        self.particles.close(problem.bases(cell), token);
        let factor = (-population.rescale(0)).exp();
        for followed in &mut self.followed {
            followed.weights.as_flattened_mut().iter_mut().for_each(|weight| *weight *= factor);
        }
        self.ln_growths.push(population.ln_mean(0) - before);
    }
}

impl<'a, L: UniformLanes> Guided<'a, L> {
    fn new(
        problem: &'a Problem,
        guides: &'a [Guide<'a>],
        n_groups: usize,
        tokens: &'a [u32],
        rng: &mut impl Stream<Lanes = L>,
    ) -> Result<Self> {
        let follow = |guide| Followed::new(problem, guide, n_groups);
        Ok(Guided {
            problem,
            tokens,
            particles: Particles::new(problem, n_groups, Some(tokens))?,
            used: Used::new(problem, n_groups),
            lanes: (0..n_groups).map(|_| rng.lanes()).collect(),
            sums: vec![[0.0; LANES]; problem.plan.n_states],
            states: vec![[0; LANES]; 1],
            followed: guides.iter().map(follow).collect(),
            alphas: problem.alphas(),
            ln_growths: Vec::with_capacity(tokens.len()),
        })
    }

    /// ln of what the law of allocations is multiplied by when no token is left, if the mass of
    /// each guide starts at its share.
    fn ln_end(&self) -> f64 {
        let ln_ends = self.followed.iter().map(|guide| guide.ln_end(self.problem, &self.alphas));
        ln_ends.collect::<LogSum>().ln_sum()
    }

    /// Draws the token in a group of particles; returns their weights.
    fn draw_group(&mut self, group: usize) -> Lanes {
        let plan = &self.problem.plan;
        self.sums.fill([0.0; LANES]);
        for followed in &mut self.followed {
            let weights = &mut followed.weights[group];
            let ratio = followed.ratios.of(&self.particles.words, group);
            weights.iter_mut().zip(ratio).for_each(|(weight, x)| *weight *= x * followed.pace);
            let words = &mut self.particles.words;
            let token = GroupCounts { words, index: group, places: &followed.places };
            counts::weigh(plan, &token, &mut followed.sums);
            add_products(&mut self.sums, &followed.sums, weights);
        }
        let total = self.used.open(group, &mut self.sums);
        counts::pick(plan, &self.sums, &mut self.lanes[group], &mut self.states);
        let words = &mut self.particles.words;
        let mut token = GroupCounts { words, index: group, places: &self.followed[0].places };
        counts::add(plan, &mut token, &self.states, 1);
        self.used.add(group, &self.states[0]);
        total
    }

    /// Gives each guide its part of the weights, given the states that were drawn.
    fn share_out(&mut self, group: usize, totals: &Lanes) {
        let states = &self.states[0];
        if let [followed] = &mut self.followed[..] {
            followed.weights[group] = *totals;
            return;
        }
        let mut sum = [0.0; LANES];
        for followed in &mut self.followed {
            for (lane, &state) in states.iter().enumerate() {
                let below = state.checked_sub(1).map_or(0.0, |s| followed.sums[s as usize][lane]);
                followed.weights[group][lane] *= followed.sums[state as usize][lane] - below;
                sum[lane] += followed.weights[group][lane];
            }
        }
        for followed in &mut self.followed {
            for (lane, weight) in followed.weights[group].iter_mut().enumerate() {
                // The weight of a particle that is dead is zero.
                *weight *= if sum[lane] > 0.0 { totals[lane] / sum[lane] } else { 0.0 };
            }
        }
    }
}

/// Adds weights times a guide's cumulative weights of states.
#[polyabayes_macros::vectorised]
fn add_products(sums: &mut [Lanes], of_guide: &[Lanes], weights: &Lanes) {
    for (sums, of_guide) in sums.iter_mut().zip(of_guide) {
        for lane in 0..LANES {
            sums[lane] += weights[lane] * of_guide[lane];
        }
    }
}

/// A guide as the particles follow it.
struct Followed<'a> {
    guide: &'a Guide<'a>,
    /// F, and what it would be without a lag.
    expected: Vec<f64>,
    to_come: Vec<f64>,
    places: Vec<CountPlace>,
    ratios: Ratios,
    /// Factor of the guide's weights, so that its share stays.
    pace: f64,
    weights: Vec<Lanes>,
    sums: Vec<Lanes>,
}

impl<'a> Followed<'a> {
    fn new(problem: &Problem, guide: &'a Guide<'a>, n_groups: usize) -> Self {
        let nothing = || vec![0.0; problem.n_rows];
        let expected = guide.responsibilities.map_or_else(nothing, |r| r.expected(problem));
        Followed {
            guide,
            to_come: expected.clone(),
            expected,
            places: Vec::new(),
            ratios: Ratios::default(),
            pace: 1.0,
            weights: vec![[guide.share; LANES]; n_groups],
            sums: vec![[0.0; LANES]; problem.plan.n_states],
        }
    }

    /// Probabilities of the states of a token, if it has any.
    fn shares(&self, cell: u32) -> Option<&'a [f64]> {
        self.guide.responsibilities.map(|responsibilities| responsibilities.of(cell))
    }

    /// ln of what the law of allocations will be multiplied by.
    fn ln_end(&self, problem: &Problem, alphas: &[f64]) -> f64 {
        let of_margin = |laid: &MarginLayout| {
            let rows = alphas[laid.rows()].iter().zip(&self.expected[laid.rows()]);
            let ln_rows: f64 =
                rows.map(|(alpha, expected)| ln_gamma_ratio(*alpha, *expected)).sum();
            f64::from(laid.margin.exponent) * ln_rows
        };
        let ln_start: f64 = problem.margins.iter().map(of_margin).sum();
        self.guide.share.ln() - ln_start - self.guide.ln_growths.iter().sum::<f64>()
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
        self.pace = (-self.guide.ln_growths[token]).exp();
    }

    /// Takes back what was expected of a token that is no longer to come.
    fn take_back(&mut self, problem: &Problem, cell: u32) -> Vec<ExpectedChange> {
        let Some(responsibilities) = self.guide.responsibilities else { return Vec::new() };
        responsibilities.add(problem, cell, -1.0, &mut self.to_come);
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
            let (before, now) = (self.expected[row], self.to_come[row]);
            if before - now > LAG || now == 0.0 {
                self.expected[row] = now;
                changes.push(ExpectedChange { row, power, before });
            }
        }
        changes
    }
}

/// A row of which less is expected when a token comes.
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

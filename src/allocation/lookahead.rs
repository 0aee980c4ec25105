//! Particles that look ahead, along the counts that a Gibbs run expects of the tokens to come.
//!
//! After token t the particles target `Π (Γ(α + S + F_t)/Γ(α + F_0))^power`, F_t being λ times the
//! marginal counts expected of the tokens after t: the urn of the network with pseudo-counts that
//! know the future, which is the urn itself when no token is left.

use super::ancestry::{Move, moves};
use super::chains::{Chains, Order, ln_law};
use super::kernel::{self, States, Target};
use super::particles::{Group, Particles, Place, Words};
use super::problem::{Laid, Problem};
use super::smc::{Filter, n_eff, ordered, rescale};
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::ln_gamma_ratio;
use crate::rng::{LANES, Lanes, Stream};

/// λ. The more is trusted, the lighter the tails of the proposals, and the more of the sum lies where
/// no particle comes: errors are told too small. Less than this costs accuracy with many tokens.
const TRUST: f64 = 0.05;

/// Sweeps of the Gibbs run behind the expectations, of which the second half are averaged.
const GIBBS_SWEEPS: usize = 200;

/// Share of a token's responsibilities that is spread evenly over all states: no state is ruled
/// out.
const EVEN_SHARE: f64 = 0.01;

/// Unit of what is expected of a token, over the number of tokens.
const QUANTUM: f64 = 1.0 / (1u64 << 50) as f64;

/// λ times the probability of every state of a token's only clique, cell after cell.
pub(super) struct Responsibilities {
    n_states: usize,
    shares: Vec<f64>,
}

impl Responsibilities {
    /// Averages over sweeps of the most probable of [`LANES`] chains that anneal from independent
    /// tokens.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub(super) fn new(
        problem: &Problem,
        rng: &mut impl Stream,
        observer: &impl Observer,
    ) -> Result<Self> {
        let n_states = problem.plan.n_states;
        let (average, alphas) = (problem.average(), problem.alphas());
        let model = Target { base: &alphas, unit: 1.0 };
        let mut chains = Chains::uniform(problem, rng, observer)?;
        let mut shares = vec![0.0; problem.n_cells() * n_states];
        let mut lane = 0;
        for sweep in 0..GIBBS_SWEEPS {
            let beta = (2.0 * sweep as f64 / GIBBS_SWEEPS as f64).min(1.0);
            let pairs = average.iter().zip(&alphas);
            let base: Vec<f64> = pairs.map(|(m, alpha)| (1.0 - beta) * m + beta * alpha).collect();
            chains.sweep(Target { base: &base, unit: beta }, Order::Forward, observer)?;
            if 2 * sweep == GIBBS_SWEEPS {
                let ln_laws = ln_law(problem, model, chains.rows());
                let most_probable = (0..LANES).max_by(|&x, &y| ln_laws[x].total_cmp(&ln_laws[y]));
                lane = most_probable.unwrap_or(0);
            }
            if 2 * sweep >= GIBBS_SWEEPS {
                for (cell, state, n) in chains.tallies(0, lane) {
                    shares[cell as usize * n_states + state as usize] += f64::from(n);
                }
            }
        }
        // Sums of these are exact: what was expected of tokens that are gone leaves no rest.
        let quantum = problem.total.next_power_of_two() as f64 * QUANTUM;
        for shares in shares.chunks_exact_mut(n_states) {
            let total: f64 = shares.iter().sum();
            let even = EVEN_SHARE / n_states as f64;
            for share in shares {
                let spread = even + (1.0 - EVEN_SHARE) * *share / total;
                *share = (TRUST * spread / quantum).ceil() * quantum;
            }
        }
        Ok(Responsibilities { n_states, shares })
    }

    fn of(&self, cell: u32) -> &[f64] {
        &self.shares[cell as usize * self.n_states..][..self.n_states]
    }

    /// λ times the marginal counts expected of all tokens.
    fn expected(&self, problem: &Problem) -> Vec<f64> {
        let mut expected = vec![0.0; problem.n_rows];
        for (cell, &count) in (0..).zip(&problem.counts) {
            self.add(problem, cell, count as f64, &mut expected);
        }
        expected
    }

    /// Adds λ times what so many tokens of a cell are expected to add to the marginal counts.
    fn add(&self, problem: &Problem, cell: u32, count: f64, rows: &mut [f64]) {
        let bases = problem.bases(cell);
        for factor in &problem.plan.cliques[0].factors {
            for (share, &row) in self.of(cell).iter().zip(&factor.rows) {
                rows[(bases[factor.slot] + row) as usize] += count * share;
            }
        }
    }
}

/// ln Ẑ of one run. Unbiased.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub(super) fn ln_sum(
    problem: &Problem,
    responsibilities: &Responsibilities,
    filter: &Filter,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<f64> {
    let plan = &problem.plan;
    let tokens = ordered(problem, &filter.order, rng)?;
    let n_groups = filter.n_particles.div_ceil(LANES);
    let alphas = problem.alphas();
    let mut expected = responsibilities.expected(problem);
    let mut ln_value = ln_start(problem, &alphas, &expected);
    let mut particles = Particles::new(problem, n_groups, Some(&tokens))?;
    let mut used = Used::new(problem, n_groups);
    let mut places = Vec::new();
    let mut ratios = Ratios::default();
    let mut lanes: Vec<_> = (0..n_groups).map(|_| rng.lanes()).collect();
    let mut sums = vec![[0.0; LANES]; plan.n_states];
    let mut states: Vec<States> = vec![[0; LANES]; 1];
    let mut weights: Vec<Lanes> = vec![[1.0; LANES]; n_groups];
    for (token, &cell) in tokens.iter().enumerate() {
        if observer.stopped() {
            return Err(Error::Stopped);
        }
        // The token is no longer to come: what was expected of it goes.
        let mut changes = changes(problem, cell);
        changes.iter_mut().for_each(|change| change.before = expected[change.row]);
        responsibilities.add(problem, cell, -1.0, &mut expected);
        let base = |row: usize| alphas[row] + expected[row];
        places.clear();
        particles.open(plan, problem.bases(cell), base, &mut places);
        ratios.tabulate(&changes, &alphas, &expected, &particles);
        used.take_up(responsibilities.of(cell));
        for (group, uniforms) in lanes.iter_mut().enumerate() {
            let ratio = ratios.of(&particles.words, group);
            let mut token = Group { words: &mut particles.words, index: group, places: &places };
            kernel::weigh(plan, &token, &mut sums);
            let total = used.open(group, &mut sums);
            kernel::pick(plan, &sums, uniforms, &mut states);
            kernel::add(plan, &mut token, &states, 1);
            used.add(group, &states[0]);
            for lane in 0..LANES {
                weights[group][lane] *= total[lane] * ratio[lane];
            }
        }
        particles.close(problem.bases(cell), token);
        ln_value += rescale(&mut weights);
        let enough = filter.threshold * (n_groups * LANES) as f64;
        if token + 1 < tokens.len() && n_eff(&weights) < enough {
            let flat = weights.as_flattened();
            ln_value += (flat.iter().sum::<f64>() / flat.len() as f64).ln();
            let moves = moves(&filter.resampling.offspring(flat, rng));
            used.resample(&moves);
            particles.resample(&moves);
            weights.fill([1.0; LANES]);
        }
    }
    let flat = weights.as_flattened();
    Ok(ln_value + (flat.iter().sum::<f64>() / flat.len() as f64).ln())
}

/// ln Π (Γ(α + F_0)/Γ(α))^power: the target before the first token.
fn ln_start(problem: &Problem, alphas: &[f64], expected: &[f64]) -> f64 {
    let of_margin = |laid: &Laid| {
        let rows = alphas[laid.rows()].iter().zip(&expected[laid.rows()]);
        let ln_rows: f64 = rows.map(|(alpha, expected)| ln_gamma_ratio(*alpha, *expected)).sum();
        f64::from(laid.margin.exponent) * ln_rows
    };
    problem.margins.iter().map(of_margin).sum()
}

/// A row of which less is expected when a token comes.
struct Change {
    row: usize,
    power: i32,
    /// What was expected.
    before: f64,
}

/// Rows that a token of the cell can add to, each once.
fn changes(problem: &Problem, cell: u32) -> Vec<Change> {
    let bases = problem.bases(cell);
    let mut rows: Vec<(usize, i32)> = Vec::new();
    for factor in &problem.plan.cliques[0].factors {
        let row = |&row: &u32| ((bases[factor.slot] + row) as usize, factor.exponent);
        rows.extend(factor.rows.iter().map(row));
    }
    rows.sort_unstable();
    rows.dedup();
    rows.into_iter().map(|(row, power)| Change { row, power, before: 0.0 }).collect()
}

/// Ratios of targets when what is expected of a token goes: Π (Γ(α + F_t + S)/Γ(α + F_{t-1} +
/// S))^power over the rows that change, each tabulated for the counts S that there are.
#[derive(Default)]
struct Ratios {
    rows: Vec<Ratio>,
    values: Vec<f64>,
}

/// Those of one row.
struct Ratio {
    place: Place,
    /// Where in the table the least count is.
    start: usize,
    least: i32,
}

impl Ratios {
    fn tabulate(
        &mut self,
        changes: &[Change],
        alphas: &[f64],
        expected: &[f64],
        particles: &Particles,
    ) {
        self.rows.clear();
        self.values.clear();
        for &Change { row, power, before } in changes {
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

    fn of(&self, words: &[Words], group: usize) -> Lanes {
        product(&self.rows, &self.values, words, group)
    }
}

/// The least and the greatest count at a place.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn range(place: Place, particles: &Particles) -> (i32, i32) {
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

#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn product(rows: &[Ratio], values: &[f64], words: &[Words], group: usize) -> Lanes {
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

/// Which values of the hidden nodes the particles have used.
///
/// The values of a hidden node are exchangeable, but the expectations name them: particles would
/// see one of K! equal modes. Allocations that differ by the names of a node's values are therefore
/// counted once. A token that opens one of u unused values stands for u of them, and which one it
/// takes is drawn by the token's responsibilities, as a part of the extended target.
struct Used {
    nodes: Vec<UsedNode>,
    n_groups: usize,
}

/// Values of one hidden node: of the clique's states, state / `stride` mod `size`.
struct UsedNode {
    stride: usize,
    size: usize,
    /// Tokens of every value, value after value, group after group.
    tokens: Vec<Lanes>,
    /// Share of every value in the responsibilities of the token.
    shares: Vec<f64>,
    /// What the weight of a state with this value is to be multiplied by.
    factors: Vec<Lanes>,
}

impl Used {
    fn new(problem: &Problem, n_groups: usize) -> Self {
        let digits = problem.plan.cliques[0].digits().iter();
        let renamed = digits.filter(|(node, ..)| problem.renames(*node));
        let node = |&(_, stride, size): &(usize, usize, usize)| UsedNode {
            stride,
            size,
            tokens: vec![[0.0; LANES]; size * n_groups],
            shares: vec![0.0; size],
            factors: vec![[1.0; LANES]; size],
        };
        Used { nodes: renamed.map(node).collect(), n_groups }
    }

    /// Takes up the responsibilities of a token.
    fn take_up(&mut self, responsibilities: &[f64]) {
        for node in &mut self.nodes {
            node.shares.fill(0.0);
            for (state, share) in responsibilities.iter().enumerate() {
                node.shares[state / node.stride % node.size] += share;
            }
        }
    }

    /// Turns the cumulative weights of states into those of openings; returns their totals.
    fn open(&mut self, group: usize, sums: &mut [Lanes]) -> Lanes {
        for node in &mut self.nodes {
            node.weigh_openings(group, self.n_groups);
        }
        let (mut before, mut total) = ([0.0; LANES], [0.0; LANES]);
        for (state, sum) in sums.iter_mut().enumerate() {
            let mut weight = *sum;
            weight.iter_mut().zip(before).for_each(|(weight, before)| *weight -= before);
            for node in &self.nodes {
                let factor = &node.factors[state / node.stride % node.size];
                weight.iter_mut().zip(factor).for_each(|(weight, factor)| *weight *= factor);
            }
            total.iter_mut().zip(weight).for_each(|(total, weight)| *total += weight);
            (before, *sum) = (*sum, total);
        }
        total
    }

    fn add(&mut self, group: usize, states: &States) {
        for node in &mut self.nodes {
            for (lane, &state) in states.iter().enumerate() {
                let value = state as usize / node.stride % node.size;
                node.tokens[value * self.n_groups + group][lane] += 1.0;
            }
        }
    }

    fn resample(&mut self, moves: &[Move]) {
        for node in &mut self.nodes {
            for value in node.tokens.chunks_exact_mut(self.n_groups) {
                let value = value.as_flattened_mut();
                moves.iter().for_each(|&(to, from)| value[to as usize] = value[from as usize]);
            }
        }
    }
}

impl UsedNode {
    /// Sets the factors: 1 for values in use.
    fn weigh_openings(&mut self, group: usize, n_groups: usize) {
        let tokens = &self.tokens;
        let unused = |value: usize, lane: usize| {
            f64::from(u8::from(tokens[value * n_groups + group][lane] == 0.0))
        };
        let (mut n_unused, mut share_unused) = ([0.0; LANES], [0.0; LANES]);
        for (value, share) in self.shares.iter().enumerate() {
            for lane in 0..LANES {
                n_unused[lane] += unused(value, lane);
                share_unused[lane] += unused(value, lane) * share;
            }
        }
        for (value, factors) in self.factors.iter_mut().enumerate() {
            for lane in 0..LANES {
                let opens = unused(value, lane);
                // Where no value is unused, there is none to divide by the share of.
                let name =
                    n_unused[lane] * self.shares[value] / (share_unused[lane] + (1.0 - opens));
                factors[lane] = opens * name + (1.0 - opens);
            }
        }
    }
}

//! Particles that look ahead, along the counts that a Gibbs run expects of the tokens to come.
//!
//! After token t the particles target `Π (Γ(α + S + F_t)/Γ(α + F_0))^power`, F_t being λ times the
//! marginal counts expected of the tokens after t: the urn of the network with pseudo-counts that
//! know the future, which is the urn itself when no token is left.

use super::ancestry::{Move, moves};
use super::chains::{Chains, Order, ln_law};
use super::kernel::{self, Marginals, States, Target};
use super::particles::{Group, Particles};
use super::plan::Factor;
use super::problem::{Laid, Problem};
use super::smc::{Filter, n_eff, ordered, rescale};
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::{lanes, ln_gamma_ratio};
use crate::rng::{LANES, Lanes, Stream};

/// λ.
const TRUST: f64 = 0.4;

/// Sweeps of the Gibbs run behind the expectations, of which the second half are averaged.
const GIBBS_SWEEPS: usize = 200;

/// Share of a token's responsibilities that is spread evenly over all states: no state is ruled
/// out.
const EVEN_SHARE: f64 = 0.01;

/// Probability of every state of a token's only clique, cell after cell.
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
                for (&cell, state) in chains.cells().iter().zip(chains.states_of(lane)) {
                    shares[cell as usize * n_states + state as usize] += 1.0;
                }
            }
        }
        for shares in shares.chunks_exact_mut(n_states) {
            let total: f64 = shares.iter().sum();
            let even = EVEN_SHARE / n_states as f64;
            shares.iter_mut().for_each(|x| *x = even + (1.0 - EVEN_SHARE) * *x / total);
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
        for_rows(problem, cell, |state, row| rows[row] += TRUST * count * self.of(cell)[state]);
    }
}

fn for_rows(problem: &Problem, cell: u32, mut visit: impl FnMut(usize, usize)) {
    let bases = problem.bases(cell);
    for factor in &problem.plan.cliques[0].factors {
        for (state, &row) in factor.rows.iter().enumerate() {
            visit(state, (bases[factor.slot] + row) as usize);
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
    let mut base: Vec<f64> = responsibilities.expected(problem);
    base.iter_mut().zip(&alphas).for_each(|(base, alpha)| *base += alpha);
    let mut ln_value = ln_start(problem, &alphas, &base);
    let mut particles = Particles::new(problem, n_groups, Some(&tokens))?;
    let mut used = Used::new(problem, n_groups);
    let mut lanes: Vec<_> = (0..n_groups).map(|_| rng.lanes()).collect();
    let mut sums = vec![[0.0; LANES]; plan.n_states];
    let mut states: Vec<States> = vec![[0; LANES]; 1];
    let mut weights: Vec<Lanes> = vec![[1.0; LANES]; n_groups];
    for (token, &cell) in tokens.iter().enumerate() {
        if observer.stopped() {
            return Err(Error::Stopped);
        }
        particles.open(problem.bases(cell));
        // The token is no longer to come: what was expected of it goes.
        let mut changes = changes(problem, cell, &base);
        responsibilities.add(problem, cell, -1.0, &mut base);
        for change in &mut changes {
            let (row, place) = (change.row, particles.place(change.row));
            particles.base[place] = base[row];
            (change.row, change.after) = (place, base[row]);
        }
        used.take_up(responsibilities.of(cell));
        let bases = &particles.bases;
        let target = Target { base: &particles.base, unit: 1.0 };
        for (group, uniforms) in lanes.iter_mut().enumerate() {
            let words = &mut particles.words;
            let mut rows = Group { words, widths: &particles.widths, n_groups, group };
            let _ = kernel::weigh(plan, bases, target, &rows, &mut sums);
            let total = used.open(group, &mut sums);
            let ratio = future(&changes, &rows).map(f64::exp);
            kernel::pick(plan, &sums, uniforms, &mut states);
            kernel::add(plan, bases, &mut rows, &states, 1);
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

/// ln Π (Γ(base)/Γ(α))^power: the target before the first token.
fn ln_start(problem: &Problem, alphas: &[f64], base: &[f64]) -> f64 {
    let of_margin = |laid: &Laid| {
        let rows = alphas[laid.rows()].iter().zip(&base[laid.rows()]);
        let ln_rows: f64 = rows.map(|(alpha, base)| ln_gamma_ratio(*alpha, base - alpha)).sum();
        f64::from(laid.margin.exponent) * ln_rows
    };
    problem.margins.iter().map(of_margin).sum()
}

/// Base counts of a row when what is expected of a token goes.
struct Change {
    slot: usize,
    row: usize,
    power: f64,
    before: f64,
    after: f64,
}

/// Rows that a token of the cell can add to, each once, still unchanged.
fn changes(problem: &Problem, cell: u32, base: &[f64]) -> Vec<Change> {
    let bases = problem.bases(cell);
    let of_factor = |factor: &Factor| -> Vec<(usize, usize, i32)> {
        let row = |&row: &u32| ((bases[factor.slot] + row) as usize, factor.slot, factor.exponent);
        factor.rows.iter().map(row).collect()
    };
    let mut rows: Vec<(usize, usize, i32)> =
        problem.plan.cliques[0].factors.iter().flat_map(of_factor).collect();
    rows.sort_unstable();
    rows.dedup_by_key(|(row, ..)| *row);
    let change = |(row, slot, power): (usize, usize, i32)| {
        let (power, before) = (f64::from(power), base[row]);
        Change { slot, row, power, before, after: before }
    };
    rows.into_iter().map(change).collect()
}

/// ln of the ratio of targets when what is expected of a token goes: Σ power (ln Γ(after + S) -
/// ln Γ(before + S)).
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn future(changes: &[Change], rows: &impl Marginals) -> Lanes {
    let mut ln_ratio = [0.0; LANES];
    for &Change { slot, row, power, before, after } in changes {
        let counts = rows.counts(slot, row);
        let at = |base: f64| lanes::ln_gamma(counts.map(|n| base + f64::from(n)));
        let (below, above) = (at(before), at(after));
        for lane in 0..LANES {
            ln_ratio[lane] += power * (above[lane] - below[lane]);
        }
    }
    ln_ratio
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

//! Expected hidden values of every token, by a Gibbs run.

use rand::RngExt as _;

use crate::allocation::kernel::chains::StateChains;
use crate::allocation::kernel::counts::CountWeights;
use crate::allocation::kernel::law::ln_law;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::{Result, array_of};
use crate::rng::{LANES, Lanes, Stream, UniformLanes};

/// λ. The more is trusted, the lighter the tails of the proposals, and the more of the sum lies
/// where no particle comes: errors are told too small. Less than this costs accuracy with many
/// tokens.
const TRUST: f64 = 0.05;

/// Sweeps over which the chains anneal from independent tokens, and as many that are averaged.
const GIBBS_SWEEPS: usize = 120;

/// Every so many sweeps are averaged.
const THINNING: usize = 4;

/// Nats of the law of allocations over which the weight of a chain falls to 1/e: chains that differ
/// as draws of one posterior do all count, those that got stuck do not.
const SPREAD: f64 = 20.0;

/// Share of a token's responsibilities that is spread evenly over all states: no state is ruled
/// out.
const EVEN_SHARE: f64 = 0.01;

/// How much chance has a say in which tokens come first: the range of what it adds to Σ share².
const CHANCE: f64 = 1.5;

/// Unit of what is expected of a token, over the number of tokens.
const QUANTUM: f64 = 1.0 / (1u64 << 50) as f64;

/// λ times the probability of every state of a token's only clique, cell after cell.
pub(crate) struct Responsibilities {
    n_states: usize,
    shares: Vec<f64>,
}

impl Responsibilities {
    /// Averages over sweeps of [`LANES`] chains that anneal from independent tokens.
    pub(crate) fn new(
        problem: &Problem,
        rng: &mut impl Stream,
        observer: &impl Observer,
    ) -> Result<Self> {
        let n_states = problem.plan.n_states;
        let mut chains = StateChains::uniform(problem, rng, observer)?;
        chains.anneal(GIBBS_SWEEPS, || (), observer)?;
        let mut shares = StateTallies::new(problem, &mut chains, observer)?.average(problem);
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

    pub(crate) fn of(&self, cell: u32) -> &[f64] {
        &self.shares[cell as usize * self.n_states..][..self.n_states]
    }

    /// λ times the marginal counts expected of all tokens.
    pub(crate) fn expected(&self, problem: &Problem) -> Vec<f64> {
        let mut expected = vec![0.0; problem.n_rows];
        for (cell, &count) in (0..).zip(&problem.counts) {
            self.add(problem, cell, count as f64, &mut expected);
        }
        expected
    }

    /// Adds λ times what so many tokens of a cell are expected to add to the marginal counts.
    pub(crate) fn add(&self, problem: &Problem, cell: u32, count: f64, rows: &mut [f64]) {
        let bases = problem.bases(cell);
        for factor in &problem.plan.cliques[0].factors {
            for (share, &row) in self.of(cell).iter().zip(&factor.rows) {
                rows[(bases[factor.slot] + row) as usize] += count * share;
            }
        }
    }

    /// Orders tokens by chance, but so that clear ones tend to come first: what others should be is
    /// better known when they have come.
    pub(crate) fn clear_first(&self, tokens: &mut Vec<u32>, rng: &mut impl Stream) {
        let clarity =
            |cell: u32| self.of(cell).iter().map(|share| (share / TRUST).powi(2)).sum::<f64>();
        let keyed = |&cell: &u32| (clarity(cell) + CHANCE * rng.random::<f64>(), cell);
        let mut keyed: Vec<(f64, u32)> = tokens.iter().map(keyed).collect();
        keyed.sort_by(|x, y| y.0.total_cmp(&x.0));
        *tokens = keyed.into_iter().map(|(_, cell)| cell).collect();
    }
}

/// How often every chain gave the tokens of a cell each state.
struct StateTallies {
    /// State after state, cell after cell.
    counts: Vec<Lanes>,
    /// Mean ln of the law of the chains' allocations.
    ln_laws: Lanes,
}

impl StateTallies {
    fn new(
        problem: &Problem,
        chains: &mut StateChains<'_, impl UniformLanes>,
        observer: &impl Observer,
    ) -> Result<Self> {
        let n_states = problem.plan.n_states;
        let alphas = problem.alphas();
        let model = CountWeights { base: &alphas, unit: 1.0 };
        let n_counts = problem.n_cells() * n_states;
        let mut counts = array_of("responsibilities of chains", n_counts, [0.0; LANES])?;
        let mut ln_laws = [0.0; LANES];
        for sweep in 0..GIBBS_SWEEPS {
            chains.sweep(model, observer)?;
            if sweep % THINNING > 0 {
                continue;
            }
            (0..LANES).for_each(|lane| {
                for (cell, state, n) in chains.tallies(0, lane) {
                    counts[cell as usize * n_states + state as usize][lane] += f64::from(n);
                }
            });
            let found = ln_law(problem, model, chains.rows());
            let n_averaged = GIBBS_SWEEPS.div_ceil(THINNING) as f64;
            ln_laws.iter_mut().zip(found).for_each(|(mean, x)| *mean += x / n_averaged);
        }
        Ok(StateTallies { counts, ln_laws })
    }

    /// Average over chains, under the names of the most probable one.
    fn average(&self, problem: &Problem) -> Vec<f64> {
        let ln_laws = &self.ln_laws;
        let most_probable = (0..LANES).max_by(|&x, &y| ln_laws[x].total_cmp(&ln_laws[y]));
        let best = most_probable.unwrap_or(0);
        let mut sums = vec![0.0; self.counts.len()];
        for lane in 0..LANES {
            let weight = ((ln_laws[lane] - ln_laws[best]) / SPREAD).exp();
            let names = self.names(problem, lane, best);
            let cells = self.counts.chunks_exact(names.len());
            for (sums, counts) in sums.chunks_exact_mut(names.len()).zip(cells) {
                for (&name, counts) in names.iter().zip(counts) {
                    sums[name] += weight * counts[lane];
                }
            }
        }
        sums
    }

    /// Names of the states of one chain in another, where hidden values may be renamed.
    fn names(&self, problem: &Problem, lane: usize, other: usize) -> Vec<usize> {
        let mut names: Vec<usize> = (0..problem.plan.n_states).collect();
        for &(node, stride, size) in problem.plan.cliques[0].digits() {
            if lane == other || !problem.renames(node) {
                continue;
            }
            let value = |state: usize| state / stride % size;
            let names_of_values =
                matched(&self.overlaps(problem, [lane, other], value, size), size);
            for (state, name) in names.iter_mut().enumerate() {
                *name = *name + names_of_values[value(state)] * stride - value(state) * stride;
            }
        }
        names
    }

    /// Σ over cells of the tokens that one chain gives a value and the other another, were they
    /// independent.
    fn overlaps(
        &self,
        problem: &Problem,
        lanes: [usize; 2],
        value: impl Fn(usize) -> usize,
        size: usize,
    ) -> Vec<f64> {
        let mut overlaps = vec![0.0; size * size];
        let cells = self.counts.chunks_exact(problem.plan.n_states);
        for (counts, &n_tokens) in cells.zip(&problem.counts) {
            let tallied = lanes.map(|lane| {
                let mut tallied = vec![0.0; size];
                let states = counts.iter().enumerate();
                states.for_each(|(state, counts)| tallied[value(state)] += counts[lane]);
                tallied
            });
            for (own, overlaps) in tallied[0].iter().zip(overlaps.chunks_exact_mut(size)) {
                let others = overlaps.iter_mut().zip(&tallied[1]);
                others.for_each(|(overlap, n)| *overlap += own * n / n_tokens as f64);
            }
        }
        overlaps
    }
}

/// A name for every value: pairs of the greatest overlap first.
fn matched(overlaps: &[f64], size: usize) -> Vec<usize> {
    let mut pairs: Vec<usize> = (0..overlaps.len()).collect();
    pairs.sort_by(|&x, &y| overlaps[y].total_cmp(&overlaps[x]));
    let (mut names, mut taken) = (vec![None; size], vec![false; size]);
    for pair in pairs {
        let (value, name) = (pair / size, pair % size);
        if names[value].is_none() && !taken[name] {
            names[value] = Some(name);
            taken[name] = true;
        }
    }
    names.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::model::examples::{FIVE_CELLS, table_under};

    /// Chains that differ by names alone average to any of them: two hidden nodes of 2 and 3
    /// values.
    #[test]
    fn chains_are_averaged_under_the_names_of_one() {
        let parents: &[&[usize]] = &[&[2], &[3], &[], &[2]];
        let cells: (&[i64], &[i64]) = (&FIVE_CELLS, &[7, 9, 8, 9, 7]);
        let problem = table_under((&[3, 3, 2, 3], parents), &[], 1.0, cells);
        let n_states = problem.plan.n_states;
        assert_eq!((problem.n_cliques(), n_states), (1, 6));
        let digits = problem.plan.cliques[0].digits();
        let of_best: Vec<f64> = (0..5 * n_states).map(|n| (n * n * 7 % 31) as f64).collect();
        let mut counts = vec![[0.0; LANES]; of_best.len()];
        for (index, &count) in of_best.iter().enumerate() {
            let (cell, state) = (index / n_states, index % n_states);
            (0..LANES).for_each(|lane| {
                let renamed = |&(_, stride, size): &(usize, usize, usize)| {
                    (state / stride % size + lane) % size * stride
                };
                let name: usize = digits.iter().map(renamed).sum();
                counts[cell * n_states + name][lane] = count;
            });
        }
        let mut ln_laws = [-1.0; LANES];
        ln_laws[0] = 0.0;
        let weight = 1.0 + 15.0 * (-1.0 / SPREAD).exp();
        let average = StateTallies { counts, ln_laws }.average(&problem);
        for (found, expected) in average.iter().zip(of_best) {
            assert!((found - weight * expected).abs() < 1e-9, "{found} {expected}");
        }
    }
}

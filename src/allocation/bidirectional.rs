//! Annealing from both sides, on data whose allocation is known (Grosse et al. 2015).

use std::collections::{BTreeMap, HashMap};

use rand::RngExt as _;
use rayon::prelude::*;

use super::kernel::counts::States;
use super::memory::Load;
use super::model::network::Network;
use super::model::problem::Problem;
use super::tempering::{PowerPath, joined, nearest_path};
use crate::control::Observer;
use crate::counts::CountTensor;
use crate::error::Result;
use crate::estimate::Estimate;
use crate::math::{LogSum, pick};
use crate::rng::{Key, LANES, Lanes, Purpose, Rng};
use crate::temper::annealing::{ln_sums, ln_sums_reversed};
use crate::temper::annealing_schedule;
use crate::urn::SweepOrder;

/// Gibbs sweeps that make the chains forget that they start from one allocation.
const FORGETTING_SWEEPS: usize = 50;

/// Estimates of ln Pr(X | T) that are low, and high, in expectation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BidirectionalBounds {
    /// The mean of annealing forwards.
    pub lower: Estimate,
    /// The mean of annealing backwards.
    pub upper: Estimate,
}

/// Draws a tensor of `total` tokens from the urn of the network, and anneals from both sides along the
/// path of tempering: forwards `n_chains` from its reference, backwards from the allocation drawn.
///
/// # Errors
/// The errors of [`Problem::new`]; a product out of range; memory that is too small; a stop when the
/// observer asks to stop.
pub fn bidirectional_bounds(
    network: &Network,
    total: u64,
    n_chains: usize,
    n_temperatures: usize,
    n_replicates: usize,
    seed: u64,
    observer: &dyn Observer,
) -> Result<BidirectionalBounds> {
    let axes = network.axes();
    let shape: Vec<usize> = axes.iter().map(|&node| network.sizes()[node]).collect();
    let empty = Problem::new(network, &CountTensor::new(shape.clone(), &[], &[])?, None)?;
    let n_held = total.saturating_mul(empty.n_cliques() as u64);
    Load { n_tokens: total, n_held, n_chains: LANES, ..empty.load() }.check(n_replicates)?;
    let key = Key::new(seed, Purpose::Score);
    let mut tokens = simulate(network, total, &mut key.unit(0).rng(), observer)?;
    let cell = |token: &[u32]| -> Vec<u32> { axes.iter().map(|&node| token[node]).collect() };
    tokens.sort_by_key(|token| cell(token));
    let mut cells: BTreeMap<Vec<u32>, i64> = BTreeMap::new();
    tokens.iter().for_each(|token| *cells.entry(cell(token)).or_default() += 1);
    let coordinates: Vec<i64> = cells.keys().flatten().map(|&i| i64::from(i)).collect();
    let counts: Vec<i64> = cells.into_values().collect();
    let data = CountTensor::new(shape, &coordinates, &counts)?;
    let problem = Problem::new(network, &data, None)?;
    problem.check_range()?;
    let joined = joined(&problem);
    let problem = joined.as_ref().unwrap_or(&problem);
    let states = tokens.iter().flat_map(|token| problem.states_of(token));
    let states: Vec<States> = states.map(|state| [state; LANES]).collect();

    let path = nearest_path(problem, key.unit(1), observer)?;
    let betas = annealing_schedule(&path, n_temperatures, key.unit(2), observer)?;
    let both = Sides { path: &path, betas: &betas, states: &states, observer };
    let n_groups = n_chains.div_ceil(LANES) as u64;
    let replicate = |replicate: u64| {
        let key = key.unit(3).unit(replicate);
        let found = (both.forward(n_groups, key.unit(0))?, both.backward(key.unit(1))?);
        observer.advance(1);
        Ok(found)
    };
    let found: Result<Vec<(f64, f64)>> =
        (0..n_replicates as u64).into_par_iter().map(replicate).collect();
    let (forward, backward): (Vec<f64>, Vec<f64>) = found?.into_iter().unzip();
    let constant = problem.ln_constant();
    let upper = Estimate::from_replicates(&backward, LANES * n_replicates);
    Ok(BidirectionalBounds {
        lower: Estimate::from_replicates(&forward, n_chains * n_replicates).scaled(constant),
        upper: Estimate { ln_value: -upper.ln_value + constant, ..upper },
    })
}

/// A path, its temperatures, and a draw of the distribution at its end, in all lanes.
struct Sides<'a> {
    path: &'a PowerPath<'a>,
    betas: &'a [f64],
    states: &'a [States],
    observer: &'a dyn Observer,
}

impl Sides<'_> {
    /// ln of the mean of Ẑ over all chains.
    fn forward(&self, n_groups: u64, key: Key) -> Result<f64> {
        let group = |group| {
            let mut rng = key.unit(group).rng();
            Ok(ln_sums(&self.path, self.betas, &mut rng, self.observer)?.0)
        };
        let groups: Result<Vec<Lanes>> = (0..n_groups).map(group).collect();
        Ok(groups?.into_iter().flatten().collect::<LogSum>().ln_mean())
    }

    /// ln of the mean of 1/Ẑ over chains that share their start: only replicates tell the error.
    fn backward(&self, key: Key) -> Result<f64> {
        let mut chains = self.path.chains_of(self.states, &mut key.rng())?;
        for _ in 0..FORGETTING_SWEEPS {
            chains.sweep([1.0; LANES], SweepOrder::Forward, self.observer)?;
        }
        let ln_values = ln_sums_reversed::<Rng, _>(&self.path, self.betas, chains, self.observer)?;
        Ok(ln_values.into_iter().map(|ln_value| -ln_value).collect::<LogSum>().ln_mean())
    }
}

/// Values of all nodes of tokens drawn one by one from the urn.
fn simulate(
    network: &Network,
    total: u64,
    rng: &mut Rng,
    observer: &dyn Observer,
) -> Result<Vec<Vec<u32>>> {
    let order = network.order();
    let sizes = network.sizes();
    // Tokens so far by table, values of the parents, and value of the child.
    let mut drawn: HashMap<(usize, Vec<u32>), Vec<f64>> = HashMap::new();
    let mut tokens = Vec::new();
    for _ in 0..total {
        observer.check_stop()?;
        let mut token = vec![0; sizes.len()];
        for &node in &order {
            let table = network.tables().iter().position(|table| table.contains(&node));
            let table = table.unwrap_or(node);
            let alpha = network.table_alpha(&network.tables()[table]);
            let parents = network.family(node)[1..].iter().map(|&parent| token[parent]).collect();
            let weights = drawn.entry((table, parents)).or_insert_with(|| vec![alpha; sizes[node]]);
            let dart = rng.random::<f64>() * weights.iter().sum::<f64>();
            let value = pick(weights.iter().copied(), dart).unwrap_or(0);
            weights[value] += 1.0;
            token[node] = value as u32;
        }
        tokens.push(token);
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::exact::enumeration;
    use crate::allocation::model::examples::{CHAIN, FIVE_CELLS, MIXTURE, table_under};
    use crate::temper::LadderTarget as _;

    const N: u64 = 400;

    /// A table of few tokens under a network whose nodes `0` and `1` are visible.
    fn problem(sizes: &[usize], parents: &[&[usize]], counts: [i64; 5]) -> Problem {
        table_under((sizes, parents), &[], 0.7, (&FIVE_CELLS, &counts))
    }

    /// A mixture; a core of two hidden nodes; a chain of two, which are summed out apart; and a
    /// mixture with a cell whose tokens are redrawn together.
    fn problems() -> [Problem; 4] {
        let counts = [3, 1, 2, 1, 2];
        [
            problem(&[3, 3, 3], MIXTURE, counts),
            problem(&[3, 3, 2, 2], &[&[2], &[3], &[], &[2]], counts),
            problem(&[3, 3, 2, 3], CHAIN, counts),
            problem(&[3, 3, 2], MIXTURE, [33, 1, 2, 1, 2]),
        ]
    }

    /// Ẑ forwards, and 1/Ẑ backwards from chains that a long run has taken to the distribution,
    /// have the means that they should. Few temperatures: a kernel that is not reversed would be
    /// seen.
    #[test]
    fn both_sides_are_unbiased() {
        for (index, problem) in problems().iter().enumerate() {
            let has_heavy = problem.counts.iter().any(|&count| problem.is_heavy(count));
            assert_eq!(has_heavy, index == 3);
            let ln_truth = enumeration::ln_sum(problem, 1e8, &()).unwrap();
            let key = Key::new(index as u64, Purpose::Score);
            let path = nearest_path(problem, key.unit(0), &()).unwrap();
            let betas = annealing_schedule(&path, 6, key.unit(1), &()).unwrap();
            let run = |unit| {
                let key = key.unit(2).unit(unit);
                let forward = ln_sums(&&path, &betas, &mut key.unit(0).rng(), &()).unwrap().0;
                let mut chains = path.chains(&mut key.unit(1).rng(), &()).unwrap();
                let sweep = |_| chains.sweep([1.0; LANES], SweepOrder::Forward, &()).unwrap();
                (0..200).for_each(sweep);
                let backward = ln_sums_reversed::<Rng, _>(&&path, &betas, chains, &()).unwrap();
                let mean = |x: Lanes| x.into_iter().collect::<LogSum>().ln_mean();
                [mean(forward) - ln_truth, mean(backward.map(|x| -x)) + ln_truth]
            };
            let found: Vec<[f64; 2]> = (0..N).into_par_iter().map(run).collect();
            for side in 0..2 {
                let ratios: LogSum = found.iter().map(|both| both[side]).collect();
                let (mean, error) = (ratios.ln_mean().exp(), ratios.std_error());
                assert!((mean - 1.0).abs() < 4.0 * error * mean, "{index} {side}: {mean} {error}");
                assert!(error < 0.1, "{index} {side}: {error}");
            }
        }
    }
}

//! Annealing from both sides, on data whose allocation is known (Grosse et al. 2015).

use std::collections::{BTreeMap, HashMap};

use rand::RngExt as _;

use super::chains::Annealing;
use crate::allocation::kernel::chains::Chains;
use crate::allocation::kernel::counts::{States, Target};
use crate::allocation::memory::Load;
use crate::allocation::model::network::Network;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::counts::CountTensor;
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::math::{LogSum, pick};
use crate::rng::{Key, LANES, Purpose, Rng};
use crate::urn::Order;

/// Gibbs sweeps that make the chains forget that they start from one allocation.
const FORGETTING_SWEEPS: usize = 50;

/// Estimates of ln Pr(X | T) that are low, and high, in expectation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sandwich {
    /// By annealing forwards.
    pub lower: Estimate,
    /// By annealing backwards.
    pub upper: Estimate,
}

/// Draws a tensor of `total` tokens from the urn of the network, and anneals from both sides: forwards
/// by a population of `n_chains`, backwards from the allocation drawn.
///
/// # Errors
/// Those of [`Problem::new`]; [`Error::Range`]; [`Error::SamplerMemory`]; [`Error::Stopped`] when the
/// observer asks to stop.
pub fn sandwich(
    network: &Network,
    total: u64,
    n_chains: usize,
    n_temperatures: usize,
    n_replicates: usize,
    seed: u64,
    observer: &impl Observer,
) -> Result<Sandwich> {
    let axes = network.axes();
    let shape: Vec<usize> = axes.iter().map(|&node| network.sizes()[node]).collect();
    let empty = Problem::new(network, &CountTensor::new(shape.clone(), &[], &[])?, None)?;
    Load { n_tokens: total, ..Annealing::load(&empty, n_chains) }.check(1)?;
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
    let constant = problem.ln_visible + problem.ln_arrangements;
    let states = tokens.iter().flat_map(|token| problem.states_of(token));
    let states: Vec<States> = states.map(|state| [state; LANES]).collect();

    let annealing = Annealing::new(&problem, n_temperatures, key.unit(1), observer)?;
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    let alphas = problem.alphas();
    for replicate in 0..n_replicates as u64 {
        let key = key.unit(2).unit(replicate);
        forward.push(annealing.ln_sum(n_chains.div_ceil(LANES), key.unit(0), observer)?);
        let mut rng = key.rng();
        let mut chains = Chains::of_states(&problem, &states, &mut rng)?;
        for _ in 0..FORGETTING_SWEEPS {
            chains.sweep(Target { base: &alphas, unit: 1.0 }, Order::Forward, observer)?;
        }
        // The chains of a replicate share their start: only replicates tell the error.
        let ln_values = annealing.ln_sums_reversed(chains, key.unit(1), observer)?;
        let inverses = ln_values.map(|ln_value| -ln_value);
        backward.push(inverses.into_iter().collect::<LogSum>().ln_mean());
        observer.advance(1);
    }
    let upper = Estimate::from_replicates(&backward, LANES * n_replicates);
    Ok(Sandwich {
        lower: Estimate::from_replicates(&forward, n_chains * n_replicates).scaled(constant),
        upper: Estimate { ln_value: -upper.ln_value + constant, ..upper },
    })
}

/// Values of all nodes of tokens drawn one by one from the urn.
fn simulate(
    network: &Network,
    total: u64,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Vec<Vec<u32>>> {
    let order = network.order();
    let sizes = network.sizes();
    // Tokens so far by table, values of the parents, and value of the child.
    let mut drawn: HashMap<(usize, Vec<u32>), Vec<f64>> = HashMap::new();
    let mut tokens = Vec::new();
    for _ in 0..total {
        if observer.stopped() {
            return Err(Error::Stopped);
        }
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

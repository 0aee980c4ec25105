//! Draws from the posterior of allocations: by tempering, whose chains change modes, or the particles
//! of smc.

use super::evidence::{
    EvidenceMethod, EvidenceSampler, EvidenceSettings, check_memory, filter_key, round_plan,
    tempered_load,
};
use super::kernel::tempered::GroupedAllocation;
use super::memory::Load;
use super::model::network::{Margin, Network};
use super::model::plan::EliminationPlan;
use super::model::problem::Problem;
use super::particles::smc;
use super::tempering;
use crate::control::Observer;
use crate::counts::{CountTensor, UNKNOWN};
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::rng::{Key, LANES, Purpose};
use crate::temper::{TemperingOutcome, TemperingRun};

/// Allocations drawn from their posterior, given the data.
#[derive(Debug, Clone, PartialEq)]
pub struct Posterior {
    /// Rounds of the tempering that drew them; none where nothing is hidden.
    pub tempering: Option<TemperingOutcome>,
    /// The evidence by the particles that are the draws, where it is not tempering that drew them.
    pub particles: Option<Estimate>,
    /// Nodes that tokens are summed over, hidden ones and those that some tokens do not show, in the order
    /// of their values in a [`Draw`].
    pub hidden: Vec<usize>,
    /// Draws, replicate after replicate.
    pub draws: Vec<Draw>,
}

/// One allocation.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// Replicate that it comes from: draws of one are from the same ladder, and correlated.
    pub replicate: usize,
    /// ln π(S | T), which is ln Pr(X, S | T): of the numbers S, whichever tokens they are.
    pub ln_law: f64,
    /// Groups of all tokens that share a cell of the data and hidden values: the cell, and S, their
    /// number.
    pub groups: Vec<(u32, u32)>,
    /// Values of these nodes, group after group; [`UNKNOWN`] for those that a token is not summed over.
    pub values: Vec<u32>,
}

impl Draw {
    /// Counts of all tables, (child, parents...) in row-major order, tied nodes together.
    pub fn counts(&self, network: &Network, data: &CountTensor, hidden: &[usize]) -> Vec<Vec<f64>> {
        let families = network.families();
        let whole = |family: &Margin| vec![0.0; family.shape.iter().product()];
        let mut counts: Vec<Vec<f64>> = families.iter().map(whole).collect();
        let cells: Vec<&[u32]> = data.cells().map(|(cell, _)| cell).collect();
        let mut token = vec![0; network.sizes().len()];
        for (nth, &(cell, n)) in self.groups.iter().enumerate() {
            token.fill(UNKNOWN as usize);
            for (&node, &value) in network.axes().iter().zip(cells[cell as usize]) {
                token[node] = value as usize;
            }
            let summed = hidden.iter().zip(&self.values[nth * hidden.len()..]);
            for (&node, &value) in summed.filter(|(_, value)| **value != UNKNOWN) {
                token[node] = value as usize;
            }
            for (family, counts) in families.iter().zip(&mut counts) {
                let is_known =
                    |slot: &&Vec<usize>| slot.iter().all(|&node| token[node] != UNKNOWN as usize);
                for slot in family.slots.iter().filter(is_known) {
                    let places = slot.iter().zip(&family.shape);
                    let place = places.fold(0, |place, (&node, size)| place * size + token[node]);
                    counts[place] += f64::from(n);
                }
            }
        }
        counts
    }
}

/// Draws `n_draws` allocations, or more by less than there are replicates, from the last round of a
/// tempering with these settings. A stop after the first round keeps what has been drawn, of all
/// replicates as many. Where the method is smc, `n_draws` of its particles.
///
/// # Errors
/// Those of [`evidence`](super::evidence()) by tempering; [`Error::SamplerMemory`](crate::Error::SamplerMemory) for more draws than
/// memory holds, before any work.
pub fn posterior(
    problem: &Problem,
    settings: &EvidenceSettings,
    n_draws: usize,
    seed: u64,
    observer: &impl Observer,
) -> Result<Posterior> {
    let joined = tempering::joined(problem);
    let laid = joined.as_ref().unwrap_or(problem);
    let hidden = laid.summed();
    let constant = problem.ln_visible + problem.ln_arrangements;
    let n_of_draw = n_of_draw(problem);
    let ln_only = if problem.n_tokens() == 0 { Some(0.0) } else { problem.ln_only_allocation() };
    if let Some(ln_sum) = ln_only {
        problem.check_total()?;
        Load { n_draws, n_of_draw, ..Load::default() }.check(1)?;
        let groups: Vec<_> =
            (0..).zip(&problem.counts).map(|(cell, &n)| (cell, n as u32)).collect();
        let values = groups.iter().flat_map(|&(cell, _)| {
            values(&hidden, laid.plan(cell), &vec![0; laid.plan(cell).cliques.len()])
        });
        let values = values.collect();
        let draw = Draw { replicate: 0, ln_law: ln_sum + constant, groups, values };
        let draws = vec![draw; n_draws];
        return Ok(Posterior { tempering: None, particles: None, hidden, draws });
    }
    problem.check_range()?;
    if settings.method == EvidenceMethod::Sample(EvidenceSampler::Smc) {
        return of_particles(problem, settings, n_draws, seed, observer);
    }
    let n_replicates = settings.n_replicates(EvidenceSampler::Tempered);
    let n_each = n_draws.div_ceil(n_replicates);
    let load = tempered_load(problem, n_replicates);
    Load { n_draws: n_each.saturating_mul(n_replicates), n_of_draw, ..load }.check(1)?;
    let mut plan = round_plan(problem, settings);
    // Rounds double: one of more than half the scans that are allowed is the longest.
    let longest = plan.max_scans.map_or(usize::MAX, |most| most / 2 + 1);
    plan.min_scans = plan.min_scans.max(n_each.min(longest));
    let key = Key::new(seed, Purpose::Score);
    let TemperingRun { outcome, draws: mut states, .. } =
        tempering::run(problem, plan, n_each, key, observer)?;
    // After a stop, some replicates have drawn more than others.
    let n_each = states.iter().map(Vec::len).min().unwrap_or(0);
    states.iter_mut().for_each(|states| states.truncate(n_each));
    let of_replicate = |(replicate, states): (usize, Vec<GroupedAllocation>)| {
        states.into_iter().map(move |state| (replicate, state))
    };
    let states = states.into_iter().enumerate().flat_map(of_replicate);
    let draws =
        states.map(|(replicate, state)| draw(problem, (laid, &hidden), replicate, state)).collect();
    Ok(Posterior { tempering: Some(outcome.raised(constant)), particles: None, hidden, draws })
}

/// The draw of an allocation whose hidden nodes are laid out in some problem.
fn draw(
    problem: &Problem,
    (laid, hidden): (&Problem, &[usize]),
    replicate: usize,
    allocated: GroupedAllocation,
) -> Draw {
    Draw {
        replicate,
        ln_law: allocated.ln_law + problem.ln_visible + problem.ln_orders(&allocated.groups),
        values: of_groups(laid, hidden, &allocated),
        groups: allocated.groups,
    }
}

/// Draws among the particles of runs of smc with moves, which tell the same evidence as those of
/// [`evidence`](super::evidence()) of one size. No two of them are known to be of one run.
fn of_particles(
    problem: &Problem,
    settings: &EvidenceSettings,
    n_draws: usize,
    seed: u64,
    observer: &impl Observer,
) -> Result<Posterior> {
    let sampler = EvidenceSampler::Smc;
    let (filter, n_replicates) = (settings.filter(sampler), settings.n_replicates(sampler));
    if filter.n_sweeps == 0 {
        return Err(Error::NoSampler);
    }
    problem.check_total()?;
    Load { n_draws, n_of_draw: n_of_draw(problem), ..problem.load() }.check(1)?;
    check_memory(problem, settings, (sampler, filter.n_particles * n_replicates), 1)?;
    let streams = (0..n_replicates).map(|replicate| filter_key(seed, false, replicate).rng());
    let (results, allocations) =
        smc::draws(problem, &filter, n_draws, streams.collect(), observer)?;
    let constant = problem.ln_visible + problem.ln_arrangements;
    let estimate = Estimate::from_runs(&results, filter.n_groups() * LANES * n_replicates);
    let hidden = problem.summed();
    let draws =
        allocations.into_iter().map(|found| draw(problem, (problem, &hidden), 0, found)).collect();
    Ok(Posterior { tempering: None, particles: Some(estimate.scaled(constant)), hidden, draws })
}

/// Numbers of four bytes that a draw holds at most: groups with their hidden values, and V at the
/// rungs of a ladder in its scan.
fn n_of_draw(problem: &Problem) -> u64 {
    let joint = |plan: &EliminationPlan| {
        let sizes = plan.cliques.iter().map(|clique| clique.n_inner as u64);
        sizes.fold(1, u64::saturating_mul)
    };
    let n_joint = problem.plans().map(joint).max().unwrap_or(1);
    let n_hidden = problem.summed().len() as u64;
    let n_groups: u64 = problem.counts.iter().map(|&n| n.min(n_joint)).sum();
    n_groups * (2 + n_hidden) + 2 * LANES as u64
}

/// Values of the nodes that tokens are summed over, group after group.
fn of_groups(problem: &Problem, nodes: &[usize], allocated: &GroupedAllocation) -> Vec<u32> {
    let states = allocated.states.chunks_exact(problem.n_cliques());
    let groups = allocated.groups.iter().zip(states);
    groups.flat_map(|(&(cell, _), states)| values(nodes, problem.plan(cell), states)).collect()
}

/// Values of nodes in the states of all cliques; [`UNKNOWN`] for those that are not summed over.
fn values(nodes: &[usize], plan: &EliminationPlan, states: &[u32]) -> Vec<u32> {
    let value = |&node: &usize| {
        let mut cliques = plan.cliques.iter().zip(states);
        let value = cliques.find_map(|(clique, &state)| clique.value(node, state as usize));
        value.map_or(UNKNOWN, |value| value as u32)
    };
    nodes.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::allocation::evidence::EvidenceMethod;
    use crate::allocation::model::network::Prior;
    use crate::math::{ln_factorial, ln_rising, mean_and_error};

    /// ln of the law of an allocation of all tokens, by the counts of its tables.
    fn ln_law(network: &Network, counts: &[Vec<f64>]) -> f64 {
        let of_table = |(family, counts): (&Margin, &Vec<f64>)| {
            let n_parents = counts.len() / family.shape[0];
            let risings: f64 = counts.iter().map(|&n| ln_rising(family.alpha, n as u64)).sum();
            let whole = family.alpha * family.shape[0] as f64;
            let of_parent = |parent: usize| {
                let n: f64 = counts.iter().skip(parent).step_by(n_parents).sum();
                ln_rising(whole, n as u64)
            };
            risings - (0..n_parents).map(of_parent).sum::<f64>()
        };
        network.families().iter().zip(counts).map(of_table).sum()
    }

    /// ln T! - Σ ln S! of a draw.
    fn ln_orders(draw: &Draw) -> f64 {
        let n_tokens: u32 = draw.groups.iter().map(|group| group.1).sum();
        let ln_within = draw.groups.iter().map(|group| ln_factorial(u64::from(group.1)));
        ln_factorial(u64::from(n_tokens)) - ln_within.sum::<f64>()
    }

    /// A table of 5 tokens, and one with 33 tokens in a cell, whose tokens move together.
    fn tables() -> [CountTensor; 2] {
        let cells = [0, 0, 0, 1, 1, 1];
        [[3, 1, 1], [33, 1, 2]].map(|counts| CountTensor::new(vec![2, 2], &cells, &counts).unwrap())
    }

    /// All ways to give the groups of tokens of each cell their hidden values, with the ln of how
    /// many allocations of tokens each of them is.
    fn all_draws(data: &CountTensor, n_hidden: usize) -> Vec<(Draw, f64)> {
        let n_states = 1 << n_hidden;
        let mut all =
            vec![(Draw { replicate: 0, ln_law: 0.0, groups: vec![], values: vec![] }, 0.0)];
        for (cell, &count) in (0..).zip(data.counts()) {
            for state in 0..n_states {
                let is_last = state + 1 == n_states;
                let mut next = Vec::new();
                for (draw, ln_ways) in &all {
                    let of_cell = draw.groups.iter().filter(|group| group.0 == cell);
                    let left = count as u32 - of_cell.map(|group| group.1).sum::<u32>();
                    for n in if is_last { left..=left } else { 0..=left } {
                        let mut draw = draw.clone();
                        draw.groups.push((cell, n));
                        draw.values.extend((0..n_hidden).map(|node| state >> node & 1));
                        let [all, these, others] =
                            [left, n, left - n].map(|n| ln_factorial(u64::from(n)));
                        let ways = all - these - others;
                        next.push((draw, ln_ways + ways));
                    }
                }
                all = next;
            }
        }
        all
    }

    fn squares(counts: &[Vec<f64>]) -> f64 {
        counts.iter().flatten().map(|n| n * n).sum()
    }

    #[test]
    fn draws_have_the_probabilities_of_allocations() {
        let networks: [&[&[usize]]; 3] =
            [&[&[2], &[2], &[]], &[&[2], &[3], &[], &[2]], &[&[], &[3], &[0], &[2]]];
        for (index, parents) in networks.into_iter().enumerate() {
            let (n_nodes, parents) = (parents.len(), parents.iter().map(|of| of.to_vec()));
            let prior = Prior { concentration: 1.0, tables: None };
            let network =
                Network::new(vec![2; n_nodes], parents.collect(), vec![0, 1], &[], prior).unwrap();
            let hidden: Vec<usize> = (2..n_nodes).collect();
            for data in tables() {
                let problem = Problem::new(&network, &data, None).unwrap();
                let mut settings =
                    EvidenceSettings::new(EvidenceMethod::Sample(EvidenceSampler::Tempered));
                (settings.n_replicates, settings.n_samples) = (Some(8), Some(1024));
                settings.target_std_error = Some(1e-9);
                let found = posterior(&problem, &settings, 8 * 512, 1, &()).unwrap();
                assert_eq!(found.draws.len(), 8 * 512);
                let mut means = [0.0; 8];
                for draw in &found.draws {
                    let counts = draw.counts(&network, &data, &found.hidden);
                    let ln_law = ln_law(&network, &counts) + ln_orders(draw);
                    assert!((ln_law - draw.ln_law).abs() < 1e-9);
                    let values = draw.values.chunks_exact(found.hidden.len());
                    let groups = draw.groups.iter().map(|group| group.0).zip(values);
                    assert_eq!(groups.collect::<HashSet<_>>().len(), draw.groups.len());
                    means[draw.replicate] += squares(&counts) / 512.0;
                }
                let (mut total, mut weighted) = (0.0, 0.0);
                for (draw, ln_ways) in all_draws(&data, hidden.len()) {
                    let counts = draw.counts(&network, &data, &hidden);
                    let weight = (ln_law(&network, &counts) + ln_ways).exp();
                    total += weight;
                    weighted += weight * squares(&counts);
                }
                let exact = weighted / total;
                let (mean, error) = mean_and_error(&means);
                assert!((mean - exact).abs() < 4.0 * error, "{index}: {mean} {exact} {error}");
                assert!(error < 0.02 * exact, "{index}: {error} of {exact}");
            }
        }
    }
}

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
use crate::error::{Error, Result, check_length};
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
    /// The evidence under each of the other priors.
    pub others: Vec<Estimate>,
    /// Nodes that tokens are summed over, hidden ones and those that some tokens do not show, in
    /// the order of their values in a [`Draw`].
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
/// replicates as many. Where the method is smc, `n_draws` of its particles; these tell the evidence of
/// `others`, too, which are the same network and data under other priors.
///
/// # Errors
/// [`Error::NoSampler`] for other priors beside tempering; [`Error::Length`] for other data or
/// networks; The errors of [`evidence`](super::evidence()) by tempering;
/// [`Error::SamplerMemory`](crate::Error::SamplerMemory) for more draws than memory holds, before
/// any work.
pub fn posterior(
    problem: &Problem,
    others: &[&Problem],
    settings: &EvidenceSettings,
    n_draws: usize,
    seed: u64,
    observer: &dyn Observer,
) -> Result<Posterior> {
    let n_alike = others.iter().filter(|other| problem.has_states_of(other)).count();
    check_length("problems that differ by their priors", n_alike, others.len())?;
    let joined = tempering::joined(problem);
    let laid = joined.as_ref().unwrap_or(problem);
    let hidden = laid.summed();
    let n_of_draw = n_of_draw(problem);
    let ln_only = |problem: &Problem| {
        let ln_sum = if problem.n_tokens() == 0 { Some(0.0) } else { problem.ln_only_allocation() };
        ln_sum.map(|ln_sum| ln_sum + problem.ln_constant())
    };
    if let Some(ln_law) = ln_only(problem) {
        problem.check_total()?;
        Load { n_draws, n_of_draw, ..Load::default() }.check(1)?;
        let groups: Vec<_> =
            (0..).zip(&problem.counts).map(|(cell, &n)| (cell, n as u32)).collect();
        let values = groups.iter().flat_map(|&(cell, _)| {
            values(&hidden, laid.plan(cell), &vec![0; laid.plan(cell).cliques.len()])
        });
        let values = values.collect();
        let draws = vec![Draw { replicate: 0, ln_law, groups, values }; n_draws];
        let others = others.iter().filter_map(|other| ln_only(other)).map(Estimate::exact);
        let others = others.collect();
        return Ok(Posterior { tempering: None, particles: None, others, hidden, draws });
    }
    problem.check_range()?;
    if settings.method == EvidenceMethod::Sample(EvidenceSampler::Smc) {
        return draw_particles((problem, others), settings, n_draws, seed, observer);
    }
    if !others.is_empty() {
        return Err(Error::NoSampler);
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
    let tempering = Some(outcome.raised(problem.ln_constant()));
    Ok(Posterior { tempering, particles: None, others: Vec::new(), hidden, draws })
}

/// The draw of an allocation whose hidden nodes are laid out in some problem.
fn draw(
    problem: &Problem,
    (laid, hidden): (&Problem, &[usize]),
    replicate: usize,
    allocated: GroupedAllocation,
) -> Draw {
    let states = allocated.states.chunks_exact(laid.n_cliques());
    let groups = allocated.groups.iter().zip(states);
    let of_group = |(&(cell, _), states): (&(u32, u32), _)| values(hidden, laid.plan(cell), states);
    Draw {
        replicate,
        ln_law: allocated.ln_law + problem.ln_visible + problem.ln_orders(&allocated.groups),
        values: groups.flat_map(of_group).collect(),
        groups: allocated.groups,
    }
}

/// Draws among the particles of runs of smc with moves, which tell the same evidence as those of
/// [`evidence`](super::evidence()) of one size, and that under other priors. No two of them are
/// known to be of one run.
fn draw_particles(
    (problem, others): (&Problem, &[&Problem]),
    settings: &EvidenceSettings,
    n_draws: usize,
    seed: u64,
    observer: &dyn Observer,
) -> Result<Posterior> {
    let (filter, n_replicates) = (settings.filter(), settings.n_replicates(EvidenceSampler::Smc));
    if filter.n_sweeps == 0 {
        return Err(Error::NoSampler);
    }
    problem.check_total()?;
    Load { n_draws, n_of_draw: n_of_draw(problem), ..problem.load() }.check(1)?;
    check_memory(problem, settings, filter.n_particles * n_replicates, 1)?;
    let streams = (0..n_replicates).map(|replicate| filter_key(seed, false, replicate).rng());
    let (results, allocations) =
        smc::draws((problem, others), &filter, n_draws, streams.collect(), observer)?;
    let n_particles = filter.n_groups() * LANES * n_replicates;
    let mut estimates = std::iter::once(&problem)
        .chain(others)
        .zip(&results)
        .map(|(under, runs)| Estimate::from_runs(runs, n_particles).scaled(under.ln_constant()));
    let particles = estimates.next();
    let others = estimates.collect();
    let hidden = problem.summed();
    let draws =
        allocations.into_iter().map(|found| draw(problem, (problem, &hidden), 0, found)).collect();
    Ok(Posterior { tempering: None, particles, others, hidden, draws })
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

/// Values of nodes in the states of all cliques; [`UNKNOWN`] for those that are not summed over.
fn values(nodes: &[usize], plan: &EliminationPlan, states: &[u32]) -> Vec<u32> {
    let value = |&node: &usize| {
        let mut cliques = plan.cliques.iter().zip(states);
        let value = cliques.find_map(|(clique, &state)| clique.value(node, state as usize));
        value.map_or(UNKNOWN, |value| value as u32)
    };
    nodes.iter().map(value).collect()
}

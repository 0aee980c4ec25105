//! Evidence by parallel tempering of collapsed chains on the power path.
//!
//! The constants of this room are those with which `benches/evidence.py` made its records.

mod paths;
mod references;

pub(super) use paths::PowerPath;
use references::nearest;
pub(super) use references::nearest_path;

use super::kernel::tempered::GroupedAllocation;
use super::kernel::urns::ReferenceUrns;
use super::model::problem::Problem;
use crate::control::Observer;
use crate::error::Result;
use crate::rng::{Key, LANES};
use crate::temper::{LadderPart, RoundPlan, RoundResult, TemperingRun, temper};

/// Scans of the first round that may be the last.
pub(crate) const LEAST_SCANS: usize = 128;

/// Bytes that all ladders share: a constant, so that results are those of any machine.
const LADDER_BYTES: usize = 1 << 32;

/// Chains of a ladder at most.
const MOST_CHAINS: usize = 1024;

/// Chains that each of so many ladders may have: a chain holds states, counts and their powers.
pub(crate) fn max_chains(problem: &Problem, n_ladders: usize) -> usize {
    let tokens = 4 * problem.n_held() as usize;
    let chain = tokens + 12 * problem.n_rows;
    let n_groups = LADDER_BYTES / (n_ladders * LANES * chain).max(1);
    (n_groups.max(1) * LANES).min(MOST_CHAINS)
}

/// Joint states up to which hidden nodes in several cliques are drawn together, which is a choice:
/// every token weighs all of them. Beyond, nodes are drawn apart, from independent tokens as a
/// reference.
const WORTH_JOINING: usize = 256;

/// The problem with all hidden nodes in one clique, where they are in several and tokens pile up in
/// cells: such tokens move together, and have urns as a reference.
pub(crate) fn joined(problem: &Problem) -> Option<Problem> {
    let is_apart = problem.is_uniform()
        && problem.plan.cliques.len() > 1
        && problem.counts.iter().any(|&n| n > 1);
    let plan = if is_apart { problem.plan.joined(WORTH_JOINING)? } else { return None };
    let mut joined = problem.clone();
    joined.plan = plan;
    Some(joined)
}

/// Rounds of tempering over the allocations of all tokens, and up to `n_draws` draws from them by each
/// replicate.
pub(crate) fn run(
    problem: &Problem,
    plan: RoundPlan,
    n_draws: usize,
    key: Key,
    observer: &dyn Observer,
) -> Result<TemperingRun<GroupedAllocation>> {
    let joined = joined(problem);
    let path = nearest_path(joined.as_ref().unwrap_or(problem), key.unit(0), observer)?;
    temper(&path, plan, n_draws, key.unit(1), observer)
}

/// κ of the reference of [`run`], which all of its ladders share.
pub(crate) fn reference(problem: &Problem, key: Key, observer: &dyn Observer) -> Result<f64> {
    let joined = joined(problem);
    nearest(joined.as_ref().unwrap_or(problem), key.unit(0), observer)
}

/// Part of a round of a ladder of [`run`], whose reference has this κ.
pub(crate) fn run_part(
    problem: &Problem,
    kappa: f64,
    plan: RoundPlan,
    part: LadderPart<'_>,
    key: Key,
    observer: &dyn Observer,
) -> Result<(Vec<u8>, Option<RoundResult>)> {
    let joined = joined(problem);
    let path = PowerPath::with(joined.as_ref().unwrap_or(problem), ReferenceUrns::per_cell(kappa));
    part.run(&path, plan, key.unit(1), observer)
}

/// Cost of a sweep of chains of [`run`] in lockstep, in draws of one number.
pub(crate) fn sweep_cost(problem: &Problem) -> f64 {
    let joined = joined(problem);
    paths::sweep_cost(joined.as_ref().unwrap_or(problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::exact::enumeration;
    use crate::allocation::model::examples::{CHAIN, FIVE_CELLS, MIXTURE, table_under};
    use crate::rng::Purpose;
    use crate::temper::TemperingOutcome;

    /// A table under a network whose nodes `0` and `1` are visible.
    fn problem(
        sizes: &[usize],
        parents: &[&[usize]],
        ties: &[Vec<usize>],
        concentration: f64,
        counts: &[i64],
    ) -> Problem {
        let cells = &FIVE_CELLS[..2 * counts.len()];
        table_under((sizes, parents), ties, concentration, (cells, counts))
    }

    /// Mixtures with light cells and with heavy ones; a core of two hidden nodes, whose states share
    /// rows; two axes with one table; and a chain of two hidden nodes that are summed out apart.
    fn problems() -> [Problem; 5] {
        let (light, heavy) = ([3, 1, 2, 1, 2], [41, 1, 34, 1, 2]);
        [
            problem(&[3, 3, 3], MIXTURE, &[], 0.5, &light),
            problem(&[3, 3, 2], MIXTURE, &[], 0.5, &heavy),
            problem(&[3, 3, 2, 2], &[&[2], &[3], &[], &[2]], &[], 1.0, &[36, 1, 2]),
            problem(&[3, 3, 2], MIXTURE, &[vec![0, 1]], 1.0, &[35, 2, 3, 1]),
            problem(&[3, 3, 2, 3], CHAIN, &[], 1.0, &light),
        ]
    }

    const PLAN: RoundPlan = RoundPlan {
        n_replicates: 4,
        target_std_error: 0.0,
        min_scans: LEAST_SCANS,
        max_scans: Some(1024),
        max_chains: 64,
    };

    fn check(found: &TemperingOutcome, exact: f64, case: impl std::fmt::Debug) {
        let (gap, error) = (found.ln_value() - exact, found.std_error());
        assert!(gap.abs() < 4.0 * error, "{case:?}: {gap} {error}");
        assert!(error < 0.2, "{case:?}: {error}");
        assert!(found.n_trips() > 10, "{case:?}: {}", found.n_trips());
    }

    #[test]
    fn every_reference_leads_to_the_evidence() {
        for (index, problem) in problems().iter().enumerate() {
            let exact = enumeration::ln_sum(problem, 1e8, &()).unwrap();
            let joined = joined(problem);
            let problem = joined.as_ref().unwrap_or(problem);
            assert!(problem.is_joint());
            for urns in
                [ReferenceUrns::per_cell(5.0), ReferenceUrns { kappa: 2.0, is_shared: true }]
            {
                let target = PowerPath::with(problem, urns);
                let key = Key::new(1, Purpose::Score);
                let found = temper(&target, PLAN, 0, key, &()).unwrap().outcome;
                check(&found, exact, (index, urns));
            }
        }
    }
}

//! When tempering ends: rounds of doubling length, until sides, rounds and replicates agree.

use super::ladder::RoundResult;
use super::outcome::TemperingOutcome;
use crate::rng::LANES;

/// Accuracy and effort that are asked of tempering.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundPlan {
    /// Independent ladders, at least two.
    pub n_replicates: usize,
    /// Standard error at which no more rounds are run.
    pub target_std_error: f64,
    /// Scans of the first round that may be the last: shorter ones are part of the start.
    pub min_scans: usize,
    /// Scans of the longest round; by their cost where it is not given.
    pub max_scans: Option<usize>,
    /// Largest number of chains of a ladder.
    pub max_chains: usize,
}

/// Scans of the first round.
const FIRST_SCANS: usize = 8;

/// Scans of a round that are run whatever they cost.
const ANY_COST_SCANS: usize = 512;

/// Rounds that are run for round trips where all else agrees, and the cost of all rounds, in draws of
/// one number, up to which more of them are: some seconds.
const EXTRA_ROUNDS: usize = 1;
const EXTRA_COST: f64 = 5e9;

/// Cost of all rounds, in draws of one number, beyond which no longer round is begun.
const BUDGET: f64 = 4e10;

/// Rounds so far, and whether there is another one.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundSchedule {
    /// Estimates of the rounds.
    pub outcome: TemperingOutcome,
    /// Scans of the next round, if there is one.
    pub next_scans: Option<usize>,
    plan: RoundPlan,
    sweep_cost: f64,
    n_agreed: usize,
}

impl RoundSchedule {
    /// Before the first round of a target whose chains cost `sweep_cost`.
    pub fn new(plan: RoundPlan, sweep_cost: f64) -> Self {
        let (outcome, next_scans) = (TemperingOutcome::default(), Some(FIRST_SCANS));
        RoundSchedule { outcome, next_scans, plan, sweep_cost, n_agreed: 0 }
    }

    /// Adds the next round, by the results of all ladders, and decides whether it is the last.
    pub fn add(&mut self, results: &[RoundResult]) {
        let Some(n_scans) = self.next_scans else { return };
        let (outcome, plan) = (&mut self.outcome, &self.plan);
        outcome.add(results, n_scans);
        let enough = n_scans >= plan.min_scans.min(plan.max_scans.unwrap_or(usize::MAX));
        let agrees = enough && outcome.std_error() <= plan.target_std_error;
        outcome.converged = agrees && outcome.has_round_trips();
        self.n_agreed += usize::from(agrees);
        let next = 2 * n_scans;
        // All rounds together are twice as long as the last.
        let goes_on = if let Some(most) = plan.max_scans {
            next <= most
        } else {
            let n_groups: usize = results.iter().map(|ladder| ladder.betas.len() / LANES).sum();
            let cost = 2.0 * next as f64 * n_groups as f64 * self.sweep_cost;
            let is_affordable = next <= ANY_COST_SCANS || cost <= BUDGET;
            let is_worth_it = self.n_agreed <= EXTRA_ROUNDS || cost <= EXTRA_COST;
            n_scans < plan.min_scans || is_worth_it && is_affordable
        };
        self.next_scans = (goes_on && !outcome.converged).then_some(next);
    }

    /// Ends the rounds before their time, because the observer asks to stop. Whether there is a round
    /// to keep.
    pub fn stop(&mut self) -> bool {
        (self.next_scans, self.outcome.stopped) = (None, true);
        !self.outcome.rounds.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temper::bridge::Steps;

    #[test]
    fn round_trips_are_waited_for_while_rounds_are_cheap() {
        let result = RoundResult {
            steps: Steps::default(),
            barrier: 5.0,
            n_trips: 0,
            betas: vec![0.0; LANES],
            rejections: vec![0.5; LANES - 1],
        };
        let plan = RoundPlan {
            n_replicates: 4,
            target_std_error: 0.0,
            min_scans: 128,
            max_scans: None,
            max_chains: 1024,
        };
        let run = |sweep_cost: f64| {
            let mut schedule = RoundSchedule::new(plan, sweep_cost);
            while schedule.next_scans.is_some() {
                schedule.add(&vec![result.clone(); 4]);
            }
            assert!(!schedule.outcome.converged && schedule.outcome.std_error() == 0.0);
            let last = schedule.outcome.rounds.last().unwrap().n_scans;
            (schedule.n_agreed, 2.0 * last as f64 * 4.0 * sweep_cost)
        };
        // A second round of all that agree, whatever it costs.
        assert_eq!(run(1e8).0, 1 + EXTRA_ROUNDS);
        let (n_agreed, cost) = run(1e5);
        assert!(n_agreed > 3 && (0.5 * EXTRA_COST..=EXTRA_COST).contains(&cost), "{cost}");
    }
}

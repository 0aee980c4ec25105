//! One evidence, stage after stage: which tasks are next, and what their results come to.

use super::filters::{self, FilterStages};
use super::settings::{EvidenceMethod, EvidenceSampler, EvidenceSettings, round_plan};
use super::{Evidence, Task, TaskResult, tempered_load};
use crate::allocation::exact::enumeration;
use crate::allocation::kernel::splits::MAX_WEIGHED;
use crate::allocation::model::problem::Problem;
use crate::allocation::tempering;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::temper::{RoundResult, RoundSchedule};

/// An evidence whose tasks run wherever one likes: the same bits on threads, processes and machines.
#[derive(Debug, Clone)]
pub struct EvidenceRun {
    settings: EvidenceSettings,
    /// ln of the factor of the evidence beside the sum over allocations.
    constant: f64,
    stage: Stage,
}

/// Work that is due.
#[derive(Debug, Clone)]
enum Stage {
    Filter(FilterStages),
    Reference,
    Tempering {
        kappa: f64,
        schedule: RoundSchedule,
        ladders: Vec<LadderProgress>,
    },
    /// ln of the sum over allocations.
    Done(Evidence),
}

/// A ladder, and the result of the present round where it has ended.
#[derive(Debug, Clone, Default)]
struct LadderProgress {
    saved: Option<Vec<u8>>,
    result: Option<RoundResult>,
}

impl EvidenceRun {
    /// The first stage, after a trial of the exact sum where that is wanted.
    ///
    /// # Errors
    /// [`Error::Range`]; [`Error::SamplerMemory`]; those of an exact sum: a budget passed, a stop.
    pub fn new(
        problem: &Problem,
        settings: &EvidenceSettings,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let known = if problem.n_tokens() == 0 { Some(0.0) } else { problem.ln_only_allocation() };
        let stage = match known {
            Some(ln_sum) => Stage::Done(Evidence::exact(ln_sum)),
            None => first_stage(problem, settings, observer)?,
        };
        let constant = problem.ln_constant();
        Ok(EvidenceRun { settings: settings.clone(), constant, stage })
    }

    /// Tasks that may run at the same time; none where the evidence is known.
    pub fn tasks(&self) -> Vec<Task> {
        match &self.stage {
            Stage::Filter(stages) => {
                let (n_particles, is_small) = (stages.n_due(), stages.is_small);
                let task = |replicate| Task::Filter { n_particles, is_small, replicate };
                (0..stages.n_replicates).map(task).collect()
            }
            Stage::Reference => vec![Task::Reference],
            Stage::Tempering { kappa, schedule, ladders } => {
                let Some(n_scans) = schedule.next_scans else { return Vec::new() };
                let due = ladders.iter().enumerate().filter(|(_, ladder)| ladder.result.is_none());
                let task = |(replicate, ladder): (usize, &LadderProgress)| {
                    let saved = ladder.saved.clone();
                    Task::Ladder { kappa: *kappa, replicate, n_scans, saved }
                };
                due.map(task).collect()
            }
            Stage::Done(_) => Vec::new(),
        }
    }

    /// Adds the results of all [`tasks`](EvidenceRun::tasks), in their order. Returns how many
    /// replicates, or rounds of all ladders, they end.
    ///
    /// # Errors
    /// [`Error::Saved`] for results of other tasks; [`Error::SamplerMemory`] for a stage that takes
    /// more than memory holds.
    pub fn add(&mut self, problem: &Problem, results: Vec<TaskResult>) -> Result<u64> {
        let n_results = results.len() as u64;
        match &mut self.stage {
            Stage::Filter(stages) => {
                let read = |result: &TaskResult| match *result {
                    TaskResult::Filter(ln_value, variance) => Ok((ln_value, variance)),
                    _ => Err(Error::Saved),
                };
                let results = results.iter().map(read).collect::<Result<Vec<_>>>()?;
                let found = stages.add(&results);
                let passes =
                    found.as_ref().map_or_else(|| stages.is_promising(), |found| found.converged);
                if !passes && self.settings.tempers() && !problem.is_stepwise() {
                    self.stage = tempering_stage(problem, &self.settings)?;
                } else if let Some(found) = found {
                    self.stage = Stage::Done(found);
                }
                Ok(n_results)
            }
            Stage::Reference => {
                let [TaskResult::Reference(kappa)] = results[..] else { return Err(Error::Saved) };
                let plan = round_plan(problem, &self.settings);
                let schedule = RoundSchedule::new(plan, tempering::sweep_cost(problem));
                let ladders = vec![LadderProgress::default(); plan.n_replicates];
                self.stage = Stage::Tempering { kappa, schedule, ladders };
                Ok(0)
            }
            Stage::Tempering { schedule, ladders, .. } => {
                let due = ladders.iter_mut().filter(|ladder| ladder.result.is_none());
                for (ladder, result) in due.zip(results) {
                    let TaskResult::Ladder(saved, result) = result else {
                        return Err(Error::Saved);
                    };
                    *ladder = LadderProgress { saved: Some(saved), result };
                }
                if ladders.iter().any(|ladder| ladder.result.is_none()) {
                    return Ok(0);
                }
                let results = ladders.iter_mut().filter_map(|ladder| ladder.result.take());
                schedule.add(&results.collect::<Vec<_>>());
                Ok(1)
            }
            Stage::Done(_) => Err(Error::Saved),
        }
    }

    /// Ends the work before its time. Whether there is something to keep: a round of tempering.
    pub fn stop(&mut self) -> bool {
        match &mut self.stage {
            Stage::Tempering { schedule, .. } => schedule.stop(),
            _ => false,
        }
    }

    /// The evidence when no task is left, or by the rounds of tempering so far.
    pub fn evidence(&self) -> Evidence {
        let found = match &self.stage {
            Stage::Done(found) => found.clone(),
            Stage::Tempering { schedule, .. } => Evidence::tempered(schedule.outcome.clone()),
            Stage::Filter(_) | Stage::Reference => Evidence::exact(f64::NAN),
        };
        found.scaled(self.constant)
    }
}

/// The first stage of a method. Where none is asked for: exact within a small budget, else smc, which
/// gives way to tempering where its replicates disagree. Cells of very many tokens, of which particles
/// take one after another, and tables of tiny pseudo-counts are tempered at once. Options that one of
/// them does not take speak for the other.
fn first_stage(
    problem: &Problem,
    settings: &EvidenceSettings,
    observer: &dyn Observer,
) -> Result<Stage> {
    problem.check_range()?;
    if problem.is_stepwise() {
        return match settings.method {
            EvidenceMethod::Auto | EvidenceMethod::Sample(EvidenceSampler::Smc)
                if EvidenceSampler::Smc.takes(settings) =>
            {
                filter_stage(problem, settings)
            }
            _ => Err(Error::NoSampler),
        };
    }
    let exact = |budget| enumeration::ln_sum(problem, budget, observer).map(Evidence::exact);
    match settings.method {
        EvidenceMethod::Exact => Ok(Stage::Done(exact(settings.exact_budget())?)),
        EvidenceMethod::Sample(EvidenceSampler::Tempered) => tempering_stage(problem, settings),
        EvidenceMethod::Sample(EvidenceSampler::Smc) => filter_stage(problem, settings),
        EvidenceMethod::Auto => {
            match exact(settings.trial_budget()) {
                Err(Error::EnumerationBudget { .. } | Error::Memory { .. }) => {}
                tried => return tried.map(Stage::Done),
            }
            if !EvidenceSampler::Smc.takes(settings) {
                if !settings.tempers() {
                    return Err(Error::NoSampler);
                }
                return tempering_stage(problem, settings);
            }
            let is_huge = |&count: &u64| problem.is_heavy(count) && count > MAX_WEIGHED as u64;
            let is_hard = problem.opens_rarely() || problem.counts.iter().any(is_huge);
            if settings.tempers() && is_hard {
                return tempering_stage(problem, settings);
            }
            match filter_stage(problem, settings) {
                Err(Error::SamplerMemory { .. }) if settings.tempers() => {
                    tempering_stage(problem, settings)
                }
                stage => stage,
            }
        }
    }
}

fn filter_stage(problem: &Problem, settings: &EvidenceSettings) -> Result<Stage> {
    problem.load().check(1)?;
    problem.check_total()?;
    let stages = FilterStages::new(problem, settings);
    filters::check_memory(problem, settings, stages.n_particles, stages.n_replicates)?;
    Ok(Stage::Filter(stages))
}

fn tempering_stage(problem: &Problem, settings: &EvidenceSettings) -> Result<Stage> {
    tempered_load(problem, settings.n_replicates(EvidenceSampler::Tempered)).check(1)?;
    Ok(Stage::Reference)
}

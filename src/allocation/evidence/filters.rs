//! Replicates of a filter in two sizes: the small ones tell whether the others can be believed.

use super::settings::{EvidenceSampler, EvidenceSettings};
use super::{Evidence, EvidenceMethod};
use crate::allocation::memory::Load;
use crate::allocation::model::problem::Problem;
use crate::allocation::particles::smc::{self, Filter};
use crate::allocation::particles::steps;
use crate::control::Observer;
use crate::error::Result;
use crate::estimate::Estimate;
use crate::rng::{Key, LANES, Purpose};

/// ln Ẑ of a replicate, and the relative variance of Ẑ that the particles' descent tells.
pub(super) type FilterResult = (f64, f64);

/// Factor between the particles of a replicate of the two sizes.
const SIZE_RATIO: usize = 4;

/// Standard deviations of their difference by which the larger size may be above the smaller one, or
/// below it, by chance. Particles that miss a mode give too little: a rise is the more likely to go on.
const MOVED: [f64; 2] = [2.0, 3.0];

/// The two sizes of the replicates of a filter, one after the other.
#[derive(Debug, Clone)]
pub(super) struct FilterStages {
    pub(super) n_replicates: usize,
    /// Particles of a replicate.
    pub(super) n_particles: usize,
    /// The estimate by replicates of a quarter of the particles.
    small: Option<Estimate>,
    /// Whether the replicates that are due are the small ones.
    pub(super) is_small: bool,
    /// Whether all replicates may miss values of hidden nodes.
    opens_rarely: bool,
}

impl FilterStages {
    pub(super) fn new(problem: &Problem, settings: &EvidenceSettings) -> Self {
        let n_particles = filter_of(problem, settings).n_particles.div_ceil(LANES) * LANES;
        let n_replicates = settings.n_replicates(EvidenceSampler::Smc);
        // One group of particles has no smaller size.
        let is_small = n_particles > LANES;
        let opens_rarely = problem.opens_rarely();
        FilterStages { n_replicates, n_particles, small: None, is_small, opens_rarely }
    }

    /// Particles of the replicates that are due.
    pub(super) fn n_due(&self) -> usize {
        let ratio = if self.is_small { SIZE_RATIO } else { 1 };
        self.n_particles.div_ceil(ratio * LANES) * LANES
    }

    /// Adds the replicates that were due: the evidence after the second size.
    pub(super) fn add(&mut self, results: &[FilterResult]) -> Option<Evidence> {
        let found = Estimate::from_runs(results, self.n_due() * results.len());
        if self.is_small {
            (self.small, self.is_small) = (Some(found), false);
            return None;
        }
        let (mut estimate, agrees) = compared(self.small, found);
        if self.opens_rarely {
            // Replicates may agree on what they all miss.
            estimate.n_eff = f64::NAN;
        }
        let converged = agrees && !found.is_doubtful() && !self.opens_rarely;
        let method = EvidenceMethod::Sample(EvidenceSampler::Smc);
        Some(Evidence { estimate, method, converged, tempering: None })
    }

    /// Whether the larger size, which has half the error, may pass.
    pub(super) fn is_promising(&self) -> bool {
        self.small.is_none_or(|small| {
            !Estimate { std_error: 0.5 * small.std_error, n_eff: f64::INFINITY, ..small }
                .is_doubtful()
        })
    }
}

/// The filter of a problem: steps have no moves.
fn filter_of(problem: &Problem, settings: &EvidenceSettings) -> Filter {
    if problem.is_stepwise() {
        let n_particles = settings.n_particles.or(Some(steps::PARTICLES));
        let settings = EvidenceSettings { n_sweeps: Some(0), n_particles, ..settings.clone() };
        return settings.filter();
    }
    settings.filter()
}

/// The larger size, with their distance in its error where the smaller one does not confirm it.
fn compared(small: Option<Estimate>, large: Estimate) -> (Estimate, bool) {
    let Some(small) = small else { return (large, true) };
    let moved = large.ln_value - small.ln_value;
    let chance = small.std_error.hypot(large.std_error);
    let agrees = moved.abs() <= MOVED[usize::from(moved < 0.0)] * chance;
    let std_error = if agrees { large.std_error } else { large.std_error.hypot(moved) };
    (Estimate { std_error, ..large }, agrees)
}

/// One replicate of a filter, with a stream of its own.
pub(super) fn replicate(
    problem: &Problem,
    settings: &EvidenceSettings,
    n_particles: usize,
    key: Key,
    observer: &dyn Observer,
) -> Result<FilterResult> {
    check_memory(problem, settings, n_particles, 1)?;
    let filter = Filter { n_particles, ..filter_of(problem, settings) };
    let mut rng = key.rng();
    if problem.is_stepwise() {
        return steps::ln_sum(problem, &filter, &mut rng, observer);
    }
    smc::ln_sum(problem, &filter, &mut rng, observer)
}

/// Stream of a replicate of one of the two sizes.
pub(in crate::allocation) fn key(seed: u64, is_small: bool, replicate: usize) -> Key {
    Key::new(seed, Purpose::Score).unit(1 + u64::from(is_small)).unit(replicate as u64)
}

/// Refuses more than so many replicates could hold at a time.
pub(in crate::allocation) fn check_memory(
    problem: &Problem,
    settings: &EvidenceSettings,
    n_particles: usize,
    n_replicates: usize,
) -> Result<()> {
    // Particles that are moved hold the states of all tokens.
    let is_moved = filter_of(problem, settings).n_sweeps > 0;
    let n_states = problem.n_tokens().saturating_mul(problem.n_cliques() as u64);
    let n_held = match is_moved {
        _ if problem.is_stepwise() => steps::n_held(problem),
        true => n_states,
        false => 0,
    };
    Load { n_held, n_particles, ..problem.load() }.check(n_replicates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::model::examples::{MIXTURE, table_under};

    fn estimate(ln_value: f64, std_error: f64) -> Estimate {
        Estimate { ln_value, std_error, n_eff: 16.0, n_replicates: 16 }
    }

    #[test]
    fn sizes_that_differ_by_more_than_chance_are_in_the_error() {
        let after = |moved: f64| compared(Some(estimate(-5.0, 0.3)), estimate(-5.0 + moved, 0.4));
        for by in [0.9, -1.4] {
            assert_eq!(after(by), (estimate(-5.0 + by, 0.4), true));
        }
        for by in [1.1, -1.6_f64] {
            let (found, agrees) = after(by);
            assert!(!agrees && (found.std_error - by.hypot(0.4)).abs() < 1e-12);
        }
    }

    #[test]
    fn a_small_size_with_a_large_error_is_no_promise() {
        let settings = EvidenceSettings::new(EvidenceMethod::Auto);
        let promising = |spread: f64| {
            let problem = table_under((&[2, 2, 2], MIXTURE), &[], 1.0, (&[0, 0], &[1]));
            let mut stages = FilterStages::new(&problem, &settings);
            assert!(stages.is_small && stages.n_due() < stages.n_particles);
            let results = [spread, -spread].repeat(8).into_iter().map(|x| (x, 0.0));
            assert!(stages.add(&results.collect::<Vec<_>>()).is_none() && !stages.is_small);
            stages.is_promising()
        };
        assert!(promising(0.5) && !promising(3.0));
    }
}

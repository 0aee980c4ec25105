//! Rounds of independent ladders.

use rayon::prelude::*;

use super::ladder::{Ladder, RoundResult, State};
use super::outcome::TemperingOutcome;
use super::pilot::pilot;
use super::schedule::{RoundPlan, RoundSchedule};
use super::target::{LadderTarget, PortableTarget};
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::rng::Key;

/// Chains in lockstep at the end of an annealing pass from the reference to the target.
///
/// # Errors
/// The errors of the target.
pub fn anneal<'a, T: LadderTarget>(
    target: &'a T,
    key: Key,
    observer: &dyn Observer,
) -> Result<T::Chains<'a>> {
    let mut chains = target.chains(&mut key.rng(), observer)?;
    pilot(&mut chains, observer)?;
    Ok(chains)
}

/// Inverse temperatures of `n_steps` steps from the reference to the target that cross equal parts of
/// the barrier, as one annealing pass finds it.
///
/// # Errors
/// The errors of the target.
pub fn annealing_schedule<T: LadderTarget>(
    target: &T,
    n_steps: usize,
    key: Key,
    observer: &dyn Observer,
) -> Result<Vec<f64>> {
    let mut chains = target.chains(&mut key.rng(), observer)?;
    Ok(pilot(&mut chains, observer)?.ladder(n_steps + 1))
}

/// Rounds of tempering, and what was kept of the last one, replicate after replicate.
pub struct TemperingRun<S> {
    /// ln of the normalising constant of γ_1 over that of γ_0.
    pub outcome: TemperingOutcome,
    /// States at γ_1.
    pub draws: Vec<Vec<S>>,
}

/// Rounds of all ladders until they agree, on the threads of this process; each keeps `n_draws` states.
///
/// A stop after the first round keeps the last round that all replicates have finished; draws are then
/// partly of the round before.
///
/// # Errors
/// The errors of the target; [`Error::Stopped`] when the observer asks to stop before there is a round.
pub fn temper<'a, T: LadderTarget>(
    target: &'a T,
    plan: RoundPlan,
    n_draws: usize,
    key: Key,
    observer: &dyn Observer,
) -> Result<TemperingRun<State<'a, T>>> {
    let start = |replicate: usize| Ladder::new(target, replicate, key, plan.max_chains, observer);
    let mut ladders: Vec<Ladder<'_, T>> =
        (0..plan.n_replicates).into_par_iter().map(start).collect::<Result<_>>()?;
    let mut schedule = RoundSchedule::new(plan, target.sweep_cost());
    while let Some(n_scans) = schedule.next_scans {
        let round =
            |ladder: &mut Ladder<'_, T>| ladder.advance(n_scans, n_scans, n_draws, observer);
        match ladders.par_iter_mut().map(round).collect::<Result<Vec<_>>>() {
            Ok(results) => schedule.add(&results.into_iter().flatten().collect::<Vec<_>>()),
            Err(Error::Stopped) if schedule.stop() => break,
            Err(error) => return Err(error),
        }
        observer.advance(1);
    }
    let draws = ladders.into_iter().map(|ladder| ladder.draws).collect();
    Ok(TemperingRun { outcome: schedule.outcome, draws })
}

/// Part of a round of one ladder, for whatever process it runs in.
#[derive(Debug, Clone, Copy)]
pub struct LadderPart<'a> {
    /// Number of the ladder.
    pub replicate: usize,
    /// Scans of the round.
    pub n_scans: usize,
    /// Scans of this part, at most.
    pub most: usize,
    /// The ladder so far, as bytes; none before its first round.
    pub saved: Option<&'a [u8]>,
}

impl LadderPart<'_> {
    /// The ladder after this part, and the result of a round that ended: with the bits of [`temper`],
    /// whatever the parts.
    ///
    /// # Errors
    /// [`Error::Saved`] for bytes that are no ladder of the target; those of the target.
    pub fn run<T: PortableTarget>(
        self,
        target: &T,
        plan: RoundPlan,
        key: Key,
        observer: &dyn Observer,
    ) -> Result<(Vec<u8>, Option<RoundResult>)> {
        let mut ladder = match self.saved {
            Some(saved) => Ladder::restore(target, saved)?,
            None => Ladder::new(target, self.replicate, key, plan.max_chains, observer)?,
        };
        let most = self.most.div_ceil(ladder.groups.len());
        let result = ladder.advance(self.n_scans, most, 0, observer)?;
        Ok((ladder.save()?, result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{LANES, Lanes, Purpose, Rng, Stream as _, UniformLanes as _, Uniforms};
    use crate::temper::LadderChains;

    /// V of N states of equal reference probability, moved by steps to neighbours: two modes with a
    /// valley between them.
    struct Valley(Vec<f64>);

    struct Walkers<'a> {
        values: &'a [f64],
        states: [usize; LANES],
        uniforms: Uniforms,
    }

    impl Valley {
        fn new() -> Self {
            let mode = |state: f64, at: f64, height: f64| height - 0.5 * (state - at).powi(2);
            let value = |state: f64| mode(state, 5.0, 12.0).max(mode(state, 30.0, 13.0)).max(-5.0);
            Valley((0..40).map(|state| value(f64::from(state))).collect())
        }

        fn ln_ratio(&self) -> f64 {
            (self.0.iter().map(|value| value.exp()).sum::<f64>() / self.0.len() as f64).ln()
        }
    }

    impl LadderTarget for Valley {
        type Chains<'a> = Walkers<'a>;

        fn chains(&self, rng: &mut Rng, _: &dyn Observer) -> Result<Walkers<'_>> {
            Ok(Walkers { values: &self.0, states: [0; LANES], uniforms: rng.lanes() })
        }

        fn sweep_cost(&self) -> f64 {
            LANES as f64
        }
    }

    impl LadderChains for Walkers<'_> {
        type State = usize;

        fn sweep(&mut self, betas: Lanes, observer: &dyn Observer) -> Result<()> {
            observer.check_stop()?;
            let (n, moves, darts) = (self.values.len(), self.uniforms.next(), self.uniforms.next());
            for lane in 0..LANES {
                let (state, beta) = (self.states[lane], betas[lane]);
                if beta == 0.0 {
                    self.states[lane] = (moves[lane] * n as f64) as usize;
                    continue;
                }
                let next = if moves[lane] < 0.5 { state.wrapping_sub(1) } else { state + 1 };
                let Some(value) = self.values.get(next) else { continue };
                if darts[lane] < (beta * (value - self.values[state])).exp() {
                    self.states[lane] = next;
                }
            }
            Ok(())
        }

        fn copy(&mut self, other: &Self) {
            self.states = other.states;
        }

        fn values(&self) -> Lanes {
            self.states.map(|state| self.values[state])
        }

        fn state(&self, lane: usize) -> usize {
            self.states[lane]
        }
    }

    impl PortableTarget for Valley {
        type Saved = ([usize; LANES], Uniforms);

        fn save(&self, chains: &Walkers<'_>) -> Self::Saved {
            (chains.states, chains.uniforms.clone())
        }

        fn restore(&self, (states, uniforms): Self::Saved) -> Result<Walkers<'_>> {
            Ok(Walkers { values: &self.0, states, uniforms })
        }
    }

    fn run(target: &Valley, plan: RoundPlan, key: Key) -> TemperingOutcome {
        temper(target, plan, 0, key, &()).unwrap().outcome
    }

    fn plan(n_scans: usize) -> RoundPlan {
        RoundPlan {
            n_replicates: 4,
            target_std_error: 0.0,
            min_scans: 128,
            max_scans: Some(n_scans),
            max_chains: 1024,
        }
    }

    #[test]
    #[ignore = "slow"]
    fn the_ratio_of_a_law_with_two_modes_is_found_within_its_errors() {
        let target = Valley::new();
        let (mut squares, mut n_held) = (0.0, 0);
        for seed in 0..100 {
            let key = Key::new(seed, Purpose::Score);
            let found = run(&target, plan(1024), key);
            let error = found.std_error();
            assert!(error < 0.3, "{error}");
            assert!(found.n_trips() > 20, "{}", found.n_trips());
            assert_eq!(found.n_free(), 6);
            let gap = (found.ln_value() - target.ln_ratio()) / error;
            squares += gap.powi(2);
            // The quantile of Student's t distribution for 95 %.
            n_held += usize::from(gap.abs() < 2.447);
        }
        assert!((0.6..1.5).contains(&(squares / 100.0)), "{squares}");
        assert!(n_held > 90, "{n_held}");
    }

    #[test]
    fn ladders_that_travel_have_the_rounds_of_those_that_stay() {
        let (target, key) = (Valley::new(), Key::new(4, Purpose::Score));
        let whole = run(&target, plan(64), key);
        let mut schedule = RoundSchedule::new(plan(64), target.sweep_cost());
        let mut ladders: Vec<Option<Vec<u8>>> = vec![None; 4];
        while let Some(n_scans) = schedule.next_scans {
            let mut results = Vec::new();
            for (replicate, saved) in ladders.iter_mut().enumerate() {
                let mut result = None;
                while result.is_none() {
                    let part = LadderPart { replicate, n_scans, most: 3, saved: saved.as_deref() };
                    let (after, found) = part.run(&target, plan(64), key, &()).unwrap();
                    (*saved, result) = (Some(after), found);
                }
                results.extend(result);
            }
            schedule.add(&results);
        }
        assert_eq!(schedule.outcome, whole);
        let damaged = ladders[0].as_ref().map(|saved| &saved[..100]);
        let part = LadderPart { replicate: 0, n_scans: 128, most: 3, saved: damaged };
        assert_eq!(part.run(&target, plan(64), key, &()), Err(Error::Saved));
    }
}

//! Rounds of independent ladders, until their estimates agree.

use rayon::prelude::*;

use super::outcome::Outcome;
use super::replicate::{Found, Replicate, Weighted, pilot};
use super::target::{Chains, Target};
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::rng::{Key, LANES, Lanes};

/// Chains in lockstep at the end of an annealing pass from the reference to the target.
pub struct Annealed<C> {
    /// The chains.
    pub chains: C,
    /// ln Ẑ of each: the mean of Ẑ is the ratio of the constants, and ln Ẑ mostly below it.
    pub ln_values: Lanes,
}

/// One annealing pass.
///
/// # Errors
/// Those of the target.
pub fn anneal<'a, T: Target>(
    target: &'a T,
    key: Key,
    observer: &impl Observer,
) -> Result<Annealed<T::Chains<'a>>> {
    let mut chains = target.chains(0, &mut key.rng(), observer)?;
    let found = pilot(target, &mut chains, observer)?;
    Ok(Annealed { chains, ln_values: found.ln_values })
}

/// Inverse temperatures of `n_steps` steps from the reference to the target that cross equal parts of
/// the barrier, as one annealing pass finds it.
///
/// # Errors
/// Those of the target.
pub fn schedule<T: Target>(
    target: &T,
    n_steps: usize,
    key: Key,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let mut chains = target.chains(0, &mut key.rng(), observer)?;
    Ok(pilot(target, &mut chains, observer)?.barrier.ladder(n_steps + 1))
}

/// When tempering ends, and by how many replicates it is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
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

/// Cost of a part of a round of one ladder, in draws of one number: some ten seconds.
const PART_COST: f64 = 1e10;

/// States of chains at γ_1, replicate after replicate.
pub type Draws<'a, T> = Vec<Vec<<<T as Target>::Chains<'a> as Chains>::State>>;

/// ln of the normalising constant of γ_1 over that of γ_0.
///
/// A stop after the first round keeps the last round that all replicates have finished.
///
/// # Errors
/// Those of the target; [`Error::Stopped`] when the observer asks to stop before there is a round.
pub fn temper<T: Target>(
    target: &T,
    options: &Options,
    key: Key,
    observer: &impl Observer,
) -> Result<Outcome> {
    temper_and_draw(target, options, 0, key, observer).map(|(outcome, _)| outcome)
}

/// Draws from every rung of every replicate.
pub type Walks = Vec<Vec<Vec<Weighted>>>;

/// [`temper_and_draw`], and the values of some `n_weighted` draws from the rungs of each replicate in
/// its last round, rung after rung: any mean under γ_0 or γ_1 that is a function of V, by the draws of
/// all rungs (Shirts and Chodera 2008).
///
/// # Errors
/// Those of [`temper`].
pub fn temper_and_weigh<'a, T: Target>(
    target: &'a T,
    options: &Options,
    n_kept: usize,
    n_weighted: usize,
    key: Key,
    observer: &impl Observer,
) -> Result<(Outcome, Draws<'a, T>, Walks)> {
    let (outcome, replicates) = run(target, options, n_kept, true, key, observer)?;
    let weigh = |replicate: &Replicate<_>| replicate.weighted(n_weighted);
    let weighted = replicates.iter().map(weigh).collect();
    let kept = replicates.into_iter().map(Replicate::into_kept).collect();
    Ok((outcome, kept, weighted))
}

/// [`temper`], and draws of γ_1: up to `n_kept` states of each replicate, at equal distances over its
/// last round. After a stop they are partly of the round before.
///
/// # Errors
/// Those of [`temper`].
pub fn temper_and_draw<'a, T: Target>(
    target: &'a T,
    options: &Options,
    n_kept: usize,
    key: Key,
    observer: &impl Observer,
) -> Result<(Outcome, Draws<'a, T>)> {
    let (outcome, replicates) = run(target, options, n_kept, false, key, observer)?;
    Ok((outcome, replicates.into_iter().map(Replicate::into_kept).collect()))
}

/// Rounds, and the ladders after the last of them.
fn run<'a, T: Target>(
    target: &'a T,
    options: &Options,
    n_kept: usize,
    keeps_values: bool,
    key: Key,
    observer: &impl Observer,
) -> Result<(Outcome, Vec<Replicate<T::Chains<'a>>>)> {
    let start =
        |replicate: usize| Replicate::new(target, replicate, key, options.max_chains, observer);
    let mut replicates: Vec<Replicate<T::Chains<'_>>> =
        (0..options.n_replicates).into_par_iter().map(start).collect::<Result<_>>()?;
    let mut course = Course::new(options, target.sweep_cost());
    while let Some(n_scans) = course.next_scans {
        let run = |replicate: &mut Replicate<_>| {
            replicate.round(target, n_scans, n_kept, keeps_values, observer)
        };
        match replicates.par_iter_mut().map(run).collect::<Result<Vec<_>>>() {
            Ok(found) => course.add(&found),
            Err(Error::Stopped) if !course.outcome.rounds.is_empty() => {
                course.outcome.stopped = true;
                break;
            }
            Err(error) => return Err(error),
        }
        observer.advance(1);
    }
    Ok((course.outcome, replicates))
}

/// Rounds so far, and whether there is another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// Estimates of the rounds.
    pub outcome: Outcome,
    /// Scans of the next round, if there is one.
    pub next_scans: Option<usize>,
    options: Options,
    sweep_cost: f64,
    n_agreed: usize,
}

impl Course {
    /// Before the first round of a target whose chains cost `sweep_cost`.
    pub fn new(options: &Options, sweep_cost: f64) -> Self {
        Course {
            outcome: Outcome::default(),
            next_scans: Some(FIRST_SCANS),
            options: *options,
            sweep_cost,
            n_agreed: 0,
        }
    }

    /// Adds the next round, by the findings of all ladders, and decides whether it is the last.
    pub fn add(&mut self, found: &[Found]) {
        let Some(n_scans) = self.next_scans else { return };
        let (outcome, options) = (&mut self.outcome, &self.options);
        outcome.add(found, n_scans);
        let enough = n_scans >= options.min_scans.min(options.max_scans.unwrap_or(usize::MAX));
        let agrees = enough && outcome.std_error() <= options.target_std_error;
        outcome.converged = agrees && outcome.has_come_round();
        self.n_agreed += usize::from(agrees);
        let next = 2 * n_scans;
        // All rounds together are twice as long as the last.
        let goes_on = if let Some(most) = options.max_scans {
            next <= most
        } else {
            let n_groups: usize = found.iter().map(|ladder| ladder.betas.len() / LANES).sum();
            let cost = 2.0 * next as f64 * n_groups as f64 * self.sweep_cost;
            let is_affordable = next <= ANY_COST_SCANS || cost <= BUDGET;
            let is_worth_it = self.n_agreed <= EXTRA_ROUNDS || cost <= EXTRA_COST;
            n_scans < options.min_scans || is_worth_it && is_affordable
        };
        self.next_scans = (goes_on && !outcome.converged).then_some(next);
    }
}

/// A ladder before its first round, to go on from in any process.
///
/// # Errors
/// Those of the target.
pub fn ladder<T: Target>(
    target: &T,
    options: &Options,
    key: Key,
    replicate: usize,
    observer: &impl Observer,
) -> Result<Vec<u8>> {
    Replicate::new(target, replicate, key, options.max_chains, observer)?.save()
}

/// Goes on with a ladder, by one part of a round of `n_scans` scans: with the same findings at the
/// end as [`temper`], whatever the parts.
///
/// # Errors
/// [`Error::Saved`] for bytes that are no ladder of the target; those of the target.
pub fn ladder_part<T: Target>(
    target: &T,
    saved: &[u8],
    n_scans: usize,
    observer: &impl Observer,
) -> Result<(Vec<u8>, Option<Found>)> {
    let mut replicate = Replicate::restore(target, saved)?;
    let cost = replicate.n_groups() as f64 * target.sweep_cost();
    let most = ((PART_COST / cost) as usize).max(1);
    let found = replicate.part(target, n_scans, most, observer)?;
    Ok((replicate.save()?, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Stop;
    use crate::rng::{Purpose, Rng, Stream as _, UniformLanes as _, Uniforms};
    use crate::temper::bridge::Steps;

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

    impl Target for Valley {
        type Level = f64;
        type Chains<'a> = Walkers<'a>;

        fn level(&self, beta: f64) -> f64 {
            beta
        }

        fn chains(&self, _: usize, rng: &mut Rng, _: &impl Observer) -> Result<Walkers<'_>> {
            Ok(Walkers { values: &self.0, states: [0; LANES], uniforms: rng.lanes() })
        }

        fn restore(&self, (states, uniforms): ([usize; LANES], Uniforms)) -> Result<Walkers<'_>> {
            Ok(Walkers { values: &self.0, states, uniforms })
        }

        fn settles(&self) -> bool {
            true
        }

        fn sweep_cost(&self) -> f64 {
            LANES as f64
        }
    }

    impl Chains for Walkers<'_> {
        type Level = f64;
        type State = usize;
        type Saved = ([usize; LANES], Uniforms);

        fn sweep(&mut self, levels: &[&f64; LANES], observer: &impl Observer) -> Result<()> {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            let (n, moves, darts) = (self.values.len(), self.uniforms.next(), self.uniforms.next());
            for lane in 0..LANES {
                let (state, beta) = (self.states[lane], *levels[lane]);
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

        fn save(&self) -> ([usize; LANES], Uniforms) {
            (self.states, self.uniforms.clone())
        }
    }

    fn options(n_scans: usize) -> Options {
        Options {
            n_replicates: 4,
            target_std_error: 0.0,
            min_scans: 128,
            max_scans: Some(n_scans),
            max_chains: 1024,
        }
    }

    #[test]
    fn the_ratio_of_a_law_with_two_modes_is_found_within_its_errors() {
        let target = Valley::new();
        let (mut squares, mut n_held) = (0.0, 0);
        for seed in 0..100 {
            let key = Key::new(seed, Purpose::Score);
            let found = temper(&target, &options(1024), key, &()).unwrap();
            let error = found.std_error();
            assert!(error < 0.3, "{error}");
            assert!(found.n_trips() > 20, "{}", found.n_trips());
            assert_eq!(found.n_free(), 6);
            let gap = (found.ln_value() - target.ln_ratio()) / error;
            squares += gap.powi(2);
            // The quantile of Student's law for 95 %.
            n_held += usize::from(gap.abs() < 2.447);
        }
        assert!((0.6..1.5).contains(&(squares / 100.0)), "{squares}");
        assert!(n_held > 90, "{n_held}");
    }

    #[test]
    fn draws_have_the_probabilities_of_the_target() {
        let target = Valley::new();
        let asked = Options { n_replicates: 20, ..options(4096) };
        let key = Key::new(3, Purpose::Score);
        let (found, draws) = temper_and_draw(&target, &asked, 300, key, &()).unwrap();
        assert_eq!(found, temper(&target, &asked, key, &()).unwrap());
        let weights = target.0.iter().map(|value| value.exp());
        let (above, all) = (weights.clone().skip(20).sum::<f64>(), weights.sum::<f64>());
        let share = |states: &Vec<usize>| {
            assert_eq!(states.len(), 300);
            states.iter().filter(|&&state| state >= 20).count() as f64 / 300.0
        };
        let shares: Vec<f64> = draws.iter().map(share).collect();
        let mean = shares.iter().sum::<f64>() / 20.0;
        let squares: f64 = shares.iter().map(|share| (share - mean).powi(2)).sum();
        let error = (squares / (20.0 * 19.0)).sqrt();
        assert!((mean - above / all).abs() < 4.0 * error, "{mean} {} {error}", above / all);
        assert!(error < 0.05, "{error}");
    }

    #[test]
    fn rounds_end_where_the_error_is_small_enough() {
        let target = Valley::new();
        let key = Key::new(1, Purpose::Score);
        let asked = Options { target_std_error: 0.05, max_scans: None, ..options(0) };
        let found = temper(&target, &asked, key, &()).unwrap();
        assert!(found.converged && found.std_error() <= 0.05);
        let [.., before, last] = &found.rounds[..] else { panic!("rounds") };
        assert_eq!(2 * before.n_scans, last.n_scans);
        let asked = Options { min_scans: 1000, ..asked };
        assert_eq!(temper(&target, &asked, key, &()).unwrap().rounds.last().unwrap().n_scans, 1024);
        let short = temper(&target, &Options { max_scans: Some(16), ..asked }, key, &()).unwrap();
        assert_eq!(short.rounds, found.rounds[..2]);
        assert!(!short.converged);
    }

    #[test]
    fn round_trips_are_waited_for_while_rounds_are_cheap() {
        let found = Found {
            steps: Steps::default(),
            barrier: 5.0,
            n_trips: 0,
            betas: vec![0.0; LANES],
            rejections: vec![0.5; LANES - 1],
        };
        let asked = Options { max_scans: None, ..options(0) };
        let n_rounds = |sweep_cost: f64| {
            let mut course = Course::new(&asked, sweep_cost);
            while course.next_scans.is_some() {
                course.add(&vec![found.clone(); 4]);
            }
            assert!(!course.outcome.converged && course.outcome.std_error() == 0.0);
            let last = course.outcome.rounds.last().unwrap().n_scans;
            (course.n_agreed, 2.0 * last as f64 * 4.0 * sweep_cost)
        };
        // A second round of all that agree, whatever it costs.
        assert_eq!(n_rounds(1e8).0, 1 + EXTRA_ROUNDS);
        let (n_agreed, cost) = n_rounds(1e5);
        assert!(n_agreed > 3 && (0.5 * EXTRA_COST..=EXTRA_COST).contains(&cost), "{cost}");
    }

    #[test]
    fn the_bits_are_the_same_for_any_number_of_threads() {
        let target = Valley::new();
        let run = |n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let key = Key::new(2, Purpose::Score);
            pool.install(|| temper(&target, &options(64), key, &()).unwrap())
        };
        let alone = run(1);
        assert_eq!(run(2), alone);
        assert_eq!(run(5), alone);
    }

    #[test]
    fn parts_of_rounds_are_the_whole() {
        let (target, key) = (Valley::new(), Key::new(4, Purpose::Score));
        let whole = temper(&target, &options(64), key, &()).unwrap();
        let mut course = Course::new(&options(64), target.sweep_cost());
        let start = |replicate| ladder(&target, &options(64), key, replicate, &()).unwrap();
        let mut ladders: Vec<Vec<u8>> = (0..4).map(start).collect();
        while let Some(n_scans) = course.next_scans {
            let round = |saved: &mut Vec<u8>| {
                loop {
                    // Three scans a part.
                    let mut replicate = Replicate::restore(&target, saved).unwrap();
                    let found = replicate.part(&target, n_scans, 3, &()).unwrap();
                    *saved = replicate.save().unwrap();
                    if let Some(found) = found {
                        return found;
                    }
                }
            };
            let found: Vec<Found> = ladders.iter_mut().map(round).collect();
            course.add(&found);
        }
        assert_eq!(course.outcome, whole);
        let one = &ladders[0];
        assert!(ladder_part(&target, one, 128, &()).unwrap().1.is_some());
        assert_eq!(ladder_part(&target, &one[..100], 128, &()), Err(Error::Saved));
    }

    /// Stops after a number of rounds of all replicates.
    struct After(u64, std::sync::atomic::AtomicU64, Stop);

    impl Observer for After {
        fn advance(&self, units: u64) {
            let before = self.1.fetch_add(units, std::sync::atomic::Ordering::Relaxed);
            if before + units >= self.0 {
                self.2.raise();
            }
        }

        fn stopped(&self) -> bool {
            self.2.stopped()
        }
    }

    #[test]
    fn a_stop_keeps_the_rounds_that_are_done() {
        let (target, key) = (Valley::new(), Key::new(3, Purpose::Score));
        let after = |n| After(n, 0.into(), Stop::default());
        let whole = temper(&target, &options(64), key, &()).unwrap();
        let stopped = temper(&target, &options(64), key, &after(3)).unwrap();
        assert!(stopped.stopped && !whole.stopped && !stopped.converged);
        assert_eq!(stopped.rounds, whole.rounds[..3]);
        let (_, draws) = temper_and_draw(&target, &options(64), 10, key, &after(3)).unwrap();
        assert!(draws.iter().all(|states| states.len() == 10));
        let stop = Stop::default();
        stop.raise();
        assert_eq!(temper(&target, &options(64), key, &stop), Err(Error::Stopped));
    }
}

//! Burn-in, thinning and averaging, the same for every sampler.

use crate::control::Observer;
use crate::error::{Error, Result, check_all};

/// How a sweep updates the topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicStep {
    /// Draws φ_k ~ Dirichlet(β + n_k·): exact Gibbs.
    Draw,
    /// Sets φ to its conditional mean: a faster start, not a sampler.
    Mean,
}

/// A Gibbs sampler over the parameters of a topic model, or updates that go sweep by sweep alike.
pub trait Sampler {
    /// Parameters that it estimates.
    type Parameters: Averaged;

    /// State from which, with the same seed, the sampler goes on as if nothing had happened.
    fn state(&self) -> State;

    /// Takes up a state in which the last sweep left the topics by `step`.
    ///
    /// # Errors
    /// A state of other documents or of another model.
    fn resume(&mut self, state: &State, step: TopicStep) -> Result<()>;

    /// ln p(words, topics of all tokens, parameters | priors), θ and φ integrated out.
    fn ln_joint(&self) -> f64;

    /// One sweep over all tokens and all parameters.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop; the state is then
    /// a valid one, from within the sweep.
    fn sweep(&mut self, step: TopicStep, observer: &impl Observer) -> Result<()>;

    /// Expected parameters given the current topics of all tokens, added to `sum` if it is given.
    ///
    /// # Errors
    /// [`Error::Memory`] where there is no room for them.
    fn expected_parameters(&self, sum: Option<Self::Parameters>) -> Result<Self::Parameters>;
}

/// Parameters of which a mean is taken.
pub trait Averaged: Clone {
    /// Multiplies every element by `factor`.
    fn scale(&mut self, factor: f64);
}

/// Numbers, added to `sum` if it is given.
pub(super) fn added(sum: Option<Vec<f64>>, numbers: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let Some(mut sum) = sum else { return numbers.into_iter().collect() };
    sum.iter_mut().zip(numbers).for_each(|(sum, x)| *sum += x);
    sum
}

/// Sweeps that are averaged over.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept<P> {
    /// Their number.
    pub n: u64,
    /// Sum of the expected parameters over them.
    pub sum: Option<P>,
}

impl<P> Default for Kept<P> {
    fn default() -> Self {
        Kept { n: 0, sum: None }
    }
}

impl<P: Averaged> Kept<P> {
    /// Keeps a sweep, whose parameters `add` adds to the sum so far, if there is one.
    pub(super) fn add(&mut self, add: impl FnOnce(Option<P>) -> Result<P>) -> Result<()> {
        self.sum = Some(add(self.sum.take())?);
        self.n += 1;
        Ok(())
    }

    /// The mean, where a sweep was kept.
    pub(super) fn mean(&self) -> Option<P> {
        let mut mean = self.sum.clone()?;
        mean.scale((self.n as f64).recip());
        Some(mean)
    }

    /// Checks that there is a sum where sweeps were kept, and nowhere else.
    pub(super) fn check(&self) -> Result<()> {
        if self.sum.is_some() == (self.n > 0) {
            return Ok(());
        }
        Err(Error::Parameter {
            name: "kept sweeps of the state",
            index: 0,
            value: self.n as f64,
            domain: "positive where there is a sum of them, and nowhere else",
        })
    }
}

/// A sampler between two sweeps. Random numbers are keyed by the sweep: there is no generator to
/// save.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Sweeps done.
    pub n_sweeps: u64,
    /// The topic of every token, cell after cell, document after document.
    pub assignments: Vec<u16>,
    /// The model's other parameters, one array after the other; none for LDA.
    pub parameters: Vec<f64>,
}

/// Checks that a state has that many parameters beside the topics of all tokens, and that all of them
/// are numbers.
pub(super) fn check_parameters(parameters: &[f64], expected: usize) -> Result<()> {
    let (name, found) = ("parameters of the state", parameters.len());
    if found != expected {
        return Err(Error::Length { name, found, expected });
    }
    check_all(name, parameters, "finite", f64::is_finite)
}

/// Progress of a run: all it takes to go on.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress<P> {
    /// The sampler.
    pub state: State,
    /// Sweeps kept.
    pub kept: Kept<P>,
}

/// How long to sample, and what to keep.
///
/// The first `warm_up` sweeps, at most the burn-in, set the topics to their mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Sweeps in all.
    pub max_iter: u64,
    /// Sweeps before the first that is kept.
    pub burn_in: u64,
    /// First sweeps of the burn-in in which the topics are set to their mean instead of drawn:
    /// some sweeps faster, and no part of what is kept.
    pub warm_up: u64,
    /// Keep one sweep in this many.
    pub thin: u64,
}

impl Schedule {
    /// How the sweep after `n_iter` others updates the topics.
    pub(super) fn step(&self, n_iter: u64) -> TopicStep {
        let warm = n_iter < self.warm_up.min(self.burn_in);
        if warm { TopicStep::Mean } else { TopicStep::Draw }
    }

    /// Whether the sweep that makes `n_iter` in all is kept.
    pub(super) fn keeps(&self, n_iter: u64) -> bool {
        n_iter > self.burn_in && (n_iter - self.burn_in).is_multiple_of(self.thin)
    }
}

/// Result of a run of a sampler.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit<P> {
    /// Posterior mean over the kept sweeps; of the last state when none was kept.
    pub parameters: P,
    /// State to go on from.
    pub progress: Progress<P>,
    /// ln of the joint density of the last state.
    pub ln_joint: f64,
}

/// Runs a sampler by a schedule, from where an earlier run ended if it is given, until there are
/// `until` sweeps in all. Ends early, with what it has, when the observer asks to stop.
///
/// A run in parts is the same, to the bit, as one in one go.
///
/// # Errors
/// None but the sampler's own; a stop is not an error.
pub fn fit<S: Sampler>(
    sampler: &mut S,
    schedule: Schedule,
    start: Option<Progress<S::Parameters>>,
    until: u64,
    observer: &impl Observer,
) -> Result<Fit<S::Parameters>> {
    fit_and_look(sampler, schedule, start, until, observer, |_, _| ())
}

/// The same, with a look at the sampler after every whole sweep, whose number is given.
///
/// # Errors
/// Those of [`fit`].
pub fn fit_and_look<S: Sampler>(
    sampler: &mut S,
    schedule: Schedule,
    start: Option<Progress<S::Parameters>>,
    until: u64,
    observer: &impl Observer,
    mut look: impl FnMut(u64, &S),
) -> Result<Fit<S::Parameters>> {
    let mut kept = Kept::default();
    let mut n_iter = 0;
    if let Some(progress) = start {
        n_iter = progress.state.n_sweeps;
        progress.kept.check()?;
        if n_iter > 0 {
            sampler.resume(&progress.state, schedule.step(n_iter - 1))?;
        }
        kept = progress.kept;
    }
    while n_iter < until.min(schedule.max_iter) {
        match sampler.sweep(schedule.step(n_iter), observer) {
            Err(Error::Stopped) => break,
            result => result?,
        }
        n_iter += 1;
        observer.advance(1);
        if schedule.keeps(n_iter) {
            kept.add(|sum| sampler.expected_parameters(sum))?;
        }
        look(n_iter, sampler);
    }
    let parameters = match kept.mean() {
        Some(mean) => mean,
        None => sampler.expected_parameters(None)?,
    };
    let mut state = sampler.state();
    // A sweep that was cut short is not counted.
    state.n_sweeps = n_iter;
    let ln_joint = sampler.ln_joint();
    Ok(Fit { parameters, progress: Progress { state, kept }, ln_joint })
}

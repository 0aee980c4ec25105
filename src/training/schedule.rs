//! Burn-in, thinning and averaging, the same for every sampler.

use super::TopicStep;
use crate::control::Observer;
use crate::error::Result;

/// A Gibbs sampler over the parameters of a topic model.
pub trait Sampler {
    /// What it estimates.
    type Parameters;

    /// One sweep over all tokens and all parameters.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop; the state is then
    /// a valid one, from within the sweep.
    fn sweep(&mut self, step: TopicStep, observer: &impl Observer) -> Result<()>;

    /// Expected parameters given the current topics of all tokens.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) where there is no room for them.
    fn expected_parameters(&self) -> Result<Self::Parameters>;

    /// Adds `other` to `sum`, element by element.
    fn add(sum: &mut Self::Parameters, other: &Self::Parameters);

    /// Multiplies every element of `sum` by `factor`.
    fn scale(sum: &mut Self::Parameters, factor: f64);
}

/// How long to sample, and what to keep.
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

/// What a run of a sampler gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit<P> {
    /// Posterior mean over the kept sweeps; of the last state when none was kept.
    pub parameters: P,
    /// Sweeps completed.
    pub n_iter: u64,
    /// Sweeps kept.
    pub n_kept: u64,
}

/// Runs a sampler by a schedule. Ends early, with what it has, when the observer asks to stop.
///
/// # Errors
/// None but the sampler's own; a stop is not an error.
pub fn fit<S: Sampler>(
    sampler: &mut S,
    schedule: Schedule,
    observer: &impl Observer,
) -> Result<Fit<S::Parameters>> {
    let mut mean: Option<S::Parameters> = None;
    let (mut n_iter, mut n_kept) = (0, 0);
    while n_iter < schedule.max_iter {
        let warm = n_iter < schedule.warm_up.min(schedule.burn_in);
        let step = if warm { TopicStep::Mean } else { TopicStep::Draw };
        match sampler.sweep(step, observer) {
            Err(crate::Error::Stopped) => break,
            result => result?,
        }
        n_iter += 1;
        observer.advance(1);
        if n_iter > schedule.burn_in && (n_iter - schedule.burn_in).is_multiple_of(schedule.thin) {
            let parameters = sampler.expected_parameters()?;
            match &mut mean {
                Some(sum) => S::add(sum, &parameters),
                None => mean = Some(parameters),
            }
            n_kept += 1;
        }
    }
    let parameters = match mean {
        Some(mut sum) => {
            S::scale(&mut sum, (n_kept as f64).recip());
            sum
        }
        None => sampler.expected_parameters()?,
    };
    Ok(Fit { parameters, n_iter, n_kept })
}

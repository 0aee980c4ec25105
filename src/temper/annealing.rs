//! Annealed importance sampling (Neal 2001) along any path, forwards and in reverse.

use crate::control::Observer;
use crate::error::Result;
use crate::rng::{Lanes, Stream};
use crate::urn::SweepOrder;

/// Distributions γ_β from a reference γ_0 to a distribution γ_1, and [`LANES`](crate::rng::LANES)
/// chains in lockstep that go along them.
pub trait AnnealingPath<S: Stream> {
    /// Weights of a sweep at one inverse temperature.
    type Level;

    /// Chains in lockstep.
    type Chains;

    /// The level of an inverse temperature.
    fn level(&self, beta: f64) -> Self::Level;

    /// ln of a constant factor of every γ_β.
    fn ln_factor(&self) -> f64;

    /// Draws chains from the reference; adds ln of their weights, whose mean is Σ γ_0, to
    /// `ln_values`.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop;
    /// [`Error::Memory`](crate::Error::Memory) for more than memory holds.
    fn draw(
        &self,
        reference: &Self::Level,
        ln_values: &mut Lanes,
        rng: &mut S,
        observer: &dyn Observer,
    ) -> Result<Self::Chains>;

    /// Adds to `ln_values` what [`draw`](AnnealingPath::draw) adds where it ends in the chains' present
    /// state.
    fn weigh(&self, reference: &Self::Level, chains: Self::Chains, ln_values: &mut Lanes);

    /// Moves all chains by a kernel that leaves γ_β unchanged; backward, by its reversal.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
    fn sweep(
        &self,
        level: &Self::Level,
        chains: &mut Self::Chains,
        order: SweepOrder,
        observer: &dyn Observer,
    ) -> Result<()>;

    /// Adds ln γ_after - ln γ_before of the present states to `ln_values`.
    fn step(&self, before: f64, after: f64, chains: &Self::Chains, ln_values: &mut Lanes);
}

/// ln Ẑ of all lanes, and where they end: chains drawn from the reference, and one sweep at every β between
/// the first, which is 0, and the last, which is 1. The mean of Ẑ is Σ γ_1.
///
/// # Errors
/// The errors of the path.
pub fn ln_sums<S: Stream, P: AnnealingPath<S>>(
    path: &P,
    betas: &[f64],
    rng: &mut S,
    observer: &dyn Observer,
) -> Result<(Lanes, P::Chains)> {
    let mut ln_values = [path.ln_factor(); _];
    let mut chains = path.draw(&path.level(betas[0]), &mut ln_values, rng, observer)?;
    for (step, pair) in betas.windows(2).enumerate() {
        observer.check_stop()?;
        if step > 0 {
            path.sweep(&path.level(pair[0]), &mut chains, SweepOrder::Forward, observer)?;
        }
        path.step(pair[0], pair[1], &chains, &mut ln_values);
    }
    Ok((ln_values, chains))
}

/// ln Ẑ of all lanes along the same path in reverse, from chains that are draws of the
/// distribution: the mean of 1/Ẑ is 1/Σ γ_1.
///
/// # Errors
/// The errors of the path.
pub fn ln_sums_reversed<S: Stream, P: AnnealingPath<S>>(
    path: &P,
    betas: &[f64],
    mut chains: P::Chains,
    observer: &dyn Observer,
) -> Result<Lanes> {
    let mut ln_values = [path.ln_factor(); _];
    for (step, pair) in betas.windows(2).rev().enumerate() {
        observer.check_stop()?;
        if step > 0 {
            path.sweep(&path.level(pair[1]), &mut chains, SweepOrder::Backward, observer)?;
        }
        path.step(pair[0], pair[1], &chains, &mut ln_values);
    }
    path.weigh(&path.level(betas[0]), chains, &mut ln_values);
    Ok(ln_values)
}

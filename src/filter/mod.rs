//! Particle filters over any sequential target.
//!
//! A target draws the next token in every particle and weighs it. The engine keeps the weights of
//! independent runs, resamples a run where too few of its particles are effective, lets a reference
//! particle survive where the run is conditional, and remembers who descends from whom: the error
//! of a run can be told from that. The mean weight is an unbiased estimate of the sum that the
//! target's weights make up, whatever the threshold and the scheme of resampling.

mod ancestry;
mod block;
mod population;

pub use ancestry::{Ancestry, rearrange};
pub use block::Block;
pub use population::{Options, Population};

use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::Move;

/// A sequence of unnormalised distributions, and particles that are drawn along it.
pub trait Target {
    /// Particles that are drawn together: one, or all lanes.
    type Block: Block;

    /// Draws a token in every particle of every run, and multiplies the particles' weights by the
    /// token's, given the tokens before it.
    fn extend(
        &mut self,
        token: usize,
        population: &mut Population<Self::Block>,
        rng: &mut impl rand::Rng,
    );

    /// Makes every particle of a run that dies a copy of another; `weights` are those of the run
    /// before resampling.
    fn replicate(&mut self, run: usize, weights: &[Self::Block], moves: &[Move]);
}

/// Takes all particles through `n_tokens` tokens, and resamples between two of them.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub fn run<T: Target>(
    target: &mut T,
    population: &mut Population<T::Block>,
    n_tokens: usize,
    rng: &mut impl rand::Rng,
    observer: &impl Observer,
) -> Result<()> {
    for token in 0..n_tokens {
        if observer.stopped() {
            return Err(Error::Stopped);
        }
        if token > 0 {
            population.resample(target, rng);
        }
        target.extend(token, population, rng);
    }
    Ok(())
}

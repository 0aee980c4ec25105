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
pub use population::{Options, Population, Replicate};

use crate::control::Observer;
use crate::error::Result;

/// A sequence of unnormalised distributions, and particles that are drawn along it.
pub trait FilterTarget: Replicate {
    /// Draws a token in every particle of every run, and multiplies the particles' weights by the
    /// token's, given the tokens before it. A target that has an observer may leave the step
    /// unfinished where that asks to stop: [`run`] then hands nothing on.
    fn extend(
        &mut self,
        token: usize,
        population: &mut Population<Self::Block>,
        rng: &mut impl rand::Rng,
    );
}

/// Takes all particles through `n_tokens` tokens, and resamples between two of them.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn run<T: FilterTarget>(
    target: &mut T,
    population: &mut Population<T::Block>,
    n_tokens: usize,
    rng: &mut impl rand::Rng,
    observer: &dyn Observer,
) -> Result<()> {
    for token in 0..n_tokens {
        observer.check_stop()?;
        if token > 0 {
            population.resample(target, rng);
            observer.check_stop()?;
        }
        target.extend(token, population, rng);
    }
    observer.check_stop()
}

#[cfg(test)]
mod tests {
    use rand::{Rng, RngExt as _};

    use super::*;
    use crate::math::{Move, Resampling, mean_and_error};
    use crate::rng::{Key, Purpose};

    const N_TOKENS: usize = 6;
    const N_PARTICLES: usize = 8;

    /// Fair coins; a throw after c heads has weight 1 + c²: uneven enough to need resampling.
    struct Coins(Vec<u32>);

    impl Replicate for Coins {
        type Block = f64;

        fn replicate(&mut self, run: usize, _: &[f64], moves: &[Move]) {
            let coins = &mut self.0[run * N_PARTICLES..];
            moves.iter().for_each(|&(to, from)| coins[to as usize] = coins[from as usize]);
        }
    }

    impl FilterTarget for Coins {
        fn extend(&mut self, _: usize, population: &mut Population<f64>, rng: &mut impl Rng) {
            for run in 0..population.n_runs() {
                for place in run * N_PARTICLES..(run + 1) * N_PARTICLES {
                    let heads = &mut self.0[place];
                    population.weights_mut()[place] *= f64::from(1 + *heads * *heads);
                    *heads += u32::from(rng.random::<bool>());
                }
            }
        }
    }

    /// Σ over all throws of their probability times their weight.
    fn exact() -> f64 {
        let mut sums = vec![1.0];
        for _ in 0..N_TOKENS {
            let mut next = vec![0.0; sums.len() + 1];
            for (heads, sum) in sums.iter().enumerate() {
                let half = 0.5 * sum * (1 + heads * heads) as f64;
                next[heads] += half;
                next[heads + 1] += half;
            }
            sums = next;
        }
        sums.iter().sum()
    }

    #[test]
    fn estimates_and_the_squares_of_their_means_are_unbiased() {
        let mut rng = Key::new(1, Purpose::Score).rng();
        for threshold in [0.0, 0.5, f64::INFINITY] {
            let options = Options { threshold, resampling: Resampling::Multinomial };
            let n_runs = 40_000;
            let mut population = Population::new(n_runs, N_PARTICLES, options);
            let mut coins = Coins(vec![0; n_runs * N_PARTICLES]);
            run(&mut coins, &mut population, N_TOKENS, &mut rng, &()).unwrap();
            let ratio = |run: usize| population.ln_mean(run).exp() / exact();
            let (found, error) = mean_and_error(&(0..n_runs).map(ratio).collect::<Vec<_>>());
            assert!((found - 1.0).abs() < 4.0 * error, "{threshold}: {found} {error}");
            assert!(error < 0.01, "{error}");
            let square =
                |run: usize| ratio(run).powi(2) * (1.0 - population.relative_variance(run));
            let (found, error) = mean_and_error(&(0..n_runs).map(square).collect::<Vec<_>>());
            // Without resampling the variance is that of the weights: known as well.
            assert!((found - 1.0).abs() < 4.0 * error, "{threshold}: {found} {error}");
        }
    }
}

//! Left-to-right estimators: every token given those before it, whose topics are sampled.
//!
//! At position l the topics of the tokens before it are swept *given those tokens only*, the
//! token's weight Σ_k (a_k + n_k) q_k is taken, and then its topic is drawn. Cost: tokens² x
//! topics a particle.

use super::chain::Chain;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::LogSum;
use crate::rng::Rng;
use crate::urn::LocalUrn;

/// What is averaged over what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Mean over particles of the product over positions: unbiased for any number of particles.
    MeanOfProducts,
    /// Product over positions of the mean over particles (Wallach 2008; MALLET): biased, however
    /// many particles there are.
    ProductOfMeans,
    /// One chain, swept as often as there are particles at every position, the weight averaged
    /// over the sweeps (ELTM 3.6): consistent in the number of sweeps.
    Sequential,
}

/// ln Ẑ of `n_runs` independent runs of `n_particles` particles or sweeps each.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub fn ln_urn_sums(
    urn: &LocalUrn,
    form: Form,
    n_runs: usize,
    n_particles: usize,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let run = |rng: &mut Rng| match form {
        Form::MeanOfProducts => mean_of_products(urn, n_particles, rng, observer),
        Form::ProductOfMeans => product_of_means(urn, n_particles, rng, observer),
        Form::Sequential => sequential(urn, n_particles, rng, observer),
    };
    (0..n_runs).map(|_| Ok(urn.ln_scale() + run(rng)?)).collect()
}

fn mean_of_products(
    urn: &LocalUrn,
    n_particles: usize,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<f64> {
    let particles = (0..n_particles).map(|_| product_of_means(urn, 1, rng, observer));
    Ok(particles.collect::<Result<LogSum>>()?.ln_mean())
}

fn product_of_means(
    urn: &LocalUrn,
    n_particles: usize,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<f64> {
    let mut chains: Vec<Chain<'_>> = (0..n_particles).map(|_| Chain::new(urn)).collect();
    ln_product(urn, observer, |q| {
        let mut sum = 0.0;
        for chain in &mut chains {
            chain.sweep(rng);
            sum += chain.predictive(q);
            chain.extend(q, rng);
        }
        sum / n_particles as f64
    })
}

fn sequential(
    urn: &LocalUrn,
    n_sweeps: usize,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<f64> {
    let mut chain = Chain::new(urn);
    ln_product(urn, observer, |q| {
        let mut sum = 0.0;
        for _ in 0..n_sweeps {
            chain.sweep(rng);
            sum += chain.predictive(q);
        }
        chain.extend(q, rng);
        sum / n_sweeps as f64
    })
}

/// ln of the product of the weights of all tokens in turn.
fn ln_product(
    urn: &LocalUrn,
    observer: &impl Observer,
    mut weight: impl FnMut(&[f64]) -> f64,
) -> Result<f64> {
    let mut ln_value = 0.0;
    for (q, count) in urn.cells() {
        for _ in 0..count {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            ln_value += weight(q).ln();
        }
    }
    Ok(ln_value)
}

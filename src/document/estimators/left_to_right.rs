//! Left-to-right estimators: every token given those before it, whose topics are sampled.
//!
//! At position l the topics of the tokens before it are swept *given those tokens only*, the
//! token's weight Σ_k (a_k + n_k) q_k is taken, and then its topic is drawn. Cost: tokens² x
//! topics a particle.

use super::runs::{Replicates, Runs, add, in_lanes};
use crate::control::Observer;
use crate::error::Result;
use crate::rng::{LANES, Stream};
use crate::urn::{LocalUrn, SweepOrder, TopicChains, UrnTarget};

/// Order of the mean over particles and the product over positions.
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

/// ln Ẑ of independent runs of some particles or sweeps, at each of the sizes.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn replicates(
    urn: &LocalUrn,
    form: Form,
    runs: Runs<'_>,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<Replicates> {
    let target = UrnTarget::of(urn);
    match form {
        Form::MeanOfProducts => {
            let ln_products = in_lanes(runs.n * runs.size(), || {
                let mut chains = TopicChains::new(urn, rng)?;
                let mut ln_product = [urn.ln_scale(); LANES];
                for _ in 0..urn.n_tokens() {
                    chains.sweep_words(None, target, SweepOrder::Forward, observer)?;
                    add(&mut ln_product, chains.extend(target).map(f64::ln));
                }
                Ok(vec![ln_product])
            })?;
            runs.averages(ln_products.into_iter().map(Ok))
        }
        Form::ProductOfMeans => {
            // All particles of a run go through the tokens together.
            let n_batches = runs.size().div_ceil(LANES);
            let run = |_| {
                let mut particles = (0..n_batches)
                    .map(|_| TopicChains::new(urn, rng))
                    .collect::<Result<Vec<_>>>()?;
                let mut ln_values = vec![urn.ln_scale(); runs.sizes.len()];
                let mut weights = Vec::with_capacity(n_batches * LANES);
                for _ in 0..urn.n_tokens() {
                    weights.clear();
                    for chains in &mut particles {
                        chains.sweep_words(None, target, SweepOrder::Forward, observer)?;
                        weights.extend(chains.extend(target));
                    }
                    let (mut sum, mut n) = (0.0, 0);
                    for (ln_value, &size) in ln_values.iter_mut().zip(runs.sizes) {
                        sum += weights[n..size].iter().sum::<f64>();
                        n = size;
                        *ln_value += (sum / n as f64).ln();
                    }
                }
                Ok(ln_values)
            };
            Ok((0..runs.n).map(run).collect::<Result<Vec<_>>>()?.concat().into())
        }
        Form::Sequential => Ok(in_lanes(runs.n, || {
            let mut chains = TopicChains::new(urn, rng)?;
            let mut ln_values = vec![[urn.ln_scale(); LANES]; runs.sizes.len()];
            for _ in 0..urn.n_tokens() {
                let (mut sum, mut n) = ([0.0; LANES], 0);
                for (ln_value, &size) in ln_values.iter_mut().zip(runs.sizes) {
                    while n < size {
                        chains.sweep_words(None, target, SweepOrder::Forward, observer)?;
                        add(&mut sum, chains.weigh(target));
                        n += 1;
                    }
                    add(ln_value, sum.map(|sum| (sum / n as f64).ln()));
                }
                chains.extend(target);
            }
            Ok(ln_values)
        })?
        .into()),
    }
}

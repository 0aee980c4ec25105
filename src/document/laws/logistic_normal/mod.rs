//! Documents whose topic weights have a logistic-normal prior (correlated and structural topic models,
//! neural topic models): p(tokens) = ∫ N(η; μ_d, Σ) p(tokens | η) dη.
//!
//! Where Σ is 0 it is a closed form, in one and two dimensions quadrature; else annealed importance
//! sampling from a Gaussian that is fitted to the posterior, which is unbiased in p.
//!
//! The constants of this room are those with which `benches/logistic_normal.py wide` made its record,
//! but for the most runs of a document in `score.rs`, which is younger.

mod annealing;
mod bracket;
mod decoder;
mod fit;
mod quadrature;
mod score;
mod target;
mod walk;

pub use decoder::{Decoder, Link};

use crate::counts::Document;
use crate::error::{Error, Result, check_all, check_length};

/// A document model with a Gaussian prior of latent coordinates and a decoder.
#[derive(Debug, Clone, PartialEq)]
pub struct LogisticNormal {
    decoder: Decoder,
    link: Link,
    n_topics: usize,
    /// μ, where documents have no mean of their own.
    mean: Vec<f64>,
    /// L with L Lᵀ = Σ, coordinates x rank.
    factor: Vec<f64>,
    rank: usize,
}

impl LogisticNormal {
    /// The model of a decoder of `n_topics` inputs, a mean and a covariance, row-major: a
    /// coordinate for each topic, but for the last where that is the reference. The covariance may
    /// be singular.
    ///
    /// # Errors
    /// A mean or covariance of another size or not finite; a covariance that is not symmetric or has a
    /// negative eigenvalue; weights of a mixture that do not come from softmax.
    pub fn new(
        decoder: Decoder,
        link: Link,
        n_topics: usize,
        mean: &[f64],
        covariance: &[f64],
    ) -> Result<Self> {
        if link == Link::Identity && matches!(decoder, Decoder::Mixture { .. }) {
            return Err(Error::IdentityLink);
        }
        let n = n_topics - usize::from(link == Link::Reference);
        for (name, found, expected) in
            [("mean", mean.len(), n), ("covariance", covariance.len(), n * n)]
        {
            check_length(name, found, expected)?;
        }
        check_all("mean", mean, "finite", f64::is_finite)?;
        check_all("covariance", covariance, "finite", f64::is_finite)?;
        let largest = covariance.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let is_symmetric = (0..n).all(|i| {
            (0..i).all(|j| (covariance[i * n + j] - covariance[j * n + i]).abs() <= 1e-8 * largest)
        });
        if !is_symmetric {
            return Err(Error::Covariance { problem: "is not symmetric" });
        }
        let (factor, rank) = crate::math::linear::semidefinite_factor(covariance, n)
            .ok_or(Error::Covariance { problem: "has a negative eigenvalue" })?;
        let mean = mean.to_vec();
        Ok(LogisticNormal { decoder, link, n_topics, mean, factor, rank })
    }

    fn prior<'a>(&'a self, document: Document<'a>) -> target::NormalPrior<'a> {
        let mean = document.prior().unwrap_or(&self.mean);
        target::NormalPrior { mean, factor: &self.factor, rank: self.rank }
    }
}

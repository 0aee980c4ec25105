//! Documents under a logistic-normal prior.

use super::annealing::{Plan, ln_weights};
use super::decoder::weights;
use super::target::Potential;
use super::{Decoder, LogisticNormal, bracket, fit, quadrature};
use crate::control::Observer;
use crate::counts::{CountMatrix, Document};
use crate::document::{
    Bounds, Draws, Law, Method, Sampler, Score, Settings, Spread, Vocabularies, WeightMoments,
};
use crate::error::{Error, Result, check_length};
use crate::estimate::Estimate;
use crate::math::LogSum;
use crate::rng::{LANES, Lanes, Rng};

/// Runs of [`LANES`] chains of a document at most: 65,536 chains.
const MOST_RUNS: usize = 4096;

/// Steps of the chains behind posterior means, beside those of annealing.
const MOMENT_STEPS: usize = 64;

/// The error for a covariance whose lattice has too many points.
const TOO_WIDE: &str = "is too wide for quadrature: take \"annealed\"";

impl Law for LogisticNormal {
    fn n_topics(&self) -> usize {
        self.n_topics
    }

    fn vocabularies(&self) -> &Vocabularies {
        match &self.decoder {
            Decoder::Mixture { vocabularies, .. } | Decoder::Experts { vocabularies, .. } => {
                vocabularies
            }
        }
    }

    /// The own prior of a document is its mean, in place of the model's.
    fn check_documents(&self, documents: &CountMatrix) -> Result<()> {
        let n_words = self.vocabularies().n_words();
        check_length("vocabulary of the documents", documents.n_words(), n_words)?;
        if documents.exposures().is_some() {
            return Err(Error::GivenLength);
        }
        let expected = self.mean.len() * documents.n_documents();
        let found = documents.priors().map_or(expected, <[f64]>::len);
        check_length("priors of documents", found, expected)
    }

    /// Methods other than `auto`, `exact` and `annealed` are refused, and an exact request in more than
    /// two dimensions.
    fn check_effort(&self, _: Document<'_>, _: usize, settings: &Settings) -> Result<()> {
        match settings.method {
            Method::Auto | Method::Sample(Sampler::Annealed(None)) => Ok(()),
            Method::Exact if self.rank <= quadrature::MOST_DIMENSIONS => Ok(()),
            Method::Exact => {
                Err(Error::Dimensions { found: self.rank, most: quadrature::MOST_DIMENSIONS })
            }
            _ => Err(Error::NoUrn),
        }
    }

    fn score(
        &self,
        document: Document<'_>,
        settings: &Settings,
        rng: &mut Rng,
        observer: &dyn Observer,
    ) -> Result<Score> {
        if document.n_tokens() == 0 {
            return Ok(Score::exact(0.0));
        }
        let Some(local) = self.decoder.local(self.n_topics, document) else {
            return Ok(Score::exact(f64::NEG_INFINITY));
        };
        let prior = self.prior(document);
        if self.rank == 0 {
            return Ok(Score::exact(local.at(self.link, prior.mean)));
        }
        let annealed = Method::Sample(Sampler::Annealed(None));
        if settings.method != annealed && self.rank <= quadrature::MOST_DIMENSIONS {
            if let Some((found, change)) =
                quadrature::ln_integral(&local, self.link, &prior, observer)?
            {
                let estimate = Estimate { std_error: change, ..Estimate::exact(found) };
                return Ok(Score::of(estimate, Method::Exact.estimator()));
            }
            if settings.method == Method::Exact {
                return Err(Error::Covariance { problem: TOO_WIDE });
            }
        }
        let path = fit::path(&local, self.link, &prior, rng);
        let target = Potential::new(&local, self.link, &prior, &path.gaussian);
        let plan = match settings.total.or(settings.n_samples) {
            Some(n) if settings.target_std_error.is_some() => {
                Plan::from_pilot(&target, n, &path, rng, observer)?
            }
            Some(n_temperatures) => Plan { n_temperatures, variance: 0.0 },
            None => Plan::from_pilots(&target, &path, rng, observer)?,
        };
        let mut run = |n_runs: usize| -> Result<Vec<f64>> {
            let mut chains = Vec::with_capacity(n_runs * LANES);
            for _ in 0..n_runs {
                let run = ln_weights(&target, plan.n_temperatures, &path, rng, observer)?;
                chains.extend(run.0);
            }
            Ok(chains)
        };
        let mut n_runs = settings.n_replicates.div_ceil(LANES);
        if let Some(error) = settings.target_std_error {
            // Pilots of ever more chains, until one has the error; the estimate has twice as many.
            loop {
                let ratio = plan.estimate(&run(n_runs)?).std_error / error;
                if ratio <= 1.0 || n_runs >= MOST_RUNS {
                    n_runs = (2 * n_runs).min(MOST_RUNS);
                    break;
                }
                let necessary = (n_runs as f64 * ratio * ratio).ceil() as usize;
                n_runs = necessary.max(2 * n_runs).min(MOST_RUNS);
            }
        }
        let replicates = run(n_runs)?;
        let estimate = plan.estimate(&replicates);
        let spread = Some(Spread::of(&replicates, estimate.ln_value));
        Ok(Score { size: plan.n_temperatures, spread, ..Score::of(estimate, annealed.estimator()) })
    }

    fn bracket(
        &self,
        document: Document<'_>,
        draw: Draws<'_>,
        settings: &Settings,
        rng: &mut Rng,
        observer: &dyn Observer,
    ) -> Result<Option<Bounds>> {
        match draw {
            Draws::Latent(z) if settings.method != Method::Exact => {
                check_length("latent vectors", z.len(), self.rank)?;
                bracket::bounds(self, document, z, settings, rng, observer)
            }
            _ => Err(Error::NoReverse),
        }
    }

    /// Means and standard deviations are those of annealed chains, each by its weight, and of steps of
    /// theirs at the posterior.
    fn moments(
        &self,
        document: Document<'_>,
        _: usize,
        rng: &mut Rng,
        observer: &dyn Observer,
        moments: WeightMoments<'_>,
    ) -> Result<()> {
        let WeightMoments { means, deviations, errors } = moments;
        let prior = self.prior(document);
        let local = self.decoder.local(self.n_topics, document);
        let (Some(local), true) = (local, self.rank > 0) else {
            means.copy_from_slice(&weights(self.link, prior.mean));
            return Ok(());
        };
        let path = fit::path(&local, self.link, &prior, rng);
        let target = Potential::new(&local, self.link, &prior, &path.gaussian);
        let plan = Plan::from_pilots(&target, &path, rng, observer)?;
        let n = plan.n_temperatures;
        let (ln_weights, mut walk) = ln_weights(&target, n, &path, rng, observer)?;
        let total: LogSum = ln_weights.iter().copied().collect();
        let shares: Lanes = ln_weights.map(|x| (x - total.ln_sum()).exp() / MOMENT_STEPS as f64);
        let mut of_lanes = vec![[0.0; LANES]; means.len()];
        for _ in 0..MOMENT_STEPS {
            observer.check_stop()?;
            walk.step(&target, 1.0, path.angle, rng);
            walk.look(&target);
            for (lane, share) in shares.iter().enumerate() {
                let theta = weights(self.link, &target.coordinates(&walk.room, lane));
                for (topic, x) in theta.into_iter().enumerate() {
                    means[topic] += share * x;
                    deviations[topic] += share * x * x;
                    of_lanes[topic][lane] += share * x;
                }
            }
        }
        for (topic, parts) in of_lanes.iter().enumerate() {
            let mean = means[topic];
            deviations[topic] = (deviations[topic] - mean * mean).max(0.0).sqrt();
            // Lanes are independent, and the mean is a ratio of theirs (delta method).
            let gaps =
                parts.iter().zip(shares).map(|(x, share)| x - share * MOMENT_STEPS as f64 * mean);
            errors[topic] = gaps.map(|gap| gap * gap).sum::<f64>().sqrt();
        }
        Ok(())
    }

    fn covariance_factor(&self) -> &[f64] {
        &self.factor
    }
}

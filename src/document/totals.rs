//! Estimates of documents whose sum over a corpus is wanted: short runs, and the bias of ln reduced.
//!
//! ln of the mean of n runs is low, by the same amount however many documents there are, so that a
//! total drifts. The jackknife finds that bias but for its terms in 1/n² and beyond (Quenouille 1956,
//! "Notes on bias in estimation", Biometrika 43), which are small where the variance of ln Ẑ of a run
//! is about 1 or less.

use super::estimators::annealed::{Start, UrnPath};
use super::estimators::prepared::{Effort, Prepared};
use super::estimators::runs::Runs;
use super::estimators::sampler::Sampler;
use super::result::{Score, Share};
use super::settings::Method;
use crate::control::Observer;
use crate::error::Result;
use crate::estimate::Estimate;
use crate::math::LogSum;
use crate::rng::{LANES, Rng};
use crate::urn::LocalUrn;

/// Temperatures of the pilot.
const PILOT: usize = 3;

/// Fewest and most temperatures that a pilot chooses.
const LEAST: usize = 10;
const MOST: usize = 5_000;

/// The variance of ln Ẑ of a run falls by this power of its temperatures, about: as measured on
/// news articles, papers and short documents.
const POWER: f64 = 0.7;

/// Temperatures that a pilot finds, about.
const USUAL: usize = 25;

/// Mean-field sweeps behind the start of short runs.
const SHORT_ITERATIONS: usize = 4;

/// Multiply-adds that finding the start takes for each token and topic, about.
const START_COST: f64 = 100.0;

/// Temperatures of runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RunSizes<'a> {
    /// Temperatures of each document's runs.
    Given(&'a [usize]),
    /// As many as bring the variance of ln Ẑ of a run down to about this, which a pilot of the
    /// document predicts.
    Variance(f64),
    /// So many in every document, from a start that is found quickly.
    Short(usize),
}

/// How long the runs of one document are.
#[derive(Debug, Clone, Copy)]
pub(super) enum RunSize {
    /// In temperatures.
    Given(usize),
    /// Until ln Ẑ of a run has this variance.
    Variance(f64),
    /// In temperatures, from a start that is found quickly.
    Short(usize),
}

impl RunSizes<'_> {
    pub(super) fn of(self, row: usize) -> RunSize {
        match self {
            RunSizes::Given(sizes) => RunSize::Given(sizes[row].clamp(1, MOST)),
            RunSizes::Variance(variance) => RunSize::Variance(variance),
            RunSizes::Short(size) => RunSize::Short(size.clamp(1, MOST)),
        }
    }
}

/// Multiply-adds up to which the document is computed exactly: those of its runs, about.
pub(super) fn exact_budget(urn: &LocalUrn, size: RunSize) -> f64 {
    let each = match size {
        RunSize::Given(size) => START_COST + (LANES * size) as f64,
        RunSize::Variance(_) => START_COST + (LANES * USUAL) as f64,
        RunSize::Short(size) => (LANES * (size + 1)) as f64,
    };
    let extent = urn.extent();
    each * extent.n_tokens as f64 * extent.n_topics as f64
}

/// An estimate by [`LANES`] annealing runs.
pub(super) fn estimate(
    urn: &LocalUrn,
    size: RunSize,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Score> {
    let sampler = Sampler::Annealed(Start::MeanField);
    let (size, ln_sums) = if let RunSize::Short(size) = size {
        let path = UrnPath::new(urn, Start::MeanField, SHORT_ITERATIONS, observer)?;
        (size, path.ln_urn_sums(LANES, size, rng, observer)?)
    } else {
        let prepared = Prepared::new(sampler, urn, Effort::Quick, rng, observer)?;
        let mut runs =
            |size| prepared.ln_urn_sums(Runs { n: LANES, sizes: &[size] }, rng, observer);
        let size = match size {
            RunSize::Given(size) | RunSize::Short(size) => size,
            RunSize::Variance(wanted) => {
                let pilot = variance(&runs(PILOT)?);
                let growth = (pilot / wanted).powf(POWER.recip());
                ((PILOT as f64 * growth).ceil() as usize).clamp(LEAST, MOST)
            }
        };
        (size, runs(size)?)
    };
    let ln_value = ln_mean(&ln_sums);
    let (bias, squared_error) = jackknife(&ln_sums, ln_value);
    let estimate = Estimate {
        ln_value,
        std_error: squared_error.sqrt(),
        n_eff: ln_sums.len() as f64,
        n_replicates: ln_sums.len() as u32,
    };
    let share = Some(Share { correction: -bias, variance: variance(&ln_sums) });
    let method = Method::Sample(sampler);
    Ok(Score { estimate, method, size, reached: true, trace: Vec::new(), share })
}

fn ln_mean(ln_values: &[f64]) -> f64 {
    ln_values.iter().copied().collect::<LogSum>().ln_mean()
}

fn variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)
}

/// Bias and squared standard error of ln of the mean, by leaving out one value after the other; the
/// latter is at most the variance of a single value.
fn jackknife(ln_values: &[f64], of_all: f64) -> (f64, f64) {
    let without: Vec<f64> = (0..ln_values.len())
        .map(|left_out| {
            let others = ln_values.iter().enumerate().filter(|(ix, _)| *ix != left_out);
            others.map(|(_, &x)| x).collect::<LogSum>().ln_mean()
        })
        .collect();
    let n = ln_values.len() as f64;
    let bias = (n - 1.0) * (without.iter().sum::<f64>() / n - of_all);
    (bias, ((n - 1.0).powi(2) / n * variance(&without)).min(variance(ln_values)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::CountMatrix;
    use crate::document::TopicModel;
    use crate::document::exact::Plan;
    use crate::rng::{Key, Purpose};

    #[test]
    fn corrected_values_lack_most_of_the_bias() {
        let phi = [
            [0.3, 0.05, 0.1, 0.2, 0.05, 0.3],
            [0.05, 0.35, 0.3, 0.05, 0.2, 0.05],
            [0.1, 0.1, 0.05, 0.3, 0.4, 0.05],
        ];
        let model = TopicModel::lda(vec![0.05; 3], phi.as_flattened()).unwrap();
        let counts = CountMatrix::from_dense(&[vec![6, 1, 5, 3, 4, 2]]).unwrap();
        let urn = LocalUrn::new(model.urn(), counts.document(0)).unwrap();
        let exact = Plan::new(&urn).run(&urn, &()).unwrap();
        let key = Key::new(4, Purpose::Score);
        let (n, mut plain, mut corrected, mut squares, mut stated) = (4_000, 0.0, 0.0, 0.0, 0.0);
        for unit in 0..n {
            let score =
                estimate(&urn, RunSize::Variance(0.5), &mut key.unit(unit).rng(), &()).unwrap();
            let gap = score.estimate.ln_value - exact;
            let correction = score.share.unwrap().correction;
            let whole = gap + correction;
            plain += gap / n as f64;
            corrected += whole / n as f64;
            squares += whole * whole / n as f64;
            // Twice the correction is counted as its error.
            stated += (score.estimate.std_error.powi(2) + 4.0 * correction.powi(2)) / n as f64;
        }
        let error = (squares / n as f64).sqrt();
        assert!(plain < -6.0 * error, "{plain} {error}");
        assert!(corrected.abs() < 0.4 * plain.abs(), "{corrected} {plain} {error}");
        assert!((0.7..1.5).contains(&(stated / squares)), "{stated} {squares}");
    }
}

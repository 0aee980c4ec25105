//! Estimates of documents whose sum over a corpus is wanted: short runs, and the bias of ln reduced.
//!
//! ln of the mean of n replicates is low, by the same amount however many documents there are, so that
//! a total drifts. The bias is reduced by the differences Δ_j between ln of the mean of 2^(j+1)
//! batches and the average of ln of the means of its halves, of which one or none is drawn with
//! probability p_j and weighed by 1/p_j (McLeish 2011; Rhee and Glynn 2015, "Unbiased estimation
//! with square root convergence for SDE models", Operations Research 63): the expectation of the sum is
//! that of ln of the mean of 2^5 batches, with the cost of two.

use rand::RngExt as _;

use super::estimators::annealed::{Start, UrnPath};
use super::estimators::sampler::Sampler;
use super::result::{Score, Share};
use super::settings::Method;
use crate::control::Observer;
use crate::error::Result;
use crate::estimate::Estimate;
use crate::math::LogSum;
use crate::rng::{LANES, Rng};
use crate::urn::LocalUrn;

/// Temperatures of the pilot, and the fewest of a run.
const PILOT: usize = 3;

/// Most temperatures of a run.
const MOST: usize = 5_000;

/// Variance of ln Ẑ that a run is given its temperatures for: from about there on, the mean of some
/// hundred runs misses a part of Z.
const VARIANCE: f64 = 1.6;

/// Probability of the first difference, and ratio of each probability to the one before: near 2^-1.5,
/// at which neither cost nor variance is decided by the last, and small enough a weight of the last
/// for some hundred documents to have drawn it.
const FIRST: f64 = 0.25;
const RATIO: f64 = 0.4;

/// Number of differences.
const LEVELS: u32 = 5;

/// Multiply-adds that sampling takes for each token and topic, about: up to there exact is cheaper.
const COST: f64 = 500.0;

/// Multiply-adds up to which the document is computed exactly.
pub(super) fn exact_budget(urn: &LocalUrn) -> f64 {
    let extent = urn.extent();
    COST * extent.n_tokens as f64 * extent.n_topics as f64
}

/// An estimate by batches of runs of `size` temperatures, or of as many as a pilot finds.
pub(super) fn estimate(
    urn: &LocalUrn,
    size: Option<usize>,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Score> {
    let path = UrnPath::new(urn, Start::MeanField, observer)?;
    let size = if let Some(size) = size {
        size.clamp(1, MOST)
    } else {
        let pilot = variance(&path.ln_urn_sums(LANES, PILOT, rng, observer)?);
        ((PILOT as f64 * pilot / VARIANCE).ceil() as usize).clamp(PILOT, MOST)
    };
    let drawn = draw_level(rng.random());
    let n_batches = drawn.map_or(1, |(level, _)| 2_usize << level);
    let ln_sums = path.ln_urn_sums(n_batches * LANES, size, rng, observer)?;
    let correction = drawn.map_or(0.0, |(_, probability)| difference(&ln_sums) / probability);
    let (mut ln_value, mut squared_error, mut spread) = (0.0, 0.0, 0.0);
    for batch in ln_sums.chunks_exact(LANES) {
        ln_value += ln_mean(batch);
        squared_error += jackknife(batch);
        spread += variance(batch);
    }
    let n = n_batches as f64;
    let estimate = Estimate {
        ln_value: ln_value / n,
        std_error: squared_error.sqrt() / n,
        n_eff: ln_sums.len() as f64,
        n_replicates: ln_sums.len() as u32,
    };
    let method = Method::Sample(Sampler::Annealed(Start::MeanField));
    let share = Some(Share { correction, variance: spread / n });
    Ok(Score { estimate, method, size, reached: true, trace: Vec::new(), share })
}

/// The difference that a uniform number draws, if any, and its probability.
fn draw_level(uniform: f64) -> Option<(u32, f64)> {
    let (mut probability, mut rest) = (FIRST, uniform);
    for level in 0..LEVELS {
        if rest < probability {
            return Some((level, probability));
        }
        rest -= probability;
        probability *= RATIO;
    }
    None
}

/// ln of the mean of all, less the average of ln of the means of both halves.
fn difference(ln_values: &[f64]) -> f64 {
    let (first, second) = ln_values.split_at(ln_values.len() / 2);
    ln_mean(ln_values) - 0.5 * (ln_mean(first) + ln_mean(second))
}

fn ln_mean(ln_values: &[f64]) -> f64 {
    ln_values.iter().copied().collect::<LogSum>().ln_mean()
}

fn variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)
}

/// Squared standard error of ln of the mean, by leaving out one value after the other; at most the
/// variance of a single value.
fn jackknife(ln_values: &[f64]) -> f64 {
    let without: Vec<f64> = (0..ln_values.len())
        .map(|left_out| {
            let others = ln_values.iter().enumerate().filter(|(ix, _)| *ix != left_out);
            others.map(|(_, &x)| x).collect::<LogSum>().ln_mean()
        })
        .collect();
    let n = ln_values.len() as f64;
    ((n - 1.0).powi(2) / n * variance(&without)).min(variance(ln_values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::CountMatrix;
    use crate::document::TopicModel;
    use crate::rng::{Key, Purpose};

    #[test]
    fn probabilities_of_the_differences_are_those_by_which_they_are_weighed() {
        let n = 1 << 16;
        let mut found = [0.0; LEVELS as usize];
        let mut none = 0.0;
        for i in 0..n {
            match draw_level((f64::from(i) + 0.5) / f64::from(n)) {
                Some((level, _)) => found[level as usize] += 1.0 / f64::from(n),
                None => none += 1.0 / f64::from(n),
            }
        }
        for (level, share) in (0..).zip(found) {
            assert!((share - FIRST * RATIO.powi(level)).abs() < 1e-4, "{level}: {share}");
        }
        assert!((none + found.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn corrected_values_are_those_of_many_batches_on_average() {
        let phi = [
            [0.3, 0.05, 0.1, 0.2, 0.05, 0.3],
            [0.05, 0.35, 0.3, 0.05, 0.2, 0.05],
            [0.1, 0.1, 0.05, 0.3, 0.4, 0.05],
        ];
        let model = TopicModel::lda(vec![0.05; 3], phi.as_flattened()).unwrap();
        let counts = CountMatrix::from_dense(&[vec![6, 1, 5, 3, 4, 2]]).unwrap();
        let urn = LocalUrn::new(model.urn(), counts.document(0)).unwrap();
        let path = UrnPath::new(&urn, Start::MeanField, &()).unwrap();
        let key = Key::new(3, Purpose::Score);
        let many: Vec<f64> = (0..400)
            .map(|unit| {
                let n_runs = LANES << LEVELS;
                ln_mean(&path.ln_urn_sums(n_runs, 1, &mut key.unit(unit).rng(), &()).unwrap())
            })
            .collect();
        let expected = many.iter().sum::<f64>() / many.len() as f64;
        let key = Key::new(4, Purpose::Score);
        let (n, mut plain, mut corrected, mut squares) = (4_000, 0.0, 0.0, 0.0);
        for unit in 0..n {
            let score = estimate(&urn, Some(1), &mut key.unit(unit).rng(), &()).unwrap();
            let gap = score.estimate.ln_value - expected;
            let whole = gap + score.share.unwrap().correction;
            plain += gap / n as f64;
            corrected += whole / n as f64;
            squares += whole * whole / n as f64;
        }
        let error = (squares / n as f64 + variance(&many) / many.len() as f64).sqrt();
        assert!(corrected.abs() < 4.0 * error, "{corrected} {error}");
        assert!(plain < -6.0 * error, "{plain} {error}");
    }
}

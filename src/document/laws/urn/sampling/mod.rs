//! One document's estimate from replicates of a sampler, with its error and its trace.

pub(super) mod sizing;
pub(super) mod totals;

use crate::control::Observer;
use crate::document::estimators::annealed::rare::may_need;
use crate::document::estimators::annealed::single_topic;
use crate::document::estimators::prepared::Opening;
use crate::document::estimators::runs::{Replicates, Runs};
use crate::document::{Score, Settings, TracePoint};
use crate::error::Result;
use crate::estimate::Estimate;
use crate::math::LogSum;
use crate::rng::Rng;
use crate::urn::LocalUrn;
use sizing::Sizing;

/// Points of a trace for every tenfold size.
const TRACE_DENSITY: f64 = 8.0;

/// Estimates a document by the sampler of the settings, or by whichever is expected to be better.
pub(crate) fn estimate(
    urn: &LocalUrn,
    settings: &Settings,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Score> {
    let sizing = Sizing { urn, settings, observer };
    let mut ready = sizing.ready(rng)?;
    let sampler = ready.0.sampler;
    let size = sizing.made(&ready.0, ready.1.size);
    let mut n_each = sizing.runs_each(&ready.0, size);
    let n = n_each * settings.n_replicates;
    let sizes = if settings.trace && sampler.grows() { grid(size) } else { vec![size] };
    let Replicates { mut ln_values, is_heavy } =
        sizing.replicates(&mut ready, Runs { n, sizes: &sizes }, rng)?;
    let (prepared, choice) = ready;
    let size = sizing.made(&prepared, choice.size);
    if prepared.opening == Opening::Softened {
        // Most runs end where little is, nats apart: the error is that of their means.
        let mean = |runs: &[f64]| runs.iter().copied().collect::<LogSum>().ln_mean();
        ln_values = ln_values.chunks(n_each).map(mean).collect();
        n_each = 1;
    }
    let at = |index: usize| -> Vec<f64> {
        ln_values.iter().skip(index).step_by(sizes.len()).copied().collect()
    };
    let ln_least = single_topic::ln_least(urn);
    // Its error holds what it misses for certain.
    let estimate = |ln_replicates: &[f64], n_samples: usize| {
        let mut estimate = Estimate::from_replicates(ln_replicates, n_samples);
        estimate.std_error = estimate.std_error.hypot((ln_least - estimate.ln_value).max(0.0));
        estimate.of_means(n_each)
    };
    let n_merged = n * sizes.len() / ln_values.len();
    let point = |ln_replicates: &[f64], size: usize| {
        let n_samples = ln_replicates.len() * n_merged * size;
        TracePoint { n_samples, estimate: estimate(ln_replicates, n_samples) }
    };
    let ln_replicates = at(sizes.len() - 1);
    let trace = if !settings.trace {
        Vec::new()
    } else if sampler.grows() {
        sizes.iter().enumerate().map(|(index, &size)| point(&at(index), size)).collect()
    } else {
        (2..=settings.n_replicates).map(|n| point(&ln_replicates[..n * n_each], size)).collect()
    };
    let mut estimate = choice.with_beside(estimate(&ln_replicates, n * size), &ln_replicates);
    if may_need(urn, prepared.closed()) {
        // Replicates may agree on what they all miss.
        estimate.n_eff = f64::NAN;
    } else if is_heavy {
        estimate.n_eff = 0.0;
    }
    let gains_by_length = prepared.opening == Opening::ByToken;
    Ok(Score { size, trace, gains_by_length, ..Score::of(estimate, prepared.estimator()) })
}

/// Sample sizes from 1 to `size`, some for every tenfold.
fn grid(size: usize) -> Vec<usize> {
    let steps = (TRACE_DENSITY * (size as f64).log10()).ceil() as i32;
    let mut sizes: Vec<usize> = (0..steps)
        .map(|step| 10f64.powf(f64::from(step) / TRACE_DENSITY).round() as usize)
        .filter(|&s| s < size)
        .chain([size])
        .collect();
    sizes.dedup();
    sizes
}

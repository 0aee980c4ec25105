//! The urn sum of one document, by the method of the settings.

use super::sampling;
use crate::control::Observer;
use crate::document::estimators::recursive;
use crate::document::exact::ExactPlan;
use crate::document::{Method, Score, Settings};
use crate::error::Result;
use crate::estimate::Estimate;
use crate::rng::Rng;
use crate::urn::LocalUrn;

/// ln Z of an urn: exact along a plan, or by the method of the settings.
pub(super) fn ln_urn_sum(
    urn: &LocalUrn,
    plan: Option<ExactPlan>,
    settings: &Settings,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Score> {
    if urn.n_tokens() == 0 {
        return Ok(Score::exact(0.0));
    }
    if let Some(plan) = plan {
        return plan.run(urn, observer).map(Score::exact);
    }
    if settings.method == Method::Recursive {
        let estimate = Estimate::without_error(recursive::ln_urn_sum(urn, observer)?);
        return Ok(Score::of(estimate, Method::Recursive.estimator()));
    }
    sampling::estimate(urn, settings, rng, observer)
}

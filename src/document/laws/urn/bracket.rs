//! Forward and reverse estimates of an urn sum.

use super::sampling::sizing::{Choice, Sizing};
use crate::control::Observer;
use crate::document::estimators::runs::Runs;
use crate::document::{Bounds, Settings};
use crate::error::Result;
use crate::estimate::Estimate;
use crate::rng::Rng;
use crate::urn::LocalUrn;

/// The topics by their place among those of the document; `None` where one cannot produce its word.
pub(super) fn local_topics(urn: &LocalUrn, topics: &[u16]) -> Option<Vec<u16>> {
    let cells = urn.cells().flat_map(|(q, count)| std::iter::repeat_n(q, count as usize));
    let place = |(q, &topic): (&[f64], &u16)| {
        let place = urn.place(u32::from(topic))?;
        (q[place] > 0.0).then_some(place as u16)
    };
    cells.zip(topics).map(place).collect()
}

/// Brackets ln Z from topics of all tokens that are a draw of their posterior.
pub(super) fn bounds(
    urn: &LocalUrn,
    path: &[u16],
    settings: &Settings,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Bounds> {
    if path.is_empty() {
        return Ok(Bounds::exact(0.0));
    }
    let sizing = Sizing { urn, settings, observer };
    let (prepared, Choice { size, .. }) = sizing.ready(rng)?;
    let n = settings.n_replicates;
    let made = sizing.made(&prepared, size);
    let forward = prepared.ln_urn_sums(Runs { n, sizes: &[made] }, rng, observer)?;
    let reverse = prepared.ln_urn_sums_reversed(path, n, size, rng, observer)?;
    Ok(Bounds {
        lower: Estimate::from_replicates(&forward, n * made),
        upper: Estimate::from_inverses(&reverse, n * size),
        size,
    })
}

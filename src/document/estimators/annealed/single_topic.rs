//! Allocations that have all tokens of a document in one topic: nearly all of the urn sum where
//! pseudo-counts are tiny, and never more than it.

use crate::math::{LogSum, ln_rising, ln_rising_by};
use crate::urn::LocalUrn;

/// ln of the part of the urn sum in which one topic has all tokens, for each topic.
fn ln_parts(urn: &LocalUrn) -> impl Iterator<Item = f64> {
    (urn.pseudo_counts().iter().enumerate()).map(|(k, &a)| {
        let ln_words = urn.cells().enumerate().map(|(cell, (q, count))| match urn.bursts() {
            None => f64::from(count) * q[k].ln(),
            Some(bursts) => ln_rising_by(q[k], bursts.repeat(cell, k), u64::from(count)),
        });
        let rate = urn.bursts().map_or(0.0, |bursts| bursts.rates[k]);
        let ln_balls = ln_rising(a, urn.n_tokens()) - ln_rising_by(1.0, rate, urn.n_tokens());
        urn.ln_scale() + ln_balls + ln_words.sum::<f64>()
    })
}

/// ln of their sum, which is at most ln of the urn sum. Cost: distinct words x topics.
pub(in crate::document) fn ln_least(urn: &LocalUrn) -> f64 {
    ln_parts(urn).collect::<LogSum>().ln_sum()
}

/// The share of each topic in their sum.
pub(in crate::document) fn shares(urn: &LocalUrn) -> Vec<f64> {
    let ln_sum = ln_least(urn);
    ln_parts(urn).map(|ln_part| (ln_part - ln_sum).exp()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_topic() {
        let q: [&[f64]; 2] = [&[0.5, 0.25], &[0.2, 0.0]];
        let urn = LocalUrn::from_rows(&[0.1, 3.0], &[(q[0], 2), (q[1], 1)]).unwrap();
        let only: f64 = 0.1 * 1.1 * 2.1 * 0.5 * 0.5 * 0.2;
        assert!((ln_least(&urn) - only.ln()).abs() < 1e-14);
        assert!(shares(&urn)[1] == 0.0);
        let urn = LocalUrn::from_rows(&[0.1, 3.0], &[(q[0], 2)]).unwrap();
        let both = [0.1_f64 * 1.1 * 0.25, 3.0 * 4.0 * 0.0625];
        let share = both[1] / (both[0] + both[1]);
        assert!((ln_least(&urn) - (both[0] + both[1]).ln()).abs() < 1e-14);
        assert!((shares(&urn)[1] - share).abs() < 1e-14);
    }
}

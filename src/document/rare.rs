//! Documents that may open topics of tiny pseudo-counts.
//!
//! A topic of pseudo-count a costs ln a to open. Chains that move one token at a time leave such
//! topics closed even where the document needs them, and replicates agree on what they all miss.
//! These documents are computed exactly to a larger budget, or along a second path that
//! lowers the pseudo-counts.

use crate::urn::LocalUrn;

/// Pseudo-counts are rare up to this, and up to this share of the largest: chains of single moves may
/// be low by several errors.
const LARGEST: f64 = 0.01;
const LARGEST_SHARE: f64 = 0.04;

/// Pseudo-counts that are rare beside any others.
const ALWAYS_RARE: f64 = 1e-4;

/// Which topics the document cannot open.
pub(super) struct RareTopics {
    /// Rare topics that do not pay for their opening; empty where no topic is rare.
    pub(super) is_closed: Vec<bool>,
    /// Whether there are others.
    pub(super) may_open: bool,
}

impl RareTopics {
    /// Topic k takes m tokens from the common topics j at a gain of at most ln (m - 1)! and, for
    /// each of them, ln(q_kw / max_j a_j q_jw), as if a common topic held nothing else. The gain of
    /// several topics is at most the sum of theirs, so that none opens that does not pay
    /// ln(a_max / a_k). Cost: distinct words x topics.
    pub(super) fn of(urn: &LocalUrn) -> Self {
        let a = urn.pseudo_counts();
        let largest = a.iter().copied().fold(0.0, f64::max);
        let most = LARGEST.min(LARGEST_SHARE * largest).max(ALWAYS_RARE);
        let is_rare = |a: f64| a <= most;
        if !a.iter().copied().any(is_rare) {
            return RareTopics { is_closed: Vec::new(), may_open: false };
        }
        let best_common = |q: &[f64]| {
            let common = q.iter().zip(a).filter(|(_, a)| !is_rare(**a));
            common.map(|(q, a)| q * a.min(1.0)).fold(0.0, f64::max)
        };
        let words: Vec<(&[f64], u32, f64)> =
            urn.cells().map(|(q, count)| (q, count, best_common(q))).collect();
        if words.iter().any(|&(_, _, best)| best == 0.0) {
            return RareTopics { is_closed: vec![false; a.len()], may_open: true };
        }
        let mut gains = Vec::with_capacity(words.len());
        let is_closed = a.iter().enumerate().map(|(k, &a)| {
            gains.clear();
            gains.extend(words.iter().map(|&(q, count, best)| ((q[k] / best).ln(), count)));
            gains.sort_unstable_by(|x, y| y.0.total_cmp(&x.0));
            is_rare(a) && largest_gain(&gains) < (largest / a).ln()
        });
        let is_closed: Vec<bool> = is_closed.collect();
        let may_open = is_closed.iter().zip(a).any(|(is_closed, &a)| is_rare(a) && !is_closed);
        RareTopics { is_closed, may_open }
    }
}

/// The largest gain of one topic, given those of single tokens, which fall.
fn largest_gain(gains: &[(f64, u32)]) -> f64 {
    let (mut sum, mut most, mut n) = (0.0, f64::NEG_INFINITY, 0.0);
    for &(gain, count) in gains {
        for _ in 0..count {
            sum += gain + f64::max(n, 1.0).ln();
            n += 1.0;
            most = f64::max(most, sum);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_topics_open_where_the_words_are_theirs() {
        let (a, q): (_, [&[f64]; 2]) = ([0.5, 1e-6], [&[0.5, 0.6], &[1e-4, 0.4]]);
        let urn = |counts: [u32; 2]| {
            LocalUrn::of_rows(&a, &[(q[0], counts[0]), (q[1], counts[1])]).unwrap()
        };
        assert!(!RareTopics::of(&urn([2, 1])).may_open);
        assert_eq!(RareTopics::of(&urn([2, 1])).is_closed, [false, true]);
        assert!(RareTopics::of(&urn([2, 2])).may_open);
        let equal = LocalUrn::of_rows(&[1e-3, 1e-3], &[(q[0], 9), (q[1], 9)]).unwrap();
        assert!(!RareTopics::of(&equal).may_open);
    }
}

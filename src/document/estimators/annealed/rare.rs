//! Documents that may open topics of tiny pseudo-counts.
//!
//! A topic of pseudo-count a costs ln a to open. Chains that move one token at a time leave such
//! topics closed even where the document needs them, and replicates agree on what they all miss.
//! These documents are computed exactly to a larger budget, or along a second path that
//! lowers the pseudo-counts.
//!
//! With these limits, documents of small priors were compared with the truth in `docs/coverage.md`.

use crate::urn::LocalUrn;

/// Which pseudo-counts are rare: the largest, and its largest share of the largest pseudo-count.
#[derive(Debug, Clone, Copy)]
pub(in crate::document) struct Rarity {
    largest: f64,
    share: f64,
}

impl Rarity {
    /// Chains of short documents may be low by several errors.
    pub(in crate::document) const EXACT: Self = Rarity { largest: 0.01, share: 0.04 };
    /// The longest runs that pilots choose, of 5,000 sweeps, leave these closed; the path of shorter runs is
    /// [asked](super::urn_path::UrnPath::rarest). Learned priors of hundreds of topics often
    /// have topics beyond, for which lowering takes several times as long at equal errors.
    pub(in crate::document) const LOWERED: Self = Rarity { largest: 2e-4, share: 0.01 };
}

/// Whether the document may need several topics, of which some have pseudo-counts up to `closed`.
pub(in crate::document) fn may_need(urn: &LocalUrn, closed: f64) -> bool {
    let is_rare = || urn.pseudo_counts().iter().any(|&a| a <= closed);
    let rarity = Rarity { largest: closed, share: f64::INFINITY };
    urn.n_topics() > 1 && urn.n_tokens() > 1 && is_rare() && RareTopics::of(urn, rarity).may_open
}

/// Pseudo-counts that are rare beside any others.
const ALWAYS_RARE: f64 = 1e-4;

/// Which topics the document cannot open.
pub(in crate::document) struct RareTopics {
    /// Rare topics that do not pay for their opening; empty where no topic is rare.
    pub(in crate::document) is_closed: Vec<bool>,
    /// Whether there are others.
    pub(in crate::document) may_open: bool,
}

impl RareTopics {
    /// Topic k takes m tokens from the common topics j at a gain of at most ln (m - 1)! and, for
    /// each of them, ln(q_kw / max_j a_j q_jw), as if a common topic held nothing else. The gain of
    /// several topics is at most the sum of theirs, so that none opens that does not pay
    /// ln(a_max / a_k). Cost: distinct words x topics.
    pub(in crate::document) fn of(urn: &LocalUrn, rarity: Rarity) -> Self {
        let a = urn.pseudo_counts();
        let largest = a.iter().copied().fold(0.0, f64::max);
        let most = rarity.largest.min(rarity.share * largest).max(ALWAYS_RARE);
        // A topic that alone can produce a word is open, and holds a ball at least.
        let mut held = a.to_vec();
        for (q, _) in urn.cells() {
            let mut possible = (0..q.len()).filter(|&k| q[k] > 0.0);
            if let (Some(k), None) = (possible.next(), possible.next()) {
                held[k] = f64::max(held[k], 1.0);
            }
        }
        let is_rare: Vec<bool> = held.iter().map(|&held| held <= most).collect();
        if !is_rare.contains(&true) {
            return RareTopics { is_closed: Vec::new(), may_open: false };
        }
        let best_common = |q: &[f64]| {
            let common = q.iter().zip(&held).zip(&is_rare).filter(|(_, is_rare)| !**is_rare);
            common.map(|((q, held), _)| q * held.min(1.0)).fold(0.0, f64::max)
        };
        let words: Vec<(&[f64], u32, f64)> =
            urn.cells().map(|(q, count)| (q, count, best_common(q))).collect();
        if words.iter().any(|&(_, _, best)| best == 0.0) {
            return RareTopics { is_closed: vec![false; a.len()], may_open: true };
        }
        let mut gains = Vec::with_capacity(words.len());
        let is_closed: Vec<bool> = (0..a.len())
            .map(|k| {
                gains.clear();
                gains.extend(words.iter().map(|&(q, count, best)| ((q[k] / best).ln(), count)));
                gains.sort_unstable_by(|x, y| y.0.total_cmp(&x.0));
                is_rare[k] && largest_gain(&gains) < (largest / a[k]).ln()
            })
            .collect();
        let may_open = is_closed.iter().zip(&is_rare).any(|(closed, rare)| *rare && !closed);
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
    fn documents_may_need_rare_topics_where_all_are_rare() {
        let urn = |a: [f64; 2], counts: [u32; 2]| {
            LocalUrn::from_rows(&a, &[(&[0.5, 0.6], counts[0]), (&[1e-4, 0.4], counts[1])]).unwrap()
        };
        assert!(may_need(&urn([0.01, 0.01], [2, 2]), 0.01));
        assert!(!may_need(&urn([0.02, 0.02], [2, 2]), 0.01));
        assert!(!may_need(&urn([0.01, 0.01], [1, 0]), 0.01));
        assert!(!may_need(&urn([0.5, 1e-6], [2, 1]), 0.01));
        assert!(may_need(&urn([0.5, 1e-6], [2, 2]), 0.01));
    }

    #[test]
    fn rare_topics_open_where_the_words_are_theirs() {
        let (a, q): (_, [&[f64]; 2]) = ([0.5, 1e-6], [&[0.5, 0.6], &[1e-4, 0.4]]);
        let urn = |counts: [u32; 2]| {
            LocalUrn::from_rows(&a, &[(q[0], counts[0]), (q[1], counts[1])]).unwrap()
        };
        assert!(!RareTopics::of(&urn([2, 1]), Rarity::EXACT).may_open);
        assert_eq!(RareTopics::of(&urn([2, 1]), Rarity::EXACT).is_closed, [false, true]);
        assert!(RareTopics::of(&urn([2, 2]), Rarity::EXACT).may_open);
        let alone: [&[f64]; 2] = [&[0.0, 0.6], &[1e-4, 0.4]];
        let urn = LocalUrn::from_rows(&a, &[(alone[0], 2), (alone[1], 2)]).unwrap();
        assert!(!RareTopics::of(&urn, Rarity::EXACT).may_open);
        let equal = LocalUrn::from_rows(&[1e-3, 1e-3], &[(q[0], 9), (q[1], 9)]).unwrap();
        assert!(!RareTopics::of(&equal, Rarity::EXACT).may_open);
    }
}

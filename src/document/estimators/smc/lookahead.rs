//! Expected topics of the remaining tokens, for a particle filter.

use super::super::mean_field::{self, MeanField};
use crate::control::Observer;
use crate::error::Result;
use crate::urn::LocalUrn;

/// Mean-field sweeps behind the lookahead.
const MEAN_FIELD_ITERATIONS: usize = 5;

/// Share of the expected future balls that the lookahead counts on: the mean field is too sure.
const TRUST: f64 = 0.3;

/// Responsibilities below this are left out of the lookahead.
const NEGLIGIBLE: f64 = 0.05;

/// Pseudo-counts below this, or below an equal share of [`RAISED_TOTAL`] where there are many
/// topics, are raised to it: a filter that hardly ever opens a topic cannot see what it misses,
/// and its replicates agree on too little.
const RAISED: f64 = 0.02;

/// Largest sum of raised pseudo-counts.
const RAISED_TOTAL: f64 = 1.0;

/// Expected topics of every token, and the order in which tokens are visited.
pub(super) struct Lookahead {
    /// Pseudo-counts of the filter; its weights are corrected to a at the end.
    pub(super) pseudo_counts: Vec<f64>,
    /// Per distinct word: topics with a noticeable responsibility, and λ times that.
    pub(super) support: Vec<Vec<(usize, f64)>>,
    /// Distinct words, those with the clearest topic first.
    pub(super) order: Vec<usize>,
}

impl Lookahead {
    /// Expects nothing; words in their own order, pseudo-counts as they are.
    pub(super) fn none(urn: &LocalUrn) -> Self {
        Lookahead {
            pseudo_counts: urn.pseudo_counts().to_vec(),
            support: vec![Vec::new(); urn.n_distinct()],
            order: (0..urn.n_distinct()).collect(),
        }
    }

    /// Expects what the mean field expects, discounted.
    pub(super) fn new(urn: &LocalUrn, observer: &impl Observer) -> Result<Self> {
        let mean_field = MeanField::first_order(MEAN_FIELD_ITERATIONS);
        let g = mean_field::responsibilities(urn, mean_field, observer)?;
        let rows = || g.chunks_exact(urn.n_topics());
        let support = rows()
            .map(|row| {
                let noticeable = row.iter().enumerate().filter(|&(_, &g)| g > NEGLIGIBLE);
                noticeable.map(|(k, &g)| (k, TRUST * g)).collect()
            })
            .collect();
        let clarity: Vec<f64> = rows().map(|row| row.iter().map(|g| g * g).sum()).collect();
        let mut order: Vec<usize> = (0..urn.n_distinct()).collect();
        order.sort_by(|&i, &j| clarity[j].total_cmp(&clarity[i]));
        let least = (RAISED_TOTAL / urn.n_topics() as f64).min(RAISED);
        let pseudo_counts = urn.pseudo_counts().iter().map(|a| a.max(least)).collect();
        Ok(Lookahead { pseudo_counts, support, order })
    }
}

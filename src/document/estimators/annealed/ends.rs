//! Ends of annealing runs, from which others may start.

use crate::math::elementary::exp;
use crate::math::pick;
use crate::rng::{LANES, Lanes};

/// Ends of the runs in lockstep among which is the largest weight: topics of all tokens, and ln of the
/// weights.
pub(crate) struct Ends {
    pub(super) ln_values: Lanes,
    pub(super) topics: Vec<[u16; LANES]>,
}

impl Ends {
    #[cfg(test)]
    pub(crate) fn put_into(&mut self, topic: u16) {
        self.topics.fill([topic; LANES]);
    }

    pub(super) fn largest(&self) -> f64 {
        self.ln_values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Topics of all tokens of chains that are drawn by their weights, at equal distances from a dart.
    pub(super) fn drawn(&self, dart: f64) -> Vec<[u16; LANES]> {
        let largest = self.largest();
        let weights = self.ln_values.map(|x| exp(x - largest));
        let total: f64 = weights.iter().sum();
        let lanes: [usize; LANES] = std::array::from_fn(|place| {
            let place = (place as f64 + dart) / LANES as f64;
            pick(weights.iter().copied(), place * total).unwrap_or(0)
        });
        self.topics.iter().map(|topics| lanes.map(|lane| topics[lane])).collect()
    }
}

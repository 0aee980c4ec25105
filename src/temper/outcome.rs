//! Estimates of the rounds, how far they can be trusted, and whether another round is needed.

use super::ladder::RoundResult;
use crate::estimate::Estimate;

/// Barrier below which the reference is as good as the target.
const NO_BARRIER: f64 = 0.1;

/// Rounds whose spread is pooled.
const POOLED: usize = 3;

/// Standard deviations by which the value may rise, or fall, by chance: less is not taken for drift.
/// Chains that still look for the largest modes give too little, so that a rise is the more likely
/// to go on.
const MOVED: [f64; 2] = [2.0, 3.0];

/// One round of all replicates: means over them unless said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Scans of each ladder.
    pub n_scans: usize,
    /// Bridge estimate of ln Z of every replicate.
    pub ln_values: Vec<f64>,
    /// Stepping stones from the reference to the target, and back. Estimates, not bounds.
    pub sides: [f64; 2],
    /// Chains that went from the reference to the target and back, in all replicates.
    pub n_trips: u64,
    /// Global barrier Λ: the sum of the rejections of all swaps along the ladder.
    pub barrier: f64,
}

impl Round {
    /// Mean of the bridge estimates.
    pub fn ln_value(&self) -> f64 {
        self.ln_values.iter().sum::<f64>() / self.ln_values.len() as f64
    }

    /// Its standard error by the spread of the replicates; 0 for one, which has none.
    pub fn spread(&self) -> f64 {
        let (n, mean) = (self.ln_values.len() as f64, self.ln_value());
        let squares: f64 = self.ln_values.iter().map(|x| (x - mean).powi(2)).sum();
        (squares / (n * (n - 1.0).max(1.0))).sqrt()
    }
}

/// All rounds of tempering, and what they come to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TemperingOutcome {
    /// Rounds, each twice as long as the one before.
    pub rounds: Vec<Round>,
    /// Inverse temperatures of the first replicate in the last round.
    pub betas: Vec<f64>,
    /// Rejections of the swaps between them.
    pub rejections: Vec<f64>,
    /// Whether sides, rounds and replicates agree within the standard error asked for, and chains have
    /// made round trips, one for each replicate.
    pub converged: bool,
    /// Whether the observer ended the work.
    pub stopped: bool,
}

impl TemperingOutcome {
    /// Adds a round.
    pub(super) fn add(&mut self, found: &[RoundResult], n_scans: usize) {
        let n = found.len() as f64;
        let mean = |of: &dyn Fn(&RoundResult) -> f64| found.iter().map(of).sum::<f64>() / n;
        self.rounds.push(Round {
            n_scans,
            ln_values: found.iter().map(|found| found.steps.bridge).collect(),
            sides: [mean(&|found| found.steps.forward), mean(&|found| found.steps.backward)],
            n_trips: found.iter().map(|found| found.n_trips).sum(),
            barrier: mean(&|found| found.barrier),
        });
        self.betas.clone_from(&found[0].betas);
        self.rejections.clone_from(&found[0].rejections);
    }

    /// ln Z: the mean over the replicates of the last round.
    ///
    /// NaN where there is no round.
    pub fn ln_value(&self) -> f64 {
        self.rounds.last().map_or(f64::NAN, Round::ln_value)
    }

    /// Standard error of [`ln_value`](TemperingOutcome::ln_value), of these parts: the spread of the
    /// replicates, what half the distance of the two sides is beyond it, and how much more than by
    /// chance the value has moved since rounds of half and of a quarter of the effort.
    ///
    /// Estimates approach their limit from one side while the chains still forget their start. A
    /// distance that halves with each round leaves as much as the last round took away, and a third
    /// of the last two.
    pub fn std_error(&self) -> f64 {
        let [before @ .., last] = &self.rounds[..] else { return f64::NAN };
        let variance = self.variance();
        let excess = |round: &Round| {
            let moved = last.ln_value() - round.ln_value();
            let chance = variance * (1.0 + last.n_scans as f64 / round.n_scans as f64);
            let excess = moved.powi(2) - chance;
            let by_chance = MOVED[usize::from(moved < 0.0)];
            if excess > (by_chance.powi(2) - 1.0) * chance { excess } else { 0.0 }
        };
        let drift = match before {
            [] => 0.0,
            [half] => excess(half),
            [.., quarter, half] => excess(half).max(excess(quarter) / 9.0),
        };
        let [forward, backward] = last.sides;
        let apart = (0.25 * (forward - backward).powi(2) - variance).max(0.0);
        (variance + drift + apart).sqrt()
    }

    /// Variance of the last round's mean: that of its replicates, or that of the last [`POOLED`] rounds
    /// together where it is larger. Four replicates that agree by chance do not make an error small.
    fn variance(&self) -> f64 {
        let rounds = &self.rounds[self.rounds.len().saturating_sub(POOLED)..];
        let [.., last] = rounds else { return f64::NAN };
        let share = |round: &Round| round.n_scans as f64 / last.n_scans as f64;
        let squares = rounds.iter().map(|round| round.spread().powi(2) * share(round));
        last.spread().powi(2).max(squares.sum::<f64>() / rounds.len() as f64)
    }

    /// Degrees of freedom of the standard error: of the replicates of two rounds. A third adds little,
    /// as rounds of one ladder depend on each other.
    pub fn n_free(&self) -> usize {
        self.rounds.len().min(2) * self.n_replicates().saturating_sub(1)
    }

    fn n_replicates(&self) -> usize {
        self.rounds.last().map_or(0, |round| round.ln_values.len())
    }

    /// Round trips of all chains in all rounds.
    pub fn n_trips(&self) -> u64 {
        self.rounds.iter().map(|round| round.n_trips).sum()
    }

    /// Whether as many chains as there are replicates have come from the reference to the target and
    /// back, or nothing lies between the two: replicates that agree may all have missed the same modes.
    pub fn has_round_trips(&self) -> bool {
        let barrier = self.rounds.last().map_or(f64::NAN, |round| round.barrier);
        self.n_trips() >= self.n_replicates() as u64 || barrier < NO_BARRIER
    }

    /// The estimate of the last round, each replicate being a visit of its own.
    pub fn estimate(&self) -> Estimate {
        let n_replicates = self.n_replicates();
        Estimate {
            ln_value: self.ln_value(),
            std_error: self.std_error(),
            n_eff: n_replicates as f64,
            n_replicates: n_replicates as u32,
        }
    }

    /// Raises all estimates by a constant.
    #[must_use]
    pub fn raised(mut self, constant: f64) -> Self {
        for round in &mut self.rounds {
            round.ln_values.iter_mut().chain(&mut round.sides).for_each(|x| *x += constant);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of four replicates whose mean has the standard error 0.1.
    fn round(n_scans: usize, mean: f64) -> Round {
        let ln_values = [-1.0, -1.0, 1.0, 1.0].map(|x| mean + x * 0.03_f64.sqrt()).to_vec();
        Round { n_scans, ln_values, sides: [mean; 2], n_trips: 4, barrier: 1.0 }
    }

    #[test]
    fn a_rise_is_taken_for_drift_sooner_than_a_fall() {
        let moved = |by: f64| {
            let rounds = vec![round(64, 0.0), round(128, by)];
            TemperingOutcome { rounds, ..TemperingOutcome::default() }.std_error()
        };
        // The pooled error, and by chance rounds differ by √3 of it.
        let (alone, chance) = (moved(0.0), 3.0_f64.sqrt() * moved(0.0));
        assert!((alone - 0.1).abs() < 1e-12);
        for by in [1.9, -1.9, -2.9] {
            assert!((moved(by * chance) - alone).abs() < 1e-12);
        }
        for by in [2.1, -3.1_f64] {
            let drift = (by.powi(2) - 1.0) * chance.powi(2);
            assert!((moved(by * chance) - alone.hypot(drift.sqrt())).abs() < 1e-12);
        }
    }
}

//! Estimates of the rounds, how far they can be trusted, and whether another round is needed.

use super::replicate::Found;

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

    /// Its standard error by the spread of the replicates.
    pub fn spread(&self) -> f64 {
        let (n, mean) = (self.ln_values.len() as f64, self.ln_value());
        let squares: f64 = self.ln_values.iter().map(|x| (x - mean).powi(2)).sum();
        (squares / (n * (n - 1.0))).sqrt()
    }
}

/// Findings of all rounds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// Rounds, each twice as long as the one before.
    pub rounds: Vec<Round>,
    /// Inverse temperatures of the first replicate in the last round.
    pub betas: Vec<f64>,
    /// Rejections of the swaps between them.
    pub rejections: Vec<f64>,
    /// Whether sides, rounds and replicates agree within the standard error asked for.
    pub converged: bool,
    /// Whether the observer ended the work.
    pub stopped: bool,
}

impl Outcome {
    /// Adds a round.
    pub(super) fn add(&mut self, found: &[Found], n_scans: usize) {
        let n = found.len() as f64;
        let mean = |of: &dyn Fn(&Found) -> f64| found.iter().map(of).sum::<f64>() / n;
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

    /// Change of the estimate since the round of a quarter of the effort, and its standard error by
    /// the spread of the replicates.
    fn drift(&self) -> Option<(f64, f64)> {
        let [.., quarter, _, last] = &self.rounds[..] else { return None };
        Some((last.ln_value() - quarter.ln_value(), last.spread().hypot(quarter.spread())))
    }
}

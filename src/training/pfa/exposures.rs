//! Documents of different sizes: what p and r depend on, beside the topics of the tokens.
//!
//! With x = (1-p)/p, the rate of the gamma law of θ, a topic has n of the tokens of a document of
//! exposure e with probability ∝ x^r e^n / (x + e)^(r + n), θ integrated out.

use crate::error::{Result, check_length, check_positive};
use crate::training::sweeps::ExposedTally;
use crate::training::tokens::ExposureGroups;

/// The different exposures of the documents of a corpus.
pub(super) struct Exposures {
    ln_values: Vec<f64>,
    n_documents: Vec<f64>,
}

impl Exposures {
    pub(super) fn new(groups: &ExposureGroups) -> Result<Self> {
        let ExposureGroups { values, n_documents } = groups;
        check_length("documents by exposure", n_documents.len(), values.len())?;
        check_positive("exposure", values)?;
        let ln_values = values.iter().map(|e| e.ln()).collect();
        Ok(Exposures { ln_values, n_documents: n_documents.iter().map(|&n| n as f64).collect() })
    }

    /// Number of different exposures.
    pub(super) fn n(&self) -> usize {
        self.ln_values.len()
    }

    /// Σ over documents of ln(1 + e/x), which is -ln of P(no token of the topic) by unit of r.
    pub(super) fn ln_empty(&self, ln_x: f64) -> f64 {
        let groups = self.ln_values.iter().zip(&self.n_documents);
        groups.map(|(ln_e, n)| n * softplus(ln_e - ln_x)).sum()
    }

    /// Σ over the tokens of a topic of ln(e / (x + e)).
    pub(super) fn ln_tokens(&self, tally: &ExposedTally, ln_x: f64) -> f64 {
        let ln_share = |ln_e: f64| -softplus(ln_x - ln_e);
        tally.iter().map(|&(group, n)| n as f64 * ln_share(self.ln_values[group as usize])).sum()
    }

    /// ln of the density of t = ln x given r and the tokens of a topic, up to a constant, and its
    /// slope; p ~ Beta(first, second). Concave in t.
    pub(super) fn ln_density(
        &self,
        tally: &ExposedTally,
        r: f64,
        (first, second): (f64, f64),
        t: f64,
    ) -> (f64, f64) {
        // x^second / (1 + x)^(first + second), and for every document x^r e^n / (x + e)^(r + n).
        let mut value = -second * softplus(-t) - first * softplus(t);
        let mut slope = second * logistic(-t) - first * logistic(t);
        for (ln_e, n) in self.ln_values.iter().zip(&self.n_documents) {
            value -= r * n * softplus(ln_e - t);
            slope += r * n * logistic(ln_e - t);
        }
        for &(group, n) in tally {
            let ln_e = self.ln_values[group as usize];
            value -= n as f64 * softplus(t - ln_e);
            slope -= n as f64 * logistic(t - ln_e);
        }
        (value, slope)
    }
}

/// ln(1 + exp x).
pub(super) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// 1 / (1 + exp(-x)).
fn logistic(x: f64) -> f64 {
    (1.0 + (-x).exp()).recip()
}

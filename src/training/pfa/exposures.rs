//! Documents of different sizes: what p and r depend on, beside the topics of the tokens.
//!
//! With x = (1-p)/p, the rate of the gamma law of θ, a topic has n of the tokens of a document of
//! exposure e with probability ∝ x^r e^n / (x + e)^(r + n), θ integrated out.

use crate::counts::{CountMatrix, Document};

/// The different exposures, and the documents of each.
pub(super) struct Exposures {
    ln_values: Vec<f64>,
    n_documents: Vec<f64>,
    /// (exposure, document, its first token), by exposure.
    documents: Vec<(u32, u32, usize)>,
}

/// (exposure, tokens) of a topic, for the exposures of documents that it has tokens in.
pub(super) type Tally = Vec<(u32, u64)>;

impl Exposures {
    /// `None` where all exposures are 1.
    pub(super) fn of(counts: &CountMatrix) -> Option<Self> {
        let exposures = counts.exposures()?;
        let mut values = exposures.to_vec();
        values.sort_by(f64::total_cmp);
        values.dedup_by_key(|e| e.to_bits());
        let mut n_documents = vec![0.0; values.len()];
        let mut first = 0;
        let lengths = counts.documents().map(Document::n_tokens);
        let mut documents: Vec<(u32, u32, usize)> = (0..)
            .zip(exposures.iter().zip(lengths))
            .map(|(doc_ix, (exposure, length))| {
                let group = values.partition_point(|e| e < exposure);
                n_documents[group] += 1.0;
                first += length as usize;
                (group as u32, doc_ix, first - length as usize)
            })
            .collect();
        documents.sort_unstable();
        let ln_values = values.iter().map(|e| e.ln()).collect();
        Some(Exposures { ln_values, n_documents, documents })
    }

    /// The tokens of every topic by exposure, from the topics of all tokens.
    pub(super) fn tally(
        &self,
        counts: &CountMatrix,
        topics: &[u16],
        n_topics: usize,
    ) -> Vec<Tally> {
        let mut tallies = vec![Tally::new(); n_topics];
        for &(group, doc_ix, first) in &self.documents {
            let length = counts.document(doc_ix as usize).n_tokens() as usize;
            for &topic in &topics[first..first + length] {
                let tally = &mut tallies[usize::from(topic)];
                match tally.last_mut() {
                    Some((last, n)) if *last == group => *n += 1,
                    _ => tally.push((group, 1)),
                }
            }
        }
        tallies
    }

    /// Σ over documents of ln(1 + e/x), which is -ln of P(no token of the topic) by unit of r.
    pub(super) fn ln_empty(&self, ln_x: f64) -> f64 {
        let groups = self.ln_values.iter().zip(&self.n_documents);
        groups.map(|(ln_e, n)| n * softplus(ln_e - ln_x)).sum()
    }

    /// Σ over the tokens of a topic of ln(e / (x + e)).
    pub(super) fn ln_tokens(&self, tally: &Tally, ln_x: f64) -> f64 {
        let ln_share = |ln_e: f64| -softplus(ln_x - ln_e);
        tally.iter().map(|&(group, n)| n as f64 * ln_share(self.ln_values[group as usize])).sum()
    }

    /// ln of the density of t = ln x given r and the tokens of a topic, up to a constant, and its
    /// slope; p ~ Beta(first, second). Concave in t.
    pub(super) fn ln_density(
        &self,
        tally: &Tally,
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

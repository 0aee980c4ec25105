//! Concentrations of bursty topics: φ_dk ~ Dirichlet(s_k φ_k) in every document d, or LDA where s_k is
//! infinite (Doyle and Elkan 2009, "Accounting for burstiness in topic models", ICML).
//!
//! Given the tables t of all words, φ_k ~ Dirichlet(β + t_k), and the density of s_k is its prior times
//! s^{t_k·} / Π_d (s)_{n_dk}: concave in ln s, and drawn exactly. A priori s/(s + 100) is uniform: the
//! share of the next token's probability that is new, not repeated, once a document has 100 tokens of
//! the topic.

use rayon::prelude::*;

use crate::error::{Result, check_all, check_length};
use crate::math::elementary::ln;
use crate::math::log_concave;
use crate::rng::Key;

use super::sweeps::{BurstWeights, Bursts};

/// Median of the prior of s, and the value at which it starts.
const MEDIAN: f64 = 100.0;
const START: f64 = 300.0;

/// Numbers that are summed side by side.
const LANES: usize = 8;

/// How the concentrations of topics are found.
#[derive(Debug, Clone, PartialEq)]
pub enum Concentration {
    /// Known, one a topic; infinite ones are LDA.
    Fixed(Vec<f64>),
    /// Drawn, one a topic.
    PerTopic,
    /// Drawn, the same for all topics.
    Shared,
}

/// Concentrations of all topics between two sweeps.
pub struct TopicBursts {
    how: Concentration,
    /// ln s of each topic.
    ln_s: Vec<f64>,
    inverse: Vec<f64>,
}

impl TopicBursts {
    /// Concentrations as given, or at their start; `None` where all of them are infinite.
    ///
    /// # Errors
    /// Another number than one a topic; values that are not positive.
    pub fn new(how: Concentration, n_topics: usize) -> Result<Option<Self>> {
        let mut ln_s = vec![START.ln(); n_topics];
        if let Concentration::Fixed(values) = &how {
            check_length("topic_concentration", values.len(), n_topics)?;
            check_all("topic_concentration", values, "positive", |s| s > 0.0)?;
            ln_s = values.iter().map(|s| s.ln()).collect();
        }
        let is_lda = ln_s.iter().all(|s| s.is_infinite());
        let mut bursts = TopicBursts { how, ln_s, inverse: vec![] };
        bursts.invert();
        Ok((!is_lda).then_some(bursts))
    }

    fn invert(&mut self) {
        self.inverse = self.ln_s.iter().map(|x| (-x).exp()).collect();
    }

    /// Concentrations for a sweep over the tokens, given urn weights over φ.
    pub(super) fn weights<'a>(&'a self, factor: &'a [f64]) -> BurstWeights<'a> {
        BurstWeights { inverse: &self.inverse, factor }
    }

    /// ln s of each topic, where they are drawn; else none.
    pub(super) fn drawn(&self) -> &[f64] {
        if matches!(self.how, Concentration::Fixed(_)) { &[] } else { &self.ln_s }
    }

    /// Takes up ln s of a state.
    pub(super) fn restore(&mut self, ln_s: &[f64]) -> Result<()> {
        check_length("concentrations of the state", ln_s.len(), self.drawn().len())?;
        check_all("concentrations of the state", ln_s, "moderate", |x| x.abs() < 700.0)?;
        if !ln_s.is_empty() {
            self.ln_s.copy_from_slice(ln_s);
            self.invert();
        }
        Ok(())
    }

    /// ln of the prior density of ln s, for what is drawn.
    pub(super) fn ln_prior(&self) -> f64 {
        let n = if self.how == Concentration::Shared { 1 } else { self.drawn().len() };
        self.drawn()[..n].iter().map(|&t| ln_prior(t).0).sum()
    }

    /// s given the tables of each topic, and how many documents have n of its tokens.
    pub(super) fn update(&mut self, n_tables: &[u64], bursts: &Bursts, key: Key) {
        let density = |topics: std::ops::Range<usize>| {
            let documents = &bursts.n_documents[topics.start.min(bursts.n_documents.len())..];
            let documents = &documents[..topics.len().min(documents.len())];
            Density::new(n_tables[topics].iter().sum(), documents)
        };
        let draw = |density: Density, topic: usize, start: f64| {
            let drawn = log_concave(
                |t| density.ln_at(t),
                start.clamp(-300.0, 300.0),
                &mut key.unit(topic as u64).rng(),
            );
            // Beyond, a state could not be told from a damaged one.
            drawn.clamp(-690.0, 690.0)
        };
        match self.how {
            Concentration::Fixed(_) => return,
            Concentration::PerTopic => {
                let drawn = self.ln_s.par_iter_mut().enumerate();
                drawn.for_each(|(k, ln_s)| *ln_s = draw(density(k..k + 1), k, *ln_s));
            }
            Concentration::Shared => {
                let drawn = draw(density(0..self.ln_s.len()), 0, self.ln_s[0]);
                self.ln_s.fill(drawn);
            }
        }
        self.invert();
    }
}

/// ln of the density of t = ln s, up to a constant, and its slope: of s/(s + [`MEDIAN`]) uniform.
fn ln_prior(t: f64) -> (f64, f64) {
    let x = t - MEDIAN.ln();
    let share = (1.0 + (-x).exp()).recip();
    (x - 2.0 * (x.max(0.0) + (-x.abs()).exp().ln_1p()), 1.0 - 2.0 * share)
}

/// Density of s given tables and tokens: prior times s^(tables - tokens) / Π_j (1 + j/s)^{m_j}, where m_j
/// documents have more than j tokens.
struct Density {
    n_joined: f64,
    /// m_j, from j = 1.
    more: Vec<f64>,
}

impl Density {
    fn new(n_tables: u64, n_documents: &[Vec<u32>]) -> Self {
        let longest = n_documents.iter().map(Vec::len).max().unwrap_or(0);
        let mut more = vec![0.0; longest.max(1)];
        for documents in n_documents {
            let mut sum = 0.0;
            for (n, &documents) in documents.iter().enumerate().skip(1).rev() {
                sum += f64::from(documents);
                more[n - 1] += sum;
            }
        }
        // The sum over j of m_j, from j = 0, is the number of tokens.
        let n_tokens: f64 = more.iter().sum();
        more.remove(0);
        Density { n_joined: n_tokens - n_tables as f64, more }
    }

    /// ln of the density at t = ln s, up to a constant, and its slope. Concave in t.
    fn ln_at(&self, t: f64) -> (f64, f64) {
        let (value, slope) = sums(&self.more, (-t).exp());
        let (ln_prior, slope_of_prior) = ln_prior(t);
        (ln_prior - self.n_joined * t - value, slope_of_prior - self.n_joined + slope)
    }
}

/// Σ m_j ln(1 + j/s) and Σ m_j (j/s) / (1 + j/s) over j from 1, given 1/s.
#[polyabayes_macros::vectorised]
fn sums(more: &[f64], inverse: f64) -> (f64, f64) {
    let (mut values, mut slopes) = ([0.0; LANES], [0.0; LANES]);
    let mut first = 1.0;
    for more in more.chunks(LANES) {
        let mut own = [0.0; LANES];
        own[..more.len()].copy_from_slice(more);
        for lane in 0..LANES {
            let ratio = (first + lane as f64) * inverse;
            let sum = 1.0 + ratio;
            // What the sum has lost of the ratio, to first order.
            let ln_1p = ln(sum) + (ratio - (sum - 1.0)) / sum;
            values[lane] += own[lane] * ln_1p;
            slopes[lane] += own[lane] * (ratio / sum);
        }
        first += LANES as f64;
    }
    (values.iter().sum(), slopes.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the terms of Σ_d ln (s)_{n_d}, and differences.
    #[test]
    fn the_density_of_a_concentration_is_that_of_its_terms() {
        let n_documents = [vec![9, 3, 0, 2, 0, 1], vec![], vec![0, 0, 4]];
        let lengths = [1, 1, 1, 3, 3, 5, 2, 2, 2, 2];
        let density = Density::new(17, &n_documents);
        let expected = |s: f64| {
            let rising = |n: u32| (0..n).map(|j| (s + f64::from(j)).ln()).sum::<f64>();
            let prior = 2.0f64.mul_add(-(s + MEDIAN).ln(), s.ln());
            17.0 * s.ln() - lengths.into_iter().map(rising).sum::<f64>() + prior
        };
        let constant = density.ln_at(0.0).0 - expected(1.0);
        for t in [-7.0, -1.0, 0.5, 4.0, 9.0, 20.0] {
            let (value, slope) = density.ln_at(t);
            assert!((value - expected(t.exp()) - constant).abs() < 1e-9, "{t}: {value}");
            let change = (density.ln_at(t + 1e-5).0 - density.ln_at(t - 1e-5).0) / 2e-5;
            assert!((slope - change).abs() < 1e-5, "{t}: {slope} {change}");
        }
    }
}

//! Regression of the pseudo-counts of documents on their covariates, with exact draws.
//!
//! α_dk = exp(x_d·λ_k) (Mimno and McCallum 2008). Given the tables l_dk ~ CRT(n_dk, α_dk) and the
//! weights q_d that stand for the lengths of documents, the density of λ_k is that of a Poisson
//! regression, Π_d α_dk^{l_dk} exp(-q_dk α_dk), log-concave and independent of the other topics. The
//! intercept, whose exponential has a gamma prior, is integrated out of the density of the slopes and
//! is drawn after them from its gamma distribution; the slopes are drawn by Metropolis and Hastings
//! from a t distribution at their mode.
//!
//! Documents of equal covariates have equal pseudo-counts: they form a group, and only the sums of
//! their tables and weights matter.

use rand::RngExt;
use rand_distr::{Distribution as _, StandardNormal};
use rayon::prelude::*;

use crate::error::{Error, Result, array_of, check_all, check_length, check_positive};
use crate::math::elementary::exp;
use crate::math::linear::solve;
use crate::math::{dot, gamma_law, ln_gamma_variate};
use crate::rng::{Key, Rng};
use crate::urn::LEAST_PRIOR;

/// Most Newton steps towards the mode of the slopes; a few usually do.
const MOST_STEPS: usize = 20;

/// Gain of ln density, in nats, that no further Newton step is made for: where the proposal lies
/// matters for how many are accepted, not for what they are drawn from.
const LEAST_GAIN: f64 = 1e-3;

/// Degrees of freedom of the proposal: near a Gaussian, but with tails above those of the posterior.
const DEGREES: f64 = 10.0;

/// Prior of the precision 1/σ² of the slopes, Gamma(shape, rate): worth two slopes whose mean square is
/// 0.5, the variance that Mimno and McCallum (2008) give to slopes.
const PRECISION_PRIOR: (f64, f64) = (1.0, 0.5);

/// Covariates of the documents of a corpus, by groups of documents that have the same.
#[derive(Debug, Clone)]
pub struct Design {
    /// Covariates beside the intercept.
    n_slopes: usize,
    /// Their values, a row a group.
    rows: Vec<f64>,
    /// Group of each document.
    groups: Vec<u32>,
    /// Documents of each group.
    n_documents: Vec<u64>,
}

impl Design {
    /// `values` holds a row of `n_slopes` covariates for each of `n_documents` documents, without the
    /// intercept.
    ///
    /// # Errors
    /// Another number of values, values that are not finite, no documents.
    pub fn new(values: &[f64], n_documents: usize, n_slopes: usize) -> Result<Self> {
        check_length("covariates", values.len(), n_documents * n_slopes)?;
        check_all("covariates", values, "finite", f64::is_finite)?;
        if n_documents == 0 {
            return Err(Error::Empty { name: "documents" });
        }
        let row = |doc_ix: usize| &values[doc_ix * n_slopes..][..n_slopes];
        let compare =
            |x: &[f64], y: &[f64]| x.iter().map(|x| x.to_bits()).cmp(y.iter().map(|y| y.to_bits()));
        let mut order: Vec<usize> = (0..n_documents).collect();
        order.sort_by(|&i, &j| compare(row(i), row(j)));
        let mut design =
            Design { n_slopes, rows: vec![], groups: vec![0; n_documents], n_documents: vec![] };
        for documents in order.chunk_by(|&i, &j| compare(row(i), row(j)).is_eq()) {
            let group = design.n_documents.len() as u32;
            documents.iter().for_each(|&doc_ix| design.groups[doc_ix] = group);
            design.rows.extend_from_slice(row(documents[0]));
            design.n_documents.push(documents.len() as u64);
        }
        Ok(design)
    }

    /// Number of documents.
    pub fn n_corpus(&self) -> usize {
        self.groups.len()
    }

    fn n_groups(&self) -> usize {
        self.n_documents.len()
    }

    fn row(&self, group: usize) -> &[f64] {
        &self.rows[group * self.n_slopes..][..self.n_slopes]
    }
}

/// Coefficients of all topics, their prior, and the pseudo-counts that they make.
#[derive(Debug)]
pub struct Regression {
    design: Design,
    /// Intercept and slopes of each topic, topics x (1 + slopes).
    coefficients: Vec<f64>,
    /// σ², the variance of the slopes.
    variance: f64,
    /// Gamma priors (shape, rate) of the exponential of the intercept of each topic.
    priors: Vec<(f64, f64)>,
    /// Groups x topics.
    pseudo_counts: Vec<f64>,
}

impl Regression {
    /// A regression without slopes, from the pseudo-counts `start`; gamma priors (shape, rate) of their intercepts.
    ///
    /// # Errors
    /// Pseudo-counts that are not positive; more than memory holds.
    pub fn new(design: Design, start: &[f64], priors: Vec<(f64, f64)>) -> Result<Self> {
        check_positive("pseudo-counts", start)?;
        let n_values = start.len() * (1 + design.n_slopes);
        let mut coefficients = array_of("coefficients of covariates", n_values, 0.0)?;
        let intercepts = coefficients.iter_mut().step_by(1 + design.n_slopes);
        intercepts.zip(start).for_each(|(to, a)| *to = a.ln());
        let n_values = design.n_groups() * start.len();
        let pseudo_counts = array_of("pseudo-counts of documents", n_values, 0.0)?;
        let (shape, rate) = PRECISION_PRIOR;
        let variance = rate / shape;
        let mut new = Regression { design, coefficients, variance, priors, pseudo_counts };
        new.set_pseudo_counts();
        Ok(new)
    }

    /// Number of topics, or classes.
    pub fn n_topics(&self) -> usize {
        self.priors.len()
    }

    /// Pseudo-counts of each group and topic.
    pub fn pseudo_counts(&self) -> &[f64] {
        &self.pseudo_counts
    }

    /// Intercept and slopes of each topic.
    pub(crate) fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// Coefficients, then σ².
    pub fn parameters(&self) -> Vec<f64> {
        [&self.coefficients[..], &[self.variance]].concat()
    }

    pub(crate) fn n_parameters(&self) -> usize {
        self.coefficients.len() + 1
    }

    /// Takes up coefficients and σ².
    pub(crate) fn restore(&mut self, parameters: &[f64]) -> Result<()> {
        check_length("parameters of the state", parameters.len(), self.n_parameters())?;
        let (coefficients, variance) = parameters.split_at(self.coefficients.len());
        check_positive("variance of the state", variance)?;
        self.coefficients.copy_from_slice(coefficients);
        self.variance = variance[0];
        self.set_pseudo_counts();
        Ok(())
    }

    /// exp(x·λ_k) of every group and topic.
    fn set_pseudo_counts(&mut self) {
        let (design, width) = (&self.design, 1 + self.design.n_slopes);
        let coefficients = &self.coefficients;
        let rows = self.pseudo_counts.par_chunks_mut(self.priors.len()).enumerate();
        rows.for_each(|(group, row)| {
            let x = design.row(group);
            for (a, own) in row.iter_mut().zip(coefficients.chunks_exact(width)) {
                *a = exp(own[0] + dot(x, &own[1..])).clamp(LEAST_PRIOR, LEAST_PRIOR.recip());
            }
        });
    }

    /// Mean over the documents of the pseudo-counts of each topic.
    pub(crate) fn mean(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_topics()];
        let rows = self.pseudo_counts.chunks_exact(self.n_topics());
        for (row, &n) in rows.zip(&self.design.n_documents) {
            sums.iter_mut().zip(row).for_each(|(sum, a)| *sum += n as f64 * a);
        }
        let n_documents = self.design.n_corpus() as f64;
        sums.iter_mut().for_each(|sum| *sum /= n_documents);
        sums
    }

    /// Sum over the topics of the pseudo-counts of each group.
    pub(crate) fn totals(&self) -> Vec<f64> {
        self.pseudo_counts.chunks_exact(self.n_topics()).map(|row| row.iter().sum()).collect()
    }

    /// Group of each document.
    pub fn groups(&self) -> &[u32] {
        &self.design.groups
    }

    /// Documents of each group.
    pub(crate) fn n_documents(&self) -> Vec<f64> {
        self.design.n_documents.iter().map(|&n| n as f64).collect()
    }

    /// Draws λ of every topic, then σ², given the tables of each group and topic; `weights` of a topic are
    /// Σ_d q_dk over the documents of each group.
    pub fn draw(&mut self, n_tables: &[f64], weights: impl Fn(usize) -> Vec<f64> + Sync, key: Key) {
        let (design, n_topics, precision) =
            (&self.design, self.priors.len(), self.variance.recip());
        let width = 1 + design.n_slopes;
        let topics = self.coefficients.par_chunks_mut(width).zip(&self.priors).enumerate();
        topics.for_each(|(k, (own, &(shape, rate)))| {
            let mut slopes = vec![0.0; design.n_slopes];
            let mut shape = shape;
            let tables = n_tables[k..].iter().step_by(n_topics).enumerate();
            for (group, &n) in tables.filter(|(_, n)| **n > 0.0) {
                shape += n;
                let row = slopes.iter_mut().zip(design.row(group));
                row.for_each(|(sum, x)| *sum += n * x);
            }
            let (sums, weights) = (&slopes[..], &weights(k)[..]);
            let posterior = Slopes { design, sums, shape, rate, weights, precision };
            posterior.draw(own, key.unit(k as u64));
        });
        self.draw_variance(key.unit(u64::MAX));
        self.set_pseudo_counts();
    }

    /// Number of slopes, and Σ of their squares.
    fn slopes(&self) -> (f64, f64) {
        let width = 1 + self.design.n_slopes;
        let topics = self.coefficients.chunks_exact(width);
        let squares = topics.map(|own| dot(&own[1..], &own[1..])).sum();
        ((self.n_topics() * self.design.n_slopes) as f64, squares)
    }

    fn draw_variance(&mut self, key: Key) {
        let (n, squares) = self.slopes();
        let (shape, rate) = PRECISION_PRIOR;
        let precision = gamma_law(shape + 0.5 * n).sample(&mut key.rng()) / (rate + 0.5 * squares);
        self.variance = precision.recip().clamp(LEAST_PRIOR, LEAST_PRIOR.recip());
    }

    /// ln of the density of the coefficients and of 1/σ², up to a constant.
    pub(crate) fn ln_prior(&self) -> f64 {
        let intercepts = self.coefficients.iter().step_by(1 + self.design.n_slopes);
        let own = intercepts.zip(&self.priors);
        let of_intercepts: f64 = own.map(|(x, &(shape, rate))| shape * x - rate * x.exp()).sum();
        let ((n, squares), (shape, rate)) = (self.slopes(), PRECISION_PRIOR);
        let precision = self.variance.recip();
        of_intercepts + (shape - 1.0 + 0.5 * n) * precision.ln()
            - (rate + 0.5 * squares) * precision
    }
}

/// The density of the slopes δ of a topic, its intercept integrated out:
/// exp(Σ l x·δ) (rate + Σ q exp(x·δ))^-shape exp(-|δ|²/(2σ²)).
struct Slopes<'a> {
    design: &'a Design,
    /// Σ l x over the groups.
    sums: &'a [f64],
    /// Tables of the topic, and the prior's.
    shape: f64,
    rate: f64,
    weights: &'a [f64],
    precision: f64,
}

/// ln density of some slopes, its gradient and minus its second derivatives, a square matrix.
struct Expansion {
    value: f64,
    gradient: Vec<f64>,
    curvature: Vec<f64>,
}

impl Slopes<'_> {
    /// Draws slopes, and the intercept given them.
    fn draw(&self, own: &mut [f64], key: Key) {
        let mut rng = key.rng();
        let (intercept, slopes) = own.split_at_mut(1);
        if !slopes.is_empty()
            && let Some((mode, factor)) = self.proposal()
        {
            let proposed = propose(&mode, &factor, &mut rng);
            let value = |at: &[f64]| self.value(at, self.ln_rate(at));
            let ratio = |at: &[f64]| value(at) - ln_proposal(at, &mode, &factor);
            if rng.random::<f64>().ln() < ratio(&proposed) - ratio(slopes) {
                slopes.copy_from_slice(&proposed);
            }
        }
        intercept[0] = ln_gamma_variate(self.shape, &mut rng) - self.ln_rate(slopes);
    }

    /// ln(rate + Σ q exp(x·δ)).
    fn ln_rate(&self, slopes: &[f64]) -> f64 {
        let (top, total) = self.total(slopes, |_, _| ());
        top + total.ln()
    }

    /// The logarithm of a scale, and rate + Σ q exp(x·δ) by that scale; `take` is given the group and
    /// part of each term.
    fn total(&self, slopes: &[f64], mut take: impl FnMut(usize, f64)) -> (f64, f64) {
        let groups = self.weights.len();
        let predicted: Vec<f64> =
            (0..groups).map(|group| dot(self.design.row(group), slopes)).collect();
        let top = predicted.iter().copied().fold(0.0, f64::max);
        let mut total = self.rate * exp(-top);
        for (group, (x, weight)) in predicted.into_iter().zip(self.weights).enumerate() {
            let part = weight * exp(x - top);
            take(group, part);
            total += part;
        }
        (top, total)
    }

    /// ln density of slopes, given [`Slopes::ln_rate`] of them, but for a constant.
    fn value(&self, slopes: &[f64], ln_rate: f64) -> f64 {
        dot(self.sums, slopes) - self.shape * ln_rate - 0.5 * self.precision * dot(slopes, slopes)
    }

    fn expand(&self, slopes: &[f64]) -> Expansion {
        let n = slopes.len();
        let (mut mean, mut squares) = (vec![0.0; n], vec![0.0; n * n]);
        let (top, total) = self.total(slopes, |group, part| {
            let x = self.design.row(group);
            for (i, xi) in x.iter().enumerate() {
                let part = part * xi;
                mean[i] += part;
                let row = squares[i * n..][..=i].iter_mut().zip(x);
                row.for_each(|(sum, xj)| *sum += part * xj);
            }
        });
        mean.iter_mut().for_each(|x| *x /= total);
        let mut curvature = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let covariance = squares[i * n + j] / total - mean[i] * mean[j];
                let own = if i == j { self.precision } else { 0.0 };
                curvature[i * n + j] = self.shape * covariance + own;
            }
        }
        let gradient = (0..n)
            .map(|i| self.sums[i] - self.shape * mean[i] - self.precision * slopes[i])
            .collect();
        Expansion { value: self.value(slopes, top + total.ln()), gradient, curvature }
    }

    /// The mode, by Newton's method from zero, and the lower triangle of the Cholesky factor of the
    /// curvature near it: a function of tables and weights alone, as an independent proposal must be.
    /// `None` where rounding leaves no positive curvature.
    fn proposal(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        let mut at = vec![0.0; self.sums.len()];
        let mut expansion = self.expand(&at);
        for _ in 0..MOST_STEPS {
            let factor = cholesky(expansion.curvature)?;
            let step = solve(&factor, &expansion.gradient);
            let gain = dot(&step, &expansion.gradient);
            let moved = |share: f64| -> Vec<f64> {
                at.iter().zip(&step).map(|(x, step)| x + share * step).collect()
            };
            if gain < LEAST_GAIN {
                return Some((moved(1.0), factor));
            }
            let mut share = 1.0;
            let mut next = self.expand(&moved(share));
            while next.value < expansion.value && share > f64::EPSILON {
                share *= 0.5;
                next = self.expand(&moved(share));
            }
            (at, expansion) = (moved(share), next);
        }
        cholesky(expansion.curvature).map(|factor| (at, factor))
    }
}

/// A draw from the t distribution whose precision at `mode` is the factor times its transpose.
fn propose(mode: &[f64], factor: &[f64], rng: &mut Rng) -> Vec<f64> {
    let n = mode.len();
    let mut draw: Vec<f64> = (0..n).map(|_| StandardNormal.sample(rng)).collect();
    let spread = (gamma_law(0.5 * DEGREES).sample(rng) * 2.0 / DEGREES).sqrt();
    for i in (0..n).rev() {
        let below: f64 = (i + 1..n).map(|j| factor[j * n + i] * draw[j]).sum();
        draw[i] = (draw[i] - below) / factor[i * n + i];
    }
    draw.iter().zip(mode).map(|(x, mode)| mode + x / spread).collect()
}

/// ln density of that distribution, up to a constant.
fn ln_proposal(at: &[f64], mode: &[f64], factor: &[f64]) -> f64 {
    let n = mode.len();
    let off: Vec<f64> = at.iter().zip(mode).map(|(x, mode)| x - mode).collect();
    let part = |i: usize| (i..n).map(|j| factor[j * n + i] * off[j]).sum::<f64>();
    let distance: f64 = (0..n).map(|i| part(i).powi(2)).sum();
    -0.5 * (DEGREES + n as f64) * (distance / DEGREES).ln_1p()
}

/// The lower triangular factor of a symmetric matrix, whose lower triangle is given.
fn cholesky(mut matrix: Vec<f64>) -> Option<Vec<f64>> {
    let n = matrix.len().isqrt();
    for i in 0..n {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| matrix[i * n + k] * matrix[j * n + k]).sum();
            let rest = matrix[i * n + j] - sum;
            matrix[i * n + j] = if i == j { rest.sqrt() } else { rest / matrix[j * n + j] };
        }
        if !(matrix[i * n + i] > 0.0 && matrix[i * n + i].is_finite()) {
            return None;
        }
    }
    Some(matrix)
}

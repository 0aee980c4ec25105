//! Pseudo-counts that depend on covariates of documents: the draws of their coefficients.

use polyabayes::math::{gamma_law, ln_beta_variate};
use polyabayes::regression::Design;
use polyabayes::rng::{Key, Purpose, Rng};
use polyabayes::training::{LdaPrior, PfaPrior};
use rand_distr::{Distribution, StandardNormal};

use crate::calibration::{
    FEW_RUNS, N_DOCUMENTS, N_TOPICS, N_WORDS, check_uniform, exposures, ranks,
};
use crate::common::{
    MemoryChain, drawing, lda_by_covariates, lda_documents, pfa_documents, pfa_globals, topics,
    uniform,
};

/// A binary covariate and a continuous one.
pub(crate) const N_SLOPES: usize = 2;
const WIDTH: usize = 1 + N_SLOPES;

/// Prior means of α, or of r.
const MEAN: f64 = 0.6;

pub(crate) fn covariates(n_documents: usize) -> Vec<f64> {
    let row = |doc_ix: usize| [(doc_ix % 2) as f64 - 0.5, (doc_ix * 7 % 15) as f64 / 5.0 - 1.4];
    (0..n_documents).flat_map(row).collect()
}

/// Coefficients from their prior, topics x (1 + slopes), and the variance of the slopes; the
/// exponential of an intercept is a gamma variate of this shape, of mean [`MEAN`].
fn coefficients(shape: f64, rng: &mut Rng) -> (Vec<f64>, f64) {
    let variance = 0.5 / gamma_law(1.0).sample(rng);
    let mut drawn = Vec::new();
    for _ in 0..N_TOPICS {
        drawn.push((gamma_law(shape).sample(rng) * MEAN / shape).ln());
        for _ in 0..N_SLOPES {
            let normal: f64 = StandardNormal.sample(rng);
            drawn.push(normal * f64::sqrt(variance));
        }
    }
    (drawn, variance)
}

/// exp(x·λ_k) of all topics.
fn pseudo_counts(coefficients: &[f64], x: &[f64]) -> Vec<f64> {
    let predicted = |own: &[f64]| own[0] + own[1] * x[0] + own[2] * x[1];
    coefficients.chunks_exact(WIDTH).map(|own| predicted(own).exp().clamp(1e-100, 1e100)).collect()
}

/// Functions of λ and σ² that do not know the labels of the topics.
fn functions(coefficients: &[f64], variance: f64) -> Vec<f64> {
    let column = |i: usize| coefficients[i..].iter().copied().step_by(WIDTH);
    let largest = |i: usize| column(i).fold(f64::NEG_INFINITY, f64::max);
    let product: f64 = column(0).zip(column(2)).map(|(x, y)| x * y).sum();
    vec![column(0).sum(), largest(0), column(1).sum(), largest(1), largest(2), product, variance]
}

const NAMES: [&str; 7] =
    ["Σ intercept", "max intercept", "Σ slope", "max slope", "max other", "product", "σ²"];

fn summaries(sampler: &MemoryChain<'_>, first: usize) -> Vec<f64> {
    let parameters = sampler.parameters();
    let (coefficients, variance) = parameters[first..].split_at(N_TOPICS * WIDTH);
    functions(coefficients, variance[0])
}

fn lda_ranks(thin: usize, seed: u64) -> Vec<usize> {
    let mut rng = Key::new(seed, Purpose::Initialise).rng();
    let prior = LdaPrior { alpha: vec![MEAN; N_TOPICS], beta: 0.5, learned: false };
    let (truth, variance) = coefficients(1.0, &mut rng);
    let (phi, x) = (topics(N_TOPICS, N_WORDS, prior.beta, &mut rng), covariates(N_DOCUMENTS));
    // The first document is empty.
    let lengths = std::iter::once(0).chain(std::iter::repeat(8));
    let documents = x.chunks_exact(N_SLOPES).map(|x| pseudo_counts(&truth, x)).zip(lengths);
    let counts = lda_documents(&phi, documents, &mut rng);
    let design = Design::new(&x, N_DOCUMENTS, N_SLOPES).unwrap();
    let mut sampler = lda_by_covariates(&counts, prior, design, seed);
    ranks(&functions(&truth, variance), &mut sampler, thin, |sampler| {
        summaries(sampler, N_TOPICS + 1)
    })
}

fn pfa_ranks(exposures: Vec<f64>, thin: usize, seed: u64) -> Vec<usize> {
    const SHAPE: f64 = 2.0;
    let mut rng = Key::new(seed, Purpose::Initialise).rng();
    let prior = PfaPrior {
        topic_word: 0.5,
        probability: Some((2.0, 8.0)),
        shape: Some((SHAPE, SHAPE / MEAN)),
    };
    let (truth, variance) = coefficients(SHAPE, &mut rng);
    let (phi, x) = (topics(N_TOPICS, N_WORDS, prior.topic_word, &mut rng), covariates(N_DOCUMENTS));
    let p: Vec<f64> = (0..N_TOPICS).map(|_| ln_beta_variate(2.0, 8.0, &mut rng).0.exp()).collect();
    let shapes = x.chunks_exact(N_SLOPES).map(|x| pseudo_counts(&truth, x));
    let counts = pfa_documents(&phi, &p, shapes, exposures, &mut rng);
    let design = Design::new(&x, N_DOCUMENTS, N_SLOPES).unwrap();
    let start = (vec![MEAN; N_TOPICS], p);
    let globals = pfa_globals(&counts, prior, start, Some(design), seed);
    let mut sampler = uniform(&counts, globals, drawing(seed));
    ranks(&functions(&truth, variance), &mut sampler, thin, |sampler| {
        summaries(sampler, 3 * N_TOPICS)
    })
}

#[test]
fn covariates_are_calibrated_in_short() {
    let found: Vec<_> = (7_000..7_000 + FEW_RUNS).map(|seed| lda_ranks(40, seed)).collect();
    check_uniform(&NAMES, &found);
    let exposed = |seed| pfa_ranks(exposures(), 30, seed);
    let found: Vec<_> = (9_000..9_000 + FEW_RUNS).map(exposed).collect();
    check_uniform(&NAMES, &found);
}

#[test]
#[ignore = "takes minutes: make test-slow"]
fn covariates_are_calibrated() {
    let found: Vec<_> = (7_000..7_400).map(|seed| lda_ranks(100, seed)).collect();
    check_uniform(&NAMES, &found);
    for (first, exposures) in [(8_000, vec![1.0; N_DOCUMENTS]), (9_000, exposures())] {
        let run = |seed| pfa_ranks(exposures.clone(), 60, seed);
        let found: Vec<_> = (first..first + 400).map(run).collect();
        check_uniform(&NAMES, &found);
    }
}

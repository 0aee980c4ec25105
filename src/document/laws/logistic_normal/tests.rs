//! Logistic normals against sums that share no code with them.

use super::*;
use crate::counts::CountMatrix;
use crate::document::{Event, Method, Query, Sampler, Settings, score};
use crate::estimate::Estimate;

const PHI: [f64; 12] = [0.4, 0.3, 0.2, 0.1, 0.1, 0.1, 0.2, 0.6, 0.25, 0.05, 0.6, 0.1];
const COVARIANCE: [f64; 4] = [1.5, 0.4, 0.4, 0.8];
const MEAN: [f64; 2] = [0.3, -0.5];

const ANNEALED: Method = Method::Sample(Sampler::Annealed(None));

fn settings(method: Method) -> Settings {
    Settings { method, ..Settings::new(Query { event: Event::Sequence, given_length: true }) }
}

fn estimates(
    model: &LogisticNormal,
    rows: &[Vec<i64>],
    settings: &Settings,
    seed: u64,
) -> Vec<Estimate> {
    let documents = CountMatrix::from_dense(rows).unwrap();
    let scores = score(model, &documents, settings, seed, &()).unwrap();
    scores.into_iter().map(|score| score.unwrap().estimate).collect()
}

/// MEAN, and zeros for further coordinates.
fn mean(link: Link, n_topics: usize) -> Vec<f64> {
    let n = n_topics - usize::from(link == Link::Reference);
    MEAN.into_iter().chain([0.0; 2]).take(n).collect()
}

fn mixture(link: Link, n_topics: usize, covariance: &[f64]) -> LogisticNormal {
    let decoder = Decoder::mixture(n_topics, &PHI[..4 * n_topics], &[]).unwrap();
    LogisticNormal::new(decoder, link, n_topics, &mean(link, n_topics), covariance).unwrap()
}

fn experts(link: Link, n_topics: usize, covariance: &[f64]) -> LogisticNormal {
    let loadings: Vec<f64> = PHI[..4 * n_topics].iter().map(|x| 5.0 * x - 1.0).collect();
    let decoder = Decoder::experts(n_topics, &loadings, &[0.1, -0.3, 0.2, 0.0], &[]).unwrap();
    LogisticNormal::new(decoder, link, n_topics, &mean(link, n_topics), covariance).unwrap()
}

/// The sum over the corners of a prior so wide that a document is of one topic: half a percent of it is
/// not, COVARIANCE times 1e8.
#[test]
fn a_prior_too_wide_for_quadrature_is_annealed_from_itself() {
    let row = vec![3, 0, 2, 4];
    let model = mixture(Link::Reference, 3, &COVARIANCE.map(|x| 1e8 * x));
    let found = estimates(&model, std::slice::from_ref(&row), &settings(Method::Auto), 0)[0];
    let [a, c, b] = [COVARIANCE[0], COVARIANCE[1], COVARIANCE[3]];
    // Of two correlated normals the first is the larger and positive, and so on: areas of wedges.
    let wedge = |x: f64, xy: f64, y: f64| {
        let correlation: f64 = xy / (x * y).sqrt();
        0.25 + correlation.asin() / (2.0 * std::f64::consts::PI)
    };
    let shares =
        [wedge(a, a - c, a + b - 2.0 * c), wedge(b, b - c, a + b - 2.0 * c), wedge(a, c, b)];
    let topic = |k: usize| {
        let words = PHI[4 * k..].iter().zip(&row);
        words.map(|(p, &count)| p.powi(count as i32)).product::<f64>()
    };
    let expected = shares.iter().enumerate().map(|(k, share)| share * topic(k)).sum::<f64>().ln();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let error = (found.ln_value - expected).abs();
    assert!(error < 3.0 * found.std_error + 0.005, "{found:?} {expected}");
}

#[test]
fn singular_covariances_leave_dimensions_out() {
    let row = vec![vec![3, 1, 0, 2]];
    // The third coordinate is the sum of the others; softmax of three is that of two with a reference.
    let three = [1.5, 0.4, 0.0, 0.4, 0.8, 0.0, 0.0, 0.0, 0.0];
    let model = mixture(Link::Softmax, 3, &three);
    assert_eq!(model.rank, 2);
    let found = estimates(&model, &row, &settings(Method::Auto), 0)[0];
    let two = mixture(Link::Reference, 3, &COVARIANCE);
    let expected = estimates(&two, &row, &settings(Method::Auto), 0)[0];
    assert!((found.ln_value - expected.ln_value).abs() < 1e-9);
}

/// Annealing against quadrature over documents and seeds: errors of the right size, and p̂/p with
/// mean 1.
#[test]
fn annealing_agrees_with_quadrature_in_its_errors() {
    let rows: Vec<Vec<i64>> =
        (0..25_i64).map(|i| vec![i % 5, (i * i) % 4, i % 3, (7 * i) % 6]).collect();
    for model in [
        mixture(Link::Reference, 3, &COVARIANCE),
        mixture(Link::Softmax, 2, &[4.0, -1.0, -1.0, 3.0]),
        experts(Link::Identity, 2, &COVARIANCE),
        experts(Link::Softmax, 2, &COVARIANCE),
        mixture(Link::Reference, 3, &COVARIANCE.map(|x| 20.0 * x)),
        mixture(Link::Reference, 3, &COVARIANCE.map(|x| 2e3 * x)),
    ] {
        let exact = estimates(&model, &rows, &settings(Method::Auto), 0);
        // Documents of some eight tokens are annealed from a fit in a few steps, from a prior in more.
        let n = if model.factor.iter().any(|l| l * l > 10.0) { 100 } else { 8 };
        let short = Settings { n_samples: Some(n), ..settings(ANNEALED) };
        let (mut squares, mut ratios, mut ratio_squares, mut n) = (0.0, 0.0, 0.0, 0.0);
        for seed in 0..40 {
            let found = estimates(&model, &rows, &short, seed);
            for (found, exact) in
                found.iter().zip(&exact).filter(|(found, _)| found.n_replicates > 0)
            {
                let error = found.ln_value - exact.ln_value;
                squares += (error / found.std_error).powi(2);
                ratios += error.exp_m1();
                ratio_squares += error.exp_m1().powi(2);
                n += 1.0;
            }
        }
        assert!(squares / n < 1.5, "errors {} times what is said", (squares / n).sqrt());
        let std_error = (ratio_squares / n - (ratios / n).powi(2)).sqrt() / n.sqrt();
        assert!(
            ratios.abs() < 3.0 * n * std_error,
            "mean of p̂/p - 1: {} +- {std_error}",
            ratios / n
        );
    }
}

#[test]
fn impossible_words_and_empty_documents_have_their_values() {
    let phi = [0.5, 0.5, 0.0, 0.25, 0.75, 0.0];
    let decoder = Decoder::mixture(2, &phi, &[]).unwrap();
    let model =
        LogisticNormal::new(decoder, Link::Softmax, 2, &[0.0; 2], &[1.0, 0.0, 0.0, 1.0]).unwrap();
    let found = estimates(&model, &[vec![1, 0, 1], vec![0, 0, 0]], &settings(Method::Auto), 0);
    assert_eq!((found[0].ln_value, found[1].ln_value), (f64::NEG_INFINITY, 0.0));
}

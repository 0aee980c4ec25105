//! Variational EM: the bound is a bound, it rises, and growing a model does not lower it.

use crate::common;
use polyabayes::counts::Document;
use polyabayes::math::{digamma, ln_gamma};
use polyabayes::training::{EmFit, EmSettings, EmStart, fit_em};
use polyabayes::{CountMatrix, Event, Method, Query, Settings, TopicModel, score};

const NONE: f64 = f64::NEG_INFINITY;

fn settings(n_topics: usize, seed: u64) -> EmSettings {
    EmSettings {
        alpha: vec![0.2; n_topics],
        learned: true,
        topic_word_prior: 0.0,
        max_iter: 60,
        tolerance: 1e-6,
        start_sweeps: 10,
        n_starts: 1,
        seed,
    }
}

fn start_of(fit: &EmFit) -> EmStart {
    EmStart { phi: fit.phi.clone(), alpha: fit.alpha.clone(), bound: fit.bound }
}

/// φ, topic by topic.
fn topic_major(fit: &EmFit) -> Vec<f64> {
    let n_topics = fit.alpha.len();
    (0..fit.phi.len())
        .map(|i| {
            let n_words = fit.phi.len() / n_topics;
            fit.phi[i % n_words * n_topics + i / n_words]
        })
        .collect()
}

/// ln p(words | φ, α) of all documents.
fn exact(fit: &EmFit, counts: &CountMatrix) -> f64 {
    let model = TopicModel::lda(fit.alpha.clone(), &topic_major(fit)).unwrap();
    let query = Query { event: Event::Sequence, given_length: true };
    let settings = Settings { method: Method::Exact, ..Settings::new(query) };
    let scores = score(&model, counts, &settings, 0, &()).unwrap();
    scores.iter().map(|score| score.as_ref().unwrap().estimate.ln_value).sum()
}

/// Bounds of a document where the updates of γ have come to rest, from γ even and from γ of one
/// topic each. Every γ gives a bound: ln Γ(α_+)/Γ(γ_+) + Σ_k (ln Γ(γ_k)/Γ(α_k) + (α_k - γ_k) x_k) +
/// Σ_w y_w ln Σ_k φ_kw exp x_k, where x is the mean of ln θ.
fn modes(model: &TopicModel, document: Document<'_>) -> Vec<f64> {
    let (alpha, n_tokens) = (model.urn().pseudo_counts(), document.n_tokens() as f64);
    let total: f64 = alpha.iter().sum();
    let n_topics = alpha.len();
    let climb = |owner: Option<usize>| {
        let share =
            |k| owner.map_or(1.0 / n_topics as f64, |owner| f64::from(u8::from(k == owner)));
        let mut gamma: Vec<f64> = (0..n_topics).map(|k| alpha[k] + n_tokens * share(k)).collect();
        let mut bound = NONE;
        for _ in 0..2_000 {
            let mean = digamma(total + n_tokens);
            let ln_theta: Vec<f64> = gamma.iter().map(|&x| digamma(x) - mean).collect();
            bound = ln_gamma(total) - ln_gamma(total + n_tokens);
            for k in 0..n_topics {
                bound += ln_gamma(gamma[k]) - ln_gamma(alpha[k]);
                bound += (alpha[k] - gamma[k]) * ln_theta[k];
            }
            gamma.copy_from_slice(alpha);
            for (&word, &count) in document.words().iter().zip(document.counts()) {
                let phi = model.urn().weights(word).iter();
                let weights: Vec<f64> = phi.zip(&ln_theta).map(|(q, x)| q * x.exp()).collect();
                let sum: f64 = weights.iter().sum();
                bound += f64::from(count) * sum.ln();
                let shares = gamma.iter_mut().zip(&weights);
                shares.for_each(|(gamma, x)| *gamma += f64::from(count) * x / sum);
            }
        }
        bound
    };
    std::iter::once(None).chain((0..n_topics).map(Some)).map(climb).collect()
}

#[test]
fn the_bound_is_that_of_the_mean_field_and_below_the_likelihood() {
    let (_, counts) = common::simulated(2, 8, 0.3, 7, 12, 4);
    for (n_topics, seed) in [(2, 1), (2, 2), (3, 3), (4, 4)] {
        let fit = fit_em(&counts, None, &settings(n_topics, seed), &()).unwrap();
        let exact = exact(&fit, &counts);
        assert!(fit.bound <= exact, "{n_topics}: {} {exact}", fit.bound);
        let model = TopicModel::lda(fit.alpha.clone(), &topic_major(&fit)).unwrap();
        let (mut low, mut high) = (0.0, 0.0);
        for document in counts.documents() {
            let modes = modes(&model, document);
            low += modes.iter().copied().fold(f64::INFINITY, f64::min);
            high += modes.iter().copied().fold(NONE, f64::max);
        }
        assert!(high < exact);
        let known = low - 1e-3..high + 1e-3;
        assert!(known.contains(&fit.bound), "{n_topics}: {} {known:?}", fit.bound);
    }
}

#[test]
fn a_model_that_em_cannot_better_comes_back_with_the_bound_it_had() {
    let (_, counts) = common::simulated(3, 40, 0.2, 25, 60, 2);
    let seed = fit_em(&counts, None, &settings(3, 1), &()).unwrap();
    // So many pseudo-counts that no topic differs from the others.
    let settings = EmSettings { topic_word_prior: 1e9, ..settings(5, 1) };
    let padded = fit_em(&counts, Some(start_of(&seed)), &settings, &()).unwrap();
    assert!(padded.bound >= seed.bound, "{} {}", padded.bound, seed.bound);
    assert_eq!(padded.alpha[..3], seed.alpha);
    assert_eq!(padded.alpha[3..], [1e-100; 2]);
    assert_eq!(padded.n_tokens[3..], [0.0; 2]);
    for (row, before) in padded.phi.chunks_exact(5).zip(seed.phi.chunks_exact(3)) {
        assert_eq!(&row[..3], before);
    }
    let exact = [exact(&seed, &counts), exact(&padded, &counts)];
    assert!((exact[0] - exact[1]).abs() < 1e-10 * exact[0].abs(), "{exact:?}");
    // Bounds of the mean field itself for the two models.
    let unknown = |fit: &EmFit, n_topics| {
        let start = EmStart { bound: NONE, ..start_of(fit) };
        let settings = EmSettings { alpha: vec![0.2; n_topics], ..settings.clone() };
        fit_em(&counts, Some(start), &settings, &()).unwrap().bound
    };
    let (alone, with_more) = (unknown(&seed, 4), unknown(&padded, 6));
    assert!((alone - with_more).abs() < 1e-6 * alone.abs(), "{alone} {with_more}");
}

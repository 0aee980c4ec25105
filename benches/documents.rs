//! Likelihood of one document on one thread: exact algorithms and particle filters.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use polyabayes::CountMatrix;
use polyabayes::document::estimators::smc;
use polyabayes::document::exact::Plan;
use polyabayes::math::dirichlet;
use polyabayes::rng::{Key, Purpose, Rng};
use polyabayes::urn::{LocalUrn, Urn};
use rand::RngExt;

/// An urn with sparse topics and one document drawn from it.
fn drawn(n_topics: usize, n_words: usize, alpha: f64, n_tokens: usize, rng: &mut Rng) -> LocalUrn {
    let mut q = vec![0.0; n_words * n_topics];
    let mut topic = vec![0.0; n_words];
    for k in 0..n_topics {
        dirichlet(&vec![0.05; n_words], &mut topic, rng);
        for (word, &weight) in topic.iter().enumerate() {
            q[word * n_topics + k] = weight;
        }
    }
    let a = vec![alpha; n_topics];
    let mut theta = vec![0.0; n_topics];
    dirichlet(&a, &mut theta, rng);
    let mut counts = vec![0; n_words];
    for _ in 0..n_tokens {
        let k = categorical(theta.iter().copied(), rng);
        counts[categorical(q[k..].iter().step_by(n_topics).copied(), rng)] += 1;
    }
    local(a, q, counts)
}

/// Index drawn from probabilities that sum to 1.
fn categorical(mut probabilities: impl Iterator<Item = f64>, rng: &mut Rng) -> usize {
    let mut u = rng.random::<f64>();
    let chosen = probabilities.position(|p| {
        u -= p;
        u < 0.0
    });
    chosen.unwrap_or(0)
}

fn local(a: Vec<f64>, q: Vec<f64>, counts: Vec<i64>) -> LocalUrn {
    let documents = CountMatrix::from_dense(&[counts]).expect("counts are valid");
    let urn = Urn::new(a, q).expect("weights are valid");
    LocalUrn::new(&urn, documents.document(0)).expect("every word is possible")
}

/// A document of given counts under dense weights.
fn dense(n_topics: usize, counts: &[i64], rng: &mut Rng) -> LocalUrn {
    let q = (0..n_topics * counts.len()).map(|_| rng.random_range(0.01..1.0)).collect();
    local(vec![0.5; n_topics], q, counts.to_vec())
}

fn exact(criterion: &mut Criterion) {
    let mut rng = Key::new(1, Purpose::Initialise).rng();
    let mut group = criterion.benchmark_group("exact");
    group.sample_size(20);
    for (name, n_topics, counts) in [
        ("K=5 12 tokens", 5, vec![1; 12]),
        ("K=5 50 distinct tokens", 5, vec![1; 50]),
        ("K=5 50 tokens of 10 words", 5, vec![5; 10]),
        ("K=2 5000 tokens", 2, vec![50; 100]),
        ("K=100 14 words of count 1", 100, vec![1; 14]),
        ("K=100 16 words of count 1", 100, vec![1; 16]),
    ] {
        let urn = dense(n_topics, &counts, &mut rng);
        group.bench_function(name, |bencher| {
            bencher.iter(|| Plan::new(black_box(&urn)).run(&urn, &()));
        });
    }
    group.finish();
}

fn particle_filters(criterion: &mut Criterion) {
    for (name, lookahead) in [("smc", false), ("smc-lookahead", true)] {
        let mut group = criterion.benchmark_group(format!("{name}, K=50, 20 particles"));
        for (n_tokens, n_runs) in [(100, 1), (100, 4), (100, 16), (500, 1), (2_000, 1)] {
            let mut rng = Key::new(2, Purpose::Initialise).rng();
            let urns: Vec<LocalUrn> =
                (0..20).map(|_| drawn(50, 1_000, 0.1, n_tokens, &mut rng)).collect();
            let mut next = urns.iter().cycle();
            let id = BenchmarkId::new(format!("{n_runs} runs"), format!("{n_tokens} tokens"));
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    let urn = next.next().expect("cycles for ever");
                    smc::ln_urn_sums(urn, lookahead, n_runs, 20, &mut rng, &())
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, exact, particle_filters);
criterion_main!(benches);

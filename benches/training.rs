//! One Gibbs sweep over a synthetic corpus on one thread: 2,000 documents of 150 tokens.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use polyabayes::CountMatrix;
use polyabayes::rng::{Key, Purpose};
use polyabayes::training::{
    LdaPrior, LdaSampler, NmfUpdates, PfaPrior, PfaSampler, Sampler, Scheme, TopicStep,
};
use rand::RngExt;

const N_DOCUMENTS: usize = 2_000;
const LENGTH: usize = 150;
const N_WORDS: usize = 10_000;

/// Documents that each keep to a window of the vocabulary.
fn corpus() -> CountMatrix {
    let mut rng = Key::new(1, Purpose::Initialise).rng();
    let (mut offsets, mut words, mut counts) = (vec![0], Vec::new(), Vec::new());
    for document in 0..N_DOCUMENTS {
        let start = document % 100 * 100;
        let mut row: Vec<i64> =
            (0..LENGTH).map(|_| ((start + rng.random_range(0..400)) % N_WORDS) as i64).collect();
        row.sort_unstable();
        for run in row.chunk_by(|x, y| x == y) {
            words.push(run[0]);
            counts.push(run.len() as i64);
        }
        offsets.push(words.len() as i64);
    }
    CountMatrix::new(N_WORDS, &offsets, &words, &counts).expect("counts are valid")
}

fn sweeps(criterion: &mut Criterion) {
    let corpus = corpus();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    let mut group = criterion.benchmark_group("sweep, one thread");
    group.sample_size(10).throughput(Throughput::Elements((N_DOCUMENTS * LENGTH) as u64));
    for n_topics in [20, 100, 500] {
        let prior = LdaPrior { alpha: vec![0.1; n_topics], beta: 0.1, learned: false };
        let mut lda = LdaSampler::new(&corpus, prior, 1).expect("priors are valid");
        group.bench_function(BenchmarkId::new("LDA", n_topics), |bencher| {
            bencher.iter(|| pool.install(|| lda.sweep(TopicStep::Draw, &())));
        });
        let mean = 1.0 / n_topics as f64;
        let prior =
            PfaPrior { topic_word: 0.1, probability: Some((mean, 1.0 - mean)), shape: None };
        for (name, scheme) in
            [("beta-gamma PFA", Scheme::Collapsed), ("beta-gamma PFA, blocked", Scheme::Blocked)]
        {
            let (r, p) = (vec![1.0; n_topics], vec![0.5; n_topics]);
            let pfa = PfaSampler::new(&corpus, prior.clone(), r, p, 1).expect("priors are valid");
            let mut pfa = pfa.with_scheme(scheme);
            group.bench_function(BenchmarkId::new(name, n_topics), |bencher| {
                bencher.iter(|| pool.install(|| pfa.sweep(TopicStep::Draw, &())));
            });
        }
        let mut nmf = NmfUpdates::new(&corpus, n_topics, 1).expect("there is memory");
        group.bench_function(BenchmarkId::new("NMF", n_topics), |bencher| {
            bencher.iter(|| pool.install(|| nmf.sweep(TopicStep::Draw, &())));
        });
    }
    group.finish();
}

criterion_group!(benches, sweeps);
criterion_main!(benches);

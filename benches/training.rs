//! One Gibbs sweep over a synthetic corpus on one thread: 2,000 documents of 150 tokens.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use polyabayes::CountMatrix;
use polyabayes::rng::{Key, Purpose};
use polyabayes::training::{
    Chain, Globals, LdaGlobals, LdaPrior, MemoryTokens, PfaGlobals, PfaPrior, Schedule,
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
        let lda = LdaGlobals::new(N_WORDS, prior, 1).expect("priors are valid");
        let mean = 1.0 / n_topics as f64;
        let prior =
            PfaPrior { topic_word: 0.1, probability: Some((mean, 1.0 - mean)), shape: None };
        let (r, p) = (vec![1.0; n_topics], vec![0.5; n_topics]);
        let pfa = PfaGlobals::new(N_WORDS, N_DOCUMENTS, prior, r, p, 1).expect("priors are valid");
        let models: [(&str, Box<dyn Globals>); 2] =
            [("LDA", Box::new(lda)), ("beta-gamma PFA", Box::new(pfa))];
        for (name, globals) in models {
            let schedule =
                Schedule { max_iter: u64::MAX, burn_in: u64::MAX, warm_up: 0, thin: 1, seed: 1 };
            let tokens = MemoryTokens::new(&corpus).expect("there is memory");
            let mut chain =
                Chain::new(globals, tokens, schedule, None, None, &()).expect("there is memory");
            group.bench_function(BenchmarkId::new(name, n_topics), |bencher| {
                bencher.iter(|| pool.install(|| chain.sweep(&())));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, sweeps);
criterion_main!(benches);

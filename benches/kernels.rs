//! Instructions of every kernel, counted by valgrind: a table that a noisy machine cannot blur.
//!
//! `cargo bench` runs each kernel in a process of its own under callgrind; by its name, or as a
//! test, a kernel runs without it.

use std::hint::black_box;
use std::process::Command;
use std::{env, io};

use polyabayes::allocation::{
    Ascent, EvidenceMethod, EvidenceSampler as AllocationSampler, EvidenceSettings, Limits,
    Network, Prior, Problem, Sweeps, ascend, evidence, gibbs,
};
use polyabayes::counts::CountTensor;
use polyabayes::document::estimators::{annealed, chib, harmonic, l2r, left_to_right, smc};
use polyabayes::document::exact::ExactPlan;
use polyabayes::document::{Conditionals, Form, Runs, Start};
use polyabayes::rng::{Key, Purpose, Rng};
use polyabayes::training::{
    Chain, Globals, LdaGlobals, LdaPrior, MemoryTokens, PfaGlobals, PfaPrior, Schedule,
};
use polyabayes::urn::{LocalUrn, Urn};
use polyabayes::{CountMatrix, Result};
use rand::RngExt;

/// A kernel by name, and the subject that runs it.
type Kernel = (&'static str, fn(&str) -> Result<()>);

const KERNELS: [Kernel; 18] = [
    ("exact, K = 5, 50 tokens", document),
    ("exact, K = 100, 12 words", document),
    ("smc", document),
    ("smc-lookahead", document),
    ("annealed from the prior", document),
    ("annealed from the mean field", document),
    ("annealed in reverse", document),
    ("chib", document),
    ("harmonic", document),
    ("left-to-right", document),
    ("left-to-right-sequential", document),
    ("l2r, exact conditionals", document),
    ("sweep of LDA, K = 20", training),
    ("sweep of LDA, K = 500", training),
    ("sweep of beta-gamma PFA", training),
    ("evidence, smc", allocation),
    ("decomposition, vb", allocation),
    ("decomposition, gibbs", allocation),
];

/// Counts are those of the thread that calls [`measured`]: all work is its own.
fn main() -> Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    let arguments: Vec<String> = env::args().collect();
    if let Some((name, run)) = KERNELS.iter().find(|(name, _)| arguments.iter().any(|x| x == name))
    {
        return pool.install(|| run(name));
    }
    if !arguments.iter().any(|x| x == "--bench") {
        return pool.install(|| KERNELS.iter().try_for_each(|(name, run)| run(name)));
    }
    for (name, _) in KERNELS {
        match instructions(name) {
            Ok(report) => println!("{name}\t{}", count(&report)),
            Err(error) => {
                eprintln!("nothing is counted: valgrind: {error}");
                break;
            }
        }
    }
    Ok(())
}

/// Report of callgrind on the instructions within [`measured`], in a process of its own.
fn instructions(kernel: &str) -> io::Result<String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*measured*")
        .arg(env::current_exe()?)
        .arg(kernel)
        .output()?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Number of instructions in a report.
fn count(report: &str) -> &str {
    let collected = report.lines().find_map(|line| line.split_once("Collected :"));
    collected.unwrap_or_else(|| panic!("{report}")).1.trim()
}

/// Calls the code whose instructions are counted.
#[inline(never)]
fn measured<T>(kernel: impl FnOnce() -> Result<T>) -> Result<()> {
    kernel().map(|result| drop(black_box(result)))
}

/// An urn of dense weights, and the only document of these counts.
fn urn(n_topics: usize, counts: &[i64], rng: &mut Rng) -> Result<LocalUrn> {
    let q = (0..n_topics * counts.len()).map(|_| rng.random_range(0.01..1.0)).collect();
    let documents = CountMatrix::from_dense(&[counts.to_vec()])?;
    let urn = Urn::new(vec![0.1; n_topics], q)?;
    Ok(LocalUrn::new(&urn, documents.document(0)).expect("every word is possible"))
}

fn document(name: &str) -> Result<()> {
    let mut rng = Key::new(1, Purpose::Initialise).rng();
    if let Some(exact) = name.strip_prefix("exact, ") {
        let small = exact.starts_with("K = 5,");
        let (n_topics, counts) = if small { (5, vec![5; 10]) } else { (100, vec![1; 12]) };
        let urn = urn(n_topics, &counts, &mut rng)?;
        return measured(|| ExactPlan::new(&urn).run(&urn, &()));
    }
    let urn = urn(50, &[[3; 20].as_slice(), &[1; 40]].concat(), &mut rng)?;
    let runs = Runs { n: 16, sizes: &[10] };
    let topics = vec![0; urn.n_tokens() as usize];
    let rng = &mut rng;
    measured(|| match name {
        "smc" => smc::ln_urn_sums(&urn, false, 16, 20, rng, &()),
        "smc-lookahead" => smc::ln_urn_sums(&urn, true, 16, 20, rng, &()),
        "annealed from the prior" => annealed::ln_urn_sums(&urn, Start::Prior, 16, 100, rng, &()),
        "annealed from the mean field" => {
            annealed::ln_urn_sums(&urn, Start::MeanField, 16, 100, rng, &())
        }
        "annealed in reverse" => {
            annealed::ln_urn_sums_reversed(&urn, Start::MeanField, &topics, 16, 100, rng, &())
        }
        "chib" => chib::ln_urn_sums(&urn, 16, 10, rng, &()),
        _ => {
            let found = match name {
                "harmonic" => harmonic::replicates(&urn, runs, rng, &()),
                "left-to-right" => {
                    left_to_right::replicates(&urn, Form::MeanOfProducts, runs, rng, &())
                }
                "left-to-right-sequential" => {
                    left_to_right::replicates(&urn, Form::Sequential, runs, rng, &())
                }
                _ => l2r::replicates(&urn, Conditionals::Exact, runs, rng, &()),
            };
            Ok(found?.ln_values)
        }
    })
}

/// Documents that each keep to a window of the vocabulary.
fn corpus() -> Result<CountMatrix> {
    const N_WORDS: usize = 2_000;
    let mut rng = Key::new(1, Purpose::Initialise).rng();
    let (mut offsets, mut words, mut counts) = (vec![0], Vec::new(), Vec::new());
    for document in 0..300 {
        let window = |_| (document % 20 * 100 + rng.random_range(0..400)) % N_WORDS;
        let mut row: Vec<usize> = (0..150).map(window).collect();
        row.sort_unstable();
        for run in row.chunk_by(|x, y| x == y) {
            words.push(run[0] as i64);
            counts.push(run.len() as i64);
        }
        offsets.push(words.len() as i64);
    }
    CountMatrix::new(N_WORDS, &offsets, &words, &counts)
}

fn training(name: &str) -> Result<()> {
    let corpus = corpus()?;
    let (n_words, n_documents) = (corpus.n_words(), corpus.n_documents());
    let lda = |n_topics| {
        let prior = LdaPrior { alpha: vec![0.1; n_topics], beta: 0.1, learned: false };
        LdaGlobals::new(n_words, prior, 1)
    };
    let globals: Box<dyn Globals> = match name {
        "sweep of LDA, K = 20" => Box::new(lda(20)?),
        "sweep of LDA, K = 500" => Box::new(lda(500)?),
        _ => {
            let prior = PfaPrior { topic_word: 0.1, probability: Some((0.01, 0.99)), shape: None };
            let (r, p) = (vec![1.0; 100], vec![0.5; 100]);
            Box::new(PfaGlobals::new(n_words, n_documents, prior, r, p, 1)?)
        }
    };
    let schedule = Schedule { max_iter: u64::MAX, burn_in: u64::MAX, warm_up: 0, thin: 1, seed: 1 };
    let tokens = MemoryTokens::new(&corpus)?;
    let mut chain = Chain::new(globals, tokens, schedule, None, None, &())?;
    // The third sweep: the first one pays for its buffers.
    for _ in 0..2 {
        chain.sweep(&())?;
    }
    measured(|| chain.sweep(&()))
}

/// A table of 20 by 20 cells under 8 hidden classes.
fn allocation(name: &str) -> Result<()> {
    let prior = Prior { concentration: 1.0, tables: None };
    let parents = vec![vec![2], vec![2], vec![]];
    let network = Network::new(vec![20, 20, 8], parents, vec![0, 1], &[], prior)?;
    let cells: Vec<i64> = (0..60).flat_map(|i| [i * 7 % 20, i * i % 20]).collect();
    let mut cells: Vec<[i64; 2]> = cells.chunks(2).map(|cell| [cell[0], cell[1]]).collect();
    cells.sort_unstable();
    cells.dedup();
    let counts: Vec<i64> = (0..cells.len() as i64).map(|i| 1 + i % 5).collect();
    let data = CountTensor::new(vec![20, 20], cells.as_flattened(), &counts)?;
    let problem = Problem::new(&network, &data, None)?;
    match name {
        "evidence, smc" => {
            let settings = EvidenceSettings {
                n_particles: Some(200),
                n_replicates: Some(2),
                ..EvidenceSettings::new(EvidenceMethod::Sample(AllocationSampler::Smc))
            };
            measured(|| evidence(&problem, &settings, 1, &()))
        }
        "decomposition, vb" => {
            let limits = Limits { max_iter: 20, tolerance: 0.0, n_restarts: 2 };
            measured(|| ascend(&network, &data, None, Ascent::Variational, limits, 1, &()))
        }
        _ => {
            let sweeps = Sweeps { burn_in: 5, n_kept: 5 };
            measured(|| gibbs(&network, &data, None, sweeps, 1, &()))
        }
    }
}

//! Simulation-based calibration of the samplers (Talts et al. 2018).
//!
//! Parameters are drawn from their prior and documents from the model. The rank of any function of
//! the true parameters among draws of their posterior is then uniform, whatever the amount of data:
//! every conditional, prior and hyper-parameter of a sampler has to be right for that.

use polyabayes::math::{gamma_law, ln_beta_variate};
use polyabayes::rng::{Key, Purpose};
use polyabayes::training::{LdaPrior, PfaPrior};
use rand_distr::Distribution;

use crate::common::{MemoryChain, lda, lda_documents, on_one_thread, pfa, pfa_documents, topics};

pub(crate) const N_DOCUMENTS: usize = 15;
pub(crate) const N_TOPICS: usize = 3;
pub(crate) const N_WORDS: usize = 8;

/// Posterior draws that a true value is ranked among.
pub(crate) const N_DRAWS: usize = 19;

/// Sweeps between two of them: topics change their labels slowly, where the prior tells them apart.
const THIN: usize = 25;
/// Functions of φ that do not know the labels of the topics.
fn topic_functions(phi: &[f64]) -> Vec<f64> {
    let largest = (0..N_WORDS).map(|word| phi[word * N_TOPICS..][..N_TOPICS].iter().sum::<f64>());
    vec![phi.iter().map(|x| x * x).sum(), largest.fold(0.0, f64::max)]
}

/// φ of a sampler from weights that are φ times a factor of the topic.
fn normalised(weights: &[f64]) -> Vec<f64> {
    let mut phi = weights.to_vec();
    for topic in 0..N_TOPICS {
        let total: f64 = phi[topic..].iter().step_by(N_TOPICS).sum();
        phi[topic..].iter_mut().step_by(N_TOPICS).for_each(|x| *x /= total);
    }
    phi
}

fn word_major(topics: &[Vec<f64>]) -> Vec<f64> {
    (0..N_WORDS).flat_map(|word| topics.iter().map(move |row| row[word])).collect()
}

/// Ranks of the true values among draws of a sampler.
pub(crate) fn ranks(
    truth: &[f64],
    sampler: &mut MemoryChain<'_>,
    thin: usize,
    of_state: impl Fn(&MemoryChain<'_>) -> Vec<f64> + Sync,
) -> Vec<usize> {
    let mut ranks = vec![0; truth.len()];
    on_one_thread(|| {
        for _ in 0..12 * thin {
            sampler.sweep(&()).unwrap();
        }
        for _ in 0..N_DRAWS {
            for _ in 0..thin {
                sampler.sweep(&()).unwrap();
            }
            for ((rank, x), truth) in ranks.iter_mut().zip(of_state(sampler)).zip(truth) {
                *rank += usize::from(x < *truth);
            }
        }
    });
    ranks
}

/// Checks that the ranks of every function are uniform on 0..=`N_DRAWS`.
pub(crate) fn check_uniform(names: &[&str], ranks: &[Vec<usize>]) {
    let n = ranks.len() as f64;
    for (function, name) in names.iter().enumerate() {
        let mut histogram = [0.0; N_DRAWS + 1];
        ranks.iter().for_each(|ranks| histogram[ranks[function]] += 1.0);
        let expected = n / (N_DRAWS + 1) as f64;
        let chi_squared: f64 = histogram.iter().map(|x| (x - expected).powi(2) / expected).sum();
        // The 99.9 % quantile of chi-squared with 19 degrees of freedom.
        assert!(chi_squared < 43.8, "{name}: {chi_squared}, {histogram:?}");
        // The mean rank sees a shift that the histogram would spread over its bins.
        let mean = ranks.iter().map(|ranks| ranks[function] as f64).sum::<f64>() / n;
        let centre = N_DRAWS as f64 / 2.0;
        let std_error = ((N_DRAWS * (N_DRAWS + 2)) as f64 / 12.0 / n).sqrt();
        let deviation = (mean - centre) / std_error;
        assert!(deviation.abs() < 3.3, "{name}: mean rank {deviation:.1} errors from the centre");
    }
}

/// Sizes of documents that differ by two orders, some of them equal.
pub(crate) fn exposures() -> Vec<f64> {
    (0..N_DOCUMENTS).map(|doc_ix| [0.05, 0.4, 5.0, 1.0][doc_ix % 4]).collect()
}

fn pfa_ranks(prior: &PfaPrior, exposed: bool, seed: u64) -> Vec<usize> {
    let exposures = if exposed { exposures() } else { vec![1.0; N_DOCUMENTS] };
    let mut rng = Key::new(seed, Purpose::Initialise).rng();
    let phi = topics(N_TOPICS, N_WORDS, prior.topic_word, &mut rng);
    let (mut r, mut p) = (vec![0.8; N_TOPICS], vec![0.7; N_TOPICS]);
    for k in 0..N_TOPICS {
        if let Some((shape, rate)) = prior.shape {
            r[k] = gamma_law(shape).sample(&mut rng) / rate;
        }
        if let Some((first, second)) = prior.probability {
            p[k] = ln_beta_variate(first, second, &mut rng).0.exp();
        }
    }
    let shapes = std::iter::repeat_with(|| r.clone());
    let counts = pfa_documents(&phi, &p, shapes, exposures, &mut rng);
    let largest = |x: &[f64]| x.iter().copied().fold(0.0, f64::max);
    let functions = |r: &[f64], p: &[f64], phi: &[f64]| {
        let rest = vec![r.iter().sum(), largest(r), p.iter().sum(), largest(p)];
        [topic_functions(phi), rest].concat()
    };
    // It starts from values drawn from the prior, which the sampler must forget.
    let mut start = Key::new(seed, Purpose::Transform).rng();
    let mut r_start = r.clone();
    if let Some((shape, rate)) = prior.shape {
        r_start.iter_mut().for_each(|r| *r = gamma_law(shape).sample(&mut start) / rate);
    }
    let mut sampler = pfa(&counts, prior.clone(), (r_start, p.clone()), seed);
    ranks(&functions(&r, &p, &word_major(&phi)), &mut sampler, THIN, |sampler| {
        let parameters = sampler.parameters();
        let (r, p) = (&parameters[..N_TOPICS], &parameters[N_TOPICS..2 * N_TOPICS]);
        functions(r, p, &normalised(&sampler.weights()))
    })
}

fn check_pfa(
    shape: Option<(f64, f64)>,
    probability: Option<(f64, f64)>,
    exposed: bool,
    n_runs: u64,
    seed: u64,
) {
    let prior = PfaPrior { topic_word: 0.5, probability, shape };
    let ranks: Vec<_> = (0..n_runs).map(|run| pfa_ranks(&prior, exposed, seed + run)).collect();
    let names = ["Σ φ²", "likeliest word", "Σ r", "max r", "Σ p", "max p"];
    let learned = [true, true, shape.is_some(), shape.is_some()];
    let learned = [&learned[..], &[probability.is_some(); 2]].concat();
    let kept: Vec<usize> = (0..names.len()).filter(|&i| learned[i]).collect();
    let names: Vec<&str> = kept.iter().map(|&i| names[i]).collect();
    let ranks: Vec<Vec<usize>> =
        ranks.iter().map(|ranks| kept.iter().map(|&i| ranks[i]).collect()).collect();
    check_uniform(&names, &ranks);
}

/// Priors of shapes and probabilities: each learned or fixed.
const PRIORS: [[Option<(f64, f64)>; 2]; 4] = [
    [Some((2.0, 2.0)), Some((2.0, 1.0))],
    [Some((2.0, 2.0)), None],
    [None, Some((2.0, 1.0))],
    [None, None],
];

/// The runs of a short form: five expected in every bin.
pub(crate) const FEW_RUNS: u64 = 100;

#[test]
#[ignore = "takes minutes: make test-slow"]
fn pfa_of_every_prior_is_calibrated() {
    for (seed, [shape, probability]) in (1_000..).step_by(1_000).zip(PRIORS) {
        check_pfa(shape, probability, false, 400, seed);
        check_pfa(shape, probability.map(|_| (2.0, 2.0)), true, 400, 10_000 + seed);
    }
}

#[test]
fn pfa_is_calibrated_in_short() {
    check_pfa(PRIORS[0][0], PRIORS[0][1], false, FEW_RUNS, 1_000);
    check_pfa(PRIORS[0][0], Some((2.0, 2.0)), true, FEW_RUNS, 10_000);
}

/// Checks ranks of LDA models whose priors are drawn and learned.
fn check_lda(n_runs: u64, thin: usize) {
    let ranks: Vec<_> = (6_000..6_000 + n_runs).map(|seed| lda_ranks(thin, seed)).collect();
    check_uniform(&["Σ φ²", "likeliest word", "Σ α", "max α", "β"], &ranks);
}

fn lda_ranks(thin: usize, seed: u64) -> Vec<usize> {
    let mut rng = Key::new(seed, Purpose::Initialise).rng();
    let prior = LdaPrior { alpha: vec![0.6; N_TOPICS], beta: 0.5, learned: true };
    let mut truth = prior.clone();
    truth.alpha.iter_mut().for_each(|x| *x *= gamma_law(1.0).sample(&mut rng));
    truth.beta *= gamma_law(1.0).sample(&mut rng);
    let phi = topics(N_TOPICS, N_WORDS, truth.beta, &mut rng);
    let documents = (0..N_DOCUMENTS).map(|_| (truth.alpha.clone(), 8));
    let counts = lda_documents(&phi, documents, &mut rng);
    let functions = |phi: &[f64], alpha: &[f64], beta: f64| {
        let largest = alpha.iter().copied().fold(0.0, f64::max);
        [topic_functions(phi), vec![alpha.iter().sum(), largest, beta]].concat()
    };
    let mut sampler = lda(&counts, prior, seed);
    let truth = functions(&word_major(&phi), &truth.alpha, truth.beta);
    ranks(&truth, &mut sampler, thin, |sampler| {
        let parameters = sampler.parameters();
        let (alpha, beta) = parameters.split_at(N_TOPICS);
        functions(&sampler.weights(), alpha, beta[0])
    })
}

#[test]
fn lda_is_calibrated_in_short() {
    check_lda(FEW_RUNS, 40);
}

#[test]
#[ignore = "takes minutes: make test-slow"]
fn lda_is_calibrated() {
    check_lda(400, 100);
}

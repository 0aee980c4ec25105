//! Simulation-based calibration of the samplers (Talts et al. 2018).
//!
//! Parameters are drawn from their prior and documents from the model. The rank of any function of
//! the true parameters among draws of their posterior is then uniform, whatever the amount of data:
//! every conditional, prior and hyper-parameter of a sampler has to be right for that.

use polyabayes::CountMatrix;
use polyabayes::allocation::{
    EvidenceMethod, EvidenceSettings, Network, Prior, Problem, Sweeps, evidence, gibbs,
};
use polyabayes::counts::CountTensor;
use polyabayes::math::{gamma_law, ln_beta_variate};
use polyabayes::rng::{Key, Purpose, Rng};
use polyabayes::training::{LdaPrior, PfaPrior};
use rand::RngExt;
use rand_distr::{Distribution, Poisson};

use crate::common::{MemoryChain, categorical, lda, lda_documents, pfa, topics};

pub(crate) const N_DOCUMENTS: usize = 15;
pub(crate) const N_TOPICS: usize = 3;
pub(crate) const N_WORDS: usize = 8;

/// Posterior draws that a true value is ranked among.
pub(crate) const N_DRAWS: usize = 19;

/// Sweeps between two of them: topics change their labels slowly, where the prior tells them apart.
const THIN: usize = 25;
const THIN_WITH_LABELS: usize = 400;

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
    of_state: impl Fn(&MemoryChain<'_>) -> Vec<f64>,
) -> Vec<usize> {
    for _ in 0..12 * thin {
        sampler.sweep(&()).unwrap();
    }
    let mut ranks = vec![0; truth.len()];
    for _ in 0..N_DRAWS {
        for _ in 0..thin {
            sampler.sweep(&()).unwrap();
        }
        for ((rank, x), truth) in ranks.iter_mut().zip(of_state(sampler)).zip(truth) {
            *rank += usize::from(x < *truth);
        }
    }
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
    let mut documents = vec![vec![0; N_WORDS]; N_DOCUMENTS];
    for (document, exposure) in documents.iter_mut().zip(&exposures) {
        for k in 0..N_TOPICS {
            let theta = gamma_law(r[k]).sample(&mut rng) * p[k] / (1.0 - p[k]);
            let n = Poisson::new(exposure * theta).map_or(0.0, |law| law.sample(&mut rng));
            (0..n as u64).for_each(|_| document[categorical(&phi[k], &mut rng)] += 1);
        }
    }
    let largest = |x: &[f64]| x.iter().copied().fold(0.0, f64::max);
    let functions = |r: &[f64], p: &[f64], phi: &[f64]| {
        let rest = vec![r.iter().sum(), largest(r), p.iter().sum(), largest(p)];
        [topic_functions(phi), rest].concat()
    };
    let counts = CountMatrix::from_dense(&documents).unwrap();
    let counts = counts.with_exposures(exposures).unwrap();
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

#[test]
fn lda_is_calibrated_in_short() {
    let run = |seed| lda_ranks(&[0.6; N_TOPICS], true, 40, seed);
    let ranks: Vec<_> = (6_000..6_000 + FEW_RUNS).map(run).collect();
    check_uniform(&["Σ φ²", "likeliest word", "Σ α", "max α", "β"], &ranks);
}

/// Ranks of an LDA model whose priors are fixed, or drawn and learned.
fn lda_ranks(alpha: &[f64], learned: bool, thin: usize, seed: u64) -> Vec<usize> {
    let mut rng = Key::new(seed, Purpose::Initialise).rng();
    let prior = LdaPrior { alpha: alpha.to_vec(), beta: 0.5, learned };
    let mut truth = prior.clone();
    if learned {
        truth.alpha.iter_mut().for_each(|x| *x *= gamma_law(1.0).sample(&mut rng));
        truth.beta *= gamma_law(1.0).sample(&mut rng);
    }
    let phi = topics(N_TOPICS, N_WORDS, truth.beta, &mut rng);
    let documents = (0..N_DOCUMENTS).map(|_| (truth.alpha.clone(), 8));
    let counts = lda_documents(&phi, documents, &mut rng);
    let functions = |phi: &[f64], alpha: &[f64], beta: f64| {
        let rest = if learned {
            vec![alpha.iter().sum(), alpha.iter().copied().fold(0.0, f64::max), beta]
        } else {
            phi[..2].to_vec()
        };
        [topic_functions(phi), rest].concat()
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
#[ignore = "takes minutes: make test-slow"]
fn lda_is_calibrated() {
    // α is not symmetric: the topics keep their labels.
    let alpha = [0.3, 0.8, 0.5];
    let run = |seed| lda_ranks(&alpha, false, THIN_WITH_LABELS, seed);
    let ranks: Vec<_> = (5_000..5_400).map(run).collect();
    check_uniform(&["Σ φ²", "likeliest word", "φ of topic 0", "φ of topic 1"], &ranks);
}

#[test]
#[ignore = "takes minutes: make test-slow"]
fn lda_with_learned_priors_is_calibrated() {
    let run = |seed| lda_ranks(&[0.6; N_TOPICS], true, 100, seed);
    let ranks: Vec<_> = (6_000..6_400).map(run).collect();
    check_uniform(&["Σ φ²", "likeliest word", "Σ α", "max α", "β"], &ranks);
}

/// A network without ties, and how its tables are drawn.
struct Graph {
    sizes: Vec<usize>,
    parents: Vec<Vec<usize>>,
    visible: Vec<usize>,
    concentration: f64,
}

impl Graph {
    fn network(&self, visible: Vec<usize>) -> Network {
        let prior = Prior { concentration: self.concentration, tables: None };
        Network::new(self.sizes.clone(), self.parents.clone(), visible, &[], prior).unwrap()
    }

    /// Tokens from tables that are drawn from their prior: states of all nodes, parents first.
    fn tokens(&self, n: usize, rng: &mut Rng) -> Vec<Vec<i64>> {
        let sizes = &self.sizes;
        let n_rows = |node: usize| self.parents[node].iter().map(|&p| sizes[p]).product::<usize>();
        let tables: Vec<Vec<Vec<f64>>> = (0..sizes.len())
            .map(|node| {
                let alpha = self.concentration / (n_rows(node) * sizes[node]) as f64;
                topics(n_rows(node), sizes[node], alpha, rng)
            })
            .collect();
        // Parents have larger numbers than their children here.
        let token = |_| {
            let mut state = vec![0; sizes.len()];
            for node in (0..sizes.len()).rev() {
                let row = self.parents[node].iter().fold(0, |row, &p| row * sizes[p] + state[p]);
                state[node] = categorical(&tables[node][row], rng);
            }
            state.into_iter().map(|x| x as i64).collect()
        };
        (0..n).map(token).collect()
    }
}

/// Counts of the cells of some nodes.
fn counted(tokens: &[Vec<i64>], nodes: &[usize], sizes: &[usize]) -> CountTensor {
    let mut cells: Vec<Vec<i64>> =
        tokens.iter().map(|token| nodes.iter().map(|&node| token[node]).collect()).collect();
    cells.sort();
    let groups: Vec<&[Vec<i64>]> = cells.chunk_by(|a, b| a == b).collect();
    let coordinates: Vec<i64> = groups.iter().flat_map(|group| group[0].clone()).collect();
    let counts: Vec<i64> = groups.iter().map(|group| group.len() as i64).collect();
    let shape = nodes.iter().map(|&node| sizes[node]).collect();
    CountTensor::new(shape, &coordinates, &counts).unwrap()
}

/// Rank of ln p of the true allocation among those of a chain, ties in random order.
fn allocation_rank(graph: &Graph, thin: usize, seed: u64) -> Vec<usize> {
    let mut rng = Key::new(seed, Purpose::Initialise).rng();
    let tokens = graph.tokens(12, &mut rng);
    let everything: Vec<usize> = (0..graph.sizes.len()).collect();
    let complete = counted(&tokens, &everything, &graph.sizes);
    let data = counted(&tokens, &graph.visible, &graph.sizes);
    let problem = Problem::new(&graph.network(everything), &complete, None).unwrap();
    let exact = evidence(&problem, &EvidenceSettings::new(EvidenceMethod::Exact), 0, &()).unwrap();
    let truth = exact.estimate.ln_value;
    let sweeps = Sweeps { burn_in: 12 * thin, n_kept: N_DRAWS * thin };
    let network = graph.network(graph.visible.clone());
    let trace = gibbs(&network, &data, None, sweeps, seed, &()).unwrap().trace;
    let draws = trace.iter().skip(thin - 1).step_by(thin);
    let (mut below, mut equal) = (0, 0);
    for &ln_p in draws {
        let same = (ln_p - truth).abs() < 1e-8;
        equal += usize::from(same);
        below += usize::from(!same && ln_p < truth);
    }
    vec![below + rng.random_range(0..=equal)]
}

/// Mixtures, two hidden layers, and a chain of hidden nodes.
#[test]
fn allocation_chains_are_calibrated() {
    let mixture = Graph {
        sizes: vec![4, 3, 3],
        parents: vec![vec![2], vec![2], vec![]],
        visible: vec![0, 1],
        concentration: 3.0,
    };
    let two_layers = Graph {
        sizes: vec![4, 3, 2, 3],
        parents: vec![vec![2], vec![3], vec![3], vec![]],
        visible: vec![0, 1],
        concentration: 5.0,
    };
    let chain = Graph {
        sizes: vec![3, 3, 3, 2, 2, 2],
        parents: vec![vec![3], vec![4], vec![5], vec![4], vec![5], vec![]],
        visible: vec![0, 1, 2],
        concentration: 4.0,
    };
    for (name, graph) in [("mixture", mixture), ("two layers", two_layers), ("chain", chain)] {
        let ranks: Vec<_> = (0..400).map(|run| allocation_rank(&graph, 20, 10_000 + run)).collect();
        check_uniform(&[name], &ranks);
    }
}

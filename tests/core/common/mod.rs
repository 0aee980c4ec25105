//! Cases with exact values (see `tests/vectors/README.md`), and models to draw from.

pub(crate) mod looks;
pub(crate) mod networks;

use polyabayes::math::{dirichlet, gamma_law};
use polyabayes::regression::Design;
use polyabayes::rng::Rng;
use polyabayes::training::{
    Chain, Globals, LdaGlobals, LdaPrior, MemoryTokens, PfaGlobals, PfaPrior, Schedule, Tokens,
};
use polyabayes::{CountMatrix, TopicModel};
use rand::RngExt;
use rand_distr::{Distribution, Poisson};
use serde_json::Value;

/// The model of a case, and whether it is LDA, and its document.
pub(crate) fn model_and_document(case: &Value) -> (TopicModel, bool, CountMatrix) {
    let phi: Vec<f64> = case["topic_word"].as_array().unwrap().iter().flat_map(floats).collect();
    let counts = floats(&case["counts"]).iter().map(|&y| y as i64).collect();
    let lda = case["model"] == "lda";
    let model = if lda {
        TopicModel::lda(floats(&case["doc_topic_prior"]), &phi)
    } else {
        TopicModel::gamma_poisson(floats(&case["shape"]), &floats(&case["probability"]), &phi)
    };
    (model.unwrap(), lda, CountMatrix::from_dense(&[counts]).unwrap())
}

fn floats(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Rows from a symmetric Dirichlet: topics, or a table of a network.
pub(crate) fn topics(n_topics: usize, n_words: usize, beta: f64, rng: &mut Rng) -> Vec<Vec<f64>> {
    (0..n_topics).map(|_| shares(&vec![beta; n_words], rng)).collect()
}

/// A document of LDA.
pub(crate) fn lda_document(
    phi: &[Vec<f64>],
    alpha: &[f64],
    n_tokens: usize,
    rng: &mut Rng,
) -> Vec<i64> {
    let (theta, mut row) = (shares(alpha, rng), vec![0; phi[0].len()]);
    for _ in 0..n_tokens {
        row[categorical(&phi[categorical(&theta, rng)], rng)] += 1;
    }
    row
}

/// Documents of LDA, each of its own α and number of tokens.
pub(crate) fn lda_documents(
    phi: &[Vec<f64>],
    documents: impl Iterator<Item = (Vec<f64>, usize)>,
    rng: &mut Rng,
) -> CountMatrix {
    let rows = documents.map(|(alpha, n_tokens)| lda_document(phi, &alpha, n_tokens, rng));
    CountMatrix::from_dense(&rows.collect::<Vec<_>>()).unwrap()
}

/// Documents of Poisson factor analysis, each of its own shapes and exposure.
pub(crate) fn pfa_documents(
    phi: &[Vec<f64>],
    p: &[f64],
    shapes: impl Iterator<Item = Vec<f64>>,
    exposures: Vec<f64>,
    rng: &mut Rng,
) -> CountMatrix {
    let document = |(shapes, exposure): (Vec<f64>, &f64)| {
        let mut row = vec![0; phi[0].len()];
        for (k, r) in shapes.into_iter().enumerate() {
            // Rates beyond the largest that fits would be of no use to any model.
            let theta = gamma_law(r).sample(rng) * p[k] / (1.0 - p[k]);
            let n = Poisson::new((exposure * theta).min(1e4)).map_or(0.0, |law| law.sample(rng));
            (0..n as u64).for_each(|_| row[categorical(&phi[k], rng)] += 1);
        }
        row
    };
    let rows: Vec<_> = shapes.zip(&exposures).map(document).collect();
    CountMatrix::from_dense(&rows).unwrap().with_exposures(exposures).unwrap()
}

pub(crate) fn shares(alpha: &[f64], rng: &mut Rng) -> Vec<f64> {
    let mut drawn = vec![0.0; alpha.len()];
    dirichlet(alpha, &mut drawn, rng);
    drawn
}

/// An index with these probabilities.
pub(crate) fn categorical(p: &[f64], rng: &mut Rng) -> usize {
    polyabayes::math::pick(p.iter().copied(), rng.random()).unwrap_or(p.len() - 1)
}

/// A chain over documents in memory.
pub(crate) type MemoryChain<'a> = Chain<MemoryTokens<&'a CountMatrix>>;

/// Runs `work` on one thread of its own: most of the time of small sweeps goes into waking others.
pub(crate) fn on_one_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(work)
}

/// Draws every parameter in every sweep, and keeps no sweep.
pub(crate) fn drawing(seed: u64) -> Schedule {
    Schedule { max_iter: u64::MAX, burn_in: 0, warm_up: 0, thin: u64::MAX, seed }
}

pub(crate) fn lda_globals(counts: &CountMatrix, prior: LdaPrior, seed: u64) -> LdaGlobals {
    LdaGlobals::new(counts.n_words(), prior, seed).unwrap()
}

pub(crate) fn pfa_globals(
    counts: &CountMatrix,
    prior: PfaPrior,
    (r, p): (Vec<f64>, Vec<f64>),
    design: Option<Design>,
    seed: u64,
) -> PfaGlobals {
    let (n_words, n_documents) = (counts.n_words(), counts.n_documents());
    let mut globals = PfaGlobals::new(n_words, n_documents, prior, r, p, seed).unwrap();
    if let Some(design) = design {
        globals = globals.with_covariates(design).unwrap();
    }
    match MemoryTokens::new(counts).unwrap().exposures() {
        Some(exposures) => globals.with_exposures(&exposures).unwrap(),
        None => globals,
    }
}

/// A chain that starts from uniform topics of tokens.
pub(crate) fn uniform(
    counts: &CountMatrix,
    globals: impl Globals + 'static,
    schedule: Schedule,
) -> MemoryChain<'_> {
    let tokens = MemoryTokens::new(counts).unwrap();
    Chain::new(Box::new(globals), tokens, schedule, None, None, &()).unwrap()
}

/// A chain of LDA that starts from uniform topics of tokens.
pub(crate) fn lda(counts: &CountMatrix, prior: LdaPrior, seed: u64) -> MemoryChain<'_> {
    uniform(counts, lda_globals(counts, prior, seed), drawing(seed))
}

/// A chain of LDA whose documents have covariates, from uniform topics of tokens.
pub(crate) fn lda_by_covariates(
    counts: &CountMatrix,
    prior: LdaPrior,
    design: Design,
    seed: u64,
) -> MemoryChain<'_> {
    let globals = lda_globals(counts, prior, seed).with_covariates(design).unwrap();
    uniform(counts, globals, drawing(seed))
}

/// A chain of Poisson factor analysis that starts from uniform topics of tokens, and from r and p.
pub(crate) fn pfa(
    counts: &CountMatrix,
    prior: PfaPrior,
    parameters: (Vec<f64>, Vec<f64>),
    seed: u64,
) -> MemoryChain<'_> {
    uniform(counts, pfa_globals(counts, prior, parameters, None, seed), drawing(seed))
}

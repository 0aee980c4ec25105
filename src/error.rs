//! Errors; every variant carries the offending value and its place.

/// Memory above which no exact computation is attempted, in bytes.
pub(crate) const MAX_EXACT_BYTES: f64 = (1u64 << 30) as f64;

/// Memory that the table of an enumeration of allocations may take, in bytes.
pub(crate) const MAX_ENUMERATION_BYTES: f64 = (1u64 << 31) as f64;

/// Bytes of a gibibyte.
const GIB: f64 = (1u64 << 30) as f64;

/// The error type of the crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "messages say what the fields hold")]
pub enum Error {
    /// A size that must be positive is zero.
    #[error("{name} must be at least 1")]
    Empty { name: &'static str },
    /// Vector instructions that the processor lacks.
    #[error(
        "POLYABAYES_SIMD={name}: must be portable, avx2 or avx512; this processor has {widest}"
    )]
    Instructions { name: String, widest: &'static str },
    /// Bytes that are no saved state of this work.
    #[error("a saved state is damaged, or is of other work")]
    Saved,
    /// Two arrays that must agree in length do not.
    #[error("{name} has length {found}, expected {expected}")]
    Length { name: &'static str, found: usize, expected: usize },
    /// A parameter lies outside its domain.
    #[error("{name}[{index}] = {value:?}: must be {domain}")]
    Parameter { name: &'static str, index: usize, value: f64, domain: &'static str },
    /// A row of topic-word probabilities does not sum to 1.
    #[error("the words of topic {topic} have probabilities that sum to {sum}, not to 1")]
    NotNormalised { topic: usize, sum: f64 },
    /// The prior of a document leaves it no topic.
    #[error("the prior of document {document} is zero for every topic")]
    NoTopics { document: usize },
    /// Observed and held-out tokens of a document have different priors.
    #[error("observed and held-out tokens of document {document} have different priors")]
    PriorsDiffer { document: usize },
    /// A covariance that is none.
    #[error("the covariance {problem}")]
    Covariance { problem: &'static str },
    /// A mixture of topics whose weights are no probabilities.
    #[error("a mixture of topics takes weights that are the softmax of the latent coordinates")]
    IdentityLink,
    /// A sampler of topic assignments for a model that has none.
    #[error(
        "this method takes an urn; models of this prior have \"exact\" and \"annealed\", without options"
    )]
    NoUrn,
    /// A method without a form for bursty topics.
    #[error(
        "{method:?} has no form for bursty topics; take \"auto\", \"exact\", \"annealed\", \"smc\", \
         \"smc-lookahead\", \"chib\", \"direct\" or a form of \"left-to-right\""
    )]
    BurstyMethod { method: &'static str },
    /// Bursty topics of several vocabularies.
    #[error("bursty topics have one vocabulary; the model has several")]
    BurstyVocabularies,
    /// Completion of gamma-Poisson documents under bursty topics of unequal productivity.
    #[error(
        "completion under bursty topics needs topics of equal \"probability\", as in LDA; compare the \
         probabilities of whole documents instead"
    )]
    BurstyCompletion,
    /// Quadrature in too many dimensions.
    #[error("quadrature serves up to {most} dimensions; the covariance has rank {found}")]
    Dimensions { found: usize, most: usize },
    /// Documents have exposures, and the model takes their lengths as given.
    #[error("LDA takes the lengths of documents as given, which leaves nothing to an exposure")]
    GivenLength,
    /// The offsets of a sparse matrix do not start at 0, decrease, or run past its cells.
    #[error("row offsets are inconsistent at document {document}")]
    Offsets { document: usize },
    /// A word index lies outside the vocabulary.
    #[error("document {document} holds word {word}, but the vocabulary has {n_words} words")]
    WordOutOfRange { document: usize, word: u64, n_words: usize },
    /// The words of a document are not strictly increasing.
    #[error("the word indices of document {document} are not strictly increasing at word {word}")]
    Unsorted { document: usize, word: u64 },
    /// A stored count is zero or does not fit into 32 bits.
    #[error("document {document}, word {word}: count {count} is not between 1 and 4294967295")]
    Count { document: usize, word: u64, count: i64 },
    /// A cell of a tensor is not what it must be.
    #[error("cell {cell} of the tensor {problem} (axis {axis})")]
    Cell { cell: usize, axis: usize, problem: &'static str },
    /// A graph that is no network, or not one for the data.
    #[error("node {node} of the graph {problem}")]
    Graph { node: usize, problem: &'static str },
    /// An exact computation would cost more than its budget.
    #[error(
        "exact likelihood of document {document} ({n_tokens} tokens, {n_distinct} distinct words, \
         {n_topics} topics) would take about {operations:.1e} multiply-adds and {bytes:.1e} bytes, \
         above the budget of {budget:.1e} multiply-adds and {most_bytes:.1e} bytes"
    )]
    Budget {
        document: usize,
        n_tokens: u64,
        n_distinct: usize,
        n_topics: usize,
        operations: f64,
        bytes: f64,
        budget: f64,
        most_bytes: f64,
    },
    /// Exact enumeration of allocations would cost more than its budget.
    #[error(
        "enumerating the allocations of {n_tokens} tokens takes at least {operations:.1e} \
         multiply-adds and {bytes:.1e} bytes; the budget is {budget:.1e} multiply-adds and \
         {most_bytes:.1e} bytes"
    )]
    EnumerationBudget {
        n_tokens: u64,
        operations: f64,
        bytes: f64,
        budget: f64,
        most_bytes: f64,
        has_missing: bool,
    },
    /// More tokens than a sampler of allocations counts.
    #[error("samplers count {n_tokens} tokens one by one, and at most {most}")]
    TooManyTokens { n_tokens: u64, most: u64 },
    /// A sampler of allocations does not fit into the memory of the machine.
    #[error(
        "{} and {} marginal counts would take {:.1} GiB on {n_at_once} threads, of {:.1}",
        listed(&[(*n_tokens, "tokens"), (*n_particles as u64, "particles"),
                 (*n_chains as u64, "chains"), (*n_missing as u64, "missing cells"),
                 (*n_draws as u64, "draws")]),
        grouped(*n_marginals as u64), bytes / GIB, available / GIB
    )]
    SamplerMemory {
        n_tokens: u64,
        n_particles: usize,
        n_chains: usize,
        n_missing: usize,
        n_draws: usize,
        n_marginals: usize,
        n_at_once: usize,
        bytes: f64,
        available: f64,
    },
    /// No sampler takes all the options that were chosen.
    #[error("no sampler takes temperatures together with options of a particle filter")]
    NoSampler,
    /// Weights of tokens are products of counts that are no numbers any more.
    #[error("the weights of tokens leave the range of double precision")]
    Range,
    /// A sampler of the size asked for would cost more than its budget.
    #[error(
        "document {document} ({n_tokens} tokens, {n_topics} topics) would take about \
         {operations:.1e} multiply-adds by this method, some {:.0} seconds, above the budget of \
         {budget:.1e}", operations / 1e9
    )]
    SamplingBudget { document: usize, n_tokens: u64, n_topics: usize, operations: f64, budget: f64 },
    /// The particles of one document would not fit into memory.
    #[error("{n_particles} particles are too many for the memory of a run: at most {most}")]
    TooManyParticles { n_particles: usize, most: usize },
    /// The topics given for the tokens of a document cannot have produced them.
    #[error("the topics given for document {row} cannot have produced its words")]
    TopicPath { row: usize },
    /// A model to start from cannot produce a word that it shall explain.
    #[error(
        "the model to start from has probability 0 for word {word}, which document {document} holds"
    )]
    Impossible { document: usize, word: u32 },
    /// The estimator cannot run backwards.
    #[error("only particle filters and annealing have a reverse")]
    NoReverse,
    /// The method cannot leave cells open that were not observed.
    #[error("modes of allocations, and samplers other than smc, need all cells observed")]
    CellsMissing,
    /// There is no memory for an array.
    #[error("{name} would take {bytes:.1e} bytes, more than there is")]
    Memory { name: &'static str, bytes: f64 },
    /// The work was asked to stop before it had a result.
    #[error("stopped before the work was done")]
    Stopped,
}

/// Numbers of things, those that are none left out.
fn listed(things: &[(u64, &str)]) -> String {
    let some = things.iter().filter(|(n, _)| *n > 0);
    some.map(|(n, name)| format!("{} {name}", grouped(*n))).collect::<Vec<_>>().join(", ")
}

/// A number in groups of three digits.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An array of `n` copies of `value`, or an error where memory cannot hold it.
pub(crate) fn array_of<T: Clone>(name: &'static str, n: usize, value: T) -> Result<Vec<T>> {
    let mut array = room_for(name, n)?;
    array.resize(n, value);
    Ok(array)
}

/// An empty array with room for `n` values, or an error where memory cannot hold them.
pub(crate) fn room_for<T>(name: &'static str, n: usize) -> Result<Vec<T>> {
    let mut array = Vec::new();
    let bytes = n as f64 * size_of::<T>() as f64;
    array.try_reserve_exact(n).map_err(|_| Error::Memory { name, bytes })?;
    Ok(array)
}

/// Checks the length of an array.
pub(crate) fn check_length(name: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Length { name, found, expected }) }
}

/// Checks that every value satisfies `valid`; the error names the first that does not.
pub(crate) fn check_all(
    name: &'static str,
    values: &[f64],
    domain: &'static str,
    valid: impl Fn(f64) -> bool,
) -> Result<()> {
    match values.iter().position(|&x| !valid(x)) {
        Some(index) => Err(Error::Parameter { name, index, value: values[index], domain }),
        None => Ok(()),
    }
}

/// Checks parameters that a sampler has drawn: as small as they may get, but with a finite sum.
pub(crate) fn check_drawn(name: &'static str, values: &[f64]) -> Result<()> {
    check_all(name, values, "positive and at most 1e100", |x| x > 0.0 && x <= 1e100)
}

/// Checks that every value is positive, and neither so small nor so large that products of a few
/// leave the range of doubles.
pub(crate) fn check_positive(name: &'static str, values: &[f64]) -> Result<()> {
    check_all(name, values, "between 1e-100 and 1e100", |x| (1e-100..=1e100).contains(&x))
}

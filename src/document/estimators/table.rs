//! The estimators by name: the one table that results, checks and documentation read.

use super::left_to_right::Form;
use super::sampler::Sampler;

/// Which setting is the size of an estimator's sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleSize {
    /// `n_samples`: draws, states or temperatures.
    Samples,
    /// `n_particles`.
    Particles,
}

/// What is known of an estimator of p.
///
/// Unbiased estimates have the mean p for any sample size, consistent ones tend to p as the sample
/// grows.
#[derive(Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "columns of a table, independent of each other")]
pub struct Estimator {
    /// Its name in settings and results.
    pub name: &'static str,
    /// Multiply-adds of a replicate: N tokens, W distinct words, K topics, S samples, P particles.
    pub cost: &'static str,
    /// Whether the mean of its estimates of p is p, for any sample size.
    pub is_unbiased: bool,
    /// Whether its estimates tend to p as samples grow.
    pub is_consistent: bool,
    /// The size of its sample, if it has one.
    pub size: Option<SampleSize>,
    /// That size where none is asked for; `None` where a pilot chooses it.
    pub default_size: Option<usize>,
    /// Names of the choices that it leaves open.
    pub options: &'static [&'static str],
    /// Whether it can run backwards from a draw of the posterior.
    pub is_reversible: bool,
    /// Whether it can be asked for; others are what annealing takes where its chains would be slow.
    pub is_method: bool,
    /// Pseudo-counts up to which it may leave topics closed that a document needs, in replicates
    /// that agree; 0 where it opens them.
    pub closed: f64,
}

pub(crate) const EXACT: Estimator = Estimator {
    name: "exact",
    cost: "K C(N+K-1, K), Π C(y_w+2, 2) or N² Π (y_w+1) / 2",
    is_unbiased: true,
    is_consistent: true,
    size: None,
    default_size: None,
    options: &[],
    is_reversible: false,
    is_method: true,
    closed: 0.0,
};

/// Largest pseudo-count at which methods that move or place one token after the other were silently
/// wrong by more than four errors, on documents of two to four topics.
pub(super) const CLOSED: f64 = 0.01;

const SAMPLED: Estimator = Estimator { size: Some(SampleSize::Samples), closed: CLOSED, ..EXACT };

const FILTER: Estimator =
    Estimator { size: Some(SampleSize::Particles), cost: "P N K", is_reversible: true, ..SAMPLED };

const LEFT_TO_RIGHT: Estimator = Estimator {
    name: "left-to-right",
    cost: "P N² K",
    default_size: Some(10),
    is_reversible: false,
    ..FILTER
};

pub(crate) static AUTO: Estimator =
    Estimator { name: "auto", cost: "as chosen", is_reversible: true, ..EXACT };

static ANNEALED: Estimator = Estimator {
    name: "annealed",
    cost: "S N K",
    options: &["start"],
    is_reversible: true,
    closed: 0.0,
    ..SAMPLED
};

static SMC_LOOKAHEAD: Estimator = Estimator { name: "smc-lookahead", ..FILTER };

static SMC: Estimator = Estimator { name: "smc", ..FILTER };

static PARTICLE: Estimator = Estimator {
    name: "left-to-right-particle",
    is_unbiased: false,
    is_consistent: false,
    ..LEFT_TO_RIGHT
};

static SEQUENTIAL: Estimator =
    Estimator { name: "left-to-right-sequential", is_unbiased: false, ..LEFT_TO_RIGHT };

static L2R: Estimator = Estimator {
    name: "l2r",
    cost: "P W N K",
    options: &["n_conditional_samples"],
    ..LEFT_TO_RIGHT
};

static CHIB: Estimator =
    Estimator { name: "chib", cost: "4 S N K", default_size: Some(50), ..SAMPLED };

static MEAN_FIELD: Estimator = Estimator {
    name: "mean-field",
    cost: "S N",
    default_size: Some(1_000),
    options: &["order", "n_iterations"],
    ..SAMPLED
};

static DIRECT: Estimator =
    Estimator { name: "direct", cost: "S W K", default_size: Some(1_000), ..SAMPLED };

static HARMONIC: Estimator = Estimator {
    name: "harmonic",
    cost: "S N K",
    is_unbiased: false,
    default_size: Some(200),
    ..SAMPLED
};

pub(crate) static RECURSIVE: Estimator =
    Estimator { name: "recursive", cost: "N K", is_unbiased: false, is_consistent: false, ..EXACT };

/// Importance sampling from a mixture fitted by population Monte Carlo.
pub(crate) static MIXTURE: Estimator = Estimator {
    name: "population-monte-carlo",
    cost: "S (W + 160) K",
    is_method: false,
    closed: 0.0,
    ..SAMPLED
};

/// Importance sampling of similar topics, stratified.
pub(crate) static STRATIFIED: Estimator =
    Estimator { name: "stratified-importance", cost: "S (W + 16) K", is_method: false, ..SAMPLED };

/// All estimators; the most useful ones before the others, those that cannot be asked for last.
pub static ESTIMATORS: [&Estimator; 16] = [
    &AUTO,
    &EXACT,
    &ANNEALED,
    &SMC_LOOKAHEAD,
    &SMC,
    &LEFT_TO_RIGHT,
    &PARTICLE,
    &SEQUENTIAL,
    &L2R,
    &CHIB,
    &MEAN_FIELD,
    &DIRECT,
    &HARMONIC,
    &RECURSIVE,
    &MIXTURE,
    &STRATIFIED,
];

impl Sampler {
    /// Its row of [`ESTIMATORS`].
    pub fn estimator(self) -> &'static Estimator {
        match self {
            Sampler::Annealed(_) => &ANNEALED,
            Sampler::SmcLookahead => &SMC_LOOKAHEAD,
            Sampler::Smc => &SMC,
            Sampler::LeftToRight(Form::MeanOfProducts) => &LEFT_TO_RIGHT,
            Sampler::LeftToRight(Form::ProductOfMeans) => &PARTICLE,
            Sampler::LeftToRight(Form::Sequential) => &SEQUENTIAL,
            Sampler::L2r(_) => &L2R,
            Sampler::Chib => &CHIB,
            Sampler::MeanField(_) => &MEAN_FIELD,
            Sampler::Direct => &DIRECT,
            Sampler::Harmonic => &HARMONIC,
        }
    }
}

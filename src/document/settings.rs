//! How to score: the method, the sizes of its samples, and the effort it may take.

use super::estimators::sampler::Sampler;
use super::estimators::table::{self, Estimator, SampleSize};
use super::result::Score;
use crate::error::{Error, Result};
use crate::estimate::RELIABLE_SHARE;

/// Multiply-adds up to which [`Method::Auto`] computes exactly: some milliseconds.
pub(super) const AUTO_EXACT: f64 = 1e7;

/// The same for documents that may open topics of tiny pseudo-counts, whose estimates have the
/// heaviest tails: some tenths of a second. Estimates of such documents take as long.
pub(super) const RARE_EXACT: f64 = 4e8;

/// Multiply-adds that one document may cost by default: exactly or on the way to a target error,
/// and by a sampler of a given size.
pub(super) const BUDGET: f64 = 1e9;
pub(super) const SAMPLING_BUDGET: f64 = 1e11;

/// Variance of ln p̂ of a replicate that longer runs are given their size for.
const ENOUGH_VARIANCE: f64 = 0.16;

/// Largest number of replicates.
const MAX_REPLICATES: usize = 10_000;

/// The event whose probability is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The ordered tokens.
    Sequence,
    /// The bag of words, with its multiplicity.
    Counts,
}

/// The probability to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// Ordered tokens or bag of words.
    pub event: Event,
    /// Whether to condition on the document's length. LDA always does.
    pub given_length: bool,
}

/// How a document's likelihood is computed or estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Exact where that is cheap, else [`Sampler::SmcLookahead`] or [`Sampler::Annealed`].
    Auto,
    /// No error; refused above the budget.
    Exact,
    /// The deterministic recursion of Scott and Baldridge: no error is known.
    Recursive,
    /// Replicates of a sampler.
    Sample(Sampler),
}

impl Method {
    /// Its row of [`ESTIMATORS`](crate::document::ESTIMATORS).
    pub fn estimator(self) -> &'static Estimator {
        match self {
            Method::Auto => &table::AUTO,
            Method::Exact => &table::EXACT,
            Method::Recursive => &table::RECURSIVE,
            Method::Sample(sampler) => sampler.estimator(),
        }
    }

    /// Whether it has a form for bursty topics.
    pub(super) fn serves_bursts(self) -> bool {
        match self {
            Method::Auto | Method::Exact => true,
            Method::Recursive => false,
            Method::Sample(sampler) => {
                !matches!(sampler, Sampler::Harmonic | Sampler::MeanField(_) | Sampler::L2r(_))
            }
        }
    }
}

/// How to score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The estimator.
    pub method: Method,
    /// The probability that is asked for.
    pub query: Query,
    /// Draws, states or temperatures per replicate of the samplers that have those; `None` lets
    /// annealing choose by document, and the others take their default.
    pub n_samples: Option<usize>,
    /// Particles per replicate of the samplers that have those; `None` lets the filters choose by
    /// document, and gives the others 10.
    pub n_particles: Option<usize>,
    /// Independent replicates behind the standard error.
    pub n_replicates: usize,
    /// Temperatures of the runs of a document whose sum over a corpus is wanted: exact where that is as
    /// cheap, else with the [spread](Score::spread) of the runs.
    pub total: Option<usize>,
    /// Standard error to reach in every document by larger samples.
    pub target_std_error: Option<f64>,
    /// Multiply-adds that one document may cost; by default 10^9 exactly or on the way to a target
    /// error, 10^11 by a sampler of given size.
    pub budget: Option<f64>,
    /// Whether to keep the estimate as a function of the sample size.
    pub trace: bool,
}

impl Settings {
    /// Default sizes and budget, 16 replicates, no target error, no trace.
    pub fn new(query: Query) -> Self {
        Settings {
            method: Method::Auto,
            query,
            n_samples: None,
            n_particles: None,
            n_replicates: 16,
            total: None,
            target_std_error: None,
            budget: None,
            trace: false,
        }
    }

    /// Refuses settings outside their domains.
    pub(super) fn check(&self) -> Result<()> {
        let sizes = [
            ("n_samples", self.n_samples.unwrap_or(1), 1..=usize::MAX, "at least 1"),
            ("n_particles", self.n_particles.unwrap_or(1), 1..=usize::MAX, "at least 1"),
            ("n_replicates", self.n_replicates, 2..=MAX_REPLICATES, "between 2 and 10000"),
        ];
        for (name, size, range, domain) in sizes {
            if !range.contains(&size) {
                return Err(Error::Parameter { name, index: 0, value: size as f64, domain });
            }
        }
        let positive = |name, value: f64| {
            let domain = "positive";
            if value > 0.0 {
                Ok(())
            } else {
                Err(Error::Parameter { name, index: 0, value, domain })
            }
        };
        positive("budget", self.budget.unwrap_or(BUDGET))?;
        positive("target_std_error", self.target_std_error.unwrap_or(1.0))
    }

    /// Whether the budget only says how far to be exact, and limits no sampler.
    pub(super) fn is_auto_without_target(&self) -> bool {
        self.method == Method::Auto && self.target_std_error.is_none()
    }

    /// Samples of a longer run of a document whose error rests on few of the replicates, where sizes are
    /// automatic: the variance of ln p̂ falls with them, and they are powers of 2.
    pub(super) fn longer(&self, score: &Score) -> Option<usize> {
        let is_given = [self.n_samples, self.n_particles, self.total].iter().any(Option::is_some);
        let (n_eff, n_replicates) = (score.estimate.n_eff, self.n_replicates as f64);
        if is_given
            || self.trace
            || !self.is_auto_without_target()
            || !score.gains_by_length
            || score.estimator != Sampler::Annealed(None).estimator()
            || n_eff.is_nan()
            || n_eff >= RELIABLE_SHARE * n_replicates
        {
            return None;
        }
        let wanted = score.size as f64 * (n_replicates / n_eff.max(1.0)).ln() / ENOUGH_VARIANCE;
        Some((wanted.ceil() as usize).next_power_of_two())
    }

    /// Draws, particles or temperatures of a replicate: as asked for, or the default; `None` where
    /// a pilot chooses.
    pub(crate) fn size(&self, sampler: Sampler) -> Option<usize> {
        let estimator = sampler.estimator();
        let given = match estimator.size {
            Some(SampleSize::Particles) => self.n_particles,
            Some(SampleSize::Samples) => self.n_samples,
            None => None,
        };
        given.or(estimator.default_size)
    }
}

//! A sampler, and what it finds out about a document before the draws that count.

use super::annealed::rare::{RareTopics, Rarity, may_need};
use super::annealed::urn_path::{self, Start, UrnPath};
use super::annealed::{self, Ends};
use super::fitted::{self, DirichletMixture};
use super::runs::{Replicates, Runs};
use super::sampler::Sampler;
use super::table::{self, Estimator};
use super::{chib, direct, harmonic, l2r, left_to_right, mean_field, similar, smc};
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::rng::{LANES, Rng};
use crate::urn::{LocalUrn, TopicChains};

/// Most sweeps that refine the start of annealing.
const REFINING: usize = 20;

/// Temperatures for each of these sweeps, where so many are asked for.
const TEMPERATURES_PER_SWEEP: usize = 5;

/// Sweeps of a run in which a token enters an empty topic, if that is late: all of 16 short runs may be
/// without the topic, and long ones without those that open only as others close. With 3, two documents
/// under topics in a ring stay low by a nat; with 6, one of six estimates of one of them does.
const LATE: f64 = 10.0;

/// Largest pseudo-count that is late, less than the 1/20 that other packages give 20 topics.
const LARGEST_LATE: f64 = 0.03;

/// How annealing gets into topics that hold no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// By moves of single tokens.
    ByToken,
    /// As pseudo-counts are lowered: single tokens would get there late in a run.
    Late,
    /// The same, where they would hardly get there at all.
    Rare,
    /// The same, with softened weights of words.
    Softened,
}

/// A sampler made ready for a document. The draws that make it ready are no part of an estimate:
/// given them, all estimates are unbiased that are so by themselves.
pub(crate) struct Prepared<'a> {
    pub(crate) sampler: Sampler,
    urn: &'a LocalUrn,
    basis: Basis<'a>,
    pub(crate) opening: Opening,
}

/// The basis of a sampler's estimates.
enum Basis<'a> {
    /// The sampler as it is.
    Plain,
    /// A mixture of laws of the topic weights.
    Mixture(DirichletMixture),
    /// Draws of the topic weights, whose integrand has this range.
    Similar(f64),
    /// Annealing along a path.
    Path(UrnPath<'a>),
}

impl<'a> Prepared<'a> {
    /// Makes it ready for runs of this size, or of any.
    pub(crate) fn new(
        sampler: Sampler,
        urn: &'a LocalUrn,
        size: Option<usize>,
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<Self> {
        let basis = match sampler {
            Sampler::Annealed(start) => Basis::new(start, urn, size, rng, observer)?,
            _ => Basis::Plain,
        };
        let is_lowered = matches!(&basis, Basis::Path(path) if path.start.lowers());
        let opening = if is_lowered { Opening::Rare } else { Opening::ByToken };
        Ok(Prepared { sampler, urn, basis, opening })
    }

    /// ln Ẑ of independent replicates, at each of the sizes; at the last only, where they do not
    /// [grow](Sampler::grows).
    pub(crate) fn ln_urn_sums(
        &self,
        runs: Runs<'_>,
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<Vec<f64>> {
        Ok(self.replicates(runs, rng, observer)?.ln_values)
    }

    /// The same, with what their draws tell of their error.
    pub(crate) fn replicates(
        &self,
        runs: Runs<'_>,
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<Replicates> {
        let (urn, n, size) = (self.urn, runs.n, runs.size());
        let ln_values = match (self.sampler, &self.basis) {
            (Sampler::Direct, _) => return direct::replicates(urn, runs, rng, observer),
            (Sampler::Harmonic, _) => return harmonic::replicates(urn, runs, rng, observer),
            (Sampler::MeanField(mean_field), _) => {
                return mean_field::replicates(urn, mean_field, runs, rng, observer);
            }
            (Sampler::LeftToRight(form), _) => {
                return left_to_right::replicates(urn, form, runs, rng, observer);
            }
            (Sampler::L2r(conditionals), _) => {
                return l2r::replicates(urn, conditionals, runs, rng, observer);
            }
            (Sampler::Smc, _) => smc::ln_urn_sums(urn, false, n, size, rng, observer),
            (Sampler::SmcLookahead, _) => smc::ln_urn_sums(urn, true, n, size, rng, observer),
            (Sampler::Chib, _) => chib::ln_urn_sums(urn, n, size, rng, observer),
            (_, Basis::Mixture(mixture)) => mixture.ln_urn_sums(urn, n, size, rng, observer),
            (_, &Basis::Similar(spread)) => {
                similar::ln_urn_sums(urn, spread, n, size, rng, observer)
            }
            (_, Basis::Path(path)) => path.ln_urn_sums(n, size, rng, observer),
            (Sampler::Annealed(_), Basis::Plain) => unreachable!("annealing has a basis"),
        };
        Ok(ln_values?.into())
    }

    /// The same, and where they end, if bursty topics are annealed from a mean field.
    pub(crate) fn replicates_and_ends(
        &self,
        runs: Runs<'_>,
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<(Replicates, Option<Ends>)> {
        match &self.basis {
            Basis::Path(path) if self.urn.bursts().is_some() && path.start == Start::MeanField => {
                let (ln_sums, ends) =
                    path.ln_urn_sums_and_ends(runs.n, runs.size(), rng, observer)?;
                Ok((ln_sums.into(), Some(ends)))
            }
            _ => Ok((self.replicates(runs, rng, observer)?, None)),
        }
    }

    /// Moves the start of annealing to where runs end.
    pub(crate) fn move_to(
        &mut self,
        ends: &Ends,
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<()> {
        let Basis::Path(path) = &mut self.basis else { return Ok(()) };
        path.move_to(ends, REFINING, rng, observer)
    }

    /// The estimator that runs.
    pub(crate) fn estimator(&self) -> &'static Estimator {
        match &self.basis {
            Basis::Mixture(_) => &table::MIXTURE,
            Basis::Similar(_) => &table::STRATIFIED,
            Basis::Plain | Basis::Path(_) => self.sampler.estimator(),
        }
    }

    /// Annealing that lowers pseudo-counts, where runs of this size along the path that was chosen, or
    /// draws that take as long, would leave topics closed that the document may need; if `late`, also
    /// where they would open them late.
    pub(crate) fn lowered(
        &self,
        size: usize,
        late: bool,
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<Option<Self>> {
        if self.sampler != Sampler::Annealed(None) {
            return Ok(None);
        }
        let (rare, factor) = (urn_path::rare(size), if late { LATE } else { 1.0 });
        let most = |rare: f64| (factor * rare).min(LARGEST_LATE);
        let rarest = match &self.basis {
            Basis::Path(path) if path.start == Start::MeanField => path.rarest(most(rare)),
            // However many draws: chains did not open the topics that its laws miss.
            Basis::Mixture(_) if may_need(self.urn, most(table::CLOSED)) => Some(rare),
            _ => None,
        };
        let Some(rarest) = rarest else { return Ok(None) };
        let path = UrnPath::refined(self.urn, Start::Lowered, REFINING, rng, observer)?;
        let opening = if rarest <= rare { Opening::Rare } else { Opening::Late };
        Ok(Some(Prepared { basis: Basis::Path(path), opening, ..*self }))
    }

    /// The same with softened weights, where `auto` lowers pseudo-counts and no topic is bursty.
    pub(crate) fn softened(&self, rng: &mut Rng, observer: &impl Observer) -> Result<Option<Self>> {
        let is_lowered = matches!(&self.basis, Basis::Path(path) if path.start == Start::Lowered);
        if !is_lowered || self.urn.bursts().is_some() {
            return Ok(None);
        }
        let path = UrnPath::refined(self.urn, Start::Softened, REFINING, rng, observer)?;
        Ok(Some(Prepared { basis: Basis::Path(path), opening: Opening::Softened, ..*self }))
    }

    /// Pseudo-counts up to which it may leave topics closed that the document needs.
    pub(crate) fn closed(&self) -> f64 {
        match self.sampler {
            Sampler::Annealed(Some(Start::Prior | Start::MeanField)) => table::CLOSED,
            _ => self.estimator().closed,
        }
    }

    /// Size of a run that takes as long as annealing through so many temperatures, where topic
    /// weights are drawn; any other size is as it is.
    pub(crate) fn size_for(&self, n_temperatures: usize) -> usize {
        match &self.basis {
            Basis::Mixture(_) => fitted::n_draws(self.urn, n_temperatures),
            Basis::Similar(_) => similar::n_draws(self.urn, n_temperatures),
            Basis::Plain | Basis::Path(_) => n_temperatures,
        }
    }

    /// Size of a run for which this many samples are asked: so many, but draws of topic weights are
    /// not fewer than their weights need.
    pub(crate) fn size_given(&self, n_samples: usize) -> usize {
        match &self.basis {
            Basis::Mixture(_) => n_samples.max(fitted::DRAWS),
            Basis::Similar(_) => similar::stratified(self.urn, n_samples),
            Basis::Plain | Basis::Path(_) => n_samples,
        }
    }

    /// Multiply-adds of one run of a size.
    pub(crate) fn cost(&self, size: usize) -> f64 {
        match &self.basis {
            Basis::Path(path) => path.cost(size),
            _ => size as f64 * self.sampler.cost(self.urn.extent()),
        }
    }

    /// ln of estimates of Z whose inverses are unbiased for 1/Z, from topics that are a draw of
    /// their posterior; an error for the samplers that have no reverse.
    pub(crate) fn ln_urn_sums_reversed(
        &self,
        topics: &[u16],
        n: usize,
        size: usize,
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<Vec<f64>> {
        let urn = self.urn;
        match (self.sampler, &self.basis) {
            (Sampler::Smc | Sampler::SmcLookahead, _) => {
                let mut paths = Vec::with_capacity(n);
                while paths.len() < n {
                    let chains = TopicChains::from_draw(urn, topics, rng, observer)?;
                    let of_lane = |lane: usize| chains.topics().iter().map(|x| x[lane]).collect();
                    paths.extend((0..LANES.min(n - paths.len())).map(of_lane));
                }
                let lookahead = self.sampler == Sampler::SmcLookahead;
                smc::ln_urn_sums_conditional(urn, lookahead, &paths, size, rng, observer)
            }
            (_, Basis::Path(path)) => path.ln_urn_sums_reversed(topics, n, size, rng, observer),
            (Sampler::Annealed(_), _) => {
                let start = Start::MeanField;
                annealed::ln_urn_sums_reversed(urn, start, topics, n, size, rng, observer)
            }
            _ => Err(Error::NoReverse),
        }
    }
}

impl<'a> Basis<'a> {
    fn new(
        start: Option<Start>,
        urn: &'a LocalUrn,
        size: Option<usize>,
        rng: &mut Rng,
        observer: &impl Observer,
    ) -> Result<Self> {
        let start = match start {
            Some(Start::Prior) => {
                return Ok(Basis::Path(UrnPath::new(urn, Start::Prior, 0, observer)?));
            }
            Some(start) => start,
            // A mixture is fitted to chains, which leave topics of tiny pseudo-counts closed.
            None if RareTopics::of(urn, Rarity::LOWERED).may_open => Start::Lowered,
            // Given the topic weights, the words of a bursty topic are no product.
            None if urn.bursts().is_some() => Start::MeanField,
            None => {
                if let Some(mixture) = DirichletMixture::fit(urn, rng, observer)? {
                    return Ok(Basis::Mixture(mixture));
                }
                if let Some(spread) = similar::spread(urn) {
                    return Ok(Basis::Similar(spread));
                }
                Start::MeanField
            }
        };
        let n_sweeps = size.map_or(REFINING, n_refining_sweeps);
        Ok(Basis::Path(UrnPath::refined(urn, start, n_sweeps, rng, observer)?))
    }
}

/// Sweeps that refine the start of runs through so many temperatures.
pub(crate) fn n_refining_sweeps(n_temperatures: usize) -> usize {
    n_temperatures.div_ceil(TEMPERATURES_PER_SWEEP).min(REFINING)
}

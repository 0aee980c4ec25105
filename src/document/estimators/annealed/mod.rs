//! Annealed importance sampling of the topics of a document, forwards and in reverse.

pub(in crate::document) mod rare;
pub(in crate::document) mod single_topic;
pub(in crate::document) mod urn_path;

mod ends;
mod independent_words;

pub(crate) use self::ends::Ends;
use self::independent_words::IndependentWords;
use self::urn_path::{Start, UrnLevel, UrnPath};
use super::runs::{add, in_lanes};
use crate::control::Observer;
use crate::error::Result;
use crate::rng::{LANES, Lanes, Stream};
use crate::temper::annealing::{self, AnnealingPath};
use crate::urn::{LocalUrn, SweepOrder, TopicChains};

/// Mean-field sweeps behind a start that is not the prior.
const MEAN_FIELD_ITERATIONS: usize = 20;

/// ln Ẑ of `n_runs` independent chains through `n_temperatures` steps, one Gibbs sweep each.
///
/// Unbiased. Cost: temperatures x tokens x topics.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn ln_urn_sums(
    urn: &LocalUrn,
    start: Start,
    n_runs: usize,
    n_temperatures: usize,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    UrnPath::new(urn, start, MEAN_FIELD_ITERATIONS, observer)?.ln_urn_sums(
        n_runs,
        n_temperatures,
        rng,
        observer,
    )
}

/// ln Ẑ of `n_runs` chains that run the same path backwards, from topics of all tokens that are a
/// draw of their posterior: the mean of 1/Ẑ is 1/Z.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn ln_urn_sums_reversed<S: Stream>(
    urn: &LocalUrn,
    start: Start,
    topics: &[u16],
    n_runs: usize,
    n_temperatures: usize,
    rng: &mut S,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let path = UrnPath::new(urn, start, MEAN_FIELD_ITERATIONS, observer)?;
    path.ln_urn_sums_reversed(topics, n_runs, n_temperatures, rng, observer)
}

impl UrnPath<'_> {
    /// ln Ẑ of independent chains through `n_temperatures` steps.
    pub(crate) fn ln_urn_sums(
        &self,
        n_runs: usize,
        n_temperatures: usize,
        rng: &mut impl Stream,
        observer: &impl Observer,
    ) -> Result<Vec<f64>> {
        Ok(self.ln_urn_sums_and_ends(n_runs, n_temperatures, rng, observer)?.0)
    }

    /// The same, and where the chains end.
    pub(crate) fn ln_urn_sums_and_ends(
        &self,
        n_runs: usize,
        n_temperatures: usize,
        rng: &mut impl Stream,
        observer: &impl Observer,
    ) -> Result<(Vec<f64>, Ends)> {
        let ladder = SteppedPath::new(self, n_temperatures, observer)?;
        let mut ends = Ends { ln_values: [f64::NEG_INFINITY; _], topics: Vec::new() };
        let ln_sums = in_lanes(n_runs, || {
            let (ln_values, chains) = annealing::ln_sums(&ladder, &ladder.betas, rng, observer)?;
            let found = Ends { ln_values, topics: chains.into_topics() };
            if ends.topics.is_empty() || found.largest() > ends.largest() {
                ends = found;
            }
            Ok(vec![ln_values])
        })?;
        Ok((ln_sums, ends))
    }

    /// ln Ẑ of chains that go backwards from topics that are a draw of their posterior.
    pub(crate) fn ln_urn_sums_reversed<S: Stream>(
        &self,
        topics: &[u16],
        n_runs: usize,
        n_temperatures: usize,
        rng: &mut S,
        observer: &impl Observer,
    ) -> Result<Vec<f64>> {
        let ladder = SteppedPath::new(self, n_temperatures, observer)?;
        in_lanes(n_runs, || {
            let chains = TopicChains::from_draw(self.urn, topics, rng, observer)?;
            let betas = &ladder.betas;
            Ok(vec![annealing::ln_sums_reversed::<S, _>(&ladder, betas, chains, observer)?])
        })
    }
}

/// A path in so many steps.
struct SteppedPath<'p, 'a> {
    path: &'p UrnPath<'a>,
    betas: Vec<f64>,
    n_full: usize,
    words: Option<IndependentWords>,
}

impl<'p, 'a> SteppedPath<'p, 'a> {
    fn new(path: &'p UrnPath<'a>, n_steps: usize, observer: &impl Observer) -> Result<Self> {
        let (betas, n_full) = (path.betas(n_steps), path.n_full(n_steps));
        let words = path.independent_words(observer)?;
        Ok(SteppedPath { path, betas, n_full, words })
    }
}

impl<'a, S: Stream> AnnealingPath<S> for SteppedPath<'_, 'a> {
    type Level = UrnLevel<'a>;
    type Chains = TopicChains<S::Lanes>;

    fn level(&self, beta: f64) -> UrnLevel<'a> {
        let (n_steps, mut level) = (self.betas.len() - 1, self.path.level(beta));
        let step = self.betas.partition_point(|&other| other < beta);
        // As many sweeps as should move tokens among all topics, at equal distances.
        level.is_full = step * self.n_full % n_steps < self.n_full;
        level.turns = (beta > 1.0).then_some([2 * step, 2 * step + 1]);
        level
    }

    fn ln_factor(&self) -> f64 {
        self.path.urn.ln_scale()
    }

    fn draw(
        &self,
        reference: &UrnLevel<'a>,
        ln_values: &mut Lanes,
        rng: &mut S,
        observer: &dyn Observer,
    ) -> Result<TopicChains<S::Lanes>> {
        let mut chains = TopicChains::new(self.path.urn, rng)?;
        if let Some(words) = &self.words {
            words.draw(&mut chains);
            add(ln_values, [words.ln_sum; LANES]);
            return Ok(chains);
        }
        chains.extend_all(reference.target(), observer, |weights| {
            add(ln_values, weights.map(f64::ln));
        })?;
        Ok(chains)
    }

    fn weigh(
        &self,
        reference: &UrnLevel<'a>,
        mut chains: TopicChains<S::Lanes>,
        ln_values: &mut Lanes,
    ) {
        if let Some(words) = &self.words {
            return add(ln_values, [words.ln_sum; LANES]);
        }
        let topics = chains.topics().to_vec();
        chains.clear();
        for topics in topics {
            add(ln_values, chains.weigh(reference.target()).map(f64::ln));
            chains.put(topics);
        }
    }

    fn sweep(
        &self,
        level: &UrnLevel<'a>,
        chains: &mut TopicChains<S::Lanes>,
        order: SweepOrder,
        observer: &dyn Observer,
    ) -> Result<()> {
        let lists = self.path.lists.as_ref().filter(|_| !level.is_full);
        let turns = level.turns.into_iter().flatten();
        if order == SweepOrder::Forward && level.turns.is_some() {
            chains.relabel(level.target());
            turns.clone().for_each(|turn| chains.open_or_close(level.target(), turn));
        }
        chains.sweep_words(lists, level.target(), order, observer)?;
        if order == SweepOrder::Backward && level.turns.is_some() {
            turns.rev().for_each(|turn| chains.open_or_close(level.target(), turn));
            chains.relabel(level.target());
        }
        Ok(())
    }

    fn step(&self, before: f64, after: f64, chains: &TopicChains<S::Lanes>, ln_values: &mut Lanes) {
        let is_plain = self.path.urn.bursts().is_none();
        let power = self.path.power(after) - self.path.power(before);
        if is_plain && power != 0.0 {
            let ln_products = chains.ln_emission(&self.path.ln_q);
            add(ln_values, ln_products.map(|ln_product| power * ln_product));
        }
        if self.path.start != Start::Prior || !is_plain {
            let [from, to] = [before, after].map(|beta| self.path.level(beta));
            add(ln_values, chains.ln_ratio(from.target(), to.target()));
        }
    }
}

//! Annealed importance sampling of the topics of a document, forwards and in reverse.

use std::borrow::Cow;

use super::mean_field::{self, MeanField};
use super::runs::{add, in_lanes};
use crate::control::Observer;
use crate::error::Result;
use crate::rng::{LANES, Lanes, Stream};
use crate::temper::annealing::{self, Path};
use crate::urn::{Chains, LocalUrn, Order, Target};

/// Mean-field sweeps behind [`Start::MeanField`].
const MEAN_FIELD_ITERATIONS: usize = 20;

/// Balls that every topic is expected to have at least, or an equal share where there are fewer
/// tokens: the mean field settles on one mode, and the start must not rule out the others.
const LEAST_EXPECTED: f64 = 0.5;

/// The reference distribution from which annealing starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The urn that knows of each word only which topics can produce it:
    /// `γ_β(k) = Π (a + n) q^β`, drawn in sequence at β = 0.
    Prior,
    /// Independent tokens under the balls m that the mean field expects:
    /// `γ_β(k) = Π ((1-β) m + β (a + n)) q`, an urn at every β.
    MeanField,
}

impl Start {
    /// Inverse temperatures of annealing in `n` steps, denser where the path bends.
    fn betas(self, n: usize) -> Vec<f64> {
        let beta = |t: usize| {
            let share = t as f64 / n as f64;
            match self {
                Start::Prior => share * share,
                Start::MeanField => 1.0 - (1.0 - share) * (1.0 - share),
            }
        };
        (0..=n).map(beta).collect()
    }
}

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
    let betas = start.betas(n_temperatures);
    in_lanes(n_runs, || {
        let chains = Chains::of_posterior(urn, topics, rng, observer)?;
        Ok(vec![annealing::ln_sums_reversed::<S, _>(&path, &betas, chains, observer)?])
    })
}

/// Distributions from the start to the urn.
pub(crate) struct UrnPath<'a> {
    urn: &'a LocalUrn,
    start: Start,
    /// m, where the start is the mean field.
    expected: Vec<f64>,
    /// ln q, where the start is the prior.
    ln_q: Vec<f64>,
}

impl<'a> UrnPath<'a> {
    /// Finds the start, the mean field by so many sweeps.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
    pub(crate) fn new(
        urn: &'a LocalUrn,
        start: Start,
        n_iterations: usize,
        observer: &impl Observer,
    ) -> Result<Self> {
        let mut path = UrnPath { urn, start, expected: Vec::new(), ln_q: Vec::new() };
        match start {
            Start::Prior => path.ln_q = urn.all_weights().iter().map(|q| q.ln()).collect(),
            Start::MeanField => {
                let mean_field = MeanField::first_order(n_iterations);
                let g = mean_field::responsibilities(urn, mean_field, observer)?;
                path.expected = mean_field::expected_balls(urn, &g);
                let share = urn.n_tokens() as f64 / urn.n_topics() as f64;
                path.expected.iter_mut().for_each(|m| *m = m.max(share.min(LEAST_EXPECTED)));
            }
        }
        Ok(path)
    }

    /// ln Ẑ of independent chains through `n_temperatures` steps.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
    pub(crate) fn ln_urn_sums(
        &self,
        n_runs: usize,
        n_temperatures: usize,
        rng: &mut impl Stream,
        observer: &impl Observer,
    ) -> Result<Vec<f64>> {
        let betas = self.start.betas(n_temperatures);
        in_lanes(n_runs, || Ok(vec![annealing::ln_sums(self, &betas, rng, observer)?]))
    }

    /// m and a of every topic.
    fn ends(&self) -> impl Iterator<Item = (&f64, &f64)> {
        self.expected.iter().zip(self.urn.pseudo_counts())
    }

    /// Adds ln Π of the ratios of (1-β) m + β (a + n) at `after` and at `before`.
    fn step_balls(&self, before: f64, after: f64, balls: &[Lanes], ln_values: &mut Lanes) {
        let mut sum = [0.0; LANES];
        let mut table = Vec::new();
        for (balls, (m, a)) in balls.iter().zip(self.ends()) {
            let most = balls.iter().fold(0.0, |x: f64, &y| x.max(y)) as usize;
            let factor = |beta: f64, j: usize| (1.0 - beta) * m + beta * (a + j as f64);
            let mut ln_ratio = 0.0;
            table.clear();
            table.push(0.0);
            for j in 0..most {
                ln_ratio += (factor(after, j) / factor(before, j)).ln();
                table.push(ln_ratio);
            }
            for (sum, &n) in sum.iter_mut().zip(balls) {
                *sum += table[n as usize];
            }
        }
        add(ln_values, sum);
    }
}

/// The urn at one β.
pub(crate) struct Level<'a> {
    base: Cow<'a, [f64]>,
    unit: f64,
    q: Cow<'a, [f64]>,
}

impl Level<'_> {
    fn target(&self) -> Target<'_> {
        Target { base: &self.base, unit: self.unit, q: &self.q }
    }
}

impl<'a, S: Stream> Path<S> for UrnPath<'a> {
    type Level = Level<'a>;
    type Chains = Chains<S::Lanes>;

    fn level(&self, beta: f64) -> Level<'a> {
        let (a, q) = (self.urn.pseudo_counts(), self.urn.all_weights());
        match self.start {
            Start::Prior => {
                let power = |&q: &f64| if q > 0.0 { q.powf(beta) } else { 0.0 };
                let powers = q.iter().map(power).collect();
                Level { base: Cow::Borrowed(a), unit: 1.0, q: Cow::Owned(powers) }
            }
            Start::MeanField => {
                let base = self.ends().map(|(m, a)| (1.0 - beta) * m + beta * a).collect();
                Level { base: Cow::Owned(base), unit: beta, q: Cow::Borrowed(q) }
            }
        }
    }

    fn ln_factor(&self) -> f64 {
        self.urn.ln_scale()
    }

    fn draw(
        &self,
        reference: &Level<'a>,
        ln_values: &mut Lanes,
        rng: &mut S,
        observer: &impl Observer,
    ) -> Result<Chains<S::Lanes>> {
        let mut chains = Chains::new(self.urn, rng)?;
        chains.extend_all(reference.target(), observer, |weights| {
            add(ln_values, weights.map(f64::ln));
        })?;
        Ok(chains)
    }

    fn weigh(&self, reference: &Level<'a>, mut chains: Chains<S::Lanes>, ln_values: &mut Lanes) {
        let topics = chains.topics().to_vec();
        chains.clear();
        for topics in topics {
            add(ln_values, chains.weigh(reference.target()).map(f64::ln));
            chains.put(topics);
        }
    }

    fn sweep(
        &self,
        level: &Level<'a>,
        chains: &mut Chains<S::Lanes>,
        order: Order,
        observer: &impl Observer,
    ) -> Result<()> {
        chains.sweep(level.target(), order, observer)
    }

    fn step(&self, before: f64, after: f64, chains: &Chains<S::Lanes>, ln_values: &mut Lanes) {
        match self.start {
            Start::Prior => {
                let width = after - before;
                add(ln_values, chains.ln_emission(&self.ln_q).map(|ln_product| width * ln_product));
            }
            Start::MeanField => self.step_balls(before, after, chains.balls(), ln_values),
        }
    }
}

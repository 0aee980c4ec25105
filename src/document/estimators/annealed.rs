//! Annealed importance sampling (Neal 2001), forwards and in reverse.

use super::mean_field::{self, MeanField};
use super::runs::{add, in_lanes};
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::rng::{LANES, Lanes, Stream, UniformLanes};
use crate::urn::{Chains, LocalUrn, Order, Target};

/// Mean-field sweeps behind [`Start::MeanField`].
const MEAN_FIELD_ITERATIONS: usize = 20;

/// Balls that every topic is expected to have at least, or an equal share where there are fewer
/// tokens: the mean field settles on one mode, and the start must not rule out the others.
const LEAST_EXPECTED: f64 = 0.5;

/// Where the annealing starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The urn that knows of each word only which topics can produce it:
    /// `γ_β(k) = Π (a + n) q^β`, drawn in sequence at β = 0.
    Prior,
    /// Independent tokens under the balls m that the mean field expects:
    /// `γ_β(k) = Π ((1-β) m + β (a + n)) q`, an urn at every β.
    MeanField,
}

/// ln Ẑ of `n_runs` independent chains through `n_temperatures` steps, one Gibbs sweep each.
///
/// Unbiased. Cost: temperatures x tokens x topics.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub fn ln_urn_sums(
    urn: &LocalUrn,
    start: Start,
    n_runs: usize,
    n_temperatures: usize,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    Path::new(urn, start, n_temperatures, observer)?.ln_urn_sums(n_runs, rng, observer)
}

/// ln Ẑ of `n_runs` chains that run the same path backwards, from topics of all tokens that are a
/// draw of their posterior: the mean of 1/Ẑ is 1/Z.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub fn ln_urn_sums_reversed(
    urn: &LocalUrn,
    start: Start,
    topics: &[u16],
    n_runs: usize,
    n_temperatures: usize,
    rng: &mut impl Stream,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let mut path = Path::new(urn, start, n_temperatures, observer)?;
    in_lanes(n_runs, || {
        let mut chains = Chains::of_posterior(urn, topics, rng, observer)?;
        let mut ln_values = [urn.ln_scale(); LANES];
        for t in (1..=n_temperatures).rev() {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            if t < n_temperatures {
                path.set(t);
                chains.sweep(path.target(), Order::Backward, observer)?;
            }
            add(&mut ln_values, path.ln_step(t, &chains));
        }
        path.set(0);
        let start = chains.topics().to_vec();
        chains.clear();
        for topics in start {
            add(&mut ln_values, chains.weigh(path.target()).map(f64::ln));
            chains.put(topics);
        }
        Ok(vec![ln_values])
    })
}

/// The distributions from the start to the urn.
pub(crate) struct Path<'a> {
    urn: &'a LocalUrn,
    start: Start,
    n_temperatures: usize,
    /// m.
    expected: Vec<f64>,
    ln_q: Vec<f64>,
    // The target at the present temperature.
    base: Vec<f64>,
    unit: f64,
    q: Vec<f64>,
}

impl<'a> Path<'a> {
    /// A path of so many temperatures.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub(crate) fn new(
        urn: &'a LocalUrn,
        start: Start,
        n_temperatures: usize,
        observer: &impl Observer,
    ) -> Result<Self> {
        let q = urn.all_weights();
        let mut path = Path {
            urn,
            start,
            n_temperatures,
            expected: Vec::new(),
            ln_q: Vec::new(),
            base: urn.pseudo_counts().to_vec(),
            unit: 1.0,
            q: q.to_vec(),
        };
        match start {
            Start::Prior => path.ln_q = q.iter().map(|q| q.ln()).collect(),
            Start::MeanField => {
                let mean_field = MeanField::first_order(MEAN_FIELD_ITERATIONS);
                let g = mean_field::responsibilities(urn, mean_field, observer)?;
                path.expected = mean_field::expected_balls(urn, &g);
                let share = urn.n_tokens() as f64 / urn.n_topics() as f64;
                path.expected.iter_mut().for_each(|m| *m = m.max(share.min(LEAST_EXPECTED)));
            }
        }
        Ok(path)
    }

    /// The same path in another number of steps.
    #[must_use]
    pub(crate) fn with_temperatures(mut self, n_temperatures: usize) -> Self {
        self.n_temperatures = n_temperatures;
        self
    }

    /// ln Ẑ of independent chains along the path.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the observer asks to stop.
    pub(crate) fn ln_urn_sums(
        &mut self,
        n_runs: usize,
        rng: &mut impl Stream,
        observer: &impl Observer,
    ) -> Result<Vec<f64>> {
        in_lanes(n_runs, || {
            let mut chains = Chains::new(self.urn, rng)?;
            self.set(0);
            let mut ln_values = [self.urn.ln_scale(); LANES];
            chains.extend_all(self.target(), observer, |weights| {
                add(&mut ln_values, weights.map(f64::ln));
            })?;
            for t in 1..=self.n_temperatures {
                if observer.stopped() {
                    return Err(Error::Stopped);
                }
                add(&mut ln_values, self.ln_step(t, &chains));
                if t < self.n_temperatures {
                    self.set(t);
                    chains.sweep(self.target(), Order::Forward, observer)?;
                }
            }
            Ok(vec![ln_values])
        })
    }

    fn beta(&self, t: usize) -> f64 {
        let share = t as f64 / self.n_temperatures as f64;
        match self.start {
            Start::Prior => share * share,
            Start::MeanField => 1.0 - (1.0 - share) * (1.0 - share),
        }
    }

    /// Goes to a temperature.
    fn set(&mut self, t: usize) {
        let beta = self.beta(t);
        match self.start {
            Start::Prior => {
                for (power, &q) in self.q.iter_mut().zip(self.urn.all_weights()) {
                    *power = if q > 0.0 { q.powf(beta) } else { 0.0 };
                }
            }
            Start::MeanField => {
                self.unit = beta;
                let balls = self.expected.iter().zip(self.urn.pseudo_counts());
                for (base, (m, a)) in self.base.iter_mut().zip(balls) {
                    *base = (1.0 - beta) * m + beta * a;
                }
            }
        }
    }

    fn target(&self) -> Target<'_> {
        Target { base: &self.base, unit: self.unit, q: &self.q }
    }

    /// ln of the ratio of the densities at temperatures t and t - 1.
    fn ln_step(&self, t: usize, chains: &Chains<impl UniformLanes>) -> Lanes {
        let (before, after) = (self.beta(t - 1), self.beta(t));
        match self.start {
            Start::Prior => {
                chains.ln_emission(&self.ln_q).map(|ln_product| (after - before) * ln_product)
            }
            Start::MeanField => self.ln_balls_step(before, after, chains.balls()),
        }
    }

    fn ln_balls_step(&self, before: f64, after: f64, balls: &[Lanes]) -> Lanes {
        let mut sum = [0.0; LANES];
        let mut table = Vec::new();
        let priors = self.expected.iter().zip(self.urn.pseudo_counts());
        for (balls, (m, a)) in balls.iter().zip(priors) {
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
        sum
    }
}

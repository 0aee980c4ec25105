//! Chib-style estimation with an unbiased chain (Murray & Salakhutdinov 2009).

use rand::RngExt;

use super::chain::Chain;
use super::harmonic::ln_emission;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::math::{LogSum, ln_rising};
use crate::rng::Rng;
use crate::urn::{Balls, LocalUrn, Sweeper};

/// Sweeps that look for a probable state k*.
const SEARCH_SWEEPS: usize = 20;

/// ln Ẑ of `n_runs` independent runs over chains of `n_samples` states.
///
/// `Ẑ = γ(k*) / mean_s T(k* <- k^(s))`, T a Gibbs sweep. The chain runs both ways from a uniformly
/// drawn position, where the state is one reversed sweep away from k*: unbiased for any length.
/// Cost: samples x tokens x topics.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub fn ln_urn_sums(
    urn: &LocalUrn,
    n_runs: usize,
    n_samples: usize,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let mut kernel = Kernel::new(urn);
    let mut runs = Vec::with_capacity(n_runs);
    for _ in 0..n_runs {
        let mut chain = Chain::sequence(urn, rng);
        for _ in 0..SEARCH_SWEEPS {
            chain.sweep(rng);
        }
        let target = chain.topics().to_vec();
        let start = rng.random_range(0..n_samples);
        let mut middle = target.clone();
        kernel.sweep(&mut middle, Order::Backward, rng);
        let mut transitions = LogSum::default();
        transitions.push(kernel.ln_transition(&middle, &target));
        for (order, n_steps) in [(Order::Forward, n_samples - 1 - start), (Order::Backward, start)]
        {
            let mut state = middle.clone();
            for _ in 0..n_steps {
                if observer.stopped() {
                    return Err(Error::Stopped);
                }
                kernel.sweep(&mut state, order, rng);
                transitions.push(kernel.ln_transition(&state, &target));
            }
        }
        let ln_joint = ln_colours(urn.pseudo_counts(), chain.balls()) + ln_emission(urn, &target);
        runs.push(urn.ln_scale() + ln_joint - transitions.ln_mean());
    }
    Ok(runs)
}

/// Σ_k ln (a_k)_{n_k}: the colours' part of ln γ(k).
fn ln_colours(a: &[f64], balls: &Balls) -> f64 {
    a.iter().zip(balls.drawn()).map(|(&a, &n)| ln_rising(a, u64::from(n))).sum()
}

/// The order in which a sweep visits the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Forward,
    Backward,
}

/// Gibbs sweeps in both orders, and the probability of one.
struct Kernel<'a> {
    urn: &'a LocalUrn,
    /// Distinct word of each token.
    cells: Vec<usize>,
    sweeper: Sweeper,
    balls: Balls,
}

impl<'a> Kernel<'a> {
    fn new(urn: &'a LocalUrn) -> Self {
        let counts = urn.counts().iter().enumerate();
        Kernel {
            urn,
            cells: counts.flat_map(|(cell, &y)| std::iter::repeat_n(cell, y as usize)).collect(),
            sweeper: Sweeper::new(urn.n_topics()),
            balls: Balls::new(urn.pseudo_counts()),
        }
    }

    fn sweep(&mut self, topics: &mut [u16], order: Order, rng: &mut Rng) {
        self.balls.refill(topics);
        for step in 0..topics.len() {
            let token = if order == Order::Forward { step } else { topics.len() - 1 - step };
            self.balls.remove(usize::from(topics[token]));
            let q = self.urn.weights(self.cells[token]);
            let topic = self.sweeper.draw(self.balls.totals(), q, rng);
            self.balls.add(topic);
            topics[token] = topic as u16;
        }
    }

    /// ln of the probability that a forward sweep leads from one state to another.
    fn ln_transition(&mut self, from: &[u16], to: &[u16]) -> f64 {
        self.balls.refill(from);
        let mut ln_value = 0.0;
        for ((&cell, &old), &new) in self.cells.iter().zip(from).zip(to) {
            let (old, new) = (usize::from(old), usize::from(new));
            self.balls.remove(old);
            let q = self.urn.weights(cell);
            ln_value += (self.balls.totals()[new] * q[new] / self.balls.weigh(q)).ln();
            self.balls.add(new);
        }
        ln_value
    }
}

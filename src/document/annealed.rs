//! Annealed importance sampling over the weights' inverse temperature (Neal 2001).

use super::harmonic::ln_emission;
use crate::control::Observer;
use crate::error::{Error, Result};
use crate::rng::Rng;
use crate::urn::{Balls, LocalUrn, Sweeper};

/// ln Ẑ of `n_runs` independent chains through `n_temperatures` steps.
///
/// From the urn that knows of each word only which topics can produce it, to the urn itself:
/// `γ_β(k) = Π (a + n) q^β` for β = t²/T², one Gibbs sweep a temperature. The start is drawn in
/// sequence and weighted accordingly, (a_+)_N where every topic can produce every word. Unbiased.
/// Cost: temperatures x tokens x topics.
///
/// # Errors
/// [`Error::Stopped`] when the observer asks to stop.
pub fn ln_urn_sums(
    urn: &LocalUrn,
    n_runs: usize,
    n_temperatures: usize,
    rng: &mut Rng,
    observer: &impl Observer,
) -> Result<Vec<f64>> {
    let n_topics = urn.n_topics();
    let beta = |t: usize| (t as f64 / n_temperatures as f64).powi(2);
    let mut sweeper = Sweeper::new(n_topics);
    let mut balls = Balls::new(urn.pseudo_counts());
    let mut topics = vec![0u16; urn.n_tokens() as usize];
    let mut powers = vec![0.0; urn.n_distinct() * n_topics];
    let mut runs = vec![urn.ln_scale(); n_runs];
    for ln_value in &mut runs {
        raise(urn, &mut powers, |q| f64::from(u8::from(q > 0.0)));
        balls.refill(&[]);
        let mut next = topics.iter_mut();
        for (possible, &count) in powers.chunks_exact(n_topics).zip(urn.counts()) {
            for topic in next.by_ref().take(count as usize) {
                *ln_value += balls.weigh(possible).ln();
                let drawn = sweeper.draw(balls.totals(), possible, rng);
                balls.add(drawn);
                *topic = drawn as u16;
            }
        }
        for t in 1..=n_temperatures {
            if observer.stopped() {
                return Err(Error::Stopped);
            }
            *ln_value += (beta(t) - beta(t - 1)) * ln_emission(urn, &topics);
            if t < n_temperatures {
                raise(urn, &mut powers, |q| q.powf(beta(t)));
                let cells = powers.chunks_exact(n_topics).zip(urn.counts().iter().copied());
                sweeper.sweep(cells, &mut topics, &mut balls, rng);
            }
        }
    }
    Ok(runs)
}

/// Sets the weights of every distinct word to a function of the urn's.
fn raise(urn: &LocalUrn, powers: &mut [f64], power: impl Fn(f64) -> f64) {
    for (powers, (q, _)) in powers.chunks_exact_mut(urn.n_topics()).zip(urn.cells()) {
        powers.iter_mut().zip(q).for_each(|(to, &q)| *to = power(q));
    }
}

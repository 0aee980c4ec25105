//! Posterior mean and spread of the topic weights of a document under an urn.

use std::borrow::Cow;

use super::topic_model::TopicModel;
use crate::control::Observer;
use crate::counts::Document;
use crate::document::WeightMoments;
use crate::error::{Result, array_of};
use crate::estimate::unseen;
use crate::math::variance;
use crate::rng::{LANES, Rng};
use crate::urn::{Balls, LocalUrn, SweepOrder, Sweeper, TopicChains, UrnTarget};

/// Gibbs sweeps before the first that counts.
const BURN_IN: usize = 20;

/// Batches of sweeps, whose means tell the error of their mean.
const N_BATCHES: usize = 10;

/// Sets the means to those of the balls a + n over the posterior of the document's colours, with their
/// errors, and the deviations to the variances of the balls.
pub(super) fn average_balls(
    model: &TopicModel,
    document: Document<'_>,
    n_sweeps: usize,
    rng: &mut Rng,
    observer: &dyn Observer,
    moments: &mut WeightMoments<'_>,
) -> Result<()> {
    let a = model.pseudo_counts(document);
    // A word that no topic can produce says nothing about the topics.
    let possible = |word| model.urn().weights(word).iter().zip(a).any(|(&q, &a)| q * a > 0.0);
    let cells: Vec<_> = document.cells().filter(|&(word, _)| possible(word)).collect();
    let n_tokens: usize = cells.iter().map(|&(_, count)| count as usize).sum();
    if n_tokens == 0 {
        moments.means.copy_from_slice(a);
        return Ok(());
    }
    if model.bursts().is_some()
        && let Some(urn) = model.local_urn(document)
    {
        return average_bursty(&urn, n_sweeps, rng, observer, a, moments);
    }
    let weights = weights_of(model, &cells, document.exposure());
    let cells = || weights.iter().map(AsRef::as_ref).zip(cells.iter().map(|&(_, count)| count));
    let mut assignments = array_of("topics of a document", n_tokens, 0u16)?;
    let mut balls = Balls::new(a);
    let mut sweeper = Sweeper::new(a.len());
    let n_batches = N_BATCHES.min(n_sweeps);
    let mut batches = vec![0.0; n_batches * a.len()];
    sweeper.draw_all::<false>(cells(), &mut assignments, &mut balls, rng);
    for sweep in 0..BURN_IN + n_sweeps {
        observer.check_stop()?;
        sweeper.draw_all::<true>(cells(), &mut assignments, &mut balls, rng);
        if sweep >= BURN_IN {
            for (sum, x) in moments.means.iter_mut().zip(balls.totals()) {
                *sum += x / n_sweeps as f64;
            }
            let batch = (sweep - BURN_IN) * n_batches / n_sweeps;
            let batches = &mut batches[batch * a.len()..][..a.len()];
            for ((sum, part), &n) in moments.deviations.iter_mut().zip(batches).zip(balls.drawn()) {
                let n = f64::from(n);
                *sum += n * n / n_sweeps as f64;
                *part += n / n_sweeps as f64;
            }
        }
    }
    for (topic, a) in a.iter().enumerate() {
        let parts = batches.iter().skip(topic).step_by(balls.totals().len());
        let n = moments.means[topic] - a;
        moments.deviations[topic] = (moments.deviations[topic] - n * n).max(0.0);
        moments.errors[topic] = if cells().any(|(q, _)| q[topic] > 0.0) {
            error_of_sum(parts.copied(), n_sweeps)
        } else {
            0.0
        };
    }
    Ok(())
}

/// The same where topics are bursty, over chains in lockstep that have so many sweeps together. Topics that
/// cannot produce any of the words keep their prior, and topics that are one in the document share its
/// tokens by their pseudo-counts.
fn average_bursty(
    urn: &LocalUrn,
    n_sweeps: usize,
    rng: &mut Rng,
    observer: &dyn Observer,
    a: &[f64],
    moments: &mut WeightMoments<'_>,
) -> Result<()> {
    let target = UrnTarget::of(urn);
    let mut chains = TopicChains::sequence(urn, rng, observer)?;
    let n_kept = n_sweeps.div_ceil(LANES);
    let (mut sums, mut squares) = (vec![[0.0; LANES]; urn.n_topics()], vec![0.0; urn.n_topics()]);
    for sweep in 0..BURN_IN + n_kept {
        chains.sweep_words(None, target, SweepOrder::Forward, observer)?;
        if sweep >= BURN_IN {
            for ((sum, square), balls) in sums.iter_mut().zip(&mut squares).zip(chains.balls()) {
                for (sum, n) in sum.iter_mut().zip(balls.map(f64::from)) {
                    *sum += n;
                    *square += n * n;
                }
            }
        }
    }
    let n_states = (n_kept * LANES) as f64;
    moments.means.copy_from_slice(a);
    for (topic, a) in a.iter().enumerate() {
        let Some(place) = urn.place(topic as u32) else { continue };
        let (all, square) = (urn.pseudo_counts()[place], squares[place] / n_states);
        let (share, n) = (a / all, sums[place].iter().sum::<f64>() / n_states);
        // Given the tokens of all of them, those of one are beta-binomial.
        let within = share * (1.0 - share) * (all * n + square) / (all + 1.0);
        moments.means[topic] += share * n;
        moments.deviations[topic] = share * share * (square - n * n).max(0.0) + within;
        let parts = sums[place].iter().map(|sum| sum / n_states);
        moments.errors[topic] = share * error_of_sum(parts, n_kept * LANES);
    }
    Ok(())
}

/// Standard error of the sum of independent parts, or of what none of so many sweeps has seen.
fn error_of_sum(parts: impl Iterator<Item = f64>, n_sweeps: usize) -> f64 {
    let parts: Vec<f64> = parts.collect();
    if parts.iter().sum::<f64>() == 0.0 {
        return unseen(n_sweeps);
    }
    (parts.len() as f64 * variance(&parts)).sqrt()
}

/// The weights of a document's words, at its exposure.
fn weights_of<'a>(
    model: &'a TopicModel,
    cells: &[(u32, u32)],
    exposure: f64,
) -> Vec<Cow<'a, [f64]>> {
    let factors = model.topic_factors(exposure);
    let weights = |&(word, _): &(u32, u32)| {
        let weights = model.urn().weights(word);
        factors.as_ref().map_or(Cow::Borrowed(weights), |factors| {
            weights.iter().zip(factors).map(|(q, factor)| q * factor).collect()
        })
    };
    cells.iter().map(weights).collect()
}

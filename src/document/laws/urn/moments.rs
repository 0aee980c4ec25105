//! Posterior mean and spread of the topic weights of a document under an urn.

use std::borrow::Cow;

use super::topic_model::TopicModel;
use crate::control::Observer;
use crate::counts::Document;
use crate::error::{Result, array_of};
use crate::rng::{LANES, Rng};
use crate::urn::{Balls, LocalUrn, SweepOrder, Sweeper, TopicChains, UrnTarget};

/// Gibbs sweeps before the first that counts.
const BURN_IN: usize = 20;

/// Sets `mean` to the mean of the balls a + n over the posterior of the document's colours, and
/// `variance` to their variance.
pub(super) fn average_balls(
    model: &TopicModel,
    document: Document<'_>,
    n_sweeps: usize,
    rng: &mut Rng,
    observer: &impl Observer,
    mean: &mut [f64],
    variance: &mut [f64],
) -> Result<()> {
    let a = model.pseudo_counts(document);
    // A word that no topic can produce says nothing about the topics.
    let possible = |word| model.urn().weights(word).iter().zip(a).any(|(&q, &a)| q * a > 0.0);
    let cells: Vec<_> = document.cells().filter(|&(word, _)| possible(word)).collect();
    let n_tokens: usize = cells.iter().map(|&(_, count)| count as usize).sum();
    if n_tokens == 0 {
        mean.copy_from_slice(a);
        return Ok(());
    }
    if model.bursts().is_some()
        && let Some(urn) = model.local_urn(document)
    {
        return average_bursty(&urn, n_sweeps, rng, observer, a, mean, variance);
    }
    let weights = weights_of(model, &cells, document.exposure());
    let cells = || weights.iter().map(AsRef::as_ref).zip(cells.iter().map(|&(_, count)| count));
    let mut assignments = array_of("topics of a document", n_tokens, 0u16)?;
    let mut balls = Balls::new(a);
    let mut sweeper = Sweeper::new(a.len());
    sweeper.draw_all::<false>(cells(), &mut assignments, &mut balls, rng);
    for sweep in 0..BURN_IN + n_sweeps {
        observer.check_stop()?;
        sweeper.draw_all::<true>(cells(), &mut assignments, &mut balls, rng);
        if sweep >= BURN_IN {
            for (sum, x) in mean.iter_mut().zip(balls.totals()) {
                *sum += x / n_sweeps as f64;
            }
            for (sum, &n) in variance.iter_mut().zip(balls.drawn()) {
                *sum += f64::from(n).powi(2) / n_sweeps as f64;
            }
        }
    }
    for ((square, mean), a) in variance.iter_mut().zip(mean).zip(a) {
        *square = (*square - (*mean - a).powi(2)).max(0.0);
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
    observer: &impl Observer,
    a: &[f64],
    mean: &mut [f64],
    variance: &mut [f64],
) -> Result<()> {
    let target = UrnTarget::of(urn);
    let mut chains = TopicChains::sequence(urn, rng, observer)?;
    let n_kept = n_sweeps.div_ceil(LANES);
    let (mut sums, mut squares) = (vec![0.0; urn.n_topics()], vec![0.0; urn.n_topics()]);
    for sweep in 0..BURN_IN + n_kept {
        chains.sweep_words(None, target, SweepOrder::Forward, observer)?;
        if sweep >= BURN_IN {
            for ((sum, square), balls) in sums.iter_mut().zip(&mut squares).zip(chains.balls()) {
                for n in balls.map(f64::from) {
                    *sum += n;
                    *square += n * n;
                }
            }
        }
    }
    let n_states = (n_kept * LANES) as f64;
    for (topic, (mean, variance)) in mean.iter_mut().zip(variance).enumerate() {
        (*mean, *variance) = (a[topic], 0.0);
        if let Some(place) = urn.place(topic as u32) {
            let share = a[topic] / urn.pseudo_counts()[place];
            let n = sums[place] / n_states;
            *mean += share * n;
            // Given the tokens of all of them, those of one are beta-binomial; the part without them.
            *variance = share * share * (squares[place] / n_states - n * n).max(0.0);
        }
    }
    Ok(())
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

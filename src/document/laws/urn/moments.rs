//! Posterior mean and spread of the topic weights of a document under an urn.

use rand::RngExt;

use super::topic_model::TopicModel;
use crate::control::Observer;
use crate::counts::Document;
use crate::document::WeightMoments;
use crate::document::estimators::mean_field::{self, MeanField};
use crate::error::Result;
use crate::estimate::unseen;
use crate::math::{dirichlet, pick_lanes, variance};
use crate::rng::{LANES, Lanes, Rng, UniformLanes};
use crate::urn::{Counts, LEFT_OUT, LocalUrn, Shortlists, SweepOrder, TopicChains, UrnTarget};

// Numbers were chosen by hand, by errors of topic weights against long runs.

/// Rounds of the mean field from which chains start.
const FIRST_ITERATIONS: usize = 4;

/// Gibbs sweeps of a chain before the first that counts.
const BURN_IN: usize = 6;

/// Correlation of chains with their starts that is no sign of anything: that of unrelated ones exceeds it in
/// one of eleven.
const CHANCE: f64 = 0.35;

/// Share of a start that follows the mean field whatever is drawn: too small to matter elsewhere.
const NEGLIGIBLE: f64 = 1e-9;

/// One sweep of so many is over all topics where the likely topics of words are few.
const SWEEPS_PER_FULL: usize = 7;

/// Sets the means to those of the balls a + n over the posterior of the document's colours, with their
/// errors, and the deviations to the variances of the balls. Chains in lockstep take `n_sweeps` sweeps
/// between them after the burn-in. Topics that cannot produce any of the words keep their prior, and
/// topics that are one in the document share its tokens by their pseudo-counts.
pub(super) fn average_balls(
    model: &TopicModel,
    document: Document<'_>,
    n_sweeps: usize,
    rng: &mut Rng,
    observer: &dyn Observer,
    moments: &mut WeightMoments<'_>,
) -> Result<()> {
    let a = model.pseudo_counts(document);
    moments.means.copy_from_slice(a);
    // A word that no topic can produce says nothing about the topics.
    let rows: Vec<_> = (document.cells())
        .map(|(word, count)| (model.urn().weights(word), count))
        .filter(|(q, _)| q.iter().zip(a).any(|(&q, &a)| q * a > 0.0))
        .collect();
    let factors = model.topic_factors(document.exposure());
    let urn = LocalUrn::from_scaled_rows(a, &rows, factors.as_deref(), model.bursts());
    let Some(urn) = urn.filter(|urn| urn.n_tokens() > 0) else { return Ok(()) };
    let target = UrnTarget::of(&urn);
    let mean_field = MeanField::first_order(FIRST_ITERATIONS);
    let g = mean_field::responsibilities(&urn, mean_field, &observer)?;
    let base = mean_field::expected_balls(&urn, &g);
    let lists = Shortlists::of_tokens(&urn, &g, LEFT_OUT).if_short(&urn);
    let mut chains = TopicChains::new(&urn, rng)?;
    start(&mut chains, &urn, &base, rng, observer)?;
    let starts = chains.balls().to_vec();
    let n_kept = n_sweeps.div_ceil(LANES);
    let (mut sums, mut squares) = (vec![[0.0; LANES]; urn.n_topics()], vec![0.0; urn.n_topics()]);
    for sweep in 0..BURN_IN + n_kept {
        let lists = lists.as_ref().filter(|_| sweep % SWEEPS_PER_FULL > 0);
        chains.sweep_words(lists, target, SweepOrder::Forward, observer)?;
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
    for (topic, a) in a.iter().enumerate() {
        let Some(place) = urn.place(topic as u32) else { continue };
        let (all, square) = (urn.pseudo_counts()[place], squares[place] / n_states);
        let (share, n) = (a / all, sums[place].iter().sum::<f64>() / n_states);
        // Given the tokens of all of them, those of one are beta-binomial.
        let within = share * (1.0 - share) * (all * n + square) / (all + 1.0);
        moments.means[topic] += share * n;
        moments.deviations[topic] = share * share * (square - n * n).max(0.0) + within;
        let parts = sums[place].map(|sum| sum / n_states);
        moments.errors[topic] = share * error_of_sum(&parts, &starts[place], n_kept * LANES);
    }
    Ok(())
}

/// Puts the tokens of each chain into topics by weights that are its own: a draw of a Dirichlet distribution with
/// the mean of these balls, and as many as there are pseudo-counts. Starts thus differ as draws of the prior
/// do, and the spread of chains that remember them shows it.
fn start<U: UniformLanes>(
    chains: &mut TopicChains<U>,
    urn: &LocalUrn,
    base: &[f64],
    rng: &mut Rng,
    observer: &dyn Observer,
) -> Result<()> {
    let n_topics = base.len();
    let of_base = base.iter().sum::<f64>();
    let scale = urn.pseudo_counts().iter().sum::<f64>() / of_base;
    let shapes: Vec<f64> = base.iter().map(|balls| scale * balls).collect();
    let (mut weights, mut sums) = (vec![[0.0; LANES]; n_topics], vec![[0.0; LANES]; n_topics]);
    let mut drawn = vec![0.0; n_topics];
    for lane in 0..LANES {
        dirichlet(&shapes, &mut drawn, rng);
        for (topic, weights) in weights.iter_mut().enumerate() {
            // A word that none of the drawn topics can produce follows the balls.
            weights[lane] = drawn[topic] + NEGLIGIBLE * base[topic] / of_base;
        }
    }
    for (q, &n_tokens) in urn.all_weights().chunks_exact(n_topics).zip(urn.counts()) {
        observer.check_stop()?;
        let mut sum = [0.0; LANES];
        for (sums, (weights, q)) in sums.iter_mut().zip(weights.iter().zip(q)) {
            (0..LANES).for_each(|lane| sum[lane] += weights[lane] * q);
            *sums = sum;
        }
        for _ in 0..n_tokens {
            let uniforms = std::array::from_fn(|_| rng.random());
            chains.put(pick_lanes(&sums, uniforms).map(|topic| topic as u16));
        }
    }
    Ok(())
}

/// Standard error of the sum of parts, one a chain, or of what none of so many sweeps has seen. Where parts
/// follow the starts of their chains, all may be off by as much as they differ.
fn error_of_sum(parts: &Lanes, starts: &Counts, n_sweeps: usize) -> f64 {
    if parts.iter().sum::<f64>() == 0.0 {
        return unseen(n_sweeps);
    }
    let starts = starts.map(f64::from);
    let both: Lanes = std::array::from_fn(|lane| parts[lane] + starts[lane]);
    let [own, of_starts, of_both] = [parts, &starts, &both].map(|x| variance(x));
    let scale = 2.0 * (own * of_starts).sqrt();
    let correlation = if scale > 0.0 { (of_both - own - of_starts) / scale } else { 0.0 };
    let remembered = (correlation - CHANCE).max(0.0) / (1.0 - CHANCE);
    let n = LANES as f64;
    (own * (n + (n * remembered).powi(2))).sqrt()
}

//! Sweeps over large counts, and over documents of too many tokens for the tallies: a document draws its
//! topic weights, then splits the counts of its words.
//!
//! Given the weights, tokens are independent: those of a word in a document share one table of cumulative
//! weights, and none waits for another. The weights are θ up to a factor of the document, for
//! a token's urn (a_k + n_k) q_k is the mean of theirs: θ_k ~ Gamma(a_k + n_k), times q_k.

// Inlined into loops that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use rand_distr::Distribution as _;

use super::blocks::{DocumentBlock, Step, TopicWeights};
use super::cells::runs;
use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::Result;
use crate::math::gamma_law;
use crate::rng::Key;

// Values were chosen by hand, by sweeps of simulated cells with 8 to 32 topics: no bench compares others.

/// Tokens of a corpus from which counts are split. Smaller ones train in seconds either way.
const LEAST_TOKENS: u64 = 1 << 17;

/// Mean count of the cells that are not zero from which they are split.
const LEAST_COUNT: f64 = 3.0;

/// Topics for each of these counts at most, as a cell has a sum for each topic.
const TOPICS_PER_COUNT: f64 = 4.0;

/// Parts of the words, before each of which weights are drawn: where they are drawn once a sweep, chains
/// move less than without them.
const N_PARTS: usize = 4;

/// Sums that are compared side by side.
const LANES: usize = 8;

/// Neighbouring sums, which never lie across two cache lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([f64; LANES]);

/// Properties of a corpus that decide how its tokens are drawn.
#[derive(Debug, Clone, Copy)]
pub struct CorpusSizes {
    /// Tokens of the longest document.
    pub longest: u64,
    /// All tokens.
    pub n_tokens: u64,
    /// Cells that are not zero.
    pub n_cells: u64,
}

/// Whether the counts of a corpus are so large that it is faster to split them.
pub(super) fn are_large(
    CorpusSizes { n_tokens, n_cells, .. }: CorpusSizes,
    n_topics: usize,
) -> bool {
    let least_count = LEAST_COUNT.max(n_topics as f64 / TOPICS_PER_COUNT);
    n_tokens >= LEAST_TOKENS && n_tokens as f64 >= least_count * n_cells as f64
}

/// Draws the topics of the tokens of a block; returns their counts, documents x topics. `exposed` are the
/// documents where they have exposures.
pub(super) fn sweep(
    block: &mut DocumentBlock,
    exposed: Option<&CountMatrix>,
    step: Step<'_>,
    observer: &dyn Observer,
) -> Result<Vec<u32>> {
    let (first, n_documents) = (block.in_corpus().start, block.lengths().len());
    let (n_topics, n_words) = (step.urns.a.n_topics(), block.parts().0.len() - 1);
    let (mut counts, mut theta) = (vec![0; n_documents * n_topics], vec![]);
    shift(&mut counts, block.parts().1, block.topics(), n_topics, 1);
    let mut sums = vec![Line([f64::INFINITY; LANES]); n_documents * n_topics.div_ceil(LANES)];
    let (mut ends, mut q, mut uniforms) = (vec![0.0; n_documents], vec![0.0; n_topics], vec![]);
    for part in 0..N_PARTS {
        let key = step.key.unit(u64::MAX - 1).unit(part as u64);
        draw_weights((block, exposed), step.urns, &counts, key, &mut theta);
        for word in (part..n_words).step_by(N_PARTS) {
            observer.check_stop()?;
            let (urn, numbers) = (step.word(word), step.key.unit(word as u64).counter());
            q.iter_mut().enumerate().for_each(|(topic, q)| *q = urn.q(topic));
            let (documents, topics) = block.word_mut(word);
            shift(&mut counts, documents, topics, n_topics, u32::MAX);
            let mut rest = &mut *topics;
            for (repeat, run) in (0..).zip(runs(documents)) {
                if repeat == 0 {
                    accumulate((&theta, &q), run, &mut sums, &mut ends);
                }
                uniforms.resize(run.len(), 0.0);
                numbers.fill((first as u64) << 32 | repeat, run, &mut uniforms);
                let own = rest.split_off_mut(..run.len()).unwrap_or_default();
                draw((&sums, &ends), run, &uniforms, own);
            }
            shift(&mut counts, documents, topics, n_topics, 1);
        }
    }
    Ok(counts)
}

/// Adds `change` to the counts of these topics in their documents.
fn shift(counts: &mut [u32], documents: &[u32], topics: &[u16], n_topics: usize, change: u32) {
    for (&document, &topic) in documents.iter().zip(topics) {
        let n = &mut counts[document as usize * n_topics + usize::from(topic)];
        *n = n.wrapping_add(change);
    }
}

/// Draws the weights of all documents, given the counts of their topics.
fn draw_weights(
    (block, exposed): (&DocumentBlock, Option<&CountMatrix>),
    urns: TopicWeights<'_>,
    counts: &[u32],
    key: Key,
    theta: &mut Vec<f64>,
) {
    theta.clear();
    let documents = block.documents.clone().zip(block.in_corpus());
    for ((own_ix, doc_ix), counts) in documents.zip(counts.chunks_exact(urns.a.n_topics())) {
        let mut rng = key.unit(doc_ix as u64).rng();
        let shapes = counts.iter().zip(urns.a.row(doc_ix)).map(|(&n, a)| a + f64::from(n));
        let first = theta.len();
        theta.extend(shapes.map(|shape| gamma_law(shape).sample(&mut rng)));
        if let (Some(documents), Some(rates)) = (exposed, urns.rates) {
            let exposure = documents.document(own_ix).exposure();
            theta[first..]
                .iter_mut()
                .zip(rates)
                .for_each(|(theta, rate)| *theta /= rate + exposure);
        }
    }
}

/// Sums the weights of a word in some documents.
#[polyabayes_macros::vectorised]
fn accumulate(
    (theta, q): (&[f64], &[f64]),
    documents: &[u32],
    sums: &mut [Line],
    ends: &mut [f64],
) {
    let n_lines = q.len().div_ceil(LANES);
    for &document in documents {
        let document = document as usize;
        let (lines, mut total) = (&mut sums[document * n_lines..][..n_lines], 0.0);
        let parts = theta[document * q.len()..][..q.len()].chunks(LANES).zip(q.chunks(LANES));
        for (line, (theta, q)) in lines.iter_mut().zip(parts) {
            for (sum, (theta, q)) in line.0.iter_mut().zip(theta.iter().zip(q)) {
                total += theta * q;
                *sum = total;
            }
        }
        ends[document] = total.next_down();
    }
}

/// The topics at u; a token stays where it is if no weight is positive.
#[polyabayes_macros::vectorised(n_passed = n_passed_avx512)]
fn draw((sums, ends): (&[Line], &[f64]), documents: &[u32], uniforms: &[f64], topics: &mut [u16]) {
    let n_lines = sums.len() / ends.len();
    for ((&document, u), topic) in documents.iter().zip(uniforms).zip(topics) {
        let (lines, end) =
            (&sums[document as usize * n_lines..][..n_lines], ends[document as usize]);
        if end > 0.0 {
            let at = u * end;
            *topic = lines.iter().map(|line| n_passed(line, at)).sum::<u32>() as u16;
        }
    }
}

/// Sums that are not above a number.
#[inline(always)]
fn n_passed(line: &Line, at: f64) -> u32 {
    line.0.iter().map(|&sum| u32::from(sum <= at)).sum()
}

/// [`n_passed`] by a mask.
#[polyabayes_macros::avx512]
fn n_passed_avx512(line: &Line, at: f64) -> u32 {
    use std::arch::x86_64::{_CMP_LE_OQ, _mm512_cmp_pd_mask, _mm512_set1_pd, _mm512_setr_pd};
    let [a, b, c, d, e, f, g, h] = line.0;
    let sums = _mm512_setr_pd(a, b, c, d, e, f, g, h);
    u32::from(_mm512_cmp_pd_mask::<_CMP_LE_OQ>(sums, _mm512_set1_pd(at))).count_ones()
}

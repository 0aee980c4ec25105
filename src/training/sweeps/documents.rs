//! A pass over the documents one by one: by the blocked sampler, θ given the topics of all tokens, then
//! these given θ; and collapsed, where documents of different exposures have different urns.

use rand_distr::Distribution as _;
use rayon::prelude::*;

use super::blocks::{Block, Step};
use super::tables;
use crate::control::Observer;
use crate::counts::CountMatrix;
use crate::error::Result;
use crate::math::gamma_law;
use crate::rng::Rng;
use crate::urn::{Balls, Sweeper};

/// How a sweep draws the topics of a document's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// One after the other from the document's urn: the topic weights θ are integrated out.
    Collapsed,
    /// θ given the topics of all tokens, then all topics anew given θ.
    Blocked,
}

/// Draws all documents; where `tables` is set, returns the tables of each topic, summed.
pub(in crate::training) fn sweep(
    blocks: &mut [Block],
    counts: &CountMatrix,
    step: Step<'_>,
    scheme: Scheme,
    tables: bool,
    observer: &impl Observer,
) -> Result<Vec<u64>> {
    let n_topics = step.a.len();
    let of_block = |block: &mut Block| -> Result<Vec<u64>> {
        let mut worker = Worker::new(step.a);
        let mut topics = vec![0; block.n_tokens()];
        block.read_topics(&mut topics);
        let mut rest = &mut topics[..];
        for doc_ix in block.documents.clone() {
            observer.check_stop()?;
            let document = counts.document(doc_ix);
            let (own, after) = rest.split_at_mut(document.n_tokens() as usize);
            let mut rng = block.document_key(step.key, doc_ix).rng();
            let row = |word: u32| &step.weights[word as usize * n_topics..][..n_topics];
            let cells = || document.cells().map(|(word, n)| (row(word), n));
            worker.set_scale(step, document.exposure());
            match scheme {
                Scheme::Blocked => worker.draw(cells(), own, &mut rng),
                Scheme::Collapsed => worker.sweep(cells, own, &mut rng),
            }
            if tables {
                let drawn = worker.balls.drawn().iter().copied().enumerate();
                tables::seat(drawn, step.a, &mut rng, &mut worker.n_tables);
            }
            rest = after;
        }
        block.write_topics(&topics);
        Ok(worker.n_tables)
    };
    let tables = blocks.par_iter_mut().with_max_len(1).map(of_block);
    tables.try_reduce(|| vec![0; n_topics], |sum, other| Ok(tables::sum(sum, other)))
}

/// One block's buffers.
struct Worker {
    sweeper: Sweeper,
    balls: Balls,
    theta: Vec<f64>,
    /// Factors of the weights of each topic in the present document.
    scale: Vec<f64>,
    /// The weights of its words.
    weights: Vec<f64>,
    n_tables: Vec<u64>,
}

impl Worker {
    fn new(a: &[f64]) -> Self {
        Worker {
            sweeper: Sweeper::new(a.len()),
            balls: Balls::new(a),
            theta: vec![0.0; a.len()],
            scale: vec![0.0; a.len()],
            weights: Vec::new(),
            n_tables: vec![0; a.len()],
        }
    }

    /// The scale of every topic's weights at an exposure e: with θ_k ~ Gamma(a_k, rate x_k), tokens
    /// have e φ_k / (x_k + e), of which e is the same for all topics.
    fn set_scale(&mut self, step: Step<'_>, exposure: f64) {
        self.scale.copy_from_slice(step.scale);
        for (scale, rate) in self.scale.iter_mut().zip(step.rates.into_iter().flatten()) {
            *scale /= rate + exposure;
        }
    }

    /// Every token in turn given the others, θ integrated out.
    fn sweep<'q, I: Iterator<Item = (&'q [f64], u32)>>(
        &mut self,
        cells: impl Fn() -> I,
        topics: &mut [u16],
        rng: &mut Rng,
    ) {
        self.balls.refill(topics);
        self.weights.clear();
        for (q, _) in cells() {
            self.weights.extend(q.iter().zip(&self.scale).map(|(q, scale)| q * scale));
        }
        let rows = self.weights.chunks_exact(self.scale.len());
        let cells = rows.zip(cells().map(|(_, count)| count));
        self.sweeper.sweep(cells, topics, &mut self.balls, rng);
    }

    fn draw<'q>(
        &mut self,
        cells: impl Iterator<Item = (&'q [f64], u32)>,
        topics: &mut [u16],
        rng: &mut Rng,
    ) {
        self.balls.refill(topics);
        // θ_k ~ Gamma(a_k + n_k) in units that are in the scale of the weights: p_k, or 1/(x_k + e).
        let laws = self.balls.totals().iter().zip(&self.scale);
        for (theta, (&shape, scale)) in self.theta.iter_mut().zip(laws) {
            *theta = gamma_law(shape).sample(rng) * scale;
        }
        let mut rest = &mut *topics;
        for (q, count) in cells {
            let (tokens, after) = rest.split_at_mut(count as usize);
            self.sweeper.draw_each(&self.theta, q, tokens, rng);
            rest = after;
        }
        self.balls.refill(topics);
    }
}

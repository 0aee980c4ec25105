//! The blocked sampler's pass over documents: θ given the topics of all tokens, then these given θ.

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

/// Draws all documents; where `tables` is set, returns the tables of each topic, summed.
pub(super) fn sweep(
    blocks: &mut [Block],
    counts: &CountMatrix,
    step: Step<'_>,
    tables: bool,
    observer: &impl Observer,
) -> Result<Vec<u64>> {
    let n_topics = step.a.len();
    let of_block = |block: &mut Block| -> Result<Vec<u64>> {
        let mut worker = Worker::new(step.a);
        let mut topics = vec![0; block.n_tokens()];
        block.read_topics(counts, &mut topics);
        let mut rest = &mut topics[..];
        for doc_ix in block.documents.clone() {
            observer.check_stop()?;
            let document = counts.document(doc_ix);
            let (own, after) = rest.split_at_mut(document.n_tokens() as usize);
            let mut rng = step.key.unit(doc_ix as u64).rng();
            let row = |word: u32| &step.weights[word as usize * n_topics..][..n_topics];
            let cells = document.cells().map(|(word, n)| (row(word), n));
            worker.draw(cells, step.scale, own, &mut rng);
            if tables {
                let drawn = worker.balls.drawn().iter().copied().enumerate();
                tables::seat(drawn, step.a, &mut rng, &mut worker.n_tables);
            }
            rest = after;
        }
        block.write_topics(counts, &topics);
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
    n_tables: Vec<u64>,
}

impl Worker {
    fn new(a: &[f64]) -> Self {
        Worker {
            sweeper: Sweeper::new(a.len()),
            balls: Balls::new(a),
            theta: vec![0.0; a.len()],
            n_tables: vec![0; a.len()],
        }
    }

    fn draw<'q>(
        &mut self,
        cells: impl Iterator<Item = (&'q [f64], u32)>,
        scale: &[f64],
        topics: &mut [u16],
        rng: &mut Rng,
    ) {
        self.balls.refill(topics);
        // θ_k ~ Gamma(a_k + n_k), in units of p_k, which is in the scale of the weights.
        let laws = self.balls.totals().iter().zip(scale);
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

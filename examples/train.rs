//! LDA trained by Gibbs sampling, and two documents scored under it:
//! `cargo run --release --example train`.

use polyabayes::training::{LdaPrior, LdaSampler, Schedule, fit};
use polyabayes::{CountMatrix, Event, Query, Result, Settings, TopicModel, score};

const N_TOPICS: usize = 2;

fn main() -> Result<()> {
    // Documents about the first two words, and documents about the last two.
    let rows: Vec<Vec<i64>> =
        (0..40).map(|row| if row % 2 == 0 { vec![6, 4, 0, 0] } else { vec![0, 0, 5, 5] }).collect();
    let corpus = CountMatrix::from_dense(&rows)?;
    let prior = LdaPrior { alpha: vec![0.1; N_TOPICS], beta: 0.1, learned: false };
    let mut sampler = LdaSampler::new(&corpus, prior, 0)?;
    let schedule = Schedule { max_iter: 200, burn_in: 100, warm_up: 20, thin: 1 };
    let trained = fit(&mut sampler, schedule, None, schedule.max_iter, &())?.parameters;

    // The sampler keeps the topics of a word side by side, a model takes one topic after the other.
    let phi: Vec<f64> = (0..N_TOPICS)
        .flat_map(|topic| trained.phi.iter().skip(topic).step_by(N_TOPICS).copied())
        .collect();
    let model = TopicModel::lda(trained.alpha, &phi)?;
    let query = Query { event: Event::Sequence, given_length: true };
    let documents = CountMatrix::from_dense(&[vec![3, 2, 0, 0], vec![3, 0, 2, 0]])?;
    for found in score(&model, &documents, &Settings::new(query), 0, &())?.into_iter().flatten() {
        println!("{:.4} nats", found.estimate.ln_value);
    }
    Ok(())
}

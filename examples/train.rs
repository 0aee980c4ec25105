//! LDA trained by Gibbs sampling, and two documents scored under it:
//! `cargo run --release --example train`.

use polyabayes::training::{Chain, LdaGlobals, LdaPrior, MemoryTokens, Schedule, TopicStart};
use polyabayes::{CountMatrix, Event, Query, Result, Settings, TopicModel, score};

const N_TOPICS: usize = 2;

fn main() -> Result<()> {
    // Documents about the first two words, and documents about the last two.
    let rows: Vec<Vec<i64>> =
        (0..40).map(|row| if row % 2 == 0 { vec![6, 4, 0, 0] } else { vec![0, 0, 5, 5] }).collect();
    let corpus = CountMatrix::from_dense(&rows)?;
    let (n_words, alpha, beta, seed) = (corpus.n_words(), vec![0.1; N_TOPICS], 0.1, 0);
    let prior = LdaPrior { alpha: alpha.clone(), beta, learned: false };
    let globals = Box::new(LdaGlobals::new(n_words, prior, seed)?);
    let schedule = Schedule { max_iter: 200, burn_in: 100, warm_up: 20, thin: 1, seed };
    let start = TopicStart { n_words, alpha: alpha.clone(), beta, n_sweeps: 20, n_starts: 1 };
    let tokens = MemoryTokens::new(&corpus)?;
    let mut chain = Chain::new(globals, tokens, schedule, Some(&start), None, &())?;
    chain.run(schedule.max_iter, schedule.max_iter, &(), |_, _| ())?;

    let model = TopicModel::lda(alpha, &chain.mean(true)?.topics)?;
    let query = Query { event: Event::Sequence, given_length: true };
    let documents = CountMatrix::from_dense(&[vec![3, 2, 0, 0], vec![3, 0, 2, 0]])?;
    for found in score(&model, &documents, &Settings::new(query), 0, &())?.into_iter().flatten() {
        println!("{:.4} nats", found.estimate.ln_value);
    }
    Ok(())
}

//! Likelihood of documents under topics that are known: `cargo run --release --example score`.

use polyabayes::{CountMatrix, Event, Method, Query, Result, Settings, TopicModel, score};

fn main() -> Result<()> {
    // Two topics over four words; rows sum to 1.
    let phi = [0.5, 0.25, 0.125, 0.125, 0.1, 0.2, 0.3, 0.4];
    let model = TopicModel::lda(vec![0.1, 0.1], &phi)?;
    let documents = CountMatrix::from_dense(&[vec![1, 1, 1, 0], vec![30, 2, 0, 9]])?;
    let query = Query { event: Event::Sequence, given_length: true };
    let settings = Settings { method: Method::Auto, ..Settings::new(query) };
    // The last argument hears of progress and may stop the work; () does neither.
    for (document, found) in score(&model, &documents, &settings, 0, &())?.iter().enumerate() {
        let found = found.as_ref().expect("nobody stops the work");
        let (value, error) = (found.estimate.ln_value, found.estimate.std_error);
        println!("document {document}: {value:.6} +- {error:.1e} nats ({})", found.estimator.name);
    }
    Ok(())
}

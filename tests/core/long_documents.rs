//! Long documents: they are left soon when asked to.

use polyabayes::document::Sampler;
use polyabayes::document::estimators::mean_field::UpdateRule;
use polyabayes::document::{Conditionals, Form, MeanField, Start};
use polyabayes::{CountMatrix, Event, Method, Query, Settings, TopicModel, score};

use crate::common::looks::Looks;

const QUERY: Query = Query { event: Event::Sequence, given_length: true };

/// Looks before the wish to stop.
const PATIENCE: usize = 3;

/// Looks of work that has been asked to stop: each of its replicates may look once more, and find out.
const MOST_LOOKS: usize = 16;

/// Three topics that two words tell apart.
fn model() -> TopicModel {
    TopicModel::lda(vec![0.5, 0.3, 0.2], &[0.5, 0.5, 0.2, 0.8, 0.1, 0.9]).unwrap()
}

fn document(count: i64) -> CountMatrix {
    CountMatrix::from_dense(&[vec![count, count]]).unwrap()
}

const SAMPLERS: [Sampler; 11] = [
    Sampler::Direct,
    Sampler::Harmonic,
    Sampler::MeanField(MeanField { order: UpdateRule::First, n_iterations: 20 }),
    Sampler::LeftToRight(Form::MeanOfProducts),
    Sampler::LeftToRight(Form::ProductOfMeans),
    Sampler::LeftToRight(Form::Sequential),
    Sampler::L2r(Conditionals::Exact),
    Sampler::Smc,
    Sampler::SmcLookahead,
    Sampler::Annealed(Some(Start::MeanField)),
    Sampler::Chib,
];

/// A stop is seen where it is asked for, between a few of the looks; what is between two looks is
/// short, as none of these documents would otherwise come to an end.
#[test]
fn long_documents_stop_at_the_next_looks_after_they_are_asked_to() {
    let methods = SAMPLERS.into_iter().map(Method::Sample).chain([Method::Auto]);
    for method in methods {
        // Word by word costs the square of a count.
        let squares = matches!(method, Method::Sample(Sampler::L2r(_)));
        let count = if squares { 100_000 } else { 4_000_000 };
        let budget = Some(1e300);
        let n_particles = (method != Method::Auto).then_some(2);
        let n_samples = Some(1 << 20);
        let settings = Settings { method, budget, n_samples, n_particles, ..Settings::new(QUERY) };
        let observer = Looks::stopping_after(PATIENCE);
        let found = score(&model(), &document(count), &settings, 0, &observer).unwrap();
        assert!(found[0].is_none(), "{method:?}: {found:?}");
        let looks = observer.count() - PATIENCE;
        assert!((1..=MOST_LOOKS).contains(&looks), "{method:?}: {looks}");
    }
}

#[test]
fn filters_of_many_particles_look_for_a_stop_within_a_step() {
    let n_particles = 1 << 17;
    for sampler in [Sampler::Smc, Sampler::SmcLookahead] {
        let settings = Settings {
            method: Method::Sample(sampler),
            budget: Some(1e300),
            n_particles: Some(n_particles),
            n_samples: Some(1),
            ..Settings::new(QUERY)
        };
        let looks = Looks::stopping_after(usize::MAX);
        score(&model(), &document(1), &settings, 0, &looks).unwrap();
        // Two tokens, each weighed and drawn.
        let looks = looks.count();
        assert!(looks >= 4 * (n_particles >> 12), "{sampler:?}: {looks}");
    }
}

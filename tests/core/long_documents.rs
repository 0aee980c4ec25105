//! Long documents: priced before any work, and left soon when asked to.

use std::time::{Duration, Instant};

use polyabayes::document::Sampler;
use polyabayes::document::{Conditionals, Form, MeanField, Start};
use polyabayes::{CountMatrix, Error, Event, Method, Observer, Query, Settings, TopicModel, score};

use crate::common::looks::Looks;

const QUERY: Query = Query { event: Event::Sequence, given_length: true };

/// Asks to stop some time after it was made.
struct Timer(Instant);

const PATIENCE: Duration = Duration::from_millis(100);

/// A part of the work without a stop; a second where no other test shares the processors, as
/// `benches/interruption.py` prints.
const SOON: Duration = Duration::from_secs(5);

impl Observer for Timer {
    fn stopped(&self) -> bool {
        self.0.elapsed() > PATIENCE
    }
}

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
    Sampler::MeanField(MeanField {
        order: polyabayes::document::estimators::mean_field::UpdateRule::First,
        n_iterations: 20,
    }),
    Sampler::LeftToRight(Form::MeanOfProducts),
    Sampler::LeftToRight(Form::ProductOfMeans),
    Sampler::LeftToRight(Form::Sequential),
    Sampler::L2r(Conditionals::Exact),
    Sampler::Smc,
    Sampler::SmcLookahead,
    Sampler::Annealed(Some(Start::MeanField)),
    Sampler::Chib,
];

#[test]
fn documents_of_billions_of_tokens_are_refused_before_any_work() {
    // These take the tokens of a word at once.
    let at_once = |sampler| matches!(sampler, Sampler::Direct | Sampler::MeanField(_));
    let methods = SAMPLERS.into_iter().filter(|&sampler| !at_once(sampler));
    let methods = methods.map(Method::Sample).chain([Method::Auto, Method::Exact]);
    for method in methods {
        let settings = Settings { method, ..Settings::new(QUERY) };
        let found = score(&model(), &document(4_294_967_295), &settings, 0, &());
        let refused = matches!(
            found,
            Err(Error::Budget { .. }
                | Error::SamplingBudget { .. }
                | Error::Memory { .. }
                | Error::TooManyParticles { .. })
        );
        assert!(refused, "{method:?}: {found:?}");
    }
}

#[test]
fn long_documents_stop_soon_after_they_are_asked_to() {
    let methods = SAMPLERS.into_iter().map(Method::Sample).chain([Method::Auto, Method::Recursive]);
    for method in methods {
        // Word by word costs the square of a count.
        let squares = matches!(method, Method::Sample(Sampler::L2r(_)));
        let count = if squares { 100_000 } else { 4_000_000 };
        let budget = Some(1e300);
        let n_particles = (method != Method::Auto).then_some(2);
        let n_samples = Some(1 << 20);
        let settings = Settings { method, budget, n_samples, n_particles, ..Settings::new(QUERY) };
        let start = Instant::now();
        let found = score(&model(), &document(count), &settings, 0, &Timer(start)).unwrap();
        let late = start.elapsed().saturating_sub(PATIENCE);
        assert!(late < SOON, "{method:?}: {late:?}");
        if method != Method::Recursive {
            assert!(found[0].is_none(), "{method:?}: {found:?}");
        }
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
        let looks = Looks::default();
        score(&model(), &document(1), &settings, 0, &looks).unwrap();
        // Two tokens, each weighed and drawn.
        let looks = looks.0.into_inner();
        assert!(looks >= 4 * (n_particles >> 12), "{sampler:?}: {looks}");
    }
}

#[test]
fn many_tokens_of_topics_that_cannot_be_told_apart_are_exact() {
    for a in [0.1, 1.0] {
        let model = TopicModel::lda(vec![a; 3], &[1.0; 3]).unwrap();
        let documents = CountMatrix::from_dense(&[vec![4_294_967_295]]).unwrap();
        let scores = score(&model, &documents, &Settings::new(QUERY), 0, &()).unwrap();
        let score = scores[0].as_ref().unwrap();
        assert_eq!(score.estimator.name, "exact");
        assert!(score.estimate.ln_value.abs() < 1e-4, "{score:?}");
    }
}

//! Documents of known sizes: against the models whose odds p/(1-p) are multiplied by the exposure.

use polyabayes::document::Draws;
use polyabayes::document::estimators::mean_field::UpdateRule;
use polyabayes::{
    Conditionals, CountMatrix, Error, Event, Form, MeanField, Method, Moments, Query, Sampler,
    Score, Settings, Start, TopicModel, bidirectional, completion, score, transform,
};

const R: [f64; 3] = [0.7, 1.3, 0.2];
const P: [f64; 3] = [0.6, 0.25, 0.9];
const PHI: [[f64; 4]; 3] = [[0.5, 0.3, 0.2, 0.0], [0.1, 0.2, 0.7, 0.4], [0.2, 1.1, 0.3, 0.1]];
const COUNTS: Query = Query { event: Event::Counts, given_length: false };

fn gamma_poisson(p: &[f64]) -> TopicModel {
    TopicModel::gamma_poisson(R.to_vec(), p, &PHI.concat()).unwrap()
}

fn model() -> TopicModel {
    gamma_poisson(&P)
}

/// The model in which the exposure is part of the scale of θ.
fn scaled_model(exposure: f64) -> TopicModel {
    gamma_poisson(&P.map(|p| exposure * p / (1.0 - p + exposure * p)))
}

fn documents(rows: &[&[i64]], exposures: &[f64]) -> CountMatrix {
    let rows: Vec<Vec<i64>> = rows.iter().map(|row| row.to_vec()).collect();
    CountMatrix::from_dense(&rows).unwrap().with_exposures(exposures.to_vec()).unwrap()
}

fn values(scores: &[Option<Score>]) -> Vec<f64> {
    scores.iter().map(|score| score.as_ref().unwrap().estimate.ln_value).collect()
}

fn scored(model: &TopicModel, documents: &CountMatrix, query: Query) -> Vec<f64> {
    let settings = Settings { method: Method::Exact, ..Settings::new(query) };
    values(&score(model, documents, &settings, 0, &()).unwrap())
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-12 * expected.abs().max(1.0)
}

#[test]
fn completions_keep_the_exposure_of_their_documents() {
    let settings = Settings { method: Method::Exact, ..Settings::new(COUNTS) };
    for exposure in [0.2, 30.0] {
        let observed: &[i64] = &[2, 0, 1, 3];
        let held_out: &[i64] = &[0, 1, 1, 0];
        let exposed = |row| documents(&[row], &[exposure]);
        let plain = |row| documents(&[row], &[1.0]);
        let found = completion(&model(), &exposed(observed), &exposed(held_out), &settings, 0, &());
        let scaled = scaled_model(exposure);
        let expected = completion(&scaled, &plain(observed), &plain(held_out), &settings, 0, &());
        let (found, expected) = (values(&found.unwrap())[0], values(&expected.unwrap())[0]);
        assert!(close(found, expected), "{exposure}: {found} {expected}");
        let unlike = completion(&model(), &exposed(observed), &plain(held_out), &settings, 0, &());
        assert!(matches!(unlike, Err(Error::Parameter { name: "exposure", .. })), "{unlike:?}");
    }
}

#[test]
fn every_estimator_has_the_value_of_the_scaled_model() {
    let mean_field = MeanField { order: UpdateRule::First, n_iterations: 20 };
    let exposures = [0.1, 7.0, 3.0];
    let rows: [&[i64]; 3] = [&[5, 2, 4, 3], &[5, 2, 4, 3], &[1, 9, 0, 2]];
    let exposed = documents(&rows, &exposures);
    let exact = scored(&model(), &exposed, COUNTS);
    assert!((exact[0] - exact[1]).abs() > 1.0, "{exact:?}");
    for (method, size) in [
        (Method::Recursive, 1),
        (Method::Sample(Sampler::Direct), 20_000),
        (Method::Sample(Sampler::Harmonic), 2_000),
        (Method::Sample(Sampler::MeanField(mean_field)), 2_000),
        (Method::Sample(Sampler::LeftToRight(Form::MeanOfProducts)), 200),
        (Method::Sample(Sampler::LeftToRight(Form::ProductOfMeans)), 200),
        (Method::Sample(Sampler::LeftToRight(Form::Sequential)), 500),
        (Method::Sample(Sampler::L2r(Conditionals::Exact)), 200),
        (Method::Sample(Sampler::L2r(Conditionals::Sampled(3))), 200),
        (Method::Sample(Sampler::Smc), 500),
        (Method::Sample(Sampler::SmcLookahead), 500),
        (Method::Sample(Sampler::Annealed(Some(Start::Prior))), 500),
        (Method::Sample(Sampler::Annealed(Some(Start::MeanField))), 500),
        (Method::Sample(Sampler::Chib), 200),
    ] {
        let sizes =
            Settings { n_samples: Some(size), n_particles: Some(size), ..Settings::new(COUNTS) };
        let settings = Settings { method, ..sizes };
        let found = score(&model(), &exposed, &settings, 3, &()).unwrap();
        for ((row, exposure), found) in rows.iter().zip(exposures).zip(found.into_iter().flatten())
        {
            let documents = documents(&[row], &[1.0]);
            let scaled = score(&scaled_model(exposure), &documents, &settings, 3, &()).unwrap();
            let (found, scaled) = (found.estimate, scaled[0].as_ref().unwrap().estimate);
            let off = (found.ln_value - scaled.ln_value).abs();
            let error = found.std_error.hypot(scaled.std_error);
            // The recursion claims no error, and has the same bits but for rounding.
            let slack = if method == Method::Recursive { 1e-12 } else { 4.0 * error.min(0.4) };
            assert!(off < slack, "{method:?} {exposure}: {found:?} {scaled:?}");
        }
    }
}

#[test]
fn both_bounds_are_near_the_exact_value() {
    let documents = documents(&[&[1, 0, 2, 1]], &[5.0]);
    let exact = scored(&model(), &documents, COUNTS)[0];
    let settings = Settings {
        method: Method::Sample(Sampler::Annealed(Some(Start::MeanField))),
        n_samples: Some(500),
        ..Settings::new(COUNTS)
    };
    // The topics in proportion to the posterior: the path with them is a draw of it nearly.
    let draws = Draws::Topics(&[0, 1, 1, 1]);
    let found = bidirectional(&model(), &documents, draws, &settings, 1, &()).unwrap();
    let bounds = found[0].unwrap();
    for side in [bounds.lower, bounds.upper] {
        assert!((side.ln_value - exact).abs() < 0.2, "{bounds:?} {exact}");
    }
}

#[test]
fn topic_weights_are_rates_at_exposure_one() {
    let row: &[i64] = &[2, 0, 1, 3];
    for exposure in [0.05, 20.0] {
        let weights = |model, exposure| {
            transform(&model, &documents(&[row], &[exposure]), Moments::Mean, 40_000, 0, &())
                .unwrap()
        };
        let (found, scaled) = (weights(model(), exposure), weights(scaled_model(exposure), 1.0));
        for (found, scaled) in found.iter().zip(scaled) {
            assert!((exposure * found / scaled - 1.0).abs() < 0.02, "{exposure}: {found} {scaled}");
        }
    }
}

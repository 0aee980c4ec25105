//! Estimators against exact values: unbiased, with errors that can be trusted, the same bits.

use crate::common;
use polyabayes::document::estimators::mean_field::UpdateRule;
use polyabayes::document::{Conditionals, MeanField, Start, estimators::smc};
use polyabayes::math::mean_and_error;
use polyabayes::rng::{Key, Purpose};
use polyabayes::urn::LocalUrn;
use polyabayes::{Event, Form, Method, Query, Sampler, Settings, score};

const FIRST_ORDER: Sampler =
    Sampler::MeanField(MeanField { order: UpdateRule::First, n_iterations: 20 });

const QUERY: Query = Query { event: Event::Sequence, given_length: true };

fn settings(method: Method) -> Settings {
    Settings { method, ..Settings::new(QUERY) }
}

fn sampling(sampler: Sampler) -> Settings {
    settings(Method::Sample(sampler))
}

/// (mean of p̂/p - 1) in standard errors, over `n_runs` runs on each case of some size.
fn bias_in_errors(sampler: Sampler, size: usize, n_runs: u64) -> f64 {
    let mut ratios = Vec::new();
    for case in common::cases() {
        let document = case.documents.document(0);
        if !(3..=60).contains(&document.n_tokens()) || case.model.urn().n_topics() < 2 {
            continue;
        }
        let exact = score(&case.model, &case.documents, &settings(Method::Exact), 0, &()).unwrap();
        let exact = exact[0].as_ref().unwrap().estimate.ln_value;
        let settings = Settings {
            n_particles: Some(size),
            n_samples: Some(size),
            n_replicates: 2,
            ..sampling(sampler)
        };
        // The mean over one case counts once, so that no case outweighs the others.
        let mean: f64 = (0..n_runs)
            .map(|seed| {
                let scores = score(&case.model, &case.documents, &settings, seed, &()).unwrap();
                (scores[0].as_ref().unwrap().estimate.ln_value - exact).exp() / n_runs as f64
            })
            .sum();
        ratios.push(mean);
    }
    assert!(ratios.len() > 25, "{}", ratios.len());
    let (mean, error) = mean_and_error(&ratios);
    (mean - 1.0) / error
}

#[test]
fn samplers_that_say_so_are_unbiased_at_any_size() {
    for (sampler, size, n_runs) in [
        (Sampler::Smc, 2, 1_000),
        (Sampler::Smc, 8, 1_000),
        (Sampler::SmcLookahead, 1, 1_000),
        (Sampler::SmcLookahead, 8, 1_000),
        (Sampler::Direct, 200, 300),
        (FIRST_ORDER, 20, 500),
        (Sampler::LeftToRight(Form::MeanOfProducts), 1, 300),
        (Sampler::LeftToRight(Form::MeanOfProducts), 4, 100),
        (Sampler::L2r(Conditionals::Exact), 1, 300),
        (Sampler::L2r(Conditionals::Exact), 4, 100),
        (Sampler::Annealed(Some(Start::Prior)), 20, 300),
        (Sampler::Annealed(Some(Start::MeanField)), 3, 300),
        // So many temperatures that most sweeps are within lists.
        (Sampler::Annealed(Some(Start::MeanField)), 160, 40),
        (Sampler::Chib, 1, 300),
        (Sampler::Chib, 20, 100),
    ] {
        assert!(sampler.estimator().is_unbiased);
        let bias = bias_in_errors(sampler, size, n_runs);
        assert!(bias.abs() < 3.0, "{sampler:?} of {size}: {bias} standard errors");
    }
}

/// Mean over the cases of ln p̂ - ln p, of one run of many replicates each.
fn mean_log_error(method: Method, size: usize) -> f64 {
    let errors: Vec<f64> = common::cases()
        .iter()
        .filter(|case| (8..=60).contains(&case.documents.n_tokens()))
        .map(|case| {
            let exact = settings(Method::Exact);
            let sampled = Settings {
                n_particles: Some(size),
                n_samples: Some(size),
                n_replicates: 400,
                ..settings(method)
            };
            let [exact, found] = [exact, sampled].map(|settings| {
                let scores = score(&case.model, &case.documents, &settings, 3, &()).unwrap();
                scores[0].as_ref().unwrap().estimate.ln_value
            });
            found - exact
        })
        .collect();
    errors.iter().sum::<f64>() / errors.len() as f64
}

#[test]
fn biased_forms_are_wrong_as_the_literature_has_them() {
    // The product of means stays low, however many replicates are averaged.
    let particle = Sampler::LeftToRight(Form::ProductOfMeans);
    let unbiased = Sampler::LeftToRight(Form::MeanOfProducts);
    let low = mean_log_error(Method::Sample(particle), 20);
    let right = mean_log_error(Method::Sample(unbiased), 20);
    assert!(low.abs() > 5.0 * right.abs(), "particle {low}, mean of products {right}");
    // One chain is nearly unbiased already with a few sweeps a position.
    let sequential = Sampler::LeftToRight(Form::Sequential);
    assert!(mean_log_error(Method::Sample(sequential), 5).abs() < 0.05);
    // The harmonic mean overestimates.
    assert!(mean_log_error(Method::Sample(Sampler::Harmonic), 20) > 0.05);
    // The recursion is off by a tenth of a nat and more, but not by ten.
    let recursive = mean_log_error(Method::Recursive, 1);
    assert!((0.01..5.0).contains(&recursive.abs()), "{recursive}");
    for sampler in [particle, sequential, Sampler::Harmonic] {
        assert!(!sampler.estimator().is_unbiased);
    }
}

/// Share of 95 % intervals that hold the exact value: K = 5, 40 tokens.
fn coverage(settings: &Settings, n_documents: usize) -> f64 {
    let (model, documents) = common::simulated(5, 500, 0.1, 40, n_documents, 4);
    let exact = Settings { method: Method::Exact, budget: Some(1e10), ..*settings };
    let exact = score(&model, &documents, &exact, 0, &()).unwrap();
    let found = score(&model, &documents, settings, 1, &()).unwrap();
    let covered = exact.iter().zip(&found).filter(|(exact, found)| {
        let (exact, found) = (exact.as_ref().unwrap().estimate, found.as_ref().unwrap().estimate);
        assert_eq!(found.n_replicates, 16);
        // 2.131: the 97.5 % quantile of Student's t with 15 degrees of freedom.
        (found.ln_value - exact.ln_value).abs() <= 2.131 * found.std_error
    });
    covered.count() as f64 / n_documents as f64
}

#[test]
#[ignore = "takes minutes: make test-slow"]
fn intervals_of_every_method_cover_the_exact_value() {
    let of_size = |sampler, size| Settings { n_particles: Some(size), ..sampling(sampler) };
    for settings in [
        sampling(Sampler::Annealed(Some(Start::MeanField))),
        sampling(Sampler::SmcLookahead),
        of_size(Sampler::SmcLookahead, 20),
        sampling(Sampler::Smc),
        sampling(Sampler::Chib),
        sampling(Sampler::Direct),
        of_size(Sampler::LeftToRight(Form::MeanOfProducts), 20),
        of_size(Sampler::LeftToRight(Form::Sequential), 20),
        of_size(Sampler::L2r(Conditionals::Exact), 20),
        of_size(Sampler::L2r(Conditionals::Sampled(10)), 20),
    ] {
        let coverage = coverage(&settings, 1_000);
        assert!((0.92..=0.98).contains(&coverage), "{:?}: {coverage}", settings.method);
    }
}

#[test]
fn looking_ahead_cuts_the_error_to_a_quarter() {
    let (model, documents) = common::simulated(50, 1_000, 0.1, 100, 40, 5);
    let rms = |lookahead: bool| {
        let squares = documents.documents().enumerate().map(|(row, document)| {
            let urn = LocalUrn::new(model.urn(), document).unwrap();
            let mut rng = Key::new(1, Purpose::Score).unit(row as u64).rng();
            // 8 runs of 1,000 particles with lookahead: an error near 0.03 nats.
            let truth = smc::ln_urn_sums(&urn, true, 8, 1_000, &mut rng, &()).unwrap();
            let truth = polyabayes::Estimate::from_replicates(&truth, 8_000).ln_value;
            let runs = smc::ln_urn_sums(&urn, lookahead, 8, 20, &mut rng, &()).unwrap();
            runs.iter().map(|run| (run - truth).powi(2)).sum::<f64>() / 8.0
        });
        (squares.sum::<f64>() / documents.n_documents() as f64).sqrt()
    };
    let (plain, ahead) = (rms(false), rms(true));
    assert!(ahead < plain / 4.0, "smc {plain}, smc-lookahead {ahead}");
}

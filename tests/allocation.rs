//! The allocation model against exact values and against its own identities.

use polyabayes::allocation::{
    Algorithm, Ascent, Filter, Limits, Network, Prior, Problem, TokenOrder, ascend, ln_probability,
};
use polyabayes::counts::CountTensor;
use polyabayes::math::Resampling;
use serde_json::Value;

struct Case {
    name: String,
    network: Network,
    data: CountTensor,
    rate: f64,
    ln_evidence: f64,
}

fn integers(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as usize).collect()
}

fn tensor(shape: Vec<usize>, cells: &Value) -> CountTensor {
    let mut sorted: Vec<(Vec<i64>, i64)> = (cells.as_array().unwrap().iter())
        .map(|cell| {
            let index = integers(&cell[0]).into_iter().map(|i| i as i64).collect();
            (index, cell[1].as_i64().unwrap())
        })
        .filter(|(_, count)| *count > 0)
        .collect();
    sorted.sort();
    let coordinates: Vec<i64> = sorted.iter().flat_map(|(index, _)| index.clone()).collect();
    let counts: Vec<i64> = sorted.iter().map(|(_, count)| *count).collect();
    CountTensor::new(shape, &coordinates, &counts).unwrap()
}

fn read(file: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/");
    let text = std::fs::read_to_string(format!("{path}{file}")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn lists(value: &Value) -> Vec<Vec<usize>> {
    value.as_array().unwrap().iter().map(integers).collect()
}

fn case(value: &Value) -> Case {
    let sizes = integers(&value["sizes"]);
    let visible = integers(&value["visible"]);
    let shape = visible.iter().map(|&node| sizes[node]).collect();
    let [parents, ties] = ["parents", "ties"].map(|key| lists(&value[key]));
    let tables = value["tables"].as_array();
    let tables = tables.map(|tables| tables.iter().map(|x| x.as_f64().unwrap()).collect());
    let prior = Prior { concentration: value["concentration"].as_f64().unwrap(), tables };
    Case {
        name: value["name"].as_str().unwrap().to_owned(),
        network: Network::new(sizes, parents, visible, &ties, prior).unwrap(),
        data: tensor(shape, &value["cells"]),
        rate: value["rate"].as_f64().unwrap(),
        ln_evidence: value["log_evidence"].as_f64().unwrap(),
    }
}

fn cases() -> Vec<Case> {
    read("allocation.json").iter().map(case).collect()
}

const EXACT: Algorithm = Algorithm::Exact { budget: 1e8 };

fn ln_evidence(case: &Case, algorithm: &Algorithm, n_replicates: usize, seed: u64) -> (f64, f64) {
    let problem = Problem::new(&case.network, &case.data, None).unwrap();
    let estimate = ln_probability(&problem, algorithm, n_replicates, seed, &()).unwrap();
    (estimate.ln_value + problem.ln_total(case.rate), estimate.std_error)
}

#[test]
fn enumeration_gives_the_exact_values() {
    for case in cases() {
        let (ln_value, _) = ln_evidence(&case, &EXACT, 2, 0);
        assert!((ln_value - case.ln_evidence).abs() < 1e-11, "{}: {ln_value}", case.name);
    }
}

#[test]
fn samplers_agree_with_the_exact_values() {
    let filter = |threshold, resampling, order| {
        Algorithm::Filter(Filter { n_particles: 16, threshold, resampling, order })
    };
    let samplers = [
        filter(0.0, Resampling::Systematic, TokenOrder::Random),
        filter(0.5, Resampling::Systematic, TokenOrder::Random),
        filter(0.9, Resampling::Residual, TokenOrder::Sorted),
        filter(f64::INFINITY, Resampling::Multinomial, TokenOrder::Random),
        filter(f64::INFINITY, Resampling::Stratified, TokenOrder::Sorted),
        Algorithm::Annealed { n_chains: 16, n_temperatures: 10 },
    ];
    for case in cases() {
        for sampler in &samplers {
            let (ln_value, error) = ln_evidence(&case, sampler, 400, 3);
            let off = (ln_value - case.ln_evidence).abs();
            assert!(off < 4.0 * error + 1e-12, "{} {sampler:?}: {off} {error}", case.name);
            assert!(error < 0.1, "{} {sampler:?}: {error}", case.name);
        }
    }
}

/// The matrix X2 of Figure 9 of the allocation-model paper.
fn toy() -> CountTensor {
    CountTensor::new(vec![3, 3], &[0, 0, 0, 1, 1, 2, 2, 2], &[4, 3, 3, 3]).unwrap()
}

/// word <- topic -> doc
fn nmf(shape: &[usize], rank: usize, concentration: f64) -> Network {
    let sizes = vec![shape[0], shape[1], rank];
    let prior = Prior { concentration, tables: None };
    Network::new(sizes, vec![vec![2], vec![2], vec![]], vec![0, 1], &[], prior).unwrap()
}

const LIMITS: Limits = Limits { max_iter: 2_000, tolerance: 0.0, n_restarts: 50 };

#[test]
fn the_best_bound_of_many_restarts_is_the_published_one() {
    let network = nmf(&[3, 3], 2, 1.0);
    let limits = Limits { n_restarts: 200, tolerance: 1e-13, ..LIMITS };
    let found = ascend(&network, &toy(), None, Ascent::Variational, limits, 1, &()).unwrap();
    let problem = Problem::new(&network, &toy(), None).unwrap();
    let bound = found.trace.last().unwrap() + problem.ln_total(1.0 / 13.0);
    assert!((bound - -17.978_615_58).abs() < 1e-8, "{bound}");
}

#[test]
fn coordinate_ascent_never_descends() {
    for case in cases() {
        for ascent in [Ascent::Variational, Ascent::Em, Ascent::DualEm, Ascent::Icm] {
            let limits = Limits { max_iter: 60, tolerance: -1.0, n_restarts: 3 };
            let result = ascend(&case.network, &case.data, None, ascent, limits, 5, &());
            let Ok(found) = result else {
                assert!(matches!(ascent, Ascent::DualEm | Ascent::Icm), "{}", case.name);
                continue;
            };
            // With α < 1 the modes of the tables are clipped, and ascend nothing.
            let clipped = matches!(ascent, Ascent::Em | Ascent::Icm);
            for pair in found.trace.windows(2).filter(|_| !clipped) {
                assert!(pair[1] > pair[0] - 1e-10, "{} {ascent:?}: {pair:?}", case.name);
            }
            let n_tokens = case.data.total() as f64;
            for counts in found.counts.iter().filter(|_| n_tokens > 0.0) {
                let sum: f64 = counts.iter().sum();
                let n_nodes = (sum / n_tokens).round();
                assert!((sum - n_nodes * n_tokens).abs() < 1e-9 * sum.max(1.0), "{}", case.name);
            }
            if !clipped {
                let problem = Problem::new(&case.network, &case.data, None).unwrap();
                let exact = case.ln_evidence - problem.ln_total(case.rate);
                assert!(*found.trace.last().unwrap() < exact + 1e-10, "{} {ascent:?}", case.name);
            }
        }
    }
}

//! The allocation model against exact values and against its own identities.

use polyabayes::allocation::{
    Algorithm, Filter, Network, Prior, Problem, TokenOrder, ln_probability,
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

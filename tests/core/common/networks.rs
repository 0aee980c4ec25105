//! Networks and tensors of the vectors (see `tests/vectors/README.md` for what the keys mean).

use polyabayes::allocation::{Network, Prior};
use polyabayes::counts::CountTensor;
use serde_json::Value;

pub(crate) fn integers(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as usize).collect()
}

pub(crate) fn tensor(shape: Vec<usize>, cells: &Value) -> CountTensor {
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

pub(crate) fn read(file: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/");
    let text = std::fs::read_to_string(format!("{path}{file}")).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn lists(value: &Value) -> Vec<Vec<usize>> {
    value.as_array().unwrap().iter().map(integers).collect()
}

pub(crate) fn network(value: &Value) -> Network {
    let sizes = integers(&value["sizes"]);
    let visible = integers(&value["visible"]);
    let [parents, ties] = ["parents", "ties"].map(|key| lists(&value[key]));
    let tables = value["tables"].as_array();
    let tables = tables.map(|tables| tables.iter().map(|x| x.as_f64().unwrap()).collect());
    let prior = Prior { concentration: value["concentration"].as_f64().unwrap(), tables };
    Network::new(sizes, parents, visible, &ties, prior).unwrap()
}

/// Size of every axis.
pub(crate) fn shape(network: &Network) -> Vec<usize> {
    network.axes().iter().map(|&node| network.sizes()[node]).collect()
}

/// word <- topic -> doc
pub(crate) fn nmf(shape: &[usize], rank: usize, concentration: f64) -> Network {
    let sizes = vec![shape[0], shape[1], rank];
    let prior = Prior { concentration, tables: None };
    Network::new(sizes, vec![vec![2], vec![2], vec![]], vec![0, 1], &[], prior).unwrap()
}

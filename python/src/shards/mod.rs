//! Training on parts of a corpus: what is drawn once for all of them, and a part within a sweep.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

mod chain;
mod parts;
mod start;

pub(crate) use chain::ShardedChain;
pub(crate) use parts::{
    Blocks, count_part, exposed_of_part, ln_urns_of_part, order_tokens, order_topics, sweep_part,
};
pub(crate) use start::{PyFirstTopics, ShardedStart};

type Floats<'py> = Bound<'py, PyArray1<f64>>;
type Table<'py> = Bound<'py, PyArray2<f64>>;
type Topics<'py> = Bound<'py, PyArray1<u16>>;

/// The scales of φ, the pseudo-counts of documents and perhaps the rates.
type Urns<'py> = (Floats<'py>, Floats<'py>, Option<Floats<'py>>);

/// Words x topics, as they are in memory.
fn table<'py>(py: Python<'py>, values: &[f64], n_topics: usize) -> PyResult<Table<'py>> {
    PyArray1::from_slice(py, values).reshape([values.len() / n_topics, n_topics])
}

//! Limits that all ways of training share.

use crate::error::{Error, Result};
use crate::urn::MAX_TOPICS;

/// Least value of a learned Dirichlet prior: the prior of a topic without tokens would underflow.
pub(super) const LEAST_PRIOR: f64 = 1e-100;

/// Checks that assignments fit into 16 bits.
pub(super) fn check_n_topics(n_topics: usize) -> Result<()> {
    match n_topics {
        0 => Err(Error::Empty { name: "number of components" }),
        1..=MAX_TOPICS => Ok(()),
        _ => Err(Error::Parameter {
            name: "number of components",
            index: 0,
            value: n_topics as f64,
            domain: "at most 65535",
        }),
    }
}

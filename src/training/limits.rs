//! Limits that all ways of training share.

use crate::counts::CountMatrix;
use crate::error::{Error, Result};
use crate::memory::check_bytes;
use crate::urn::MAX_TOPICS;

/// Least value of a learned Dirichlet prior: the prior of a topic without tokens would underflow.
pub(super) const LEAST_PRIOR: f64 = 1e-100;

/// Bytes that a chain takes for each token: its topic and its place in a block, and those that its
/// state is read into.
const TOKEN_BYTES: f64 = 16.0;

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

/// Checks that the machine has memory for the topics of all tokens.
///
/// # Errors
/// [`Error::Memory`] if it has not.
pub(super) fn check_tokens(n_tokens: u64) -> Result<()> {
    check_bytes("topics of all tokens", TOKEN_BYTES * n_tokens as f64)
}

/// Checks that there is a topic, below the number of topics, for every token.
pub(super) fn check_assignments(
    counts: &CountMatrix,
    n_topics: usize,
    topics: &[u16],
) -> Result<()> {
    let (found, expected) = (topics.len(), counts.n_tokens() as usize);
    if found != expected {
        return Err(Error::Length { name: "topics of all tokens", found, expected });
    }
    match topics.iter().position(|&topic| usize::from(topic) >= n_topics) {
        Some(index) => Err(Error::Parameter {
            name: "topics of all tokens",
            index,
            value: f64::from(topics[index]),
            domain: "below the number of topics",
        }),
        None => Ok(()),
    }
}

//! Limits that all ways of training share.

use crate::error::{Error, Result, check_all, check_length};
use crate::memory::check_bytes;
use crate::urn::MAX_TOPICS;

/// Bytes that a chain takes for each token: its topic and its place in a block, and those that its
/// state is read into.
const TOKEN_BYTES: f64 = 16.0;

/// Checks that assignments fit into 16 bits.
pub(super) fn check_n_topics(n_topics: usize) -> Result<()> {
    match n_topics {
        0 => Err(Error::Empty { name: "n_components" }),
        1..=MAX_TOPICS => Ok(()),
        _ => Err(Error::Parameter {
            name: "n_components",
            index: 0,
            value: n_topics as f64,
            domain: "at most 65535",
        }),
    }
}

/// Checks that the machine has memory for the topics of all tokens.
pub(super) fn check_tokens(n_tokens: u64) -> Result<()> {
    check_bytes("topics of all tokens", TOKEN_BYTES * n_tokens as f64)
}

/// Checks that there is a topic, below the number of topics, for each of so many tokens.
pub(super) fn check_topics(topics: &[u16], n_tokens: usize, n_topics: usize) -> Result<()> {
    let name = "topics of all tokens";
    check_length(name, topics.len(), n_tokens)?;
    // A maximum takes no branch a token; the place of a wrong topic is looked for in the error.
    if topics.iter().max().is_none_or(|&topic| usize::from(topic) < n_topics) {
        return Ok(());
    }
    let index = topics.iter().position(|&topic| usize::from(topic) >= n_topics);
    let index = index.unwrap_or_default();
    let (value, domain) = (f64::from(topics[index]), "below the number of topics");
    Err(Error::Parameter { name, index, value, domain })
}

/// Checks that there are so many values, and that all of them are numbers.
pub(super) fn check_finite(name: &'static str, values: &[f64], expected: usize) -> Result<()> {
    check_length(name, values.len(), expected)?;
    check_all(name, values, "finite", f64::is_finite)
}

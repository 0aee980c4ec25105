//! Gibbs sweeps over the topic of every token, and over the topics given these: what all samplers
//! share.

mod assignments;
mod blocks;
mod darts;
mod dense;
mod documents;
mod exposed;
mod sparse;
mod tables;
mod tallies;
#[cfg(test)]
mod tests;
mod topics;
mod word_counts;

pub(super) use assignments::{Assignments, SpareTallies, ln_urns, sweep_collapsed};
pub(super) use blocks::{Block, Step, sweep_key};
pub use documents::Scheme;
pub(super) use documents::sweep as sweep_documents;
pub use exposed::{ExposedPart, ExposedTokens};
pub(super) use exposed::{Tally, tally};
pub(super) use topics::Topics;
pub(super) use word_counts::{Gathered, WordCounts};

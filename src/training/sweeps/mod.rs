//! Gibbs sweeps over the topic of every token, and over the topics given these: what all samplers
//! share.

mod assignments;
mod blocks;
mod darts;
mod dense;
mod documents;
mod sparse;
mod tables;
mod tallies;
#[cfg(test)]
mod tests;
mod topics;

pub(super) use assignments::Assignments;
pub use documents::Scheme;
pub(super) use topics::Topics;

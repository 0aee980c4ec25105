//! Gibbs sweeps over the topic of every token, and over the topics given these: what all samplers
//! share.
//!
//! The constants of this room, which change times and no distribution, are those of the record of
//! `benches/peers.py sweeps`.

mod blocks;
mod cells;
mod collapsed;
mod dense;
mod exposed;
mod groups;
mod inverse_cdf;
#[cfg(target_arch = "x86_64")]
mod sixteen;
mod sparse;
mod splits;
mod tables;
mod tallies;
#[cfg(test)]
mod tests;
mod topics;

pub use blocks::TopicWeights;
pub(super) use blocks::{DocumentBlock, Step, split_documents};
pub use cells::{BurstCounts, BurstWeights, RepeatedWord};
pub use collapsed::SweptTokens;
pub(super) use collapsed::{SpareTallies, count_words, ln_bursts, ln_urns, sweep};
pub use exposed::ExposedTokens;
pub(super) use exposed::by_exposure;
pub use splits::CorpusSizes;
pub use topics::Topics;
pub(super) use topics::totals;

//! Estimators of the urn sum of one document, each in a file.

pub mod annealed;
pub mod chib;
pub mod direct;
pub mod fitted;
pub mod harmonic;
pub mod l2r;
pub mod left_to_right;
pub mod mean_field;
pub(super) mod prepared;
pub mod recursive;
pub(super) mod runs;
pub(super) mod sampler;
pub mod similar;
pub mod smc;
pub mod table;
mod word_groups;

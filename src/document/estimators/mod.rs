//! Estimators of the urn sum of one document, each in a file.
//!
//! The constants of this room are those with which `python -m benches.truth.coverage` made its records;
//! files that name another bench rest on that one, too.

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

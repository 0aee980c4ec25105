//! Documents under an urn: LDA and gamma-Poisson models.

mod bracket;
mod completion;
mod law;
mod limits;
mod moments;
mod sampling;
mod topic_model;
mod urn_sum;

pub use topic_model::{LengthLaw, TopicModel};
pub(super) use topic_model::{check_shape, word_major};

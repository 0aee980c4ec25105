//! The distributions of documents, one a file or room.

pub mod logistic_normal;
pub mod mixture;
pub mod urn;
mod vocabularies;

pub use logistic_normal::LogisticNormal;
pub use mixture::FiniteMixture;
pub use urn::{LengthLaw, TopicModel};
pub use vocabularies::Vocabularies;

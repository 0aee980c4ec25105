//! Models of documents: an urn with the factor beside it, mixtures, logistic normals, and vocabularies
//! side by side.

mod document_model;
pub mod mixture;
mod topic_model;
mod vocabularies;

pub use document_model::{DocumentModel, Draws};
pub use topic_model::{Event, LengthLaw, Query, TopicModel};
pub(in crate::document) use topic_model::{check_shape, word_major};
pub use vocabularies::Vocabularies;

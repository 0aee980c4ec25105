//! ln p(document | model), by exact algorithms and unbiased estimators over an urn.
//!
//! [`TopicModel`] is the thin front of a model: an urn and a closed-form factor. [`score`] runs an
//! estimator over a corpus, [`transform`] infers topic weights. Each estimator has a file.

pub mod direct;
pub mod exact;
pub mod mean_field;
mod model;
mod scoring;
pub mod smc;
mod transforming;

pub use model::{Event, LengthLaw, Query, TopicModel};
pub use scoring::{Method, Score, Settings, score};
pub use transforming::transform;

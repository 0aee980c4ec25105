//! ln p(document | model), by exact algorithms and unbiased estimators over an urn.
//!
//! [`TopicModel`] is the thin front of a model: an urn and a closed-form factor. [`score`] runs an
//! estimator over a corpus, [`transform`] infers topic weights. Each estimator has a file.

pub mod annealed;
mod chain;
pub mod chib;
pub mod direct;
pub mod exact;
pub mod harmonic;
pub mod l2r;
pub mod left_to_right;
pub mod mean_field;
mod method;
mod model;
pub mod recursive;
mod scoring;
pub mod smc;
mod transforming;

pub use left_to_right::Form;
pub use method::{Method, Sampler};
pub use model::{Event, LengthLaw, Query, TopicModel};
pub use scoring::{Score, Settings, score};
pub use transforming::transform;

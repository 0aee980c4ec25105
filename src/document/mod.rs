//! ln p(document | model), by exact algorithms and unbiased estimators over an urn.
//!
//! [`TopicModel`] is the thin front of a model: an urn and a closed-form factor. [`score`] runs an
//! estimator over a corpus, [`transform`] infers topic weights. Each estimator has a file.

pub mod annealed;
mod bidirectional;
pub mod chib;
mod completion;
pub mod direct;
pub mod exact;
pub mod harmonic;
pub mod l2r;
pub mod left_to_right;
pub mod mean_field;
mod method;
mod model;
pub mod recursive;
mod runs;
mod sampling;
mod scoring;
pub mod smc;
mod transforming;

pub use annealed::Start;
pub use bidirectional::{Bounds, bidirectional};
pub use completion::completion;
pub use l2r::Conditionals;
pub use left_to_right::Form;
pub use mean_field::MeanField;
pub use method::{Method, Sampler};
pub use model::{Event, LengthLaw, Query, TopicModel};
pub use runs::Runs;
pub use scoring::{Score, Settings, TracePoint, score};
pub use transforming::{Moments, transform};

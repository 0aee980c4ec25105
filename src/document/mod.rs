//! ln p(document | model), by exact algorithms and unbiased estimators over an urn.
//!
//! [`TopicModel`] is the thin front of a model: an urn and a closed-form factor. [`exact`] and
//! [`estimators`] compute urn sums; [`Settings`] say which of them and with how much effort.
//! [`score`] runs them over a corpus, [`completion`] over pairs of documents, [`bidirectional`]
//! from both sides; [`transform`] infers topic weights.

mod bidirectional;
mod completion;
pub mod estimators;
pub mod exact;
pub mod gaussian;
mod limits;
mod models;
mod result;
mod sampling;
mod scoring;
mod settings;
mod transform;
mod urn_sum;

pub use bidirectional::{Bounds, bidirectional};
pub use completion::{check_completion, completion};
pub use estimators::l2r::Conditionals;
pub use estimators::left_to_right::Form;
pub use estimators::mean_field::MeanField;
pub use estimators::runs::Runs;
pub use estimators::sampler::Sampler;
pub use estimators::table::{ESTIMATORS, Estimator, SampleSize};
pub use estimators::urn_path::Start;
pub use models::{
    DocumentModel, Draws, Event, LengthLaw, Query, TopicModel, Vocabularies, mixture,
};
pub use result::{Score, Spread, TracePoint};
pub use scoring::{check_score, score};
pub use settings::{Method, Settings};
pub use transform::{Moments, transform};

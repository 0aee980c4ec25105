//! ln p(document | model), by exact algorithms and unbiased estimators.
//!
//! A [`Law`] is a distribution of documents: [`laws`] holds them, of which the urn is the first.
//! [`score`], [`completion`], [`bidirectional`] and [`transform`] run over a corpus under any law;
//! [`Settings`] say how and with how much effort. [`exact`] and [`estimators`] compute urn sums.

mod driver;
pub mod estimators;
pub mod exact;
mod law;
pub mod laws;
mod result;
mod settings;

pub use driver::{
    Moments, bidirectional, check_completion, check_score, completion, score, transform,
};
pub use estimators::annealed::urn_path::Start;
pub use estimators::l2r::Conditionals;
pub use estimators::left_to_right::Form;
pub use estimators::mean_field::MeanField;
pub use estimators::runs::Runs;
pub use estimators::sampler::Sampler;
pub use estimators::table::{ESTIMATORS, Estimator, SampleSize};
pub use law::{Bounds, Draws, Law, Pair, WeightMoments};
pub use laws::{FiniteMixture, LengthLaw, LogisticNormal, TopicModel, Vocabularies};
pub use result::{Score, Spread, TracePoint};
pub use settings::{Event, Method, Query, Settings};

#![doc = include_str!("README.md")]
//!
//! ## Rooms
//!
//! One distribution, the Pólya [`urn`]: pseudo-counts, weights, and sweeps over the colours of
//! tokens. Engines over targets of any kind: [`filter`] draws particles along a sequence of tokens,
//! [`temper`] takes chains along a path of distributions, by annealing and by parallel tempering.
//! Three subjects, which do not know of one another: [`document`] computes the likelihood of
//! documents under topic models, [`allocation`] the evidence of count tensors under Bayesian
//! networks, exactly or by sampling, with standard errors; [`training`] learns topic models.
//!
//! [`regression`] draws the coefficients of covariates.
//!
//! Below them, [`math`] has special functions, draws and resampling schemes, [`counts`] holds the
//! data, [`rng`] gives every unit of work its own stream, [`control`] reports progress and stops
//! work, `memory` refuses what the machine cannot hold, [`simd`] says which instructions kernels
//! use. A room uses the rooms below it only. All logarithms are natural.

#![forbid(unsafe_code)]

pub mod allocation;
pub mod control;
pub mod counts;
pub mod document;
pub mod error;
pub mod estimate;
pub mod filter;
pub mod math;
mod memory;
pub mod regression;
pub mod rng;
pub mod simd;
pub mod temper;
pub mod training;
pub mod urn;

pub use control::{Observer, Stop};
pub use counts::CountMatrix;
pub use document::{
    Bounds, Conditionals, ESTIMATORS, Estimator, Event, Form, MeanField, Method, Moments, Query,
    SampleSize, Sampler, Score, Settings, Spread, Start, TopicModel, TracePoint, bidirectional,
    check_completion, check_score, completion, score, transform,
};
pub use error::{Error, Result};
pub use estimate::Estimate;

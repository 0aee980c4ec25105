//! How probable are count data under a model?
//!
//! One law, the Pólya [`urn`]: pseudo-counts, weights, and sweeps over the colours of tokens.
//! Engines over targets of any kind: [`filter`] draws particles along a sequence of tokens,
//! [`temper`] takes chains along a path of distributions, by annealing and by parallel tempering.
//! Three subjects, which do not know of one another: [`document`] computes the likelihood of
//! documents under topic models, [`allocation`] the evidence of count tensors under Bayesian
//! networks, exactly or by sampling, with standard errors; [`training`] learns topic models.
//!
//! Below them, [`math`] has special functions, draws and resampling schemes, [`counts`] holds the
//! data, [`rng`] gives every unit of work its own stream, [`control`] reports progress and stops
//! work. A room uses the rooms below it only. All logarithms are natural.
//!
//! ```
//! use polyabayes::{CountMatrix, Event, Method, Query, Settings, TopicModel, score};
//!
//! let phi = [0.5, 0.25, 0.125, 0.125, 0.1, 0.2, 0.3, 0.4];
//! let model = TopicModel::lda(vec![0.1, 0.1], &phi)?;
//! let documents = CountMatrix::from_dense(&[vec![1, 1, 1, 0]])?;
//! let query = Query { event: Event::Sequence, given_length: true };
//! let settings = Settings { method: Method::Auto, ..Settings::new(query) };
//! let scores = score(&model, &documents, &settings, 0, &())?;
//! let estimate = scores[0].as_ref().expect("nobody stopped the work").estimate;
//! assert!((estimate.ln_value - -4.474050553487056).abs() < 1e-13);
//! assert_eq!(estimate.std_error, 0.0);
//! # Ok::<(), polyabayes::Error>(())
//! ```

pub mod allocation;
pub mod control;
pub mod counts;
pub mod document;
pub mod error;
pub mod estimate;
pub mod filter;
pub mod math;
pub mod rng;
pub mod temper;
pub mod training;
pub mod urn;

pub use control::{Observer, Stop};
pub use counts::CountMatrix;
pub use document::{
    Bounds, Conditionals, Event, Form, MeanField, Method, Moments, Query, Sampler, Score, Settings,
    Share, Start, TopicModel, TracePoint, bidirectional, check_completion, check_score, completion,
    score, score_for_total, transform,
};
pub use error::{Error, Result};
pub use estimate::Estimate;

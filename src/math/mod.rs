//! Numerical pieces that every layer shares.

pub mod draw;
pub mod log_sum;
pub mod special;

pub use draw::{dirichlet, ln_gamma_variate, ln_beta_variate, pick, systematic_offspring};
pub use log_sum::LogSum;
pub use special::{ln_binomial, ln_factorial, ln_gamma, ln_rising};

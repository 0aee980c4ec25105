//! Numerical pieces that every layer shares.

pub mod draw;
pub mod log_sum;
pub mod special;

pub use draw::{
    dirichlet, gamma_law, ln_beta_variate, ln_gamma_variate, pick, systematic_offspring,
};
pub use log_sum::LogSum;
pub use special::{ln_binomial, ln_factorial, ln_gamma, ln_rising};

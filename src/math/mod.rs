//! Numerical pieces that every layer shares.

pub mod categorical;
pub mod cumulative;
pub mod dot;
pub mod draw;
pub mod elementary;
pub mod exact_sum;
pub mod gammas;
pub mod lanes;
pub(crate) mod linear;
pub mod log_concave;
pub mod log_sum;
pub mod mean;
pub mod pareto;
pub mod resampling;
pub mod special;

pub use categorical::{pick, pick_lanes};
pub use cumulative::Cumulative;
pub use dot::dot;
pub use draw::{crt, dirichlet, gamma_law, ln_beta_variate, ln_dirichlet, ln_gamma_variate};
pub use exact_sum::ExactSum;
pub use gammas::{GammaScratch, fill_gammas};
pub use log_concave::log_concave;
pub use log_sum::{LogSum, ln_add};
pub use mean::{mean_and_error, variance};
pub use pareto::has_heavy_tail;
pub use resampling::{Move, Replication, Resampling, systematic_offspring};
pub use special::{
    RisingTable, digamma, ln_binomial, ln_factorial, ln_gamma, ln_gamma_ratio, ln_rising,
    ln_rising_by, trigamma,
};

//! Particle filters over the tokens of a problem.

pub(crate) mod lanes;
mod moves;
pub(crate) mod smc;
pub(crate) mod steps;

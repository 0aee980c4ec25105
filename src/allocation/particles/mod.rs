//! Particle filters over the tokens of a problem.

pub(crate) mod label_symmetry;
pub(crate) mod lanes;
pub(crate) mod lookahead;
mod moves;
pub(crate) mod responsibilities;
pub(crate) mod smc;
pub(crate) mod steps;
